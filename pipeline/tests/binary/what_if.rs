//! `replay what-if` as a user asks it, of a run with real lanes.

use serde_json::Value;
use warptape_eventlog::SqliteLog;

use super::processes::{Running, folder, run_until_drained, texts, warptape};

const DEVICES: (&str, &str) = ("WARPTAPE__ENGINE__DEVICES", "cpu:2");

fn figure<'a>(report: &'a Value, name: &str) -> &'a Value {
    let figures = report["figures"].as_array().expect("a list of figures");
    figures.iter().find(|figure| figure["name"] == name).expect("the figure is there")
}

#[test]
fn a_recorded_run_is_modelled_under_another_configuration() {
    let folder = folder();
    let path = folder.path();
    let url = "sqlite:a.db";
    texts(&warptape(path, &["feed", "synth", "--symbols", "40", "--ticks", "30000", "--log", url]), 0);
    let (_, error) = texts(&warptape(path, &["replay", "what-if", "--log", url]), 2);
    assert!(error.contains("journal"), "{error}");
    let mut run = Running::start_with(path, &["run", "--log", url], &[DEVICES]);
    let log = SqliteLog::open_existing(path.join("a.db")).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");

    let ask = |more: &[&str], code: i32| {
        let asked: Vec<&str> = ["replay", "what-if", "--log", url].iter().chain(more).copied().collect();
        texts(&warptape(path, &asked), code)
    };
    let json = |more: &[&str]| -> Value {
        serde_json::from_str(&ask(&[more, &["-o", "json"]].concat(), 0).0).expect("an object")
    };
    // As recorded, the model does the same rows, and what it misses is a number.
    let report = json(&[]);
    let rows = figure(&report, "rows");
    assert!(rows["measured"].as_f64().is_some_and(|rows| rows >= 30_000.0), "{rows}");
    assert_eq!(rows["measured"], rows["recorded"]["mean"]);
    let floor = figure(&report, "row_latency_mean_ms")["noise_floor"].as_f64();
    assert!(floor.is_some_and(f64::is_finite), "{report}");
    let is_kept = |report: &Value| {
        report["order"].as_array().is_some_and(|order| order.iter().all(|of| of["is_kept"] == true))
    };
    assert!(is_kept(&report), "{report}");

    let slow = ["--slow", "cpu:1=3x", "--set", "scheduler.row_deadline_ns=20000000", "--seeds", "3"];
    let report = json(&slow);
    assert_eq!(figure(&report, "rows")["changed"]["mean"], rows["measured"]);
    assert_eq!(report["changed"][0]["field"], "scheduler.row_deadline_ns");
    assert!(is_kept(&report), "{report}");
    assert_eq!(report, json(&slow), "the same seeds give the same bytes");
    let (said, _) = ask(&slow, 0);
    for expected in
        ["measured", "modelled, as recorded", "noise floor", "once and in order", "cpu:1: work takes 3 times"]
    {
        assert!(said.contains(expected), "{expected:?} is missing in\n{said}");
    }

    for (asked, expected) in [
        (["--policy", "dice"], "of tasks there are: fair, "),
        (["--lose", "cpu:5@+0"], "there is no such lane; there are: 0 (cpu:0), 1 (cpu:1)"),
        (["--lose", "1@+9999"], "after the recorded window begins"),
        (["--set", "scheduler.nothing=1"], "no such field in this journal"),
        (["--set", "nothing"], "KEY=VALUE is expected"),
        (["--partition", "7"], "no entries of a process with the ordinal 7"),
    ] {
        let (_, error) = ask(&asked, 2);
        assert!(error.contains(expected), "{asked:?}: {error}");
    }
}
