//! Keys that are tables of names which somebody else defines: each name has its own origin, and may be a secret.

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
    /// Its text.
    pub text: EntryText,
    /// Where that came from.
    pub origin: Origin,
}

/// What a name of a table stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryText {
    /// For anybody to see.
    Plain(String),
    /// For nobody.
    Secret(Secret),
}

impl EntryText {
    /// The text itself, secret or not.
    pub fn reveal(&self) -> &str {
        match self {
            EntryText::Plain(text) => text,
            EntryText::Secret(secret) => secret.reveal(),
        }
    }
}

/// The table that these leaves amount to; of a name that is given twice, the later layer's.
pub(super) fn read(key: &Key, leaves: &[Leaf], mistakes: &mut Vec<Mistake>) -> BTreeMap<String, Entry> {
    let ValueKind::Table { check, is_secret, .. } = &key.kind else {
        unreachable!("{} is no table", key.path);
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
            // The table itself: empty, or something else altogether.
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

/// A text, or a number or truth as text.
fn text_of(found: &Value) -> Option<String> {
    match found {
        Value::String(_, text) => Some(text.clone()),
        Value::Bool(..) | Value::Num(..) => Some(value::shown(found)),
        _ => None,
    }
}
