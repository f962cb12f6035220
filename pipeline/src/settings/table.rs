//! Keys that are tables whose names another system defines. Each name has its own origin, and its text may be a secret.

use std::collections::BTreeMap;

use figment::value::Value;

use super::keys::{FILE_SUFFIX, Key, ValueKind};
use super::mistake::Mistake;
use super::secret::{self, Secret};
use super::sources::{Leaf, Origin};
use super::value;

/// One name of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Text of the name.
    pub text: EntryText,
    /// Origin of the text.
    pub origin: Origin,
}

/// Text of a name in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryText {
    /// A text that anyone may see.
    Plain(String),
    /// A text that must never be shown.
    Secret(Secret),
}

impl EntryText {
    /// Returns the text itself, secret or not.
    pub fn reveal(&self) -> &str {
        match self {
            EntryText::Plain(text) => text,
            EntryText::Secret(secret) => secret.reveal(),
        }
    }
}

/// Builds the table from these leaves. If a name is set twice, the later layer wins.
pub(super) fn read(key: &Key, leaves: &[Leaf], mistakes: &mut Vec<Mistake>) -> BTreeMap<String, Entry> {
    let ValueKind::Table { check, is_secret, .. } = &key.kind else {
        unreachable!("{} is not a table", key.path);
    };
    let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
    for leaf in leaves {
        let refused = |found: &str| Mistake {
            key: leaf.path.clone(),
            origin: leaf.origin.clone(),
            found: found.to_owned(),
            allowed: key.kind.allowed(),
        };
        let Some(given) = key.entry_of(&leaf.path) else {
            // This leaf is the table itself: an empty table, or a value of another type.
            if leaf.value.as_dict().is_none() {
                mistakes.push(refused(&value::shown(&leaf.value)));
            }
            continue;
        };
        let name = given.strip_suffix(FILE_SUFFIX).filter(|name| is_secret(name)).unwrap_or(&given);
        if !check(name) {
            mistakes.push(refused("a name that is not allowed"));
            continue;
        }
        let text = if is_secret(name) {
            secret::read(&format!("{}.{name}", key.path), leaf).map(EntryText::Secret)
        } else {
            text_of(&leaf.value).map(EntryText::Plain).ok_or_else(|| refused(&value::shown(&leaf.value)))
        };
        let entry = match text {
            Ok(text) => Entry { text, origin: leaf.origin.clone() },
            Err(mistake) => {
                mistakes.push(mistake);
                continue;
            }
        };
        match entries.get(name) {
            Some(other) if other.origin.layer() > entry.origin.layer() => {}
            _ => drop(entries.insert(name.to_owned(), entry)),
        }
    }
    entries
}

/// Returns a text; a number or a truth value as text; `None` for other values.
fn text_of(found: &Value) -> Option<String> {
    match found {
        Value::String(_, text) => Some(text.clone()),
        Value::Bool(..) | Value::Num(..) => Some(value::shown(found)),
        _ => None,
    }
}
