//! CSV files on their way from the command line to bars: refused files, and the outputs of fed files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use tempfile::TempDir;
use warptape_eventlog::SqliteLog;
use warptape_schemas::decode_signal;
use warptape_schemas::signal::Bar;

use super::outputs::records;
use super::processes::{Running, WARPTAPE, folder, run_until_drained, texts, warptape};

const MAP: &str = "symbol=sym,time=ts:ms,price=px,size=qty";
/// 2024-08-08T00:00:00Z, in milliseconds.
const START_MS: u64 = 1_723_075_200_000;
const DAY_MS: u64 = 86_400_000;

/// Creates a folder with settings of one partition and these bars.
fn market(bars: &str) -> TempDir {
    let folder = folder();
    let text = format!("[topics]\npartitions = 1\n[stages]\nbars = [\"{bars}\"]\n");
    std::fs::write(folder.path().join("w.toml"), text).expect("a file");
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("a file");
}

/// Runs `feed csv`; returns standard output and standard error.
fn feed(folder: &Path, log: &str, arguments: &[&str], code: i32) -> (String, String) {
    let log = format!("sqlite:{log}");
    let all = [&["feed", "csv", "-c", "w.toml", "--log", &log][..], arguments].concat();
    texts(&warptape(folder, &all), code)
}

/// Runs the pipeline over the whole log. Returns the bars by symbol and start, and the numbers of late ticks and dead
/// letters.
fn run(folder: &Path, log: &str) -> (BTreeMap<(String, i64), Bar>, usize, usize) {
    let url = format!("sqlite:{log}");
    let mut run = Running::start(folder, &["run", "-c", "w.toml", "--log", &url]);
    let log = SqliteLog::open_existing(folder.join(log)).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let signals = records(&log, "signals", 0);
    let signals = signals.iter().map(|record| decode_signal(&record.value).expect("a signal").into_owned());
    let bars =
        signals.filter_map(|signal| Some(((signal.symbol.to_string(), signal.bar_start_ns), signal.bar?)));
    (bars.collect(), records(&log, "late", 0).len(), records(&log, "dead-letter", 0).len())
}

/// Formats rows for the map above; their times are one second apart.
fn rows(prices: impl Iterator<Item = String>) -> String {
    prices.enumerate().fold("sym,ts,px,qty\n".to_owned(), |mut text, (second, price)| {
        writeln!(text, "V:A,{},{price},1", START_MS + 1_000 * second as u64).expect("a text grows");
        text
    })
}

#[test]
fn digits_that_no_tick_can_hold_are_refused_rounded_or_left_out() {
    let folder = market("tick:1");
    let folder = folder.path();
    // Every fourth price looks like a sum of tenths that was printed as a float.
    let price = |row: u32| {
        if row % 4 == 3 { format!("{}.{}99999999996", 100, row % 9) } else { format!("100.{}", row % 9) }
    };
    write(folder, "noise.csv", &rows((0..80).map(price)));
    let (_, refused) = feed(folder, "w.db", &["noise.csv", "--map", MAP], 2);
    for expected in ["20 lines have numbers that a tick cannot hold", "line 5", "--round", "--skip-bad"] {
        assert!(refused.contains(expected), "{refused}");
    }
    assert!(!folder.join("w.db").exists(), "nothing is published");
    let (told, _) = feed(folder, "round.db", &["noise.csv", "--map", MAP, "--round", "9"], 0);
    assert!(told.starts_with("published 80 ticks"), "{told}");
    let (bars, late, dead) = run(folder, "round.db");
    assert_eq!((bars.len(), late, dead), (80, 0, 0));
    // The flag `--round` and the map's `round` have the same effect.
    let map = format!("{MAP},round=9");
    assert!(feed(folder, "round.db", &["noise.csv", "--map", &map], 0).0.starts_with("published 0 ticks"));
    let (told, _) = feed(folder, "skip.db", &["noise.csv", "--map", MAP, "--skip-bad"], 0);
    assert!(told.starts_with("published 60 ticks") && told.contains("skipped 20 bad lines"), "{told}");
    let (bars, late, dead) = run(folder, "skip.db");
    assert_eq!((bars.len(), late, dead), (60, 0, 0));

    // The first price of a symbol in the log determines the number of digits of its later prices.
    write(folder, "next.csv", &rows((0..4).map(|row| format!("100.{row}99999999996"))));
    let (_, refused) = feed(folder, "skip.db", &["next.csv", "--map", MAP], 2);
    assert!(
        refused.contains("4 lines have numbers") && refused.contains("as many as the first price of V:A"),
        "{refused}"
    );
    // In a log without the symbol, all these digits are valid.
    assert!(feed(folder, "new.db", &["next.csv", "--map", MAP], 0).0.starts_with("published 4 ticks"));
    // From then on, a price of ten million no longer fits.
    write(folder, "large.csv", &rows(["10000000.5", "99.5"].map(str::to_owned).into_iter()));
    let (_, refused) = feed(folder, "new.db", &["large.csv", "--map", MAP], 2);
    assert!(refused.contains("1 lines have numbers") && refused.contains("found `10000000.5`"), "{refused}");
    assert_eq!(run(folder, "new.db").2, 0);
}

