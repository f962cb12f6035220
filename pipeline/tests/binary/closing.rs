//! Time bars that no later tick closes.

use warptape_eventlog::{Durability, EventLog, SqliteLog};

use super::processes::{Running, folder, texts, warptape};

const FEED: [&str; 7] =
    ["feed", "csv", "idle.csv", "--map", "symbol=sym,time=ts:ms,price=px,size=qty", "--log", "sqlite:w.db"];
const TRADES: &str = "sym,ts,px,qty\nV:I,1723075200100,1,1\nV:I,1723075200200,2,1\n";
const SIGNALS: [&str; 8] =
    ["tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json", "--log", "sqlite:w.db"];
const VERIFY: [&str; 5] = ["replay", "verify", "--outputs", "--log", "sqlite:w.db"];

#[test]
fn bars_are_told_of_and_closed_where_the_log_ends() {
    let folder = folder();
    std::fs::write(folder.path().join("idle.csv"), TRADES).expect("a writable folder");
    texts(&warptape(folder.path(), &FEED), 0);
    let until = ["run", "--log", "sqlite:w.db", "--until-caught-up"];
    let (summary, said) = texts(&warptape(folder.path(), &until), 0);
    assert!(summary.contains("open bars             3 "), "{summary}");
    assert_eq!(said.matches("caught up").count(), 1, "{said}");
    let closing = [&until[..], &["--close"]].concat();
    let (summary, _) = texts(&warptape(folder.path(), &closing), 0);
    assert!(!summary.contains("open bars") && summary.contains("signals               3"), "{summary}");
    // A bar that is closed is not closed again.
    let (summary, _) = texts(&warptape(folder.path(), &closing), 0);
    assert!(summary.contains("signals               0"), "{summary}");
    let (signals, _) = texts(&warptape(folder.path(), &SIGNALS), 0);
    assert_eq!((signals.lines().count(), signals.matches("\"partial\":true").count()), (3, 3), "{signals}");
    let (verified, _) = texts(&warptape(folder.path(), &VERIFY), 0);
    assert!(verified.ends_with(" 3 signals: identical\n"), "{verified}");
}

#[test]
fn bars_of_a_quiet_market_close_by_the_wall_clock_and_a_replay_has_them_too() {
    let folder = folder();
    std::fs::write(folder.path().join("idle.csv"), TRADES).expect("a writable folder");
    std::fs::write(folder.path().join("w.toml"), "[engine]\nidle_close_ms = 50\n")
        .expect("a writable folder");
    texts(&warptape(folder.path(), &FEED), 0);
    let log = SqliteLog::open(folder.path().join("w.db"), Durability::Process).expect("the log");
    let mut run = Running::start(folder.path(), &["run", "-c", "w.toml", "--log", "sqlite:w.db"]);
    let signals = || {
        let topic = log.topic("signals").expect("the log is readable")?;
        let count: i64 = topic.offsets.iter().map(|range| range.next).sum();
        (count == 3).then_some(())
    };
    run.run_until("the three bars are closed", signals);
    run.stop("TERM");
    let (verified, _) = texts(&warptape(folder.path(), &VERIFY), 0);
    assert!(verified.ends_with(" 3 signals: identical\n"), "{verified}");
}
