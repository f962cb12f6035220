//! Reads committed records of some partitions, in turn.
//!
//! Every look and every read is a read transaction of its own that ends within the call, so that a consumer that is not
//! polled holds nothing up. It must not know who writes: it sees other processes' commits by asking SQLite whether the
//! file changed, and those of its own process through [`super::wake::Wake`]. It asks less and less often while nothing
//! comes of that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use super::catalogue::{self, Catalogue, records_table};
use super::file::LogFile;
use super::layout::Layout;
use super::member::Membership;
use super::wake::Wake;
use crate::{Consumer, Fetched, LogError, OffsetRange, Record, TopicPartition};

/// Wait for a commit of another process after one was found; each further wait is twice as long.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(1);
/// Longest wait between two looks for commits of other processes.
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(10);
const DOING: &str = "reading records";

/// Where reading of a partition stands.
struct Cursor {
    source: TopicPartition,
    topic_id: i64,
    layout: Layout,
    select: String,
    /// Whether offsets may be missing.
    compacted: bool,
    /// Offset to read next; `None` until the group's committed offset is looked up.
    position: Option<i64>,
    /// The partition's end when last looked at.
    next: i64,
    paused: bool,
}

/// A consumer of a group, or a reader outside any.
pub(super) struct SqliteConsumer {
    file: Arc<LogFile>,
    connection: Connection,
    cursors: Vec<Cursor>,
    /// The cursor whose turn it is.
    turn: usize,
    /// The file's version when the ends of partitions were last looked at.
    seen_version: Option<i64>,
    /// Counts this process's commits to what is read here.
    wake: Arc<Wake>,
    /// Next wait for a commit of another process.
    interval: Duration,
    member: Option<Member>,
}

