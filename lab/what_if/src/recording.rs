//! A journal, split into external inputs, measurements, and the data of the service model.
//!
//! The recording omits inputs that answer a decision, because the model answers. The crate's documentation has a table
//! of them.

use std::collections::{BTreeMap, BTreeSet};

use warptape_eventlog::EventLog;
use warptape_replay::history::Window;
use warptape_replay::{Recorded, ReplayProgress, read_recorded};
use warptape_scheduler::{PartitionPhase, Scheduler};
use warptape_schemas::hex::Digits;
use warptape_schemas::journal::{
    Arrived, Decision, GroupArrival, Input, JournalEntry, LaneLost, PartitionAssigned, PartitionId, Started,
    TaskArrived, TaskId, Trained,
};

use crate::blocks::Blocks;
use crate::error::WhatIfError;
use crate::figures::Figures;
use crate::ledger::Ledger;
use crate::service::{Fitting, Service};

/// Greatest number of inputs kept in memory.
const INPUTS_MAX: usize = 20_000_000;

/// A recorded run of one process, ready for modelling.
#[derive(Debug)]
pub struct Recording {
    pub(crate) lives: Vec<Life>,
    pub(crate) service: Service,
    /// Networks of the run.
    pub(crate) networks: Vec<Trained>,
    /// Times of the first and the last entry of the window, in nanoseconds.
    pub(crate) window_ns: (i64, i64),
    /// Figures measured in the journal.
    pub measured: Figures,
    /// Measured latencies by blocks of time.
    pub(crate) blocks: Blocks,
    /// Notes on the comparison for the user.
    pub notes: Vec<String>,
}

/// The external inputs of a process life.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) began_ns: i64,
    pub(crate) started: Started,
    /// Inputs with their times, in order.
    pub(crate) inputs: Vec<(i64, Input)>,
    /// Later rounds of tasks, by task. Each has the time since the end of the previous round, in nanoseconds.
    pub(crate) rounds: BTreeMap<TaskId, Vec<(i64, TaskArrived)>>,
}

/// How far a partition has been read.
#[derive(Default)]
struct Reading {
    /// Greatest next offset of all arrivals.
    reached: i64,
    /// True if the partition waits to be restored.
    is_restoring: bool,
    /// True if the partition was restored, so records before `reached` arrive again.
    is_again: bool,
}

/// Sorts the entries of a journal.
struct Sorting {
    lives: Vec<Life>,
    inputs: usize,
    readings: BTreeMap<PartitionId, Reading>,
    /// True if the next arrivals are rows of a lost lane that come again.
    is_after_loss: bool,
    finished_ns: BTreeMap<TaskId, i64>,
    fitting: Fitting,
    ledger: Ledger,
    window_ns: Option<(i64, i64)>,
    paused: BTreeMap<PartitionId, i64>,
    paused_ns: i64,
    notes: BTreeSet<String>,
    arrivals: u64,
}

impl Recording {
    /// Reads a window of the journal of one process.
    ///
    /// # Errors
    /// If the log cannot be read or has no journal, or the window is too long or has no arrivals.
    pub fn read(
        log: &dyn EventLog,
        journal: (&str, i32),
        window: Window,
        progress: &mut dyn FnMut(ReplayProgress),
    ) -> Result<Self, WhatIfError> {
        let mut sorting: Option<Sorting> = None;
        let mut checkpoint = None;
        let mut each = |recorded: Recorded| match recorded {
            Recorded::Checkpoint(begin) => {
                checkpoint = Some(begin);
                Ok(())
            }
            Recorded::Entry(entry, is_within) => {
                let sorting = sorting.get_or_insert_with(|| Sorting::new(&entry, checkpoint.take()));
                sorting.take(*entry, is_within)
            }
        };
        read_recorded(log, journal, window, &mut each, progress)?;
        let nothing = || WhatIfError::NothingArrived {
            what: format!(
                "{}: the requested part of the journal {:?} partition {}",
                log.url(),
                journal.0,
                journal.1
            ),
        };
        let sorting = sorting.filter(|sorting| sorting.arrivals > 0 && sorting.window_ns.is_some());
        sorting.map(Sorting::finish).ok_or_else(nothing)
    }

    /// Creates a recording of a run that was observed step by step from its start. Tests with simulated fleets use it.
    ///
    /// # Errors
    /// If nothing arrived.
    pub fn of_steps(
        steps: impl IntoIterator<Item = (i64, Input, Vec<Decision>)>,
    ) -> Result<Self, WhatIfError> {
        let mut sorting: Option<Sorting> = None;
        for (sequence, (at_ns, input, decisions)) in (0..).zip(steps) {
            let (state_hash, hash) = (Digits::zeros(), Digits::zeros());
            let entry = JournalEntry { sequence, at_ns, input, decisions, state_hash, hash };
            sorting.get_or_insert_with(|| Sorting::new(&entry, None)).take(entry, true)?;
        }
        let nothing = || WhatIfError::NothingArrived { what: "the run".to_owned() };
        sorting.filter(|sorting| sorting.arrivals > 0).map(Sorting::finish).ok_or_else(nothing)
    }

