//! A partition of the log that is being written to files.

use warptape_eventlog::OffsetRange;
use warptape_replay::{ExportOptions, Planned, utc};

use super::folder::{Folder, Unfinished};
use crate::TablesError;
use crate::reading::Reading;
use crate::rows::{Rows, TableBatch};
use crate::table::Table;

/// Number of rows after which a file ends, at the next record.
const FILE_ROWS_DUE: u64 = 1 << 20;
/// Most days with open files. A record of a further one ends all files.
const DAYS_MAX: usize = 4;

/// A partition of a topic, and the open file of each of its tables.
pub(super) struct Stream<'a> {
    reading: Reading<'a>,
    parts: Vec<Part>,
    /// Days with rows that are in no whole file yet.
    open: Vec<Day>,
    /// Newest day so far; empty before the first record.
    newest: String,
}

/// A table's part of the partition.
struct Part {
    table: &'static Table,
    /// Offset of the first record whose rows belong to the next files.
    first: i64,
    /// Rows in whole files.
    written: u64,
}

/// Rows of records of one day.
struct Day {
    name: String,
    rows: Rows,
    /// The open file of each part.
    files: Vec<Option<Unfinished>>,
}

impl Day {
    fn new(name: String, parts: &[Part]) -> Self {
        let tables: Vec<_> = parts.iter().map(|part| part.table).collect();
        let mut rows = Rows::new(&tables);
        parts.iter().for_each(|part| rows.begin_at(part.table, part.first));
        Self { name, rows, files: parts.iter().map(|_| None).collect() }
    }

    fn is_due(&self) -> bool {
        self.files.iter().flatten().any(|file| file.rows() >= FILE_ROWS_DUE)
    }
}

