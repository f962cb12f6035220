//! Commands that list things: their filters, columns, widths and formats.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;
use unicode_width::UnicodeWidthStr;

use super::processes::{WARPTAPE, folder, texts, warptape};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];
const OLD: [&str; 2] = ["--from-beginning", "--exit-at-end"];

/// Returns the folder of a log of some minutes with signals of bars of 1 s and 1 m. It is created once for all tests
/// here.
fn recorded() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let made = FOLDER.get_or_init(|| {
        let folder = folder();
        let feed = ["feed", "synth", "--symbols", "5", "--ticks", "200000", "--seed", "3"];
        texts(&warptape(folder.path(), &[&feed[..], &LOG].concat()), 0);
        texts(&warptape(folder.path(), &[&["run", "--until-caught-up", "--close"][..], &LOG].concat()), 0);
        folder
    });
    made.path()
}

fn out(arguments: &[&str]) -> String {
    texts(&warptape(recorded(), &[arguments, &LOG].concat()), 0).0
}

fn tail(topic: &str, arguments: &[&str]) -> String {
    out(&[&["tail", topic][..], &OLD, arguments].concat())
}

fn refused(arguments: &[&str]) -> String {
    let (out, error) = texts(&warptape(recorded(), &[arguments, &LOG].concat()), 2);
    assert!(out.is_empty(), "{out}");
    error
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is one JSON value")).collect()
}

/// Runs a command on a terminal of this width. `set` is a width in the environment; `None` for none.
fn on_terminal(columns: usize, set: Option<&str>, arguments: &[&str]) -> String {
    let line = format!("stty cols {columns}; exec {WARPTAPE} {} {}", arguments.join(" "), LOG.join(" "));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(recorded())
        .env("TERM", "xterm-256color")
        .env_remove("COLUMNS")
        .envs(set.map(|columns| ("COLUMNS", columns)))
        .stdin(Stdio::null())
        .output()
        .expect("script is there: it is in the Debian package bsdutils");
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    assert!(output.status.success(), "{arguments:?}: {text}");
    text.replace("\r\n", "\n")
}

