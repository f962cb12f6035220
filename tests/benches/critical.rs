//! Critical risk requests at the worst time: the engine reads at full speed, a flood of batch tasks waits, and all
//! cores are busy.
//!
//! Before the engine starts, the log has a backlog of ticks, and batch requests that take minutes. One thread per core
//! keeps the machine busy. 200 critical requests are published one after another, each in its own transaction. Each has
//! two options, alternately with given prices and with market prices. Two times are measured from the publication of a
//! request, which is the end of its transaction. One ends when the engine has read it, the other when its first slice
//! begins. The times are the engine's own, from the result.
//!
//! `cargo bench -p warptape-tests --bench critical` uses the embedded log. `-- kafka` uses a broker, with
//! `tests/services run cargo bench …`. Two numbers as arguments set the count of requests, and the millions of ticks.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{bounded, never};
use serde_json::{Value, json};
use warptape_allocator::Allocator;
use warptape_eventlog::{
    Durability, EventLog, Fetched, KafkaLog, KafkaOptions, NewRecord, SqliteLog, TopicPartition,
};
use warptape_pipeline::clock::wall_clock_ns;
use warptape_pipeline::publisher::{Publisher, create_missing_topics};
use warptape_pipeline::runtime::{EngineConfig, Progress, Stop, TopicPlan, Topics, run};
use warptape_pipeline::settings::{Sources, load};
use warptape_schemas::risk::{RiskErrorCode, RiskOutcome, RiskRequest, RiskResult};
use warptape_schemas::{decode_risk_result, encode_risk_request};
use warptape_sources::synth::{SynthConfig, SynthSource};

/// The allocator of the `warptape` binary.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const PARTITIONS: i32 = 4;
const RECORD_TICKS: usize = 256;
const REQUESTS: u64 = 200;
const MILLIONS: u64 = 6;
/// Number of batch requests in the log; each one takes about an eighth of a second of one core.
const FLOOD: usize = 1_000;
/// Time between two critical requests.
const EVERY: Duration = Duration::from_millis(20);
/// Time before the first critical request, in which the engine gets its partitions.
const FIRST: Duration = Duration::from_millis(500);
const ANSWERS_MAX: Duration = Duration::from_secs(120);

