//! A small run with the production crates: ticks in a log, a stepped scheduler whose decisions are executed, stages,
//! and transactions.

use std::collections::BTreeMap;
use std::time::Duration;

use tempfile::TempDir;
use warptape_engine::{
    ControlRefusal, PendingSnapshot, SnapshotPlace, Topics, encode_dead_letter_of, encode_late_tick_of,
    snapshot_records, tick_record_digest,
};
use warptape_eventlog::{
    Durability, EventLog, Fetched, NewRecord, Producer, Record, SqliteLog, TopicPartition, TopicSpec,
};
use warptape_replay::VerifyOptions;
use warptape_scheduler::{RULES, Scheduler};
use warptape_schemas::control::{
    BreakerMode, ChoosePolicy, Control, ControlCommand, ControlOutcome, ControlResult, DrainLane, SetBreaker,
    WeighLane, WeighTenant,
};
use warptape_schemas::journal::{
    self, Arrived, Checkpoint, CommitEnded, CommitOutcome, Completed, Controlled, Decision, Draining,
    GroupArrival, Input, LaneLost, LaneReady, LaneSpec, PartitionAssigned, RiskConfig, SchedulerConfig,
    Sealed, SealedPartition, Started, StateBytes,
};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    JournalWriter, TickColumns, TickDecoder, decode_control, decode_journal_entry, encode_control,
    encode_control_result, encode_snapshot, encode_tick_batch,
};
use warptape_stages::{GroupOutput, GroupQueue, GroupStage, Isa, PartitionIntake, SignalMerge, StageConfig};

pub const PARTITIONS: i32 = 2;
const GROUP: &str = "group";
const TICKS_PER_RECORD: usize = 16;
const CHECKPOINT_PART_BYTES: usize = 100;

/// A recorded run.
pub struct Recording {
    pub log: SqliteLog,
    _folder: TempDir,
}

/// The settings of a run.
#[derive(Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    /// Number of tick records per partition and process life.
    pub records: usize,
    /// Number of process lives.
    pub lives: usize,
    /// Allowed lateness of each life's stage configuration, ms; the last one applies to all later lives.
    pub lateness_ms: &'static [i64],
    /// Index of a life that an idle life precedes, and the idle life's allowed lateness, ms; `None` for no idle life.
    pub idle: Option<(usize, i64)>,
    /// Number of records of a life after which the scheduler's state is written.
    pub checkpoint: Option<usize>,
    /// True if the journal has the outcome of each commit.
    pub outcomes: bool,
    /// Number of records of a life after which snapshots are written.
    pub snapshot: Option<usize>,
    /// Seed of the placement of groups.
    pub placement_seed: i64,
    /// Number of records of a life after which a lane is lost and comes back.
    pub loss: Option<usize>,
    /// Number of operators' commands in each life; at most the number of its records.
    pub commands: usize,
    /// True if the journal gets the outcome of a commit only when the next commit is due.
    pub late_outcomes: bool,
    /// True if lanes take so few rows at a time that partitions are paused.
    pub pauses: bool,
    /// True if older snapshots remain beside newer ones, as on a broker that has not compacted the topic yet.
    pub keeps_snapshots: bool,
}

impl Plan {
    pub fn small(seed: u64) -> Self {
        Self {
            seed,
            records: 12,
            lives: 2,
            lateness_ms: &[500],
            idle: None,
            checkpoint: None,
            outcomes: true,
            snapshot: None,
            placement_seed: 7,
            loss: None,
            commands: 0,
            late_outcomes: false,
            pauses: false,
            keeps_snapshots: false,
        }
    }
}

pub fn options() -> VerifyOptions {
    let mut options = VerifyOptions::new(&Topics::new(""), GROUP);
    options.outputs = true;
    options.sources.isa = Isa::Baseline;
    options
}

pub fn record(plan: Plan) -> Recording {
    let recording = empty_with(!plan.keeps_snapshots);
    feed(&recording.log, plan);
    run(&recording.log, plan);
    recording
}