#[test]
fn filters_take_the_records_that_have_all_of_it() {
    let all = json_lines(&tail("signals", &["-o", "json"]));
    let check = |arguments: &[&str], wanted: &dyn Fn(&Value) -> bool| {
        let found = json_lines(&tail("signals", &[arguments, &["-o", "json"]].concat()));
        let expected: Vec<&Value> = all.iter().filter(|line| wanted(&line["record"])).collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{arguments:?}: {}", expected.len());
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{arguments:?}");
    };
    check(&["--bar", "60s"], &|record| record["bar_spec"] == "1m");
    check(&["--kind", "bar"], &|record| record["kind"] == "BAR");
    check(&["--kind", "rsi-overbought,rsi_oversold"], &|record| {
        ["RSI_OVERBOUGHT", "RSI_OVERSOLD"].contains(&record["kind"].as_str().expect("a kind"))
    });
    let ends = |record: &Value| record["bar_end_ns"].as_i64().expect("a time");
    let (first, last) = ("2024-08-08T00:00:10Z", "1723075220000000000");
    let within = |ns: i64| (1_723_075_210_000_000_000..1_723_075_220_000_000_000).contains(&ns);
    check(&["--since", first, "--until", last], &|record| within(ends(record)));
    check(&["--symbol", "SYNTH:AAAA", "--bar", "1s", "--since", first], &|record| {
        record["symbol"] == "SYNTH:AAAA"
            && record["bar_spec"] == "1s"
            && ends(record) >= 1_723_075_210_000_000_000
    });
    // Filters apply to each tick of a record. Old records are read even without --from-beginning.
    let ticks = out(&["tail", "ticks", "--exit-at-end", "--since", first, "--until", last, "-o", "json"]);
    let all = json_lines(&tail("ticks", &["-o", "json"]));
    let expected = all.iter().filter(|line| line["record"]["event_time_ns"].as_i64().is_some_and(within));
    assert_eq!(json_lines(&ticks).iter().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    // Entries of the journal are filtered by the kind of their input.
    let placed = tail("journal", &["--kind", "arrived,started"]);
    let entries: Vec<&str> = placed.lines().skip(1).filter(|line| !line.starts_with("    ")).collect();
    let is_wanted = |line: &&str| line.contains("  Arrived: ") || line.contains("  Started: ");
    assert!(entries.len() > 1 && entries.iter().all(is_wanted), "{placed}");
}

#[test]
fn unknown_names_list_the_known_ones() {
    let error = refused(&["tail", "signals", "--kind", "bars"]);
    assert!(error.contains("\"bars\"") && error.contains("BAR, EMA_CROSS_UP"), "{error}");
    let error = refused(&["tail", "signals", "--columns", "symbol,colour"]);
    assert!(
        error.contains("\"colour\"") && error.contains("bar_end, symbol") && error.contains("rsi"),
        "{error}"
    );
    let error = refused(&["tail", "ticks", "--bar", "1m"]);
    assert!(error.contains("only signals do"), "{error}");
    for (arguments, expected) in [
        (["tail", "signals", "--bar", "minute"], "write a time"),
        (["tail", "signals", "--since", "noon"], "ns since the epoch"),
        (["tail", "signals", "--raw", "--exit-at-end"], "-o json"),
        (["topics", "--raw", "-o", "csv"], "-o json"),
        (["replay", "why", "3", "--bar=1m"], "give a symbol"),
    ] {
        let error = refused(&arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let bar = warptape(recorded(), &[&["tail", "signals", "--bar", "7m"][..], &OLD, &LOG].concat());
    let (out, error) = texts(&bar, 0);
    assert!(out.is_empty() && error.contains("no bar \"7m\" so far; it has 1m, 1s"), "{error}");
}

#[test]
fn columns_are_those_that_were_asked_for() {
    let table = tail("signals", &["--kind", "bar", "--columns", "close,symbol,rsi,offset"]);
    let titles: Vec<&str> = table.lines().next().expect("titles").split_whitespace().collect();
    assert_eq!(titles, ["CLOSE", "SYMBOL", "rsi", "OFFSET"]);
    let entries = tail("journal", &["--columns", "sequence,at"]);
    assert!(entries.lines().count() > 10 && entries.lines().all(|line| line.width() < 40), "{entries}");
}

#[test]
fn csv_has_the_exact_values_of_json() {
    let columns = ["--columns", "partition,offset,symbol,bar_end,open,value,rsi,bar_start,buy_volume"];
    let text = tail("signals", &[&["-o", "csv"][..], &columns].concat());
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = rows.headers().expect("names").iter().map(str::to_owned).collect();
    assert_eq!(names.join(","), columns[1]);
    let rows: Vec<csv::StringRecord> = rows.records().map(|row| row.expect("a row")).collect();
    let lines = json_lines(&tail("signals", &["-o", "json"]));
    assert_eq!(rows.len(), lines.len());
    for (row, line) in rows.iter().zip(&lines) {
        for (name, cell) in names.iter().zip(row) {
            let of_place = ["partition", "offset"].contains(&&**name);
            let expected = if of_place { &line[name] } else { &line["record"][name] };
            let is_same = match expected {
                Value::Null => cell.is_empty(),
                Value::String(text) => cell == text,
                // The digits of a price may be written as a decimal.
                number => cell.parse().ok() == number.as_f64(),
            };
            assert!(is_same, "{name}: {cell} is not {expected}");
        }
    }
    let journal = tail("journal", &["-o", "csv"]);
    assert!(journal.starts_with("partition,offset,sequence,at,input,decisions\n"), "{journal}");
    let mut entries =
        csv::Reader::from_reader(journal.as_bytes()).into_records().map(|row| row.expect("a row"));
    assert!(entries.any(|row| row[5].contains("Dispatch: batch 0 of ")), "{journal}");
}

#[test]
fn topics_are_listed_in_every_format() {
    let lines = json_lines(&out(&["topics", "-o", "json"]));
    let text = out(&["topics", "-o", "csv"]);
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(text.as_bytes()).into_records().map(|row| row.expect("a row")).collect();
    assert_eq!((lines.len(), out(&["topics"]).lines().count()), (rows.len(), rows.len() + 1));
    for (line, row) in lines.iter().zip(&rows) {
        let names = ["partition", "first", "next", "offsets", "compacted"];
        assert_eq!(line["topic"], row[0]);
        assert_eq!(names.map(|name| line[name].to_string()), [&row[1], &row[2], &row[3], &row[4], &row[5]]);
    }
}

#[test]
fn the_latest_signals_are_rows_of_the_topic() {
    let latest = out(&["hot", "get", "SYNTH:AAAA", "-o", "csv"]);
    let all = tail("signals", &["--symbol", "SYNTH:AAAA", "-o", "csv"]);
    let rows: Vec<&str> = all.lines().collect();
    assert!(latest.lines().count() > 2 && latest.lines().next() == rows.first().copied(), "{latest}");
    for row in latest.lines() {
        assert!(rows.contains(&row), "{row} is not in\n{all}");
    }
}

#[test]
fn records_have_one_shape_with_times_as_text_and_raw_integers_as_text() {
    fn with_text(value: &Value) -> Value {
        match value {
            Value::Number(number) if !number.is_f64() => number.to_string().into(),
            Value::Array(items) => items.iter().map(with_text).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(name, value)| (name.clone(), with_text(value))).collect())
            }
            other => other.clone(),
        }
    }
    for command in [
        &["tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json"][..],
        &["tail", "journal", "--from-beginning", "--exit-at-end", "-o", "json"],
        &["tail", "ticks", "--from-beginning", "--exit-at-end", "-o", "json"],
        &["topics", "-o", "json"],
        &["replay", "slowest", "3", "-o", "json"],
        &["replay", "why", "SYNTH:AAAA", "-o", "json"],
    ] {
        let numbers = json_lines(&out(command));
        let raw = json_lines(&out(&[command, &["--raw"]].concat()));
        assert!(!numbers.is_empty());
        assert_eq!(numbers.iter().map(with_text).collect::<Vec<_>>(), raw, "{command:?}");
    }
    let signals = json_lines(&tail("signals", &["-o", "json"]));
    let names =
        |line: &Value| line["record"].as_object().expect("a record").keys().cloned().collect::<Vec<_>>();
    assert!(signals.iter().any(|line| line["record"]["kind"] != "BAR"), "an alert is of an earlier version");
    assert!(signals.iter().all(|line| names(line) == names(&signals[0])), "signals have one shape");
    let entry = &json_lines(&tail("journal", &["-o", "json"]))[0]["record"];
    assert!(entry["at_ns"].is_i64() && entry["at"].as_str().is_some_and(|at| at.ends_with('Z')), "{entry}");
    let slowest = &json_lines(&out(&["replay", "slowest", "1", "-o", "json"]))[0]["signals"][0]["chain"];
    let transaction = &slowest["transaction"];
    assert!(transaction["committed_ns"].is_i64() && transaction["committed"].is_string(), "{transaction}");
}

