//! Sources that are fed more than once: ticks that the log has are not published again.

use std::path::Path;
use std::process::Output;

use warptape_eventlog::SqliteLog;
use warptape_schemas::tick::Tick;
use warptape_schemas::{SymbolTable, TickColumns, TickDecoder, decode_signal};

use super::outputs::records;
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape, warptape_with};

const MAP: &str = "symbol='A:B',time=t:ms,price=p,size=q";

/// Writes a CSV file with these rows of a market of some days.
fn write_rows(folder: &Path, name: &str, rows: std::ops::Range<u32>) {
    append_rows(folder, name, "t,p,q\n", rows);
}

fn append_rows(folder: &Path, name: &str, before: &str, rows: std::ops::Range<u32>) {
    let row =
        |number: u32| format!("{},{}.5,1\n", 1_700_000_000_000_u64 + u64::from(number), 100 + number % 7);
    let rows: String = rows.map(row).collect();
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_default() + before + &rows;
    std::fs::write(path, text).expect("the folder can be written");
}

fn feed(folder: &Path, arguments: &[&str]) -> Output {
    let all = [&["feed", "csv", "--map", MAP, "--batch", "7", "--log", "sqlite:w.db"], arguments].concat();
    warptape(folder, &all)
}

/// Returns the ticks of each partition of a log, in the partition's order.
fn ticks(folder: &Path, log: &str) -> Vec<Vec<Tick>> {
    let log = SqliteLog::open_existing(folder.join(log)).expect("the log of the feed");
    let of_partition = |partition: i32| {
        let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
        let mut decoder = TickDecoder::new();
        let mut rows = 0;
        for record in records(&log, "ticks", partition) {
            rows += decoder.decode(&record.value, &mut symbols, &mut columns).expect("a tick record");
        }
        (0..rows).map(|row| columns.tick(row, &symbols)).collect()
    };
    (0..ends(&log, "ticks").len() as i32).map(of_partition).collect()
}

fn times_ms(folder: &Path) -> Vec<i64> {
    let all = ticks(folder, "w.db").into_iter().flatten();
    all.map(|tick| tick.event_time_ns / 1_000_000 - 1_700_000_000_000).collect()
}

#[test]
fn the_same_file_adds_nothing_unless_it_is_said_again() {
    let folder = folder();
    write_rows(folder.path(), "a.csv", 0..100);
    assert!(texts(&feed(folder.path(), &["a.csv"]), 0).0.starts_with("published 100 ticks"));
    // The same file adds nothing, neither under another name nor together with another file.
    std::fs::copy(folder.path().join("a.csv"), folder.path().join("c.csv")).expect("a copy");
    for files in [&["a.csv"][..], &["c.csv"]] {
        let (told, _) = texts(&feed(folder.path(), files), 0);
        assert!(told.starts_with("published 0 ticks"), "{told}");
        assert!(
            told.contains(".csv: the first 100 ticks were already in the log and were left out (--again"),
            "{told}"
        );
    }
    write_rows(folder.path(), "b.csv", 50..150);
    let (told, _) = texts(&feed(folder.path(), &["a.csv", "b.csv"]), 0);
    assert!(told.starts_with("published 100 ticks"), "{told}");
    assert_eq!(times_ms(folder.path()), (0..100).chain(50..150).collect::<Vec<_>>());
    assert!(texts(&feed(folder.path(), &["b.csv", "--again"]), 0).0.starts_with("published 100 ticks"));
    assert_eq!(times_ms(folder.path()).len(), 300);
    let (_, error) = texts(&feed(folder.path(), &["a.csv", "c.csv"]), 2);
    assert!(error.contains("c.csv: the same content is named twice"), "{error}");
}

