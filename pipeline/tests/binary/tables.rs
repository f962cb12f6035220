//! Tables of `replay export`: they equal the output of `tail` field by field, and can be followed beside a running
//! pipeline.

use std::path::Path;
use std::process::{Command, Stdio};

use warptape_eventlog::SqliteLog;
use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_schemas::{encode_scaled_tick_batch, encode_tick_batch};

use super::bad_input::{Source, run_over, source};
use super::kafka_clients::given;
use super::outputs::records;
use super::processes::{Running, ends, folder, run_until_drained, texts, warptape};

/// Script that compares tables with the output of `tail`. Its arguments are the folder of the tables, then a topic and
/// its lines for each.
const COMPARE: &str = r#"
import json, sys
from decimal import Decimal
import polars as pl

folder = sys.argv[1]
TABLES = {"signals": "signals", "ticks": "ticks", "late": "late", "dead-letter": "dead_letters"}
# Columns under other names than in records; those of places are in the line itself.
NAMES = {
    "late": {"source_topic": "topic", "source_partition": "partition", "source_offset": "offset", "source_index": "index"},
    "dead-letter": {"source_topic": "topic", "source_partition": "partition", "source_offset": "offset",
                    "source_last_offset": "last_offset"},
}
PLACES = {"partition": "partition", "offset": "offset", "index": "index", "record_time_ns": "timestamp_ns"}
compared = set()

def expected(topic, line, column, fields):
    """The value that the line has for a column, or None if it has none."""
    record = line["record"]
    name = NAMES.get(topic, {}).get(column, column)
    if name == column and column in PLACES:
        return line[PLACES[column]]
    if topic == "dead-letter" and column in ("key_bytes", "value_bytes", "digest"):
        return (record.get("cut") or {}).get(column)
    if column in ("price_scale", "size_scale"):
        return (record["scaled"] or {column: 9})[column]
    if column in ("trade_id", "receive_time_ns"):
        return record[column] or None
    if topic == "signals" and column in ("bid_size", "ask_size", "buy_volume", "sell_volume"):
        flow, e9 = record.get("exact_flow"), record.get(column + "_e9")
        return None if e9 is None else Decimal(flow[column]) if flow else Decimal(e9).scaleb(-9)
    if topic == "signals" and column not in record:
        return (record.get("further_indicators") or {}).get(column)
    if column == "further_indicators":
        return None
    value = record.get(name)
    if isinstance(fields[column], pl.List):
        return value or []
    if isinstance(fields[column], pl.Decimal):
        return None if value is None else Decimal(value)
    if isinstance(fields[column], pl.Binary):
        return None if value is None else bytes.fromhex(value)
    return value

for topic, path in zip(sys.argv[2::2], sys.argv[3::2]):
    table = pl.read_parquet(f"{folder}/{TABLES[topic]}.parquet")
    fields = dict(table.schema)
    for column, kind in fields.items():
        if column.endswith("_ns") and isinstance(kind, pl.Datetime):
            assert kind == pl.Datetime("ns", "UTC"), (column, kind)
            table = table.with_columns(pl.col(column).to_physical())
    rows = {(row["partition"], row["offset"], row.get("index", 0)): row for row in table.iter_rows(named=True)}
    assert len(rows) == table.height
    lines = [json.loads(line) for line in open(path)]
    for line in lines:
        place = (line["partition"], line["offset"], line.get("index", 0) if topic == "ticks" else 0)
        row = rows.pop(place, None)
        if row is None:
            # Only ticks that were rejected have no row.
            assert topic == "ticks", (topic, place)
            continue
        for column, value in row.items():
            wanted = expected(topic, line, column, fields)
            assert value == wanted, (topic, place, column, value, wanted)
            if value is not None:
                compared.add((topic, column))
    assert not rows, (topic, len(rows))
print(json.dumps(sorted(f"{topic} {column}" for topic, column in compared)))
"#;

fn python(folder: &Path, script: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(given("WARPTAPE_TEST_PYTHON"));
    let command = command
        .args(["-c", script])
        .args(arguments)
        .current_dir(folder)
        .env("TZ", "UTC")
        .stdin(Stdio::null());
    texts(&command.output().expect("Python starts"), 0).0
}

