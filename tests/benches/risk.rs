//! Risk requests during a flow of ticks: met deadlines by class, how late the errors of expired requests come, and the
//! effect on ticks.
//!
//! For some seconds, 200,000 synthetic ticks per second go through the embedded log and the whole engine with one lane.
//! Runs without requests alternate with runs that have four streams of requests. Ticks and requests are prepared in
//! advance, because real publishers run elsewhere. Ticks have two latencies. One is from a row's arrival at the engine
//! to the end of its batch, according to the journal. The other is from the read of its record to the commit of its
//! signals. Requests are measured from their creation to the engine's answer.
//!
//! `cargo bench -p warptape-tests --bench risk` prints a table; `-- SECONDS ROUNDS` changes the lengths. `-- queue
//! SECONDS` (3 s by default) only uses small requests. It measures the time from a request's acceptance by the
//! scheduler until it is in its lane's queue.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded, never};
use hdrhistogram::Histogram;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::histogram::Histogram as PrometheusHistogram;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use warptape_allocator::Allocator;
use warptape_eventlog::{Durability, EventLog, NewRecord, Record, SqliteLog};
use warptape_pipeline::runtime::{Progress, Stop, run};
use warptape_schemas::journal::{Decision, Input};
use warptape_schemas::risk::{RiskErrorCode, RiskOutcome, RiskRequest};
use warptape_schemas::{decode_journal_entry, decode_risk_result, encode_risk_request};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_tests::engine_run::{engine_config, publisher, read_partition, stage_config, topic_ends};

/// The allocator of the `warptape` binary.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

const RATE: u64 = 200_000;
const RECORD_TICKS: usize = 64;
const PARTITIONS: i32 = 4;
const LANES: i32 = 1;
/// Time between two publications of ticks.
const FEED_INTERVAL: Duration = Duration::from_millis(5);

/// A stream of equal requests.
struct Stream {
    name: &'static str,
    class: &'static str,
    every: Duration,
    deadline: Option<Duration>,
    problem: fn() -> Value,
}

const STREAMS: [Stream; 4] = [
    Stream {
        name: "1,000 options in closed form",
        class: "CRITICAL",
        every: Duration::from_millis(50),
        deadline: Some(Duration::from_millis(50)),
        problem: options,
    },
    Stream {
        name: "European, 100,000 paths",
        class: "INTERACTIVE",
        every: Duration::from_millis(100),
        deadline: Some(Duration::from_millis(200)),
        problem: || simulation("european", 1, 100_000),
    },
    Stream {
        name: "Asian, 20,000 paths of 252",
        class: "BATCH",
        every: Duration::from_millis(1_000),
        deadline: None,
        problem: || simulation("asian", 252, 20_000),
    },
    Stream {
        name: "Asian, 10 million paths: expires",
        class: "BATCH",
        every: Duration::from_millis(500),
        deadline: Some(Duration::from_millis(120)),
        problem: || simulation("asian", 252, 10_000_000),
    },
];

/// Streams of small requests, at three rates.
const QUEUED: [[Stream; 1]; 3] = [queued(20), queued(5), queued(1)];

const fn queued(every_ms: u64) -> [Stream; 1] {
    let every = Duration::from_millis(every_ms);
    [Stream { name: "two digital options", class: "INTERACTIVE", every, deadline: None, problem: digitals }]
}

fn digitals() -> Value {
    let option = |kind: &str| {
        json!({"asset": 0, "kind": kind, "pays": "cash", "amount": 1000.0, "strike": 105.0,
               "expiry_years": 0.5})
    };
    json!({"type": "digital-options", "assets": [asset()], "options": [option("call"), option("put")]})
}

fn asset() -> Value {
    json!({"symbol": "given", "spot": 100.0, "volatility": 0.25, "rate": 0.02})
}

fn options() -> Value {
    let option =
        |strike: i32| json!({"asset": 0, "kind": "put", "strike": 50 + strike % 100, "expiry_years": 0.5});
    json!({"type": "options", "assets": [asset()], "options": (0..1_000).map(option).collect::<Vec<_>>()})
}

fn simulation(contract: &str, steps: i32, paths_max: i64) -> Value {
    json!({"type": "simulation", "assets": [asset()], "expiry_years": 1.0, "steps": steps, "paths_max": paths_max,
           "contract": {"type": contract, "kind": "call", "strike": 105.0}})
}

