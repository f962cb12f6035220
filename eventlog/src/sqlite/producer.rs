//! Buffers a transaction in memory and writes it in one short SQLite transaction at commit.
//!
//! The file contains nothing of an open transaction. So an abort costs nothing, a crash leaves nothing behind, and the
//! write lock is held only while writing.

use std::collections::BTreeMap;
use std::collections::btree_map::{Values, ValuesMut};
use std::sync::Arc;

use rusqlite::{OptionalExtension, Transaction};

use super::block::Blocks;
use super::bounded::Bounded;
use super::catalogue::{self, Catalogue, Topic};
use super::checkpoint::Checkpointer;
use super::ends::{self, End};
use super::file::{LogFile, Writing};
use super::format;
use super::head::HeadEnd;
use super::limits::{RECORD_BYTES_MAX, TRANSACTION_BYTES_MAX};
use super::placing::Placing;
use super::table::{Appended, Layout, Table};
use crate::{LogError, NewRecord, Producer, TopicPartition};

const _: () = assert!(RECORD_BYTES_MAX + RECORD_OVERHEAD_BYTES <= TRANSACTION_BYTES_MAX);
/// Bytes counted for a record in addition to its own.
const RECORD_OVERHEAD_BYTES: usize = 64;
/// Page cache of a producer's connection in KiB, as large as a busy engine's transactions. Pages beyond it go to the
/// write-ahead log early, and are read and checksummed again before the commit.
const PAGE_CACHE_KIB: i64 = 16 * 1024;
const DOING: &str = "committing a transaction";

/// Records for one partition, in the order of sending.
struct Appends {
    table: Table,
    /// The partition's number among all of the log.
    index: u64,
    blocks: Blocks,
}

/// An open transaction.
#[derive(Default)]
struct Open {
    /// Records by topic, then partition.
    appends: BTreeMap<String, BTreeMap<i32, Appends>>,
    /// Next-to-read offsets by group, topic number and partition.
    offsets: BTreeMap<(String, i64, i32), i64>,
    bytes: usize,
}

impl Open {
    /// Returns the records of topics that are not compacted, with the topics' numbers.
    fn by_topic(&self) -> impl Iterator<Item = (i64, Values<'_, i32, Appends>)> {
        self.appends.values().filter_map(|partitions| {
            let table = partitions.values().next()?.table;
            (table.layout() == Layout::Blocks).then(|| (table.topic_id, partitions.values()))
        })
    }

    fn by_topic_mut(&mut self) -> impl Iterator<Item = (i64, ValuesMut<'_, i32, Appends>)> {
        self.appends.values_mut().filter_map(|partitions| {
            let table = partitions.values().next()?.table;
            (table.layout() == Layout::Blocks).then(|| (table.topic_id, partitions.values_mut()))
        })
    }

    /// Returns true if some block may be stored with statistics.
    fn may_have_statistics(&self) -> bool {
        self.by_topic()
            .any(|(_, mut partitions)| partitions.any(|appends| appends.blocks.may_have_statistics()))
    }

    /// Returns the numbers of the topics with records, ascending.
    fn topics(&self) -> Vec<i64> {
        let of = |partitions: &BTreeMap<i32, Appends>| Some(partitions.values().next()?.table.topic_id);
        let mut topics: Vec<i64> = self.appends.values().filter_map(of).collect();
        topics.sort_unstable();
        topics
    }
}

/// A producer of transactions.
pub(super) struct SqliteProducer {
    file: Arc<LogFile>,
    checkpointer: Arc<Checkpointer>,
    connection: Bounded,
    catalogue: Catalogue,
    transactional_id: String,
    epoch: i64,
    open: Option<Open>,
    placing: Placing,
    /// True once the log is known to be one with statistics.
    has_statistics: bool,
}

impl SqliteProducer {
    /// Fences every earlier producer of this transactional id.
    pub(super) fn new(
        file: Arc<LogFile>,
        checkpointer: Arc<Checkpointer>,
        transactional_id: &str,
    ) -> Result<Self, LogError> {
        const DOING: &str = "starting a producer";
        if transactional_id.is_empty() {
            return Err(LogError::Argument {
                url: file.url.clone(),
                argument: "transactional id",
                value: String::new(),
                allowed: "name the producer".to_owned(),
            });
        }
        let connection = file.connect()?;
        connection
            .pragma_update(None, "cache_size", -PAGE_CACHE_KIB)
            .map_err(|error| file.failure(DOING, error))?;
        let epoch = file.write(&connection, DOING, |writing| {
            let transaction = &writing.transaction;
            transaction
                .query_row(
                    "INSERT INTO producers VALUES (?1, 1)
                     ON CONFLICT (transactional_id) DO UPDATE SET epoch = epoch + 1 RETURNING epoch",
                    [transactional_id],
                    |row| row.get(0),
                )
                .map_err(|error| file.failure(DOING, error))
        })?;
        let catalogue = Catalogue::load(&file, &connection)?;
        let transactional_id = transactional_id.to_owned();
        Ok(Self {
            file,
            checkpointer,
            connection,
            catalogue,
            transactional_id,
            epoch,
            open: None,
            placing: Placing::default(),
            has_statistics: false,
        })
    }

