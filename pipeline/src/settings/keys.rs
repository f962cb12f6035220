//! Configuration keys, and how a path finds its key.
//!
//! Everything else about configuration (parsing, `config show`, the example file) is derived from the table of keys,
//! which `sections` declares. It must not know where values come from.

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
    /// Purpose of the key: one or two sentences for the example file.
    pub about: &'static str,
}

/// Type of a key with its default and what it may be.
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
        /// Allowed items, in words.
        allowed: &'static str,
        /// Greatest number of items; the least is 1, or 0 if the default is empty.
        items_max: usize,
        /// Returns true if an item is allowed.
        check: fn(&str) -> bool,
    },
    /// A string that may hold a password; with one, it may only come from the sources of secrets.
    Address {
        /// Default.
        default: &'static str,
        /// Allowed values, in words.
        allowed: &'static str,
        /// Returns true if a text is allowed.
        check: fn(&str) -> bool,
    },
    /// A text that must not be seen. It comes from the environment, or from a file of its own that `KEY_file` names.
    Secret,
    /// Names that another system defines, each with a text; some of them may be secrets.
    Table {
        /// Allowed names, in words.
        allowed: &'static str,
        /// Returns true if a name is allowed.
        check: fn(&str) -> bool,
        /// Returns true if the name's text is a secret.
        is_secret: fn(&str) -> bool,
    },
}

/// Finds the key that a path gives a value to: itself, the table with that name, or the secret whose file it names.
pub fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| match &key.kind {
        ValueKind::Secret | ValueKind::Address { .. } => {
            path == key.path || path.strip_suffix(FILE_SUFFIX) == Some(key.path)
        }
        ValueKind::Table { .. } => path == key.path || key.entry_of(path).is_some(),
        _ => path == key.path,
    })
}

/// Suffix that turns the name of a secret or an address into that of the file that holds it.
pub const FILE_SUFFIX: &str = "_file";

/// Returns true if there is a section of that path.
pub fn is_section(path: &str) -> bool {
    SECTIONS.iter().any(|section| section.path == path)
}

impl Key {
    /// Returns the section part of the path.
    pub fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// Returns the path after the key and a dot, without the quotes of names that contain dots; `None` for other
    /// paths.
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