    /// Returns the length of the window, in nanoseconds.
    pub fn window_length_ns(&self) -> i64 {
        self.window_ns.1 - self.window_ns.0
    }

    /// Returns the recorded start of the first process life.
    pub fn started(&self) -> &Started {
        &self.lives[0].started
    }

    /// Returns the networks of the run, which `dqn:HASH` may name.
    pub fn networks(&self) -> &[Trained] {
        &self.networks
    }

    /// Returns the same run with the service times of another recording. This compares a model fitted there with the
    /// measurements here.
    pub fn with_times_of(self, other: &Self) -> Self {
        Self { service: other.service.clone(), ..self }
    }

    /// Returns the times of the first and the last entry of the window, in nanoseconds since the epoch.
    pub fn window_ns(&self) -> (i64, i64) {
        self.window_ns
    }

    /// Returns the number of process lives.
    pub fn lives(&self) -> usize {
        self.lives.len()
    }
}

impl Sorting {
    fn new(first: &JournalEntry, checkpoint: Option<Box<(Started, Scheduler)>>) -> Self {
        // `take` informs the ledger when the window begins.
        let mut sorting = Self {
            lives: Vec::new(),
            inputs: 0,
            readings: BTreeMap::new(),
            is_after_loss: false,
            finished_ns: BTreeMap::new(),
            fitting: Fitting::default(),
            ledger: Ledger::new(i64::MAX, checkpoint.is_none()),
            window_ns: None,
            paused: BTreeMap::new(),
            paused_ns: 0,
            notes: BTreeSet::new(),
            arrivals: 0,
        };
        sorting.ledger.blocks = Some(Blocks::default());
        if let Some(begin) = checkpoint {
            let (started, scheduler) = *begin;
            sorting.begin_at_checkpoint(first.at_ns, started, &scheduler);
        }
        sorting
    }

    /// Begins at a checkpoint: adds inputs that lead to nearly the same state of lanes, partitions and waiting rows.
    fn begin_at_checkpoint(&mut self, at_ns: i64, started: Started, scheduler: &Scheduler) {
        self.notes.insert(
            "the entries begin at a checkpoint: what was in flight there, risk tasks that were known there, learnt speeds and earlier commands are \
             left out of both modelled runs"
                .to_owned(),
        );
        self.begin(at_ns, started);
        scheduler.networks().for_each(|trained| self.keep(at_ns, Input::Trained(trained)));
        for load in scheduler.lane_loads().filter(|load| !load.ready) {
            let reason = "lost before the checkpoint".to_owned();
            self.keep(at_ns, Input::LaneLost(LaneLost { lane: load.lane, reason, kept: true }));
        }
        let is_assigned = |phase| phase == PartitionPhase::Assigned;
        for load in scheduler.partition_loads().filter(|load| is_assigned(load.phase)) {
            let (partition, offset) = (load.partition, load.position);
            self.readings.entry(partition).or_default().reached = offset;
            let assigned = PartitionAssigned {
                partition,
                groups: load.groups,
                committed_offset: offset,
                snapshot_offset: offset,
                ..PartitionAssigned::default()
            };
            self.keep(at_ns, Input::PartitionAssigned(assigned));
            let mut rows: BTreeMap<i32, i64> = BTreeMap::new();
            for waiting in scheduler.waiting().filter(|waiting| waiting.partition == partition) {
                *rows.entry(waiting.group).or_default() += waiting.rows;
            }
            let bytes_per_row = load.waiting_bytes / load.waiting_rows.max(1);
            let group = |(group, rows): (i32, i64)| GroupArrival { group, rows, bytes: rows * bytes_per_row };
            let groups: Vec<GroupArrival> = rows.into_iter().map(group).collect();
            if !groups.is_empty() {
                let arrived = Arrived { partition, next_offset: offset, groups };
                self.ledger.arrive(&arrived, at_ns, false);
                self.keep(at_ns, Input::Arrived(arrived));
            }
        }
    }

    fn begin(&mut self, at_ns: i64, started: Started) {
        self.fitting.begin(&started.lanes);
        self.ledger.begin(at_ns, &started.lanes);
        self.readings.clear();
        self.finished_ns.clear();
        self.paused.clear();
        self.lives.push(Life { began_ns: at_ns, started, inputs: Vec::new(), rounds: BTreeMap::new() });
    }

    fn keep(&mut self, at_ns: i64, input: Input) {
        self.inputs += 1;
        if let Some(life) = self.lives.last_mut() {
            life.inputs.push((at_ns, input));
        }
    }