fn main() {
    warptape_allocator::set_up();
    let is_queue = std::env::args().any(|argument| argument == "queue");
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (seconds, rounds) =
        (numbers.first().copied().unwrap_or(3), numbers.get(1).copied().unwrap_or(25) as usize);
    let ticks = RATE * seconds;
    let market = market(ticks);
    match is_queue {
        true => print_queued(ticks, &market),
        false => print_streams(ticks, &market, rounds),
    }
}

/// Prints the times from acceptance to the lane's queue, for each rate of requests.
fn print_queued(ticks: u64, market: &[(i32, Record)]) {
    for streams in &QUEUED {
        let run = Run::new(ticks, market, streams);
        let (count, mean_us, shares) = distribution(&run.enqueue);
        let shares: Vec<_> =
            shares.iter().map(|(us, share)| format!("{share:.1} % below {us:.1} us")).collect();
        println!(
            "a request every {} ms: {count} begun at once, {mean_us:.1} us to the queue of the lane in the mean; {}",
            streams[0].every.as_millis(),
            shares.join(", "),
        );
    }
}

/// Returns a histogram's count, its mean in microseconds, and its distribution: the percentage below each bucket bound
/// from 10 to 1,000 µs. The histogram is in seconds.
fn distribution(histogram: &PrometheusHistogram) -> (u64, f64, Vec<(f64, f64)>) {
    let mut registry = Registry::default();
    registry.register("x", "x", histogram.clone());
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes all");
    let value = |of: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(of));
        line.expect("a histogram has it").trim().parse().expect("a number")
    };
    let count = value("x_count");
    let bucket = |line: &str| -> Option<(f64, f64)> {
        let (bound, below) = line.strip_prefix("x_bucket{le=\"")?.split_once("\"}")?;
        Some((bound.parse::<f64>().ok()? * 1e6, below.trim().parse::<f64>().ok()? / count * 100.0))
    };
    let shares = text.lines().filter_map(bucket).filter(|(us, _)| (10.0..1_000.0).contains(us)).collect();
    (count as u64, value("x_sum") / count * 1e6, shares)
}

fn print_streams(ticks: u64, market: &[(i32, Record)], rounds: usize) {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        runs[0].push(Run::new(ticks, market, &[]));
        runs[1].push(Run::new(ticks, market, &STREAMS));
    }
    println!("{RATE} ticks/s for {} s, {LANES} lane, medians of {rounds} runs each, in turn", ticks / RATE);
    let median = |of: &dyn Fn(&Run) -> f64, runs: &[Run]| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let batch = |run: &Run| run.batch_ns.value_at_quantile(quantile) as f64 / 1e3;
        let commit = |run: &Run| run.commit_ns.value_at_quantile(quantile) as f64 / 1e6;
        let [without, with] = [&runs[0], &runs[1]].map(|runs| median(&batch, runs));
        println!(
            "{name:>6}  arrival to end of batch  {without:>8.0} us  {with:>8.0} us with risk  {:+.0} %",
            (with / without - 1.0) * 100.0
        );
        let [without, with] = [&runs[0], &runs[1]].map(|runs| median(&commit, runs));
        println!(
            "{name:>6}  read to commit           {without:>8.2} ms  {with:>8.2} ms with risk  {:+.0} %",
            (with / without - 1.0) * 100.0
        );
    }
    for (stream, place) in STREAMS.iter().zip(0..) {
        let of = |pick: &dyn Fn(&Answers) -> f64| median(&|run: &Run| pick(&run.answers[place]), &runs[1]);
        let total: u64 = runs[1].iter().map(|run| run.answers[place].latency_ns.len()).sum();
        let missed: u64 = runs[1].iter().map(|run| run.answers[place].expired).sum();
        let p = |quantile: f64| of(&|answers| answers.latency_ns.value_at_quantile(quantile) as f64 / 1e6);
        println!(
            "{:<34} {:<12} {total:>5} answers, {missed} expired, p50 {:.1} ms, p99 {:.1} ms; error p99 {:.1} ms after its deadline",
            stream.name,
            stream.class,
            p(0.5),
            p(0.99),
            of(&|answers| answers.behind_deadline_ns.value_at_quantile(0.99) as f64 / 1e6),
        );
    }
}