/// Processes all published ticks.
pub fn run(log: &SqliteLog, plan: Plan) {
    let mut run = Run::new(log);
    for life in 0..plan.lives {
        let lateness_ms = plan.lateness_ms[life.min(plan.lateness_ms.len() - 1)];
        if let Some((_, lateness_ms)) = plan.idle.filter(|(before, _)| *before == life) {
            run.live(
                lateness_ms,
                life * plan.records..life * plan.records,
                Plan { checkpoint: None, ..plan },
            );
        }
        (run.outcomes, run.late_outcomes) = (plan.outcomes, plan.late_outcomes);
        run.live(lateness_ms, life * plan.records..(life + 1) * plan.records, plan);
    }
}

/// Returns all records of a partition.
pub fn records(log: &dyn EventLog, topic: &str, partition: i32) -> Vec<Record> {
    let source = TopicPartition { topic: topic.to_owned(), partition };
    let mut reader = log.reader(std::slice::from_ref(&source)).unwrap();
    let mut all = Vec::new();
    while let Fetched::Records { records, .. } = reader.poll(Duration::ZERO, usize::MAX, usize::MAX).unwrap()
    {
        all.extend(records);
    }
    all
}

/// Returns a log with empty topics.
pub fn empty() -> Recording {
    empty_with(true)
}

fn empty_with(compacted: bool) -> Recording {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).unwrap();
    let spec =
        |name: &str, partitions: i32| TopicSpec { name: name.to_owned(), partitions, ..TopicSpec::default() };
    let mut topics: Vec<_> =
        ["ticks", "signals", "late", "dead-letter"].iter().map(|name| spec(name, PARTITIONS)).collect();
    topics.push(spec("journal", 1));
    topics.push(TopicSpec { compacted, ..spec("snapshots", PARTITIONS) });
    topics.extend(["control", "control.results"].map(|name| spec(name, 1)));
    log.create_topics(&topics).unwrap();
    Recording { log, _folder: folder }
}

/// A SplitMix64 generator. Every test uses a fixed seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

fn new_record(topic: &str, partition: i32, key: Option<&[u8]>, value: Vec<u8>) -> NewRecord<'static> {
    let key = key.map(|key| key.to_vec().into());
    let (topic, value) = (topic.to_owned().into(), value.into());
    NewRecord { topic, partition, key, value, ..NewRecord::default() }
}

/// Publishes ticks. Every fifth record is damaged.
pub fn feed(log: &SqliteLog, plan: Plan) {
    let mut producer = log.producer("feed").unwrap();
    producer.begin().unwrap();
    for partition in 0..PARTITIONS {
        let mut random = Random(plan.seed.wrapping_mul(1_000) + partition as u64);
        let mut time_ns = 1_700_000_000_000_000_000;
        for number in 0..plan.records * plan.lives {
            let ticks: Vec<Tick> =
                (0..TICKS_PER_RECORD).map(|_| tick(partition, &mut random, &mut time_ns)).collect();
            let mut value = Vec::new();
            encode_tick_batch(&ticks, &mut value).unwrap();
            if number % 5 == 4 {
                value.truncate(value.len() / 2);
            }
            producer.send(new_record("ticks", partition, None, value)).unwrap();
        }
    }
    for number in 0..plan.commands * plan.lives {
        producer.send(new_record("control", 0, None, command(number))).unwrap();
    }
    producer.commit().unwrap();
}

/// Returns a command of a kind that moves no groups, because lanes of this run release no groups. Some commands are
/// refused.
fn command(number: usize) -> Vec<u8> {
    let command = match number % 7 {
        0 => ControlCommand::WeighLane(WeighLane { lane: 1, weight: 2 + number as i32 }),
        1 => ControlCommand::DrainLane(DrainLane { lane: 9 }),
        2 => ControlCommand::WeighTenant(WeighTenant { tenant: "desk".to_owned(), weight: 3 }),
        3 => ControlCommand::ChoosePolicy(ChoosePolicy { of: "tasks".to_owned(), name: "fair".to_owned() }),
        4 => ControlCommand::SetBreaker(SetBreaker { lane: 0, to: BreakerMode::Closed }),
        // This command leads to no decision.
        5 => ControlCommand::WeighTenant(WeighTenant { tenant: "x".repeat(300), weight: 3 }),
        _ => return b"not Avro".to_vec(),
    };
    let (id, by) = (format!("command-{number}"), "operator".to_owned());
    let deadline_ns = if number.is_multiple_of(14) { 5 } else { i64::MAX };
    let control = Control { id, at_ns: 1_000 + number as i64, by, deadline_ns, command };
    let mut value = Vec::new();
    encode_control(&control, &mut value);
    value
}

