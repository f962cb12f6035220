//! The JSON Schema of risk requests. It is derived from the types' declarations; alternative spellings that serde
//! accepts are added.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use warptape_schemas::risk::RiskRequest;

/// Properties with a second name, which users with currencies expect.
const SECOND_NAMES: [(&str, &str); 3] = [
    ("dividend_yield", "foreign_rate"),
    ("yield_shift", "foreign_rate_shift"),
    ("yield_twist", "foreign_rate_twist"),
];

/// Returns the schema of a request in a file for `warptape risk`.
pub fn request_schema() -> Value {
    let mut schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<RiskRequest>().to_value();
    schema["title"] = "Risk request of Warptape".into();
    // The command makes up a missing id.
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name != "request_id");
    }
    add_second_forms(&mut schema);
    // Editors find the schema of a file by this key.
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert("$schema".to_owned(), json!({"type": "string"}));
    }
    schema
}

fn add_second_forms(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(add_second_forms);
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                add_second_names(properties);
            }
            if let Some(Value::Array(words)) = object.get_mut("enum") {
                let second: Vec<Value> = words.iter().filter_map(second_form).collect();
                words.extend(second);
            }
            if let Some(second) = object.get("const").and_then(second_form) {
                let word = object.remove("const").expect("it was there a line ago");
                object.insert("enum".to_owned(), json!([word, second]));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add_second_forms),
        _ => {}
    }
}

fn add_second_names(properties: &mut Map<String, Value>) {
    for (name, second) in SECOND_NAMES {
        if let Some(schema) = properties.get(name).cloned() {
            properties.insert(second.to_owned(), schema);
        }
    }
}

fn second_form(word: &Value) -> Option<Value> {
    let word = word.as_str()?;
    let second = word.to_lowercase().replace('_', "-");
    (second != word).then(|| second.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `WARPTAPE_UPDATE_DOCS=1 cargo test -p warptape-pipeline --lib document_in_docs` rewrites the file.
    #[test]
    fn the_document_in_docs_is_the_schema_of_requests() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/risk-request.schema.json");
        let text = format!("{:#}\n", request_schema());
        if std::env::var_os("WARPTAPE_UPDATE_DOCS").is_some() {
            std::fs::write(path, &text).expect("the document");
        }
        let found = std::fs::read_to_string(path).expect("the document");
        assert!(found == text, "run with WARPTAPE_UPDATE_DOCS=1 to write it anew");
    }
}
