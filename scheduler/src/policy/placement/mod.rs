//! Placement policies: they score lanes as the home of a group.

mod balanced;
mod rendezvous;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, SchedulerConfig};

use super::named;
use crate::topology::Closeness;

/// Names of all placement policies, the default first, in the order of their introduction: a recorded refusal lists the
/// first of them.
pub const PLACEMENT_POLICIES: [&str; 2] = ["rendezvous", "balanced"];

/// The rule that scores lanes for a group. Checkpoints store the variants' numbers, so a new variant must be the last
/// one.
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
    /// Address of the group's draws in the stream.
    pub(crate) counter: i64,
}

/// A candidate lane for the group, as a policy sees it. Excluded lanes are not shown to policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneView {
    pub(crate) lane: LaneId,
    /// Weight in effect, reduced if its device is hot; 1 for lanes of weight 0.
    pub(crate) weight: i32,
    /// Percentage of its full weight that is withheld because its device is hot.
    pub(crate) withheld_percent: i32,
    /// True if its device has little memory left. It is then a candidate only if all candidates are short.
    pub(crate) is_short_of_memory: bool,
    /// Time per second that its other groups take, in nanoseconds; 0 if loads are not measured.
    pub(crate) others_ns: i64,
    /// Time per second that the group would take on it, in nanoseconds; 0 if loads are not measured.
    pub(crate) own_ns: i64,
    /// Closeness to the group's present or last lane; `None` if it has had none.
    pub(crate) closeness: Option<Closeness>,
    /// True if it is the target lane of the group's move.
    pub(crate) is_bound: bool,
}

impl PlacementPolicy {
    /// Reads `NAME[@VERSION]` or `NAME[@VERSION]/BYTES`. Returns the policy, and the most bytes of decisions in a step;
    /// 0 is no limit.
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

    /// Version of the rule, which rises whenever the same inputs could give another decision.
    pub(crate) fn version(self) -> i32 {
        match self {
            Self::Rendezvous => rendezvous::VERSION,
            Self::Balanced => balanced::VERSION,
        }
    }

    /// The random stream of the policy for a seed.
    pub(crate) fn stream(self, config: &SchedulerConfig) -> i64 {
        match self {
            Self::Rendezvous => rendezvous::stream(config.placement_seed),
            Self::Balanced => balanced::stream(config),
        }
    }

    /// True if the policy uses the measured loads of lanes and groups. Otherwise the number of groups on a lane is
    /// bounded.
    pub(crate) fn is_measured(self) -> bool {
        match self {
            Self::Rendezvous => false,
            Self::Balanced => true,
        }
    }

    /// Score of each candidate lane, in their order; the highest wins.
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
