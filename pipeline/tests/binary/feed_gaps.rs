//! Gaps in files that are longer than `run` follows at once: such files are refused, followed, or fed in file order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use tempfile::TempDir;
use warptape_eventlog::{EventLog, SqliteLog};
use warptape_schemas::signal::Bar;
use warptape_schemas::{SetEventTime, decode_signal};

use super::outputs::records;
use super::processes::{Running, WARPTAPE, ends, folder, run_until_drained, texts, warptape};

const MAP: &str = "symbol=sym,time=ts:ms,price=px,size=qty";
/// 2024-08-08T00:00:00Z, in milliseconds.
const START_MS: u64 = 1_723_075_200_000;
const DAY_MS: u64 = 86_400_000;
const DUMP: &str = "BTCUSDT-aggTrades-2024-08.csv";

/// Creates a folder with settings for this number of partitions.
fn market(partitions: i32) -> TempDir {
    let folder = folder();
    let text = format!("[topics]\npartitions = {partitions}\n[stages]\nbars = [\"1s\"]\n");
    write(folder.path(), "w.toml", &text);
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a file");
}

/// Runs `feed` on a source, and returns standard output and standard error.
fn feed(folder: &Path, source: &[&str], code: i32) -> (String, String) {
    let all = [&["feed"], source, &["-c", "w.toml", "--log", "sqlite:w.db"]].concat();
    texts(&warptape(folder, &all), code)
}

/// Outputs of a log.
#[derive(Debug, PartialEq)]
struct Found {
    /// Bars by symbol and start.
    bars: BTreeMap<(String, i64), Bar>,
    late: usize,
    dead: usize,
}

/// Runs the pipeline over the whole log, and verifies the outputs.
fn run(folder: &Path) -> Found {
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log of the feed");
    let mut run = Running::start(folder, &["run", "-c", "w.toml", "--log", "sqlite:w.db"]);
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let verify = ["replay", "verify", "--outputs", "-c", "w.toml", "--log", "sqlite:w.db"];
    assert!(texts(&warptape(folder, &verify), 0).0.contains("identical"));
    let all = |topic: &str| {
        let partitions = 0..ends(&log, topic).len() as i32;
        partitions.flat_map(|partition| records(&log, topic, partition)).collect::<Vec<_>>()
    };
    let signals = all("signals");
    let signals = signals.iter().map(|record| decode_signal(&record.value).expect("a signal").into_owned());
    let bars =
        signals.filter_map(|signal| Some(((signal.symbol.to_string(), signal.bar_start_ns), signal.bar?)));
    Found { bars: bars.collect(), late: all("late").len(), dead: all("dead-letter").len() }
}

/// Returns the `SetEventTime` records of a log by partition: the offset of each, and its time in milliseconds.
fn words(folder: &Path) -> Vec<Vec<(i64, i64)>> {
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log of the feed");
    let of = |partition| {
        let words = records(&log, "ticks", partition).into_iter().filter_map(|record| {
            let set = SetEventTime::of(&record.value)?.expect("a word");
            assert!(set.only_forward && !set.cuts_bars && set.by.starts_with("feed-"), "{set:?}");
            assert_eq!(set.id, format!("{}-{partition}-{}", set.by, set.event_time_max_ns));
            Some((record.offset, set.event_time_max_ns / 1_000_000))
        });
        words.collect()
    };
    (0..ends(&log, "ticks").len() as i32).map(of).collect()
}

/// Returns a month of aggregated trades in which every other row is 20 days ahead.
fn interleaved() -> String {
    let rows = (0..10).flat_map(|row: u64| [(row, 0), (row, 20)]);
    rows.fold(String::new(), |text, (row, days)| {
        let (id, price, time_ms) = (1 + row + days * 100, 100 + days, START_MS + 1_000 * row + days * DAY_MS);
        text + &format!("{id},{price}.{row},1,1,1,{time_ms},false\n")
    })
}

