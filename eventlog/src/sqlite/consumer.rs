//! Reads committed records of some partitions in turn.
//!
//! Every check and every read is a read transaction of its own and ends within the call, so an idle consumer blocks no
//! writer. The consumer does not know the writers. [`super::wake::Wake`] wakes it for commits of this process, and for
//! those of other processes that [`super::watch`] notices. It detects the rest by the file's version in SQLite, which it
//! queries less and less often while nothing changes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::block::Records;
use super::bounded::Bounded;
use super::catalogue::{self, Catalogue, GivenUp};
use super::ends;
use super::file::LogFile;
use super::member::Membership;
use super::polled::{PollLimits, Polled};
use super::table::{Stored, Table};
use super::wake::Wake;
use crate::{Consumer, Fetched, LogError, OffsetRange, Record, Selection, TopicPartition};

/// Wait for another process's commit, after a commit was found; each further wait is twice as long.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Longest wait between two checks for commits of other processes.
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(10);
/// Most rows of a partition that are passed over before other partitions have their turn, if the caller looks for some
/// records.
const SEARCHED_ROWS_MAX: usize = 1_024;
const DOING: &str = "reading records";

/// The reading state of a partition.
struct Cursor {
    source: TopicPartition,
    table: Table,
    select: String,
    /// Offsets without records.
    given_up: GivenUp,
    /// True if the rows must be counted before the first read. If offsets may be missing, only the count reveals a lost
    /// row.
    is_to_be_counted: bool,
    /// The unread rest of the last block; `None` if it was read to its end.
    rest: Option<Rest>,
    /// Offset to read next; `None` until the group's committed offset is looked up.
    position: Option<i64>,
    /// True if nothing was read since the position was set. Then records before the first one are skipped.
    is_at_start: bool,
    /// The partition's end at the last check.
    next: i64,
    paused: bool,
}

/// The unread end of a block.
struct Rest {
    next_offset: i64,
    left: i64,
    /// Bytes of the block, or of the part that was unread when it was stored.
    bytes: Vec<u8>,
    /// Number of these bytes that were read since.
    used: usize,
}

/// A consumer of a group, or a reader outside any.
pub(super) struct SqliteConsumer {
    file: Arc<LogFile>,
    connection: Bounded,
    cursors: Vec<Cursor>,
    /// Index of the cursor whose turn it is.
    turn: usize,
    /// The file's version when the partitions' ends were last checked.
    seen_version: Option<i64>,
    /// Counter of this process's commits to the partitions read here.
    wake: Arc<Wake>,
    /// Next wait for another process's commit.
    interval: Duration,
    /// Least time between two checks for commits, and the time of the last one.
    gather: Duration,
    looked: Option<Instant>,
    /// The records that the caller looks for; `None` for all.
    selection: Option<Selection>,
    member: Option<Member>,
}

/// Result of a turn over all partitions.
enum Turn {
    /// Records, or partitions.
    Fetched(Fetched),
    /// Records were passed over, and none of them is selected.
    Searched,
    /// Nothing is left.
    Ended,
}

/// The part of a consumer that only members of a group have.
struct Member {
    group: String,
    /// True if the partitions were announced to the caller.
    assigned: bool,
    _membership: Membership,
}

impl SqliteConsumer {
    pub(super) fn member(
        file: Arc<LogFile>,
        group: &str,
        membership: Membership,
        topics: &[&str],
    ) -> Result<Self, LogError> {
        let connection = file.connect()?;
        let catalogue = Catalogue::load(&file, &connection)?;
        let mut sources = Vec::new();
        for name in topics {
            let topic = catalogue.topic(&file, name)?;
            sources.extend(
                (0..topic.spec.partitions)
                    .map(|partition| TopicPartition { topic: topic.spec.name.clone(), partition }),
            );
        }
        let mut consumer = Self::over(file, connection, &catalogue, sources)?;
        consumer.member = Some(Member { group: group.to_owned(), assigned: false, _membership: membership });
        Ok(consumer)
    }

    pub(super) fn reader(file: Arc<LogFile>, partitions: &[TopicPartition]) -> Result<Self, LogError> {
        let connection = file.connect()?;
        let catalogue = Catalogue::load(&file, &connection)?;
        let mut consumer = Self::over(file, connection, &catalogue, partitions.to_vec())?;
        for cursor in &mut consumer.cursors {
            cursor.position = Some(0);
        }
        Ok(consumer)
    }

