//! Writes a log with a long journal, for benchmarks of journal readers:
//! `cargo run -p warptape-replay --example long_journal -- FILE ENTRIES`.
//!
//! The scheduler is the production one, with two partitions and two lanes. Each tick record has one tick, one signal
//! and its own transaction; lanes take half a millisecond per batch. The state is written every 100,000 entries, as
//! engines do.

use std::path::Path;

use warptape_eventlog::{Durability, EventLog, NewRecord, Producer, SqliteLog, TopicSpec};
use warptape_scheduler::{RULES, Scheduler};
use warptape_schemas::journal::{
    Arrived, Checkpoint, CommitEnded, CommitOutcome, Completed, Decision, GroupArrival, Input, LaneSpec,
    PartitionAssigned, RiskConfig, SchedulerConfig, Sealed, SealedPartition, Started, StateBytes,
};
use warptape_schemas::signal::{Signal, SignalKind};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{JournalWriter, encode_signal, encode_tick};
use warptape_stages::{StageConfig, group_of};

/// Entries between two checkpoints.
const CHECKPOINT_ENTRIES: i64 = 100_000;
/// Entries written to the file in one transaction of the log.
const WRITE_ENTRIES: usize = 5_000;
const PARTITIONS: i32 = 2;
const GROUPS: i32 = 4;
const SYMBOLS: i64 = 50;
const SERVICE_NS: i64 = 500_000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("a file to write");
    let entries: i64 = arguments.next().and_then(|text| text.parse().ok()).expect("a number of entries");
    let mut run = Run::begin(Path::new(&path));
    while run.writer.next_sequence() < entries {
        run.turn();
    }
    run.write();
}

struct Run {
    writer: JournalWriter,
    scheduler: Scheduler,
    started: Started,
    producer: Box<dyn Producer>,
    at_ns: i64,
    /// Next offset of each partition of the ticks.
    next: [i64; PARTITIONS as usize],
    checked: i64,
    waiting: Vec<NewRecord<'static>>,
    entries_waiting: usize,
}

impl Run {
    fn begin(path: &Path) -> Self {
        let log = SqliteLog::open(path, Durability::Process).expect("a new file");
        let spec =
            |name: &str, partitions| TopicSpec { name: name.to_owned(), partitions, ..TopicSpec::default() };
        let outputs = ["ticks", "signals", "late", "dead-letter", "risk.requests", "risk.results"];
        let mut specs: Vec<_> = outputs.iter().map(|name| spec(name, PARTITIONS)).collect();
        specs.push(spec("journal", 1));
        log.create_topics(&specs).expect("topics");
        let lanes = (0..2).map(|lane| LaneSpec::new(lane, format!("cpu:{lane}"), 1)).collect();
        let bars = vec!["tick:1".parse().expect("a specification of bars")];
        let stage_config = StageConfig::unlimited(bars, 0, GROUPS as u32).to_json();
        let (node, software) = ("node".to_owned(), "example".to_owned());
        let started = Started {
            node,
            software,
            stage_config,
            scheduler: scheduler_config(),
            lanes,
            autoscale: None,
            shadow: None,
            rules: RULES,
        };
        let mut run = Self {
            writer: JournalWriter::new(),
            scheduler: Scheduler::new(),
            started: started.clone(),
            producer: log.producer("example").expect("a producer"),
            at_ns: 1_700_000_000_000_000_000,
            next: [0; PARTITIONS as usize],
            checked: 0,
            waiting: Vec::new(),
            entries_waiting: 0,
        };
        run.step(Input::Started(Box::new(started)));
        for partition in 0..PARTITIONS {
            run.step(Input::PartitionAssigned(PartitionAssigned {
                partition,
                groups: GROUPS,
                committed_offset: 0,
                snapshot_offset: 0,
                ..PartitionAssigned::default()
            }));
        }
        run
    }

