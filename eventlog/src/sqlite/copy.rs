//! Copies a whole log into a new file: as a backup, or without its damaged parts.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rusqlite::Connection;

use super::block::{BLOCK_BYTES, Blocks};
use super::catalogue::{self, Catalogue, GivenUp, TopicRow};
use super::check::LogProgress;
use super::ends::{self, End, Own};
use super::file::LogFile;
use super::format;
use super::limits::{Access, PAGE_BYTES};
use super::opening::Lost;
use super::recover::Loss;
use super::scan::{Part, scan};
use super::segment;
use super::statistics::Statistics;
use super::table::Table;
use crate::{LogError, RecordClock};

const DOING: &str = "copying the log";
/// Bytes of records buffered before they are written.
const GATHERED_BYTES: usize = 4 << 20;

/// Treatment of damage.
pub(super) enum Damage<'a> {
    /// Damage ends the copy.
    Refuse,
    /// Damage is left out and noted. `behind` are the losses at the end, as known from the head.
    LeaveOut { losses: &'a mut Vec<Loss>, behind: &'a [Lost] },
}

/// A log to be copied, within a read transaction.
pub(super) struct CopiedLog<'a> {
    pub(super) file: &'a LogFile,
    pub(super) connection: &'a Connection,
    /// Number of transactions to record in the copy.
    pub(super) transactions: i64,
}

/// Creates the copy, which must not exist yet, and flushes it to the disk.
pub(super) fn copy(
    source: &CopiedLog<'_>,
    to: &Path,
    mut damage: Damage<'_>,
    progress: &mut dyn FnMut(LogProgress),
) -> Result<(), LogError> {
    let stored = |cause: io::Error| LogError::Storage {
        url: source.file.url.clone(),
        doing: format!("writing the copy {}", to.display()),
        cause: cause.to_string(),
    };
    // The copy has no segments, so those of another log would be in its way.
    let folder = segment::folder_path(to);
    if folder.exists() {
        return Err(stored(io::Error::other(format!("{} exists: move it away", folder.display()))));
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(stored)?;
    let copied = fill(source, to, &mut damage, progress);
    let synced = copied.and_then(|()| {
        OpenOptions::new().write(true).open(to).and_then(|file| file.sync_all()).map_err(stored)
    });
    if synced.is_err() {
        let _ = std::fs::remove_file(to);
    }
    synced
}

fn fill(
    source: &CopiedLog<'_>,
    to: &Path,
    damage: &mut Damage<'_>,
    progress: &mut dyn FnMut(LogProgress),
) -> Result<(), LogError> {
    let file = LogFile::new(to.to_path_buf(), source.file.url.clone(), Access::Read);
    let failed = |error| file.failure(DOING, error);
    let connection = Connection::open(to).map_err(failed)?;
    // No reader sees the file before it is complete.
    connection
        .execute_batch(&format!(
            "PRAGMA page_size = {}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN",
            PAGE_BYTES
        ))
        .map_err(failed)?;
    format::make_tables(&connection).map_err(failed)?;
    let before = Own::read(&file, &connection)?;
    let mut own = Own { transactions: source.transactions, ..before };
    let topics = topics(source, damage)?;
    own.topic_rows = i64::try_from(topics.len()).expect("topics are few");
    let (from, target) = (Catalogue::new(topics.clone()), Catalogue::new(topics.clone()));
    let mut done = LogProgress { done: 0, total: total(source, &from) };
    progress(done);
    for (from, to) in from.topics().zip(target.topics()) {
        catalogue::insert_topic(&connection, to.topic_id, &to.spec).map_err(failed)?;
        ends::write_clock(&file, &connection, to.topic_id, clock(source, to.topic_id, damage)?)?;
        for partition in 0..to.spec.partitions {
            let mut partition = Partition {
                source,
                from: from.table(partition),
                connection: &connection,
                name: &to.spec.name,
                to: to.table(partition),
                blocks: Blocks::default(),
                first: 0,
                next: 0,
                rows: 0,
            };
            partition.to.create(&connection).map_err(failed)?;
            let end = partition.copy(damage, &mut |offsets| {
                progress(LogProgress { done: done.done + offsets, ..done });
            })?;
            done.done += end.next.unsigned_abs();
            ends::write(&file, &connection, to.topic_id, partition.to.partition, end)?;
        }
    }
    own.committed_rows = committed(source, &file, &connection, &target, damage)?;
    producers(source, &connection, damage)?;
    own.write(&file, &connection, &before)?;
    connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL").map_err(failed)
}

fn total(source: &CopiedLog<'_>, catalogue: &Catalogue) -> u64 {
    let mut total = 0;
    for topic in catalogue.topics() {
        for partition in 0..topic.spec.partitions {
            let end = ends::read(source.file, source.connection, topic.topic_id, partition);
            total += end.map_or(0, |end| end.next.unsigned_abs());
        }
    }
    total
}

/// Returns the whole topics.
fn topics(source: &CopiedLog<'_>, damage: &mut Damage<'_>) -> Result<Vec<TopicRow>, LogError> {
    let Damage::LeaveOut { losses, .. } = damage else {
        Catalogue::load(source.file, source.connection)?;
        return catalogue::topic_rows(source.file, source.connection);
    };
    let rows = catalogue::topic_rows(source.file, source.connection)?;
    if let Some(own) = counted(source) {
        miscounted(losses, rows.len(), own.topic_rows, "topics");
    }
    let (whole, damaged): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_whole);
    losses.extend(damaged.into_iter().map(|row| Loss::Topic { topic_id: row.topic_id, name: row.name }));
    Ok(whole)
}

