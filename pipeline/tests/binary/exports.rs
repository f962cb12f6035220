//! Exports. Files exported from the embedded log and from Kafka verify elsewhere, as a whole and for a window. Exported
//! tables can be read by polars and DuckDB.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use warptape_eventlog::{EventLog, SqliteLog};
use warptape_schemas::journal::Input;
use warptape_schemas::{decode_journal_entry, registry_id_of};

use super::files_of_logs::move_log;
use super::kafka_clients::{Setup, given};
use super::outputs::records;
use super::processes::{Running, folder, recorded, run_until_drained, texts, warptape};
use super::registry_stub::RegistryStub;

const CONFIGURATION: &str = "\
[engine]
devices = [\"cpu:2\"]
snapshot_interval_records = 40
commit_interval_ms = 20
poll_records_max = 8
[stages]
bars = [\"1s\", \"tick:20\"]
[topics]
partitions = 2
";

fn run_in(folder: &Path, arguments: &[&str], log: &str) -> std::process::Output {
    let all: Vec<&str> = arguments.iter().copied().chain(["-c", "warptape.toml", "--log", log]).collect();
    warptape(folder, &all)
}

/// Returns the first line of a command's report about a log.
#[track_caller]
fn said(folder: &Path, arguments: &[&str], log: &str) -> String {
    texts(&run_in(folder, arguments, log), 0).0
}

const VERIFY: [&str; 3] = ["replay", "verify", "--outputs"];
const TAIL: [&str; 6] = ["tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json"];

/// Creates another folder that contains only the same configuration.
fn elsewhere() -> TempDir {
    let folder = folder();
    fs::write(folder.path().join("warptape.toml"), CONFIGURATION).expect("a file");
    folder
}

#[test]
fn a_file_is_the_run_wherever_it_is() {
    let here = recorded(CONFIGURATION);
    let (there, file) = (elsewhere(), "night.db");
    let export = |arguments: &[&str], code: i32| {
        let all: Vec<&str> = ["replay", "export"].iter().chain(arguments).copied().collect();
        texts(&run_in(here.path(), &all, "sqlite:market.db"), code)
    };
    let to = there.path().join(file);
    let (out, _) = export(&["--to", to.to_str().expect("UTF-8"), "--with-ticks"], 0);
    assert!(
        out.contains("exported to") && out.contains("warptape replay verify --outputs --log sqlite:"),
        "{out}"
    );
    let verified = said(here.path(), &VERIFY, "sqlite:market.db");
    assert!(verified.contains("signals: identical"), "{verified}");
    // The source is no longer needed.
    let moved = folder();
    move_log(&here.path().join("market.db"), &moved.path().join("market.db"));
    assert_eq!(said(there.path(), &VERIFY, "sqlite:night.db"), verified);
    let lines = said(there.path(), &TAIL, "sqlite:night.db");
    move_log(&moved.path().join("market.db"), &here.path().join("market.db"));
    assert_eq!(said(here.path(), &TAIL, "sqlite:market.db"), lines);
    assert!(lines.lines().count() > 100);
    let why = ["replay", "why", "20"];
    assert_eq!(said(there.path(), &why, "sqlite:night.db"), said(here.path(), &why, "sqlite:market.db"));
    let checked = said(there.path(), &["log", "check"], "sqlite:night.db");
    assert!(checked.trim_end().ends_with("whole"), "{checked}");

    // The command does not overwrite existing files.
    let before = fs::read(&to).expect("the file");
    let (_, error) = export(&["--to", to.to_str().expect("UTF-8")], 2);
    assert!(error.contains("exists, and existing files are never overwritten"), "{error}");
    assert!(fs::read(&to).expect("the file") == before);
}

#[test]
fn a_window_is_a_file_of_its_own() {
    let (here, there) = (recorded(CONFIGURATION), elsewhere());
    let log = SqliteLog::open_existing(here.path().join("market.db")).expect("the log");
    let journal = records(&log, "journal", 0);
    let entries: Vec<_> =
        journal.iter().map(|record| decode_journal_entry(&record.value).expect("an entry")).collect();
    let second = entries.iter().rposition(|entry| matches!(entry.input, Input::Started(_))).expect("a start");
    assert!(second > 0);
    let since = format!("sequence:{}", entries[second + 3].sequence);
    let to = there.path().join("window.db");
    let to = to.to_str().expect("UTF-8");
    let export = ["replay", "export", "--to", to, "--since", &since, "--with-ticks", "-o", "json"];
    let exported: serde_json::Value =
        serde_json::from_str(&said(here.path(), &export, "sqlite:market.db")).expect("JSON");
    let of = |name: &str| {
        let topics = exported["topics"].as_array().expect("topics");
        topics.iter().find(|topic| topic["name"] == name).expect("the topic")["records"]
            .as_u64()
            .expect("a count")
    };
    assert_eq!(of("journal"), (entries.len() - second) as u64);
    let verified = said(there.path(), &VERIFY, "sqlite:window.db");
    for part in [
        "signals: identical",
        "decisions were compared from sequence",
        "outputs were compared from the snapshot",
    ] {
        assert!(verified.contains(part), "{part:?} is missing in {verified}");
    }
    let whole: u64 = (0..2).map(|partition| records(&log, "signals", partition).len() as u64).sum();
    // Much of the second market is older than the first one.
    assert!(of("signals") + of("late") > 100 && of("signals") < whole);
    let window = SqliteLog::open_existing(to).expect("the file");
    let found = records(&window, "journal", 0);
    assert_eq!(found, &journal[second..]);

    // The time of an entry also works. Without ticks, only decisions are verified.
    let to = there.path().join("end.db");
    let to = to.to_str().expect("UTF-8");
    let until = time_of(entries[second].at_ns);
    said(here.path(), &["replay", "export", "--to", to, "--until", &until], "sqlite:market.db");
    let verified = said(there.path(), &["replay", "verify"], "sqlite:end.db");
    assert!(verified.contains("decisions: identical"), "{verified}");
    let (_, error) = texts(&run_in(there.path(), &VERIFY, "sqlite:end.db"), 2);
    assert!(error.contains("--with-ticks"), "{error}");
}

/// Formats a time in nanoseconds since the epoch for the command line.
fn time_of(at_ns: i64) -> String {
    let at = format!("@{}.{:09}", at_ns / 1_000_000_000, at_ns % 1_000_000_000);
    let printed = Command::new("date").args(["-u", "-d", &at, "+%Y-%m-%dT%H:%M:%S.%NZ"]).output();
    String::from_utf8(printed.expect("date runs").stdout).expect("UTF-8").trim().to_owned()
}

#[test]
fn a_damaged_log_is_named_and_leaves_nothing() {
    let here = recorded(CONFIGURATION);
    let path = here.path().join("market.db");
    let value = {
        let log = SqliteLog::open_existing(&path).expect("the log");
        records(&log, "signals", 1).swap_remove(50).value
    };
    let mut bytes = fs::read(&path).expect("the log's file");
    // Unused pages may also contain the text.
    let places: Vec<usize> =
        (0..=bytes.len() - value.len()).filter(|&place| bytes[place..].starts_with(&value)).collect();
    assert!(!places.is_empty(), "the record is in the file");
    places.iter().for_each(|place| bytes[place + value.len() / 2] ^= 1);
    fs::write(&path, bytes).expect("the file can be written");
    for format in ["log", "parquet"] {
        let export = ["replay", "export", "--to", "broken", "--with-ticks", "--format", format];
        let (_, error) = texts(&run_in(here.path(), &export, "sqlite:market.db"), 2);
        assert!(error.contains("signals/1"), "{error}");
        let left =
            fs::read_dir(here.path()).expect("the folder").map(|entry| entry.expect("an entry").file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("broken")));
    }
}

#[test]
fn ticks_in_a_registrys_frame_are_read_without_the_registry() {
    let registry = RegistryStub::start(None);
    let here = folder();
    let text = format!("{CONFIGURATION}[schema_registry]\nurl = \"{}\"\n", registry.url());
    fs::write(here.path().join("warptape.toml"), text).expect("a file");
    let feed = ["feed", "synth", "--ticks", "5000", "--symbols", "10"];
    texts(&run_in(here.path(), &feed, "sqlite:market.db"), 0);
    let mut run = Running::start(here.path(), &["run", "-c", "warptape.toml", "--log", "sqlite:market.db"]);
    let log = SqliteLog::open_existing(here.path().join("market.db")).expect("the log");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
    let there = elsewhere();
    let to = there.path().join("framed.db");
    let export = ["replay", "export", "--to", to.to_str().expect("UTF-8"), "--with-ticks"];
    said(here.path(), &export, "sqlite:market.db");
    drop(registry);
    let file = SqliteLog::open_existing(&to).expect("the file");
    assert!(records(&file, "ticks", 0).iter().all(|record| registry_id_of(&record.value).is_some()));
    let verified = said(there.path(), &VERIFY, "sqlite:framed.db");
    assert!(verified.contains("signals: identical"), "{verified}");
}

#[test]
fn an_export_of_a_cluster_verifies_on_its_own() {
    let setup = Setup::new("export");
    let run = setup.run();
    let feed = ["feed", "synth", "--ticks", "20000", "--symbols", "20", "-c", "w.toml"];
    texts(&warptape(setup.path(), &feed), 0);
    setup.drain(run, 20_000, 0);
    let export = ["replay", "export", "--to", "cluster.db", "--with-ticks", "-c", "w.toml"];
    texts(&warptape(setup.path(), &export), 0);
    let verify = ["replay", "verify", "--outputs", "-c", "w.toml"];
    let (there, _) = texts(&warptape(setup.path(), &verify), 0);
    let verify: Vec<&str> = verify.into_iter().chain(["--log", "sqlite:cluster.db"]).collect();
    let (here, _) = texts(&warptape(setup.path(), &verify), 0);
    assert!(here.contains("signals: identical"), "{here}");
    assert_eq!(here, there);
    // The file keeps the offsets of the cluster, with the gaps left by the ends of transactions.
    let file = SqliteLog::open_existing(setup.path().join("cluster.db")).expect("the file");
    let mut gaps = 0;
    for (topic, partition) in [("journal", 0), ("signals", 0), ("signals", 3), ("ticks", 1)] {
        let name = setup.topic(topic);
        let (found, expected) = (records(&file, &name, partition), records(&setup.log, &name, partition));
        assert_eq!(found, expected, "{topic}/{partition}");
        gaps += found.windows(2).filter(|pair| pair[1].offset > pair[0].offset + 1).count();
    }
    assert!(gaps > 0);
    let ends = |log: &dyn EventLog| {
        let topics = log.topics().expect("the topics");
        let own = topics.into_iter().filter(|topic| topic.spec.name == setup.topic("signals"));
        own.flat_map(|topic| topic.offsets).map(|range| (range.first, range.next)).collect::<Vec<_>>()
    };
    assert_eq!(ends(&file), ends(&setup.log));
}

/// Runs the code cells of a notebook, in order.
const RUN_NOTEBOOK: &str = "\
import json, sys
names = {}
for cell in json.load(open(sys.argv[1]))['cells']:
    if cell['cell_type'] == 'code':
        exec(compile(''.join(cell['source']), sys.argv[1], 'exec'), names)
print(json.dumps({name: names[name].height for name in ['signals', 'decisions', 'batches', 'tasks', 'commits', 'latencies']}))
print(names['percentiles'].height, names['slowest'].height, names['lanes'].height, names['per_partition'].height)
";

#[test]
fn tables_are_opened_by_polars_and_duckdb() {
    let here = recorded(CONFIGURATION);
    let written = said(
        here.path(),
        &["replay", "export", "--format", "parquet", "--to", "run-tables", "-o", "json"],
        "sqlite:market.db",
    );
    let written: serde_json::Value = serde_json::from_str(&written).expect("JSON");
    let rows = |name: &str| {
        let tables = written["tables"].as_array().expect("tables");
        tables.iter().find(|table| table["name"] == name).expect("the table")["rows"]
            .as_u64()
            .expect("a count")
    };
    let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/notebooks/run_tables.ipynb");
    let python = Command::new(given("WARPTAPE_TEST_PYTHON"))
        .args(["-c", RUN_NOTEBOOK])
        .arg(notebook)
        .current_dir(here.path())
        .stdin(Stdio::null())
        .output()
        .expect("Python starts");
    let (out, _) = texts(&python, 0);
    let (heights, shown) = out.trim().split_once('\n').expect("two lines");
    let heights: std::collections::BTreeMap<String, u64> = serde_json::from_str(heights).expect("JSON");
    for (name, height) in &heights {
        assert_eq!(*height, rows(name), "{name}");
    }
    assert!(heights["latencies"] > 10 && heights["batches"] > 10 && heights["commits"] > 1, "{heights:?}");
    assert_eq!(shown, "5 10 2 2");
    // Existing files are not overwritten, and Arrow files contain the same tables.
    let again = ["replay", "export", "--format", "arrow", "--to", "run-tables"];
    let (_, error) = texts(&run_in(here.path(), &again, "sqlite:market.db"), 2);
    assert!(error.contains("existing files are never overwritten"), "{error}");
    said(here.path(), &["replay", "export", "--format", "arrow", "--to", "arrow"], "sqlite:market.db");
    // Only Parquet codes words by a dictionary.
    let compare = "\
import polars as pl
for name in ['signals', 'ticks', 'late', 'dead_letters', 'decisions', 'batches', 'tasks', 'commits', 'latencies']:
    words = pl.read_parquet(f'run-tables/{name}.parquet').with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert pl.read_ipc(f'arrow/{name}.arrow').equals(words), name
";
    let python = Command::new(given("WARPTAPE_TEST_PYTHON"))
        .args(["-c", compare])
        .current_dir(here.path())
        .stdin(Stdio::null())
        .output()
        .expect("Python starts");
    texts(&python, 0);
}