    fn over(
        file: Arc<LogFile>,
        connection: Bounded,
        catalogue: &Catalogue,
        mut sources: Vec<TopicPartition>,
    ) -> Result<Self, LogError> {
        sources.sort();
        sources.dedup();
        let mut cursors = Vec::with_capacity(sources.len());
        for source in sources {
            let topic = catalogue.topic_of(&file, &source.topic, source.partition)?;
            let table = topic.table(source.partition);
            cursors.push(Cursor {
                source,
                table,
                select: table.select(),
                given_up: GivenUp::of(&file, &connection, &table)?,
                is_to_be_counted: table.compacted,
                rest: None,
                position: None,
                is_at_start: true,
                next: 0,
                paused: false,
            });
        }
        let mut topics: Vec<i64> = cursors.iter().map(|cursor| cursor.table.topic_id).collect();
        topics.dedup();
        Ok(Self {
            wake: file.wakes.of_topics(topics),
            file,
            connection,
            cursors,
            turn: 0,
            seen_version: None,
            interval: LOOK_INTERVAL_MIN,
            gather: Duration::ZERO,
            looked: None,
            selection: None,
            member: None,
        })
    }

    /// Announces a member's partitions, once.
    fn assign(&mut self) -> Result<Option<Fetched>, LogError> {
        let Some(member) = self.member.as_mut().filter(|member| !member.assigned) else { return Ok(None) };
        self.file.begin(&self.connection)?;
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.position.is_none()) {
            let committed = catalogue::committed(
                &self.file,
                &self.connection,
                &member.group,
                cursor.table.topic_id,
                &cursor.source,
            )?;
            cursor.position = Some(committed.unwrap_or(0));
        }
        member.assigned = true;
        Ok(Some(Fetched::Assigned(self.cursors.iter().map(|cursor| cursor.source.clone()).collect())))
    }

    /// Returns records of the next partition that has some. Waits at most `left`, and only to gather commits.
    fn fetch(&mut self, left: Duration, limits: PollLimits) -> Result<Turn, LogError> {
        self.file.begin(&self.connection)?;
        match self.fetch_known(limits)? {
            Turn::Ended if self.is_gathered(left) && self.look()? => self.fetch_known(limits),
            turn => Ok(turn),
        }
    }

    /// Waits until it is time to check for commits again; false if it is not yet time after `left`.
    fn is_gathered(&self, left: Duration) -> bool {
        let pause = self.looked.map_or(Duration::ZERO, |at| self.gather.saturating_sub(at.elapsed()));
        if !pause.is_zero() {
            thread::park_timeout(pause.min(left));
        }
        pause <= left
    }

    /// Returns records of the next partition that has some, up to the known ends.
    fn fetch_known(&mut self, limits: PollLimits) -> Result<Turn, LogError> {
        let mut turn = Turn::Ended;
        let count = self.cursors.len();
        for _ in 0..count {
            let cursor = &mut self.cursors[self.turn];
            self.turn = (self.turn + 1) % count;
            let position = cursor.position.expect("positions are known from the assignment on");
            if cursor.paused || position >= cursor.next {
                continue;
            }
            let Read { records, next } = loop {
                match read(&self.file, &self.connection, cursor, position, self.selection.as_ref(), limits) {
                    Ok(read) => break read,
                    // The records may have been removed since the given-up offsets were read, or while their segment
                    // was read.
                    Err(error) => {
                        if !look_for_removed(&self.file, &self.connection, cursor, position)? {
                            return Err(error);
                        }
                    }
                }
            };
            if next > position {
                // The position skips to the end, so that no further poll is needed to learn that no record follows.
                let is_last = cursor.given_up.covers(next, cursor.next);
                cursor.is_at_start = false;
                cursor.position = Some(if is_last { cursor.next.max(next) } else { next });
                if !records.is_empty() {
                    return Ok(Turn::Fetched(Fetched::Records { source: cursor.source.clone(), records }));
                }
                turn = Turn::Searched;
                continue;
            }
            if !cursor.table.compacted && !cursor.given_up.covers(position, cursor.next) {
                let TopicPartition { topic, partition } = &cursor.source;
                return Err(self.file.damaged(format!(
                    "{topic}/{partition}: no records from offset {position} on, the catalogue says {}",
                    cursor.next
                )));
            }
            // The rest up to the end was compacted away or given up.
            cursor.position = Some(cursor.next);
        }
        Ok(turn)
    }

    /// Checks the ends of the partitions; returns false if nothing was committed since the last check.
    fn look(&mut self) -> Result<bool, LogError> {
        let failed = |error| self.file.failure(DOING, error);
        let version: i64 = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(failed)?;
        if self.seen_version == Some(version) {
            return Ok(false);
        }
        self.looked = Some(Instant::now());
        // One read transaction covers all partitions.
        let looking = self.connection.unchecked_transaction().map_err(failed)?;
        for cursor in &mut self.cursors {
            let Table { topic_id, partition, .. } = cursor.table;
            cursor.next = ends::read(&self.file, &looking, topic_id, partition)?.next;
        }
        self.seen_version = Some(version);
        Ok(true)
    }

    fn cursor(&mut self, partition: &TopicPartition) -> Result<&mut Cursor, LogError> {
        match self.cursors.binary_search_by(|cursor| cursor.source.cmp(partition)) {
            Ok(index) => Ok(&mut self.cursors[index]),
            Err(_) => Err(LogError::UnknownPartition {
                url: self.file.url.clone(),
                topic: partition.topic.clone(),
                partition: partition.partition,
                allowed: match self.cursors.len() {
                    0 => "none: this consumer has no partitions".to_owned(),
                    count => {
                        format!("the {count} partitions of this consumer, the first being {:?}", {
                            let first = &self.cursors[0].source;
                            format!("{}/{}", first.topic, first.partition)
                        })
                    }
                },
            }),
        }
    }
}