#[test]
fn the_same_content_is_known_however_it_is_packed_or_mapped() {
    let folder = folder();
    let gzip = |name: &str| {
        let packed =
            std::process::Command::new("gzip").args(["-k", "-n", name]).current_dir(folder.path()).status();
        assert!(packed.expect("gzip").success());
    };
    let published = |arguments: &[&str]| {
        let (told, _) = texts(
            &warptape(folder.path(), &[&["feed", "csv", "--log", "sqlite:w.db"], arguments].concat()),
            0,
        );
        told.split(' ').nth(1).expect("a number").parse::<u32>().expect("a number")
    };
    let other = "size=q,price=p,time=t:ms,delimiter=comma,symbol='A:B'";
    write_rows(folder.path(), "a.csv", 0..100);
    assert_eq!(published(&["--map", MAP, "a.csv"]), 100);
    gzip("a.csv");
    for map in [MAP, other] {
        assert_eq!(published(&["--map", map, "a.csv.gz"]), 0, "{map}");
        assert_eq!(published(&["--map", map, "a.csv"]), 0, "{map}");
    }
    // The file is fed gzipped first, then uncompressed and longer.
    write_rows(folder.path(), "b.csv", 200..250);
    gzip("b.csv");
    assert_eq!(published(&["--map", other, "b.csv.gz"]), 50);
    append_rows(folder.path(), "b.csv", "", 250..260);
    assert_eq!(published(&["--map", MAP, "b.csv"]), 10);
    std::fs::remove_file(folder.path().join("b.csv.gz")).expect("it is there");
    gzip("b.csv");
    assert_eq!(published(&["--map", MAP, "b.csv.gz"]), 0);
    // A map with another meaning makes another source.
    assert_eq!(published(&["--map", "symbol='A:C',time=t:ms,price=p,size=q", "a.csv.gz"]), 100);
    // A truncated gzip file gives its intact part first, and the rest once it is complete.
    write_rows(folder.path(), "c.csv", 300..5000);
    gzip("c.csv");
    let whole = std::fs::read(folder.path().join("c.csv.gz")).expect("a file");
    std::fs::write(folder.path().join("c.csv.gz"), &whole[..whole.len() / 2]).expect("a file");
    let (_, error) = texts(&feed(folder.path(), &["c.csv.gz"]), 2);
    assert!(error.contains("c.csv.gz"), "{error}");
    std::fs::write(folder.path().join("c.csv.gz"), &whole).expect("a file");
    texts(&feed(folder.path(), &["c.csv.gz"]), 0);
    let mut times: Vec<_> = times_ms(folder.path()).into_iter().filter(|time| *time >= 300).collect();
    times.sort_unstable();
    assert!(times.into_iter().eq(300..5000));
}

#[test]
fn ticks_that_are_published_twice_are_told_of() {
    let folder = folder();
    let folder = folder.path();
    let row = |number: i64| format!("{},100,1,{}\n", 1_700_000_000_000 + number, 500 + number);
    std::fs::write(folder.join("a.csv"), "t,p,q,n\n".to_owned() + &(0..90).map(row).collect::<String>())
        .expect("the folder can be written");
    let map = "symbol='A:B',time=t:ms,price=p,size=q,trade_id=n";
    let feed = ["feed", "csv", "--map", map, "--batch", "7", "--log", "sqlite:w.db", "a.csv"];
    let run = || {
        let mut run = Running::start(folder, &["run", "--log", "sqlite:w.db"]);
        let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log of the feed");
        run_until_drained(&mut run, &log, "warptape");
        let said = run.said();
        (run.stop("TERM"), said)
    };
    texts(&warptape(folder, &feed), 0);
    assert!(!run().0.contains("trade ids"));
    texts(&warptape(folder, &[&feed[..], &["--again"]].concat()), 0);
    let (summary, said) = run();
    let told = "trades with an id that their symbol had before: 90, first A:B id 500 at partition ";
    assert!(summary.contains(told) && summary.contains("published twice"), "{summary}");
    assert!(said.contains("WARN") && said.contains("first A:B id 500 at partition"), "{said}");
    let (verified, _) =
        texts(&warptape(folder, &["replay", "verify", "--outputs", "--log", "sqlite:w.db"]), 0);
    assert!(verified.contains(&format!("identical\nnote: {told}")), "{verified}");
    // These were reported before, and are not reported again.
    assert!(!run().0.contains("trade ids"));
}

#[test]
fn a_file_that_has_grown_adds_what_is_new() {
    let folder = folder();
    write_rows(folder.path(), "a.csv", 0..100);
    texts(&feed(folder.path(), &["a.csv"]), 0);
    for (from, to) in [(100, 130), (130, 131)] {
        append_rows(folder.path(), "a.csv", "", from..to);
        let (told, _) = texts(&feed(folder.path(), &["a.csv"]), 0);
        assert!(told.starts_with(&format!("published {} ticks", to - from)), "{told}");
    }
    assert_eq!(times_ms(folder.path()), (0..131).collect::<Vec<_>>());
}