fn now_ns() -> i64 {
    warptape_pipeline::clock::wall_clock_ns()
}

/// The results of one stream.
struct Answers {
    latency_ns: Histogram<u64>,
    /// Times from the deadline to the error.
    behind_deadline_ns: Histogram<u64>,
    expired: u64,
}

struct Run {
    /// Times of rows from arrival to the end of their batch.
    batch_ns: Histogram<u64>,
    /// Times of signals from the read of the record to the commit.
    commit_ns: Histogram<u64>,
    answers: Vec<Answers>,
    /// Times from acceptance to the lane's queue, in seconds, for requests that began at once.
    enqueue: PrometheusHistogram,
}

fn new_log(folder: &tempfile::TempDir) -> Arc<dyn EventLog> {
    let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).expect("a new log");
    Arc::new(log)
}

/// Returns the records of a market with their partitions, in order of arrival.
fn market(ticks: u64) -> Vec<(i32, Record)> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = new_log(&folder);
    let mut publisher = publisher(&log, PARTITIONS, RECORD_TICKS);
    let synth = SynthConfig { symbols: 500, ticks: Some(ticks), ..SynthConfig::default() };
    for tick in SynthSource::new(synth).expect("a market") {
        publisher.push(tick).expect("a good tick");
    }
    publisher.flush().expect("the log takes it");
    let mut market = Vec::new();
    for partition in 0..PARTITIONS {
        let records = read_partition(log.as_ref(), "ticks", partition);
        let count = records.len() as f64;
        let place = |at: usize| at as f64 / count;
        market.extend((0..).zip(records).map(|(at, record)| (place(at), (partition, record))));
    }
    market.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    market.into_iter().map(|(_, record)| record).collect()
}

impl Run {
    fn new(ticks: u64, market: &[(i32, Record)], streams: &'static [Stream]) -> Run {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = new_log(&folder);
        drop(publisher(&log, PARTITIONS, RECORD_TICKS));
        let mut feed = log.producer("feed").expect("a producer");
        let base = engine_config(stage_config(&["1s", "1m", "5m"]), LANES);
        let mut config = base;
        config.core.times.commit_interval_ns = 10_000_000;
        let progress = Arc::new(Progress::new(config.core.lanes.len()));
        let (stop, stopped) = bounded(1);
        let engine = {
            let log = log.clone();
            let engine = thread::Builder::new().name("engine".to_owned());
            let progress = progress.clone();
            engine.spawn(move || run(log, config, progress, stopped)).expect("a thread")
        };
        let (over, is_over) = bounded(0);
        let asker = (!streams.is_empty()).then(|| {
            let log = log.clone();
            let asker = thread::Builder::new().name("asker".to_owned());
            asker.spawn(move || ask(&log, streams, &is_over)).expect("a thread")
        });
        let began = Instant::now();
        let (mut left, pause) = (market, never::<()>());
        while !left.is_empty() {
            let due = (began.elapsed().as_secs_f64() * RATE as f64) as usize / RECORD_TICKS;
            let (now, later) = left.split_at((due + left.len()).saturating_sub(market.len()).min(left.len()));
            left = later;
            feed.begin().expect("a transaction");
            for (partition, record) in now {
                let record = NewRecord {
                    topic: "ticks".into(),
                    partition: *partition,
                    key: record.key.as_deref().map(Into::into),
                    headers: Default::default(),
                    timestamp_ns: record.timestamp_ns,
                    value: record.value.as_slice().into(),
                    ..NewRecord::default()
                };
                feed.send(record).expect("the log takes it");
            }
            feed.commit().expect("the log takes it");
            pause.recv_timeout(FEED_INTERVAL).expect_err("nobody sends");
        }
        drop(over);
        let asked = asker.map(|asker| asker.join().expect("the asker does not panic")).unwrap_or_default();
        let ends = |topic: &str| topic_ends(log.as_ref(), topic);
        stop.send(Stop::At { ticks: ends("ticks"), requests: ends("risk.requests") })
            .expect("the engine runs");
        let summary = engine.join().expect("the engine does not panic").expect("the engine works");
        assert_eq!((summary.ticks, summary.dead_letters), (ticks, 0));
        let answers =
            (0..).zip(streams).map(|(place, stream)| answers(&log, place, stream, &asked)).collect();
        let enqueue = progress.latencies.risk_enqueue.clone();
        Run { batch_ns: batches(&log), commit_ns: summary.latency_ns, answers, enqueue }
    }
}

