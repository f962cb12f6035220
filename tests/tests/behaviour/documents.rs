//! What documents name is there.

use std::path::Path;

/// Files that "How to add" of ARCHITECTURE.md names exist, but for those that are to be added, whose names have a NAME or a number.
#[test]
fn how_to_add_names_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, section) = text.split_once("\n## How to add\n").expect("the section");
    let is_file = |word: &&str| {
        let has_extension =
            [".rs", ".cu", ".avsc", ".md", ".toml", ".txt", ".json"].iter().any(|end| word.ends_with(end));
        has_extension
            && word.contains('/')
            && !word.contains("NAME")
            && !word.contains("_N.")
            && !word.contains(' ')
    };
    let files: Vec<&str> = section.split('`').skip(1).step_by(2).filter(is_file).collect();
    assert!(files.len() > 40, "{files:?}");
    let missing: Vec<&str> = files.into_iter().filter(|file| !root.join(file).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names files that are not there: {missing:?}");
}
