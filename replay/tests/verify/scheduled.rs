//! Journals of a scheduler that the test steps directly, for decisions that a recorded run does not make, and for many
//! entries.

use warptape_eventlog::{EventLog, NewRecord, SqliteLog};
use warptape_scheduler::{RULES, Scheduler};
use warptape_schemas::JournalWriter;
use warptape_schemas::journal::{
    Arrived, Checkpoint, Completed, Decision, GroupArrival, Input, LaneSpec, PartitionAssigned, Started,
    StateBytes,
};

use crate::recording::{Recording, empty, scheduler_config};

pub struct Scheduled {
    recording: Recording,
    scheduler: Scheduler,
    writer: JournalWriter,
    started: Started,
    waiting: Vec<NewRecord<'static>>,
    pub at_ns: i64,
    next_offset: i64,
}

impl Scheduled {
    /// Creates a journal that begins with a process with two lanes and a partition of one group.
    pub fn new(change: impl FnOnce(&mut Started)) -> Self {
        let lanes = (0..2).map(|lane| LaneSpec::new(lane, format!("cpu:{lane}"), 1)).collect();
        let mut started = Started {
            node: "node".to_owned(),
            software: "test".to_owned(),
            stage_config: "{}".to_owned(),
            scheduler: scheduler_config(),
            lanes,
            autoscale: None,
            shadow: None,
            rules: RULES,
        };
        change(&mut started);
        let mut scheduled = Self {
            recording: empty(),
            scheduler: Scheduler::new(),
            writer: JournalWriter::new(),
            started,
            waiting: Vec::new(),
            at_ns: 1_700_000_000_000_000_000,
            next_offset: 0,
        };
        scheduled.start();
        scheduled
    }

    /// Starts the process again.
    pub fn start(&mut self) {
        self.step(Input::Started(Box::new(self.started.clone())));
        let (committed_offset, snapshot_offset) = (self.next_offset, self.next_offset);
        let assigned = PartitionAssigned {
            partition: 0,
            groups: 1,
            committed_offset,
            snapshot_offset,
            ..PartitionAssigned::default()
        };
        self.step(Input::PartitionAssigned(assigned));
    }

    /// Steps an input a microsecond later. Returns the entry's sequence and the decisions.
    pub fn step(&mut self, input: Input) -> (i64, Vec<Decision>) {
        self.at_ns += 1_000;
        let sequence = self.writer.next_sequence();
        let state_hash = self.scheduler.state_hash();
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, &input, &mut decisions).expect("good input");
        let mut value = Vec::new();
        self.writer.append(self.at_ns, &input, &decisions, state_hash, &mut value);
        let (topic, value) = ("journal".into(), value.into());
        self.waiting.push(NewRecord { topic, value, timestamp_ns: self.at_ns, ..NewRecord::default() });
        (sequence, decisions)
    }

    /// Lets a row arrive and complete after `service_ns`. Returns the sequence of the dispatching entry, and the
    /// batch's number.
    pub fn work(&mut self, service_ns: i64) -> (i64, i64) {
        self.next_offset += 1;
        let groups = vec![GroupArrival { group: 0, rows: 1, bytes: 40 }];
        let arrived = Arrived { partition: 0, next_offset: self.next_offset, groups };
        let (sequence, decisions) = self.step(Input::Arrived(arrived));
        let dispatched = decisions.iter().find_map(|decision| match decision {
            Decision::Dispatch(dispatch) => Some((dispatch.lane, dispatch.batch)),
            _ => None,
        });
        let (lane, batch) = dispatched.expect("its lane is free");
        self.at_ns += service_ns;
        self.step(Input::Completed(Completed { lane, batch, service_ns, sample: None }));
        (sequence, batch)
    }

    /// Writes the scheduler's state. Returns the sequence of the entry.
    pub fn checkpoint(&mut self) -> i64 {
        let (started, state) =
            (Some(Box::new(self.started.clone())), StateBytes(self.scheduler.checkpoint()));
        self.step(Input::Checkpoint(Checkpoint { started, part: 0, parts: 1, state })).0
    }

    /// Returns the log with all entries so far.
    pub fn log(&mut self) -> &SqliteLog {
        let mut producer = self.recording.log.producer("scheduled").unwrap();
        producer.begin().unwrap();
        for record in self.waiting.drain(..) {
            producer.send(record).unwrap();
        }
        producer.commit().unwrap();
        &self.recording.log
    }
}