/// Sends requests until the run is over. Returns the creation time of each by its id.
fn ask(log: &Arc<dyn EventLog>, streams: &[Stream], is_over: &Receiver<()>) -> BTreeMap<String, i64> {
    let mut producer = log.producer("asks").expect("a producer");
    let mut asked = BTreeMap::new();
    let request = |stream: &Stream| {
        let request = json!({"request_id": "", "class": stream.class, "problem": (stream.problem)()});
        serde_json::from_value::<RiskRequest>(request).expect("a request")
    };
    let mut requests: Vec<_> = streams.iter().map(request).collect();
    let began = Instant::now();
    let mut next = vec![Duration::ZERO; streams.len()];
    loop {
        let due = next.iter().min().expect("there are streams").saturating_sub(began.elapsed());
        if is_over.recv_timeout(due) == Err(RecvTimeoutError::Disconnected) {
            return asked;
        }
        for (place, stream) in streams.iter().enumerate() {
            if began.elapsed() < next[place] {
                continue;
            }
            next[place] += stream.every;
            let (id, created_ns) = (format!("{place}/{}", asked.len()), now_ns());
            let request = &mut requests[place];
            request.request_id.clone_from(&id);
            request.deadline_ns = stream.deadline.map(|deadline| created_ns + deadline.as_nanos() as i64);
            let mut value = Vec::new();
            encode_risk_request(request, &mut value);
            producer.begin().expect("a transaction");
            let record = NewRecord {
                topic: "risk.requests".into(),
                partition: (asked.len() % PARTITIONS as usize) as i32,
                key: None,
                headers: Default::default(),
                timestamp_ns: created_ns,
                value: value.into(),
                ..NewRecord::default()
            };
            producer.send(record).expect("the log takes it");
            producer.commit().expect("the log takes it");
            asked.insert(id, created_ns);
        }
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000_000, 3).expect("good bounds")
}

fn answers(log: &Arc<dyn EventLog>, place: usize, stream: &Stream, asked: &BTreeMap<String, i64>) -> Answers {
    let mut answers = Answers { latency_ns: histogram(), behind_deadline_ns: histogram(), expired: 0 };
    let mut open = asked.keys().filter(|id| id.starts_with(&format!("{place}/"))).count();
    for partition in 0..PARTITIONS {
        for record in read_partition(log.as_ref(), "risk.results", partition) {
            let result = decode_risk_result(&record.value).expect("a result");
            if !result.request_id.starts_with(&format!("{place}/")) {
                continue;
            }
            open -= 1;
            let created_ns = asked[&result.request_id];
            answers.latency_ns.record((result.finished_ns - created_ns).max(1) as u64).expect("in bounds");
            if let RiskOutcome::Error(error) = &result.outcome {
                assert_eq!(error.code, RiskErrorCode::Expired, "{error:?}");
                answers.expired += 1;
                let deadline_ns = stream.deadline.expect("it had one").as_nanos() as i64;
                let behind_ns = result.finished_ns - created_ns - deadline_ns;
                answers.behind_deadline_ns.record(behind_ns.max(1) as u64).expect("in bounds");
            }
        }
    }
    assert_eq!(open, 0, "every request has its answer");
    answers
}

/// Returns the times of all rows, from the oldest arrival of their batch to its end.
fn batches(log: &Arc<dyn EventLog>) -> Histogram<u64> {
    let mut batches = histogram();
    let mut running = BTreeMap::new();
    for record in read_partition(log.as_ref(), "journal", 0) {
        let entry = decode_journal_entry(&record.value).expect("an entry");
        if let Input::Completed(completed) = &entry.input
            && let Some((arrived_ns, rows)) = running.remove(&completed.batch)
        {
            let waited_ns: i64 = entry.at_ns - arrived_ns;
            batches.record_n(waited_ns.max(1) as u64, rows).expect("in bounds");
        }
        for decision in entry.decisions {
            if let Decision::Dispatch(dispatch) = decision {
                running.insert(dispatch.batch, (dispatch.oldest_arrival_ns, dispatch.rows as u64));
            }
        }
    }
    batches
}
