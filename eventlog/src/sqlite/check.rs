//! Reads the whole log and reports all damage.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::catalogue::{self, Catalogue, GivenUp, Topic};
use super::ends;
use super::file::LogFile;
use super::scan::{Part, scan};
use super::segment_rows::{self, SegmentRow};
use crate::LogError;

const DOING: &str = "checking the log";
/// Most faults of the file's structure that are reported.
const FAULTS_MAX: usize = 20;
/// Most ranges without records that are listed for each partition.
pub const GIVEN_UP_MAX: usize = 20;

/// Progress of an operation that reads the whole log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogProgress {
    /// Offsets read.
    pub done: u64,
    /// Offsets in total.
    pub total: u64,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Partitions of all topics.
    pub partitions: u64,
    /// Undamaged records.
    pub records: u64,
    /// Bytes of the keys, headers and values of these records.
    pub bytes: u64,
    /// Offsets without records, as `TOPIC/PARTITION offsets FIRST to LAST`: from retention, a recovery, or a copy of a
    /// log that had none there. A partition with more than [`GIVEN_UP_MAX`] such ranges has their number instead.
    pub given_up: Vec<String>,
    /// The damage, each item with its topic, partition and offsets, if known.
    pub damage: Vec<String>,
}

/// Checks the structure of the file, every row's checksum, and the committed offsets. Each partition's records must end
/// at the log's stored end, and none may be missing unless the topic is compacted.
pub(super) fn check(
    file: &LogFile,
    connection: &Connection,
    progress: &mut dyn FnMut(LogProgress),
) -> Result<Checked, LogError> {
    // One read transaction: writers continue meanwhile, and the ends must match the records.
    let transaction = connection.unchecked_transaction().map_err(|error| file.failure(DOING, error))?;
    let mut checked = Checked { damage: faults(&transaction), ..Checked::default() };
    let catalogue = match Catalogue::load(file, &transaction) {
        Ok(catalogue) => catalogue,
        Err(error) => {
            checked.damage.push(found_of(error)?);
            return Ok(checked);
        }
    };
    let mut done = LogProgress::default();
    for topic in catalogue.topics() {
        for partition in 0..topic.spec.partitions {
            let next = ends::read(file, &transaction, topic.topic_id, partition).map_or(0, |end| end.next);
            done.total += next.unsigned_abs();
        }
    }
    progress(done);
    let mut references = BTreeMap::new();
    for topic in catalogue.topics() {
        if let Err(error) = ends::clock(file, &transaction, topic.topic_id) {
            checked.damage.push(found_of(error)?);
        }
        for partition in 0..topic.spec.partitions {
            let damage = check_partition(
                file,
                &transaction,
                topic,
                partition,
                &mut checked,
                &mut references,
                &mut |offsets| {
                    progress(LogProgress { done: done.done + offsets, total: done.total });
                },
            );
            if let Err(error) = damage {
                let found = found_of(error)?;
                checked.damage.push(found);
            }
            let next = ends::read(file, &transaction, topic.topic_id, partition).map_or(0, |end| end.next);
            done.done += next.unsigned_abs();
        }
    }
    match segment_rows::read_all(file, &transaction) {
        // Rows that cannot be read may be the missing ones.
        Ok(rows) if checked.damage.is_empty() => checked.damage = miscounted(&rows, &references),
        Ok(_) => {}
        Err(error) => checked.damage.push(found_of(error)?),
    }
    if let Err(error) = catalogue::check_committed(file, &transaction) {
        checked.damage.push(found_of(error)?);
    }
    Ok(checked)
}

/// Describes the segments that have another number of rows than the log counts.
fn miscounted(rows: &[SegmentRow], references: &BTreeMap<u32, i64>) -> Vec<String> {
    let counted: BTreeMap<u32, i64> =
        rows.iter().filter(|row| row.rows > 0).map(|row| (row.number, row.rows)).collect();
    let numbers: BTreeSet<u32> = counted.keys().chain(references.keys()).copied().collect();
    let of = |counts: &BTreeMap<u32, i64>, number| counts.get(&number).copied().unwrap_or(0);
    numbers
        .into_iter()
        .map(|number| (number, of(references, number), of(&counted, number)))
        .filter(|(_, found, expected)| found != expected)
        .map(|(number, found, expected)| format!("segment {number} has {found} rows instead of {expected}"))
        .collect()
}

/// Returns SQLite's findings about its trees and pages.
fn faults(connection: &Connection) -> Vec<String> {
    let query = || {
        let mut statement = connection.prepare(&format!("PRAGMA quick_check({FAULTS_MAX})"))?;
        statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    };
    match query() {
        Ok(found) if found == ["ok"] => Vec::new(),
        Ok(found) => found.into_iter().map(|fault| format!("the file: {}", fault.trim())).collect(),
        Err(error) => vec![format!("the file: {error}")],
    }
}

/// Returns the damage that an error describes; other errors are returned as errors.
fn found_of(error: LogError) -> Result<String, LogError> {
    match error {
        LogError::Unreadable { found, .. } => Ok(found),
        other => Err(other),
    }
}