/// Returns rows of five symbols in turn, one per second. `before` rows precede a gap of weeks, and `behind` rows follow
/// it.
fn rows(before: u64, behind: u64) -> String {
    (0..before + behind).fold("sym,ts,px,qty\n".to_owned(), |mut text, row| {
        let time_ms = START_MS + 1_000 * row + if row < before { 0 } else { 20 * DAY_MS };
        writeln!(text, "V:{},{time_ms},{},1", ["A", "B", "C", "D", "E"][row as usize % 5], 100 + row)
            .expect("a text grows");
        text
    })
}

#[test]
fn a_sorted_dump_with_a_gap_is_refused_or_followed_whatever_the_batch() {
    let mut found = Vec::new();
    for batch in ["1", "3", "256"] {
        let folder = market(1);
        let folder = folder.path();
        write(folder, DUMP, &interleaved());
        let sort = ["csv", DUMP, "--sort", "--batch", batch];
        let (_, refused) = feed(folder, &sort, 2);
        for expected in [
            "BTCUSDT-aggTrades-2024-08.csv:2: times jump ahead by 19.999 days, and",
            "more than 4 days (`stages.future_max_ms`)",
            "With --follow-gaps, `run` follows the gap, and ticks of other feeds",
            "--keep-order, without --sort",
            "`dlq replay` sends them again",
        ] {
            assert!(refused.contains(expected), "{refused}");
        }
        assert!(!folder.join("w.db").exists(), "nothing is published");
        let follow = [&sort[..], &["--follow-gaps"]].concat();
        let (told, _) = feed(folder, &follow, 0);
        assert!(
            told.starts_with("published 20 ticks") && told.contains("moved across gaps 1 times"),
            "{told}"
        );
        let behind_ms = (START_MS + 20 * DAY_MS) as i64;
        let words = words(folder);
        let [[(_, time_ms)]] = [&words[0][..]].map(|words| <[_; 1]>::try_from(words).expect("one word"));
        assert_eq!(time_ms, behind_ms);
        assert!(feed(folder, &follow, 0).0.starts_with("published 0 ticks"));
        found.push(run(folder));
    }
    assert_eq!((found[0].bars.len(), found[0].late, found[0].dead), (17, 0, 0));
    assert!(found.iter().all(|other| *other == found[0]), "outputs depend on batches");
}

#[test]
fn a_file_in_order_with_a_gap_is_refused_kept_or_followed_in_one_partition_or_many() {
    let mut found = Vec::new();
    for partitions in [1, 5] {
        for batch in ["1", "256"] {
            let folder = market(partitions);
            let folder = folder.path();
            write(folder, "a.csv", &rows(100, 100));
            let csv = ["csv", "a.csv", "--map", MAP, "--batch", batch];
            let refused = feed(folder, &csv, 2).1;
            assert!(refused.contains("a.csv:102: times jump ahead by 20 days, and"), "{refused}");
            feed(folder, &[&csv[..], &["--follow-gaps"]].concat(), 0);
            let mut of = run(folder);
            assert_eq!((of.late, of.dead), (0, 0));
            // The last bars of a partition stay open while ticks of other partitions go on.
            let end_ns = (START_MS + 20 * DAY_MS + 190_000) as i64 * 1_000_000;
            of.bars.retain(|(_, start_ns), _| *start_ns < end_ns);
            assert_eq!(of.bars.len(), 190);
            found.push(of);
        }
    }
    assert!(found.iter().all(|other| *other == found[0]), "outputs depend on batches or partitions");

    let folder = market(1);
    let folder = folder.path();
    write(folder, "a.csv", &rows(100, 100));
    let (told, _) = feed(folder, &["csv", "a.csv", "--map", MAP, "--keep-order"], 0);
    assert!(
        told.contains(
            "a.csv: times jump ahead by more than 4 days 1 times, first in line 102: `run` rejects"
        ),
        "{told}"
    );
    assert_eq!((words(folder), run(folder).dead), (vec![vec![]], 7));
}

