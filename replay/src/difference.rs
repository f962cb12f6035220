//! Differences between two values, field by field.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Greatest number of differences listed: the first few explain the others.
const DIFFERENCES_MAX: usize = 8;
/// Greatest number of characters shown of a value.
const SHOWN_CHARS_MAX: usize = 160;

/// A field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Path of the field, such as `decisions[0].place.lane`.
    pub field: String,
    /// Value in the replay; `None` if the replay has no such value.
    pub expected: Option<Value>,
    /// Recorded value; `None` if nothing is recorded.
    pub found: Option<Value>,
}

impl Difference {
    /// Creates the difference between two values of a field.
    pub(crate) fn new(field: impl Into<String>, expected: impl Into<Value>, found: impl Into<Value>) -> Self {
        Self { field: field.into(), expected: Some(expected.into()), found: Some(found.into()) }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "  {}", self.field)?;
        writeln!(formatter, "    expected  {}", shown(self.expected.as_ref()))?;
        write!(formatter, "    found     {}", shown(self.found.as_ref()))
    }
}

/// Formats a value on one line: texts without quotes, and long values cut.
pub(crate) fn shown(value: Option<&Value>) -> String {
    let text = match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// Lists the fields in which `found` differs from `expected`, in order.
pub(crate) fn differences(field: &str, expected: &Value, found: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    walk(field, expected, found, &mut differences);
    differences.truncate(DIFFERENCES_MAX);
    differences
}

fn walk(field: &str, expected: &Value, found: &Value, out: &mut Vec<Difference>) {
    if expected == found || out.len() >= DIFFERENCES_MAX {
        return;
    }
    match (expected, found) {
        (Value::Object(wanted), Value::Object(got)) if wanted.keys().eq(got.keys()) => {
            for (key, value) in wanted {
                walk(&joined(field, key), value, &got[key], out);
            }
        }
        (Value::Array(wanted), Value::Array(got)) => {
            if wanted.len() != got.len() {
                out.push(Difference::new(format!("{field}.length"), wanted.len(), got.len()));
            }
            for index in 0..wanted.len().max(got.len()) {
                let item = format!("{field}[{index}]");
                match (wanted.get(index), got.get(index)) {
                    (Some(expected), Some(found)) => walk(&item, expected, found, out),
                    (expected, found) => {
                        out.push(Difference {
                            field: item,
                            expected: expected.cloned(),
                            found: found.cloned(),
                        });
                    }
                }
            }
        }
        _ => out.push(Difference::new(field, expected.clone(), found.clone())),
    }
}

/// Returns the path of a member. Names of variants are written like names of fields.
pub(crate) fn joined(field: &str, key: &str) -> String {
    let mut path = String::from(field);
    for (index, letter) in key.char_indices() {
        if index == 0 && !field.is_empty() {
            path.push('.');
        } else if index > 0 && letter.is_ascii_uppercase() {
            path.push('_');
        }
        path.push(letter.to_ascii_lowercase());
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(expected: Value, found: Value, fields: &[&str]) {
        let differences = differences("decisions", &expected, &found);
        let paths: Vec<&str> = differences.iter().map(|difference| difference.field.as_str()).collect();
        assert_eq!(paths, fields, "{expected} against {found}");
    }

    #[test]
    fn paths_name_what_differs() {
        let place = |lane: i32| json!({"Place": {"lane": lane, "candidates": [{"lane": 0, "score": 5}]}});
        check(json!([place(1)]), json!([place(1)]), &[]);
        check(json!([place(1)]), json!([place(2)]), &["decisions[0].place.lane"]);
        check(
            json!([{"WakeAt": {"at_ns": 1}}]),
            json!([{"WakeAt": {"at_ns": 2}}]),
            &["decisions[0].wake_at.at_ns"],
        );
        check(json!([place(1)]), json!([{"WakeAt": {"at_ns": 2}}]), &["decisions[0]"]);
        check(json!([place(1)]), json!([]), &["decisions.length", "decisions[0]"]);
        let other_score = json!({"Place": {"lane": 1, "candidates": [{"lane": 0, "score": 6}]}});
        check(json!([place(1)]), json!([other_score]), &["decisions[0].place.candidates[0].score"]);
        check(json!(null), json!(1), &["decisions"]);
    }

    #[test]
    fn lists_are_bounded() {
        let expected: Vec<i32> = (0..100).collect();
        assert_eq!(differences("x", &json!(expected), &json!(vec![-1; 100])).len(), DIFFERENCES_MAX);
    }

    #[test]
    fn values_are_shown_on_one_line() {
        assert_eq!(shown(None), "nothing");
        assert_eq!(shown(Some(&json!("a"))), "a");
        assert_eq!(shown(Some(&json!({"a": [1]}))), r#"{"a":[1]}"#);
        let long = shown(Some(&json!("é".repeat(500))));
        assert!(long.ends_with("é… (500 characters)") && long.chars().count() < 200, "{long}");
    }
}
