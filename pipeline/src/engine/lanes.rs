//! Lane threads: each owns the stages of the groups placed on it, and runs batches in the order they come.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};
use warptape_schemas::journal::LaneId;
use warptape_stages::{GroupInput, GroupOutput, GroupStage};

/// Commands a lane may have waiting besides batches: installs of groups. The engine waits when there are more.
const LANE_COMMANDS_MAX: usize = 64;

/// A group of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId {
    /// The partition.
    pub partition: i32,
    /// The group within it.
    pub group: i32,
}

/// What the engine tells a lane.
pub enum LaneCommand {
    /// The group is the lane's from now on.
    Install {
        /// The group.
        group: GroupId,
        /// Its epoch.
        epoch: i64,
        /// Its state.
        stage: Box<GroupStage>,
    },
    /// The partition's groups are no longer the lane's.
    Drop {
        /// The partition.
        partition: i32,
    },
    /// Run a batch.
    Run(LaneBatch),
}

/// A batch on its way to a lane.
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

/// What a lane tells the engine.
pub(super) enum LaneEvent {
    /// A batch is done.
    Completed { lane: LaneId, batch: i64, service_ns: i64, parts: Vec<PartOutput> },
    /// The lane failed; its thread waits for nothing any more.
    Lost { lane: LaneId, reason: String },
}

/// What one group of a batch gave.
pub struct PartOutput {
    /// The group.
    pub group: GroupId,
    /// The epoch of the part.
    pub epoch: i64,
    /// What its stage gave; nothing if the epoch is not the lane's.
    pub output: GroupOutput,
}

/// A lane's fault for tests: the lane fails when it comes to this batch of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneFault {
    /// The lane.
    pub lane: LaneId,
    /// Batches the lane completes before it fails.
    pub after_batches: u64,
}

/// Handle of a running lane.
pub(super) struct Lane {
    pub(super) commands: Sender<LaneCommand>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    /// Starts the lane's thread.
    pub(super) fn start(
        lane: LaneId,
        batches_max: usize,
        fault: Option<u64>,
        events: Sender<LaneEvent>,
    ) -> Self {
        let (commands, received) = bounded(LANE_COMMANDS_MAX + batches_max);
        let thread = std::thread::Builder::new()
            .name(format!("lane-{lane}"))
            .spawn(move || LaneWorker { lane, stages: LaneStages::default(), fault, events }.run(&received))
            .expect("the system can start a thread");
        Self { commands, thread: Some(thread) }
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(mut self) {
        let (gone, _) = bounded(0);
        self.commands = gone;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a lane catches the panics of its stages");
        }
    }
}

/// The groups of a lane and what they do with a command: the part of a lane that knows no thread.
#[derive(Default)]
pub struct LaneStages {
    stages: BTreeMap<GroupId, (i64, Box<GroupStage>)>,
}

impl LaneStages {
    /// Obeys a command; a batch gives its outputs.
    pub fn obey(&mut self, command: LaneCommand) -> Option<(i64, Vec<PartOutput>)> {
        match command {
            LaneCommand::Install { group, epoch, stage } => {
                self.stages.insert(group, (epoch, stage));
                None
            }
            LaneCommand::Drop { partition } => {
                self.stages.retain(|group, _| group.partition != partition);
                None
            }
            LaneCommand::Run(batch) => {
                let parts = batch.parts.into_iter().map(|part| self.run(part)).collect();
                Some((batch.batch, parts))
            }
        }
    }

    fn run(&mut self, part: BatchPart) -> PartOutput {
        let mut output = GroupOutput::default();
        // A part of an older epoch was cut off by a restore: its rows come again.
        if let Some((epoch, stage)) = self.stages.get_mut(&part.group)
            && *epoch == part.epoch
        {
            stage.run(part.input, &mut output);
        }
        PartOutput { group: part.group, epoch: part.epoch, output }
    }
}

struct LaneWorker {
    lane: LaneId,
    stages: LaneStages,
    /// Batches until an injected fault.
    fault: Option<u64>,
    events: Sender<LaneEvent>,
}

impl LaneWorker {
    /// Runs until the engine drops its end, or a stage panics.
    fn run(mut self, commands: &Receiver<LaneCommand>) {
        for command in commands {
            let started = Instant::now();
            let event = match catch_unwind(AssertUnwindSafe(|| self.obey(command))) {
                Ok(None) => continue,
                Ok(Some((batch, parts))) => {
                    let service_ns = started.elapsed().as_nanos() as i64;
                    LaneEvent::Completed { lane: self.lane, batch, service_ns, parts }
                }
                Err(panic) => LaneEvent::Lost { lane: self.lane, reason: panic_message(panic.as_ref()) },
            };
            let lost = matches!(event, LaneEvent::Lost { .. });
            // An engine that has ended reads no more: what it will not read is of no use.
            if self.events.send(event).is_err() || lost {
                return;
            }
        }
    }

    fn obey(&mut self, command: LaneCommand) -> Option<(i64, Vec<PartOutput>)> {
        if let (LaneCommand::Run(_), Some(left)) = (&command, &mut self.fault) {
            assert!(*left > 0, "fault injected by configuration");
            *left -= 1;
        }
        self.stages.obey(command)
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a stage panicked without a message".to_owned()
    }
}