fn warptape_on(folder: &Path, log: &str, arguments: &[&str]) -> String {
    texts(&warptape(folder, &[arguments, &["--log", log]].concat()), 0).0
}

/// Returns quotes and trades whose scales are not nine digits, with event times after those of `source`.
fn scaled_ticks() -> Vec<Tick> {
    let of = |number: i64| {
        let is_trade = number % 3 > 0;
        let only = |is_there: bool, value: i64| if is_there { value } else { 0 };
        Tick {
            symbol: format!("T:FINE{}", number % 2),
            kind: if is_trade { TickKind::Trade } else { TickKind::Quote },
            event_time_ns: 1_723_075_200_000_000_000 + 60_000_000_000 + number * 100_000_001,
            receive_time_ns: number,
            trade_id: only(is_trade, number),
            side: if is_trade { Side::Sell } else { Side::None },
            price_e9: only(is_trade, 812 + number),
            size_e9: only(is_trade, 7 + number),
            bid_price_e9: only(!is_trade, 800 + number),
            bid_size_e9: only(!is_trade, 3),
            ask_price_e9: only(!is_trade, 820 + number),
            ask_size_e9: only(!is_trade, 5),
            scales: Scales { price: 14, size: 0 },
        }
    };
    (0..60).map(of).collect()
}

/// Returns records of poison, good ticks, ticks with their own scales, and ticks with large sizes.
fn all_kinds() -> Source {
    let mut source = source(true);
    for (number, ticks) in scaled_ticks().chunks(10).enumerate() {
        let mut bytes = Vec::new();
        encode_scaled_tick_batch(ticks, &mut bytes).expect("a batch");
        source[number % 2].push((bytes, None));
    }
    // The volumes of these ticks need more than 64 bits in units of 1e-9.
    let large: Vec<Tick> = (0..6)
        .map(|number| Tick {
            symbol: "T:LARGE".to_owned(),
            kind: TickKind::Trade,
            event_time_ns: 1_723_075_200_000_000_000 + 70_000_000_000 + number,
            receive_time_ns: 0,
            trade_id: 1 + number,
            side: Side::Buy,
            price_e9: 5,
            size_e9: i64::MAX - 1,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        })
        .collect();
    let mut bytes = Vec::new();
    encode_tick_batch(&large, &mut bytes).expect("a batch");
    source[0].push((bytes, None));
    source
}

