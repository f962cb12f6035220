//! Configuration keys, and the search for the key of a path.
//!
//! The table of keys is declared in `sections`. Everything else about configuration (parsing, `config show`, the
//! example file) is derived from it. This module must not know where values come from.

use super::sections::{KEYS, SECTIONS};

/// One configuration key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted path, such as `engine.commit_interval_ms`.
    pub path: &'static str,
    /// The field that holds its value, as named in mistakes by the crate that owns the field.
    pub field: &'static str,
    /// Type, default and limits.
    pub kind: ValueKind,
    /// Description of the key in one or two sentences, for the example file.
    pub about: &'static str,
}

/// Type of a key with its default and its limits.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// A string.
    Text {
        /// Default.
        default: &'static str,
        /// Allowed values, in words.
        allowed: &'static str,
        /// Returns true if a text is allowed.
        check: fn(&str) -> bool,
    },
    /// One of a few words.
    Choice {
        /// Default.
        default: &'static str,
        /// All allowed words.
        choices: &'static [&'static str],
    },
    /// A whole number.
    Integer {
        /// Default value.
        default: i64,
        /// Least allowed value.
        min: i64,
        /// Greatest allowed value.
        max: i64,
    },
    /// A number.
    Number {
        /// Default value.
        default: f64,
        /// Least allowed value.
        min: f64,
        /// Greatest allowed value.
        max: f64,
    },
    /// A list of strings.
    List {
        /// Default value.
        default: &'static [&'static str],
        /// Allowed items, in words.
        allowed: &'static str,
        /// Greatest number of items; the least is 1, or 0 if the default is empty.
        items_max: usize,
        /// Returns true if an item is allowed.
        check: fn(&str) -> bool,
    },
    /// A string that may contain a password. If it does, it may only come from the sources of secrets.
    Address {
        /// Default.
        default: &'static str,
        /// Allowed values, in words.
        allowed: &'static str,
        /// Returns true if a text is allowed.
        check: fn(&str) -> bool,
    },
    /// A secret text. It comes from the environment, or from a separate file that `KEY_file` names.
    Secret,
    /// A table of names that another system defines, each with a text. Some of the texts may be secrets.
    Table {
        /// Allowed names, in words.
        allowed: &'static str,
        /// Returns true if a name is allowed.
        check: fn(&str) -> bool,
        /// Returns true if the name's text is a secret.
        is_secret: fn(&str) -> bool,
    },
}

/// Finds the key for a path: the key itself, the table that contains the name, or the secret whose file the path names.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| match &key.kind {
        ValueKind::Secret | ValueKind::Address { .. } => {
            path == key.path || path.strip_suffix(FILE_SUFFIX) == Some(key.path)
        }
        ValueKind::Table { .. } => path == key.path || key.entry_of(path).is_some(),
        _ => path == key.path,
    })
}

/// Suffix of the key that names the file of a secret or an address.
pub const FILE_SUFFIX: &str = "_file";

/// Returns true if there is a section with this path.
pub fn is_section(path: &str) -> bool {
    SECTIONS.iter().any(|section| section.path == path)
}

impl Key {
    /// Returns the section part of the path.
    pub fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// Returns the rest of the path after the key and a dot, without quotes around names that contain dots; `None` for
    /// other paths.
    pub fn entry_of(&self, path: &str) -> Option<String> {
        Some(path.strip_prefix(self.path)?.strip_prefix('.')?.replace('"', ""))
    }

    /// Returns the last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }
}

impl ValueKind {
    /// Returns the allowed values, in words.
    pub fn allowed(&self) -> String {
        match self {
            ValueKind::Text { allowed, .. } | ValueKind::Address { allowed, .. } => (*allowed).to_owned(),
            ValueKind::Choice { choices, .. } => {
                choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(" or ")
            }
            ValueKind::Integer { min: i64::MIN, max: i64::MAX, .. } => "a whole number of 64 bits".to_owned(),
            ValueKind::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            ValueKind::Number { min, max, .. } => format!("a number from {min} to {max}"),
            ValueKind::List { default, allowed, items_max, .. } => {
                format!("a list of {} to {items_max} strings, each {allowed}", default.len().min(1))
            }
            ValueKind::Secret => {
                format!("a text from the environment, or from the file named by KEY{FILE_SUFFIX}")
            }
            ValueKind::Table { allowed, .. } => format!("a table of {allowed}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_lies_in_its_section_and_occurs_once() {
        for section in SECTIONS {
            assert!(!section.keys.is_empty(), "{}", section.path);
            assert!(section.keys.iter().all(|key| key.section() == section.path), "{}", section.path);
        }
        for (position, key) in KEYS.iter().enumerate() {
            assert!(!KEYS[..position].iter().any(|other| other.path == key.path), "{}", key.path);
            assert!(!is_section(key.path), "{}", key.path);
        }
    }
}
