//! Commands of operators to running processes, and their answers.

use serde::{Deserialize, Serialize};

use crate::journal::LaneId;
use crate::wire::Wire;

/// Greatest length of a command's texts in bytes: its id, its sender, a tenant or a policy.
pub const TEXT_BYTES_MAX: usize = 256;

/// An operator's command to one process of a group: the process whose number is the partition of the record. Each
/// command is answered by one `ControlResult`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Control {
    /// Id of the command, chosen by the sender and repeated in the answer. It has up to 256 bytes, like all texts of a
    /// command.
    pub id: String,
    /// Time at which the command was sent, in nanoseconds since the Unix epoch.
    pub at_ns: i64,
    /// Sender of the command, for people.
    pub by: String,
    /// Time until which the command may be executed, in nanoseconds since the Unix epoch. A process that reads it later
    /// refuses it.
    pub deadline_ns: i64,
    /// The command.
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
    /// Takes a lane out of service: it gives its groups to other lanes and gets no further work.
    DrainLane(DrainLane),
    /// Puts a drained lane back into service.
    UndrainLane(UndrainLane),
    /// Gives a lane another weight.
    WeighLane(WeighLane),
    /// Moves groups to the lanes on which the placement policy would place them now.
    Rebalance(Rebalance),
    /// Gives a tenant another share of the lanes.
    WeighTenant(WeighTenant),
    /// Holds a lane's breaker open or closed, or lets the scheduler decide.
    SetBreaker(SetBreaker),
    /// Chooses the policy that decides from now on.
    ChoosePolicy(ChoosePolicy),
    /// Sets the greatest event time of a partition: undoes a wrong jump, or follows a right one.
    SetWatermark(SetWatermark),
}

/// Takes a lane out of service: it gives its groups to other lanes and gets no further work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct DrainLane {
    /// Number of the lane, from 0.
    pub lane: LaneId,
}

/// Puts a drained lane back into service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct UndrainLane {
    /// Number of the lane, from 0.
    pub lane: LaneId,
}

/// Gives a lane another weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct WeighLane {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// New weight of the lane, 0 to 1,000,000; 0: the lane gets groups only if no lane with a weight is ready.
    pub weight: i32,
}

/// Moves groups to the lanes on which the placement policy would place them now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Rebalance {}

/// Gives a tenant another share of the lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct WeighTenant {
    /// Name of the tenant.
    pub tenant: String,
    /// New weight of the tenant, 1 to 1,000. Shares are in proportion to weights.
    pub weight: i32,
}

/// Holds a lane's breaker open or closed, or lets the scheduler decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SetBreaker {
    /// Number of the lane, from 0.
    pub lane: LaneId,
    /// New mode of the breaker.
    pub to: BreakerMode,
}

/// Mode of a lane's breaker, which keeps work from a lane that fails or is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BreakerMode {
    /// The scheduler opens and closes the breaker by the lane's failures and speed.
    #[default]
    Auto,
    /// The breaker is held open: the lane gets no work while another lane is in service.
    Open,
    /// The breaker is held closed: the lane gets work, whatever its failures and speed.
    Closed,
}

/// Chooses the policy that decides from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ChoosePolicy {
    /// Subject of the policy: `tasks` or `placement`.
    pub of: String,
    /// Name of the policy, with `@VERSION` if its version is not 1.
    pub name: String,
}

/// Sets the greatest event time of a partition: undoes a wrong jump, or follows a right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct SetWatermark {
    /// Partition of the tick topic.
    pub partition: i32,
    /// Greatest event time from now on, in nanoseconds since the Unix epoch; positive.
    pub event_time_max_ns: i64,
}

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ControlOutcome {
    /// The command was executed.
    Done,
    /// The command was not executed, and nothing changed.
    Refused,
}

/// Answer of a process to a command, in the transaction of the journal entry with the command's effects. The key of the
/// record is the id of the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ControlResult {
    /// Id of the command; empty if the command could not be read.
    pub id: String,
    /// Number of the process in its group, which is the partition of command and answer.
    pub ordinal: i32,
    /// Name of the process.
    pub node: String,
    /// Offset of the command.
    pub offset: i64,
    /// Time of the answer, in nanoseconds since the Unix epoch.
    pub at_ns: i64,
    /// Outcome of the command.
    pub outcome: ControlOutcome,
    /// Effect of the command, or reason of the refusal, in words.
    pub detail: String,
    /// Sequence number of the journal entry with the command's effects; null if the scheduler made no decision.
    #[wire(default = "null")]
    pub sequence: Option<i64>,
}
