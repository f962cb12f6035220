//! Traces and metrics at a receiver that uses OpenTelemetry's own definitions, and at receivers that accept nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use warptape_eventlog::SqliteLog;
use warptape_pipeline::traces::trace_id;

use super::kafka_clients::given;
use super::outputs::records;
use super::processes::{DEADLINE, Running, ends, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const PARTITIONS: i32 = 4;

/// A running receiver.
pub struct Receiver {
    process: Child,
    input: ChildStdin,
    /// Thread that reads the receiver's output, so that the receiver does not block.
    lines: JoinHandle<()>,
    /// Requests received so far.
    taken: Arc<Mutex<Vec<Value>>>,
    pub url: String,
}

impl Receiver {
    pub fn start() -> Receiver {
        Self::refusing(0)
    }

    /// Starts a receiver that refuses the first `requests` requests on each path.
    fn refusing(requests: u32) -> Receiver {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scripts/otlp_receiver.py");
        let mut process = Command::new(given("WARPTAPE_TEST_PYTHON"))
            .args([script.to_str().expect("UTF-8"), &requests.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let input = process.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe"));
        let mut port = String::new();
        lines.read_line(&mut port).expect("the receiver says its port");
        let taken: Arc<Mutex<Vec<Value>>> = Arc::default();
        let of_thread = taken.clone();
        let read = move || {
            for line in lines.lines() {
                let value = serde_json::from_str(&line.expect("UTF-8")).expect("JSON");
                of_thread.lock().expect("nobody panics while holding it").push(value);
            }
        };
        let lines = std::thread::spawn(read);
        Receiver { process, input, lines, taken, url: format!("http://127.0.0.1:{}", port.trim()) }
    }

    /// Returns all received requests.
    pub fn taken(mut self) -> Vec<Value> {
        drop(self.input);
        assert!(self.process.wait().expect("it ends").success());
        self.lines.join().expect("it does not panic");
        std::mem::take(&mut self.taken.lock().expect("nobody panics while holding it"))
    }
}

fn feed(folder: &Path, seed: &str) {
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "20000", "--seed", seed];
    texts(&warptape(folder, &[&feed[..], &LOG].concat()), 0);
}

/// Runs the pipeline until everything is processed, ends it, and returns its output.
fn run(folder: &Path, url: &str, more: &[(&str, &str)], meanwhile: impl FnOnce()) -> String {
    let environment = [&[("WARPTAPE__OTLP__ENDPOINT", url)], more].concat();
    let mut process = Running::start_with(folder, &[&["run"][..], &LOG].concat(), &environment);
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log of the feed");
    run_until_drained(&mut process, &log, "warptape");
    meanwhile();
    process.signal("TERM");
    let (status, _, error) = process.finish();
    assert_eq!(status.code(), Some(0), "{error}");
    error
}

fn verify(folder: &Path) {
    let (out, _) = texts(&warptape(folder, &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0);
    assert!(out.contains("identical"), "{out}");
}

fn count(log: &SqliteLog, topic: &str) -> i64 {
    ends(log, topic).iter().sum()
}

fn number(span: &Value, name: &str) -> i64 {
    span["attributes"][name].as_i64().unwrap_or_else(|| panic!("{name} is missing in {span}"))
}

fn time(span: &Value, name: &str) -> u64 {
    span[name].as_u64().expect("a time")
}

fn hexadecimal(id: [u8; 16]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn each_sampled_record_is_a_trace_from_its_read_to_the_commit_of_its_signals() {
    let folder = folder();
    let folder = folder.path();
    feed(folder, "1");
    let receiver = Receiver::start();
    let all = [
        ("WARPTAPE__OTLP__SAMPLE_PPM", "1000000"),
        ("WARPTAPE__OTLP__HEADERS", "authorization=Bearer of-a-test"),
        ("WARPTAPE__ENGINE__NODE", "desk"),
        ("WARPTAPE__ENGINE__DEVICES", "cpu:2"),
    ];
    let request = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/risk/price.json");
    let ask =
        ["risk", "price", request.to_str().expect("UTF-8"), "--request-id", "desk-7", "--timeout-s", "120"];
    let said = run(folder, &receiver.url, &all, || {
        texts(&warptape(folder, &[&ask[..], &LOG].concat()), 0);
    });
    assert!(!said.contains("spans"), "{said}");
    let taken = receiver.taken();
    for line in &taken {
        assert_eq!(line["authorization"], "Bearer of-a-test", "{line}");
        let resource = &line["resource"];
        assert_eq!(
            (&resource["service.name"], &resource["service.instance.id"]),
            (&"warptape".into(), &"desk".into())
        );
    }
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log");
    let mut traces: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for span in taken.iter().filter(|line| line["kind"] == "span") {
        traces.entry(span["trace"].as_str().expect("an id").to_owned()).or_default().push(span);
    }
    let (mut signals, mut rows, mut symbols_max) = (0, 0, 0);
    for partition in 0..PARTITIONS {
        for record in records(&log, "ticks", partition) {
            let id = hexadecimal(trace_id("ticks", partition, record.offset));
            let spans =
                traces.remove(&id).unwrap_or_else(|| panic!("no trace of {partition}/{}", record.offset));
            let whole = spans.iter().find(|span| span["parent"] == "").expect("a root");
            assert_eq!(whole["name"], "record");
            assert_eq!(whole["attributes"]["messaging.destination.name"], "ticks");
            assert_eq!(whole["attributes"]["messaging.destination.partition.id"], partition.to_string());
            assert_eq!(number(whole, "messaging.kafka.offset"), record.offset);
            assert_eq!(number(whole, "messaging.message.body.size"), record.value.len() as i64);
            signals += number(whole, "warptape.signals");
            symbols_max = symbols_max.max(number(whole, "warptape.symbols"));
            let names: BTreeSet<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
            assert_eq!(names, BTreeSet::from(["record", "read", "queue", "batch", "seal", "commit"]), "{id}");
            let ids: BTreeSet<&str> = spans.iter().filter_map(|span| span["span"].as_str()).collect();
            assert_eq!(ids.len(), spans.len(), "{spans:?}");
            for span in &spans {
                assert!(time(span, "start_ns") <= time(span, "end_ns"), "{span}");
                assert!(time(span, "start_ns") >= time(whole, "start_ns"), "{span} in {whole}");
                assert!(time(span, "end_ns") <= time(whole, "end_ns"), "{span} in {whole}");
                assert_eq!(span["error"], Value::Null, "{span}");
                if span["parent"] != "" {
                    assert_eq!(span["parent"], whole["span"], "{span}");
                }
                if span["name"] == "batch" {
                    assert!((0..2).contains(&number(span, "warptape.lane")), "{span}");
                    assert!(number(span, "warptape.service_ns") > 0, "{span}");
                    rows += number(span, "warptape.rows");
                }
            }
            let one = |name: &str| *spans.iter().find(|span| span["name"] == name).expect("it is there");
            assert_eq!(time(one("read"), "end_ns"), time(one("queue"), "start_ns"));
            assert_eq!(time(one("seal"), "end_ns"), time(one("commit"), "start_ns"));
            assert_eq!(time(one("commit"), "end_ns"), time(whole, "end_ns"));
        }
    }
    // Each tick is a row, and watermarks add some more; each signal has one cause.
    assert!(rows >= 20_000, "{rows}");
    assert_eq!(signals, count(&log, "signals"));
    assert!((2..=20).contains(&symbols_max), "{symbols_max}");

    // The last remaining trace belongs to the request.
    let [spans] = &traces.into_values().collect::<Vec<_>>()[..] else { panic!("one trace is left") };
    let whole = spans.iter().find(|span| span["parent"] == "").expect("a root");
    assert_eq!(
        (&whole["name"], &whole["attributes"]["warptape.request.id"]),
        (&"risk request".into(), &"desk-7".into())
    );
    let names: BTreeSet<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    assert_eq!(names, BTreeSet::from(["risk request", "wait", "prepare", "slice", "seal", "commit"]));

    // Only the last value of each metric counts.
    let mut values: BTreeMap<String, (&Value, f64)> = BTreeMap::new();
    for metric in taken.iter().filter(|line| line["kind"] == "metric") {
        let name =
            format!("{}{}", metric["name"].as_str().expect("a name"), metric["attributes"]["warptape.lane"]);
        values.insert(name, (metric, metric["value"].as_f64().expect("a number")));
    }
    let value = |name: &str| values.get(name).unwrap_or_else(|| panic!("{name} is missing in {values:?}"));
    assert_eq!(value("warptape.ticksnull").1, 20_000.0);
    assert_eq!(value("warptape.ticksnull").0["unit"], "");
    assert_eq!(value("warptape.signalsnull").1, count(&log, "signals") as f64);
    assert_eq!(value("warptape.risk_requestsnull").1, 1.0);
    assert_eq!(value("warptape.otlp_lost_spansnull").1, 0.0);
    assert_eq!((value("warptape.lane_rows0").1 + value("warptape.lane_rows1").1), rows_done(&log));
    assert!(value("warptape.lane_busy0").1 > 0.0 && value("warptape.lane_busy0").0["unit"] == "s");
    drop(log);
    verify(folder);
}

/// Returns the number of rows in all batches of the journal.
fn rows_done(log: &SqliteLog) -> f64 {
    use warptape_schemas::decode_journal_entry;
    use warptape_schemas::journal::Decision;
    let entries = records(log, "journal", 0);
    let entries = entries.iter().map(|record| decode_journal_entry(&record.value).expect("an entry"));
    let rows = entries.flat_map(|entry| entry.decisions).filter_map(|decision| match decision {
        Decision::Dispatch(dispatch) => Some(dispatch.rows),
        _ => None,
    });
    rows.sum::<i64>() as f64
}

/// Returns the trace ids of the records.
fn traced(taken: &[Value]) -> BTreeSet<&str> {
    let wholes = taken.iter().filter(|line| line["kind"] == "span" && line["name"] == "record");
    wholes.filter_map(|span| span["trace"].as_str()).collect()
}

/// Asserts that a receiver has a trace of each tick record, and the run's counts.
fn check_all(folder: &Path, taken: &[Value]) {
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log");
    assert_eq!(traced(taken).len() as i64, count(&log, "ticks"));
    let value = |name: &str| {
        let all = taken.iter().filter(|line| line["kind"] == "metric" && line["name"] == name);
        all.filter_map(|metric| metric["value"].as_f64()).fold(0.0, f64::max)
    };
    assert_eq!(value("warptape.ticks"), 20_000.0);
    assert_eq!(value("warptape.signals"), count(&log, "signals") as f64);
    assert_eq!(value("warptape.otlp_lost_spans"), 0.0);
}

#[test]
fn what_a_receiver_cannot_take_for_the_moment_is_sent_again() {
    let folder = folder();
    let folder = folder.path();
    feed(folder, "1");
    let receiver = Receiver::refusing(2);
    let settings = [("WARPTAPE__OTLP__SAMPLE_PPM", "1000000"), ("WARPTAPE__OTLP__METRICS_INTERVAL_S", "1")];
    let url = receiver.url.clone();
    // An ending process tries each request only once, so it is asked to end only after all requests have arrived.
    let taken = receiver.taken.clone();
    let said = run(folder, &url, &settings, || {
        let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log");
        let started = Instant::now();
        while traced(&taken.lock().expect("nobody panics while holding it")).len() as i64
            != count(&log, "ticks")
        {
            assert!(started.elapsed() < DEADLINE, "not all records are traced");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    });
    assert!(!said.contains("cannot be exported") && !said.contains("spans were not exported"), "{said}");
    check_all(folder, &receiver.taken());
}

#[test]
fn a_collector_takes_traces_and_metrics_and_sends_them_on() {
    let folder = folder();
    let folder = folder.path();
    feed(folder, "1");
    let receiver = Receiver::start();
    let collector = Collector::start(folder, &receiver.url);
    let settings = [("WARPTAPE__OTLP__SAMPLE_PPM", "1000000"), ("WARPTAPE__OTLP__METRICS_INTERVAL_S", "1")];
    let said = run(folder, &collector.url, &settings, || {});
    assert!(!said.contains("cannot be exported") && !said.contains("spans were not exported"), "{said}");
    collector.stop();
    check_all(folder, &receiver.taken());
}

/// Rotel, a collector that receives and exports OTLP; it is killed when dropped.
struct Collector {
    process: Child,
    url: String,
}

impl Collector {
    /// Starts the collector, which sends its data to a receiver.
    fn start(folder: &Path, receiver: &str) -> Collector {
        // Another process may take a free port a moment later.
        for _ in 0..10 {
            let ports = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port"));
            let [http, grpc] = ports.map(|port| port.local_addr().expect("an address").to_string());
            let log = std::fs::File::create(folder.join("rotel.log")).expect("a file");
            let mut process = Command::new(rotel())
                .args(["start", "--otlp-http-endpoint", &http, "--otlp-grpc-endpoint", &grpc])
                .args(["--exporter", "otlp", "--otlp-exporter-endpoint", receiver])
                .args(["--otlp-exporter-protocol", "http"])
                .stdin(Stdio::null())
                .stdout(log)
                .spawn()
                .expect("rotel starts: tests/requirements.txt has it");
            let url = format!("http://{http}");
            loop {
                if process.try_wait().expect("a child can be waited for").is_some() {
                    break;
                }
                if std::net::TcpStream::connect(&http).is_ok() {
                    return Collector { process, url };
                }
                std::thread::park_timeout(Duration::from_millis(50));
            }
        }
        let said = std::fs::read_to_string(folder.join("rotel.log")).expect("its log");
        panic!("rotel ended by itself: {said}")
    }

    /// Ends the collector after it has sent all its data.
    fn stop(mut self) {
        let killed = Command::new("kill").arg(self.process.id().to_string()).status();
        assert!(killed.expect("kill runs").success());
        assert!(self.process.wait().expect("it ends").success());
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Returns the path of the collector's binary in its Python package.
fn rotel() -> std::path::PathBuf {
    let find = "import importlib.util as u, os; print(os.path.join(os.path.dirname(u.find_spec('rotel').origin), 'rotel-agent'))";
    let found =
        Command::new(given("WARPTAPE_TEST_PYTHON")).args(["-c", find]).output().expect("Python starts");
    assert!(
        found.status.success(),
        "tests/requirements.txt has rotel: {}",
        String::from_utf8_lossy(&found.stderr)
    );
    String::from_utf8(found.stdout).expect("UTF-8").trim().into()
}

#[test]
fn a_sample_is_the_same_in_every_run() {
    let sampled = |seed: &str| -> BTreeSet<String> {
        let folder = folder();
        feed(folder.path(), seed);
        let receiver = Receiver::start();
        run(folder.path(), &receiver.url, &[("WARPTAPE__OTLP__SAMPLE_PPM", "200000")], || {});
        let taken = receiver.taken();
        let spans = taken.iter().filter(|line| line["kind"] == "span");
        spans.map(|span| span["trace"].as_str().expect("an id").to_owned()).collect()
    };
    // Sampling depends on the records' offsets, so other ticks at the same offsets are sampled alike.
    let first = sampled("1");
    assert!(!first.is_empty());
    assert_eq!(first, sampled("2"));
}

#[test]
fn a_receiver_that_hangs_or_refuses_costs_spans_and_nothing_else() {
    let all = [("WARPTAPE__OTLP__SAMPLE_PPM", "1000000")];
    // This receiver accepts connections, but never answers.
    let hanging = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().expect("an address"));
    let folder = folder();
    let folder = folder.path();
    feed(folder, "1");
    let said = run(folder, &address(&hanging), &all, || {});
    assert!(said.contains("does not answer; the process ends without waiting for it"), "{said}");
    assert!(said.contains("spans were not exported spans="), "{said}");
    drop(hanging);

    // Nothing listens at this address.
    let gone = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = address(&gone);
    drop(gone);
    feed(folder, "2");
    let said = run(folder, &url, &all, || {});
    assert_eq!(said.matches("traces cannot be exported").count(), 1, "{said}");
    assert_eq!(said.matches("metrics cannot be exported").count(), 1, "{said}");
    assert!(said.contains("spans were not exported spans="), "{said}");
    verify(folder);

    // Invalid headers are an error of the configuration, and the message does not show them.
    let headers = [("WARPTAPE__OTLP__ENDPOINT", url.as_str()), ("WARPTAPE__OTLP__HEADERS", "hidden")];
    let refused = super::processes::warptape_with(folder, &[&["run"][..], &LOG].concat(), &headers);
    let (_, error) = texts(&refused, 2);
    assert!(error.contains("otlp.headers: item 1 is not NAME=VALUE") && !error.contains("hidden"), "{error}");
}
