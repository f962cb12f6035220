//! Every symbol for a decision's reason has a row in docs/scheduling.md.

use serde_json::Value;
use warptape_schemas::known::JOURNAL_ENTRY;

/// Endings of the names of enums with reasons.
const WHY: [&str; 2] = ["Reason", "Cause"];
const PAGE: &str = "../docs/scheduling.md";

/// Collects a schema's enums of reasons, with their symbols.
fn reasons(schema: &Value, found: &mut Vec<(String, Vec<String>)>) {
    if let (Some("enum"), Some(name)) = (schema["type"].as_str(), schema["name"].as_str())
        && WHY.iter().any(|end| name.ends_with(end))
    {
        let symbols = schema["symbols"].as_array().expect("an enum has symbols");
        let text = |symbol: &Value| symbol.as_str().expect("a symbol is a text").to_owned();
        found.push((name.to_owned(), symbols.iter().map(text).collect()));
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|field| reasons(field, found)),
        Value::Array(items) => items.iter().for_each(|item| reasons(item, found)),
        _ => {}
    }
}

/// Returns a schema's symbols that have no row in a page.
fn missing(schema: &Value, page: &str) -> Vec<String> {
    let mut found = Vec::new();
    reasons(schema, &mut found);
    let has_row = |word: &str| {
        page.lines().any(|line| line.starts_with('|') && line.contains(&format!("| `{word}` |")))
    };
    let words =
        found.into_iter().flat_map(|(name, words)| words.into_iter().map(move |word| (name.clone(), word)));
    words.filter(|(_, word)| !has_row(word)).map(|(name, word)| format!("{word} of {name}")).collect()
}

#[test]
fn every_reason_word_has_a_row() {
    let schema: Value = serde_json::from_str(JOURNAL_ENTRY.text).expect("a schema is JSON");
    let page = std::fs::read_to_string(PAGE).expect("the page is there");
    assert_eq!(
        missing(&schema, &page),
        Vec::<String>::new(),
        "words of decisions that {PAGE} does not explain"
    );
}

#[test]
fn a_word_without_a_row_is_found() {
    let schema = serde_json::json!({"fields": [{"type": {"type": "enum", "name": "SomeReason", "symbols": ["ONE", "OTHER"]}}]});
    assert_eq!(missing(&schema, "| `Some` | `ONE` | It is the first. |\nOTHER\n"), ["OTHER of SomeReason"]);
}