    fn open(&mut self, call: &'static str) -> Result<&mut Open, LogError> {
        let url = &self.file.url;
        self.open.as_mut().ok_or_else(|| LogError::TransactionState {
            url: url.clone(),
            call,
            needs: "an open transaction: call begin first",
        })
    }

    /// Returns a topic that has the partition. The topic may be newer than the loaded catalogue.
    fn find(&mut self, topic: &str, partition: i32) -> Result<&Topic, LogError> {
        if let Err(LogError::UnknownTopic { .. }) = self.catalogue.topic(&self.file, topic) {
            self.file.begin(&self.connection)?;
            self.catalogue = Catalogue::load(&self.file, &self.connection)?;
        }
        self.catalogue.topic_of(&self.file, topic, partition)
    }
}

impl Producer for SqliteProducer {
    fn begin(&mut self) -> Result<(), LogError> {
        if self.open.is_some() {
            return Err(LogError::TransactionState {
                url: self.file.url.clone(),
                call: "begin",
                needs: "no open transaction: commit or abort the one before",
            });
        }
        self.open = Some(Open::default());
        Ok(())
    }

    fn send(&mut self, record: NewRecord<'_>) -> Result<(), LogError> {
        let open = self.open("send")?;
        let own_bytes = record_bytes(&record);
        let bytes = open.bytes + RECORD_OVERHEAD_BYTES + own_bytes;
        if own_bytes > RECORD_BYTES_MAX {
            return Err(LogError::RecordTooLarge {
                url: self.file.url.clone(),
                topic: record.topic.into_owned(),
                bytes: own_bytes,
                action: "send smaller records",
            });
        }
        if bytes > TRANSACTION_BYTES_MAX {
            let url = self.file.url.clone();
            return Err(LogError::TransactionTooLarge { url, bytes, bytes_max: TRANSACTION_BYTES_MAX });
        }
        let (topic, partition) = (record.topic.as_ref(), record.partition);
        if let Some(appends) =
            open.appends.get_mut(topic).and_then(|partitions| partitions.get_mut(&partition))
        {
            appends.blocks.push(&record);
            open.bytes = bytes;
            return Ok(());
        }
        let found = self.find(topic, partition)?;
        let (table, index) = (found.table(partition), found.index(partition));
        let mut appends = Appends { table, index, blocks: Blocks::default() };
        appends.blocks.push(&record);
        let open = self.open("send")?;
        open.bytes = bytes;
        open.appends.entry(topic.to_owned()).or_default().insert(partition, appends);
        Ok(())
    }

    fn send_offsets(&mut self, group: &str, offsets: &[(TopicPartition, i64)]) -> Result<(), LogError> {
        self.open("send_offsets")?;
        for (source, next) in offsets {
            if *next < 0 {
                return Err(LogError::Argument {
                    url: self.file.url.clone(),
                    argument: "next-to-read offset",
                    value: next.to_string(),
                    allowed: "use 0 or more".to_owned(),
                });
            }
            let topic_id = self.find(&source.topic, source.partition)?.topic_id;
            let key = (group.to_owned(), topic_id, source.partition);
            self.open("send_offsets")?.offsets.insert(key, *next);
        }
        Ok(())
    }

    /// Adds the offset as `send_offsets` does, because commits of this log never check membership.
    fn send_position(&mut self, group: &str, partition: &TopicPartition, next: i64) -> Result<(), LogError> {
        self.send_offsets(group, &[(partition.clone(), next)])
    }

    fn commit_as_owner(&mut self, is_owner: &dyn Fn() -> bool) -> Result<(), LogError> {
        self.open("commit")?;
        if !is_owner() {
            return Err(LogError::Aborted {
                url: self.file.url.clone(),
                transactional_id: self.transactional_id.clone(),
                cause: "its process no longer owns the partitions of the transaction".to_owned(),
            });
        }
        let open = self.open.as_mut().expect("it was just found open");
        for (topic_id, partitions) in open.by_topic_mut() {
            self.placing.place(
                &self.file,
                topic_id,
                partitions.flat_map(|appends| appends.blocks.iter_mut()),
            )?;
        }
        let has_statistics = self.has_statistics || open.may_have_statistics();
        let noted = self.file.write(&self.connection, DOING, |writing| {
            check_epoch(&self.file, &writing.transaction, &self.transactional_id, self.epoch)?;
            if has_statistics && !self.has_statistics {
                format::begin_statistics(&writing.transaction)
                    .map_err(|error| self.file.failure(DOING, error))?;
            }
            for appends in open.appends.values().flat_map(BTreeMap::values) {
                let end = append(&self.file, &writing.transaction, appends)?;
                writing.ends.push(end);
            }
            store_offsets(&self.file, writing, &open.offsets)?;
            let note = |(topic_id, partitions): (i64, Values<'_, i32, Appends>)| {
                let blocks = partitions.flat_map(|appends| appends.blocks.iter());
                self.placing.note(&self.file, writing, topic_id, blocks)
            };
            open.by_topic().map(note).collect::<Result<Vec<_>, _>>()
        })?;
        self.placing.committed(noted);
        self.has_statistics = has_statistics;
        self.file.wakes.notify(&open.topics());
        self.open = None;
        self.checkpointer.committed(&self.connection);
        Ok(())
    }

