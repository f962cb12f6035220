//! `run`, `feed` and `tail` as three processes on one file, and a second `run` that is refused.

use warptape_eventlog::{Durability, SqliteLog};

use super::processes::{Running, committed, folder, run_until_drained, texts, warptape};

const LINES: usize = 50;

/// Runs until the group has committed more than now.
#[track_caller]
fn run_on(run: &mut Running, log: &SqliteLog) {
    let total = || committed(log, "warptape").iter().map(|(done, _)| done).sum::<i64>();
    let before = total();
    run.run_until("more is committed", || (total() > before).then_some(()));
}

#[test]
fn three_processes_share_a_file_and_a_second_run_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a new log");
    std::fs::write(folder.join("w.toml"), "[stages]\nbars = [\"tick:5\"]\n").expect("a file");
    let start_run = || Running::start(folder, &["run", "-c", "w.toml", "--log", "sqlite:w.db"]);
    let feed_arguments =
        ["feed", "synth", "--ticks", "1000000000", "--rate", "20000", "--log", "sqlite:w.db"];
    let mut feed = Running::start(folder, &feed_arguments);
    let mut run = start_run();
    run.run_until("ticks are there", || (!committed(&log, "warptape").is_empty()).then_some(()));
    run_on(&mut run, &log);

    // `tail` shows signals as soon as they are made.
    let mut tail = Running::start(folder, &["tail", "signals", "-o", "json", "--log", "sqlite:w.db"]);
    for _ in 0..LINES {
        let line = tail.line();
        let value: serde_json::Value = serde_json::from_str(&line).expect("a line is one JSON value");
        assert_eq!(value["record"]["bar_spec"], "tick:5", "{line}");
    }
    assert!(feed.is_running() && run.is_running() && tail.is_running());

    // A second process of the group is told which process already runs, and the first continues.
    let second = warptape(folder, &["run", "-c", "w.toml", "--log", "sqlite:w.db"]);
    let (out, error) = texts(&second, 1);
    let first = format!("process {}", run.id());
    for part in ["sqlite:w.db", "\"warptape\"", "w.db.warptape.lock", &first, "stop it first"] {
        assert!(error.contains(part), "{part:?} is missing in: {error}");
    }
    assert!(out.is_empty(), "{out}");
    run_on(&mut run, &log);

    // The next run continues where this one ended.
    assert!(run.stop("INT").contains("signals  "));
    let mut next = start_run();
    run_on(&mut next, &log);
    assert!(feed.is_running() && tail.is_running());

    feed.stop("TERM");
    tail.stop("INT");
    run_until_drained(&mut next, &log, "warptape");
    next.stop("TERM");
    let verify = ["replay", "verify", "--outputs", "--log", "sqlite:w.db"];
    let (said, _) = texts(&warptape(folder, &verify), 0);
    assert!(said.ends_with(" signals: identical\n"), "{said}");
}
