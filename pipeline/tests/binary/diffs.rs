//! `replay diff` on the same ticks under two configurations.

use serde_json::Value;
use warptape_eventlog::SqliteLog;

use super::files_of_logs::copy_log;
use super::outputs::records;
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape, warptape_with};

const DEVICES: (&str, &str) = ("WARPTAPE__ENGINE__DEVICES", "cpu:2");
/// Commit interval that exceeds the time for assigning partitions, so that both journals begin alike.
const COMMITS: (&str, &str) = ("WARPTAPE__ENGINE__COMMIT_INTERVAL_MS", "3000");
const SEED: (&str, &str) = ("WARPTAPE__SCHEDULER__PLACEMENT_SEED", "99");

#[test]
fn two_runs_are_compared() {
    let folder = folder();
    let path = folder.path();
    let feed = ["feed", "synth", "--symbols", "40", "--ticks", "30000", "--log", "sqlite:a.db"];
    texts(&warptape(path, &feed), 0);
    copy_log(&path.join("a.db"), &path.join("b.db"));
    for (file, settings) in [("a.db", &[DEVICES, COMMITS][..]), ("b.db", &[DEVICES, COMMITS, SEED])] {
        let url = format!("sqlite:{file}");
        let mut run = Running::start_with(path, &["run", "--log", &url], settings);
        let log = SqliteLog::open_existing(path.join(file)).expect("the log of the feed");
        run_until_drained(&mut run, &log, "warptape");
        run.stop("TERM");
    }
    let log = SqliteLog::open_existing(path.join("a.db")).expect("a log");
    let partitions = ends(&log, "signals").len() as i32;
    let signals: usize = (0..partitions).map(|partition| records(&log, "signals", partition).len()).sum();

    let (said, _) = texts(&warptape(path, &["replay", "diff", "a.db", "b.db"]), 1);
    for expected in [
        "scheduler.placement_seed  0  99",
        "decided differently on the same input (partition_assigned)",
        "warptape replay why 2 --partition 0 --log sqlite:b.db",
        "are identical, bit for bit",
        "groups were on another lane for some of their records",
        "tick to signal, p99, ms",
        "commit_interval",
    ] {
        assert!(said.contains(expected), "{expected:?} is missing in\n{said}");
    }
    let (json, _) = texts(&warptape(path, &["replay", "diff", "a.db", "sqlite:b.db", "-o", "json"]), 1);
    let json: Value = serde_json::from_str(&json).expect("an object");
    assert_eq!((&json["outputs"]["same"], &json["outputs"]["rest"]), (&signals.into(), &[0, 0].into()));
    assert!(json["moves"]["elsewhere"].as_u64().is_some_and(|groups| groups > 0), "{json}");
    // The command suggested by the diff works.
    let why = ["replay", "why", "2", "--partition", "0", "--log", "sqlite:b.db"];
    texts(&warptape(path, &why), 0);

    let (said, _) = texts(&warptape_with(path, &["replay", "diff", "a.db", "a.db"], &[]), 0);
    assert!(said.contains("configuration: the same") && said.contains("placement: all"), "{said}");
    let (_, error) = texts(&warptape(path, &["replay", "diff", "a.db", "missing.db"]), 2);
    assert!(error.contains("missing.db"), "{error}");
    assert!(!path.join("missing.db").exists(), "a mistyped path creates nothing");
}
