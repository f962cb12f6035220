//! What a configuration key is, and how it is found by a path.
//!
//! Everything else about configuration (parsing, `config show`, the example file) is derived from the table of keys, which
//! `sections` declares. It must not know where values come from.

use super::sections::{KEYS, SECTIONS};

/// One configuration key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Dotted path, such as `engine.commit_interval_ms`.
    pub path: &'static str,
    /// The field that its value is read into, as mistakes of the crate that owns the field name it.
    pub field: &'static str,
    /// Type, default and limits.
    pub kind: ValueKind,
    /// What the key is for: one or two sentences for the example file.
    pub about: &'static str,
}

/// Type of a key with its default and what it may be.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// A string.
    Text {
        /// Default.
        default: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// Is it?
        check: fn(&str) -> bool,
    },
    /// One of a few words.
    Choice {
        /// Default.
        default: &'static str,
        /// All of them.
        choices: &'static [&'static str],
    },
    /// A whole number.
    Integer {
        /// Default.
        default: i64,
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number.
    Number {
        /// Default.
        default: f64,
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// A list of strings.
    List {
        /// Default.
        default: &'static [&'static str],
        /// What an item may be, in words.
        allowed: &'static str,
        /// Greatest number of items; the least is 1, or 0 where the default has none.
        items_max: usize,
        /// Is the item allowed?
        check: fn(&str) -> bool,
    },
    /// A string that may hold a password: then only from where secrets come from.
    Address {
        /// Default.
        default: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// Is it?
        check: fn(&str) -> bool,
    },
    /// Something that must not be seen: only from the environment, or from a file of its own that `KEY_file` names.
    Secret,
    /// Names that somebody else defines, with a text each; some of them may be secrets.
    Table {
        /// What is allowed, in words.
        allowed: &'static str,
        /// Is the name allowed?
        check: fn(&str) -> bool,
        /// Is what has this name a secret?
        is_secret: fn(&str) -> bool,
    },
}

/// The key that a path gives a value to: itself, the table that it is a name of, or the secret whose file it names.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| match &key.kind {
        ValueKind::Secret | ValueKind::Address { .. } => {
            path == key.path || path.strip_suffix(FILE_SUFFIX) == Some(key.path)
        }
        ValueKind::Table { .. } => path == key.path || key.entry_of(path).is_some(),
        _ => path == key.path,
    })
}

/// Put behind the name of a secret or an address, it names the file that holds it.
pub const FILE_SUFFIX: &str = "_file";

/// Is there a section of that path?
pub fn is_section(path: &str) -> bool {
    SECTIONS.iter().any(|section| section.path == path)
}

impl Key {
    /// The section part of the path.
    pub fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// What follows the key and a dot, without the quotes of names that have a dot themselves.
    pub fn entry_of(&self, path: &str) -> Option<String> {
        Some(path.strip_prefix(self.path)?.strip_prefix('.')?.replace('"', ""))
    }

    /// The last part of the path.
    pub fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }
}

impl ValueKind {
    /// What is allowed, in words.
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
                format!("a text from the environment, or from a file that KEY{FILE_SUFFIX} names")
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
