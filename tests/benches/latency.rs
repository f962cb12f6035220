//! Latency from the intended publication of a tick until an observer has read the signal that it causes.
//!
//! Feed, pipeline and observer are three processes, as in production. The feed keeps an open-loop schedule and stamps
//! each record with the time at which it was due. So a delay of any of the three counts. The observer, this process,
//! reads ticks and signals, and takes the time at which it has a signal. Feed and pipeline commit at the same interval.
//!
//! ```text
//! cargo build --release
//! cargo bench -p warptape-tests --bench latency                       rates 1k, 10k, 100k and 500k, commits of 1, 10 and 100 ms
//! cargo bench -p warptape-tests --bench latency -- 10000 1            one rate, one interval
//! tests/services run cargo bench -p warptape-tests --bench latency -- kafka
//! ```
//!
//! `WARPTAPE_BENCH_COMMAND` names another binary than `target/release/warptape`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use warptape_eventlog::{Consumer, EventLog, Fetched, OpenMode, TopicPartition, open_url};
use warptape_pipeline::clock::wall_clock_ns;
use warptape_schemas::decode_signal;

const RATES: [u64; 4] = [1_000, 10_000, 100_000, 500_000];
const COMMITS_MS: [u64; 3] = [1, 10, 100];
/// Length of one measurement, and the part at its beginning that does not count.
const SECONDS: u64 = 12;
const WARM_UP: Duration = Duration::from_secs(2);
const SYMBOLS: &str = "500";
const PARTITIONS: i32 = 4;
/// Time after which an observer without records gives up.
const QUIET_MAX: Duration = Duration::from_secs(10);
const LATENCY_NS_MAX: u64 = 600_000_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test --benches` only checks that the benchmark is built.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let rates = numbers.first().map_or_else(|| RATES.to_vec(), |rate| vec![*rate]);
    let commits_ms = numbers.get(1).map_or_else(|| COMMITS_MS.to_vec(), |commit_ms| vec![*commit_ms]);
    let is_on_kafka = arguments.iter().any(|argument| argument == "kafka");
    let command = std::env::var_os("WARPTAPE_BENCH_COMMAND").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/warptape"),
        PathBuf::from,
    );
    println!(
        "| ticks/s | commits | ticks/s in fact | signals | p50 | p99 | p99.9 | slowest |\n| --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for &rate in &rates {
        for &commit_ms in &commits_ms {
            let Measured { latency_ns, ticks_per_second } = measure(&command, rate, commit_ms, is_on_kafka);
            let ms = |quantile: f64| latency_ns.value_at_quantile(quantile) as f64 / 1e6;
            println!(
                "| {rate} | {commit_ms} ms | {ticks_per_second:.0} | {} | {:.2} ms | {:.2} ms | {:.2} ms | {:.1} ms |",
                latency_ns.len(),
                ms(0.5),
                ms(0.99),
                ms(0.999),
                ms(1.0),
            );
        }
    }
}

struct Measured {
    latency_ns: Histogram<u64>,
    ticks_per_second: f64,
}

/// A process that is killed when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn measure(command: &Path, rate: u64, commit_ms: u64, is_on_kafka: bool) -> Measured {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (url, prefix) = match is_on_kafka {
        true => {
            let brokers = std::env::var("WARPTAPE_TEST_KAFKA");
            let brokers = brokers.expect("run this by `tests/services run cargo bench …`");
            (format!("kafka:{brokers}"), format!("latency-{}.", wall_clock_ns()))
        }
        false => (format!("sqlite:{}", folder.path().join("log.db").display()), String::new()),
    };
    let config = folder.path().join("w.toml");
    let text = format!(
        "log.url = \"{url}\"\ntopics.prefix = \"{prefix}\"\ntopics.partitions = {PARTITIONS}\nstages.bars = [\"1s\"]\n\
         engine.commit_interval_ms = {commit_ms}\n"
    );
    std::fs::write(&config, text).expect("a file");
    let start = |arguments: &[&str]| {
        let mut process = Command::new(command);
        process.args(arguments).arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        Process(process.spawn().unwrap_or_else(|error| panic!("{}: {error}", command.display())))
    };
    let created = start(&["topics", "create"]).0.wait().expect("a process");
    assert!(created.success(), "the topics were not created");
    let log = open_url(&url, OpenMode::Read).expect("a log");
    let _run = start(&["run"]);
    let ticks = (rate * SECONDS).to_string();
    // The smallest records that keep up with the rate: one tick each up to 10,000 ticks/s.
    let batch = if rate <= 10_000 { "1" } else { "256" };
    let (rate, commit_ms) = (rate.to_string(), commit_ms.to_string());
    let feed = ["feed", "synth", "--symbols", SYMBOLS, "--ticks", &ticks, "--batch", batch];
    let mut feed = start(&[&feed[..], &["--rate", &rate, "--commit-ms", &commit_ms]].concat());
    observe(&*log, &prefix, &mut feed, ticks.parse().expect("a number"))
}

/// Reads until the feed has ended and no more signals come.
fn observe(log: &dyn EventLog, prefix: &str, feed: &mut Process, ticks: u64) -> Measured {
    let of = |name: &str| -> Vec<TopicPartition> {
        (0..PARTITIONS)
            .map(|partition| TopicPartition { topic: format!("{prefix}{name}"), partition })
            .collect()
    };
    let (signals, sources) = (of("signals"), of("ticks"));
    let mut reader = log.reader(&[&signals[..], &sources].concat()).expect("a reader");
    // Times at which records of ticks were due, by partition and offset.
    let mut due: BTreeMap<(i32, i64), i64> = BTreeMap::new();
    let mut latency_ns = Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, 3).expect("valid bounds");
    let (mut first_ns, mut last_ns) = (None, 0);
    let mut last_read = Instant::now();
    // Signals whose tick was not read yet, with the time at which they were read.
    let mut early: Vec<((i32, i64), i64)> = Vec::new();
    let mut has_fed = false;
    loop {
        has_fed = has_fed || feed.0.try_wait().expect("a process").is_some();
        let Fetched::Records { source, records } = poll(&mut *reader) else {
            let quiet = if has_fed { Duration::from_secs(1) } else { QUIET_MAX };
            if last_read.elapsed() >= quiet {
                break;
            }
            continue;
        };
        let now_ns = wall_clock_ns();
        last_read = Instant::now();
        let is_signals = source.topic == signals[0].topic;
        for record in records {
            if is_signals {
                let offset = decode_signal(&record.value).expect("a signal").source_offset;
                early.push(((source.partition, offset), now_ns));
            } else {
                first_ns.get_or_insert(record.timestamp_ns);
                last_ns = now_ns;
                due.insert((source.partition, record.offset), record.timestamp_ns);
            }
        }
        let counts_from_ns = first_ns.unwrap_or(i64::MAX).saturating_add(WARM_UP.as_nanos() as i64);
        early.retain(|(place, read_ns)| {
            let Some(&due_ns) = due.get(place) else { return true };
            if due_ns >= counts_from_ns {
                let latency = (read_ns - due_ns).clamp(0, LATENCY_NS_MAX as i64) as u64;
                latency_ns.record(latency).expect("a value within the bounds");
            }
            false
        });
    }
    assert!(has_fed, "the feed did not end");
    assert!(early.is_empty(), "{} signals have no tick", early.len());
    let seconds = (last_ns - first_ns.expect("ticks")) as f64 / 1e9;
    Measured { latency_ns, ticks_per_second: ticks as f64 / seconds }
}

fn poll(reader: &mut dyn Consumer) -> Fetched {
    reader.poll(Duration::from_millis(10), 4_096, 1 << 20).expect("the log can be read")
}