#[test]
fn a_file_of_bad_lines_is_no_success() {
    let folder = market("1s");
    let folder = folder.path();
    write(folder, "bad.csv", &rows((0..3).map(|_| "none".to_owned())));
    let (out, told) = feed(folder, "w.db", &["bad.csv", "--map", MAP, "--skip-bad"], 2);
    assert!(out.is_empty(), "{out}");
    for expected in
        ["the input has no ticks", "3 of them in", "bad.csv.bad", "line 2: column `px`: found `none`"]
    {
        assert!(told.contains(expected), "{told}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("bad.csv.bad")).expect("written").lines().count(), 3);
}

/// Returns a month of aggregated trades in which every other row is `days` days ahead.
fn interleaved(days: u64) -> String {
    let rows = (0..10).flat_map(|row: u64| [(row, 0), (row, days)]);
    rows.fold(String::new(), |text, (row, days)| {
        let (id, price, time_ms) = (1 + row + days * 100, 100 + days, START_MS + 1_000 * row + days * DAY_MS);
        text + &format!("{id},{price}.{row},1,1,1,{time_ms},false\n")
    })
}

#[test]
fn rows_that_go_back_are_refused_or_sorted_whatever_the_batch() {
    let name = "BTCUSDT-aggTrades-2024-08.csv";
    let (mut sorted, mut kept) = (Vec::new(), Vec::new());
    for batch in ["1", "3", "256"] {
        let folder = market("1s");
        let folder = folder.path();
        for (days, found) in [
            (
                2,
                "9 of 20 rows lie more than 2 s behind earlier rows, the first in line 3, the farthest by 47.999 h in line 3",
            ),
            (
                20,
                "10 of 20 rows lie more than 4 days ahead of earlier rows, the first in line 2, the farthest by 20 days in line 2",
            ),
        ] {
            write(folder, name, &interleaved(days));
            let (_, refused) = feed(folder, "w.db", &[name, "--batch", batch], 2);
            for expected in [found, "--sort", "--keep-order"] {
                assert!(refused.contains(expected), "{refused}");
            }
            assert!(!folder.join("w.db").exists(), "nothing is published");
        }
        write(folder, name, &interleaved(2));
        let (told, _) = feed(folder, "w.db", &[name, "--sort", "--batch", batch], 0);
        assert!(told.starts_with("published 20 ticks"), "{told}");
        // The same feed again adds nothing. A feed of the same file in another order is refused.
        assert!(feed(folder, "w.db", &[name, "--sort"], 0).0.starts_with("published 0 ticks"));
        let (_, other) = feed(folder, "w.db", &[name, "--keep-order"], 2);
        assert!(other.contains("20 of its ticks are already in the log, fed sorted"), "{other}");
        sorted.push(run(folder, "w.db"));
        // In file order, every other row is late, or ten ticks are far ahead of the others.
        for days in [2, 20] {
            write(folder, name, &interleaved(days));
            let log = format!("kept-{days}.db");
            let (told, warned) = feed(folder, &log, &[name, "--keep-order", "--batch", batch], 0);
            assert!(
                told.starts_with("published 20 ticks") && warned.contains("of 20 rows lie more than"),
                "{told}{warned}"
            );
            kept.push(run(folder, &log));
        }
    }
    let (bars, late, dead) = &sorted[0];
    assert_eq!((bars.len(), *late, *dead), (17, 0, 0), "20 trades, of which three wait for others");
    assert!(sorted.iter().all(|found| found == &sorted[0]), "sorted, outputs depend on batches");
    // Ten trades are a second apart, and three of their bars remain open. Late rows of large records are written to
    // late records of their own.
    assert_eq!((kept[0].1, kept[1].2), (9, 10));
    let bars = |found: &(BTreeMap<_, Bar>, usize, usize)| found.0.clone();
    for found in kept.chunks(2) {
        assert!(
            bars(&found[0]) == bars(&kept[0]) && bars(&found[1]) == bars(&kept[1]),
            "outputs depend on batches"
        );
        assert_eq!(found[1].2, 10);
    }
}

#[test]
fn a_file_that_runs_backwards_gives_what_it_gives_turned_round() {
    let folder = market("1s");
    let folder = folder.path();
    let price = |row: u32| format!("{}", 100 + row / 2 % 9);
    let text = rows((0..2_000).map(price));
    let mut lines: Vec<&str> = text.lines().collect();
    write(folder, "oldest.csv", &text);
    lines[1..].reverse();
    write(folder, "newest.csv", &(lines.join("\n") + "\n"));
    let (_, refused) = feed(folder, "w.db", &["newest.csv", "--map", MAP], 2);
    assert!(
        refused.contains("the newest of its 2000 rows comes first") && refused.contains("--sort"),
        "{refused}"
    );
    feed(folder, "newest.db", &["newest.csv", "--map", MAP, "--sort"], 0);
    feed(folder, "oldest.db", &["oldest.csv", "--map", MAP], 0);
    let (found, expected) = (run(folder, "newest.db"), run(folder, "oldest.db"));
    assert_eq!((expected.0.len(), expected.1, expected.2), (1_997, 0, 0));
    assert!(found == expected);
    // A file that was fed sorted must not grow, because its new rows could belong between the old ones.
    let grown = std::fs::read_to_string(folder.join("newest.csv")).expect("a file") + "V:A,1,1,1\n";
    write(folder, "newest.csv", &grown.replace("V:A,1,", &format!("V:A,{START_MS},")));
    let (_, refused) = feed(folder, "newest.db", &["newest.csv", "--map", MAP, "--sort"], 2);
    assert!(refused.contains("was fed sorted and has grown since"), "{refused}");
}

#[test]
fn trades_and_quotes_of_two_files_meet() {
    let folder = market("1s");
    let folder = folder.path();
    let (mut trades, mut quotes) =
        ("time_us,price,amount\n".to_owned(), "time_us,ask_price,bid_price\n".to_owned());
    for second in 0..20 {
        let time_us = (START_MS + 1_000 * second) * 1_000;
        writeln!(trades, "{time_us},{},10", 100 + second).expect("a text grows");
        writeln!(quotes, "{},{}.5,{}.5", time_us - 500_000, 100 + second, 99 + second).expect("a text grows");
    }
    write(folder, "trades.csv", &trades);
    write(folder, "quotes.csv", &quotes);
    let maps = [
        "symbol='V:P',time=time_us:us,price=price,size=amount",
        "symbol='V:P',time=time_us:us,bid_price=bid_price,ask_price=ask_price",
    ];
    let arguments = ["trades.csv", "quotes.csv", "--map", maps[0], "--map", maps[1]];
    let (told, _) = feed(folder, "w.db", &arguments, 0);
    assert!(told.starts_with("published 40 ticks"), "{told}");
    // The ledger stores each file together with its map.
    assert!(feed(folder, "w.db", &["quotes.csv", "--map", maps[1]], 0).0.starts_with("published 0 ticks"));
    let (bars, late, dead) = run(folder, "w.db");
    assert_eq!((late, dead), (0, 0));
    let first = &bars[&("V:P".to_owned(), (START_MS * 1_000_000) as i64)];
    assert_eq!((first.bid_price_e9, first.ask_price_e9), (Some(100_500_000_000), Some(101_500_000_000)));
}

#[test]
fn what_is_odd_about_rows_is_told() {
    let folder = market("1s");
    let folder = folder.path();
    let told = |name: &str, text: &str, arguments: &[&str], code| {
        write(folder, name, text);
        let (out, said) = feed(folder, &format!("{name}.db"), &[&[name], arguments].concat(), code);
        out + &said
    };
    let seconds = told("seconds.csv", "sym,ts,px,qty\nV:S,1723075200,1,1\n", &["--map", MAP], 2);
    assert!(
        seconds.contains("seconds.csv:2") && seconds.contains("as s 2024-08-08T00:00:00Z: write ts:s"),
        "{seconds}"
    );
    let zero = told(
        "XRPUSDT-trades-2024-08-08.csv",
        "1,2.2,10,22,1723075200000,true\n2,0,0,0,1723075200600,false\n",
        &[],
        0,
    );
    assert!(zero.starts_with("published 1 ticks") && zero.contains(", 1 trade of price or size 0"), "{zero}");
    let fixed = told("fixed.csv", "sym,ts,px,qty\nV:S,1723075200000,3720250000000,1\n", &["--map", MAP], 0);
    assert!(fixed.contains("WARN") && fixed.contains("multiples of 1e-9"), "{fixed}");
    let map = format!("{MAP},trade_id=id");
    let ids = told("ids.csv", "sym,ts,px,qty,id\nV:S,1723075200000,1,1,a-b\n", &["--map", &map], 0);
    assert!(ids.contains("the lower 63 bits of their XXH3-64"), "{ids}");
    let mut jump: Vec<String> = rows((0..100).map(|_| "1".to_owned())).lines().map(str::to_owned).collect();
    jump[6] = format!("V:A,{},1,1", START_MS + 365 * DAY_MS);
    let jump = told("jump.csv", &(jump.join("\n") + "\n"), &["--map", MAP], 0);
    assert!(jump.starts_with("published 100 ticks"), "{jump}");
    assert!(jump.contains("1 of 100 rows lie more than 4 days ahead") && jump.contains("line 7"), "{jump}");
    // A venue that lags behind another one is in order by itself.
    let behind: String = (0..20)
        .flat_map(|second| [("A:X", second + 3), ("B:X", second)])
        .fold("sym,ts,px,qty\n".to_owned(), |text, (symbol, second)| {
            text + &format!("{symbol},{},1,1\n", START_MS + 1_000 * second)
        });
    let behind = told("behind.csv", &behind, &["--map", MAP], 0);
    assert!(
        behind.contains("20 rows lie more than 2 s behind rows of other venues, the farthest by 3 s"),
        "{behind}"
    );
}

#[test]
fn a_pipe_is_read_once() {
    let folder = market("1s");
    let folder = folder.path();
    write(folder, "a.csv", &rows((0..50).map(|_| "1".to_owned())));
    let feed = |more: &str| {
        let line = format!(
            "cat a.csv | {WARPTAPE} feed csv -c w.toml --log sqlite:w.db /dev/stdin --map {MAP} {more}"
        );
        std::process::Command::new("sh").args(["-c", &line]).current_dir(folder).output().expect("a shell")
    };
    assert!(texts(&feed(""), 0).0.starts_with("published 50 ticks"));
    assert!(texts(&feed("--sort"), 2).1.contains("/dev/stdin: --sort reads the input twice"));
}

/// A minute of trades, in a venue's own summary.
#[derive(Debug, PartialEq)]
struct Minute {
    open: i64,
    high: i64,
    low: i64,
    close: i64,
    volume: i64,
    trades: i64,
}

#[test]
fn minutes_of_a_dump_are_the_venues_own() {
    let folder = market("1m");
    let folder = folder.path();
    // The random walk has prices in cents and sizes in units of 1e-8, and is the same on all machines.
    let mut state = 7_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut dump, mut minutes) = (String::new(), BTreeMap::<i64, Minute>::new());
    let (mut time_ms, mut cents) = (START_MS, 5_516_799_i64);
    for id in 0..3_000 {
        time_ms += draw(400);
        cents += draw(301) as i64 - 150;
        // Now and then the venue marks a row as not a trade.
        let size = if draw(100) == 0 { 0 } else { 1 + draw(300_000_000) as i64 };
        let (whole, part) = (size / 100_000_000, size % 100_000_000);
        let price = format!("{}.{:02}000000", cents / 100, cents % 100);
        let side = ["True", "False"][draw(2) as usize];
        writeln!(dump, "{id},{price},{whole}.{part:08},0.0,{time_ms},{side},True").expect("a text grows");
        if size == 0 {
            continue;
        }
        let start_ns = (time_ms / 60_000 * 60_000 * 1_000_000) as i64;
        let new = Minute { open: cents, high: cents, low: cents, close: cents, volume: 0, trades: 0 };
        let minute = minutes.entry(start_ns).or_insert(new);
        minute.high = minute.high.max(cents);
        minute.low = minute.low.min(cents);
        minute.close = cents;
        minute.volume += size;
        minute.trades += 1;
    }
    write(folder, "BTCUSDT-trades-2024-08-08.csv", &dump);
    let gzip = ["-k", "BTCUSDT-trades-2024-08-08.csv"];
    let gzip = std::process::Command::new("gzip").args(gzip).current_dir(folder).status();
    assert!(gzip.expect("gzip").success());
    feed(folder, "w.db", &["BTCUSDT-trades-2024-08-08.csv.gz"], 0);
    let (bars, late, dead) = run(folder, "w.db");
    assert_eq!((late, dead), (0, 0));
    assert!(bars.len() >= 8, "{} minutes", bars.len());
    for ((symbol, start_ns), bar) in &bars {
        let cents = |price_e9: Option<i64>| price_e9.expect("a price in 1e-9") / 10_000_000;
        let found = Minute {
            open: cents(bar.open_e9),
            high: cents(bar.high_e9),
            low: cents(bar.low_e9),
            close: cents(bar.close_e9),
            volume: bar.volume_e9 / 10,
            trades: bar.trades,
        };
        assert_eq!((symbol.as_str(), &found), ("BINANCE:BTCUSDT", &minutes[start_ns]));
    }
    // The bar of the last minute is still open.
    assert_eq!(bars.len() + 1, minutes.len());
}