fn tick(partition: i32, random: &mut Random, time_ns: &mut i64) -> Tick {
    *time_ns += random.below(200_000_000) as i64;
    let late_ns = if random.below(20) == 0 { 2_000_000_000 } else { 0 };
    let price_e9 = 100_000_000_000 + random.below(5_000_000_000) as i64;
    let trade = Tick {
        symbol: format!("TEST:P{partition}S{}", random.below(5)),
        kind: TickKind::Trade,
        event_time_ns: *time_ns - late_ns,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::Buy,
        price_e9,
        size_e9: 1_000_000_000,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    };
    if random.below(4) > 0 {
        return trade;
    }
    let (trade_id, side, size_e9) = (0, Side::None, 0);
    let (bid_price_e9, ask_price_e9) = (price_e9 - 1, price_e9 + 1);
    let (bid_size_e9, ask_size_e9) = (1_000_000_000, 1_000_000_000);
    Tick {
        kind: TickKind::Quote,
        trade_id,
        side,
        price_e9: 0,
        size_e9,
        bid_price_e9,
        ask_price_e9,
        bid_size_e9,
        ask_size_e9,
        ..trade
    }
}

fn stage_config(lateness_ms: i64) -> StageConfig {
    let lateness_ns = lateness_ms * 1_000_000;
    let bars = ["1s", "tick:5"].map(|text| text.parse().unwrap()).to_vec();
    let mut config = StageConfig::unlimited(bars, lateness_ns, 3);
    let indicators = &mut config.indicators;
    (indicators.sma, indicators.bollinger, indicators.rsi, indicators.zscore) = (3, 3, 3, 3);
    (indicators.ema_fast, indicators.ema_slow) = (2, 4);
    config
}

/// Stages and outputs of one partition.
struct Partition {
    source: TopicPartition,
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    stages: Vec<GroupStage>,
    merge: SignalMerge,
}

/// A small engine: one thread, one transaction per tick record.
struct Run<'a> {
    log: &'a SqliteLog,
    producer: Box<dyn Producer>,
    writer: JournalWriter,
    scheduler: Scheduler,
    at_ns: i64,
    partitions: BTreeMap<i32, Partition>,
    /// Allowed lateness of the current life, ms.
    lateness_ms: i64,
    outcomes: bool,
    late_outcomes: bool,
    /// Outcome of the last commit, while it is not in the journal.
    untold: Option<CommitEnded>,
    entries: Vec<Vec<u8>>,
    /// Offset of the next command to execute.
    next_command: i64,
}

impl<'a> Run<'a> {
    fn new(log: &'a SqliteLog) -> Self {
        let producer = log.producer("run").unwrap();
        let (writer, scheduler) = (JournalWriter::new(), Scheduler::new());
        Self {
            log,
            producer,
            writer,
            scheduler,
            at_ns: 1_000_000_000,
            partitions: BTreeMap::new(),
            lateness_ms: 0,
            outcomes: true,
            late_outcomes: false,
            untold: None,
            entries: Vec::new(),
            next_command: 0,
        }
    }

