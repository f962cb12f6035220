//! Passwords and private keys: where they come from, and how messages show them.
//!
//! A [`Secret`] prints as `***`. It comes from an environment variable, or from a file that such a variable names.
//! Configuration files are copied, committed and shown to others, so a secret in one is refused.

use std::fmt;

use figment::value::Value;

use super::keys::FILE_SUFFIX;
use super::mistake::Mistake;
use super::sources::{Assignment, ENVIRONMENT_PREFIX, Leaf, Origin};
use crate::bounded_file;
use warptape_hot::without_password;

/// Largest size of a secret's file, in bytes. A private key with its certificates has some thousands.
const FILE_BYTES_MAX: u64 = 65_536;

/// A password or another secret text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for sending it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Returns true if the leaf names a file that contains the secret, instead of the secret itself.
pub(super) fn names_file(leaf: &Leaf) -> bool {
    leaf.path.ends_with(FILE_SUFFIX)
}

/// Returns the secret of a leaf, from the leaf itself or from the file that it names. `path` is the secret's dotted
/// path.
pub(super) fn read(path: &str, leaf: &Leaf) -> Result<Secret, Mistake> {
    let mistake = |found: String, allowed: String| Mistake {
        key: path.to_owned(),
        origin: leaf.origin.clone(),
        found,
        allowed,
    };
    let Value::String(_, text) = &leaf.value else {
        return Err(mistake("a value that is not a text".to_owned(), ways_of(path)));
    };
    if names_file(leaf) {
        let file = read_file(text).map_err(|why| format!("the file {text:?}, which {why}"));
        return file
            .map_err(|found| mistake(found, "the path of a text file that holds the secret".to_owned()));
    }
    match leaf.origin {
        Origin::Environment(_) => Ok(Secret::new(text.as_str())),
        _ => Err(misplaced(path, leaf)),
    }
}

/// Returns true if the leaf is an address with a password in a configuration file, which other people may read.
pub(super) fn is_misplaced(leaf: &Leaf) -> bool {
    let has_password = |text: &str| without_password(text) != text;
    matches!(leaf.origin, Origin::File { .. }) && leaf.value.as_str().is_some_and(has_password)
}

/// Returns a warning if the flag's address contains a password; `None` otherwise.
pub fn exposed_password(flag: &Assignment) -> Option<String> {
    let is_exposed = match flag.value.strip_prefix("kafka:") {
        Some(brokers) => brokers.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')),
        None => without_password(&flag.value) != flag.value,
    };
    let path = if flag.key == "log.url" { "kafka.properties.sasl.password" } else { flag.key };
    is_exposed.then(|| {
        let (giver, ways) = (flag.giver, ways_of(path));
        format!(
            "{giver} contains a password, which all users of this machine can see in the list of processes: \
             use {ways}"
        )
    })
}

/// Returns the mistake of a secret in a place where others can read it.
pub(super) fn misplaced(path: &str, leaf: &Leaf) -> Mistake {
    Mistake {
        key: path.to_owned(),
        origin: leaf.origin.clone(),
        found: "a secret in a place that others can read".to_owned(),
        allowed: ways_of(path),
    }
}

fn read_file(path: &str) -> Result<Secret, String> {
    let metadata = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(format!("is not a file of at most {FILE_BYTES_MAX} bytes"));
    }
    let bytes = bounded_file::read(std::path::Path::new(path), FILE_BYTES_MAX)
        .map_err(|error| format!("cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    // Editors and `echo` end a file with a newline that is not part of the secret.
    let text = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if text.is_empty() { Err("is empty".to_owned()) } else { Ok(Secret::new(text)) }
}

/// Describes the ways to set the secret of this path.
pub(super) fn ways_of(path: &str) -> String {
    let name = format!("{ENVIRONMENT_PREFIX}{}", path.to_uppercase().replace('.', "__"));
    format!("environment variable {name}, or {name}_FILE with the path of a file that holds it")
}
