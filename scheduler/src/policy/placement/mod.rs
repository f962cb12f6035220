//! Placement policies: how much speaks for a lane as the home of a group.

mod rendezvous;

use serde::{Deserialize, Serialize};
use warptape_events::journal::SchedulerConfig;

use super::named;
use crate::lanes::Lane;

/// The rule that scores lanes for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PlacementPolicy {
    /// Weighted rendezvous hashing.
    Rendezvous,
}

impl PlacementPolicy {
    pub(crate) const ALL: [Self; 1] = [Self::Rendezvous];

    /// The policy of `NAME[@VERSION]`, or of `NAME[@VERSION]/BYTES`, and the bytes of decisions in a step; 0 is no limit, as it was
    /// before there was one.
    pub(crate) fn parse(text: &str) -> Option<(Self, i64)> {
        let (policy, step_bytes_max) = match text.split_once('/') {
            None => (text, 0),
            Some((policy, bytes)) => (policy, bytes.parse().ok().filter(|bytes| *bytes > 0)?),
        };
        let (name, version) = named(policy)?;
        let known = |policy: &Self| policy.name() == name && policy.version() == version;
        Some((Self::ALL.into_iter().find(known)?, step_bytes_max))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rendezvous => "rendezvous",
        }
    }

    /// Rises whenever the same inputs could give another decision.
    pub(crate) fn version(self) -> i32 {
        match self {
            Self::Rendezvous => rendezvous::VERSION,
        }
    }

    /// The random stream of the policy under a seed.
    pub(crate) fn stream(self, config: &SchedulerConfig) -> i64 {
        match self {
            Self::Rendezvous => rendezvous::stream(config.placement_seed),
        }
    }

    /// Score of a lane for the group at a counter; the highest wins.
    pub(crate) fn score(self, stream: i64, counter: i64, lane: &Lane) -> i64 {
        match self {
            // Lanes that stand by are equals among themselves.
            Self::Rendezvous => rendezvous::score(stream, counter, lane.id, lane.weight.max(1)),
        }
    }
}
