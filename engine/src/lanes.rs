//! The data exchanged between the engine and a lane's thread.

use std::ops::Range;
use std::sync::Arc;

use warptape_events::journal::ServicePoint;
use warptape_kernels::Isa;
use warptape_stages::risk::{Partial, RiskTask};
use warptape_stages::{GroupInput, GroupOutput, GroupStage, StageConfig};

/// A group of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId {
    /// The partition.
    pub partition: i32,
    /// The group within it.
    pub group: i32,
}

/// A command of the engine to a lane.
pub enum LaneCommand {
    /// Take over a group; the lane owns it from now on.
    Install {
        /// The group.
        group: GroupId,
        /// Its epoch.
        epoch: i64,
        /// Its state.
        state: GroupState,
    },
    /// Forget the partition's groups; the lane no longer owns them.
    Drop {
        /// The partition.
        partition: i32,
    },
    /// Run a batch.
    Run(LaneBatch),
    /// Give a group back, if the lane still owns it in this epoch.
    Release {
        /// The group.
        group: GroupId,
        /// Its epoch.
        epoch: i64,
    },
}

/// Units of a risk task, sent to a lane.
pub struct Slice {
    /// Number of the slice.
    pub slice: i64,
    /// The task.
    pub task: Arc<RiskTask>,
    /// The units.
    pub units: Range<i64>,
    /// True if the task is critical. Then its units do not yield the processor to ticks, because the scheduler bounds
    /// their share of the time.
    pub critical: bool,
}

/// The state of a group, sent to a lane.
pub enum GroupState {
    /// The running state.
    Stage(Box<GroupStage>),
    /// An earlier state with the inputs since then, whose outputs exist already.
    Kept(Kept),
}

/// A group's earlier state with the inputs since then; the present state can be computed again from them.
#[derive(Clone, Default)]
pub struct Kept {
    /// The earlier state, encoded.
    pub(crate) state: Vec<u8>,
    /// Inputs that were processed after it.
    pub(crate) tail: Vec<GroupInput>,
    /// Approximate bytes of the inputs.
    pub(crate) bytes: usize,
}

impl GroupState {
    /// Copies the state, to be kept.
    pub(crate) fn to_kept(&self) -> Kept {
        match self {
            Self::Kept(kept) => kept.clone(),
            Self::Stage(stage) => {
                let mut state = Vec::new();
                stage.write(&mut state);
                Kept { state, ..Kept::default() }
            }
        }
    }

    /// Converts the state into a running stage; kept inputs are run again.
    pub fn into_stage(self, config: &StageConfig, isa: Isa) -> Box<GroupStage> {
        match self {
            Self::Stage(stage) => stage,
            Self::Kept(Kept { state, tail, .. }) => {
                let stage = GroupStage::read(config, isa, &state);
                let mut stage = Box::new(stage.expect("this process has written the state"));
                tail.into_iter().for_each(|input| stage.run(input, &mut GroupOutput::default()));
                stage
            }
        }
    }
}

/// A batch, sent to a lane.
pub struct LaneBatch {
    /// Number of the batch.
    pub batch: i64,
    /// Rows by group, in the order of the decision.
    pub parts: Vec<BatchPart>,
}

/// The rows of one group in a batch.
pub struct BatchPart {
    /// The group.
    pub group: GroupId,
    /// Its epoch when the batch was made.
    pub epoch: i64,
    /// Its rows.
    pub input: GroupInput,
}

/// A message of a lane to the engine.
pub enum LaneNews {
    /// A batch is done.
    Completed {
        /// Number of the batch.
        batch: i64,
        /// Service time, in nanoseconds.
        service_ns: i64,
        /// Outputs of each part.
        parts: Vec<PartOutput>,
        /// Bytes of the device's memory: slots, staging and workspace. `None` on the processor.
        memory_bytes: Option<[usize; 3]>,
    },
    /// A group was given back.
    Released {
        /// The group.
        group: GroupId,
        /// Its epoch.
        epoch: i64,
        /// Its state.
        stage: Box<GroupStage>,
    },
    /// A slice is done.
    SliceDone {
        /// Number of the slice.
        slice: i64,
        /// Service time, in nanoseconds.
        service_ns: i64,
        /// Result of the units.
        partial: Partial,
    },
    /// The lane measured the service times of batches.
    Measured {
        /// Service times, by rows of a batch.
        points: Vec<ServicePoint>,
    },
    /// The lane failed; its thread no longer waits for commands.
    Lost {
        /// Reason of the failure.
        reason: String,
    },
}

/// The outputs of one group of a batch.
pub struct PartOutput {
    /// The group.
    pub group: GroupId,
    /// The epoch of the part.
    pub epoch: i64,
    /// The output of its stage; empty if the lane does not own the group in this epoch.
    pub output: GroupOutput,
}