#[test]
fn gaps_between_files_are_gaps_too() {
    let folder = market(2);
    let folder = folder.path();
    write(folder, "a.csv", &rows(50, 0));
    write(folder, "b.csv", &rows(0, 50));
    let both = ["csv", "a.csv", "b.csv", "--map", MAP];
    let refused = feed(folder, &both, 2).1;
    assert!(refused.contains("b.csv:2: times jump ahead by 19.999 days"), "{refused}");
    feed(folder, &[&both[..], &["--follow-gaps"]].concat(), 0);
    let found = run(folder);
    assert_eq!((found.late, found.dead), (0, 0));

    // One file is fed after the other, so the earlier ticks are already in the log, before a gap.
    let folder = market(2);
    let folder = folder.path();
    write(folder, "a.csv", &rows(50, 0));
    write(folder, "b.csv", &rows(0, 50));
    feed(folder, &["csv", "a.csv", "--map", MAP, "--follow-gaps"], 0);
    assert!(words(folder).iter().all(Vec::is_empty));
    feed(folder, &["csv", "b.csv", "--map", MAP, "--follow-gaps"], 0);
    assert_eq!(run(folder), found);
}

/// Rows are compared with the log's last ticks in the same way as with each other.
#[test]
fn files_far_from_what_the_log_has_are_refused_or_fed_as_they_stand() {
    for partitions in [1, 2] {
        let folder = market(partitions);
        let folder = folder.path();
        write(folder, "a.csv", &rows(50, 0));
        write(folder, "b.csv", &rows(0, 50));
        let ends_of = || ends(&SqliteLog::open_existing(folder.join("w.db")).expect("a log"), "ticks");
        let csv = |file: &'static str| ["csv", file, "--map", MAP];
        feed(folder, &csv("a.csv"), 0);
        let before = ends_of();
        let refused = feed(folder, &csv("b.csv"), 2).1;
        for expected in [
            "b.csv: line 2 is 19.999 days later than event time in partition ",
            "of `ticks`, 2024-08-08T",
            "--follow-gaps",
        ] {
            assert!(refused.contains(expected), "{refused}");
        }
        assert_eq!(ends_of(), before, "nothing is published");
        // The file's first ticks become dead letters, and the feed warns of it.
        let (told, _) = feed(folder, &[&csv("b.csv")[..], &["--keep-order"]].concat(), 0);
        assert!(
            told.contains("line 2 is 19.999 days later") && told.contains("and too far ahead for `run`"),
            "{told}"
        );
        let found = run(folder);
        assert_eq!((found.late, found.dead), (0, 7 * partitions as usize));

        // In the reverse order, all of the earlier file is late.
        let folder = market(partitions);
        let folder = folder.path();
        write(folder, "a.csv", &rows(50, 0));
        write(folder, "b.csv", &rows(0, 50));
        feed(folder, &csv("b.csv"), 0);
        for option in [None, Some("--follow-gaps"), Some("--sort")] {
            let refused = feed(folder, &[&csv("a.csv")[..], option.as_slice()].concat(), 2).1;
            assert!(refused.contains("a.csv: line 2 is 20 days earlier than"), "{refused}");
            assert!(refused.contains("late for `run`") && refused.contains("in one command"), "{refused}");
        }
        let (told, _) = feed(folder, &[&csv("a.csv")[..], &["--keep-order"]].concat(), 0);
        assert!(told.contains("line 2 is 20 days earlier") && told.contains("late for `run`"), "{told}");
        assert!(run(folder).late > 0);
        // With --again, the user has accepted this.
        feed(folder, &[&csv("a.csv")[..], &["--again"]].concat(), 0);
    }
}