#[test]
fn tables_fit_the_terminal() {
    for columns in [40, 80, 120, 200, 240] {
        for command in [
            &["tail", "signals", "--exit-at-end", "--from-beginning"][..],
            &["tail", "ticks", "--exit-at-end", "--from-beginning", "--symbol", "SYNTH:AAAA"],
            &["tail", "journal", "--exit-at-end", "--from-beginning"],
            &["tail", "lifecycle", "--exit-at-end", "--from-beginning"],
            &["topics"],
        ] {
            let text = on_terminal(columns, None, command);
            // The note about columns that have no room is a message, and the terminal may break it.
            for line in text.lines().filter(|line| !line.contains(" with --wide: ")) {
                assert!(line.width() <= columns, "{command:?} in {columns}: {line:?} is {}", line.width());
            }
            assert!(text.lines().count() > 5, "{text}");
        }
        for command in [&["replay", "slowest", "5"][..], &["replay", "why", "SYNTH:AAAA"]] {
            let text = on_terminal(columns, None, command);
            let mut of_table = text.lines().skip_while(|line| !line.contains("_ms"));
            let titles = of_table.next().expect("titles");
            // The progress bar is erased before the titles.
            let titles = titles.rsplit("\u{1b}[2K").next().unwrap_or(titles);
            let rows = of_table.take_while(|line| !line.is_empty() && !line.contains(" checked; "));
            for line in std::iter::once(titles).chain(rows) {
                assert!(line.width() <= columns, "{command:?} in {columns}: {line:?} is {}", line.width());
            }
        }
    }
    for columns in [40, 80, 160] {
        // Facts above the tables may be longer.
        let text = on_terminal(columns, None, &["hot", "get", "SYNTH:AAAA"]);
        let tables = text.split_once("\n\n").expect("facts, and then tables").1;
        assert!(tables.contains("SYMBOL") && tables.contains("INDICATOR"), "{text}");
        // Rows of all tables are indented, and sentences are not.
        let compared = on_terminal(columns, None, &["replay", "diff", "w.db", "w.db"]);
        // A progress bar is erased before the line that follows it.
        let shown = compared.lines().map(|line| line.rsplit("\u{1b}[2K").next().unwrap_or(line));
        let rows: Vec<&str> = shown.filter(|line| line.starts_with("  ")).collect();
        assert!(rows.len() > 15, "{compared}");
        for line in tables.lines().chain(rows) {
            assert!(line.width() <= columns, "{columns}: {line:?} is {}", line.width());
        }
    }
    let modelled = on_terminal(90, None, &["replay", "what-if", "--seeds", "2"]);
    let rows: Vec<&str> = modelled
        .lines()
        .skip_while(|line| !line.contains("difference (95 %)"))
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(rows.len() > 5 && rows.iter().all(|line| line.width() <= 90), "{modelled}");
    assert!(rows[rows.len() - 1].contains(" with --wide: "), "{modelled}");
    let narrow = on_terminal(80, None, &["tail", "signals", "--exit-at-end", "--from-beginning"]);
    assert!(narrow.contains("(12 columns with --wide: POSITION, WRITTEN, "), "{narrow}");
    let wide = on_terminal(80, None, &["tail", "signals", "--exit-at-end", "--from-beginning", "--wide"]);
    assert_eq!(wide, tail("signals", &[]), "all columns, as elsewhere");
    let set = on_terminal(200, Some("80"), &["tail", "signals", "--exit-at-end", "--from-beginning"]);
    assert_eq!(set, narrow, "COLUMNS is the width");
}

