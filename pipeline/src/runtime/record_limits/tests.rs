//! No record is too large: tests all kinds with the largest possible fields, and the engine under configurations that
//! `config check` allows.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use warptape_engine::{
    Assigned, Command, CommitAttempt, CommitRequest, Core, CoreError, Event, JournalPositions,
    LOST_REASON_BYTES_MAX, LaneNews, Outside, PendingSnapshot, Restored, cut, settle, snapshot_records, tell,
};
use warptape_eventlog::{NewRecord, Record};
use warptape_kernels::Indicator;
use warptape_schemas::Decimal;
use warptape_schemas::risk::{MarketAsOf, RiskError, RiskErrorCode, RiskOutcome, RiskResult, TaskClass};
use warptape_schemas::signal::{Bar, ExactBar, ExactFlow, INDICATOR_COUNT, Signal, SignalKind};
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{
    DecodeError, LateTick, Lifecycle, LifecycleEvent, SYMBOL_BYTES_MAX, TickDecoder, encode_late_tick,
    encode_lifecycle, encode_signal, encode_snapshot, encode_tick_batch,
};
use warptape_stages::formulas::FORMULAS_MAX;
use warptape_stages::risk::refusals;

use super::*;
use crate::runtime::dead_letter_headers::dead_letter_headers;
use crate::runtime::{EngineConfig, Stop, records_of};
use crate::settings::{Assignment, KEYS, Sources, ValueKind, load};

/// Returns the longest possible topic names: the longest prefix and the names themselves.
fn topics() -> Topics {
    Topics::new(&"p".repeat(64))
}

#[track_caller]
fn check(topics: &Topics, record: &NewRecord<'_>) {
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    let bytes = record.key.as_ref().map_or(0, |key| key.len()) + headers + record.value.len();
    let (_, needed) =
        needed(topics).into_iter().find(|(topic, _)| *topic == record.topic).expect("a topic of the engine");
    assert!(bytes <= needed, "a record of {bytes} bytes for {}, which takes {needed}", record.topic);
}

#[track_caller]
fn check_value(topics: &Topics, topic: &str, key_bytes: usize, value: Vec<u8>) {
    let (topic, key) = (topic.into(), Some(vec![0; key_bytes].into()));
    check(topics, &NewRecord { topic, key, value: value.into(), ..NewRecord::default() });
}

fn symbol(number: usize) -> String {
    format!("A:{number:0>width$}", width = SYMBOL_BYTES_MAX - 2)
}

