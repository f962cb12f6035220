//! Networks that policies may name: each is told once in a process life, by [`Trained`], and is known by its hash.
//!
//! It owns which networks are there; it must not know what a policy asks of one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use warptape_events::journal::Trained;
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{NETWORK_BYTES_MAX, NETWORKS_MAX};
use crate::error::StepError;
use crate::state_hash::{Component, StateHash, hash_component};

/// Hex digits of a network's hash.
const HASH_DIGITS: usize = 64;

/// The networks that are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Networks {
    /// Bytes by hash.
    by_hash: BTreeMap<String, Vec<u8>>,
}

impl Networks {
    /// Whether a network may be added.
    pub(crate) fn admit(&self, trained: &Trained) -> Result<(), StepError> {
        let Trained { hash, network } = trained;
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hash.len() != HASH_DIGITS || !hash.bytes().all(is_digit) {
            return Err(StepError::BadNetworkHash { digits: hash.len() });
        }
        let bytes = network.0.len();
        if !(1..=NETWORK_BYTES_MAX).contains(&bytes) {
            return Err(StepError::NetworkSize { bytes });
        }
        if self.by_hash.contains_key(hash) {
            return Err(StepError::NetworkThere { hash: hash.clone() });
        }
        match self.by_hash.len() < NETWORKS_MAX {
            true => Ok(()),
            false => Err(StepError::TooManyNetworks),
        }
    }

    /// Adds a network that was admitted.
    pub(crate) fn add(&mut self, trained: &Trained, hash: &mut StateHash) {
        hash.add(hash_of(&trained.hash));
        self.by_hash.insert(trained.hash.clone(), trained.network.0.clone());
    }

    /// Hash of which networks are there, by walking: nothing where there is none.
    pub(crate) fn walked_hash(&self) -> u64 {
        self.by_hash.keys().map(|hash| hash_of(hash)).fold(0, u64::wrapping_add)
    }
}

/// What a network adds to the state hash: its own hash stands for its bytes.
fn hash_of(hash: &str) -> u64 {
    hash_component(Component::Network, [xxh3_64(hash.as_bytes()) as i64])
}
