//! Networks that policies may name. The input [`Trained`] adds each of them once in a process life, and its hash
//! identifies it.
//!
//! The module owns the set of networks; it must not know how policies use them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{StateBytes, Trained};
use warptape_network::{BYTES_MAX, Network};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::NETWORKS_MAX;
use crate::error::StepError;
use crate::policy::task::dqn;
use crate::state_hash::{Component, StateHash, hash_component};

/// An entry of the journal has less than 512 KiB, and all networks together must fit into a checkpoint.
const _: () = assert!(BYTES_MAX <= 256 << 10 && NETWORKS_MAX * BYTES_MAX <= 1 << 20);

/// The known networks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Vec<u8>>", into = "Vec<Vec<u8>>")]
pub(crate) struct Networks {
    /// Networks by hash. Copies of the state, as for explanations, share them.
    by_hash: BTreeMap<String, Arc<Network>>,
}

impl Networks {
    /// Checks whether a network may be added to a process with `lanes` lanes.
    pub(crate) fn admit(&self, trained: &Trained, lanes: usize) -> Result<(), StepError> {
        let network = Network::from_bytes(&trained.network.0).map_err(StepError::BadNetwork)?;
        let hash = network.hash();
        if hash != trained.hash {
            // The input's wrong hash may be a long text, so it is cut.
            let named = trained.hash.chars().take(hash.len()).collect();
            return Err(StepError::OtherNetworkHash { named, hash });
        }
        if let Some(for_lanes) = network.lanes().filter(|for_lanes| *for_lanes != lanes) {
            return Err(StepError::NetworkLanes { hash, for_lanes, lanes });
        }
        match (self.by_hash.contains_key(&hash), self.by_hash.len() < NETWORKS_MAX) {
            (true, _) => Err(StepError::NetworkThere { hash }),
            (false, false) => Err(StepError::TooManyNetworks),
            (false, true) => Ok(()),
        }
    }

    /// Adds an admitted network.
    pub(crate) fn add(&mut self, trained: &Trained, hash: &mut StateHash) {
        let network = Network::from_bytes(&trained.network.0).expect("admission read it");
        hash.add(hash_of(&trained.hash));
        self.by_hash.insert(trained.hash.clone(), Arc::new(network));
    }

    /// The network with a hash.
    pub(crate) fn get(&self, hash: &str) -> Option<&Network> {
        self.by_hash.get(hash).map(|network| &**network)
    }

    /// All networks by hash, as inputs that add them.
    pub(crate) fn told(&self) -> impl Iterator<Item = Trained> {
        let told = |(hash, network): (&String, &Arc<Network>)| Trained {
            hash: hash.clone(),
            network: StateBytes(network.to_bytes()),
        };
        self.by_hash.iter().map(told)
    }

    /// The hash of the only network that matches a policy's full or shortened hash; an error text if there is no such
    /// network, or several.
    pub(crate) fn named(&self, policy: &str) -> Result<&str, String> {
        let hashes = || self.by_hash.keys().map(|hash| dqn::name(hash)).collect::<Vec<_>>().join(", ");
        let Some(prefix) = dqn::prefix_of(policy) else {
            return Err(format!("{policy} names no network: give 8 to 64 lower-case hex digits of its hash"));
        };
        let mut found = self.by_hash.keys().filter(|hash| hash.starts_with(prefix));
        match (found.next(), found.next()) {
            (Some(hash), None) => Ok(hash),
            (Some(_), Some(_)) => Err(format!("{policy} names several networks: {}", hashes())),
            (None, _) if self.by_hash.is_empty() => {
                Err(format!("there is no network for {policy}: none was told of in this process life"))
            }
            (None, _) => Err(format!("there is no network for {policy}; there are: {}", hashes())),
        }
    }

    /// Hash of the known networks, computed by walking over them; 0 if there is none.
    pub(crate) fn walked_hash(&self) -> u64 {
        self.by_hash.keys().map(|hash| hash_of(hash)).fold(0, u64::wrapping_add)
    }
}

/// Contribution of a network to the state hash; its own hash represents its bytes.
fn hash_of(hash: &str) -> u64 {
    hash_component(Component::Network, [xxh3_64(hash.as_bytes()) as i64])
}

impl From<Networks> for Vec<Vec<u8>> {
    fn from(networks: Networks) -> Self {
        networks.by_hash.values().map(|network| network.to_bytes()).collect()
    }
}

/// Reads networks from a checkpoint: the bytes of each, by hash.
impl TryFrom<Vec<Vec<u8>>> for Networks {
    type Error = String;

    fn try_from(networks: Vec<Vec<u8>>) -> Result<Self, String> {
        let read = |bytes: Vec<u8>| {
            let network = Network::from_bytes(&bytes).map_err(|error| error.to_string())?;
            Ok((network.hash(), Arc::new(network)))
        };
        let read: Vec<_> = networks.into_iter().map(read).collect::<Result<_, String>>()?;
        let is_sorted = read.is_sorted_by(|(one, _), (next, _)| one < next);
        match is_sorted && read.len() <= NETWORKS_MAX {
            true => Ok(Self { by_hash: read.into_iter().collect() }),
            false => Err("networks are out of order, or too many".to_owned()),
        }
    }
}
