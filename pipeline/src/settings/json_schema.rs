//! The configuration as a JSON Schema, with which editors complete and check `warptape.toml`. It is derived from the
//! table of keys.

use serde_json::{Map, Value, json};

use super::keys::{FILE_SUFFIX, Key, ValueKind};
use super::sections::SECTIONS;

/// Returns the schema of a configuration file.
pub fn json_schema() -> Value {
    let mut root = object("Configuration of Warptape");
    for section in SECTIONS {
        let mut of_section = &mut root;
        for name in section.path.split('.') {
            of_section = properties(of_section).entry(name).or_insert_with(|| object(""));
        }
        of_section["description"] = section.about.into();
        let keys = properties(of_section);
        for key in section.keys {
            let path = format!("{}{FILE_SUFFIX}", key.name());
            match key.kind {
                ValueKind::Secret => _ = keys.insert(path, described(key)),
                ValueKind::Address { .. } => {
                    keys.insert(key.name().to_owned(), described(key));
                    keys.insert(path, file_of(key));
                }
                _ => _ = keys.insert(key.name().to_owned(), described(key)),
            }
        }
    }
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root
}

fn object(about: &str) -> Value {
    json!({"type": "object", "description": about, "properties": {}, "additionalProperties": false})
}

fn properties(object: &mut Value) -> &mut Map<String, Value> {
    object["properties"].as_object_mut().expect("an object has properties")
}

fn file_of(key: &Key) -> Value {
    json!({"type": "string", "description": format!("Path of a file that holds {}", key.path)})
}

fn described(key: &Key) -> Value {
    let mut schema = match key.kind {
        ValueKind::Text { default, .. } | ValueKind::Address { default, .. } => {
            json!({"type": "string", "default": default})
        }
        ValueKind::Choice { default, choices } => json!({"enum": choices, "default": default}),
        ValueKind::Integer { default, min, max } => {
            json!({"type": "integer", "default": default, "minimum": min, "maximum": max})
        }
        ValueKind::Number { default, min, max } => {
            json!({"type": "number", "default": default, "minimum": min, "maximum": max})
        }
        ValueKind::List { default, items_max, .. } => {
            let items_min = usize::from(!default.is_empty());
            json!({
                "type": "array", "items": {"type": "string"}, "default": default, "minItems": items_min, "maxItems": items_max
            })
        }
        ValueKind::Table { .. } => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        // A configuration file may name the file of a secret, but not contain the secret.
        ValueKind::Secret => return file_of(key),
    };
    schema["description"] = format!("{} Allowed: {}.", key.about, key.kind.allowed()).into();
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{KEYS, example_toml};

    /// Collects the keys of a file that the schema lacks.
    fn unknown(schema: &Value, table: &toml_edit::Table, path: &str, found: &mut Vec<String>) {
        for (name, item) in table {
            let of = &schema["properties"][name];
            match item.as_table() {
                Some(inner) => unknown(of, inner, &format!("{path}{name}."), found),
                None if of.is_null() => found.push(format!("{path}{name}")),
                None => {}
            }
        }
    }

    /// Collects the paths of a schema's leaves.
    fn leaves(schema: &Value, path: &str, found: &mut Vec<String>) {
        for (name, of) in schema["properties"].as_object().expect("properties") {
            match of["properties"].is_object() {
                true => leaves(of, &format!("{path}{name}."), found),
                false => found.push(format!("{path}{name}")),
            }
        }
    }

    #[test]
    fn the_schema_has_every_key_of_the_example_file_and_no_others() {
        let schema = json_schema();
        let example: toml_edit::DocumentMut = example_toml().parse().expect("the example file is TOML");
        let mut found = Vec::new();
        unknown(&schema, example.as_table(), "", &mut found);
        assert_eq!(found, Vec::<String>::new());
        let (mut known, mut expected) = (Vec::new(), Vec::new());
        leaves(&schema, "", &mut known);
        for key in KEYS {
            let file = || format!("{}{FILE_SUFFIX}", key.path);
            match key.kind {
                ValueKind::Secret => expected.push(file()),
                ValueKind::Address { .. } => expected.extend([key.path.to_owned(), file()]),
                _ => expected.push(key.path.to_owned()),
            }
        }
        known.sort_unstable();
        expected.sort_unstable();
        assert_eq!(known, expected);
        for key in KEYS {
            let is_secret = matches!(key.kind, ValueKind::Secret);
            let name = format!("{}{}", key.path, if is_secret { FILE_SUFFIX } else { "" });
            let of = name.split('.').fold(&schema, |schema, name| &schema["properties"][name]);
            assert!(of["description"].as_str().is_some_and(|words| !words.is_empty()), "{name}");
        }
    }

    #[test]
    fn limits_and_choices_are_those_of_the_keys() {
        let schema = json_schema();
        let of =
            |path: &str| path.split('.').fold(&schema, |schema, name| &schema["properties"][name]).clone();
        assert_eq!(of("log.durability")["enum"], json!(["process", "full"]));
        let lateness = of("stages.allowed_lateness_ms");
        assert_eq!((lateness["type"].clone(), lateness["minimum"].clone()), (json!("integer"), json!(0)));
        assert_eq!(of("stages.bars")["items"], json!({"type": "string"}));
        assert_eq!(of("kafka.properties")["additionalProperties"], json!({"type": "string"}));
    }
}
