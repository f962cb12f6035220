//! Wrong usage: what whoever called the program can mend.

/// A wrong use of the command line. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    /// Says which build has what this one is without.
    pub fn not_built(what: &str, feature: &str) -> Self {
        Self(format!(
            "{what}: this build is without the feature `{feature}`; `cargo build --release --features {feature}` builds one that \
             has it"
        ))
    }
}