#[test]
fn recordings_far_from_what_the_log_has_are_told_of() {
    let folder = market(1);
    let folder = folder.path();
    write(folder, "a.csv", &rows(0, 50));
    feed(folder, &["csv", "a.csv", "--map", MAP], 0);
    let line = |row: u64| {
        let time_ms = START_MS + 1_000 * row;
        format!(
            "{time_ms}000000 {{\"e\":\"trade\",\"E\":{time_ms},\"s\":\"BTCUSDT\",\"t\":{row},\"p\":\"1\",\"q\":\"2\",\"T\":{time_ms},\"m\":true}}\n"
        )
    };
    write(folder, "a.jsonl", &(0..9).map(line).collect::<String>());
    let (told, _) = feed(folder, &["binance-capture", "V=a.jsonl"], 0);
    assert!(told.contains("a.jsonl: line 1 is 20 days earlier than event time in partition 0"), "{told}");
    assert!(run(folder).late > 0);
}

#[test]
fn what_is_empty_is_no_feed() {
    let folder = market(1);
    let folder = folder.path();
    for (name, text) in [("none.csv", ""), ("header.csv", "sym,ts,px,qty\n"), ("none.jsonl", "")] {
        write(folder, name, text);
        let source = match name.ends_with("csv") {
            true => vec!["csv", name, "--map", MAP],
            false => vec!["binance-capture", name, "--venue", "V"],
        };
        let refused = feed(folder, &source, 2).1;
        assert!(refused.contains("no rows") || refused.contains("header"), "{name}: {refused}");
    }
}

#[test]
fn wrong_times_are_not_followed() {
    let folder = market(1);
    let folder = folder.path();
    let mut lines: Vec<String> = rows(60, 60).lines().map(str::to_owned).collect();
    // Seven rows are bad in sequence, the first one after the gap. Two others are bad among good rows.
    for line in (20..27).chain([61, 90]) {
        lines[line] = format!("V:A,{},1,1", START_MS + 300 * DAY_MS);
    }
    write(folder, "a.csv", &(lines.join("\n") + "\n"));
    let (_, refused) = feed(folder, &["csv", "a.csv", "--map", MAP, "--follow-gaps"], 2);
    assert!(refused.contains("8 of 120 rows lie more than 4 days ahead"), "{refused}");
    lines[90] = format!("V:A,{},1,1", START_MS + 20 * DAY_MS + 89_000);
    write(folder, "a.csv", &(lines.join("\n") + "\n"));
    let (_, warned) = feed(folder, &["csv", "a.csv", "--map", MAP, "--follow-gaps"], 0);
    assert!(warned.contains("7 of 120 rows lie more than 4 days ahead"), "{warned}");
    let found = run(folder);
    assert_eq!((found.late, found.dead), (0, 8));
    assert_eq!(words(folder)[0].len(), 1);

    // Seven rows at the end are too few to be followed.
    let folder = market(1);
    let folder = folder.path();
    write(folder, "a.csv", &rows(60, 7));
    feed(folder, &["csv", "a.csv", "--map", MAP, "--follow-gaps"], 0);
    assert_eq!((words(folder), run(folder).dead), (vec![vec![]], 7));
}

#[test]
fn a_feed_that_is_broken_off_or_grows_is_followed_all_the_same() {
    let whole = {
        let folder = market(2);
        write(folder.path(), "a.csv", &rows(40, 60));
        feed(folder.path(), &["csv", "a.csv", "--map", MAP, "--follow-gaps"], 0);
        run(folder.path())
    };
    assert_eq!((whole.late, whole.dead), (0, 0));
    // The feed is interrupted at some point after the gap.
    let folder = market(2);
    let folder = folder.path();
    write(folder, "a.csv", &rows(40, 60));
    let csv = ["csv", "a.csv", "--map", MAP, "--follow-gaps"];
    let common = ["-c", "w.toml", "--log", "sqlite:w.db"];
    let slow = [&["feed"], &csv[..], &["--batch", "1", "--rate", "100"], &common].concat();
    let mut broken = Running::start(folder, &slow);
    broken.run_until("more is published than what lies before the gap", || {
        let log = SqliteLog::open_existing(folder.join("w.db")).ok()?;
        let log: &dyn EventLog = &log;
        log.topic("ticks").ok()??;
        (ends(log, "ticks").iter().sum::<i64>() > 44).then_some(())
    });
    broken.stop("INT");
    feed(folder, &csv, 0);
    assert_eq!(run(folder), whole);

    // The file grows; repeated records change nothing.
    for behind in [0, 12, 59] {
        let folder = market(2);
        let folder = folder.path();
        write(folder, "a.csv", &rows(40, behind));
        feed(folder, &csv, 0);
        write(folder, "a.csv", &rows(40, 60));
        assert!(feed(folder, &csv, 0).0.starts_with(&format!("published {} ticks", 60 - behind)));
        assert_eq!(run(folder), whole, "{behind} rows lay behind the gap");
    }
    // Rows that are not followed are lost, but no other rows are.
    let folder = market(2);
    let folder = folder.path();
    write(folder, "a.csv", &rows(40, 3));
    feed(folder, &csv, 0);
    write(folder, "a.csv", &rows(40, 60));
    feed(folder, &csv, 0);
    let found = run(folder);
    assert_eq!((found.late, found.dead), (0, 3));
}

