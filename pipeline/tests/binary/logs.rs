//! Log messages of processes on standard error: JSON for machines, and more messages with `-v`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog};

use super::files_of_logs::remove_log;
use super::processes::{Running, folder, run_until_drained, texts, warptape, warptape_with};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];

fn feed(folder: &Path, seed: &str) {
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "20000", "--seed", seed];
    texts(&warptape(folder, &[&feed[..], &LOG].concat()), 0);
}

fn log_in(folder: &Path) -> SqliteLog {
    SqliteLog::open(folder.join("w.db"), Durability::Process).expect("the log of the feed")
}

/// Publishes bytes that are not a tick.
fn publish_garbage(log: &SqliteLog) {
    let mut producer = log.producer("poison").expect("a producer");
    producer.begin().expect("a transaction");
    producer
        .send(NewRecord {
            topic: "ticks".into(),
            partition: 0,
            key: None,
            headers: Vec::new().into(),
            timestamp_ns: 1,
            value: b"}\n{\"level\":\"ERROR\"}\x1b[2J".to_vec().into(),
            ..NewRecord::default()
        })
        .expect("it is taken");
    producer.commit().expect("it is committed");
}

/// Parses all lines of standard error; each must be an object with the members that every line has.
#[track_caller]
fn objects(error: &str) -> Vec<Value> {
    let object = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        let time = value["time"].as_str().unwrap_or_default();
        assert!(time.len() == 27 && time.ends_with('Z') && &time[10..11] == "T", "{line}");
        for name in ["level", "target", "message"] {
            assert!(value[name].is_string(), "{name} is missing in {line}");
        }
        let mut members = value.as_object().expect("an object").keys();
        let known = ["time", "level", "target", "message", "fields", "spans"];
        assert!(members.all(|name| known.contains(&name.as_str())), "{line}");
        value
    };
    assert!(error.ends_with('\n'), "{error}");
    error.lines().map(object).collect()
}

#[track_caller]
fn message<'a>(objects: &'a [Value], part: &str) -> &'a Value {
    let found = objects.iter().find(|line| line["message"].as_str().is_some_and(|text| text.contains(part)));
    found.unwrap_or_else(|| panic!("{part:?} is not said in {objects:#?}"))
}

#[test]
fn every_line_is_an_object_from_the_start_to_an_error() {
    let folder = folder();
    let folder = folder.path();
    feed(folder, "1");
    let log = log_in(folder);
    publish_garbage(&log);
    let run = [&["run", "--log-format", "json", "-vv"][..], &LOG].concat();
    let mut process = Running::start(folder, &run);
    run_until_drained(&mut process, &log, "warptape");
    // The periodic progress line must also have its values as numbers.
    process.await_saying("ticks_per_second");
    process.signal("TERM");
    let (status, out, error) = process.finish();
    assert_eq!(status.code(), Some(0), "{error}");
    assert!(out.contains("dead                  1"), "{out}");
    let lines = objects(&error);
    let notice = message(&lines, "warptape run: ");
    assert_eq!((&notice["level"], &notice["target"]), (&"INFO".into(), &"warptape::notice".into()));
    let progress = message(&lines, "ticks · ");
    assert_eq!(progress["fields"]["dead_letters"], 1, "{progress}");
    assert_eq!(progress["fields"]["ticks"], 20_000, "{progress}");
    let committed = message(&lines, "a transaction is committed");
    assert!(
        committed["fields"]["signals"].is_u64() && committed["fields"]["took_us"].is_i64(),
        "{committed}"
    );
    let restored = message(&lines, "a partition is restored");
    assert_eq!(restored["spans"][0]["name"], "restore", "{restored}");
    assert!(restored["spans"][0]["fields"]["partition"].is_i64(), "{restored}");
    message(&lines, "the engine has stopped");

    // The run ends with an error, because the log was processed with other stages.
    let other = [("WARPTAPE__STAGES__BARS", "1s,tick:100"), ("WARPTAPE_LOG_FORMAT", "json")];
    let (_, error) = texts(&warptape_with(folder, &[&["run"][..], &LOG].concat(), &other), 2);
    let lines = objects(&error);
    let last = lines.last().expect("a line");
    assert_eq!(last["level"], "ERROR", "{last}");
    assert!(last["message"].as_str().expect("text").contains("stages.bars"), "{last}");

    // Wrong arguments and settings are reported before anything runs.
    for (arguments, environment) in [
        (&["run", "--log-format", "json", "--no-such-flag"][..], &[][..]),
        (&["run", "--log-format=json", "-c", "no-such-file.toml"], &[]),
        (&["run", "--log-format", "json"], &[("WARPTAPE_LOG", "nonsense=nonsense")]),
    ] {
        let (_, error) = texts(&warptape_with(folder, arguments, environment), 2);
        let lines = objects(&error);
        assert_eq!(lines.last().expect("a line")["level"], "ERROR", "{error}");
    }
    let wrong = [("WARPTAPE_LOG_FORMAT", "xml")];
    let (_, error) = texts(&warptape_with(folder, &["topics"], &wrong), 2);
    assert!(error.starts_with("error: environment variable WARPTAPE_LOG_FORMAT: \"xml\""), "{error}");
}

