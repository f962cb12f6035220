//! One bad row among good ones loses only itself, whatever record it is in. An operator can undo the effect of many bad
//! rows.

use std::path::Path;

use warptape_eventlog::{Durability, SqliteLog};
use warptape_schemas::tick::TickColumns;
use warptape_schemas::{
    DeadLetter, DeadLetterReason, SymbolTable, TickDecoder, decode_dead_letter, decode_signal,
};

use super::outputs::records;
use super::processes::{Running, folder, run_until_drained, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const SETTINGS: [&str; 2] = ["-c", "w.toml"];
const MAP: &str = "symbol=sym,time=ts:ms,price=px,size=qty";
/// 2024-08-08T00:00:00Z, in milliseconds.
const START_MS: i64 = 1_723_075_200_000;
const YEAR_MS: i64 = 365 * 86_400_000;

/// Publishes trades of a symbol at these times.
fn feed(folder: &Path, name: &str, times_ms: impl IntoIterator<Item = i64>, batch: &str) {
    let mut text = "sym,ts,px,qty\n".to_owned();
    times_ms.into_iter().for_each(|time_ms| text += &format!("V:A,{time_ms},100.5,1\n"));
    std::fs::write(folder.join(name), text).expect("a file");
    let feed = ["feed", "csv", name, "--map", MAP, "--batch", batch, "--keep-order"];
    texts(&warptape(folder, &[&feed[..], &SETTINGS, &LOG].concat()), 0);
}

fn market() -> tempfile::TempDir {
    let folder = folder();
    let text = "[topics]\npartitions = 1\n[stages]\nbars = [\"1s\"]\n";
    std::fs::write(folder.path().join("w.toml"), text).expect("a file");
    folder
}

fn letters(log: &SqliteLog) -> Vec<DeadLetter> {
    let letters = records(log, "dead-letter", 0);
    letters.iter().map(|record| decode_dead_letter(&record.value).expect("a dead letter")).collect()
}

/// Returns the start times of the bars.
fn bars(log: &SqliteLog) -> Vec<i64> {
    let signals = records(log, "signals", 0);
    let signals = signals.iter().map(|record| decode_signal(&record.value).expect("a signal"));
    signals.filter(|signal| signal.bar.is_some()).map(|signal| signal.bar_start_ns / 1_000_000).collect()
}

fn verify(folder: &Path) {
    let verified = texts(&warptape(folder, &[&["replay", "verify", "--outputs"][..], &LOG].concat()), 0).0;
    assert!(verified.contains("identical"), "{verified}");
}

#[test]
fn a_row_dated_a_year_ahead_costs_itself_in_records_of_any_size() {
    let mut found = Vec::new();
    for batch in ["1", "256"] {
        let folder = market();
        let folder = folder.path();
        let time = |number: i64| START_MS + number * 1_000 + if number == 5 { YEAR_MS } else { 0 };
        feed(folder, "jump.csv", (0..1_000).map(time), batch);
        let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
        let mut run = Running::start(folder, &[&["run"][..], &SETTINGS, &LOG].concat());
        run_until_drained(&mut run, &log, "warptape");
        let summary = run.stop("TERM");
        let [letter] = &letters(&log)[..] else { panic!("one dead letter: {summary}") };
        assert_eq!(letter.reason, DeadLetterReason::BadTime);
        assert_eq!(letter.rows, if batch == "1" { vec![] } else { vec![5] });
        assert!(records(&log, "late", 0).is_empty(), "{summary}");
        verify(folder);

        // `dlq replay` sends only the bad row again.
        let (list, _) = texts(&warptape(folder, &[&["dlq", "list"][..], &LOG].concat()), 0);
        assert!(list.contains(if batch == "1" { "ticks:0:5" } else { "ticks:0:0 row 5" }), "{list}");
        let before = records(&log, "ticks", 0).len();
        texts(&warptape(folder, &[&["dlq", "replay"][..], &LOG].concat()), 0);
        let sent = records(&log, "ticks", 0).split_off(before);
        let [sent] = &sent[..] else { panic!("one record") };
        let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
        assert_eq!(TickDecoder::new().decode(&sent.value, &mut symbols, &mut columns), Ok(1));
        assert_eq!(columns.event_time_ns, [time(5) * 1_000_000]);
        found.push(bars(&log));
    }
    assert!(found[0].len() > 990, "{} bars", found[0].len());
    assert_eq!(found[0], found[1]);
}

#[test]
fn an_operator_undoes_a_jump() {
    let folder = market();
    let folder = folder.path();
    let seconds = |range: std::ops::Range<i64>| range.map(|second| START_MS + second * 1_000);
    // There are enough ticks to get past the beginning of the partition.
    feed(folder, "first.csv", seconds(0..2_000), "100");
    // If it is the only symbol, its jump in time is followed.
    feed(folder, "wrong.csv", seconds(2_000..2_020).map(|time| time + YEAR_MS), "1");
    feed(folder, "late.csv", seconds(2_000..2_010), "10");
    let log = SqliteLog::open(folder.join("w.db"), Durability::Process).expect("a log");
    let run = || Running::start(folder, &[&["run"][..], &SETTINGS, &LOG].concat());
    let mut first = run();
    run_until_drained(&mut first, &log, "warptape");
    assert_eq!((letters(&log).len(), records(&log, "late", 0).len()), (7, 10));

    let control = |words: &[&str], code: i32| {
        let all = [&["control", "watermark"][..], words, &["--timeout-s", "120"], &SETTINGS, &LOG].concat();
        texts(&warptape(folder, &all), code).0
    };
    let done = control(&["0", "--to", "2024-08-08T00:33:19Z"], 0);
    assert!(done.contains("done: the greatest event time of partition 0 is 1723077199000000000"), "{done}");
    assert!(control(&["7", "--to", "2024-08-08T00:33:19Z"], 1).contains("partition 7 is not this process's"));
    feed(folder, "rest.csv", seconds(2_010..2_100), "10");
    run_until_drained(&mut first, &log, "warptape");
    first.stop("TERM");
    assert_eq!((letters(&log).len(), records(&log, "late", 0).len()), (7, 10), "nothing more is late");
    let closed = bars(&log);
    assert!(seconds(2_010..2_090).all(|start| closed.contains(&start)), "{closed:?}");
    verify(folder);

    // The next process continues from this time.
    feed(folder, "more.csv", seconds(2_100..2_200), "10");
    let mut second = run();
    run_until_drained(&mut second, &log, "warptape");
    second.stop("TERM");
    assert_eq!((letters(&log).len(), records(&log, "late", 0).len()), (7, 10));
    verify(folder);
}
