//! Placement policies: how much speaks for each lane as the home of a group.

mod balanced;
mod rendezvous;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, SchedulerConfig};

use super::named;
use crate::topology::Closeness;

/// Names of all placement policies, the default first, in the order in which they came to be: a recorded refusal names the first of them.
pub const PLACEMENT_POLICIES: [&str; 2] = ["rendezvous", "balanced"];

/// The rule that scores lanes for a group. Checkpoints have the variants' numbers: a new one is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PlacementPolicy {
    /// Weighted rendezvous hashing, with a bounded number of groups on each lane.
    Rendezvous,
    /// The least measured load.
    Balanced,
}

/// A group that is to be placed, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupView {
    /// Random stream of the policy.
    pub(crate) stream: i64,
    /// Where the group's draws are in it.
    pub(crate) counter: i64,
}

/// A lane that may have the group, as a policy sees it. Lanes that may not have it are no candidates under any policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneView {
    pub(crate) lane: LaneId,
    /// Its weight, of which a device that is hot has a part alone; lanes that stand by weigh one.
    pub(crate) weight: i32,
    /// Percent of its configured weight that its device's heat takes from it.
    pub(crate) withheld_percent: i32,
    /// Whether its device has little memory left. Then it is a candidate only where all are.
    pub(crate) is_short_of_memory: bool,
    /// Time that its other groups take in a second, in nanoseconds; 0 where loads are not measured.
    pub(crate) others_ns: i64,
    /// Time that the group would take there in a second, likewise.
    pub(crate) own_ns: i64,
    /// How close it is to the lane that the group is on, or was on last; `None` where that is none.
    pub(crate) closeness: Option<Closeness>,
    /// Whether the group was moved to come here.
    pub(crate) is_bound: bool,
}

impl PlacementPolicy {
    /// The policy of `NAME[@VERSION]`, or of `NAME[@VERSION]/BYTES`, and the bytes of decisions in a step; 0 is no limit.
    pub(crate) fn parse(text: &str) -> Option<(Self, i64)> {
        let (policy, step_bytes_max) = match text.split_once('/') {
            None => (text, 0),
            Some((policy, bytes)) => (policy, bytes.parse().ok().filter(|bytes| *bytes > 0)?),
        };
        let (name, version) = named(policy)?;
        let policy = match name {
            "rendezvous" => Self::Rendezvous,
            "balanced" => Self::Balanced,
            _ => return None,
        };
        (policy.version() == version).then_some((policy, step_bytes_max))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rendezvous => "rendezvous",
            Self::Balanced => "balanced",
        }
    }

    /// Rises whenever the same inputs could give another decision.
    pub(crate) fn version(self) -> i32 {
        match self {
            Self::Rendezvous => rendezvous::VERSION,
            Self::Balanced => balanced::VERSION,
        }
    }

    /// The random stream of the policy under a seed.
    pub(crate) fn stream(self, config: &SchedulerConfig) -> i64 {
        match self {
            Self::Rendezvous => rendezvous::stream(config.placement_seed),
            Self::Balanced => balanced::stream(config),
        }
    }

    /// Whether it goes by what lanes and groups are measured to have to do. Otherwise the number of groups on a lane is bounded.
    pub(crate) fn is_measured(self) -> bool {
        match self {
            Self::Rendezvous => false,
            Self::Balanced => true,
        }
    }

    /// Score of each lane that may have the group, in their order; the highest wins.
    pub(crate) fn scores(self, group: &GroupView, lanes: &[LaneView]) -> Vec<i64> {
        match self {
            Self::Rendezvous => rendezvous::scores(group, lanes),
            Self::Balanced => balanced::scores(group, lanes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_policy_and_a_version_that_is_not_there_is_none() {
        for name in PLACEMENT_POLICIES {
            let (policy, step_bytes_max) = PlacementPolicy::parse(name).expect("it is known");
            assert_eq!((policy.name(), step_bytes_max), (name, 0));
            assert_eq!(PlacementPolicy::parse(&format!("{name}@1/70")), Some((policy, 70)));
            assert_eq!(PlacementPolicy::parse(&format!("{name}@2")), None);
        }
        assert_eq!(["", "dice", "balanced@0", "rendezvous/0"].map(PlacementPolicy::parse), [None; 4]);
    }
}