    /// Runs a process: starts it, processes these records of each partition, and drains it.
    fn live(&mut self, lateness_ms: i64, records: std::ops::Range<usize>, plan: Plan) {
        let config = stage_config(lateness_ms);
        if std::mem::replace(&mut self.lateness_ms, lateness_ms) != lateness_ms {
            self.partitions.clear();
        }
        self.scheduler = Scheduler::new();
        let lane = |lane: i32| LaneSpec::new(lane, format!("cpu:{lane}"), 1);
        let started = Started {
            node: "node".to_owned(),
            software: env!("CARGO_PKG_VERSION").to_owned(),
            stage_config: config.to_json(),
            scheduler: SchedulerConfig {
                placement_seed: plan.placement_seed,
                ..if plan.pauses { narrow_config() } else { scheduler_config() }
            },
            lanes: vec![lane(0), lane(1)],
            autoscale: None,
            shadow: None,
            rules: RULES,
        };
        self.step(Input::Started(Box::new(started.clone())));
        for partition in 0..PARTITIONS {
            let committed_offset = records.start as i64;
            let fold = || Partition::fold(self.log, partition, &config, committed_offset);
            let owned = self.partitions.entry(partition).or_insert_with(fold);
            let groups = owned.queues.len() as i32;
            self.step(Input::PartitionAssigned(PartitionAssigned {
                partition,
                groups,
                committed_offset,
                snapshot_offset: committed_offset,
                ..PartitionAssigned::default()
            }));
        }
        for (number, offset) in records.enumerate() {
            if plan.checkpoint == Some(number) {
                self.write_checkpoint(&started);
            }
            if plan.loss == Some(number) {
                let (lane, reason) = (1, "it broke".to_owned());
                self.step(Input::LaneLost(LaneLost { lane, reason, kept: true }));
                self.step(Input::LaneReady(LaneReady { lane }));
            }
            for partition in 0..PARTITIONS {
                self.process(partition, offset as i64);
            }
            if number < plan.commands {
                self.obey();
            }
            if plan.snapshot == Some(number) {
                self.write_snapshots(offset as i64 + 1);
            }
        }
        self.tell_outcome();
        self.step(Input::Draining(Draining {}));
        self.commit(Vec::new(), &[]);
    }

    /// Executes and answers the next command.
    fn obey(&mut self) {
        let offset = self.next_command;
        self.next_command += 1;
        let source = TopicPartition { topic: "control".to_owned(), partition: 0 };
        let control = decode_control(&read_one(self.log, &source, offset).value);
        let at_ns = self.at_ns + 1_000_000;
        let (id, outcome, detail, sequence) = match (ControlRefusal::of(&control), control) {
            (None, Ok(Control { id, by, deadline_ns, command, .. })) => {
                let (sequence, entry) = (self.writer.next_sequence(), self.entries.len());
                let control = journal::Control { offset, id, by, deadline_ns, command };
                self.step(Input::Control(control));
                let decisions = decode_journal_entry(&self.entries[entry]).unwrap().decisions;
                let Decision::Controlled(Controlled { id, outcome, detail }) = decisions[0].clone() else {
                    panic!("{decisions:?}")
                };
                (id, outcome, detail, Some(sequence))
            }
            (refusal, _) => {
                let ControlRefusal { id, detail } = refusal.unwrap();
                (id, ControlOutcome::Refused, detail, None)
            }
        };
        let (ordinal, node) = (0, "node".to_owned());
        let result = ControlResult { id, ordinal, node, offset, at_ns, outcome, detail, sequence };
        let mut value = Vec::new();
        encode_control_result(&result, &mut value);
        let record = new_record("control.results", 0, Some(result.id.as_bytes()), value);
        self.commit(vec![record], &[]);
    }

    /// Writes the scheduler's state in several parts, as engines do. The first part contains nothing of the state.
    fn write_checkpoint(&mut self, started: &Started) {
        let state = self.scheduler.checkpoint();
        let parts: Vec<_> = std::iter::once(&[][..]).chain(state.chunks(CHECKPOINT_PART_BYTES)).collect();
        let count = parts.len() as i32;
        assert!(count > 2);
        for (part, state) in (0..).zip(parts) {
            let started = (part == 0).then(|| Box::new(started.clone()));
            let state = StateBytes(state.to_vec());
            self.step(Input::Checkpoint(Checkpoint { started, part, parts: count, state }));
        }
    }

