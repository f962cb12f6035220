//! The whole pipeline through a Kafka broker: its speed compared with a loop in Python, and its latency from tick to
//! committed signal.
//!
//! Speed: trades of 1,023 symbols are in single-tick records, and in records of 256. A symbol has 40 trades per second
//! on average, as in the recordings, with activity roughly by Zipf's law. The pipeline computes all ten indicators on
//! bars of one second, and writes signals and decisions. The rival (`ema_loop.py`: confluent-kafka and fastavro) reads
//! the first of the single-tick records, keeps one EMA of the same bars, and writes nothing. Each is timed from the
//! first record it reads to its end, which is the last commit for the pipeline. All of them take turns, and their
//! medians are compared. Two checks come first. The pipeline's bars must be the same for both kinds of records. Every
//! EMA of the rival must equal the one in the bar's signal.
//!
//! Latency: an idempotent producer without linger sends single ticks at a steady rate, and every tick closes a bar
//! (`tick:1`). A reader of committed signals measures the time from the creation of a tick to the arrival of its
//! signal.
//!
//! To measure, run `tests/services run cargo bench -p warptape-tests --bench kafka`, with `-- latency` for the latency.
//! WARPTAPE_TEST_PYTHON must name a Python with the packages of `examples/python/requirements.txt`.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use hdrhistogram::Histogram;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use warptape_allocator::Allocator;
use warptape_eventlog::{EventLog, Fetched, KafkaLog, KafkaOptions, TopicPartition, TopicSpec};
use warptape_pipeline::publisher::create_missing_topics;
use warptape_pipeline::runtime::{EngineConfig, Progress, Stop, TopicPlan, Topics, run};
use warptape_schemas::signal::SignalKind;
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{decode_signal, encode_tick};
use warptape_sources::partition_of;
use warptape_stages::StageConfig;
use warptape_tests::engine_run::{
    engine_config, feed_topic, read_partition, run_to_end, stage_config, topic_ends,
};
use warptape_tests::random::Random;
use warptape_tests::turns::in_turn;

/// The allocator of the `warptape` binary.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const OCTAVES: u64 = 10;
const SYMBOLS: u64 = (1 << OCTAVES) - 1;
const PARTITIONS: i32 = 4;
const LANES: i32 = 2;
const RECORD_TICKS: usize = 256;
/// Record sizes, and total numbers of ticks in them; each takes a few seconds.
const TICKS: [(usize, u64); 2] = [(1, 4_000_000), (RECORD_TICKS, 16_000_000)];
/// Number of single ticks that the rival reads for timing. The next constant is the number for the comparison.
const PYTHON_TICKS: u64 = 500_000;
const PYTHON_CHECK_TICKS: u64 = 2_000_000;
/// Number of turns: three rounds of all six orders of three sides.
const TURNS: usize = 18;
/// Time between two trades of the whole market, in nanoseconds.
const GAP_NS: i64 = 25_000;
const START_NS: i64 = 1_700_000_000_000_000_000;
/// Index of the fast EMA among a bar's indicators.
const EMA_FAST: usize = warptape_kernels::Indicator::EmaFast as usize;
const EMA_ERROR_MAX: f64 = 1e-9;

const LATENCY_RATES: [u64; 2] = [1_000, 20_000];
const LATENCY_INTERVALS: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(100)];
const LATENCY_TIME: Duration = Duration::from_secs(15);
/// Time at the start whose ticks do not count, because the consumer is still joining its group.
const WARM_UP: Duration = Duration::from_secs(5);
const READ_WAIT: Duration = Duration::from_secs(30);

fn main() {
    warptape_allocator::set_up();
    let asked = |what: &str| std::env::args().any(|argument| argument == what);
    // `cargo test --benches` only checks that the benchmark runs.
    if !asked("--bench") {
        return;
    }
    if asked("latency") { latency() } else { speed() }
}

fn brokers() -> String {
    std::env::var("WARPTAPE_TEST_KAFKA").expect("run this by `tests/services run cargo bench …`")
}

fn now_ns() -> i64 {
    warptape_pipeline::clock::wall_clock_ns()
}

fn unique(name: &str) -> String {
    format!("bench-{name}-{}.", now_ns())
}

fn open() -> Arc<dyn EventLog> {
    Arc::new(KafkaLog::open(KafkaOptions::new(brokers())).expect("a broker"))
}

/// Returns a symbol, roughly by Zipf's law: every octave of symbol numbers is equally likely.
fn draw(number: u64) -> u64 {
    let bits = Random::new(number).bits();
    let octave = 1 << (bits % OCTAVES);
    octave + (bits >> 32) % octave - 1
}

