//! The tables' documentation for users agrees with their declaration.

/// Mark after which the test writes the text.
const MARK: &str = "cargo test -p warptape-tables documented -->\n";

/// `WARPTAPE_UPDATE_DOCS=1 cargo test -p warptape-tables documented` rewrites the tables.
#[test]
fn all_columns_are_documented() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/export.md");
    let text = std::fs::read_to_string(&path).expect("the documentation");
    let begin = text.find(MARK).expect("the mark behind which tables begin") + MARK.len();
    let tables = warptape_tables::documented();
    if std::env::var_os("WARPTAPE_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{tables}", &text[..begin])).expect("a writable folder");
    } else {
        assert_eq!(&text[begin..], tables, "run with WARPTAPE_UPDATE_DOCS=1 to write it anew");
    }
}

#[test]
fn names_say_units_and_none_comes_twice() {
    for table in warptape_tables::TABLES {
        let mut names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{}", table.name);
        let times = table.columns.iter().filter(|column| column.kind == warptape_tables::ColumnKind::Time);
        assert!(
            times.clone().count() > 0 && times.clone().all(|column| column.name.ends_with("_ns")),
            "{}",
            table.name
        );
        let times = table.columns.iter().filter(|column| column.words.contains("time of that entry"));
        assert!(times.clone().all(|column| column.name.ends_with("_ns")), "{}", table.name);
    }
}
