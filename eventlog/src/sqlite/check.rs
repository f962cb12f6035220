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
            Part::Records(stored, segment) => {
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
