//! `kill -9` of `run` at random moments under load: nothing lost, nothing twice, the outputs those of an uninterrupted
//! run over the same ticks; and each risk request that was asked meanwhile has one result, the right one.

use std::path::Path;
use std::time::Duration;

use warptape_eventlog::{Durability, EventLog, SqliteLog, TopicSpec};

use super::asking::{Asking, Topics};
use super::history::{Random, copy_records, lives, poison};
use super::outputs::{OUTPUT_TOPICS, count, first_difference, outputs};
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape};

const KILLS: u64 = 20;
const KILLS_QUICK: u64 = 4;
const PARTITIONS: i32 = 3;
const FEED_TICKS_PER_SECOND: &str = "200000";
/// Longest life of a run behind its first commit, and longest one of a run that is to be killed while it begins.
const LIFE_MS_MAX: u64 = 800;
const BEGINNING_MS_MAX: u64 = 200;
/// One run in this many is killed while it begins.
const BEGINNINGS_ONE_IN: u64 = 3;

/// Commits that follow each other at once, each waiting for the disk, so that most kills hit one; and commits with
/// work between them.
const COMMITS: [(&str, &str, u64); 2] = [("committing.toml", "full", 1), ("working.toml", "process", 20)];
/// Short intervals, so that kills hit snapshots and restores as well.
const CONFIGURATION: &str = r#"
engine.devices = ["cpu:2"]
engine.snapshot_interval_records = 20
engine.poll_records_max = 16
stages.bars = ["1s", "tick:1"]
stages.allowed_lateness_ms = 1000
stages.groups_per_partition = 4
risk.slice_us = 200
"#;

fn write_configurations(folder: &Path) {
    for (file, durability, commit_interval_ms) in COMMITS {
        let commits =
            format!("engine.commit_interval_ms = {commit_interval_ms}\nlog.durability = \"{durability}\"");
        std::fs::write(folder.join(file), format!("{commits}\n{CONFIGURATION}")).expect("a file");
    }
}

fn new_log(folder: &Path, name: &str) -> SqliteLog {
    let log = SqliteLog::open(folder.join(name), Durability::Process).expect("a new log");
    let topic =
        |name: &str| TopicSpec { name: name.to_owned(), partitions: PARTITIONS, ..TopicSpec::default() };
    log.create_topics(&["ticks", "risk.requests", "risk.results"].map(topic)).expect("new topics");
    log
}

fn start_run(folder: &Path, url: &str, configuration: &str) -> Running {
    Running::start(folder, &["run", "-c", configuration, "--log", url])
}

/// Lets a last run process what is left, and stop.
fn drain(folder: &Path, url: &str, log: &SqliteLog, asking: Option<&Asking<'_>>) {
    let (configuration, ..) = COMMITS[1];
    let mut run = start_run(folder, url, configuration);
    run_until_drained(&mut run, log, "warptape");
    if let Some(asking) = asking {
        asking.await_answers(&mut run, "warptape");
    }
    let summary = run.stop("TERM");
    assert!(summary.contains("ticks  ") && summary.contains("signals  "), "{summary}");
}

#[test]
fn kills_lose_nothing_and_double_nothing() {
    let mut random = Random::from_environment();
    let kills = if std::env::var_os("WARPTAPE_TEST_QUICK").is_some() { KILLS_QUICK } else { KILLS };
    let folder = folder();
    let folder = folder.path();
    write_configurations(folder);
    let crashed = new_log(folder, "crashed.db");
    let seed = random.below(1 << 32).to_string();
    let mut feed = Running::start(
        folder,
        &[
            &["feed", "synth", "--symbols", "50", "--ticks", "1000000000", "--batch", "16", "--seed", &seed],
            &["--rate", FEED_TICKS_PER_SECOND, "--log", "sqlite:crashed.db"][..],
        ]
        .concat(),
    );
    let in_all_partitions = |topic: &str| {
        ends(&crashed, topic).len() == PARTITIONS as usize && !ends(&crashed, topic).contains(&0)
    };
    feed.run_until("ticks are published", || in_all_partitions("ticks").then_some(()));
    let mut asking = Asking::new(&crashed, Topics::new(""), PARTITIONS);

    for kill in 0..kills {
        let (configuration, ..) = COMMITS[kill as usize % COMMITS.len()];
        let mut run = start_run(folder, "sqlite:crashed.db", configuration);
        if kill == 0 {
            run.run_until("snapshots are written", || in_all_partitions("snapshots").then_some(()));
        }
        let is_beginning = random.below(BEGINNINGS_ONE_IN) == 0;
        if !is_beginning {
            let before = ends(&crashed, "journal");
            run.run_until("it commits", || (ends(&crashed, "journal") != before).then_some(()));
        }
        let life_ms_max = if is_beginning { BEGINNING_MS_MAX } else { LIFE_MS_MAX };
        let life = Duration::from_millis(random.below(life_ms_max));
        asking.run_for(&mut run, life, &mut random);
        assert!(feed.is_running(), "the load is gone");
        run.kill();
        poison(&crashed, "ticks", PARTITIONS, &mut random);
    }
    let fed = feed.stop("TERM");
    drain(folder, "sqlite:crashed.db", &crashed, Some(&asking));

    let uninterrupted = new_log(folder, "uninterrupted.db");
    copy_records(&crashed, &uninterrupted, "ticks", PARTITIONS);
    drain(folder, "sqlite:uninterrupted.db", &uninterrupted, None);
    let (expected, found) = (outputs(&uninterrupted, ""), outputs(&crashed, ""));
    if let Some(difference) = first_difference(&expected, &found) {
        panic!("the outputs differ from those of an uninterrupted run: {difference}");
    }
    // What was compared is worth it: there is much of it, and the kills hit what they were to hit.
    let counts = OUTPUT_TOPICS.map(|topic| count(&found, topic));
    let results = asking.check();
    let lives = lives(&crashed, "journal");
    println!("{kills} kills, {fed}signals, late, dead letters: {counts:?}; {results:?}; {lives:?}");
    assert!(counts[0] > 1000 && counts[1] > 0 && counts[2] as u64 == kills, "{counts:?}");
    assert!(lives.began >= 2 && lives.from_snapshot > 0, "{lives:?}");
    // A few lives may all end before they have ticks to redo; so many cannot.
    assert!(kills == KILLS_QUICK || (lives.began > 2 && lives.with_tail > 0), "{lives:?}");

    let verify = ["replay", "verify", "--outputs", "--log", "sqlite:crashed.db"];
    let (said, _) = texts(&warptape(folder, &verify), 0);
    let identical =
        format!("{} signals, {} risk results: identical\n", counts[0], results.values().sum::<usize>());
    assert!(said.ends_with(&identical), "{said}");
}