/// Result of reading a partition.
struct Read {
    records: Vec<Record>,
    /// Offset after the last record that was read or left out.
    next: i64,
}

/// Reads records of one partition from `position` on.
fn read(
    file: &LogFile,
    connection: &Connection,
    cursor: &mut Cursor,
    position: i64,
    selection: Option<&Selection>,
    limits: PollLimits,
) -> Result<Read, LogError> {
    let failed = |error| file.failure(DOING, error);
    if cursor.is_to_be_counted {
        count(file, connection, cursor)?;
        cursor.is_to_be_counted = false;
    }
    let mut rest = cursor.rest.take().filter(|rest| rest.next_offset == position);
    let Cursor { source, given_up, table, .. } = &*cursor;
    let (expected, records, bytes) = (position, Vec::new(), 0);
    let mut polled = Polled {
        file,
        source,
        given_up,
        table: *table,
        begin: None,
        expected,
        records,
        bytes,
        limits,
        selection,
    };
    if let Some(rest) = &mut rest {
        let records = Records::new(rest.next_offset, rest.left, &rest.bytes[rest.used..]);
        let mut stored = Stored::Block(records);
        polled.take(&mut stored)?;
        if let Stored::Block(records) = stored {
            (rest.next_offset, rest.left) = (records.next_offset, records.left);
            rest.used = rest.bytes.len() - records.bytes.len();
        }
    }
    if !polled.is_full() && polled.expected < cursor.next {
        let mut statement = connection.prepare_cached(&cursor.select).map_err(failed)?;
        let mut rows = statement.query([polled.expected]).map_err(failed)?;
        polled.begin = Some(polled.expected);
        let mut buffer = Vec::new();
        let mut rows_left = selection.map_or(usize::MAX, |_| SEARCHED_ROWS_MAX);
        while !polled.is_full()
            && rows_left > 0
            && let Some(row) = rows.next().map_err(failed)?
        {
            rows_left -= 1;
            if polled.leaves_out(row)? {
                continue;
            }
            let mut stored = table
                .records(&file.segments, row, &mut buffer)
                .map_err(|fault| fault.explain(|found| polled.damaged(polled.expected, &found)))?;
            polled.take(&mut stored)?;
            rest = match stored {
                Stored::Block(Records { next_offset, left, bytes, .. }) => {
                    Some(Rest { next_offset, left, bytes: bytes.to_vec(), used: 0 })
                }
                Stored::Record(_) => None,
            };
        }
    }
    let Polled { records, expected: next, .. } = polled;
    cursor.rest = rest.filter(|rest| rest.left > 0);
    Ok(Read { records, next })
}

