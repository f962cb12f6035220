//! Checkpoints: the whole state as bytes, so that a replay may begin where they were written.
//!
//! The bytes begin with the version of the state; each version of the scheduler reads its own alone. A change of any type within the state
//! needs a new version, which the test on a checkpoint of today reminds of.

use thiserror::Error;

use crate::audit;
use crate::machine::Scheduler;

/// Version of the state's bytes.
const VERSION: u8 = 1;

/// Why no scheduler could be made of a checkpoint.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CheckpointError {
    /// It was written by another version of the scheduler.
    #[error("the state is of version {found}, and this software reads version {VERSION}")]
    Version {
        /// Its version.
        found: u8,
    },
    /// The bytes are none of a state.
    #[error("the state cannot be read: {0}")]
    Damaged(String),
}

impl Scheduler {
    /// The whole state.
    pub fn checkpoint(&self) -> Vec<u8> {
        let bytes = vec![VERSION];
        postcard::to_extend(self, bytes).expect("the state is made of numbers, texts and lists")
    }

    /// A scheduler in the state that was written.
    ///
    /// # Errors
    /// If the bytes are of another version, or damaged.
    pub fn from_checkpoint(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (&version, state) =
            bytes.split_first().ok_or_else(|| CheckpointError::Damaged("there are no bytes".to_owned()))?;
        if version != VERSION {
            return Err(CheckpointError::Version { found: version });
        }
        let damaged = |error: postcard::Error| CheckpointError::Damaged(error.to_string());
        let (scheduler, rest) = postcard::take_from_bytes::<Self>(state).map_err(damaged)?;
        if !rest.is_empty() {
            return Err(CheckpointError::Damaged(format!("{} bytes too many", rest.len())));
        }
        if !audit::hash_is_kept(&scheduler) {
            return Err(CheckpointError::Damaged("its hash is another one".to_owned()));
        }
        Ok(scheduler)
    }
}
