//! `replay timeline`: the output is a trace according to Perfetto's own definitions, and contains all work of a run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use warptape_eventlog::SqliteLog;
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::Decision;

use super::kafka_clients::given;
use super::outputs::records;
use super::processes::{Running, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:market.db"];
const CONFIGURATION: &str = "\
[engine]
devices = [\"cpu:2\"]
commit_interval_ms = 20
poll_records_max = 8
[stages]
bars = [\"1s\", \"tick:20\"]
[topics]
partitions = 2
[scheduler]
high_water_rows = 200
low_water_rows = 100
[autoscale]
policy = \"reactive\"
window_s = 1
utilization_percent = 1
hysteresis_percent = 0
hold_windows = 0
";

fn run_in(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    let all = [arguments, &["-c", "warptape.toml"], &LOG].concat();
    texts(&warptape(folder, &all), code)
}

/// Reads a timeline with Perfetto's own definitions.
fn read(folder: &Path, name: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scripts/check_timeline.py");
    let python = Command::new(given("WARPTAPE_TEST_PYTHON"))
        .arg(script)
        .arg(name)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("Python starts");
    serde_json::from_str(&texts(&python, 0).0).expect("JSON")
}

#[test]
fn a_run_is_a_trace_by_perfettos_own_definitions() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("warptape.toml"), CONFIGURATION).expect("a file");
    let feed = |seed: &str| {
        run_in(folder, &["feed", "synth", "--ticks", "30000", "--symbols", "30", "--seed", seed], 0);
    };
    feed("1");
    let mut run = Running::start(folder, &[&["run", "-c", "warptape.toml"][..], &LOG].concat());
    let log = SqliteLog::open_existing(folder.join("market.db")).expect("the log");
    run_until_drained(&mut run, &log, "warptape");
    for words in
        [&["drain", "1"][..], &["undrain", "1"], &["breaker", "0", "open"], &["breaker", "0", "auto"]]
    {
        let told = [&["control"], words, &["--timeout-s", "120"]].concat();
        run_in(folder, &told, 0);
    }
    let request = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/risk/price.json");
    run_in(folder, &["risk", "price", request.to_str().expect("UTF-8"), "--timeout-s", "120"], 0);
    feed("2");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let journal = records(&log, "journal", 0);
    let decisions =
        journal.iter().flat_map(|record| decode_journal_entry(&record.value).expect("an entry").decisions);
    let wishes = decisions.filter(|decision| matches!(decision, Decision::Scale(_))).count() as u64;
    let entries = journal.len();
    drop(log);

    let to = ["replay", "timeline", "--to", "run.pftrace"];
    let (out, _) = run_in(folder, &to, 0);
    assert!(out.contains("timeline in run.pftrace: 1 process life, "), "{out}");
    assert!(out.contains("https://ui.perfetto.dev") && !out.contains("left out"), "{out}");
    let found = read(folder, "run.pftrace");
    for slice in [
        "batch: idle",
        "service",
        "assigned",
        "paused",
        "transaction",
        "commit",
        "attempt",
        "move: drained",
        "move: breaker",
        "slice: interactive",
        "request: finished",
    ] {
        assert!(found["slices"][slice].as_u64() > Some(0), "{slice} is missing in {found}");
    }
    for instant in ["arrived", "placed", "all units done"] {
        assert!(found["instants"][instant].as_u64() > Some(0), "{instant} is missing in {found}");
    }
    for counter in ["rows waiting", "rows in flight"] {
        assert!(found["counters"][counter].as_u64() > Some(10), "{counter} is missing in {found}");
    }
    // The wanted number begins as the number of lanes, and each wish sets another number.
    assert_eq!(found["counters"]["lanes wanted"], wishes + 1, "{found}");
    let of_wishes = found["instants"]["number of wanted lanes changes"].as_u64().unwrap_or(0);
    assert_eq!(of_wishes, wishes, "{found}");
    for track in ["lane 0 (cpu:0)", "lane 1 (cpu:1)", "partition 0", "partition 1", "commits", "moves"] {
        let tracks = found["tracks"].as_array().expect("tracks");
        assert!(tracks.iter().any(|name| name == track), "{track} is missing in {found}");
    }
    let batches = found["slices"]["service"].as_u64().expect("a number");
    assert!(found["flows"]["whole"].as_u64() >= Some(2 * batches), "{found}");

    // Existing files are not overwritten.
    let (_, error) = run_in(folder, &to, 2);
    assert!(error.contains("run.pftrace exists, and existing files are never overwritten"), "{error}");

    // The timeline of a window contains less, and the JSON shows that.
    let since = format!("sequence:{}", entries / 2);
    let window = ["replay", "timeline", "--to", "window.pftrace", "--since", &since];
    let (out, _) = run_in(folder, &[&window[..], &["-o", "json"]].concat(), 0);
    let drawn: Value = serde_json::from_str(&out).expect("JSON");
    assert!(drawn["batches"].as_u64() < Some(batches), "{drawn}");
    let within = read(folder, "window.pftrace");
    assert!(within["counters"]["lanes wanted"].as_u64() >= Some(1), "{within}");
    assert!(within["first_ns"].as_u64() > found["first_ns"].as_u64(), "{within}");
}

#[test]
fn a_log_without_a_journal_has_no_timeline() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("warptape.toml"), CONFIGURATION).expect("a file");
    run_in(folder, &["feed", "synth", "--ticks", "1000", "--symbols", "3"], 0);
    let (_, error) = run_in(folder, &["replay", "timeline", "--to", "run.pftrace"], 2);
    assert!(error.contains("journal"), "{error}");
    let (_, error) =
        run_in(folder, &["replay", "timeline", "--to", "run.pftrace", "--since", "yesterday"], 2);
    assert!(error.contains("no bound; give a time such as"), "{error}");
    // A window that ends before it begins is an error, not an empty window.
    let window = ["--since", "2026-11-24T03:00:00Z", "--until", "2026-11-24T02:00:00Z"];
    for command in [
        &["timeline", "--to", "run.pftrace"][..],
        &["report", "--to", "pftrace.html"],
        &["export", "--to", "pftrace.db"],
        &["slowest", "3"],
    ] {
        let (_, error) = run_in(folder, &[&["replay"], command, &window].concat(), 2);
        assert!(error.contains("the window is empty"), "{error}");
    }
    let (_, error) =
        texts(&warptape(folder, &["replay", "timeline", "--to", "x", "--log", "sqlite:nowhere.db"]), 2);
    assert!(error.contains("nowhere.db"), "{error}");
    let left = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().contains("pftrace")));
}