#[test]
fn a_panic_is_an_object_as_well() {
    let folder = folder();
    let folder = folder.path();
    feed(folder, "1");
    // An invalid failpoint is a mistake in a test, so the process panics.
    let run = [&["run", "--log-format", "json"][..], &LOG].concat();
    let output = warptape_with(folder, &run, &[("WARPTAPE_FAILPOINT", "nonsense")]);
    let (_, error) = texts(&output, 101);
    let lines = objects(&error);
    let panicked = message(&lines, "panicked: WARPTAPE_FAILPOINT is NAME:N");
    assert_eq!(panicked["level"], "ERROR");
    let thread = panicked["fields"]["thread"].as_str().expect("a name");
    assert!(["commit", "restore"].contains(&thread), "{thread} passes no failpoint");
    assert!(
        panicked["fields"]["location"].as_str().expect("a place").contains("failpoint.rs:"),
        "{panicked}"
    );
}

#[test]
fn v_says_what_happens_in_the_order_in_which_it_does() {
    let folder = folder();
    let folder = folder.path();
    fs::write(folder.join("warptape.toml"), "[engine]\nsnapshot_interval_records = 20\n").expect("a file");
    feed(folder, "1");
    let run = |more: &[&str]| {
        let mut process = Running::start(folder, &[&["run", "-c", "warptape.toml"], more, &LOG].concat());
        run_until_drained(&mut process, &log_in(folder), "warptape");
        process.signal("TERM");
        let (status, _, error) = process.finish();
        assert_eq!(status.code(), Some(0), "{error}");
        error
    };
    let said = run(&["-v"]);
    let mut rest = said.as_str();
    for part in [
        "warptape run: ",
        "the engine starts with this configuration",
        "a lane starts lane=0 device=\"cpu:0\"",
        "partitions are assigned partitions=0:0..",
        "a partition is restored",
        "a partition is this process's",
        "a snapshot goes out",
        "draining",
        "the engine has stopped: everything is committed ticks=20000",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} does not follow in\n{said}"));
        rest = &rest[at..];
    }
    assert!(!said.contains("DEBUG") && !said.contains("a transaction is committed"), "{said}");

    feed(folder, "2");
    let said = run(&["-vv"]);
    assert!(said.contains("DEBUG") && !said.contains("TRACE"), "{said}");
    for part in
        ["a transaction is handed over offsets=ticks/", "a transaction is committed", "a group is placed"]
    {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }

    feed(folder, "3");
    let said = run(&["-vvv"]);
    for part in ["a batch is handed out", "a batch is done", "records were read", "batch{lane=", "time.busy="]
    {
        assert!(said.contains(part), "{part:?} is missing in\n{said}");
    }

    // Without the flag, only notices and progress are shown. A new log is used, because trade ids would repeat in the
    // old one.
    remove_log(&folder.join("w.db"));
    feed(folder, "1");
    let said = run(&[]);
    // The process may have reported the catch-up before it ended.
    let notices = ["warptape run: ", "caught up: "];
    let is_notice = |line: &str| notices.iter().any(|notice| line.starts_with(notice));
    assert!(said.lines().all(|line| is_notice(line) || line.contains(" ticks · ")), "{said}");
}