/// Returns the clock that a topic's record times come from; unknown if that row is damaged.
fn clock(
    source: &CopiedLog<'_>,
    topic_id: i64,
    damage: &mut Damage<'_>,
) -> Result<Option<RecordClock>, LogError> {
    match (ends::clock(source.file, source.connection, topic_id), damage) {
        (Err(LogError::Unreadable { found, .. }), Damage::LeaveOut { losses, .. }) => {
            losses.push(Loss::Unnamed { found });
            Ok(None)
        }
        (read, _) => read,
    }
}

/// Returns the log's own counts; `None` if they are unreadable. A log without them cannot be opened.
fn counted(source: &CopiedLog<'_>) -> Option<Own> {
    Own::read(source.file, source.connection).ok()
}

/// Notes a loss if the number of rows differs from the stored count.
fn miscounted(losses: &mut Vec<Loss>, found: usize, expected: i64, of: &str) {
    if i64::try_from(found) != Ok(expected) {
        losses.push(Loss::Unnamed { found: format!("there are {found} {of} instead of {expected}") });
    }
}

/// A partition during its copy.
struct Partition<'a> {
    source: &'a CopiedLog<'a>,
    from: Table,
    connection: &'a Connection,
    name: &'a str,
    to: Table,
    /// Buffered consecutive records. Below: the offset of the first one.
    blocks: Blocks,
    first: i64,
    /// Offset after the buffered records.
    next: i64,
    /// Rows written.
    rows: i64,
}