/// Reads the given-up offsets of a partition again. Returns true if they now explain why there is no
/// record at `position`, and the reader has not read anything yet. It then begins with the first record.
///
/// # Errors
/// The reader has read earlier records, so it would leave out the removed ones.
fn look_for_removed(
    file: &LogFile,
    connection: &Connection,
    cursor: &mut Cursor,
    position: i64,
) -> Result<bool, LogError> {
    let given_up = GivenUp::of(file, connection, &cursor.table)?;
    let TopicPartition { topic, partition } = &cursor.source;
    let OffsetRange { first, next } = catalogue::offsets(file, connection, topic, &cursor.table)?;
    if position >= first || cursor.given_up.covers(position, first) || !given_up.covers(position, first) {
        return Ok(false);
    }
    cursor.given_up = given_up;
    if cursor.is_at_start {
        return Ok(true);
    }
    Err(LogError::OffsetOutOfRange {
        url: file.url.clone(),
        topic: topic.clone(),
        partition: *partition,
        offset: position,
        there: format!("offsets {first} to {}", next - 1),
    })
}

/// Checks that no row of a partition is lost.
fn count(file: &LogFile, connection: &Connection, cursor: &Cursor) -> Result<(), LogError> {
    let failed = |error| file.failure(DOING, error);
    let counting = connection.unchecked_transaction().map_err(failed)?;
    let Table { topic_id, partition, .. } = cursor.table;
    let expected = ends::read(file, &counting, topic_id, partition)?.rows;
    // SQLite counts all rows in one step; in a damaged tree that leads to the same pages repeatedly, the step has no
    // bound.
    let sql = format!("SELECT count(offset) FROM {}", cursor.table.name());
    let rows: i64 = counting.query_row(&sql, [], |row| row.get(0)).map_err(failed)?;
    if rows == expected {
        return Ok(());
    }
    let topic = &cursor.source.topic;
    Err(file.damaged(format!("{topic}/{partition} has {rows} records instead of {expected}")))
}

/// Returns the time left until a deadline; a short time if there is none.
fn left_until(deadline: Option<Instant>) -> Duration {
    deadline.map_or(LOOK_INTERVAL_MAX, |deadline| deadline.saturating_duration_since(Instant::now()))
}