fn trade(number: u64, event_time_ns: i64) -> Tick {
    let symbol = draw(number);
    // The price of each symbol is a saw-tooth of its own, in cents.
    let cents = 10_000 + (number / SYMBOLS * (symbol % 89 + 7)) % 997;
    Tick {
        symbol: format!("BENCH:S{symbol}"),
        kind: TickKind::Trade,
        event_time_ns,
        receive_time_ns: event_time_ns,
        trade_id: number as i64 + 1,
        side: Side::Buy,
        price_e9: cents as i64 * 10_000_000,
        size_e9: 1_000_000_000,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

fn new_topic(log: &dyn EventLog, name: &str) -> String {
    let spec = TopicSpec { name: name.to_owned(), partitions: PARTITIONS, ..TopicSpec::default() };
    log.create_topics(&[spec]).expect("the broker makes a topic");
    name.to_owned()
}

/// Returns the configuration of an engine that reads `ticks` and writes to topics of its own.
fn new_engine(log: &dyn EventLog, ticks: &str, stages: StageConfig) -> EngineConfig {
    let prefix = unique("run");
    let topics = Topics { ticks: ticks.to_owned(), ..Topics::new(&prefix) };
    create_missing_topics(log, &topics, &TopicPlan::new(PARTITIONS)).expect("the broker makes topics");
    {
        let mut config = engine_config(stages, LANES);
        config.core.topics = topics;
        config.core.group = prefix;
        config
    }
}

/// The fast EMA of every bar, by symbol and start time.
type Averages = HashMap<(String, i64), Option<f64>>;

fn averages(log: &dyn EventLog, topic: &str) -> Averages {
    let mut averages = HashMap::new();
    for partition in 0..PARTITIONS {
        for record in read_partition(log, topic, partition) {
            let signal = decode_signal(&record.value).expect("a signal");
            if let Some(bar) = &signal.bar {
                averages.insert((signal.symbol.to_string(), signal.bar_start_ns), bar.indicators[EMA_FAST]);
            }
        }
    }
    averages
}

/// Returns the time that the Python loop took.
fn python(topic: &str, ticks: u64, bars: Option<&Path>) -> Duration {
    let python = std::env::var("WARPTAPE_TEST_PYTHON").expect("WARPTAPE_TEST_PYTHON names a Python");
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ema_loop.py"));
    command.args([&brokers(), topic, &PARTITIONS.to_string(), &ticks.to_string()]).args(bars);
    let output = command.output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seconds = String::from_utf8_lossy(&output.stdout).trim().parse().expect("it prints seconds");
    Duration::from_secs_f64(seconds)
}

fn speed() {
    let log = open();
    let prefix = unique("ticks");
    let topics = TICKS.map(|(record_ticks, count)| {
        let topic = new_topic(log.as_ref(), &format!("{prefix}{record_ticks}"));
        let ticks = (0..count).map(|number| trade(number, START_NS + number as i64 * GAP_NS));
        feed_topic(&log, &topic, PARTITIONS, record_ticks, ticks);
        topic
    });
    let pipeline = |index: usize| {
        let config = new_engine(log.as_ref(), &topics[index], stage_config(&["1s"]));
        let signals = config.core.topics.signals.clone();
        let summary = run_to_end(&log, config);
        assert_eq!((summary.ticks, summary.late, summary.dead_letters), (TICKS[index].1, 0, 0));
        (Duration::from_nanos(summary.active_ns as u64), signals)
    };
    check(&topics[0], [0, 1].map(|index| averages(log.as_ref(), &pipeline(index).1)));

    let mut python_loop = || python(&topics[0], PYTHON_TICKS, None);
    let (mut single, mut batches) = (|| pipeline(0).0, || pipeline(1).0);
    let times = in_turn(TURNS, [&mut single, &mut batches, &mut python_loop]);
    let [(_, single_ticks), (_, batch_ticks)] = TICKS;
    let sides = [
        ("pipeline, single ticks", single_ticks),
        ("pipeline, records of 256", batch_ticks),
        ("Python, single ticks", PYTHON_TICKS),
    ];
    let speeds = [0, 1, 2].map(|side| {
        let (name, ticks) = sides[side];
        let speed = ticks as f64 / times[side].median.as_secs_f64();
        println!("{name}: {:.3} M ticks/s; {ticks} ticks in {}", speed / 1e6, times[side]);
        speed
    });
    let [single, batches, python] = speeds;
    println!("single ticks: {:.1} x Python", single / python);
    println!("records of 256: {:.2} x single ticks; {TURNS} times each, in turn", batches / single);
}

/// Checks that all three sides have the same bars with the same averages, as far as each one has them.
fn check(single_ticks: &str, [single, batches]: [Averages; 2]) {
    let unequal = single.iter().find(|(bar, average)| batches.get(bar) != Some(average));
    assert_eq!(unequal, None, "records of one tick or of many give the same");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("bars");
    python(single_ticks, PYTHON_CHECK_TICKS, Some(&file));
    let text = std::fs::read_to_string(&file).expect("Python wrote it");
    let mut full = 0;
    for line in text.lines() {
        let (symbol, start_ns, average): (String, i64, Option<f64>) =
            serde_json::from_str(line).expect("a bar");
        match (single[&(symbol.clone(), start_ns)], average) {
            (None, None) => {}
            (Some(ours), Some(other)) if (ours / other - 1.0).abs() < EMA_ERROR_MAX => full += 1,
            pair => panic!("{symbol}, bar at {start_ns} ns: {pair:?}"),
        }
    }
    assert!(full > SYMBOLS, "only {full} bars have an average");
    println!("{} bars are equal, {full} averages are those of Python", single.len());
}

fn latency() {
    let log = open();
    for rate in LATENCY_RATES {
        for interval in LATENCY_INTERVALS {
            let times = latency_at(&log, rate, interval);
            let [p50, p99] = [0.5, 0.99].map(|quantile| times.value_at_quantile(quantile) as f64 / 1e6);
            println!(
                "{rate} ticks/s, commits every {} ms: p50 {p50:.1} ms, p99 {p99:.1} ms of {} signals",
                interval.as_millis(),
                times.len()
            );
        }
    }
}

/// Returns the latencies from tick to committed signal, in nanoseconds.
fn latency_at(log: &Arc<dyn EventLog>, rate: u64, commit_interval: Duration) -> Histogram<u64> {
    let ticks = new_topic(log.as_ref(), &unique("latency"));
    let config = new_engine(log.as_ref(), &ticks, stage_config(&["tick:1"]));
    let signals_topic = config.core.topics.signals.clone();
    let config = {
        let mut config = config;
        config.core.times.commit_interval_ns = commit_interval.as_nanos() as i64;
        config
    };
    let progress = Arc::new(Progress::new(config.core.lanes.len()));
    let (stop, stopped) = bounded(1);
    let engine = {
        let log = log.clone();
        thread::spawn(move || run(log, config, progress, stopped))
    };
    let count = rate * LATENCY_TIME.as_secs();
    let reader = {
        let log = log.clone();
        thread::spawn(move || arrivals(log.as_ref(), &signals_topic, count))
    };
    publish_steadily(&ticks, rate, count);
    let times = reader.join().expect("the signals come");
    stop.send(Stop::At { ticks: topic_ends(log.as_ref(), &ticks), requests: Vec::new() })
        .expect("the engine runs");
    let summary = engine.join().expect("the engine does not panic").expect("the engine works");
    assert_eq!((summary.ticks, summary.late), (count, 0));
    times
}

/// Sends ticks at a rate, always for one millisecond at once. Their event time is the current time.
fn publish_steadily(topic: &str, rate: u64, count: u64) {
    let producer: ThreadedProducer<DefaultProducerContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers())
        .set("enable.idempotence", "true")
        .set("linger.ms", "0")
        .create()
        .expect("a producer");
    let started = Instant::now();
    let mut value = Vec::new();
    for number in 0..count {
        let due = Duration::from_millis(number * 1_000 / rate);
        if let Some(early) = due.checked_sub(started.elapsed()) {
            thread::park_timeout(early);
        }
        let tick = trade(number, now_ns());
        value.clear();
        encode_tick(&tick, &mut value).expect("a valid tick");
        let record = BaseRecord::to(topic)
            .partition(partition_of(&tick.symbol, PARTITIONS))
            .key(&tick.symbol)
            .payload(&value);
        producer.send(record).map_err(|(error, _)| error).expect("the queue has room");
    }
    producer.flush(READ_WAIT).expect("all ticks are delivered");
}

/// Reads the bars of `count` ticks, and returns the times from each tick to the arrival of its bar.
fn arrivals(log: &dyn EventLog, topic: &str, count: u64) -> Histogram<u64> {
    let partitions: Vec<_> =
        (0..PARTITIONS).map(|partition| TopicPartition { topic: topic.to_owned(), partition }).collect();
    let mut reader = log.reader(&partitions).expect("the topic exists");
    let mut times = Histogram::new(3).expect("three digits");
    let mut first_ns = None;
    let mut bars = 0;
    while bars < count {
        let Fetched::Records { records, .. } = reader.poll(READ_WAIT, 1024, usize::MAX).expect("a broker")
        else {
            panic!("{bars} bars of {count} ticks came");
        };
        let arrived_ns = now_ns();
        for record in records {
            let signal = decode_signal(&record.value).expect("a signal");
            if signal.kind != SignalKind::Bar {
                continue;
            }
            bars += 1;
            let tick_ns = signal.bar_start_ns;
            if tick_ns - *first_ns.get_or_insert(tick_ns) > WARM_UP.as_nanos() as i64 {
                times.record((arrived_ns - tick_ns) as u64).expect("a time in range");
            }
        }
    }
    times
}
