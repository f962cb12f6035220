//! The topics of a log, and which tables hold them.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::file::LogFile;
use super::format;
use super::layout::Layout;
use crate::topic::{check_spec, conflict_of};
use crate::{LogError, OffsetRange, TopicInfo, TopicPartition, TopicSpec};

const DOING: &str = "reading the topics";

/// A topic and its number in table names.
pub(super) struct Topic {
    pub(super) topic_id: i64,
    pub(super) spec: TopicSpec,
    pub(super) layout: Layout,
}

/// All topics by name, as of some moment. Topics are only ever added.
#[derive(Default)]
pub(super) struct Catalogue {
    topics: BTreeMap<String, Topic>,
}

/// The table of a partition's records.
pub(super) fn records_table(topic_id: i64, partition: i32) -> String {
    format!("records_{topic_id}_{partition}")
}

impl Catalogue {
    pub(super) fn load(file: &LogFile, connection: &Connection) -> Result<Self, LogError> {
        Self::query(connection).map_err(|error| file.failure(DOING, error))
    }

    fn query(connection: &Connection) -> rusqlite::Result<Self> {
        let (_, format_version) = format::identity(connection)?;
        let mut statement =
            connection.prepare_cached("SELECT name, topic_id, partitions, compacted FROM topics")?;
        let topics = statement
            .query_map([], |row| {
                let name: String = row.get(0)?;
                let spec = TopicSpec {
                    name: name.clone(),
                    partitions: row.get(2)?,
                    compacted: row.get(3)?,
                    ..TopicSpec::default()
                };
                let layout = Layout::of(format_version, spec.compacted);
                Ok((name, Topic { topic_id: row.get(1)?, spec, layout }))
            })?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self { topics })
    }

    pub(super) fn topic(&self, file: &LogFile, name: &str) -> Result<&Topic, LogError> {
        self.topics.get(name).ok_or_else(|| LogError::UnknownTopic {
            url: file.url.clone(),
            topic: name.to_owned(),
            known: match self.topics.len() {
                0 => "no topics yet".to_owned(),
                _ => self.topics.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
            },
        })
    }

    /// The topic of a partition that exists.
    pub(super) fn topic_of(&self, file: &LogFile, topic: &str, partition: i32) -> Result<&Topic, LogError> {
        let found = self.topic(file, topic)?;
        if (0..found.spec.partitions).contains(&partition) {
            return Ok(found);
        }
        Err(LogError::UnknownPartition {
            url: file.url.clone(),
            topic: topic.to_owned(),
            partition,
            allowed: format!("0 to {}", found.spec.partitions - 1),
        })
    }

    /// The topics by name.
    pub(super) fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.values()
    }

    /// Every topic with the ends of its partitions.
    pub(super) fn describe(
        &self,
        file: &LogFile,
        connection: &Connection,
    ) -> Result<Vec<TopicInfo>, LogError> {
        let mut described = Vec::with_capacity(self.topics.len());
        for topic in self.topics.values() {
            let offsets = (0..topic.spec.partitions)
                .map(|partition| offsets(file, connection, topic.topic_id, partition))
                .collect::<Result<_, _>>()?;
            described.push(TopicInfo { spec: topic.spec.clone(), offsets });
        }
        Ok(described)
    }
}

/// Adds the topics that are missing, within a write transaction.
pub(super) fn create(
    file: &LogFile,
    transaction: &Transaction<'_>,
    topics: &[TopicSpec],
) -> Result<(), LogError> {
    for spec in topics {
        check_spec(&file.url, spec)?;
        let catalogue = Catalogue::load(file, transaction)?;
        match catalogue.topics.get(&spec.name) {
            None => {
                add(transaction, spec).map_err(|error| file.failure("creating a topic", error))?;
            }
            Some(found) => {
                if let Some(conflict) = conflict_of(&file.url, &found.spec, spec) {
                    return Err(conflict);
                }
            }
        }
    }
    Ok(())
}

fn add(transaction: &Transaction<'_>, spec: &TopicSpec) -> rusqlite::Result<()> {
    let (_, format_version) = format::identity(transaction)?;
    let columns = Layout::of(format_version, spec.compacted).columns();
    let topic_id: i64 = transaction.query_row(
        "INSERT INTO topics(name, partitions, compacted) VALUES (?1, ?2, ?3) RETURNING topic_id",
        params![spec.name, spec.partitions, spec.compacted],
        |row| row.get(0),
    )?;
    for partition in 0..spec.partitions {
        let table = records_table(topic_id, partition);
        transaction.execute_batch(&format!("CREATE TABLE {table}({columns}) STRICT"))?;
        if spec.compacted {
            transaction
                .execute_batch(&format!("CREATE INDEX {table}_keys ON {table}(key) WHERE key IS NOT NULL"))?;
        }
        transaction.execute("INSERT INTO partitions VALUES (?1, ?2, 0)", params![topic_id, partition])?;
    }
    Ok(())
}

/// First and next offset of a partition that exists.
pub(super) fn offsets(
    file: &LogFile,
    connection: &Connection,
    topic_id: i64,
    partition: i32,
) -> Result<OffsetRange, LogError> {
    let sql = format!(
        "SELECT (SELECT min(offset) FROM {}), next_offset FROM partitions WHERE topic_id = ?1 AND partition = ?2",
        records_table(topic_id, partition)
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut statement| {
            statement.query_row(params![topic_id, partition], |row| {
                let next: i64 = row.get(1)?;
                Ok(OffsetRange { first: row.get::<_, Option<i64>>(0)?.unwrap_or(next), next })
            })
        })
        .map_err(|error| file.failure(DOING, error))
}

/// Next-to-read offset that a group committed.
pub(super) fn committed(
    file: &LogFile,
    connection: &Connection,
    group: &str,
    topic_id: i64,
    source: &TopicPartition,
) -> Result<Option<i64>, LogError> {
    connection
        .prepare_cached(
            "SELECT next_offset FROM committed_offsets WHERE group_name = ?1 AND topic_id = ?2 AND partition = ?3",
        )
        .and_then(|mut statement| {
            statement.query_row(params![group, topic_id, source.partition], |row| row.get(0)).optional()
        })
        .map_err(|error| file.failure("reading committed offsets", error))
}
