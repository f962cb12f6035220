//! What the scheduler knows beyond the first version of its state: one field for each feature that has a memory of its own.
//!
//! It is no part of the bytes of checkpoint version 1; version 2 has it behind them ([`crate::checkpoint`]). A field that is its default adds
//! nothing to the state hash, so that states without the feature have the hash that they had before it was there.

use serde::{Deserialize, Serialize};

use crate::networks::Networks;

/// State that came after checkpoint version 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learnt {
    /// Networks that policies may name.
    pub(crate) networks: Networks,
}

impl Learnt {
    /// Hash of everything here, by walking.
    pub(crate) fn walked_hash(&self) -> u64 {
        self.networks.walked_hash()
    }
}
