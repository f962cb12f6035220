//! Values of the journal as the words that it has for them.

use serde::Serialize;

/// The word of a value that is one, in lower case; nothing of another value.
pub(crate) fn of(value: &impl Serialize) -> String {
    let word = serde_json::to_value(value).ok();
    word.and_then(|word| word.as_str().map(str::to_lowercase)).unwrap_or_default()
}