fn check_partition(
    file: &LogFile,
    connection: &Connection,
    topic: &Topic,
    partition: i32,
    checked: &mut Checked,
    references: &mut BTreeMap<u32, i64>,
    progress: &mut dyn FnMut(u64),
) -> Result<(), LogError> {
    checked.partitions += 1;
    let end = ends::read(file, connection, topic.topic_id, partition)?;
    let table = topic.table(partition);
    let given_up = GivenUp::of(file, connection, &table)?;
    let place = format!("{}/{partition}", topic.spec.name);
    match given_up.ranges() {
        ranges if ranges.len() > GIVEN_UP_MAX => {
            let offsets: i64 = ranges.iter().map(|(first, next)| next - first.max(&0)).sum();
            checked.given_up.push(format!("{place} {offsets} offsets in {} places", ranges.len()));
        }
        ranges => checked.given_up.extend(
            ranges.iter().map(|(first, next)| format!("{place} offsets {} to {}", first.max(&0), next - 1)),
        ),
    }
    let mut rows = 0;
    // In a compacted partition only the newest record must exist.
    let last = (!table.compacted).then_some(end.next);
    let next = scan(file, connection, &table, last, &given_up, &mut |part| {
        match part {
            Part::Records { stored, segment, .. } => {
                rows += 1;
                if let Some(segment) = segment {
                    *references.entry(segment).or_default() += 1;
                }
                for record in stored.flatten() {
                    checked.records += 1;
                    let key = record.key.map_or(0, <[u8]>::len);
                    checked.bytes += (key + record.headers.len() + record.value.len()) as u64;
                    progress(record.offset.unsigned_abs());
                }
            }
            Part::Damage { first, next, found } => {
                checked.damage.push(format!("{place} offsets {first} to {}: {found}", next - 1));
            }
        }
        Ok(())
    })?;
    if next != end.next && !given_up.covers(next, end.next) {
        let ends = format!("{place}: the records end at offset {next}, but the catalogue says {}", end.next);
        checked.damage.push(ends);
    }
    if rows != end.rows {
        checked.damage.push(format!("{place} has {rows} rows instead of {}", end.rows));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::super::checksum;
    use super::super::reference::Reference;
    use super::*;
    use crate::{Durability, EventLog, NewRecord, SqliteLog, TopicSpec};

    const BYTES: usize = 10_000;

    /// Writes a log with a segment that has the records from offset 10 on.
    fn write(path: &std::path::Path) -> SqliteLog {
        let log = SqliteLog::open(path, Durability::Process).unwrap();
        log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 1, ..TopicSpec::default() }])
            .unwrap();
        let mut producer = log.producer("p").unwrap();
        for _ in 0..20 {
            producer.begin().unwrap();
            let value = vec![7; BYTES];
            producer
                .send(NewRecord { topic: "t".into(), value: value.into(), ..NewRecord::default() })
                .unwrap();
            producer.commit().unwrap();
        }
        log
    }

    fn reference(log: &SqliteLog, offset: i64) -> Reference {
        let connection = log.file.connect().unwrap();
        let block = |row: &rusqlite::Row<'_>| row.get::<_, Vec<u8>>(0);
        let sql = "SELECT block FROM records_1_0 WHERE offset = ?1";
        Reference::decode(&connection.query_row(sql, [offset], block).unwrap()).unwrap()
    }

    /// Gives a row another reference, with the checksum that a writer would store.
    fn refer(log: &SqliteLog, offset: i64, reference: Reference) {
        let mut bytes = Vec::new();
        let content = match log.file.segments.read(reference, &mut bytes) {
            Ok(()) => checksum::of_bytes(&bytes),
            Err(_) => 0,
        };
        let reference = reference.encode();
        let sum = checksum::of_placed(1, 0, offset, 1, &reference, content);
        let sql = "UPDATE records_1_0 SET block = ?1, checksum = ?2 WHERE offset = ?3";
        log.file.connect().unwrap().execute(sql, params![reference, sum, offset]).unwrap();
    }

    #[test]
    fn references_that_no_writer_makes_are_damage() {
        let folder = tempfile::tempdir().unwrap();
        let log = write(&folder.path().join("log.db"));
        let whole = reference(&log, 11);
        let found = || log.check_all(&mut |_| {}).unwrap().damage.join("\n");
        for (reference, expected) in [
            (Reference { length: u32::MAX, ..whole }, "which no writer makes"),
            (Reference { position: u64::MAX, ..whole }, "which no writer makes"),
            (Reference { position: 1 << 40, ..whole }, "ends before byte"),
            (Reference { segment: 2, ..whole }, "2.segment is missing"),
        ] {
            refer(&log, 11, reference);
            let found = found();
            assert!(found.contains("t/0 offsets 11 to 11: ") && found.contains(expected), "{found}");
        }
        refer(&log, 11, whole);
        assert_eq!(found(), "");
        // A thousand rows of one sparse block.
        let path = super::super::segment::path(&log.file.path, 1);
        std::fs::OpenOptions::new().write(true).open(path).unwrap().set_len(64 << 20).unwrap();
        let sparse = Reference { position: 1 << 20, length: 60 << 20, ..whole };
        (11..20).for_each(|offset| refer(&log, offset, sparse));
        let sql = "INSERT INTO records_1_0 SELECT offset + ?1, checksum, count, block FROM records_1_0 WHERE offset > 10";
        for distance in [10, 20, 40] {
            log.file.connect().unwrap().execute(sql, [distance]).unwrap();
        }
        assert!(found().contains("again and again"), "{}", found());
    }

    #[test]
    fn rows_of_segments_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let log = write(&folder.path().join("log.db"));
        let connection = log.file.connect().unwrap();
        let row = segment_rows::read(&log.file, &connection, 1).unwrap();
        segment_rows::write(&log.file, &connection, &SegmentRow { rows: row.rows + 1, ..row }).unwrap();
        let found = log.check_all(&mut |_| {}).unwrap().damage;
        assert_eq!(found, [format!("segment 1 has {} rows instead of {}", row.rows, row.rows + 1)]);
        segment_rows::delete(&log.file, &connection, 1).unwrap();
        let found = log.check_all(&mut |_| {}).unwrap().damage;
        assert_eq!(found, ["the log is damaged: there are 0 segments instead of 1"]);
    }
}