    fn take(&mut self, entry: JournalEntry, is_within: bool) -> Result<(), WhatIfError> {
        let JournalEntry { at_ns, input, decisions, .. } = entry;
        if is_within {
            let first_ns = self.window_ns.map_or(at_ns, |window| window.0);
            if self.window_ns.is_none() {
                self.ledger.count_from(at_ns);
            }
            self.window_ns = Some((first_ns, at_ns));
        }
        if self.inputs >= INPUTS_MAX {
            return Err(WhatIfError::TooMuch { inputs_max: INPUTS_MAX });
        }
        self.fitting.see(at_ns, &input);
        self.fitting.decided(at_ns, &decisions);
        self.ledger.see(at_ns, &input);
        self.sort(at_ns, input);
        self.ledger.decided(at_ns, &decisions);
        self.follow(at_ns, &decisions);
        Ok(())
    }

    /// Keeps an external input, and drops one that answers a decision.
    fn sort(&mut self, at_ns: i64, input: Input) {
        let is_after_loss = std::mem::take(&mut self.is_after_loss);
        match input {
            Input::Started(started) => self.begin(at_ns, *started),
            Input::PartitionAssigned(ref assigned) => {
                let reading = self.readings.entry(assigned.partition).or_default();
                if std::mem::take(&mut reading.is_restoring) {
                    reading.is_again = true;
                    return;
                }
                *reading = Reading { reached: assigned.snapshot_offset, ..Reading::default() };
                self.keep(at_ns, input);
            }
            Input::PartitionRevoked(ref revoked) => {
                self.readings.remove(&revoked.partition);
                self.paused.remove(&revoked.partition);
                self.keep(at_ns, input);
            }
            Input::Arrived(arrived) => {
                let reading = self.readings.entry(arrived.partition).or_default();
                let is_again = is_after_loss || reading.is_again && arrived.next_offset <= reading.reached;
                reading.is_again &= arrived.next_offset <= reading.reached;
                reading.reached = reading.reached.max(arrived.next_offset);
                self.is_after_loss = is_after_loss;
                self.ledger.arrive(&arrived, at_ns, is_again);
                self.arrivals += 1;
                if !is_again {
                    self.keep(at_ns, Input::Arrived(arrived));
                }
            }
            Input::LaneLost(ref lost) => {
                self.is_after_loss = lost.kept;
                self.keep(at_ns, input);
            }
            Input::TaskArrived(arrived) if arrived.first_unit > 0 => {
                let finished_ns = self.finished_ns.get(&arrived.task).copied();
                if let Some((finished_ns, life)) = finished_ns.zip(self.lives.last_mut()) {
                    life.rounds.entry(arrived.task).or_default().push((at_ns - finished_ns, arrived));
                }
            }
            Input::TaskArrived(_) => {
                self.arrivals += 1;
                self.keep(at_ns, input);
            }
            Input::LaneReady(_)
            | Input::Draining(_)
            | Input::Measured(_)
            | Input::TaskDropped(_)
            | Input::Sampled(_)
            | Input::Control(_)
            | Input::Trained(_) => self.keep(at_ns, input),
            Input::Completed(_)
            | Input::SliceDone(_)
            | Input::Woke(_)
            | Input::Released(_)
            | Input::Priced(_)
            | Input::Sealed(_)
            | Input::CommitEnded(_)
            | Input::Checkpoint(_)
            | Input::Positions(_) => {}
        }
    }

    /// Records decisions that determine how later inputs are read.
    fn follow(&mut self, at_ns: i64, decisions: &[Decision]) {
        for decision in decisions {
            match decision {
                Decision::Restore(restore) => {
                    self.readings.entry(restore.partition).or_default().is_restoring = true;
                    self.paused.remove(&restore.partition);
                }
                Decision::Finish(finish) => {
                    self.finished_ns.insert(finish.task, at_ns);
                }
                Decision::Pause(pause) => {
                    self.paused.insert(pause.partition, at_ns);
                }
                Decision::Resume(resume) => {
                    let since_ns = self.paused.remove(&resume.partition);
                    self.paused_ns += since_ns.map_or(0, |since_ns| at_ns - since_ns);
                }
                _ => {}
            }
        }
    }

    fn finish(mut self) -> Recording {
        if self.paused_ns > 0 {
            self.notes.insert(format!(
                "partitions were paused for {:.3} s in all: their rows come no earlier than recorded, whatever the modelled lanes could do",
                self.paused_ns as f64 / 1e9
            ));
        }
        let mut networks: Vec<Trained> = Vec::new();
        for (_, input) in self.lives.iter().flat_map(|life| &life.inputs) {
            if let Input::Trained(trained) = input
                && !networks.contains(trained)
            {
                networks.push(trained.clone());
            }
        }
        let mut ledger = self.ledger;
        let blocks = ledger.blocks.take().unwrap_or_default();
        Recording {
            blocks,
            lives: self.lives,
            networks,
            service: self.fitting.finish(),
            window_ns: self.window_ns.unwrap_or_default(),
            measured: ledger.finish(),
            notes: self.notes.into_iter().collect(),
        }
    }
}
