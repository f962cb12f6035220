//! Values of keys. They are typed, checked against the table of keys, and printed as TOML.

use std::collections::BTreeMap;

use figment::value::Value;

use super::keys::ValueKind;
use super::secret::Secret;
use super::table::Entry;
use warptape_hot::without_password;

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A string or a choice.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A list of strings.
    List(Vec<String>),
    /// A secret; `None` if it is not set.
    Secret(Option<Secret>),
    /// Names, each with its text.
    Table(BTreeMap<String, Entry>),
}

impl Setting {
    /// Returns the default of a kind.
    pub fn default_of(kind: &ValueKind) -> Setting {
        match kind {
            ValueKind::Text { default, .. }
            | ValueKind::Choice { default, .. }
            | ValueKind::Address { default, .. } => Setting::Text((*default).to_owned()),
            ValueKind::Integer { default, .. } => Setting::Integer(*default),
            ValueKind::Number { default, .. } => Setting::Number(*default),
            ValueKind::List { default, .. } => {
                Setting::List(default.iter().map(|item| (*item).to_owned()).collect())
            }
            ValueKind::Secret => Setting::Secret(None),
            ValueKind::Table { .. } => Setting::Table(BTreeMap::new()),
        }
    }

    /// Returns the value as TOML, without the password of a URL. A secret or a table shows only its kind.
    pub fn to_toml(&self) -> String {
        match self {
            Setting::Text(text) => toml_edit::Value::from(without_password(text)).to_string(),
            Setting::Integer(number) => number.to_string(),
            Setting::Number(number) => toml_edit::Value::from(*number).to_string(),
            Setting::List(items) => items.iter().collect::<toml_edit::Array>().to_string(),
            Setting::Secret(_) => "a secret".to_owned(),
            Setting::Table(_) => "a table".to_owned(),
        }
    }

    /// Returns the found value if the kind (neither secret nor table) allows it; `None` otherwise. `is_text` is true
    /// for text that must still be parsed, such as an environment variable.
    pub fn parse(kind: &ValueKind, found: &Value, is_text: bool) -> Option<Setting> {
        let setting = match (kind, found) {
            (ValueKind::Integer { .. }, Value::String(_, text)) if is_text => {
                Setting::Integer(parse_integer(text)?)
            }
            (ValueKind::Number { .. }, Value::String(_, text)) if is_text => {
                Setting::Number(text.trim().parse().ok()?)
            }
            (ValueKind::List { .. }, Value::String(_, text)) if is_text => Setting::List(split_list(text)?),
            (
                ValueKind::Text { .. } | ValueKind::Choice { .. } | ValueKind::Address { .. },
                Value::String(_, text),
            ) => Setting::Text(text.clone()),
            (ValueKind::Integer { .. }, Value::Num(_, number)) => {
                Setting::Integer(number.to_i128().and_then(|wide| i64::try_from(wide).ok())?)
            }
            (ValueKind::Number { .. }, Value::Num(_, number)) => {
                Setting::Number(number.to_f64().or_else(|| number.to_i128().map(|whole| whole as f64))?)
            }
            (ValueKind::List { .. }, Value::Array(_, items)) => Setting::List(strings(items)?),
            _ => return None,
        };
        setting.is_allowed(kind).then_some(setting)
    }

    /// Returns true if the kind allows the value.
    pub fn is_allowed(&self, kind: &ValueKind) -> bool {
        match (kind, self) {
            (ValueKind::Text { check, .. } | ValueKind::Address { check, .. }, Setting::Text(text)) => {
                check(text)
            }
            (ValueKind::Choice { choices, .. }, Setting::Text(text)) => choices.contains(&text.as_str()),
            (ValueKind::Integer { min, max, .. }, Setting::Integer(number)) => (min..=max).contains(&number),
            // No range contains NaN.
            (ValueKind::Number { min, max, .. }, Setting::Number(number)) => (min..=max).contains(&number),
            (ValueKind::List { default, check, items_max, .. }, Setting::List(items)) => {
                (default.len().min(1)..=*items_max).contains(&items.len())
                    && items.iter().all(|item| check(item))
            }
            _ => false,
        }
    }
}

/// Returns the found value in the form for messages, without the password of a URL.
pub fn shown(found: &Value) -> String {
    match found {
        Value::String(_, text) => toml_edit::Value::from(without_password(text)).to_string(),
        Value::Char(_, letter) => toml_edit::Value::from(letter.to_string()).to_string(),
        Value::Bool(_, truth) => truth.to_string(),
        Value::Num(_, number) => match number.to_f64() {
            Some(number) => toml_edit::Value::from(number).to_string(),
            None => number.to_i128().map_or_else(|| "a number".to_owned(), |whole| whole.to_string()),
        },
        Value::Empty(..) => "nothing".to_owned(),
        Value::Dict(..) => "a table".to_owned(),
        Value::Array(_, items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
    }
}

/// Parses a whole number, with `_` between digits as TOML allows.
fn parse_integer(text: &str) -> Option<i64> {
    text.trim().replace('_', "").parse().ok()
}

/// Splits a comma-separated list, or a TOML array, into its items.
fn split_list(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if text.starts_with('[') {
        let array = text.parse::<toml_edit::Value>().ok()?;
        return array.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect();
    }
    Some(text.split(',').map(|item| item.trim().to_owned()).collect())
}

fn strings(items: &[Value]) -> Option<Vec<String>> {
    items.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}