    /// Writes the state of each partition before the record at an offset.
    fn write_snapshots(&mut self, offset: i64) {
        let mut outputs = Vec::new();
        for (partition, owned) in &self.partitions {
            let mut intake = Vec::new();
            owned.intake.write(&mut intake);
            let mut pending = PendingSnapshot::new(offset, intake, owned.stages.len());
            for (group, stage) in (0..).zip(&owned.stages) {
                let mut state = Vec::new();
                stage.write(&mut state);
                pending.add(offset, group, state);
            }
            for state in snapshot_records(*partition, pending) {
                let mut value = Vec::new();
                encode_snapshot(&state, &mut value);
                let key = SnapshotPlace::First.key(&state);
                outputs.push(new_record("snapshots", *partition, Some(key.as_bytes()), value));
            }
        }
        self.commit(outputs, &[]);
    }

    fn step(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.at_ns += 1_000_000;
            let state_hash = self.scheduler.state_hash();
            let mut decisions = Vec::new();
            self.scheduler.step(self.at_ns, &input, &mut decisions).unwrap();
            let mut bytes = Vec::new();
            self.writer.append(self.at_ns, &input, &decisions, state_hash, &mut bytes);
            self.entries.push(bytes);
            for decision in decisions {
                let Decision::Dispatch(dispatch) = decision else { continue };
                for take in &dispatch.takes {
                    self.partitions
                        .get_mut(&take.partition)
                        .unwrap()
                        .run(take.group as usize, take.rows as usize);
                }
                let (lane, batch) = (dispatch.lane, dispatch.batch);
                inputs.push(Input::Completed(Completed { lane, batch, service_ns: 1_000, sample: None }));
            }
            // Completions arrive in the order of dispatch.
            inputs.reverse();
        }
    }

    fn process(&mut self, partition: i32, offset: i64) {
        let owned = self.partitions.get_mut(&partition).unwrap();
        let record = read_one(self.log, &owned.source, offset);
        let mut outputs = Vec::new();
        let groups = owned.accept(&record, &mut outputs);
        if !groups.is_empty() {
            self.step(Input::Arrived(Arrived { partition, next_offset: offset + 1, groups }));
        }
        let owned = self.partitions.get_mut(&partition).unwrap();
        assert!(owned.queues.iter().all(|queue| queue.rows.is_empty()), "lanes of this run are never busy");
        for signal in owned.merge.take_before(offset + 1).iter() {
            outputs.push(new_record("signals", partition, Some(signal.symbol), signal.bytes.to_vec()));
        }
        let source = owned.source.clone();
        let count = |topic: &str| outputs.iter().filter(|record| record.topic == topic).count() as i64;
        let account = SealedPartition {
            partition,
            first_offset: offset,
            next_offset: offset + 1,
            ticks_digest: tick_record_digest(&record).cast_signed(),
            signals: count("signals"),
            late: count("late"),
            dead_letters: count("dead-letter"),
            ..SealedPartition::default()
        };
        self.tell_outcome();
        self.step(Input::Sealed(Sealed { partitions: vec![account] }));
        self.commit(outputs, &[(source, offset + 1)]);
    }

    fn commit(&mut self, outputs: Vec<NewRecord<'static>>, offsets: &[(TopicPartition, i64)]) {
        self.producer.begin().unwrap();
        let entries = std::mem::take(&mut self.entries).into_iter();
        let entries = entries.map(|bytes| new_record("journal", 0, Some(b"node"), bytes));
        let timestamp_ns = self.at_ns;
        let outputs = outputs.into_iter().map(|record| NewRecord { timestamp_ns, ..record });
        for record in outputs.chain(entries) {
            self.producer.send(record).unwrap();
        }
        self.producer.send_offsets(GROUP, offsets).unwrap();
        let control = TopicPartition { topic: "control".to_owned(), partition: 0 };
        self.producer.send_offsets(GROUP, &[(control, self.next_command)]).unwrap();
        if offsets.is_empty() {
            let journal = TopicPartition { topic: "journal".to_owned(), partition: 0 };
            self.producer.send_position(GROUP, &journal, self.writer.next_sequence()).unwrap();
        }
        self.producer.commit().unwrap();
        if self.outcomes && !offsets.is_empty() {
            let sealed = self.writer.next_sequence() - 1;
            let (sent_ns, ended_ns) = (self.at_ns + 100_000, self.at_ns + 300_000);
            let (attempt, outcome, looked_up) = (1, CommitOutcome::Committed, false);
            self.untold = Some(CommitEnded { sealed, attempt, sent_ns, ended_ns, outcome, looked_up });
            if !self.late_outcomes {
                self.tell_outcome();
            }
        }
    }

    fn tell_outcome(&mut self) {
        let untold = self.untold.take();
        untold.into_iter().for_each(|ended| self.step(Input::CommitEnded(ended)));
    }
}