/// A feed with another map counts as another feed, so it would publish the first rows again.
#[test]
fn a_bad_line_ends_a_feed_before_anything_is_published() {
    let folder = folder();
    write_rows(folder.path(), "a.csv", 0..60);
    append_rows(folder.path(), "a.csv", "no row\n", 60..100);
    let (out, error) = texts(&feed(folder.path(), &["a.csv"]), 2);
    assert!(out.is_empty() && error.contains("a.csv:62") && !error.contains("published"), "{out}{error}");
    let text = std::fs::read_to_string(folder.path().join("a.csv")).expect("the file");
    std::fs::write(folder.path().join("a.csv"), text.replace("no row\n", "")).expect("a file");
    assert!(texts(&feed(folder.path(), &["a.csv"]), 0).0.starts_with("published 100 ticks"));
    assert_eq!(times_ms(folder.path()), (0..100).collect::<Vec<_>>());
}

#[test]
fn files_of_the_same_name_are_told_apart() {
    // The bad line comes before the second file is reached, or in the middle of it.
    for second in [200..300, 50..150] {
        let folder = folder();
        for day in ["01", "02"] {
            std::fs::create_dir(folder.path().join(day)).expect("a folder");
        }
        let files = ["01/a.csv", "02/a.csv"];
        write_rows(folder.path(), files[0], 0..100);
        append_rows(folder.path(), files[0], "no row\n", 100..110);
        write_rows(folder.path(), files[1], second.clone());
        for _ in 0..2 {
            let (_, error) = texts(&feed(folder.path(), &files), 2);
            assert!(error.contains("a.csv:102"), "{error}");
        }
        texts(&feed(folder.path(), &["01/a.csv", "02/a.csv", "--skip-bad"]), 0);
        let mut times = times_ms(folder.path());
        times.sort_unstable();
        let mut expected: Vec<i64> = (0..110).chain(second.map(i64::from)).collect();
        expected.sort_unstable();
        assert_eq!(times, expected);
    }
}

