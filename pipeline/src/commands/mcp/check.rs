//! Checks the arguments of a call before a tool gets them: names, texts, lists and ranges.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Greatest length of a text, in bytes.
const TEXT_BYTES_MAX: usize = 1_024;
/// Greatest number of values in a list.
const ITEMS_MAX: usize = 64;
/// Greatest length of a file's name without its extension, in bytes.
const FILE_NAME_BYTES_MAX: usize = 64;

/// A mistake in a call's arguments. The message names the argument and the remedy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mistake(pub String);

/// Checks all arguments against the schema of the tool, except for their types: deserialization checks those.
pub fn check(arguments: &JsonObject, schema: &JsonObject) -> Result<(), Mistake> {
    let empty = JsonObject::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for (name, value) in arguments {
        let Some(property) = properties.get(name) else {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            return Err(Mistake(format!(
                "{name:?}: no such argument; the arguments are: {}",
                known.join(", ")
            )));
        };
        check_value(name, value)?;
        check_range(name, value, property)?;
    }
    Ok(())
}

fn check_value(name: &str, value: &Value) -> Result<(), Mistake> {
    match value {
        Value::String(text) => check_text(name, text),
        Value::Array(values) if values.len() > ITEMS_MAX => {
            Err(Mistake(format!("{name}: {} values; give at most {ITEMS_MAX}", values.len())))
        }
        Value::Array(values) => values.iter().try_for_each(|value| check_value(name, value)),
        _ => Ok(()),
    }
}

fn check_text(name: &str, text: &str) -> Result<(), Mistake> {
    let fault = if text.is_empty() {
        "it is empty; leave the argument out"
    } else if text.len() > TEXT_BYTES_MAX {
        "it is too long; give at most 1,024 bytes"
    } else if text.starts_with('-') {
        "it begins with `-`, as flags do; give a value"
    } else if text.chars().any(char::is_control) {
        "it has control characters, such as a line break; give one line of plain text"
    } else {
        return Ok(());
    };
    let shown: String = text.chars().take(40).collect();
    Err(Mistake(format!("{name}: {shown:?}: {fault}")))
}

fn check_range(name: &str, value: &Value, property: &Value) -> Result<(), Mistake> {
    let Some(number) = value.as_f64() else { return Ok(()) };
    let bound = |which: &str| property.get(which).and_then(Value::as_f64);
    match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) if !(min..=max).contains(&number) => {
            Err(Mistake(format!("{name}: {value} is not in {min}..={max}")))
        }
        (Some(min), None) if number < min => Err(Mistake(format!("{name}: {value} is less than {min}"))),
        _ => Ok(()),
    }
}

/// Checks that tools may read this log.
pub fn check_log(name: &str, log: &str, logs: &[String]) -> Result<(), Mistake> {
    match logs.iter().any(|known| known == log) {
        true => Ok(()),
        false => Err(Mistake(format!(
            "{name}: {log:?} is not a log that may be read here; the logs are: {}; start `warptape mcp` with \
             --other-log for a further one",
            logs.join(", ")
        ))),
    }
}

/// Checks the name of a file to create: it must not lead to another folder.
pub fn check_file_name(name: &str) -> Result<(), Mistake> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    match begins_well && name.bytes().all(is_plain) && name.len() <= FILE_NAME_BYTES_MAX {
        true => Ok(()),
        false => Err(Mistake(format!(
            "name: {name:?} is no plain name; give at most {FILE_NAME_BYTES_MAX} letters, digits, dots, hyphens and \
             underscores, such as night-2026-11-24"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> JsonObject {
        match value {
            Value::Object(object) => object,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn arguments_are_values_of_known_names() {
        let schema = object(json!({"properties": {
            "since": {"type": "string"},
            "set": {"type": "array"},
            "count": {"type": "integer", "minimum": 1, "maximum": 100},
            "partition": {"type": "integer", "minimum": 0},
        }}));
        let checked = |arguments: Value| check(&object(arguments), &schema);
        let good = json!({"since": "2026-11-24T03:00:00Z", "set": ["a=b"], "count": 100});
        assert_eq!(checked(good), Ok(()));
        for (wrong, expected) in [
            (json!({"to": "x.html"}), "the arguments are: count, partition, set, since"),
            (json!({"since": "--to=x.html"}), "since: \"--to=x.html\": it begins with `-`"),
            (json!({"since": "-c"}), "since: \"-c\": it begins with `-`"),
            (json!({"since": "1\n--to=x"}), "since: \"1\\n--to=x\": it has control characters"),
            (json!({"since": "1\u{0}"}), "control characters"),
            (json!({"since": ""}), "it is empty"),
            (json!({"since": "x".repeat(1_025)}), "too long"),
            (json!({"set": ["a=b", "-c"]}), "set: \"-c\": it begins with `-`"),
            (json!({"set": vec!["a=b"; 65]}), "set: 65 values; give at most 64"),
            (json!({"count": 101}), "count: 101 is not in 1..=100"),
            (json!({"count": 0}), "count: 0 is not in 1..=100"),
            (json!({"count": -1}), "count: -1 is not in 1..=100"),
            (json!({"partition": -1}), "partition: -1 is less than 0"),
        ] {
            let mistake = checked(wrong.clone()).expect_err("it is refused").to_string();
            assert!(mistake.contains(expected), "{wrong}: {mistake}");
        }
    }

    #[test]
    fn file_names_stay_in_the_folder() {
        for good in ["night", "night-2026-11-24", "a.b_c"] {
            assert_eq!(check_file_name(good), Ok(()), "{good}");
        }
        for wrong in ["", ".", "..", ".hidden", "-c", "a/b", "../a", "/tmp/a", "a b", "ä", &"a".repeat(65)] {
            assert!(check_file_name(wrong).is_err(), "{wrong}");
        }
    }
}