    fn abort(&mut self) -> Result<(), LogError> {
        self.open("abort")?;
        self.open = None;
        Ok(())
    }
}

fn record_bytes(record: &NewRecord<'_>) -> usize {
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    record.key.as_ref().map_or(0, |key| key.len()) + headers + record.value.len()
}

/// Checks that this producer is the newest one of its transactional id; only that one may write.
fn check_epoch(
    file: &LogFile,
    transaction: &Transaction<'_>,
    transactional_id: &str,
    epoch: i64,
) -> Result<(), LogError> {
    let newest: Option<i64> = transaction
        .prepare_cached("SELECT epoch FROM producers WHERE transactional_id = ?1")
        .and_then(|mut statement| statement.query_row([transactional_id], |row| row.get(0)).optional())
        .map_err(|error| file.failure(DOING, error))?;
    if newest == Some(epoch) {
        return Ok(());
    }
    Err(LogError::Fenced { url: file.url.clone(), transactional_id: transactional_id.to_owned() })
}

/// Writes the records of a partition; returns its end.
fn append(file: &LogFile, transaction: &Transaction<'_>, appends: &Appends) -> Result<HeadEnd, LogError> {
    let &Appends { table, index, ref blocks } = appends;
    let Table { topic_id, partition, .. } = table;
    let end = ends::read(file, transaction, topic_id, partition)?;
    let Appended { next, rows } =
        table.append(transaction, end.next, blocks).map_err(|error| file.failure(DOING, error))?;
    ends::write(file, transaction, topic_id, partition, End { next, rows: end.rows + rows })?;
    Ok(HeadEnd { index, topic_id, partition, next })
}

fn store_offsets(
    file: &LogFile,
    writing: &mut Writing<'_>,
    offsets: &BTreeMap<(String, i64, i32), i64>,
) -> Result<(), LogError> {
    for ((group, topic_id, partition), next) in offsets {
        let row = (group.as_str(), *topic_id, *partition, *next);
        let is_new = catalogue::store_committed(&writing.transaction, row)
            .map_err(|error| file.failure(DOING, error))?;
        writing.own.committed_rows += i64::from(is_new);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, EventLog, SqliteLog, TopicSpec};

    #[test]
    fn a_full_disk_keeps_the_transaction_for_another_commit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log.db");
        let log = SqliteLog::open(&path, Durability::Process).unwrap();
        log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 1, ..TopicSpec::default() }])
            .unwrap();
        let mut producer =
            SqliteProducer::new(Arc::clone(&log.file), Arc::clone(log.checkpointer.as_ref().unwrap()), "p")
                .unwrap();
        let limit = |producer: &SqliteProducer, pages: i64| {
            producer.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(&producer, 40);
        producer.begin().unwrap();
        for n in 0..100 {
            let value = vec![n; 16 << 10];
            producer
                .send(NewRecord { topic: "t".into(), value: value.into(), ..NewRecord::default() })
                .unwrap();
        }
        let source = TopicPartition { topic: "t".to_owned(), partition: 0 };
        producer.send_offsets("g", &[(source, 7)]).unwrap();
        for _ in 0..2 {
            let error = producer.commit().unwrap_err();
            assert!(matches!(error, LogError::Full { .. }), "{error}");
            assert_eq!(log.topics().unwrap()[0].offsets[0].next, 0, "nothing may be written");
        }
        limit(&producer, 1_000_000);
        producer.commit().unwrap();
        assert_eq!(log.topics().unwrap()[0].offsets[0].next, 100);
        log.check().unwrap();
    }

    #[test]
    fn a_transaction_has_a_limit_and_survives_it() {
        let directory = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(directory.path().join("log.db"), Durability::Process).unwrap();
        log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 1, ..TopicSpec::default() }])
            .unwrap();
        let mut producer =
            SqliteProducer::new(Arc::clone(&log.file), Arc::clone(log.checkpointer.as_ref().unwrap()), "p")
                .unwrap();
        producer.begin().unwrap();
        let record =
            |value: Vec<u8>| NewRecord { topic: "t".into(), value: value.into(), ..NewRecord::default() };
        let error = producer.send(record(vec![0; RECORD_BYTES_MAX + 1])).unwrap_err();
        assert!(matches!(error, LogError::RecordTooLarge { .. }), "{error}");
        producer.open.as_mut().unwrap().bytes = TRANSACTION_BYTES_MAX - RECORD_BYTES_MAX;
        let error = producer.send(record(vec![0; RECORD_BYTES_MAX])).unwrap_err();
        assert!(matches!(error, LogError::TransactionTooLarge { .. }), "{error}");
        producer.send(record(vec![1])).unwrap();
        producer.commit().unwrap();
        assert_eq!(log.topics().unwrap()[0].offsets[0].next, 1);
    }
}
