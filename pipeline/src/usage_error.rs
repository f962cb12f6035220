//! Wrong usage, which the user can correct.

/// A wrong use of the command line. The message names the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    /// Returns an error for a part that this build lacks, and names the build that has it.
    pub fn not_built(what: &str, feature: &str) -> Self {
        Self(format!(
            "{what}: this build lacks the feature `{feature}`; build it with `cargo build --release \
             --features {feature}`"
        ))
    }
}