fn main() {
    warptape_allocator::set_up();
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test --benches` only checks that the benchmark runs.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let (requests, millions) =
        (numbers.first().copied().unwrap_or(REQUESTS), numbers.get(1).copied().unwrap_or(MILLIONS));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (name, log, prefix): (_, Arc<dyn EventLog>, _) = match arguments.iter().any(|one| one == "kafka") {
        true => {
            let brokers = std::env::var("WARPTAPE_TEST_KAFKA");
            let brokers = brokers.expect("run this by `tests/services run cargo bench …`");
            let log = KafkaLog::open(KafkaOptions::new(brokers)).expect("a broker");
            ("Kafka", Arc::new(log), format!("critical-{}.", wall_clock_ns()))
        }
        false => {
            let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
            ("the embedded log", Arc::new(log), String::new())
        }
    };
    measure(name, &log, &prefix, requests, 1_000_000 * millions);
}

fn measure(name: &str, log: &Arc<dyn EventLog>, prefix: &str, requests: u64, ticks: u64) {
    let topics = Topics::new(prefix);
    create_missing_topics(log.as_ref(), &topics, &TopicPlan::new(PARTITIONS)).expect("topics can be made");
    feed(log, &topics, ticks);
    let mut asker = Asker::new(log, &topics);
    asker.ask(&(0..FLOOD).map(|number| (format!("flood-{number}"), batch())).collect::<Vec<_>>());
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let config = configuration(&topics, prefix, cores);
    let progress = Arc::new(Progress::new(config.core.lanes.len()));
    let (stop, stopped) = bounded(1);
    let busy = Busy::start(cores);
    let (engine_log, of_engine) = (log.clone(), progress.clone());
    let engine = thread::spawn(move || run(engine_log, config, of_engine, stopped));
    let began = Instant::now();
    let mut published = BTreeMap::new();
    for number in 0..requests {
        let due = FIRST + EVERY * number as u32;
        _ = never::<()>().recv_timeout(due.saturating_sub(began.elapsed()));
        let id = format!("critical-{number}");
        asker.ask(&[(id.clone(), critical(number))]);
        published.insert(id, wall_clock_ns());
    }
    let asked = began.elapsed();
    let at_last = progress.ticks.load(Ordering::Relaxed);
    let answers = answers(log, &topics, &published);
    stop.send(Stop::Now).expect("the engine runs");
    busy.stop();
    let summary = engine.join().expect("the engine does not panic").expect("the engine works");
    println!(
        "{name}: {requests} critical requests, one each {} ms, beside {FLOOD} batch requests, {cores} busy threads on {cores} cores; \
         {:.2} million of {:.0} million ticks read when the last was asked after {:.1} s, {} in all",
        EVERY.as_millis(),
        at_last as f64 / 1e6,
        ticks as f64 / 1e6,
        asked.as_secs_f64(),
        summary.ticks,
    );
    let print = |what: &str, of: fn(&RiskResult) -> i64| {
        let mut times: Vec<f64> = answers
            .iter()
            .map(|answer| (of(answer) - published[&answer.request_id]).max(0) as f64 / 1e6)
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |quantile: f64| times[((times.len() - 1) as f64 * quantile).round() as usize];
        println!("  {what:<28} p50 {:>7.2} ms  p99 {:>7.2} ms  most {:>7.2} ms", at(0.5), at(0.99), at(1.0));
    };
    print("publication to receipt", |answer| answer.received_ns);
    print("publication to first slice", |answer| answer.started_ns);
    print("publication to answer", |answer| answer.finished_ns);
}

/// Returns the default configuration of `warptape run`, except for the names of its topics and group.
fn configuration(topics: &Topics, prefix: &str, cores: usize) -> EngineConfig {
    let sources = Sources { cores, ..Sources::default() };
    let mut config = load(&sources).expect("the defaults are good").0.engine_config(None);
    config.core.topics = topics.clone();
    config.core.group = format!("{prefix}group");
    config
}

fn feed(log: &Arc<dyn EventLog>, topics: &Topics, ticks: u64) {
    let batch = NonZeroUsize::new(RECORD_TICKS).expect("a batch has ticks");
    let publisher = Publisher::new(log, "feed", &topics.ticks, PARTITIONS, batch, Box::new(|| None));
    let mut publisher = publisher.expect("the log takes a producer");
    let synth = SynthConfig { symbols: 500, ticks: Some(ticks), ..SynthConfig::default() };
    for tick in SynthSource::new(synth).expect("a market") {
        publisher.push(tick).expect("a good tick");
    }
    publisher.flush().expect("the log takes the ticks");
}

fn request(class: &str, problem: &Value) -> RiskRequest {
    let request = json!({"request_id": "", "class": class, "problem": problem});
    serde_json::from_value(request).expect("a request")
}

fn batch() -> RiskRequest {
    let asset = json!({"symbol": "given", "spot": 100.0, "volatility": 0.25, "rate": 0.02});
    let contract = json!({"type": "asian", "kind": "call", "strike": 105.0});
    let problem = json!({"type": "simulation", "assets": [asset], "expiry_years": 1.0, "steps": 252,
                         "paths_max": 20_000, "contract": contract});
    request("BATCH", &problem)
}

fn critical(number: u64) -> RiskRequest {
    let spot = if number.is_multiple_of(2) { json!(100.0) } else { json!({"from": "market"}) };
    let symbol = if number.is_multiple_of(2) { "given" } else { "SYNTH:AAAA" };
    let asset = json!({"symbol": symbol, "spot": spot, "volatility": 0.25, "rate": 0.02});
    let option = |kind: &str| json!({"asset": 0, "kind": kind, "strike": 105.0, "expiry_years": 0.5});
    let problem = json!({"type": "options", "assets": [asset], "options": [option("call"), option("put")]});
    request("CRITICAL", &problem)
}

/// Publishes requests.
struct Asker {
    producer: Box<dyn warptape_eventlog::Producer>,
    topic: String,
    asked: i32,
}

impl Asker {
    fn new(log: &Arc<dyn EventLog>, topics: &Topics) -> Self {
        let producer = log.producer(&format!("asks-{}", wall_clock_ns())).expect("a producer");
        Self { producer, topic: topics.risk_requests.clone(), asked: 0 }
    }

    /// Publishes requests in one transaction.
    fn ask(&mut self, requests: &[(String, RiskRequest)]) {
        self.producer.begin().expect("a transaction");
        for (id, request) in requests {
            let request = RiskRequest { request_id: id.clone(), ..request.clone() };
            let mut value = Vec::new();
            encode_risk_request(&request, &mut value);
            let record = NewRecord {
                topic: self.topic.as_str().into(),
                partition: self.asked % PARTITIONS,
                timestamp_ns: wall_clock_ns(),
                value: value.into(),
                ..NewRecord::default()
            };
            self.asked += 1;
            self.producer.send(record).expect("the log takes it");
        }
        self.producer.commit().expect("the log takes it");
    }
}

/// Waits until all requests have answers, and returns the answers without an error.
fn answers(log: &Arc<dyn EventLog>, topics: &Topics, asked: &BTreeMap<String, i64>) -> Vec<RiskResult> {
    let place = |partition| TopicPartition { topic: topics.risk_results.clone(), partition };
    let places: Vec<TopicPartition> = (0..PARTITIONS).map(place).collect();
    let mut reader = log.reader(&places).expect("the topic exists");
    let (mut found, began) = (Vec::new(), Instant::now());
    while found.len() < asked.len() {
        assert!(began.elapsed() < ANSWERS_MAX, "{} of {} requests have an answer", found.len(), asked.len());
        let fetched = reader.poll(Duration::from_millis(100), 4_096, 16 << 20).expect("the log is readable");
        let Fetched::Records { records, .. } = fetched else { continue };
        let results = records.iter().map(|record| decode_risk_result(&record.value).expect("a result"));
        found.extend(results.filter(|result| asked.contains_key(&result.request_id)));
    }
    // Before its first tick is read, a symbol is unknown.
    let code = |result: &RiskResult| match &result.outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    };
    let wrong =
        found.iter().find(|result| code(result).is_some_and(|code| code != RiskErrorCode::UnknownSymbol));
    assert!(wrong.is_none(), "{wrong:?}");
    found.retain(|result| code(result).is_none());
    found
}

/// Threads that keep the cores busy.
struct Busy {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Busy {
    fn start(count: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let spin = || {
            let over = over.clone();
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = (0..count).map(|_| spin()).collect();
        Self { over, threads }
    }

    fn stop(self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    }
}
