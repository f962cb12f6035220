//! `replay what-if` on a run with real lanes.

use std::path::Path;

use serde_json::Value;
use warptape_eventlog::SqliteLog;

use super::processes::{Running, folder, run_until_drained, texts, warptape};

const DEVICES: (&str, &str) = ("WARPTAPE__ENGINE__DEVICES", "cpu:2");

fn figure<'a>(report: &'a Value, name: &str) -> &'a Value {
    let figures = report["figures"].as_array().expect("a list of figures");
    figures.iter().find(|figure| figure["name"] == name).expect("the figure is there")
}

/// The modelled run is a log with a journal that can be replayed. It can be one side of a diff, which marks it as
/// modelled.
fn modelled_runs_are_sides_of_a_diff(folder: &Path, ask: impl Fn(&[&str], i32) -> (String, String)) {
    let written = |to: &str, more: &[&str]| {
        let (_, said) = ask(&[&["--to", to, "--seeds", "2"], more].concat(), 0);
        assert!(
            said.contains(&format!("compare it with: warptape replay diff sqlite:a.db sqlite:{to}")),
            "{said}"
        );
    };
    written("same.db", &[]);
    written("again.db", &[]);
    written("slow.db", &["--slow", "cpu:1=30x", "--set", "scheduler.row_deadline_ns=20000000"]);
    let command = |asked: &[&str], code: i32| texts(&warptape(folder, asked), code).0;
    for file in ["same.db", "slow.db"] {
        let said = command(&["replay", "verify", "--log", &format!("sqlite:{file}")], 0);
        assert!(said.contains("identical"), "{said}");
    }
    let said = command(&["replay", "diff", "sqlite:same.db", "sqlite:again.db"], 0);
    assert!(said.contains("entries are the same") && said.contains("signals: not compared"), "{said}");
    let said = command(&["replay", "diff", "sqlite:a.db", "sqlite:slow.db"], 1);
    for expected in [
        "A  sqlite:a.db: 1 life",
        "B  sqlite:slow.db (modelled from sqlite:a.db): 1 life",
        "scheduler.row_deadline_ns",
        "work of lanes:",
    ] {
        assert!(said.contains(expected), "{expected:?} is missing in\n{said}");
    }
    let (_, error) = ask(&["--to", "same.db"], 2);
    assert!(error.contains("same.db"), "{error}");
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
    // Modelled under the recorded configuration, the run processes the same rows, and the model's error is a number.
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

    let (csv, _) = ask(&[&slow[..], &["-o", "csv"]].concat(), 0);
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let names = csv.headers().expect("names").clone();
    let figures = report["figures"].as_array().expect("a list of figures");
    let cells: Vec<csv::StringRecord> = csv.records().map(|row| row.expect("a row")).collect();
    assert_eq!((cells.len(), &names[0], &names[2]), (figures.len(), "figure", "recorded"));
    for (row, figure) in cells.iter().zip(figures) {
        assert_eq!(figure["name"], row[0]);
        assert_eq!(figure["recorded"]["mean"].as_f64(), row[2].parse().ok(), "{figure}");
        assert_eq!(figure["difference"]["half_95"].as_f64(), row[7].parse().ok(), "{figure}");
    }

    modelled_runs_are_sides_of_a_diff(path, ask);
    for (asked, expected) in [
        (["--policy", "dice"], "policies of tasks: fair, "),
        (["--lose", "cpu:5@+0"], "there is no such lane; the lanes are: 0 (cpu:0), 1 (cpu:1)"),
        (["--lose", "1@+9999"], "after the beginning of the recorded window"),
        (["--set", "scheduler.nothing=1"], "no such field in this journal"),
        (["--set", "nothing"], "give KEY=VALUE"),
        (["--partition", "7"], "no entries of a process with the ordinal 7"),
    ] {
        let (_, error) = ask(&asked, 2);
        assert!(error.contains(expected), "{asked:?}: {error}");
    }
}
