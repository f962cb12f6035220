//! Checks that files and headings named in documents exist.

use std::path::Path;

/// Files named in "How to add" of CONTRIBUTING.md must exist. Files to be added, whose names contain NAME or a number,
/// are exempt.
#[test]
fn how_to_add_names_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let text = std::fs::read_to_string(root.join("CONTRIBUTING.md")).expect("CONTRIBUTING.md");
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
    assert!(missing.is_empty(), "CONTRIBUTING.md names files that are not there: {missing:?}");
}

/// Returns the headings of a page. Lines of code that look like headings are excluded.
fn headings(page: &str) -> impl Iterator<Item = &str> {
    let outside = page.split("```").step_by(2);
    outside.flat_map(str::lines).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'))
}

/// Returns the anchor by which links refer to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect()
}

/// Links in pages must lead to existing files and headings.
#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let read = |file: &Path| std::fs::read_to_string(file).expect("a page");
    let mut pages = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "SECURITY.md"]
        .map(|page| root.join(page))
        .to_vec();
    // `tests/book` checks docs/SUMMARY.md, whose links refer to the built book.
    for folder in ["docs", "docs/concepts"] {
        let entries = std::fs::read_dir(root.join(folder)).expect("the pages");
        let files = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(
            files.filter(|path| {
                path.extension().is_some_and(|end| end == "md") && !path.ends_with("SUMMARY.md")
            }),
        );
    }
    let (mut found, mut broken) = (0, Vec::new());
    for page in &pages {
        for link in read(page).split("](").skip(1).filter_map(|behind| behind.split_once(')')) {
            let link = link.0;
            if link.contains("://") || link.contains(char::is_whitespace) {
                continue;
            }
            found += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let leads = target.exists()
                && (heading.is_empty() || headings(&read(&target)).any(|line| anchor(line) == heading));
            if !leads {
                broken.push(format!("{}: {link}", page.strip_prefix(root).unwrap_or(page).display()));
            }
        }
    }
    assert!(found > 100 && broken.is_empty(), "{found} links; these lead nowhere: {broken:#?}");
}

/// Each reason for a group's move, and for a lane's exclusion, must have a row in docs/scheduling.md.
#[test]
fn reasons_of_placement_are_explained() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a file of the workspace");
    let (schema, text) = (read("schemas/avro/journal_entry.avsc"), read("docs/scheduling.md"));
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
    for name in ["ReleaseCause", "ExclusionReason"] {
        let (_, behind) = schema.split_once(&format!("\"name\": \"{name}\"")).expect("the enum");
        let (_, symbols) = behind.split_once("\"symbols\"").expect("its symbols");
        let (symbols, _) = symbols.split_once(']').expect("the end of a list");
        let words: Vec<&str> = symbols.split('"').skip(1).step_by(2).collect();
        assert!(words.len() > 3, "{name}: {words:?}");
        for word in words {
            let has_row = rows.iter().any(|row| row.contains(&format!("`{word}`")));
            assert!(has_row, "docs/scheduling.md says nothing of {word}");
        }
    }
}
