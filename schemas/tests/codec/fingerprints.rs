//! The fingerprints of published schemas, and the required documentation. For a new version, the test reports the
//! fingerprint for `known.rs`.

use arrow_avro::schema::{AvroSchema, Fingerprint, FingerprintAlgorithm};

use warptape_schemas::avro_fingerprint;
use warptape_schemas::known::{CURRENT, all, by_fingerprint};

/// If a fingerprint changed, other readers would no longer recognise our records. Two libraries compute the same one.
#[test]
fn fingerprints_are_pinned() {
    let mut wrong = String::new();
    for schema in all() {
        let computed = avro_fingerprint(schema.text).expect(schema.file);
        let other = AvroSchema::new(schema.text.to_owned()).fingerprint(FingerprintAlgorithm::Rabin);
        assert_eq!(other.expect(schema.file), Fingerprint::Rabin(computed), "{}", schema.file);
        if computed != schema.fingerprint {
            wrong += &format!("{} version {} is 0x{computed:016x}\n", schema.name, schema.version);
        }
    }
    assert_eq!(wrong, "", "known.rs and schemas/avro differ");
}

#[test]
fn versions_are_told_apart() {
    for (index, schema) in all().enumerate() {
        assert!(all().skip(index + 1).all(|other| {
            other.fingerprint != schema.fingerprint
                && (other.file, other.version) != (schema.file, schema.version)
        }));
        assert_eq!(by_fingerprint(schema.fingerprint), Some(schema));
    }
    assert_eq!(by_fingerprint(0), None);
}

/// Every record and field has a name and documentation.
#[test]
fn schemas_are_documented() {
    for schema in CURRENT {
        let json: serde_json::Value = serde_json::from_str(schema.text).expect(schema.file);
        assert_eq!((&json["name"], &json["namespace"]), (&schema.name.into(), &"warptape".into()));
        assert_documented(schema.file, &json);
    }
}

fn assert_documented(path: &str, json: &serde_json::Value) {
    let doc = |json: &serde_json::Value| json["doc"].as_str().is_some_and(|doc| doc.ends_with('.'));
    match json {
        serde_json::Value::Array(branches) => {
            branches.iter().for_each(|branch| assert_documented(path, branch))
        }
        serde_json::Value::Object(object) => {
            if object.contains_key("name") {
                assert!(doc(json), "{path}: {} has no doc", object["name"]);
            }
            if let Some(items) = object.get("items") {
                assert_documented(path, items);
            }
            for field in object.get("fields").and_then(|fields| fields.as_array()).into_iter().flatten() {
                let name = field["name"].as_str().expect("a name");
                assert!(doc(field), "{path}.{name} has no doc");
                assert_documented(&format!("{path}.{name}"), &field["type"]);
            }
        }
        _ => {}
    }
}
