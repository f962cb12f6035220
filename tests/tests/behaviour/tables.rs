//! Compares the tables of a run with its log: every row exists, with the numbers of its record.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{Array, ArrayAccessor, RecordBatch, StringArray};
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use warptape_eventlog::{Durability, EventLog, SqliteLog};
use warptape_replay::{Bound, ExportOptions, OutputOptions, Window};
use warptape_schemas::journal::{Decision, Input, JournalEntry};
use warptape_schemas::tick::TickKind;
use warptape_schemas::{SymbolTable, TickColumns, TickDecoder, decode_journal_entry, decode_signal};
use warptape_sources::synth::{SynthConfig, SynthSource};
use warptape_stages::Isa;
use warptape_tables::{
    Batches, ColumnKind, Follow, ROWS_MAX, TABLES, Table, TableBatch, TableFormat, Written, write_tables,
};
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

    /// Returns the values of a column; `None` for nulls. `of` reads a value from an array and a row.
    fn values<T>(&self, column: &str, of: impl Fn(&dyn Array, usize) -> T) -> Vec<Option<T>> {
        let mut values = Vec::new();
        for batch in &self.batches {
            let array = batch.column_by_name(column).unwrap();
            values.extend((0..array.len()).map(|row| array.is_valid(row).then(|| of(array, row))));
        }
        values
    }

    /// Returns a column of integers, or of times in nanoseconds since the epoch.
    fn ints(&self, column: &str) -> Vec<Option<i64>> {
        self.values(column, |array, row| match array.as_primitive_opt::<Int64Type>() {
            Some(numbers) => numbers.value(row),
            None => array.as_primitive::<TimestampNanosecondType>().value(row),
        })
    }

    /// Returns a column of decimals, as integers in the scale of the column.
    fn decimals(&self, column: &str) -> Vec<Option<i128>> {
        self.values(column, |array, row| array.as_primitive::<Decimal128Type>().value(row))
    }

    fn bools(&self, column: &str) -> Vec<Option<bool>> {
        self.values(column, |array, row| array.as_boolean().value(row))
    }

    fn floats(&self, column: &str) -> Vec<Option<f64>> {
        self.values(column, |array, row| array.as_primitive::<Float64Type>().value(row))
    }

    /// Returns a column of texts, whether coded by a dictionary or not.
    fn texts(&self, column: &str) -> Vec<Option<String>> {
        self.values(column, |array, row| match array.as_dictionary_opt::<Int32Type>() {
            Some(words) => words.downcast_dict::<StringArray>().unwrap().value(row).to_owned(),
            None => array.as_string::<i32>().value(row).to_owned(),
        })
    }

    /// Returns the rows as text, in their order. It excludes the columns `leave_out`.
    fn shown(&self, table: &Table, leave_out: &[&str]) -> Vec<String> {
        let mut rows = vec![String::new(); self.rows()];
        for column in table.columns.iter().filter(|column| !leave_out.contains(&column.name)) {
            let (name, debug) = (column.name, |value: &dyn std::fmt::Debug| format!("{value:?}"));
            let shown: Vec<String> = match column.kind {
                ColumnKind::Bool => self.bools(name).iter().map(|value| debug(value)).collect(),
                ColumnKind::Int | ColumnKind::Time => {
                    self.ints(name).iter().map(|value| debug(value)).collect()
                }
                ColumnKind::Float => {
                    self.floats(name).iter().map(|value| debug(&value.map(f64::to_bits))).collect()
                }
                ColumnKind::Text | ColumnKind::Word => {
                    self.texts(name).iter().map(|value| debug(value)).collect()
                }
                ColumnKind::Price | ColumnKind::Size => {
                    self.decimals(name).iter().map(|value| debug(value)).collect()
                }
                ColumnKind::Bytes => {
                    let bytes = self.values(name, |array, row| array.as_binary::<i32>().value(row).to_vec());
                    bytes.iter().map(|value| debug(value)).collect()
                }
                ColumnKind::Ints => {
                    let lists = self.values(name, |array, row| {
                        array.as_list::<i32>().value(row).as_primitive::<Int32Type>().values().to_vec()
                    });
                    lists.iter().map(|value| debug(value)).collect()
                }
            };
            rows.iter_mut().zip(shown).for_each(|(row, value)| *row += &format!("{name}={value} "));
        }
        rows
    }
}