impl Partition<'_> {
    /// Copies its records; returns its end.
    fn copy(&mut self, damage: &mut Damage<'_>, progress: &mut dyn FnMut(u64)) -> Result<End, LogError> {
        let CopiedLog { file, connection, .. } = *self.source;
        let Table { topic_id, partition, .. } = self.from;
        let given_up = self.accept(damage, GivenUp::of(file, connection, &self.from))?.unwrap_or_default();
        for (first, next) in given_up.ranges() {
            self.give_up(*first, *next)?;
        }
        let end = self.accept(damage, ends::read(file, connection, topic_id, partition))?;
        let known = end.filter(|_| !self.from.compacted).map(|end| end.next);
        let from = self.from;
        let (mut rows, mut is_damaged) = (0, false);
        let mut next = scan(file, connection, &from, known, &given_up, &mut |part| match part {
            Part::Records { stored, statistics, .. } => {
                rows += 1;
                if let (Some(statistics), Some(Ok(first))) = (statistics, stored.clone().next()) {
                    self.begin_described(statistics, first.offset)?;
                    progress(first.offset.unsigned_abs());
                }
                for record in stored.flatten() {
                    if record.offset != self.next || self.blocks.bytes() >= GATHERED_BYTES {
                        self.flush()?;
                        (self.first, self.next) = (record.offset, record.offset);
                        progress(record.offset.unsigned_abs());
                    }
                    self.blocks.push_stored(&record);
                    self.next += 1;
                }
                if statistics.is_some() {
                    self.blocks.end_block();
                }
                Ok(())
            }
            Part::Damage { first, next, found } => {
                is_damaged = true;
                self.lose(damage, first, next, found)
            }
        })?;
        self.flush()?;
        if let Some(end) = end.filter(|end| !is_damaged && end.rows != rows) {
            let found = format!("{}/{partition} has {rows} rows instead of {}", self.name, end.rows);
            match damage {
                Damage::Refuse => return Err(file.damaged(found)),
                Damage::LeaveOut { losses, .. } => losses.push(Loss::Unnamed { found }),
            }
        }
        next = next.max(end.map_or(0, |end| end.next));
        if let Damage::LeaveOut { behind, .. } = damage {
            let behind = behind.iter().find(|lost| (lost.topic_id, lost.partition) == (topic_id, partition));
            if let Some(last) = behind.map(|lost| lost.next).filter(|last| *last > next) {
                // New records must not reuse offsets that readers have already seen.
                self.lose(damage, next, last, "it was lost with the write-ahead log".to_owned())?;
                next = last;
            }
        }
        Ok(End { next, rows: self.rows })
    }

    /// Returns the value that was read; `None` if it is damaged and left out.
    fn accept<T>(&self, damage: &mut Damage<'_>, read: Result<T, LogError>) -> Result<Option<T>, LogError> {
        match (read, damage) {
            (Ok(read), _) => Ok(Some(read)),
            (Err(LogError::Unreadable { found, .. }), Damage::LeaveOut { losses, .. }) => {
                losses.push(Loss::Unnamed { found });
                Ok(None)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn lose(&self, damage: &mut Damage<'_>, first: i64, next: i64, found: String) -> Result<(), LogError> {
        let (topic, partition) = (self.name.to_owned(), self.from.partition);
        match damage {
            Damage::Refuse => {
                let found = format!("{topic}/{partition} offsets {first} to {}: {found}", next - 1);
                Err(self.source.file.damaged(found))
            }
            Damage::LeaveOut { losses, .. } => {
                losses.push(Loss::Records { topic, partition, first, next, found });
                self.give_up(first, next)
            }
        }
    }

    fn give_up(&self, first: i64, next: i64) -> Result<(), LogError> {
        let Table { topic_id, partition, .. } = self.to;
        catalogue::give_up(self.connection, topic_id, partition, first, next)
            .map_err(|error| self.source.file.failure(DOING, error))
    }

    /// Begins a block that keeps its statistics. Its records come next, the first one with this offset.
    fn begin_described(&mut self, statistics: Statistics<'_>, first: i64) -> Result<(), LogError> {
        // Later on, a gap or a full buffer would cut the block.
        if first != self.next || self.blocks.bytes() + BLOCK_BYTES >= GATHERED_BYTES {
            self.flush()?;
            (self.first, self.next) = (first, first);
        }
        self.blocks.begin_described(statistics.bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), LogError> {
        let blocks = std::mem::take(&mut self.blocks);
        let failed = |error| self.source.file.failure(DOING, error);
        if blocks.may_have_statistics() {
            format::begin_statistics(self.connection).map_err(failed)?;
        }
        let appended = self.to.append(self.connection, self.first, &blocks).map_err(failed)?;
        self.rows += appended.rows;
        self.first = self.next;
        Ok(())
    }
}

/// Copies committed offsets, limited to the ends of their partitions; returns their number.
fn committed(
    source: &CopiedLog<'_>,
    file: &LogFile,
    connection: &Connection,
    catalogue: &Catalogue,
    damage: &mut Damage<'_>,
) -> Result<i64, LogError> {
    if matches!(damage, Damage::Refuse) {
        catalogue::check_committed(source.file, source.connection)?;
    }
    let found = catalogue::committed_rows(source.file, source.connection)?;
    if let (Damage::LeaveOut { losses, .. }, Some(own)) = (&mut *damage, counted(source)) {
        miscounted(losses, found.len(), own.committed_rows, "committed offsets");
    }
    let mut rows = 0;
    for row in found {
        let topic = catalogue.topics().find(|topic| topic.topic_id == row.topic_id);
        let partitions = 0..topic.map_or(0, |topic| topic.spec.partitions);
        let place = match topic {
            Some(topic) => format!("{}/{}", topic.spec.name, row.partition),
            None => format!("partition {} of topic number {}", row.partition, row.topic_id),
        };
        let mut next = row.next;
        let is_kept = row.is_whole && partitions.contains(&row.partition);
        if is_kept {
            let end = ends::read(file, connection, row.topic_id, row.partition)?.next;
            next = match damage {
                Damage::Refuse => next,
                Damage::LeaveOut { .. } => next.min(end),
            };
        }
        if let Damage::LeaveOut { losses, .. } = damage
            && (!is_kept || next != row.next)
        {
            let set_to = is_kept.then_some(next);
            losses.push(Loss::Committed { group: row.group.clone(), place, next: row.next, set_to });
        }
        if is_kept {
            catalogue::store_committed(connection, (&row.group, row.topic_id, row.partition, next))
                .map_err(|error| file.failure(DOING, error))?;
            rows += 1;
        }
    }
    Ok(rows)
}

/// Copies producers with their epochs, up to the first one whose key does not ascend.
fn producers(
    source: &CopiedLog<'_>,
    connection: &Connection,
    damage: &mut Damage<'_>,
) -> Result<(), LogError> {
    let copy = || {
        let sql = "SELECT transactional_id, epoch FROM producers ORDER BY transactional_id";
        let mut statement = source.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut last: Option<String> = None;
        while let Some(row) = rows.next()? {
            let (name, epoch): (String, i64) = (row.get(0)?, row.get(1)?);
            if last.as_ref().is_some_and(|last| *last >= name) {
                return Ok(false);
            }
            connection.execute("INSERT INTO producers VALUES (?1, ?2)", (&name, epoch))?;
            last = Some(name);
        }
        Ok(true)
    };
    if copy().map_err(|error| source.file.failure(DOING, error))? {
        return Ok(());
    }
    let found = "the B-tree of producers has a cycle".to_owned();
    match damage {
        Damage::Refuse => Err(source.file.damaged(found)),
        Damage::LeaveOut { losses, .. } => {
            losses.push(Loss::Unnamed { found });
            Ok(())
        }
    }
}
