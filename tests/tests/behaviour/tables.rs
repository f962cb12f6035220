//! Tables of a run compared with their log: every row exists, with the numbers of its record.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_replay::{Bound, ExportOptions, OutputOptions, Window};
use warptape_schemas::journal::{Decision, Input, JournalEntry};
use warptape_schemas::{decode_journal_entry, decode_signal};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::Isa;
use warptape_tables::{ROWS_MAX, TABLES, TableFormat, Written, write_tables};
use warptape_tests::engine_run::{engine_config, feed, read_partition, run_to_end, stage_config};

const PARTITIONS: i32 = 3;
const TICKS: usize = 120_000;

fn options(window: Window) -> ExportOptions {
    let topic = |name: &str| name.to_owned();
    let sources = OutputOptions {
        ticks: topic("ticks"),
        signals: topic("signals"),
        late: topic("late"),
        dead_letter: topic("dead-letter"),
        snapshots: topic("snapshots"),
        risk_requests: topic("risk.requests"),
        risk_results: topic("risk.results"),
        control: topic("control"),
        control_results: topic("control.results"),
        group: topic("warptape"),
        schemas: None,
        isa: Isa::Baseline,
    };
    let (journal, by) = (topic("journal"), serde_json::Value::Null);
    ExportOptions { journal, sources, others: Vec::new(), window, with_ticks: false, by }
}

/// A table that was read back.
struct Read {
    batches: Vec<RecordBatch>,
}

impl Read {
    fn parquet(folder: &Path, name: &str) -> Self {
        let file = File::open(folder.join(format!("{name}.parquet"))).unwrap();
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let groups = builder.metadata().row_groups();
        assert!(groups.iter().all(|group| group.num_rows() <= ROWS_MAX as i64), "{name}");
        Self { batches: builder.build().unwrap().collect::<Result<_, _>>().unwrap() }
    }