#[test]
fn a_symbol_is_explained_by_its_newest_signal_or_by_a_time_and_a_bar() {
    let signals = json_lines(&tail("signals", &["--symbol", "SYNTH:AAAB", "-o", "json"]));
    let minutes: Vec<&Value> = signals.iter().filter(|line| line["record"]["bar_spec"] == "1m").collect();
    let place = |line: &Value| (line["partition"].clone(), line["offset"].clone());
    let why = |arguments: &[&str]| {
        let chain = &json_lines(&out(&[&["replay", "why"][..], arguments, &["-o", "json"]].concat()))[0];
        place(&chain["signal"])
    };
    assert_eq!(why(&["SYNTH:AAAB"]), place(signals.last().expect("a signal")));
    let newest = minutes.last().expect("a bar of a minute");
    assert_eq!(why(&["SYNTH:AAAB", "--bar", "1m"]), place(newest));
    let first = minutes[0];
    let at = format!("SYNTH:AAAB@{}", first["record"]["bar_end"].as_str().expect("a time"));
    assert_eq!(why(&[&at, "--bar", "60s"]), place(first));
    assert_ne!(why(&["SYNTH:AAAB@2024-08-08T00:00:02Z"]), place(first), "bars of a second come before");
    let error = refused(&["replay", "why", "SYNTH:AAAB", "--bar", "7m"]);
    assert!(error.contains("the bar \"7m\"; its bars: 1m, 1s"), "{error}");
}