/// Records a run of two process lives.
pub fn recorded(path: &Path) -> Arc<dyn EventLog> {
    let (log, mut ticks) = begun(path);
    for _ in 0..2 {
        go_on(&log, &mut ticks);
    }
    log
}

fn begun(path: &Path) -> (Arc<dyn EventLog>, SynthSource) {
    let log: Arc<dyn EventLog> = Arc::new(SqliteLog::open(path, Durability::Process).unwrap());
    let config = SynthConfig { symbols: 40, ticks: Some(TICKS as u64), seed: 5, ..SynthConfig::default() };
    (log, SynthSource::new(config).unwrap())
}

/// Records a process life with half of the ticks.
fn go_on(log: &Arc<dyn EventLog>, ticks: &mut SynthSource) {
    feed(log, PARTITIONS, 64, ticks.by_ref().take(TICKS / 2));
    let mut stages = stage_config(&["1s", "tick:50"]);
    stages.indicators.stochastic = 14;
    let mut config = engine_config(stages, 2);
    // The outcome of a commit is recorded in a later transaction, so even a fast run must have several.
    (config.core.limits.commit_bytes_max, config.core.times.commit_interval_ns) = (64 << 10, 1);
    config.poll_records_max = 4;
    run_to_end(log, config);
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
    let written =
        write_tables(&*log, &to, TableFormat::Parquet, &options(Window::default()), &TABLES, &mut |done| {
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
    check_ticks(&*log, &Read::parquet(&to, "ticks"));
    check_batches_without_files(&*log, &to);
    check_decisions(&entries, &Read::parquet(&to, "decisions"));
    check_batches(&entries, &Read::parquet(&to, "batches"));
    check_commits(&entries, &Read::parquet(&to, "commits"));
    check_latencies(&*log, &Read::parquet(&to, "latencies"));

    // The Arrow files contain the same tables.
    let arrow = folder.path().join("arrow");
    let again =
        write_tables(&*log, &arrow, TableFormat::Arrow, &options(Window::default()), &TABLES, &mut |_| {})
            .unwrap();
    assert_eq!(again, written);
    for table in TABLES {
        let (one, other) = (Read::parquet(&to, table.name), Read::arrow(&arrow, table.name));
        assert_eq!(one.shown(table, &[]), other.shown(table, &[]), "{}", table.name);
    }

    // The window contains only the second process life.
    let second = entries.iter().rposition(|entry| matches!(entry.input, Input::Started(_))).unwrap();
    let window = Window { since: Some(Bound::Sequence(second as i64)), ..Window::default() };
    let to = folder.path().join("window");
    write_tables(&*log, &to, TableFormat::Parquet, &options(window), &TABLES, &mut |_| {}).unwrap();
    check_decisions(&entries[second..], &Read::parquet(&to, "decisions"));
    check_commits(&entries[second..], &Read::parquet(&to, "commits"));
}

fn check_signals(log: &dyn EventLog, table: &Read) {
    let columns = ["partition", "offset", "source_offset", "bar_end_ns"].map(|name| table.ints(name));
    let (closes, bought, bids) =
        (table.decimals("close"), table.decimals("buy_volume"), table.decimals("bid_price"));
    let partial = table.bools("partial");
    let (symbols, values, rsi) = (table.texts("symbol"), table.floats("value"), table.floats("rsi"));
    let (stochastic, others) = (table.floats("stochastic_k"), table.texts("further_indicators"));
    let (mut row, mut further) = (0, 0);
    for partition in 0..PARTITIONS {
        for record in read_partition(log, "signals", partition) {
            let signal = decode_signal(&record.value).unwrap();
            let expected =
                [partition.into(), record.offset, signal.source_offset, signal.bar_end_ns].map(Some);
            assert_eq!([0, 1, 2, 3].map(|column: usize| columns[column][row]), expected, "row {row}");
            assert_eq!(symbols[row].as_deref(), Some(&*signal.symbol));
            assert_eq!(values[row].map(f64::to_bits), Some(signal.value.to_bits()));
            let bar = signal.bar.as_ref();
            let e9 = |number: Option<i64>, unit: i128| number.map(|number| i128::from(number) * unit);
            assert_eq!(closes[row], e9(bar.and_then(|bar| bar.close_e9), 1_000_000_000));
            assert_eq!(bought[row], e9(bar.and_then(|bar| bar.buy_volume_e9), 1));
            let bid_e9 = bar.and_then(|bar| bar.bid_price_e9).filter(|bid_e9| *bid_e9 != 0);
            assert_eq!(bids[row], e9(bid_e9, 1_000_000_000));
            assert_eq!(partial[row], bar.and_then(|bar| bar.partial));
            assert_eq!(rsi[row], bar.and_then(|bar| bar.indicators[6]));
            let value = bar.and_then(|bar| bar.further_indicators.get("stochastic_k").copied());
            assert_eq!(stochastic[row], value);
            assert_eq!(others[row], None, "every indicator of this version has a column");
            further += usize::from(value.is_some());
            row += 1;
        }
    }
    assert!(row > 500 && row == table.rows() && further > 100, "{row} {further}");
}

fn check_ticks(log: &dyn EventLog, table: &Read) {
    let places = ["partition", "offset", "index", "event_time_ns"].map(|name| table.ints(name));
    let (symbols, kinds) = (table.texts("symbol"), table.texts("kind"));
    let (prices, bids, sizes) =
        (table.decimals("price"), table.decimals("bid_price"), table.decimals("ask_size"));
    let mut row = 0;
    for partition in 0..PARTITIONS {
        let (mut decoder, mut symbol_table) = (TickDecoder::new(), SymbolTable::default());
        for record in read_partition(log, "ticks", partition) {
            let mut columns = TickColumns::default();
            let count = decoder.decode(&record.value, &mut symbol_table, &mut columns).unwrap();
            for index in 0..count {
                let tick = columns.tick(index, &symbol_table);
                let place = [partition.into(), record.offset, index as i64, tick.event_time_ns].map(Some);
                assert_eq!([0, 1, 2, 3].map(|column: usize| places[column][row]), place);
                assert_eq!(symbols[row].as_ref(), Some(&tick.symbol));
                let is_trade = tick.kind == TickKind::Trade;
                assert_eq!(kinds[row].as_deref(), Some(if is_trade { "TRADE" } else { "QUOTE" }));
                let e18 = |number: i64| i128::from(number) * 10_i128.pow((18 - tick.scales.price).into());
                let price = |number: i64, is_there: bool| is_there.then(|| e18(number));
                assert_eq!(prices[row], price(tick.price_e9, is_trade));
                assert_eq!(bids[row], price(tick.bid_price_e9, !is_trade && tick.bid_price_e9 != 0));
                assert_eq!(sizes[row], (tick.ask_price_e9 != 0).then_some(tick.ask_size_e9.into()));
                row += 1;
            }
        }
    }
    assert!(row == TICKS && row == table.rows(), "{row}");
    let quotes = kinds.iter().filter(|kind| kind.as_deref() == Some("QUOTE")).count();
    assert!(quotes > 100 && quotes < TICKS - 100, "{quotes}");
}

/// Checks that batches have the same rows as the files, and that only requested tables are made.
fn check_batches_without_files(log: &dyn EventLog, files: &Path) {
    let tables = ["signals", "ticks", "latencies"].map(|name| Table::named(name).unwrap());
    let mut found: BTreeMap<&str, Vec<RecordBatch>> = BTreeMap::new();
    for batch in Batches::open(log, &options(Window::default()), &tables).unwrap() {
        let TableBatch { table, batch } = batch.unwrap();
        assert_eq!(batch.schema(), table.schema());
        assert!(batch.num_rows() <= ROWS_MAX);
        found.entry(table.name).or_default().push(batch);
    }
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["latencies", "signals", "ticks"]);
    assert!(found["ticks"].len() > 1, "memory is bounded");
    for table in tables {
        let batches = found.remove(table.name).unwrap();
        assert_eq!(
            Read { batches }.shown(table, &[]),
            Read::parquet(files, table.name).shown(table, &[]),
            "{}",
            table.name
        );
    }
}

/// Reads the rows of a followed table, partition by partition, in the order of the file names.
fn followed(folder: &Path, name: &str) -> Read {
    let mut files = Vec::new();
    for day in std::fs::read_dir(folder.join(name)).into_iter().flatten() {
        let day = day.unwrap().path();
        assert!(day.file_name().unwrap().to_str().unwrap().starts_with("date=20"), "{}", day.display());
        for file in std::fs::read_dir(&day).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort_by_key(|path| path.file_name().unwrap().to_owned());
    let of = |path: &std::path::PathBuf| {
        assert_eq!(path.extension().unwrap(), "parquet", "only whole files are left");
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        reader.build().unwrap().collect::<Result<Vec<_>, _>>().unwrap()
    };
    Read { batches: files.iter().flat_map(of).collect() }
}

#[test]
fn followed_tables_go_on_without_gaps_or_doubles() {
    let folder = tempfile::tempdir().unwrap();
    let (log, mut ticks) = begun(&folder.path().join("log.db"));
    let to = folder.path().join("followed");
    let follow = |log| Follow::open(log, &to, TableFormat::Parquet, &options(Window::default()), &TABLES);
    go_on(&log, &mut ticks);
    // If a process ends without a cut, it loses only the rows since its last cut.
    let mut first = follow(&*log).unwrap();
    while !first.round().unwrap() {
        first.cut().unwrap();
    }
    first.cut().unwrap();
    go_on(&log, &mut ticks);
    first.round().unwrap();
    assert!(follow(&*log).is_err_and(|error| error.to_string().contains("another export")));
    drop(first);
    let mut second = follow(&*log).unwrap();
    while !second.round().unwrap() {}
    second.cut().unwrap();
    go_on(&log, &mut ticks);
    while !second.round().unwrap() {}
    second.cut().unwrap();
    drop(second);
    // Nothing more has to be written.
    let mut third = follow(&*log).unwrap();
    while !third.round().unwrap() {}
    third.cut().unwrap();
    assert!(third.written().tables.iter().all(|table| table.rows == 0), "{:?}", third.written());
    drop(third);

    let whole = folder.path().join("whole");
    let window = options(Window::default());
    write_tables(&*log, &whole, TableFormat::Parquet, &window, &TABLES, &mut |_| {}).unwrap();
    for table in TABLES {
        let name = table.name;
        let (found, expected) =
            (followed(&to, name).shown(table, &[]), Read::parquet(&whole, name).shown(table, &[]));
        // The last transaction of the second process life is open at the end of the log, so it has no row yet.
        let open = expected.len() - found.len();
        let may_be_open = if matches!(name, "commits" | "latencies" | "batches") { 200 } else { 0 };
        assert!(open <= may_be_open, "{name}: {open} of {}", expected.len());
        assert!(found == expected[..found.len()], "{name}: {open} of {}", expected.len());
        assert!(!found.is_empty() || matches!(name, "late" | "dead_letters" | "tasks"), "{name}");
    }
    let files = std::fs::read_dir(to.join("signals"))
        .unwrap()
        .flat_map(|day| std::fs::read_dir(day.unwrap().path()).unwrap());
    assert!(files.count() > PARTITIONS as usize, "cuts make files of their own");
    // The folder accepts no other log or format.
    let arrow = Follow::open(&*log, &to, TableFormat::Arrow, &options(Window::default()), &TABLES);
    assert!(arrow.is_err_and(|error| error.to_string().contains("--format parquet")));
    let other = SqliteLog::open(folder.path().join("other.db"), Durability::Process).unwrap();
    assert!(follow(&other).is_err_and(|error| error.to_string().contains("name another folder")));
    let taken = Follow::open(&*log, &whole, TableFormat::Parquet, &options(Window::default()), &TABLES);
    assert!(taken.is_err_and(|error| error.to_string().contains("never overwritten")));
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

/// Checks that every tick record with signals has a row, and that the waits of the row add up.
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