#[test]
fn tables_equal_what_tail_prints() {
    let folder = folder();
    let folder = folder.path();
    let (log, _) = run_over(folder, "all.db", &all_kinds());
    drop(log);
    let log = "sqlite:all.db";
    warptape_on(folder, log, &["replay", "export", "--format", "parquet", "--to", "tables"]);
    let mut arguments = vec!["tables".to_owned()];
    for topic in ["signals", "ticks", "late", "dead-letter"] {
        let lines =
            warptape_on(folder, log, &["tail", topic, "--from-beginning", "--exit-at-end", "-o", "json"]);
        assert!(lines.lines().count() > 1, "{topic}");
        let path = format!("{topic}.json");
        std::fs::write(folder.join(&path), lines).expect("a file");
        arguments.extend([topic.to_owned(), path]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let compared = python(folder, COMPARE, &arguments);
    for column in [
        "signals open",
        "signals volume",
        "signals bid_price",
        "signals bid_size",
        "ticks price",
        "ticks bid_price",
        "ticks ask_size",
        "ticks price_scale",
        "late price",
        "late watermark_ns",
        "dead-letter value",
        "dead-letter key",
        "dead-letter reason",
    ] {
        assert!(compared.contains(&format!("\"{column}\"")), "{column} is in no row: {compared}");
    }
}

#[test]
fn tables_are_chosen_by_name() {
    let folder = folder();
    let folder = folder.path();
    drop(run_over(folder, "all.db", &source(true)));
    let export = ["replay", "export", "--format", "parquet", "--to", "some", "--tables", "late,ticks"];
    let report = warptape_on(folder, "sqlite:all.db", &export);
    assert!(report.contains("are left out of the table `ticks`"), "{report}");
    let mut files: Vec<_> = std::fs::read_dir(folder.join("some"))
        .expect("the folder")
        .map(|file| file.expect("a file").file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["late.parquet", "ticks.parquet"]);
    for (arguments, words) in [
        (&["--format", "parquet", "--tables", "bars"][..], "there is no such table"),
        (&["--follow"], "--format parquet"),
        (&["--tables", "ticks"], "--format parquet"),
    ] {
        let all = [&["replay", "export", "--to", "more", "--log", "sqlite:all.db"], arguments].concat();
        let (_, error) = texts(&warptape(folder, &all), 2);
        assert!(error.contains(words), "{error}");
    }
}

/// Script that counts rows of followed tables as DuckDB reads them, and checks that no record has two rows.
const COUNT: &str = r#"
import duckdb, glob, json
counts = {}
for table, key in [("signals", "partition, \"offset\""), ("ticks", "partition, \"offset\", index"),
                   ("decisions", "journal_partition, sequence, decision_index")]:
    files = f"read_parquet('tables/{table}/*/*.parquet', hive_partitioning = true)"
    rows, = duckdb.sql(f"SELECT count(*) FROM {files}").fetchall()[0]
    distinct, = duckdb.sql(f"SELECT count(*) FROM (SELECT DISTINCT {key} FROM {files})").fetchall()[0]
    wrong, = duckdb.sql(f"SELECT count(*) FROM {files} WHERE date <> record_time_ns::DATE").fetchall()[0]
    assert rows == distinct and wrong == 0, (table, rows, distinct, wrong)
    counts[table] = rows
assert not glob.glob("tables/**/*unfinished", recursive=True)
print(json.dumps(counts))
"#;

#[test]
fn followed_tables_go_on_after_a_kill() {
    let folder = folder();
    let folder = folder.path();
    let follow = ["replay", "export", "--format", "parquet", "--follow", "--every", "1", "--to", "tables"];
    let follow = [&follow[..], &["--log", "sqlite:m.db"]].concat();
    let feed = |seed: &str| {
        let feed = ["feed", "synth", "--ticks", "20000", "--symbols", "20", "--seed", seed];
        warptape_on(folder, "sqlite:m.db", &feed);
    };
    feed("1");
    // The journal does not exist yet.
    let mut export = Running::start(folder, &follow);
    let mut run = Running::start(folder, &["run", "--log", "sqlite:m.db"]);
    let log = SqliteLog::open_existing(folder.join("m.db")).expect("the log");
    run_until_drained(&mut run, &log, "warptape");
    export.run_until("a file of signals", || {
        let days = std::fs::read_dir(folder.join("tables/signals")).ok()?;
        let mut files = days.flat_map(|day| std::fs::read_dir(day.expect("a day").path()).expect("a day"));
        files
            .any(|file| file.expect("a file").path().extension().is_some_and(|of| of == "parquet"))
            .then_some(())
    });
    export.kill();
    let mut export = Running::start(folder, &follow);
    feed("2");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let is_done = |table: &str, topic: &str| {
        let about = std::fs::read(folder.join("tables/_warptape.json")).expect("a file about the folder");
        let about: serde_json::Value = serde_json::from_slice(&about).expect("JSON");
        let next = |partition: usize| about["next"][table][partition.to_string()].as_i64().unwrap_or(0);
        let ends: Vec<i64> = ends(&log, topic);
        let reached: Vec<i64> = (0..ends.len()).map(next).collect();
        if reached == ends { Ok(()) } else { Err((table.to_owned(), reached, ends)) }
    };
    export.run_while_moving("everything is in files", || {
        [("signals", "signals"), ("ticks", "ticks"), ("decisions", "journal")]
            .into_iter()
            .try_for_each(|(table, topic)| is_done(table, topic))
    });
    let report = export.stop("TERM");
    assert!(report.contains("tables/signals") && report.contains("rows"), "{report}");
    let counts: serde_json::Value = serde_json::from_str(&python(folder, COUNT, &[])).expect("JSON");
    let partitions = |topic: &str| {
        let ends = ends(&log, topic);
        (0..ends.len() as i32).map(|partition| records(&log, topic, partition).len()).sum::<usize>()
    };
    assert_eq!(counts["signals"], partitions("signals"));
    assert_eq!(counts["ticks"], 40_000);
    assert!(counts["decisions"].as_u64() > Some(0), "{counts}");
}