#[test]
fn a_file_that_grew_by_a_bad_line_goes_on_once_that_is_mended_or_left_out() {
    for mends in [true, false] {
        let folder = folder();
        write_rows(folder.path(), "a.csv", 0..40);
        texts(&feed(folder.path(), &["a.csv"]), 0);
        append_rows(folder.path(), "a.csv", "", 40..60);
        append_rows(folder.path(), "a.csv", "no row\n", 60..100);
        let (_, error) = texts(&feed(folder.path(), &["a.csv"]), 2);
        assert!(error.contains("a.csv:62"), "{error}");
        assert_eq!(times_ms(folder.path()), (0..40).collect::<Vec<_>>());
        let path = folder.path().join("a.csv");
        let text = std::fs::read_to_string(&path).expect("the file");
        let arguments: &[&str] = if mends { &["a.csv"] } else { &["a.csv", "--skip-bad"] };
        if mends {
            std::fs::write(&path, text.replace("no row\n", "")).expect("a file");
        }
        assert!(texts(&feed(folder.path(), arguments), 0).0.starts_with("published 60 ticks"));
        assert_eq!(times_ms(folder.path()), (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn two_feeds_at_once_share_no_file() {
    let folder = folder();
    write_rows(folder.path(), "a.csv", 0..100);
    write_rows(folder.path(), "b.csv", 100..200);
    write_rows(folder.path(), "c.csv", 200..300);
    let both = ["feed", "csv", "--map", MAP, "--log", "sqlite:w.db", "--rate", "10", "a.csv", "b.csv"];
    let mut both = Running::start(folder.path(), &both);
    let path = folder.path().join("w.db");
    both.run_until("some ticks are published", || {
        let log = SqliteLog::open_existing(&path).ok()?;
        ends(&log, "ticks").iter().any(|end| *end > 0).then_some(())
    });
    std::fs::copy(folder.path().join("b.csv"), folder.path().join("copy.csv")).expect("a copy");
    for files in [&["a.csv"][..], &["b.csv", "a.csv"], &["copy.csv", "c.csv"], &["a.csv", "--again"]] {
        let output = feed(folder.path(), files);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("stop it"), "{files:?}: {error}");
    }
    assert!(texts(&feed(folder.path(), &["c.csv"]), 0).0.starts_with("published 100 ticks"));
    both.kill();
    texts(&feed(folder.path(), &["b.csv"]), 0);
    texts(&feed(folder.path(), &["a.csv"]), 0);
    let mut times = times_ms(folder.path());
    times.sort_unstable();
    assert_eq!(times, (0..300).collect::<Vec<_>>());
}

#[test]
fn a_market_that_was_killed_goes_on_where_it_stopped() {
    let folder = folder();
    let feed = |log: &str, ticks: &str, more: &[&str]| {
        let all =
            [&["feed", "synth", "--symbols", "9", "--batch", "16", "--ticks", ticks, "--log", log], more]
                .concat();
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let arguments = feed("sqlite:w.db", "20000", &["--rate", "500"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut killed = Running::start(folder.path(), &arguments);
    let path = folder.path().join("w.db");
    killed.run_until("some ticks are published", || {
        let log = SqliteLog::open_existing(&path).ok()?;
        ends(&log, "ticks").iter().any(|end| *end > 5).then_some(())
    });
    killed.kill();
    let finish = |log: &str, ticks: &str| {
        let arguments = feed(log, ticks, &[]);
        texts(&warptape(folder.path(), &arguments.iter().map(String::as_str).collect::<Vec<_>>()), 0).0
    };
    let told = finish("sqlite:w.db", "20000");
    assert!(told.contains("the market: the first") && !told.starts_with("published 20,000"), "{told}");
    finish("sqlite:whole.db", "20000");
    assert_eq!(ticks(folder.path(), "w.db"), ticks(folder.path(), "whole.db"));
    assert!(finish("sqlite:w.db", "20000").starts_with("published 0 ticks"));
    // A longer market begins with the same ticks as the shorter one.
    assert!(finish("sqlite:w.db", "25000").starts_with("published 5,000 ticks"));
    finish("sqlite:longer.db", "25000");
    assert_eq!(ticks(folder.path(), "w.db"), ticks(folder.path(), "longer.db"));
}

/// The prices are of a coin of little value and of a spread. One is beyond 64 bits in units of 1e-9, and one has ten
/// decimals or more. Then come a number that no tick can hold, and a price that cannot be compared with the symbol's
/// others.
#[test]
fn numbers_of_all_sizes_come_through_and_what_does_not_fit_stops_nothing() {
    let folder = folder();
    let rows = [
        "COIN,0.00000812,5",
        "COIN,0.00000813,18999999999",
        "SPREAD,-37.63,1",
        "SPREAD,0,1",
        "GOLD,12000000000.25,2",
        "COIN,99999999999999999999,1",
        "COIN,20000000000,1",
        "FINE,0.000000000123,7",
        "COIN,88888888888888888888,1",
    ];
    let row = |(number, row): (usize, &&str)| format!("{},{row}\n", 1_700_000_000_000 + number);
    let text: String = rows.iter().enumerate().map(row).collect();
    std::fs::write(folder.path().join("a.csv"), format!("t,s,p,q\n{text}")).expect("a file");
    let map = "symbol=s,time=t:ms,price=p,size=q";
    let log = ["--log", "sqlite:w.db"];
    let feed = |map: &str, log: &[&str], code| {
        let arguments = ["feed", "csv", "a.csv", "--venue", "X", "--batch", "1", "--map", map];
        let one_partition = [("WARPTAPE__TOPICS__PARTITIONS", "1")];
        texts(&warptape_with(folder.path(), &[&arguments[..], log].concat(), &one_partition), code)
    };
    let (_, refused) = feed(map, &["--log", "sqlite:refused.db"], 2);
    assert!(
        refused.contains("a.csv:4: column `p`: found `-37.63`") && refused.contains("signed=yes"),
        "{refused}"
    );
    let signed = format!("{map},signed=yes");
    let (_, refused) = feed(&signed, &["--log", "sqlite:refused.db"], 2);
    for expected in
        ["3 lines have numbers that a tick cannot hold", "line 7", "99999999999999999999", "--skip-bad"]
    {
        assert!(refused.contains(expected), "{refused}");
    }
    let (told, _) = feed(&signed, &[&log[..], &["--skip-bad"]].concat(), 0);
    assert!(told.starts_with("published 6 ticks") && told.contains("skipped 3 bad lines"), "{told}");

    let environment = [("WARPTAPE__STAGES__BARS", "tick:1")];
    let mut run = Running::start_with(folder.path(), &[&["run"], &log[..]].concat(), &environment);
    let log_file = SqliteLog::open_existing(folder.path().join("w.db")).expect("the log of the feed");
    run_until_drained(&mut run, &log_file, "warptape");
    run.stop("TERM");
    let bars: Vec<_> = records(&log_file, "signals", 0)
        .iter()
        .map(|record| decode_signal(&record.value).expect("a signal").into_owned())
        .map(|signal| (signal.symbol.to_string(), signal.bar.expect("a bar").exact, signal.value))
        .collect();
    let exact = |number: usize| bars[number].1.expect("numbers beyond 64 bits of 1e-9");
    let values: Vec<_> = bars.iter().map(|(symbol, _, value)| (&symbol[2..], *value)).collect();
    let expected = [
        ("COIN", 0.00000812),
        ("COIN", 0.00000813),
        ("SPREAD", -37.63),
        ("SPREAD", 0.0),
        ("GOLD", 12_000_000_000.25),
        ("FINE", 0.000000000123),
    ];
    assert_eq!(values, expected);
    assert_eq!(exact(1).volume.0, 18_999_999_999 * 1_000_000_000);
    assert_eq!(exact(4).close.0, 12_000_000_000_250_000_000_000_000_000);
    assert_eq!(exact(5).close.0, 123_000_000);
    assert!(records(&log_file, "dead-letter", 0).is_empty(), "what is fed has digits that are taken");
    let tail = ["tail", "signals", "--from-beginning", "--exit-at-end"];
    let (table, _) = texts(&warptape(folder.path(), &[&tail[..], &log].concat()), 0);
    for number in ["12000000000.25", "18999999999", "-37.63", "0.000000000123"] {
        assert!(table.contains(number), "{number} is missing in:\n{table}");
    }
    let verify = ["replay", "verify", "--outputs"];
    let (told, _) = texts(&warptape(folder.path(), &[&verify[..], &log].concat()), 0);
    assert!(told.ends_with("identical\n"), "{told}");
}

/// Returns a line of a capture with a trade.
fn captured_trade(id: u32) -> String {
    format!(
        "6 {{\"e\":\"aggTrade\",\"E\":1723161255343,\"s\":\"B\",\"a\":{id},\"p\":\"1.5\",\"q\":\"2\",\
         \"T\":1723161255342,\"m\":true}}\n"
    )
}

/// Captures are published up to their bad line. A later feed continues after that line, but refuses a changed file.
#[test]
fn a_capture_that_was_fed_in_part_and_has_changed_is_refused() {
    let folder = folder();
    let folder = folder.path();
    let path = folder.join("day.jsonl");
    let text = captured_trade(1) + &captured_trade(2) + "no row\n" + &captured_trade(3);
    std::fs::write(&path, &text).expect("a file");
    let feed = ["feed", "binance-capture", "day.jsonl", "--venue", "V", "--log", "sqlite:w.db"];
    for published in [2, 0] {
        let (_, error) = texts(&warptape(folder, &feed), 2);
        let stopped = format!("stopped after {published} ticks");
        assert!(error.contains("day.jsonl:3") && error.contains(&stopped), "{error}");
    }
    std::fs::write(&path, text.replace("no row\n", "")).expect("a file");
    let (_, error) = texts(&warptape(folder, &feed), 2);
    assert!(error.contains("fed before, up to tick 2 but not to its end, and has changed since"), "{error}");
}

#[test]
fn a_paced_feed_stamps_the_times_of_its_schedule() {
    let folder = folder();
    let feed = ["feed", "synth", "--ticks", "1000", "--batch", "1", "--rate", "2000", "--commit-ms", "5"];
    texts(&warptape(folder.path(), &[&feed[..], &["--log", "sqlite:w.db"]].concat()), 0);
    let log = SqliteLog::open_existing(folder.path().join("w.db")).expect("the log of the feed");
    let partitions = 0..ends(&log, "ticks").len() as i32;
    let all = partitions.flat_map(|partition| records(&log, "ticks", partition));
    let mut times_ns: Vec<i64> = all.map(|record| record.timestamp_ns).collect();
    times_ns.sort_unstable();
    // A tick is due every half millisecond, whatever the machine does.
    assert_eq!(times_ns.len(), 1_000);
    assert!(
        times_ns.windows(2).all(|pair| (499_999..=500_001).contains(&(pair[1] - pair[0]))),
        "{times_ns:?}"
    );
    let error = texts(&warptape(folder.path(), &["feed", "synth", "--commit-ms", "5"]), 2).1;
    assert!(error.contains("--rate"), "{error}");
}