    fn arrow(folder: &Path, name: &str) -> Self {
        let file = File::open(folder.join(format!("{name}.arrow"))).unwrap();
        Self { batches: FileReader::try_new(file, None).unwrap().collect::<Result<_, _>>().unwrap() }
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn ints(&self, column: &str) -> Vec<Option<i64>> {
        let of = |batch: &RecordBatch| {
            let array = batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().clone();
            array.iter().collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(of).collect()
    }

    fn bools(&self, column: &str) -> Vec<Option<bool>> {
        let of = |batch: &RecordBatch| {
            batch.column_by_name(column).unwrap().as_boolean().iter().collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(of).collect()
    }

    fn floats(&self, column: &str) -> Vec<Option<f64>> {
        let of = |batch: &RecordBatch| {
            let array = batch.column_by_name(column).unwrap().as_primitive::<Float64Type>().clone();
            array.iter().collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(of).collect()
    }

    fn texts(&self, column: &str) -> Vec<Option<String>> {
        let of = |batch: &RecordBatch| {
            let array = batch.column_by_name(column).unwrap().as_string::<i32>().clone();
            array.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>()
        };
        self.batches.iter().flat_map(of).collect()
    }
}

/// Records a run of two process lives.
pub fn recorded(path: &Path) -> Arc<dyn EventLog> {
    let log: Arc<dyn EventLog> = Arc::new(SqliteLog::open(path, Durability::Process).unwrap());
    let config = SynthConfig { symbols: 40, ticks: Some(TICKS as u64), seed: 5, ..SynthConfig::default() };
    let mut ticks = SynthSource::new(config).unwrap();
    for _ in 0..2 {
        feed(&log, PARTITIONS, 64, ticks.by_ref().take(TICKS / 2));
        let mut config = engine_config(stage_config(&["1s", "tick:50"]), 2);
        // A commit's outcome is in a later transaction, so even a fast run must have several.
        (config.core.limits.commit_bytes_max, config.core.times.commit_interval_ns) = (64 << 10, 1);
        config.poll_records_max = 4;
        run_to_end(&log, config);
    }
    log
}

fn entries(log: &dyn EventLog) -> Vec<JournalEntry> {
    let journal = read_partition(log, "journal", 0);
    journal.iter().map(|record| decode_journal_entry(&record.value).unwrap()).collect()
}

fn rows(written: &Written, name: &str) -> u64 {
    written.tables.iter().find(|table| table.name == name).unwrap().rows
}

#[test]
fn tables_hold_what_the_log_holds() {
    let folder = tempfile::tempdir().unwrap();
    let log = recorded(&folder.path().join("log.db"));
    let to = folder.path().join("tables");
    let mut last = None;
    let written = write_tables(&*log, &to, TableFormat::Parquet, &options(Window::default()), &mut |done| {
        last = Some(done)
    })
    .unwrap();
    let last = last.unwrap();
    assert_eq!(last.done, last.total);
    for table in TABLES {
        assert_eq!(
            Read::parquet(&to, table.name).rows() as u64,
            rows(&written, table.name),
            "{}",
            table.name
        );
    }
    let entries = entries(&*log);
    check_signals(&*log, &Read::parquet(&to, "signals"));
    check_decisions(&entries, &Read::parquet(&to, "decisions"));
    check_batches(&entries, &Read::parquet(&to, "batches"));
    check_commits(&entries, &Read::parquet(&to, "commits"));
    check_latencies(&*log, &Read::parquet(&to, "latencies"));

    // Arrow files contain the same tables.
    let arrow = folder.path().join("arrow");
    let again =
        write_tables(&*log, &arrow, TableFormat::Arrow, &options(Window::default()), &mut |_| {}).unwrap();
    assert_eq!(again, written);
    for table in TABLES {
        let (one, other) = (Read::parquet(&to, table.name), Read::arrow(&arrow, table.name));
        for column in table.columns {
            let same = match column.kind {
                warptape_tables::ColumnKind::Bool => one.bools(column.name) == other.bools(column.name),
                warptape_tables::ColumnKind::Int => one.ints(column.name) == other.ints(column.name),
                warptape_tables::ColumnKind::Float => one.floats(column.name) == other.floats(column.name),
                warptape_tables::ColumnKind::Text => one.texts(column.name) == other.texts(column.name),
            };
            assert!(same, "{} of {}", column.name, table.name);
        }
    }

    // Only the second life.
    let second = entries.iter().rposition(|entry| matches!(entry.input, Input::Started(_))).unwrap();
    let window = Window { since: Some(Bound::Sequence(second as i64)), ..Window::default() };
    let to = folder.path().join("window");
    write_tables(&*log, &to, TableFormat::Parquet, &options(window), &mut |_| {}).unwrap();
    check_decisions(&entries[second..], &Read::parquet(&to, "decisions"));
    check_commits(&entries[second..], &Read::parquet(&to, "commits"));
}

fn check_signals(log: &dyn EventLog, table: &Read) {
    let columns =
        ["partition", "offset", "source_offset", "close_e9", "bar_end_ns"].map(|name| table.ints(name));
    let bought = table.ints("buy_volume_e9");
    let partial = table.bools("partial");
    let (symbols, values, rsi) = (table.texts("symbol"), table.floats("value"), table.floats("rsi"));
    let mut row = 0;
    for partition in 0..PARTITIONS {
        for record in read_partition(log, "signals", partition) {
            let signal = decode_signal(&record.value).unwrap();
            let close_e9 = signal.bar.as_ref().and_then(|bar| bar.close_e9);
            let expected = [
                Some(partition.into()),
                Some(record.offset),
                Some(signal.source_offset),
                close_e9,
                Some(signal.bar_end_ns),
            ];
            assert_eq!([0, 1, 2, 3, 4].map(|column: usize| columns[column][row]), expected, "row {row}");
            assert_eq!(symbols[row].as_deref(), Some(&*signal.symbol));
            assert_eq!(values[row].map(f64::to_bits), Some(signal.value.to_bits()));
            let bar = signal.bar.as_ref();
            assert_eq!(bought[row], bar.and_then(|bar| bar.buy_volume_e9));
            assert_eq!(partial[row], bar.and_then(|bar| bar.partial));
            assert_eq!(rsi[row], signal.bar.and_then(|bar| bar.indicators[6]));
            row += 1;
        }
    }
    assert!(row > 500 && row == table.rows(), "{row}");
}

fn check_decisions(entries: &[JournalEntry], table: &Read) {
    let (sequences, kinds, details) =
        (table.ints("sequence"), table.texts("decision"), table.texts("detail"));
    let mut row = 0;
    for entry in entries {
        for decision in &entry.decisions {
            assert_eq!(sequences[row], Some(entry.sequence));
            let kind = kinds[row].clone().unwrap();
            let detail: serde_json::Value = serde_json::from_str(details[row].as_ref().unwrap()).unwrap();
            let read: Decision = serde_json::from_value(serde_json::json!({ kind: detail })).unwrap();
            assert_eq!(read, *decision);
            row += 1;
        }
    }
    assert!(row > 50 && row == table.rows());
}

fn check_batches(entries: &[JournalEntry], table: &Read) {
    let decisions = || entries.iter().flat_map(|entry| &entry.decisions);
    let dispatched: Vec<_> = decisions()
        .filter_map(|decision| match decision {
            Decision::Dispatch(dispatch) => Some(dispatch.rows),
            _ => None,
        })
        .collect();
    let service_ns: i64 = entries
        .iter()
        .filter_map(|entry| match &entry.input {
            Input::Completed(completed) => Some(completed.service_ns),
            _ => None,
        })
        .sum();
    assert_eq!(table.rows(), dispatched.len());
    assert_eq!(table.ints("rows").into_iter().flatten().sum::<i64>(), dispatched.iter().sum::<i64>());
    assert_eq!(table.ints("service_ns").into_iter().flatten().sum::<i64>(), service_ns);
    assert!(table.ints("queue_wait_ns").iter().all(|wait_ns| wait_ns.unwrap() >= 0));
    assert!(table.texts("device").iter().all(|device| device.as_deref().unwrap().starts_with("cpu:")));
}

fn check_commits(entries: &[JournalEntry], table: &Read) {
    let sealed = entries.iter().filter_map(|entry| match &entry.input {
        Input::Sealed(sealed) => {
            Some(sealed.partitions.iter().map(move |account| (entry.sequence, *account)))
        }
        _ => None,
    });
    let expected: Vec<_> = sealed
        .flatten()
        .map(|(sequence, account)| (Some(sequence), Some(account.next_offset), Some(account.signals)))
        .collect();
    let found =
        table.ints("sealed_sequence").into_iter().zip(table.ints("next_offset")).zip(table.ints("signals"));
    let found: Vec<_> = found.map(|((sequence, next), signals)| (sequence, next, signals)).collect();
    assert_eq!(found, expected);
    let outcomes = table.texts("outcome");
    assert!(outcomes.iter().all(|outcome| outcome.as_deref().is_none_or(|outcome| outcome == "COMMITTED")));
    assert!(outcomes.iter().filter(|outcome| outcome.is_some()).count() > 0);
}

/// Checks that every tick record with signals has its row, whose waits add up.
fn check_latencies(log: &dyn EventLog, table: &Read) {
    let mut expected: BTreeMap<(i64, i64), i64> = BTreeMap::new();
    for partition in 0..PARTITIONS {
        for record in read_partition(log, "signals", partition) {
            let offset = decode_signal(&record.value).unwrap().source_offset;
            *expected.entry((partition.into(), offset)).or_default() += 1;
        }
    }
    let [partitions, offsets, signals] =
        ["partition", "source_offset", "signals"].map(|name| table.ints(name));
    let found: BTreeMap<_, _> = (0..table.rows())
        .map(|row| ((partitions[row].unwrap(), offsets[row].unwrap()), signals[row].unwrap()))
        .collect();
    assert_eq!(found.len(), table.rows(), "no tick record has two rows");
    assert_eq!(found, expected);
    let waits = ["read_wait_ns", "process_wait_ns", "seal_wait_ns", "commit_ns"].map(|name| table.ints(name));
    let (totals, arrived) = (table.ints("total_ns"), table.ints("arrived_ns"));
    let mut whole = 0;
    for row in 0..table.rows() {
        assert!(arrived[row].is_some());
        let Some(total_ns) = totals[row] else { continue };
        assert_eq!(waits.iter().map(|wait| wait[row].unwrap()).sum::<i64>(), total_ns);
        assert!(waits[1..].iter().all(|wait| wait[row].unwrap() >= 0));
        whole += 1;
    }
    assert!(whole > 10, "{whole} of {}", table.rows());
}
