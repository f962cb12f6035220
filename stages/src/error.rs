//! Errors of stages.

use warptape_kernels::StateError;

/// Reasons for which state cannot be restored from a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The bytes end early, or hold values that no stage wrote.
    #[error("the snapshot is damaged: {found}; use an older one, or rebuild the state from the log")]
    Damaged {
        /// Description of the damage.
        found: String,
    },
    /// The snapshot was taken by another version of the software.
    #[error(
        "{what} has version {found}, but this software reads version {known}; rebuild the state from the log"
    )]
    OtherVersion {
        /// Name of the versioned part.
        what: &'static str,
        /// The version of the bytes.
        found: u32,
        /// The version that this software reads.
        known: u32,
    },
    /// The snapshot was taken under another configuration of the stages.
    #[error(
        "the snapshot was taken under another stage configuration (fingerprint {found:016x}, now \
         {expected:016x}); rebuild the state from the log"
    )]
    OtherConfig {
        /// Fingerprint of the configuration in force.
        expected: u64,
        /// Fingerprint in the snapshot.
        found: u64,
    },
}

impl From<StateError> for StageError {
    fn from(error: StateError) -> Self {
        StageError::Damaged { found: error.to_string() }
    }
}
