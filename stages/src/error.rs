//! Errors of stages.

use warptape_kernels::StateError;

/// Reasons for which state cannot be restored from a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The bytes end early, or hold values that no stage wrote.
    #[error("snapshot is damaged: {found}; an older snapshot or the log itself can be used")]
    Damaged {
        /// Description of the damage.
        found: String,
    },
    /// The snapshot was taken by another version of the software.
    #[error(
        "{what} of version {found}, and this software reads version {known}; state has to be rebuilt from the log"
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
        "snapshot was taken under another stage configuration (fingerprint {found:016x}, now {expected:016x}); \
         state has to be rebuilt from the log"
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