impl Consumer for SqliteConsumer {
    fn gather(&mut self, interval: Duration) {
        self.gather = interval;
    }

    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        if let Some(assigned) = self.assign()? {
            return Ok(assigned);
        }
        // Without a deadline (`None`) if the timeout exceeds the clock's range.
        let deadline = Instant::now().checked_add(timeout);
        let mut timed_out = false;
        loop {
            // The commits are counted before the check, so that a commit in between ends the wait below at once.
            let commits = self.wake.commits();
            let turn = self.fetch(left_until(deadline), PollLimits { records_max, bytes_max })?;
            if timed_out && !matches!(turn, Turn::Ended) {
                // Records were found without a wake, so another process is committing.
                self.interval = LOOK_INTERVAL_MIN;
            }
            if let Turn::Fetched(fetched) = turn {
                return Ok(fetched);
            }
            let left = left_until(deadline);
            // A caller that looks for some records may have reached its end.
            if left.is_zero() || matches!(turn, Turn::Searched) {
                return Ok(Fetched::Idle);
            }
            self.file.watch.ensure();
            timed_out = !self.wake.wait(commits, self.interval.min(left));
            if timed_out {
                self.interval = (self.interval * 2).min(LOOK_INTERVAL_MAX);
            }
        }
    }

    fn select(&mut self, selection: &Selection) -> bool {
        self.selection = (!selection.is_all()).then(|| selection.clone());
        self.selection.is_some()
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        partitions.iter().try_for_each(|partition| self.cursor(partition).map(|cursor| cursor.paused = true))
    }

    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        partitions.iter().try_for_each(|partition| self.cursor(partition).map(|cursor| cursor.paused = false))
    }

    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError> {
        let cursor = self.cursor(partition)?;
        (cursor.position, cursor.is_at_start) = (Some(offset.max(0)), true);
        Ok(())
    }

    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        self.file.begin(&self.connection)?;
        let Some(member) = &self.member else { return Ok(None) };
        let catalogue = Catalogue::load(&self.file, &self.connection)?;
        let topic_id = catalogue.topic_of(&self.file, &partition.topic, partition.partition)?.topic_id;
        catalogue::committed(&self.file, &self.connection, &member.group, topic_id, partition)
    }

    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError> {
        match self.cursor(partition)?.position {
            Some(position) => Ok(position),
            // Before its first poll, a member is at its group's committed offset.
            None => Ok(self.committed(partition)?.unwrap_or(0)),
        }
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        self.file.begin(&self.connection)?;
        let table = self.cursor(partition)?.table;
        catalogue::offsets(&self.file, &self.connection, &partition.topic, &table)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{Durability, EventLog, NewRecord, Producer, SqliteLog, TopicSpec};

    /// Longer than any test waits.
    const LONG: Duration = Duration::from_secs(600);
    /// More commits than happen while a reader finds nothing and begins to wait.
    const COMMITS_MAX: usize = 100_000;

    fn commit(producer: &mut dyn Producer, topic: &str) {
        producer.begin().unwrap();
        producer.send(NewRecord { topic: topic.into(), ..NewRecord::default() }).unwrap();
        producer.commit().unwrap();
    }

    #[test]
    fn commits_are_gathered_except_after_a_silence() {
        let directory = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(directory.path().join("log.db"), Durability::Process).unwrap();
        let topic = TopicSpec { name: "read".to_owned(), partitions: 1, ..TopicSpec::default() };
        log.create_topics(&[topic]).unwrap();
        let source = TopicPartition { topic: "read".to_owned(), partition: 0 };
        let mut reader = SqliteConsumer::reader(Arc::clone(&log.file), &[source]).unwrap();
        let mut producer = log.producer("here").unwrap();
        let found = |reader: &mut SqliteConsumer| match reader.poll(Duration::from_millis(1), 9, 9).unwrap() {
            Fetched::Records { records, .. } => records.len(),
            _ => 0,
        };
        reader.gather(LONG);
        commit(&mut *producer, "read");
        assert_eq!(found(&mut reader), 1, "the first commit is found at once");
        for _ in 0..3 {
            commit(&mut *producer, "read");
            assert_eq!(found(&mut reader), 0);
        }
        reader.gather(Duration::from_micros(1));
        assert_eq!(found(&mut reader), 3);
    }

    #[test]
    fn other_processes_are_looked_for_as_often_as_something_comes_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        let log = SqliteLog::open(&path, Durability::Process).unwrap();
        let topics = ["read", "other"].map(|name| TopicSpec {
            name: name.to_owned(),
            partitions: 1,
            ..TopicSpec::default()
        });
        log.create_topics(&topics).unwrap();
        let source = TopicPartition { topic: "read".to_owned(), partition: 0 };
        let mut reader = SqliteConsumer::reader(Arc::clone(&log.file), &[source]).unwrap();
        // As on a file system where the kernel reports nothing.
        log.file.watch.turn_off();
        let is_idle = |fetched: Fetched| matches!(fetched, Fetched::Idle);
        while reader.interval < LOOK_INTERVAL_MAX {
            assert!(is_idle(reader.poll(LOOK_INTERVAL_MAX, 1, 1).unwrap()));
        }

        // A waiting reader finds this process's commits only by being woken.
        let mut here = log.producer("here").unwrap();
        commit(&mut *here, "other");
        assert_eq!(reader.wake.commits(), 0);
        commit(&mut *here, "read");
        assert_eq!(reader.wake.commits(), 1);
        assert!(!is_idle(reader.poll(LONG, 1, 1).unwrap()));
        assert_eq!(reader.interval, LOOK_INTERVAL_MAX);

        // The second log object behaves like another process.
        let elsewhere = SqliteLog::open(&path, Durability::Process).unwrap();
        let mut there = elsewhere.producer("there").unwrap();
        let is_found = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..COMMITS_MAX {
                    if is_found.load(Ordering::Relaxed) {
                        return;
                    }
                    commit(&mut *there, "read");
                    thread::yield_now();
                }
            });
            // Commits before the wait began are no evidence.
            while reader.interval != LOOK_INTERVAL_MIN {
                assert!(!is_idle(reader.poll(LONG, 1_000, 1 << 20).unwrap()));
            }
            is_found.store(true, Ordering::Relaxed);
        });
    }
}