impl<'a> Stream<'a> {
    /// Creates the stream. Each table gets rows of records from its own offset on.
    pub(super) fn new(reading: Reading<'a>, places: &[(&'static Table, i64)]) -> Self {
        let part = |&(table, first): &(&'static Table, i64)| Part { table, first, written: 0 };
        Self { reading, parts: places.iter().map(part).collect(), open: Vec::new(), newest: String::new() }
    }

    fn partition(&self) -> i32 {
        self.reading.source.partition
    }

    /// Number of rows of a table in whole files.
    pub(super) fn rows_of(&self, table: &Table) -> u64 {
        self.parts.iter().filter(|part| part.table.name == table.name).map(|part| part.written).sum()
    }

    /// Extends the stream to another end. Returns true if there is more to read.
    pub(super) fn extend(&mut self, range: OffsetRange, options: &ExportOptions, plan: &Planned) -> bool {
        self.reading.extend(range, options, plan);
        self.reading.next < range.next
    }

    /// Takes the rows of the next record; returns false at the end.
    pub(super) fn step(&mut self, folder: &mut Folder) -> Result<bool, TablesError> {
        let Some(at_ns) = self.reading.peek_ns()? else {
            self.reading.end();
            return Ok(false);
        };
        let index = self.day_of(at_ns, folder)?;
        let has_more = self.reading.step(&mut self.open[index].rows)?;
        self.write(index, folder)?;
        if self.open[index].is_due() {
            self.end_files(folder)?;
        }
        Ok(has_more)
    }

    /// Opens the day of a time, and returns its index. The first record of a newer day ends the files of those before. An
    /// earlier day is open beside the others.
    fn day_of(&mut self, at_ns: i64, folder: &mut Folder) -> Result<usize, TablesError> {
        let name: String = utc(at_ns).chars().take_while(|letter| *letter != 'T').collect();
        if let Some(index) = self.open.iter().position(|day| day.name == name) {
            return Ok(index);
        }
        let is_newer = name > self.newest;
        if is_newer || self.open.len() >= DAYS_MAX {
            self.end_files(folder)?;
        }
        if is_newer {
            self.newest.clone_from(&name);
        }
        self.open.push(Day::new(name, &self.parts));
        Ok(self.open.len() - 1)
    }

    /// Ends the open files, and notes it on the disk.
    fn end_files(&mut self, folder: &mut Folder) -> Result<(), TablesError> {
        if self.open.is_empty() {
            return Ok(());
        }
        self.cut(folder)?;
        folder.save()
    }

    /// Ends the open files: they have the rows of all records so far. Notes their offsets, but does not save them.
    pub(super) fn cut(&mut self, folder: &mut Folder) -> Result<(), TablesError> {
        for index in 0..self.open.len() {
            self.open[index].rows.finish();
            self.write(index, folder)?;
        }
        let (partition, next) = (self.partition(), self.reading.next);
        let mut days = std::mem::take(&mut self.open);
        for (index, part) in self.parts.iter_mut().enumerate() {
            let offsets = OffsetRange { first: part.first, next };
            let files: Vec<_> = days.iter_mut().filter_map(|day| day.files[index].take()).collect();
            // The name of the last one says that the others have theirs.
            let last = files.len().saturating_sub(1);
            for (number, file) in files.into_iter().enumerate() {
                part.written += file.finish(offsets, partition, number == last)?;
            }
            part.first = next.max(part.first);
            folder.note(part.table, partition, part.first);
        }
        Ok(())
    }

    /// Writes full batches of a day.
    fn write(&mut self, index: usize, folder: &Folder) -> Result<(), TablesError> {
        let partition = self.partition();
        let day = &mut self.open[index];
        while let Some(TableBatch { table, batch }) = day.rows.take_ready() {
            let part = self.parts.iter().position(|part| part.table.name == table.name);
            let file = match &mut day.files[part.expect("rows are of its own tables")] {
                Some(file) => file,
                none => none.insert(folder.begin(table, partition, &day.name)?),
            };
            file.write(&batch)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tempfile::TempDir;
    use warptape_eventlog::{Durability, EventLog, NewRecord, SqliteLog, TopicPartition, TopicSpec};
    use warptape_replay::OutputOptions;
    use warptape_schemas::encode_tick_batch;
    use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
    use warptape_stages::Isa;

    use super::*;
    use crate::TableFormat;
    use crate::declared::TICKS;
    use crate::reading::Topic;

    const DAY_NS: i64 = 86_400_000_000_000;

    fn tick() -> Tick {
        Tick {
            symbol: "V:A".to_owned(),
            kind: TickKind::Trade,
            event_time_ns: 1,
            receive_time_ns: 0,
            trade_id: 0,
            side: Side::None,
            price_e9: 1,
            size_e9: 1,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        }
    }

    /// Returns a log with a record of one tick on each of these days.
    fn log(folder: &Path, days: &[i64]) -> SqliteLog {
        let log = SqliteLog::open(folder.join("log.db"), Durability::Process).expect("a log");
        let ticks = TopicSpec { name: "ticks".to_owned(), partitions: 1, ..TopicSpec::default() };
        log.create_topics(&[ticks]).expect("a topic");
        let mut value = Vec::new();
        encode_tick_batch(&[tick()], &mut value).expect("a tick");
        let mut producer = log.producer("test").expect("a producer");
        producer.begin().expect("a transaction");
        for day in days {
            let (topic, timestamp_ns) = ("ticks".into(), day * DAY_NS + 1);
            let value = value.as_slice().into();
            let record = NewRecord { topic, timestamp_ns, value, ..NewRecord::default() };
            producer.send(record).expect("a record");
        }
        producer.commit().expect("a commit");
        log
    }

    fn options() -> ExportOptions {
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
            group: topic("group"),
            schemas: None,
            isa: Isa::Baseline,
        };
        let (journal, by) = (topic("journal"), serde_json::Value::Null);
        let (others, window) = (Vec::new(), Default::default());
        ExportOptions { journal, sources, others, window, with_ticks: true, by }
    }

    /// Names of the files, with their days.
    fn files(tables: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for day in fs::read_dir(tables.join("ticks")).expect("a folder").map(|day| day.expect("a day")) {
            for file in fs::read_dir(day.path()).expect("a folder").map(|file| file.expect("a file")) {
                names.push(format!("{}/{}", day.file_name().display(), file.file_name().display()));
            }
        }
        names.sort();
        names
    }

    /// The offset that the folder's description has.
    fn saved(tables: &Path) -> Option<i64> {
        let about = fs::read(tables.join("_warptape.json")).expect("a file");
        let about: serde_json::Value = serde_json::from_slice(&about).expect("JSON");
        about["next"]["ticks"]["0"].as_i64()
    }

    /// Writes the records of these days; tells after each step about the offset that was noted, and the open days.
    fn written(days: &[i64], mut stepped: impl FnMut(Option<i64>, usize)) -> TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (log, options, tables) = (log(folder.path(), days), options(), folder.path().join("tables"));
        let mut into = Folder::open(&tables, TableFormat::Parquet, &log.url()).expect("a new folder");
        let source = TopicPartition { topic: "ticks".to_owned(), partition: 0 };
        let range = log.offsets(&source).expect("offsets");
        let reading = Reading::new(&log, &options, &Planned::default(), (Topic::Ticks, 0, range));
        let mut stream = Stream::new(reading, &[(&TICKS, 0)]);
        while stream.step(&mut into).expect("a step") {
            stepped(saved(&tables), stream.open.len());
        }
        stream.cut(&mut into).expect("a cut");
        assert_eq!(stream.rows_of(&TICKS), days.len() as u64);
        folder
    }

    #[test]
    fn record_times_that_jump_between_days_make_few_files() {
        let days: Vec<i64> = (0..100).map(|number| number % 2).collect();
        let folder = written(&days, |_, open| assert!((1..=2).contains(&open)));
        let expected = [
            "date=1970-01-01/0-000000000000-000000000001.parquet",
            "date=1970-01-01/0-000000000001-000000000100.parquet",
            "date=1970-01-02/0-000000000001-000000000100-part.parquet",
        ];
        assert_eq!(files(&folder.path().join("tables")), expected);
    }

    #[test]
    fn the_end_of_a_day_is_noted_at_once() {
        let mut noted = Vec::new();
        drop(written(&[0, 0, 1, 1, 3], |saved, _| noted.push(saved)));
        assert_eq!(noted, [None, None, Some(2), Some(2), Some(4)]);
    }

    #[test]
    fn the_number_of_open_days_is_bounded() {
        let days: Vec<i64> = (0..40).rev().collect();
        let mut most = 0;
        let folder = written(&days, |_, open| most = open.max(most));
        assert_eq!((most, files(&folder.path().join("tables")).len()), (DAYS_MAX, 40));
    }
}