impl Partition {
    fn new(partition: i32, config: &StageConfig) -> Self {
        let groups = config.groups_per_partition;
        Self {
            source: TopicPartition { topic: "ticks".to_owned(), partition },
            intake: PartitionIntake::new(config),
            queues: (0..groups).map(|_| GroupQueue::default()).collect(),
            stages: (0..groups).map(|_| GroupStage::new(config, Isa::detect())).collect(),
            merge: SignalMerge::default(),
        }
    }

    /// Returns the state before the record at an offset: the fold of all earlier records.
    fn fold(log: &SqliteLog, partition: i32, config: &StageConfig, offset: i64) -> Self {
        let mut new = Self::new(partition, config);
        for record in records(log, "ticks", partition).iter().take(offset as usize) {
            new.accept(record, &mut Vec::new());
            for group in 0..new.queues.len() {
                new.run(group, new.queues[group].rows.len());
            }
            new.merge.take_before(i64::MAX);
        }
        new
    }

    fn accept(&mut self, record: &Record, outputs: &mut Vec<NewRecord<'static>>) -> Vec<GroupArrival> {
        let partition = self.source.partition;
        let (mut columns, mut late) = (TickColumns::default(), Vec::new());
        let decoder = &mut TickDecoder::new().by_rows(true);
        let decoded = decoder.decode(&record.value, self.intake.symbols_mut(), &mut columns);
        let mut bytes = Vec::new();
        if let Err(error) = decoded {
            encode_dead_letter_of(&self.source, record, &error, &mut bytes);
            outputs.push(new_record("dead-letter", partition, None, bytes));
            return Vec::new();
        }
        self.intake.accept(record.offset, record.timestamp_ns, &mut columns, 0, &mut self.queues, &mut late);
        assert_eq!(columns.rejected, [], "records are good as a whole, or not at all");
        for late in late {
            let mut bytes = Vec::new();
            let symbols = self.intake.symbols_mut();
            encode_late_tick_of(&self.source, record.offset, late, &columns, symbols, &mut bytes);
            outputs.push(new_record("late", partition, None, bytes));
        }
        let rows = self.queues.iter().map(|queue| queue.rows.len() as i64);
        let arrivals = (0..).zip(rows).map(|(group, rows)| GroupArrival { group, rows, bytes: rows * 40 });
        arrivals.filter(|arrival| arrival.rows > 0).collect()
    }

    fn run(&mut self, group: usize, rows: usize) {
        let input = self.queues[group].take(rows);
        let mut output = GroupOutput::default();
        self.stages[group].run(input, &mut output);
        self.merge.push(output.signals);
    }
}

pub fn scheduler_config() -> SchedulerConfig {
    SchedulerConfig {
        placement_policy: "rendezvous".to_owned(),
        placement_seed: 7,
        load_factor_percent: 125,
        lane_credit_rows: 10_000,
        lane_credit_bytes: 1_000_000,
        lane_batches_max: 4,
        batch_rows_max: 1_000,
        row_deadline_ns: 1_000_000,
        high_water_rows: 100_000,
        low_water_rows: 10_000,
        route_interval_ns: 0,
        balance_interval_ns: 0,
        risk: RiskConfig::default(),
        breakers: None,
    }
}

/// Returns a configuration in which lanes take so few rows at a time that rows of a record wait.
pub fn narrow_config() -> SchedulerConfig {
    SchedulerConfig {
        lane_credit_rows: 4,
        batch_rows_max: 4,
        high_water_rows: 8,
        low_water_rows: 2,
        ..scheduler_config()
    }
}

fn read_one(log: &SqliteLog, source: &TopicPartition, offset: i64) -> Record {
    records(log, &source.topic, source.partition).into_iter().nth(offset as usize).unwrap()
}