/// What a consumer of a group has and a reader has not.
struct Member {
    group: String,
    /// Whether the partitions were announced.
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
        connection: Connection,
        catalogue: &Catalogue,
        mut sources: Vec<TopicPartition>,
    ) -> Result<Self, LogError> {
        sources.sort();
        sources.dedup();
        let mut cursors = Vec::with_capacity(sources.len());
        for source in sources {
            let topic = catalogue.topic_of(&file, &source.topic, source.partition)?;
            let (topic_id, compacted) = (topic.topic_id, topic.spec.compacted);
            let layout = topic.layout;
            let select = layout.select(&records_table(topic_id, source.partition));
            cursors.push(Cursor {
                source,
                topic_id,
                layout,
                select,
                compacted,
                position: None,
                next: 0,
                paused: false,
            });
        }
        let mut topics: Vec<i64> = cursors.iter().map(|cursor| cursor.topic_id).collect();
        topics.dedup();
        Ok(Self {
            wake: file.wakes.of_topics(topics),
            file,
            connection,
            cursors,
            turn: 0,
            seen_version: None,
            interval: LOOK_INTERVAL_MIN,
            member: None,
        })
    }

    /// Announces the partitions of a member, once.
    fn assign(&mut self) -> Result<Option<Fetched>, LogError> {
        let Some(member) = self.member.as_mut().filter(|member| !member.assigned) else { return Ok(None) };
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.position.is_none()) {
            let committed = catalogue::committed(
                &self.file,
                &self.connection,
                &member.group,
                cursor.topic_id,
                &cursor.source,
            )?;
            cursor.position = Some(committed.unwrap_or(0));
        }
        member.assigned = true;
        Ok(Some(Fetched::Assigned(self.cursors.iter().map(|cursor| cursor.source.clone()).collect())))
    }

    /// Records of the next partition that has some, without waiting.
    fn fetch(&mut self, records_max: usize, bytes_max: usize) -> Result<Option<Fetched>, LogError> {
        if let Some(fetched) = self.fetch_known(records_max, bytes_max)? {
            return Ok(Some(fetched));
        }
        if !self.look().map_err(|error| self.file.failure(DOING, error))? {
            return Ok(None);
        }
        self.fetch_known(records_max, bytes_max)
    }

    /// As [`Self::fetch`], up to the ends that are known.
    fn fetch_known(&mut self, records_max: usize, bytes_max: usize) -> Result<Option<Fetched>, LogError> {
        let count = self.cursors.len();
        for _ in 0..count {
            let cursor = &mut self.cursors[self.turn];
            self.turn = (self.turn + 1) % count;
            let position = cursor.position.expect("positions are known from the assignment on");
            if cursor.paused || position >= cursor.next {
                continue;
            }
            let records = read(&self.file, &self.connection, cursor, position, records_max, bytes_max)?;
            match records.last() {
                Some(record) => {
                    cursor.position = Some(record.offset + 1);
                    return Ok(Some(Fetched::Records { source: cursor.source.clone(), records }));
                }
                // The rest up to the end was compacted away.
                None if cursor.compacted => cursor.position = Some(cursor.next),
                None => {
                    let TopicPartition { topic, partition } = &cursor.source;
                    return Err(self.file.damaged(format!(
                        "{topic}/{partition}: no records from offset {position} on, the catalogue says {}",
                        cursor.next
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Looks where the partitions end, unless nothing was committed since the last look.
    fn look(&mut self) -> rusqlite::Result<bool> {
        let version: i64 =
            self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.seen_version == Some(version) {
            return Ok(false);
        }
        // One look at the file for all.
        let looking = self.connection.unchecked_transaction()?;
        let mut statement = looking
            .prepare_cached("SELECT next_offset FROM partitions WHERE topic_id = ?1 AND partition = ?2")?;
        for cursor in &mut self.cursors {
            cursor.next =
                statement.query_row(params![cursor.topic_id, cursor.source.partition], |row| row.get(0))?;
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
                    0 => "none, this consumer reads nothing".to_owned(),
                    count => {
                        format!("the {count} partitions that this consumer reads, the first being {:?}", {
                            let first = &self.cursors[0].source;
                            format!("{}/{}", first.topic, first.partition)
                        })
                    }
                },
            }),
        }
    }
}

/// Records of one partition from `position` on.
fn read(
    file: &LogFile,
    connection: &Connection,
    cursor: &Cursor,
    position: i64,
    records_max: usize,
    bytes_max: usize,
) -> Result<Vec<Record>, LogError> {
    let failed = |error| file.failure(DOING, error);
    let mut statement = connection.prepare_cached(&cursor.select).map_err(failed)?;
    let mut rows = statement.query([position]).map_err(failed)?;
    let mut records = Vec::new();
    let mut bytes = 0;
    let mut expected = position;
    'rows: while let Some(row) = rows.next().map_err(failed)? {
        let damaged = |offset: i64, found: String| {
            let TopicPartition { topic, partition } = &cursor.source;
            file.damaged(format!("{topic}/{partition} at offset {offset}: {found}"))
        };
        for stored in cursor.layout.records(row).map_err(|found| damaged(expected, found))? {
            let stored = stored.map_err(|found| damaged(expected, found))?;
            // The first block may begin before the position.
            if stored.offset < position && records.is_empty() && cursor.layout == Layout::Blocks {
                continue;
            }
            // A damaged tree may lose records, or lead around in circles.
            if stored.offset < expected || (stored.offset > expected && !cursor.compacted) {
                return Err(damaged(expected, format!("found offset {} in its place", stored.offset)));
            }
            let record = stored.to_record().map_err(|found| damaged(stored.offset, found))?;
            expected = record.offset + 1;
            bytes += record.value.len() + record.key.as_ref().map_or(0, Vec::len);
            records.push(record);
            if records.len() >= records_max || bytes >= bytes_max {
                break 'rows;
            }
        }
    }
    Ok(records)
}

impl Consumer for SqliteConsumer {
    fn poll(&mut self, timeout: Duration, records_max: usize, bytes_max: usize) -> Result<Fetched, LogError> {
        if let Some(assigned) = self.assign()? {
            return Ok(assigned);
        }
        // `None` for a timeout beyond what the clock can count: no deadline.
        let deadline = Instant::now().checked_add(timeout);
        let mut timed_out = false;
        loop {
            // Counted before looking, so that a commit in between ends the wait below at once.
            let commits = self.wake.commits();
            if let Some(fetched) = self.fetch(records_max, bytes_max)? {
                if timed_out {
                    // Found without being woken: another process is at work.
                    self.interval = LOOK_INTERVAL_MIN;
                }
                return Ok(fetched);
            }
            let left = deadline
                .map_or(LOOK_INTERVAL_MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                self.file.check_in_place(&self.connection)?;
                return Ok(Fetched::Idle);
            }
            timed_out = !self.wake.wait(commits, self.interval.min(left));
            if timed_out {
                self.interval = (self.interval * 2).min(LOOK_INTERVAL_MAX);
            }
        }
    }

    fn pause(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        partitions.iter().try_for_each(|partition| self.cursor(partition).map(|cursor| cursor.paused = true))
    }

    fn resume(&mut self, partitions: &[TopicPartition]) -> Result<(), LogError> {
        partitions.iter().try_for_each(|partition| self.cursor(partition).map(|cursor| cursor.paused = false))
    }

    fn seek(&mut self, partition: &TopicPartition, offset: i64) -> Result<(), LogError> {
        self.cursor(partition)?.position = Some(offset.max(0));
        Ok(())
    }

    fn committed(&mut self, partition: &TopicPartition) -> Result<Option<i64>, LogError> {
        let topic_id = self.cursor(partition)?.topic_id;
        let Some(member) = &self.member else { return Ok(None) };
        catalogue::committed(&self.file, &self.connection, &member.group, topic_id, partition)
    }

    fn position(&mut self, partition: &TopicPartition) -> Result<i64, LogError> {
        match self.cursor(partition)?.position {
            Some(position) => Ok(position),
            // A member that was not polled yet begins where its group is.
            None => Ok(self.committed(partition)?.unwrap_or(0)),
        }
    }

    fn offsets(&mut self, partition: &TopicPartition) -> Result<OffsetRange, LogError> {
        let topic_id = self.cursor(partition)?.topic_id;
        catalogue::offsets(&self.file, &self.connection, topic_id, partition.partition)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::{Durability, EventLog, NewRecord, Producer, SqliteLog, TopicSpec};

    /// Nobody waits for so long.
    const LONG: Duration = Duration::from_secs(600);
    /// More than it takes that a reader finds nothing and waits.
    const COMMITS_MAX: usize = 100_000;

    fn commit(producer: &mut dyn Producer, topic: &str) {
        producer.begin().unwrap();
        producer.send(NewRecord { topic: topic.into(), ..NewRecord::default() }).unwrap();
        producer.commit().unwrap();
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
        let is_idle = |fetched: Fetched| matches!(fetched, Fetched::Idle);
        while reader.interval < LOOK_INTERVAL_MAX {
            assert!(is_idle(reader.poll(LOOK_INTERVAL_MAX, 1, 1).unwrap()));
        }

        // What this process commits is found by being woken for it, and by nothing else.
        let mut here = log.producer("here").unwrap();
        commit(&mut *here, "other");
        assert_eq!(reader.wake.commits(), 0);
        commit(&mut *here, "read");
        assert_eq!(reader.wake.commits(), 1);
        assert!(!is_idle(reader.poll(LONG, 1, 1).unwrap()));
        assert_eq!(reader.interval, LOOK_INTERVAL_MAX);

        // To this log the other one is another process.
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
            // Those that are there before it waits say nothing.
            while reader.interval != LOOK_INTERVAL_MIN {
                assert!(!is_idle(reader.poll(LONG, 1_000, 1 << 20).unwrap()));
            }
            is_found.store(true, Ordering::Relaxed);
        });
    }
}