    /// Processes one record of each partition, from its publication to its commit.
    fn turn(&mut self) {
        let mut batches = Vec::new();
        let mut partitions = Vec::new();
        for partition in 0..PARTITIONS {
            let offset = self.next[partition as usize];
            self.next[partition as usize] += 1;
            let symbol = format!("TEST:S{}", offset % SYMBOLS);
            self.publish(partition, &symbol);
            let group = group_of(&symbol, GROUPS as u32) as i32;
            let groups = vec![GroupArrival { group, rows: 1, bytes: 45 }];
            self.at_ns += 200_000;
            batches.extend(self.step(Input::Arrived(Arrived { partition, next_offset: offset + 1, groups })));
            partitions.push((offset, symbol));
        }
        while let Some((lane, batch)) = batches.pop() {
            self.at_ns += SERVICE_NS;
            let completed = Completed { lane, batch, service_ns: SERVICE_NS, sample: None };
            batches.extend(self.step(Input::Completed(completed)));
        }
        self.at_ns += 100_000;
        let account = |(partition, (offset, _)): (i32, &(i64, String))| SealedPartition {
            partition,
            first_offset: *offset,
            next_offset: offset + 1,
            signals: 1,
            ..SealedPartition::default()
        };
        let accounts = (0..).zip(&partitions).map(account).collect();
        let sealed = self.writer.next_sequence();
        self.step(Input::Sealed(Sealed { partitions: accounts }));
        for (partition, (offset, symbol)) in (0..).zip(partitions) {
            self.signal(partition, offset, &symbol);
        }
        let (sent_ns, ended_ns) = (self.at_ns + 10_000, self.at_ns + 900_000);
        self.at_ns += 1_000_000;
        let (attempt, outcome, looked_up) = (1, CommitOutcome::Committed, false);
        self.step(Input::CommitEnded(CommitEnded { sealed, attempt, sent_ns, ended_ns, outcome, looked_up }));
        if self.writer.next_sequence() - self.checked >= CHECKPOINT_ENTRIES {
            let state = StateBytes(self.scheduler.checkpoint());
            let (started, nothing) = (Some(Box::new(self.started.clone())), StateBytes(Vec::new()));
            self.step(Input::Checkpoint(Checkpoint { started, part: 0, parts: 2, state: nothing }));
            self.step(Input::Checkpoint(Checkpoint { started: None, part: 1, parts: 2, state }));
            self.checked = self.writer.next_sequence();
        }
        if self.entries_waiting >= WRITE_ENTRIES {
            self.write();
        }
    }

    /// Steps the scheduler; returns lane and number of each batch that it dispatches.
    fn step(&mut self, input: Input) -> Vec<(i32, i64)> {
        let state_hash = self.scheduler.state_hash();
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, &input, &mut decisions).expect("an input as engines make them");
        let mut value = Vec::new();
        self.writer.append(self.at_ns, &input, &decisions, state_hash, &mut value);
        self.push("journal", 0, None, value);
        self.entries_waiting += 1;
        let batch = |decision: &Decision| match decision {
            Decision::Dispatch(dispatch) => Some((dispatch.lane, dispatch.batch)),
            _ => None,
        };
        decisions.iter().filter_map(batch).collect()
    }

    fn publish(&mut self, partition: i32, symbol: &str) {
        let tick = Tick {
            symbol: symbol.to_owned(),
            kind: TickKind::Trade,
            event_time_ns: self.at_ns,
            receive_time_ns: 0,
            trade_id: 0,
            side: Side::Buy,
            price_e9: 100_000_000_000,
            size_e9: 1_000_000_000,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        };
        let mut value = Vec::new();
        encode_tick(&tick, &mut value).expect("a tick");
        self.push("ticks", partition, Some(symbol), value);
    }

    fn signal(&mut self, partition: i32, source_offset: i64, symbol: &str) {
        let signal = Signal {
            symbol: symbol.into(),
            kind: SignalKind::RsiOversold,
            bar_spec: "tick:1".into(),
            bar_start_ns: self.at_ns,
            bar_end_ns: self.at_ns,
            source_offset,
            source_index: 0,
            value: 1.0,
            threshold: 2.0,
            bar: None,
            name: None,
        };
        let mut value = Vec::new();
        encode_signal(&signal, &mut value);
        self.push("signals", partition, Some(symbol), value);
    }

    fn push(&mut self, topic: &'static str, partition: i32, key: Option<&str>, value: Vec<u8>) {
        let key = key.map(|key| key.as_bytes().to_vec().into());
        let (topic, value, timestamp_ns) = (topic.into(), value.into(), self.at_ns);
        self.waiting.push(NewRecord { topic, partition, key, timestamp_ns, value, ..NewRecord::default() });
    }

    fn write(&mut self) {
        self.producer.begin().expect("a transaction");
        for record in self.waiting.drain(..) {
            self.producer.send(record).expect("a record");
        }
        self.producer.commit().expect("a commit");
        self.entries_waiting = 0;
    }
}

fn scheduler_config() -> SchedulerConfig {
    SchedulerConfig {
        placement_policy: "rendezvous".to_owned(),
        placement_seed: 7,
        load_factor_percent: 125,
        lane_credit_rows: 10_000,
        lane_credit_bytes: 1_000_000,
        lane_batches_max: 2,
        batch_rows_max: 1_000,
        row_deadline_ns: 5_000_000,
        high_water_rows: 100_000,
        low_water_rows: 10_000,
        route_interval_ns: 0,
        balance_interval_ns: 0,
        risk: RiskConfig::default(),
        breakers: None,
    }
}
