//! Mistakes in a configuration: the key, the value found, and the allowed values.

use std::fmt;
use std::path::PathBuf;

use super::sources::Origin;

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Dotted path of the key.
    pub key: String,
    /// Origin of the value.
    pub origin: Origin,
    /// The value found.
    pub found: String,
    /// The allowed values, in words.
    pub allowed: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): found {}; allowed: {}", self.key, self.origin, self.found, self.allowed)
    }
}

/// Reasons why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {}: {cause}; give an existing TOML file with -c", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not valid TOML: {found}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The mistake, with line and column.
        found: String,
    },
    /// The configuration has mistakes; the error lists all of them.
    #[error("{}", list(.0))]
    Mistakes(Vec<Mistake>),
}

fn list(mistakes: &[Mistake]) -> String {
    let count = match mistakes.len() {
        1 => "1 mistake in the configuration".to_owned(),
        n => format!("{n} mistakes in the configuration"),
    };
    let lines: String = mistakes.iter().map(|mistake| format!("\n  {mistake}")).collect();
    format!("{count}:{lines}")
}
