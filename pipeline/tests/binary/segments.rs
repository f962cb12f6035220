//! A log that is processed with other stages than before.

use std::path::Path;

use warptape_eventlog::SqliteLog;

use super::processes::{Running, folder, run_until_drained, texts, warptape, warptape_with};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
/// A stage configuration other than the default.
const OTHER: [(&str, &str); 2] =
    [("WARPTAPE__STAGES__ALLOWED_LATENESS_MS", "500"), ("WARPTAPE__STAGES__BARS", "1s,tick:100")];

/// Feeds a part of a market and processes it.
fn feed_and_run(folder: &Path, seed: &str, arguments: &[&str], environment: &[(&str, &str)]) {
    let feed = ["feed", "synth", "--symbols", "20", "--ticks", "20000", "--seed", seed];
    texts(&warptape(folder, &[&feed[..], &LOG].concat()), 0);
    run(folder, arguments, environment);
}

fn run(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) {
    let mut run = Running::start_with(folder, &[&["run"], arguments, &LOG].concat(), environment);
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
}

fn verify(folder: &Path) -> String {
    texts(&warptape(folder, &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0).0
}

#[test]
fn other_stages_begin_a_segment_when_they_are_told_to() {
    let folder = folder();
    feed_and_run(folder.path(), "1", &[], &[]);
    let refused = warptape_with(folder.path(), &[&["run"][..], &LOG].concat(), &OTHER);
    let (_, error) = texts(&refused, 2);
    for told in ["stages.allowed_lateness_ms: 2000 to 500", "stages.bars", "--new-segment", "tick records of"]
    {
        assert!(error.contains(told), "{told:?} is missing in {error}");
    }
    assert!(
        verify(folder.path()).ends_with(" signals: identical\n"),
        "a start that did nothing is no segment"
    );
    feed_and_run(folder.path(), "2", &["--new-segment"], &OTHER);
    // The new configuration is now in force, so the earlier one counts as a different one.
    run(folder.path(), &[], &OTHER);
    texts(&warptape(folder.path(), &[&["run"][..], &LOG].concat()), 2);
    feed_and_run(folder.path(), "3", &["--new-segment"], &[]);
    let told = verify(folder.path());
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].ends_with(" signals: identical"), "{told}");
    assert_eq!(
        lines.iter().filter(|line| line.contains("note: another stage configuration")).count(),
        2,
        "{told}"
    );
}
