//! Commands of operators to running processes, and their answers.

use serde::{Deserialize, Serialize};

use crate::journal::LaneId;
use crate::wire::Wire;

/// Greatest length of a command's texts in bytes: its id, its sender, a tenant or a policy.
pub const TEXT_BYTES_MAX: usize = 256;

/// A command for one process of a group: that whose number is the partition of the topic in which the record lies. Each is answered by one
/// ControlResult.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Control {
    /// Name by which the answer is found, chosen by the sender; up to 256 bytes, as all texts here.
    pub id: String,
    /// When it was sent, in nanoseconds since the epoch.
    pub at_ns: i64,
    /// Who sends it, for people.
    pub by: String,
    /// Until when it may be obeyed, in nanoseconds since the epoch; later it is refused.
    pub deadline_ns: i64,
    /// What is to be done.
    pub command: ControlCommand,
}

impl Control {
    /// Returns the first text with more than [`TEXT_BYTES_MAX`] bytes, and its length; `None` if all are shorter.
    pub fn long_text(&self) -> Option<(&'static str, usize)> {
        let of_command = match &self.command {
            ControlCommand::WeighTenant(WeighTenant { tenant, .. }) => ("the tenant", tenant.len()),
            ControlCommand::ChoosePolicy(ChoosePolicy { of, name }) => {
                ("the policy", of.len().max(name.len()))
            }
            ControlCommand::DrainLane(_)
            | ControlCommand::UndrainLane(_)
            | ControlCommand::WeighLane(_)
            | ControlCommand::Rebalance(_)
            | ControlCommand::SetBreaker(_)
            | ControlCommand::SetWatermark(_) => ("the command", 0),
        };
        let texts = [("the id", self.id.len()), ("the sender", self.by.len()), of_command];
        texts.into_iter().find(|(_, bytes)| *bytes > TEXT_BYTES_MAX)
    }
}

/// A command to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub enum ControlCommand {
    /// A lane is to give its groups to others, and to get nothing more.
    DrainLane(DrainLane),
    /// A drained lane is to be used again.
    UndrainLane(UndrainLane),
    /// A lane is to have another weight.
    WeighLane(WeighLane),
    /// Groups are to move where they would be placed now.
    Rebalance(Rebalance),
    /// A tenant is to have another share of lanes.
    WeighTenant(WeighTenant),
    /// A lane's breaker is to be held, or to judge by itself.
    SetBreaker(SetBreaker),
    /// Another policy is to decide.
    ChoosePolicy(ChoosePolicy),
    /// Moves the event time of a partition.
    SetWatermark(SetWatermark),
}

/// A lane is to give its groups to others, and to get nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct DrainLane {
    /// The lane.
    pub lane: LaneId,
}

/// A drained lane is to be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct UndrainLane {
    /// The lane.
    pub lane: LaneId,
}

/// A lane is to have another weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct WeighLane {
    /// The lane.
    pub lane: LaneId,
    /// Its weight from now on; 0: it stands by.
    pub weight: i32,
}

/// Groups are to move where they would be placed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Rebalance {}

/// A tenant is to have another share of lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct WeighTenant {
    /// The tenant.
    pub tenant: String,
    /// Its weight from now on.
    pub weight: i32,
}

/// A lane's breaker is to be held, or to judge by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SetBreaker {
    /// The lane.
    pub lane: LaneId,
    /// How it is held.
    pub to: BreakerMode,
}

/// Who decides on a lane's breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerMode {
    /// The scheduler, by how the lane fares.
    #[default]
    Auto,
    /// It is held open: the lane gets nothing.
    Open,
    /// It is held closed: the lane is used however it fares.
    Closed,
}

/// Another policy is to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ChoosePolicy {
    /// What it decides on: `tasks` or `placement`.
    pub of: String,
    /// Its name.
    pub name: String,
}

/// Event time of a partition is to go on from elsewhere: what was wrongly followed is undone, or what was not is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SetWatermark {
    /// The partition.
    pub partition: i32,
    /// The greatest event time from now on, in nanoseconds since the epoch.
    pub event_time_max_ns: i64,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ControlOutcome {
    /// It is obeyed.
    Done,
    /// It is not, and nothing changed.
    Refused,
}

/// The answer of a process to a command, in the transaction of the journal entry that has its effects. Key: the id of the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ControlResult {
    /// Id of the command; empty where it could not be read.
    pub id: String,
    /// Number of the process in its group, which is the partition of command and answer.
    pub ordinal: i32,
    /// Name of the process.
    pub node: String,
    /// Offset of the command.
    pub offset: i64,
    /// When it was answered, in nanoseconds since the epoch.
    pub at_ns: i64,
    /// What became of it.
    pub outcome: ControlOutcome,
    /// What was done, or why not, in words.
    pub detail: String,
    /// Sequence of the journal entry with its effects; null where it came to no decision.
    #[wire(default = "null")]
    pub sequence: Option<i64>,
}