#[test]
fn a_quiet_symbol_is_told_of_and_followed_where_its_partition_has_no_other() {
    // One symbol trades daily, another one only on the first and the last day. With five partitions they are in
    // different ones.
    let text = (0..30).fold("sym,ts,px,qty\nV:A,1723075200000,1,1\n".to_owned(), |text, day| {
        text + &format!("V:B,{},1,1\n", START_MS + day * DAY_MS)
    }) + &format!("V:A,{},1,1\n", START_MS + 29 * DAY_MS);
    for (option, dead) in [(None, 1), (Some("--follow-gaps"), 0)] {
        let folder = market(5);
        let folder = folder.path();
        write(folder, "a.csv", &text);
        let csv = ["csv", "a.csv", "--map", MAP];
        let (told, _) = feed(folder, &[&csv[..], option.as_slice()].concat(), 0);
        let expected = "times jump ahead by more than 4 days within a partition 1 times";
        assert_eq!(told.contains(expected), option.is_none(), "{told}");
        let found = run(folder);
        assert_eq!((found.late, found.dead), (0, dead));
    }
}

#[test]
fn recordings_are_followed_and_pipes_are_not() {
    let rows = (0..40).fold(String::new(), |text, row: u64| {
        let time_ms = START_MS + 1_000 * row + if row < 20 { 0 } else { 20 * DAY_MS };
        text + &format!(
            "{time_ms}000000 {{\"e\":\"trade\",\"E\":{time_ms},\"s\":\"BTCUSDT\",\"t\":{row},\"p\":\"1\",\"q\":\"2\",\"T\":{time_ms},\"m\":true}}\n"
        )
    });
    for (option, dead) in [(None, 7), (Some("--follow-gaps"), 0)] {
        let folder = market(1);
        let folder = folder.path();
        write(folder, "a.jsonl", &rows);
        let (told, _) = feed(folder, &[&["binance-capture", "V=a.jsonl"][..], option.as_slice()].concat(), 0);
        let expected = "a.jsonl: times jump ahead by more than 4 days 1 times, first in line 21";
        assert_eq!(told.contains(expected), option.is_none(), "{told}");
        let found = run(folder);
        assert_eq!((found.late, found.dead), (0, dead));
    }
    let folder = market(1);
    let folder = folder.path();
    write(folder, "a.csv", &self::rows(20, 20));
    let feed = |more: &str| {
        let line = format!(
            "cat a.csv | {WARPTAPE} feed csv -c w.toml --log sqlite:w.db /dev/stdin --map {MAP} {more}"
        );
        std::process::Command::new("sh").args(["-c", &line]).current_dir(folder).output().expect("a shell")
    };
    let refused = texts(&feed("--follow-gaps"), 2).1;
    assert!(refused.contains("/dev/stdin: --follow-gaps reads the input twice"), "{refused}");
    let told = texts(&feed(""), 0).0;
    assert!(
        told.contains("/dev/stdin: times jump ahead by more than 4 days 1 times, first in line 22"),
        "{told}"
    );
}
