//! Wrong usage, which the caller of the program can correct.

/// A wrong use of the command line. The message gives the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl UsageError {
    /// Names the build that has the part missing in this one.
    pub fn not_built(what: &str, feature: &str) -> Self {
        Self(format!(
            "{what}: this build lacks the feature `{feature}`; build it with `cargo build --release \
             --features {feature}`"
        ))
    }
}