fn tick(number: usize, event_time_ns: i64) -> Tick {
    Tick {
        symbol: symbol(number),
        kind: TickKind::Trade,
        event_time_ns,
        receive_time_ns: i64::MAX,
        trade_id: i64::MIN,
        side: Side::Sell,
        price_e9: i64::MAX,
        size_e9: i64::MAX,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

#[test]
fn the_largest_signal_and_late_tick_fit() {
    let topics = topics();
    let exact = ExactBar {
        open: Decimal(i128::MIN),
        high: Decimal(i128::MIN),
        low: Decimal(i128::MIN),
        close: Decimal(i128::MIN),
        volume: Decimal(i128::MIN),
        bid_price: Decimal(i128::MIN),
        ask_price: Decimal(i128::MIN),
    };
    let indicators = Indicator::ALL.into_iter().map(|indicator| indicator.name().into());
    let formulas = (0..FORMULAS_MAX).map(|number| format!("{number:a>64}").into());
    let further = indicators.chain(formulas).map(|name| (name, f64::MAX));
    let bar = Bar {
        open_e9: Some(i64::MIN),
        high_e9: Some(i64::MIN),
        low_e9: Some(i64::MIN),
        close_e9: Some(i64::MIN),
        volume_e9: i64::MIN,
        trades: i64::MIN,
        bid_price_e9: Some(i64::MIN),
        ask_price_e9: Some(i64::MIN),
        exact: Some(exact),
        indicators: [Some(f64::MAX); INDICATOR_COUNT],
        further_indicators: further.collect(),
        partial: Some(true),
        buy_volume_e9: Some(i64::MIN),
        sell_volume_e9: Some(i64::MIN),
        buy_trades: Some(i64::MIN),
        sell_trades: Some(i64::MIN),
        bid_size_e9: Some(i64::MIN),
        ask_size_e9: Some(i64::MIN),
        quote_forgotten: Some(true),
        exact_flow: Some(ExactFlow {
            buy_volume: Decimal(i128::MIN),
            sell_volume: Decimal(i128::MIN),
            bid_size: Decimal(i128::MIN),
            ask_size: Decimal(i128::MIN),
        }),
    };
    let signal = Signal {
        symbol: symbol(0).into(),
        kind: SignalKind::Bar,
        bar_spec: "volume:9223372036.854775807".into(),
        bar_start_ns: i64::MIN,
        bar_end_ns: i64::MIN,
        source_offset: i64::MIN,
        source_index: i32::MIN,
        value: f64::MAX,
        threshold: f64::MAX,
        bar: Some(bar),
        name: None,
    };
    let mut value = Vec::new();
    encode_signal(&signal, &mut value);
    check_value(&topics, &topics.signals, SYMBOL_BYTES_MAX, value);
    let tick = Tick { scales: Scales { price: 18, size: 18 }, ..tick(0, i64::MAX) };
    let late = LateTick::new("t".repeat(249), i32::MIN, i64::MIN, i32::MIN, tick, i64::MIN);
    assert_eq!(late.lateness_ns, i64::MIN, "as long as a number gets");
    let mut value = Vec::new();
    encode_late_tick(&late, &mut value);
    check_value(&topics, &topics.late, 0, value);
}

/// This error replaces a result of any kind that is larger than its topic accepts.
#[test]
fn the_largest_error_of_a_request_fits() {
    let topics = topics();
    let as_of = MarketAsOf {
        symbol: symbol(0),
        partition: i32::MIN,
        next_offset: i64::MIN,
        spot: Some(1.0),
        volatility: Some(1.0),
        returns: i32::MIN,
        window_ns: i64::MIN,
        time_ns: Some(i64::MIN),
    };
    let message = "m".repeat(3 * RESULT_BYTES_MIN as usize);
    let mut result = RiskResult {
        request_id: "r".repeat(128),
        tenant: "t".repeat(128),
        class: TaskClass::Batch,
        topic: "t".repeat(249),
        partition: i32::MIN,
        offset: i64::MIN,
        outcome: RiskOutcome::Error(RiskError {
            code: RiskErrorCode::Expired,
            field: String::new(),
            message,
        }),
        as_of: vec![as_of; 4_096],
        seed: i64::MIN,
        received_ns: i64::MIN,
        started_ns: i64::MIN,
        finished_ns: i64::MIN,
        compute_ns: i64::MIN,
        devices: vec!["d".repeat(64); 64],
        node: "n".repeat(64),
        decision_sequence: i64::MIN,
        cost_ns: i64::MIN,
        cost_max_ns: i64::MIN,
        cancels: Some("c".repeat(128)),
        judged_on: Vec::new(),
        rules: warptape_schemas::risk::RULES,
    };
    let whole = refusals::encode_bounded(&mut result.clone(), i64::MAX);
    assert!(whole.len() > 3 * RESULT_BYTES_MIN as usize, "without a limit it is as it is");
    assert_eq!(refusals::encode_bounded(&mut result.clone(), (128 + whole.len()) as i64), whole);
    let value = refusals::encode_bounded(&mut result, (127 + whole.len()) as i64);
    check_value(&topics, &topics.risk_results, 128, value);
    let RiskOutcome::Error(error) = &result.outcome else { panic!("{:?}", result.outcome) };
    let (bytes, bytes_max) = (128 + whole.len(), 127 + whole.len());
    assert!(error.message.contains(&format!("has {bytes} bytes")), "{}", error.message);
    assert!(error.message.contains(&format!("takes {bytes_max}:")), "{}", error.message);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn dead_letters_fit_whatever_the_record_was(
        key in prop_oneof![Just(None), (0_usize..9_000).prop_map(Some), (0_usize..2 << 20).prop_map(Some)],
        value in prop_oneof![0_usize..9_000, 500_000_usize..540_000, 0_usize..3 << 20],
        detail in prop_oneof![0_usize..100, 900_usize..1_100, 0_usize..1 << 20],
    ) {
        let topics = topics();
        let source = warptape_eventlog::TopicPartition { topic: "\u{20ac}".repeat(83), partition: i32::MIN };
        let record = Record {
            offset: i64::MIN,
            key: key.map(|bytes| vec![1; bytes]),
            headers: Vec::new(),
            timestamp_ns: 0,
            value: vec![2; value],
        };
        let error = DecodeError::UnusableSchema { id: u32::MAX, detail: "\u{20ac}".repeat(detail / 3) };
        let mut bytes = Vec::new();
        warptape_engine::encode_dead_letter_of(&source, &record, &error, &mut bytes);
        let headers = dead_letter_headers(&bytes).into();
        let (topic, value) = (topics.dead_letter.as_str().into(), bytes.into());
        check(&topics, &NewRecord { topic, headers, value, ..NewRecord::default() });
    }

    #[test]
    fn snapshots_and_lifecycle_fit(
        intake in 0_usize..2 << 20, group in 0_usize..2 << 20, detail in 0_usize..1 << 20,
    ) {
        let topics = topics();
        let mut pending = PendingSnapshot::new(i64::MAX, vec![3; intake], 1);
        pending.add(i64::MAX, 0, vec![4; group]);
        for snapshot in snapshot_records(i32::MAX, pending) {
            let mut value = Vec::new();
            encode_snapshot(&snapshot, &mut value);
            check_value(&topics, &topics.snapshots, 64, value);
        }
        let detail = cut("\u{20ac}".repeat(detail / 3), DETAIL_BYTES_MAX);
        let lifecycle = Lifecycle { at_ns: i64::MIN, node: "n".repeat(64), event: LifecycleEvent::Failed, detail };
        let mut value = Vec::new();
        encode_lifecycle(&lifecycle, &mut value);
        check_value(&topics, &topics.lifecycle, 64, value);
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Runs the engine under allowed configurations. Lanes are lost, groups wait in all lanes, and records are
    /// unreadable.
    #[test]
    fn the_engine_makes_nothing_too_large(seed in any::<u64>()) {
        let mut draws = Draws(seed);
        let config = allowed(&mut draws);
        drive(config, &mut draws);
    }
}

struct Draws(u64);

impl Draws {
    /// Draws a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn between(&mut self, min: i64, max: i64) -> i64 {
        let width = max.abs_diff(min).min(u64::MAX >> 34);
        min + self.below(width + 1) as i64
    }
}

/// Draws a value of a key, often at one of its limits; `None` keeps the default.
fn value(key: &'static crate::settings::Key, draws: &mut Draws) -> Option<String> {
    // Keys that slow the test down without making records larger are left out.
    let is_drawn = key.path.starts_with("scheduler.")
        || key.path.starts_with("risk.")
        || ["stages.groups_per_partition", "topics.partitions", "engine.devices"].contains(&key.path);
    if !is_drawn {
        return None;
    }
    match (key.path, &key.kind) {
        ("engine.devices", _) => Some(format!("cpu:{}", 1 << draws.below(7))),
        ("risk.tenant_weights", _) => {
            let tenants = draws.below(1_025);
            Some((0..tenants).map(|tenant| format!("{tenant:0>64}=1000")).collect::<Vec<_>>().join(","))
        }
        ("risk.quotas", _) => {
            let quotas = draws.below(257);
            let quota = |quota| format!("{quota:0>64} limit=1000000 rate=1000000 burst=1000000");
            Some((0..quotas).map(quota).collect::<Vec<_>>().join(","))
        }
        (_, &ValueKind::Integer { min, max, .. }) => match draws.below(4) {
            0 => Some(min.to_string()),
            1 => Some(max.to_string()),
            2 => Some(draws.between(min, max).to_string()),
            _ => None,
        },
        _ => None,
    }
}

/// Draws a configuration that `config check` allows. If keys contradict each other, fewer keys are drawn.
fn allowed(draws: &mut Draws) -> EngineConfig {
    let mut flags: Vec<Assignment> = KEYS
        .iter()
        .filter_map(|key| Some(Assignment { giver: "drawn", key: key.path, value: value(key, draws)? }))
        .collect();
    loop {
        let sources = Sources { cores: 4, flags: flags.clone(), ..Sources::default() };
        if let Ok((settings, _)) = load(&sources) {
            return settings.engine_config(None);
        }
        flags.remove(draws.below(flags.len() as u64) as usize);
    }
}

/// Number of the engine's partitions.
const PARTITIONS: i32 = 3;

struct Driven {
    core: Core,
    around: Around,
}

struct Around {
    config: EngineConfig,
    now_ns: i64,
    /// Events that the core will get.
    events: VecDeque<Event>,
    generations: BTreeMap<i32, u64>,
    lives: Vec<u32>,
    largest_entry: usize,
}

impl Outside for Around {
    type Error = CoreError;

    fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Checks the size of the records that the command would write.
    fn execute(&mut self, command: Command, _: &Core) -> Result<(), CoreError> {
        match command {
            Command::Seek { partition, generation, .. } => {
                self.generations.insert(partition, generation);
            }
            Command::StartLane { lane, life } => self.lives[lane as usize] = life,
            Command::Commit(request) => {
                self.look_at(&request);
                let (sent_ns, ended_ns) = (self.now_ns, self.now_ns);
                let attempt = CommitAttempt { sent_ns, ended_ns, looked_up: false };
                self.events.push_back(Event::Committed(attempt));
            }
            Command::Restore { number, .. } => {
                let restored = Box::new(Restored::beginning(&self.config.core.stages, self.config.isa));
                self.events.push_back(Event::Restored { number, restored });
            }
            Command::Lifecycle(_, detail) => assert!(detail.len() <= LOST_REASON_BYTES_MAX + 100),
            _ => {}
        }
        Ok(())
    }
}

impl Around {
    fn look_at(&mut self, request: &CommitRequest) {
        let topics = &self.config.core.topics;
        for record in records_of(request, topics, &self.config.core.node, self.config.ordinal) {
            check(topics, &record);
            if record.topic == topics.journal {
                self.largest_entry = self.largest_entry.max(record.value.len());
            }
        }
    }
}

impl Driven {
    fn tell(&mut self, event: Event) -> Result<(), CoreError> {
        tell(&mut self.core, &mut self.around, event)
    }

    /// Does everything that is due.
    fn settle(&mut self) {
        loop {
            settle(&mut self.core, &mut self.around).expect("the scheduler takes it");
            let is_idle = self.around.events.is_empty();
            while let Some(event) = self.around.events.pop_front() {
                self.tell(event).expect("the core takes it");
            }
            match self.core.wants().and_then(|wants| wants.wake_at_ns) {
                Some(at_ns) if at_ns <= self.around.now_ns + 1 => self.around.now_ns += 1,
                _ if is_idle => return,
                _ => {}
            }
        }
    }

    fn records(&mut self, partition: i32, offset: i64, values: Vec<(Option<Vec<u8>>, Vec<u8>)>) {
        let (generation, read_at_ns) = (self.around.generations[&partition], self.around.now_ns);
        let record = |(offset, (key, value))| Record { offset, key, headers: vec![], timestamp_ns: 0, value };
        let records: Vec<Record> = (offset..).zip(values).map(record).collect();
        let told = self.tell(Event::Records { partition, generation, records, ticks: None, read_at_ns });
        told.expect("the scheduler takes it");
        self.settle();
    }
}

fn drive(config: EngineConfig, draws: &mut Draws) {
    let mut core_config = config.core.clone();
    core_config.times.commit_interval_ns = 0;
    let core = Core::new(core_config, Box::new(TickDecoder::new()), None, JournalPositions::beginning())
        .expect("a new journal can be begun");
    let lanes = config.core.lanes.len() as u64;
    let lives = vec![0; config.core.lanes.len()];
    let now_ns = 1 << 60;
    let (events, generations) = (VecDeque::new(), BTreeMap::new());
    let around = Around { config, now_ns, events, generations, lives, largest_entry: 0 };
    let mut driven = Driven { core, around };
    driven.tell(Event::Begun).expect("the scheduler takes it");
    driven.settle();
    let assigned = (0..PARTITIONS).map(|partition| Assigned { partition, ..Assigned::default() });
    driven.tell(Event::Assigned(assigned.collect())).expect("nothing was processed before");
    driven.settle();
    // There are enough symbols for rows in all groups. Then come unreadable records that are larger than any topic
    // accepts.
    let mut batch = Vec::new();
    let good = |number: usize| Tick {
        receive_time_ns: 0,
        trade_id: 1,
        price_e9: 1,
        size_e9: 1,
        ..tick(number, 1 + number as i64)
    };
    let ticks: Vec<Tick> = (0..6_000).map(good).collect();
    encode_tick_batch(&ticks, &mut batch).expect("good ticks");
    for offset in 0..3 {
        for partition in 0..PARTITIONS {
            let poison =
                (Some(vec![5; draws.below(20_000) as usize]), vec![6; draws.below(2 << 20) as usize]);
            driven.records(partition, offset * 2, vec![(None, batch.clone()), poison]);
        }
        let lane = draws.below(lanes) as i32;
        let reason = "\u{20ac}".repeat(draws.below(1 << 20) as usize);
        // A lane that is not restarted is not lost again; the loss of the last lane ends the process.
        let life = driven.around.lives[lane as usize];
        let lost = driven.tell(Event::Lane { lane, life, news: LaneNews::Lost { reason } });
        driven.settle();
        if lost.is_err() {
            return;
        }
    }
    // A checkpoint contains the whole configuration and the state.
    driven.around.now_ns += driven.around.config.core.times.checkpoint_interval_ns;
    driven.settle();
    driven.tell(Event::Stop(Stop::Now)).expect("the scheduler takes it");
    driven.settle();
    assert!(driven.around.largest_entry > 0);
}
