//! Values of the journal in the journal's own words.

use serde::Serialize;

/// Returns the word for a value, in lower case; empty if the value has no word.
pub(crate) fn of(value: &impl Serialize) -> String {
    let word = serde_json::to_value(value).ok();
    word.and_then(|word| word.as_str().map(str::to_lowercase)).unwrap_or_default()
}
