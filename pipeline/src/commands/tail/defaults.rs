//! Defaults for fields that records of earlier schema versions lack, by Avro's rules of schema resolution. So all
//! records of a topic have the same fields.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use warptape_schemas::known;

type Defaults = Vec<(String, Value)>;

/// Fields with defaults in the current version of each record.
static DEFAULTS: LazyLock<BTreeMap<&'static str, Defaults>> = LazyLock::new(|| {
    let mut defaults = BTreeMap::new();
    // The list has the current version of each record first.
    for schema in known::all() {
        defaults.entry(schema.name).or_insert_with(|| of_schema(schema.text));
    }
    defaults
});

/// Adds the fields that a record lacks.
pub fn add(schema: &str, fields: &mut Map<String, Value>) {
    for (name, default) in DEFAULTS.get(schema).into_iter().flatten() {
        if !fields.contains_key(name) {
            fields.insert(name.clone(), default.clone());
        }
    }
}

fn of_schema(text: &str) -> Defaults {
    let schema: Value = serde_json::from_str(text).expect("a published schema is JSON");
    let fields = schema["fields"].as_array().into_iter().flatten();
    let with_default = fields.filter_map(|field| Some((field["name"].as_str()?, field.get("default")?)));
    with_default.map(|(name, default)| (name.to_owned(), default.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_of_an_earlier_version_has_all_fields() {
        let mut late = Map::from_iter([("price_e9".to_owned(), json!(5))]);
        add("LateTick", &mut late);
        assert_eq!(Value::Object(late), json!({"price_e9": 5, "scaled": null}));
        let mut alert = Map::from_iter([("trades".to_owned(), json!(7))]);
        add("Signal", &mut alert);
        assert_eq!((&alert["trades"], &alert["further_indicators"]), (&json!(7), &json!({})));
        assert!(alert.contains_key("quote_forgotten") && alert.contains_key("exact_flow"));
    }
}
