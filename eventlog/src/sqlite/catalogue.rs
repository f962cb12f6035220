//! The topics of a log and the tables of their records.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use super::checksum;
use super::ends::{self, End, Own};
use super::file::{LogFile, Writing};
use super::table::Table;
use crate::topic::{check_spec, conflict_of};
use crate::{LogError, OffsetRange, TopicInfo, TopicPartition, TopicSpec};

const DOING: &str = "reading the topics";
/// Most partitions of all topics together. A check of the log visits each of them.
const PARTITIONS_OF_LOG_MAX: i64 = 1 << 20;
const READING_COMMITTED: &str = "reading committed offsets";

/// A topic and its number in table names.
pub(super) struct Topic {
    pub(super) topic_id: i64,
    pub(super) spec: TopicSpec,
    /// Number of its partition 0 among all partitions of the log, in the order of the topics' numbers.
    first_index: u64,
}

impl Topic {
    /// Returns the table of a partition.
    pub(super) fn table(&self, partition: i32) -> Table {
        Table { topic_id: self.topic_id, partition, compacted: self.spec.compacted }
    }

    /// Returns a partition's number among all of the log.
    pub(super) fn index(&self, partition: i32) -> u64 {
        self.first_index + u64::from(partition.cast_unsigned())
    }
}

/// All topics by name at some moment. Topics are only added, never removed.
#[derive(Default)]
pub(super) struct Catalogue {
    topics: BTreeMap<String, Topic>,
}

/// A row of the table of topics.
#[derive(Clone)]
pub(super) struct TopicRow {
    pub(super) topic_id: i64,
    pub(super) name: String,
    pub(super) partitions: i32,
    pub(super) compacted: bool,
    /// True if its checksum is right.
    pub(super) is_whole: bool,
}

/// Returns all rows of the table of topics, damaged or not, by number.
pub(super) fn topic_rows(file: &LogFile, connection: &Connection) -> Result<Vec<TopicRow>, LogError> {
    let sql = "SELECT topic_id, name, partitions, compacted, checksum FROM topics ORDER BY topic_id";
    let query = || {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
            let (topic_id, name): (_, String) = (row.get(0)?, row.get(1)?);
            let (partitions, compacted) = (row.get(2)?, row.get(3)?);
            let is_whole =
                row.get::<_, i64>(4)? == checksum::of_topic(topic_id, &name, partitions, compacted);
            let mut row = TopicRow { topic_id, name, partitions, compacted, is_whole };
            row.is_whole &= topic_id > 0 && check_spec(&file.url, &row.spec()).is_ok();
            Ok(row)
        })?;
        ascending(rows, |one, other| one.topic_id < other.topic_id)
    };
    let rows = ascended(file, "topics", query().map_err(|error| file.failure(DOING, error))?)?;
    let whole = rows.iter().filter(|row| row.is_whole);
    let partitions: i64 = whole.map(|row| i64::from(row.partitions)).sum();
    if partitions > PARTITIONS_OF_LOG_MAX {
        let found =
            format!("its topics have {partitions} partitions; at most {PARTITIONS_OF_LOG_MAX} are allowed");
        return Err(file.damaged(found));
    }
    Ok(rows)
}

impl TopicRow {
    fn spec(&self) -> TopicSpec {
        let &Self { partitions, compacted, .. } = self;
        TopicSpec { name: self.name.clone(), partitions, compacted, ..TopicSpec::default() }
    }
}

/// Returns the rows of a table; `None` if their keys do not ascend. A damaged tree that leads to the same pages
/// repeatedly yields endless rows.
pub(super) fn ascending<T>(
    rows: impl Iterator<Item = rusqlite::Result<T>>,
    is_before: impl Fn(&T, &T) -> bool,
) -> rusqlite::Result<Option<Vec<T>>> {
    let mut ascending: Vec<T> = Vec::new();
    for row in rows {
        let row = row?;
        if ascending.last().is_some_and(|last| !is_before(last, &row)) {
            return Ok(None);
        }
        ascending.push(row);
    }
    Ok(Some(ascending))
}

pub(super) fn ascended<T>(file: &LogFile, what: &str, rows: Option<Vec<T>>) -> Result<Vec<T>, LogError> {
    rows.ok_or_else(|| file.damaged(format!("the B-tree of {what} has a cycle")))
}

impl Catalogue {
    pub(super) fn load(file: &LogFile, connection: &Connection) -> Result<Self, LogError> {
        let _snapshot = snapshot(file, connection)?;
        let rows = topic_rows(file, connection)?;
        let expected = Own::read(file, connection)?.topic_rows;
        if i64::try_from(rows.len()) != Ok(expected) {
            return Err(file.damaged(format!("there are {} topics instead of {expected}", rows.len())));
        }
        if let Some(row) = rows.iter().find(|row| !row.is_whole) {
            let TopicRow { topic_id, name, .. } = row;
            let found = match check_spec(&file.url, &row.spec()) {
                Err(LogError::TopicConflict { found, .. }) => found,
                _ => "does not match its checksum".to_owned(),
            };
            return Err(file.damaged(format!("topic number {topic_id}, {name:?}, {found}")));
        }
        Ok(Self::new(rows))
    }

    /// Builds the catalogue from rows that ascend by number.
    pub(super) fn new(rows: Vec<TopicRow>) -> Self {
        let mut first_index = 0;
        let mut topics = BTreeMap::new();
        for TopicRow { topic_id, name, partitions, compacted, .. } in rows {
            let spec = TopicSpec { name: name.clone(), partitions, compacted, ..TopicSpec::default() };
            topics.insert(name, Topic { topic_id, spec, first_index });
            first_index += u64::from(partitions.cast_unsigned());
        }
        Self { topics }
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

    /// Returns the topic of an existing partition.
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

    /// Returns the topics by name.
    pub(super) fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.values()
    }

    /// Returns every topic with the ends of its partitions.
    pub(super) fn describe(
        &self,
        file: &LogFile,
        connection: &Connection,
    ) -> Result<Vec<TopicInfo>, LogError> {
        let mut described = Vec::with_capacity(self.topics.len());
        for topic in self.topics.values() {
            let offsets = (0..topic.spec.partitions)
                .map(|partition| offsets(file, connection, &topic.spec.name, &topic.table(partition)))
                .collect::<Result<_, _>>()?;
            described.push(TopicInfo { spec: topic.spec.clone(), offsets });
        }
        Ok(described)
    }
}

/// Opens a read transaction, unless the connection is in one.
pub(super) fn snapshot<'a>(
    file: &LogFile,
    connection: &'a Connection,
) -> Result<Option<rusqlite::Transaction<'a>>, LogError> {
    if !connection.is_autocommit() {
        return Ok(None);
    }
    connection.unchecked_transaction().map(Some).map_err(|error| file.failure(DOING, error))
}

/// Adds missing topics within a write transaction.
pub(super) fn create(
    file: &LogFile,
    writing: &mut Writing<'_>,
    topics: &[TopicSpec],
) -> Result<(), LogError> {
    let mut catalogue = Catalogue::load(file, &writing.transaction)?;
    for spec in topics {
        check_spec(&file.url, spec)?;
        match catalogue.topics.get(&spec.name) {
            None => {
                add(file, writing, spec)?;
                catalogue = Catalogue::new(topic_rows(file, &writing.transaction)?);
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

fn add(file: &LogFile, writing: &mut Writing<'_>, spec: &TopicSpec) -> Result<(), LogError> {
    let failed = |error| file.failure("creating a topic", error);
    let transaction = &writing.transaction;
    let TopicSpec { name, partitions, compacted, .. } = spec;
    let topic_id: i64 = transaction
        .query_row("SELECT coalesce(max(topic_id), 0) + 1 FROM topics", [], |row| row.get(0))
        .map_err(failed)?;
    insert_topic(transaction, topic_id, spec).map_err(failed)?;
    writing.own.topic_rows += 1;
    for partition in 0..*partitions {
        let table = Table { topic_id, partition, compacted: *compacted };
        table.create(transaction).map_err(failed)?;
        ends::write(file, transaction, topic_id, partition, End::default())?;
    }
    tracing::debug!(topic = name, partitions, "a topic was created");
    Ok(())
}

/// Stores a topic's row.
pub(super) fn insert_topic(connection: &Connection, topic_id: i64, spec: &TopicSpec) -> rusqlite::Result<()> {
    let TopicSpec { name, partitions, compacted, .. } = spec;
    let sum = checksum::of_topic(topic_id, name, *partitions, *compacted);
    let values = params![topic_id, name, partitions, compacted, sum];
    connection.execute("INSERT INTO topics VALUES (?1, ?2, ?3, ?4, ?5)", values).map(drop)
}

/// Returns the first and next offset of an existing partition.
pub(super) fn offsets(
    file: &LogFile,
    connection: &Connection,
    topic: &str,
    table: &Table,
) -> Result<OffsetRange, LogError> {
    let _snapshot = snapshot(file, connection)?;
    let partition = table.partition;
    let next = ends::read(file, connection, table.topic_id, partition)?.next;
    let oldest: Option<i64> = connection
        .prepare_cached(&format!("SELECT min(offset) FROM {}", table.name()))
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(|error| file.failure(DOING, error))?;
    let first = oldest.unwrap_or(next);
    if first == 0 || table.compacted {
        return Ok(OffsetRange { first, next });
    }
    // A partition from which nothing was removed begins at 0.
    let given_up = GivenUp::of(file, connection, table)?;
    if !given_up.covers(0, first) {
        return Err(file.damaged(format!("{topic}/{partition} begins at offset {first} instead of 0")));
    }
    Ok(OffsetRange { first: if given_up.begins_at_0() { 0 } else { first }, next })
}

/// Offsets of a partition without records: retention removed them, a recovery found them damaged or lost, or the copied
/// log had none there. The ranges ascend, do not overlap and do not touch.
#[derive(Default)]
pub(super) struct GivenUp(Vec<(i64, i64)>);

impl GivenUp {
    pub(super) fn of(file: &LogFile, connection: &Connection, table: &Table) -> Result<Self, LogError> {
        let &Table { topic_id, partition, .. } = table;
        let query = || {
            let mut statement = connection.prepare_cached(
                "SELECT first_offset, next_offset, checksum FROM given_up WHERE topic_id = ?1 AND partition = ?2
                 ORDER BY first_offset",
            )?;
            let rows = statement.query_map(params![topic_id, partition], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })?;
            ascending(rows, |one, other| one.0 < other.0)
        };
        let rows = query().map_err(|error| file.failure("reading what was given up", error))?;
        let rows = ascended(file, "what was given up", rows)?;
        let mut ranges: Vec<(i64, i64)> = Vec::with_capacity(rows.len());
        for (first, next, sum) in rows {
            if sum != checksum::of_given_up(topic_id, partition, first, next) {
                let place = format!("partition {partition} of topic number {topic_id}");
                return Err(file.damaged(format!(
                    "the list of given-up offsets of {place} does not match its \
                                                 checksum"
                )));
            }
            match ranges.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(next),
                _ => ranges.push((first, next)),
            }
        }
        Ok(Self(ranges))
    }

    /// Value stored instead of offset 0 in a partition's first range, if the partition begins at 0 but its first
    /// records come later.
    pub(super) const FROM_THE_BEGINNING: i64 = -1;

    /// Returns true if the partition begins at 0 but its first records come later.
    fn begins_at_0(&self) -> bool {
        self.0.first().is_some_and(|range| range.0 == Self::FROM_THE_BEGINNING)
    }

    /// Returns true if all of these offsets were given up.
    pub(super) fn covers(&self, first: i64, next: i64) -> bool {
        let before = self.0.partition_point(|range| range.0 <= first);
        first >= next || self.0[..before].last().is_some_and(|range| range.1 >= next)
    }

    pub(super) fn ranges(&self) -> &[(i64, i64)] {
        &self.0
    }
}

/// Stores a range of given-up offsets. If two ranges begin at the same offset, the longer one is kept.
pub(super) fn give_up(
    connection: &Connection,
    topic_id: i64,
    partition: i32,
    first: i64,
    next: i64,
) -> rusqlite::Result<()> {
    let sum = checksum::of_given_up(topic_id, partition, first, next);
    let sql =
        "INSERT INTO given_up VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (topic_id, partition, first_offset)
         DO UPDATE SET next_offset = excluded.next_offset, checksum = excluded.checksum
         WHERE excluded.next_offset > next_offset";
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute(params![topic_id, partition, first, next, sum]).map(drop)
}

/// A row of the table of committed offsets.
pub(super) struct CommittedRow {
    pub(super) group: String,
    pub(super) topic_id: i64,
    pub(super) partition: i32,
    pub(super) next: i64,
    /// True if its checksum is right.
    pub(super) is_whole: bool,
}

/// Returns all rows of the table of committed offsets, damaged or not.
pub(super) fn committed_rows(file: &LogFile, connection: &Connection) -> Result<Vec<CommittedRow>, LogError> {
    let sql = "SELECT group_name, topic_id, partition, next_offset, checksum FROM committed_offsets
         ORDER BY group_name, topic_id, partition";
    fn key(row: &CommittedRow) -> (&str, i64, i32) {
        (&row.group, row.topic_id, row.partition)
    }
    let query = || {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
            let (group, topic_id): (String, _) = (row.get(0)?, row.get(1)?);
            let (partition, next) = (row.get(2)?, row.get(3)?);
            let is_whole = row.get::<_, i64>(4)? == checksum::of_committed(&group, topic_id, partition, next);
            Ok(CommittedRow { group, topic_id, partition, next, is_whole })
        })?;
        ascending(rows, |one, other| key(one) < key(other))
    };
    let rows = query().map_err(|error| file.failure(READING_COMMITTED, error))?;
    ascended(file, "committed offsets", rows)
}

/// Returns the next-to-read offset that a group committed; `None` if there is none.
pub(super) fn committed(
    file: &LogFile,
    connection: &Connection,
    group: &str,
    topic_id: i64,
    source: &TopicPartition,
) -> Result<Option<i64>, LogError> {
    let _snapshot = snapshot(file, connection)?;
    let sql = "SELECT next_offset, checksum FROM committed_offsets
         WHERE group_name = ?1 AND topic_id = ?2 AND partition = ?3";
    let found: Option<(i64, i64)> = connection
        .prepare_cached(sql)
        .and_then(|mut statement| {
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            statement.query_row(params![group, topic_id, source.partition], row).optional()
        })
        .map_err(|error| file.failure(READING_COMMITTED, error))?;
    let TopicPartition { topic, partition } = source;
    match found {
        Some((next, sum)) if sum == checksum::of_committed(group, topic_id, *partition, next) => {
            Ok(Some(next))
        }
        Some((next, _)) => Err(file.damaged(format!(
            "the committed offset {next} of group {group:?} for {topic}/{partition} does not match its checksum"
        ))),
        // A damaged row may be the reason; without this check, the group would read everything again.
        None => check_committed(file, connection).map(|()| None),
    }
}

/// Checks that every committed offset is present and whole.
pub(super) fn check_committed(file: &LogFile, connection: &Connection) -> Result<(), LogError> {
    let rows = committed_rows(file, connection)?;
    if let Some(row) = rows.iter().find(|row| !row.is_whole) {
        let CommittedRow { group, topic_id, partition, next, .. } = row;
        return Err(file.damaged(format!(
            "the committed offset {next} of group {group:?} for partition {partition} of topic number \
             {topic_id} does not match its checksum"
        )));
    }
    let expected = Own::read(file, connection)?.committed_rows;
    if i64::try_from(rows.len()) != Ok(expected) {
        let found = rows.len();
        return Err(file.damaged(format!("there are {found} committed offsets instead of {expected}")));
    }
    Ok(())
}

/// Stores a committed offset; returns true if there was none before.
pub(super) fn store_committed(connection: &Connection, row: (&str, i64, i32, i64)) -> rusqlite::Result<bool> {
    let (group, topic_id, partition, next) = row;
    let values =
        params![group, topic_id, partition, next, checksum::of_committed(group, topic_id, partition, next)];
    let updated = connection
        .prepare_cached(
            "UPDATE committed_offsets SET next_offset = ?4, checksum = ?5
             WHERE group_name = ?1 AND topic_id = ?2 AND partition = ?3",
        )?
        .execute(values)?;
    if updated == 0 {
        let sql = "INSERT INTO committed_offsets VALUES (?1, ?2, ?3, ?4, ?5)";
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(updated == 0)
}

#[cfg(test)]
mod tests {
    use super::super::limits::Access;
    use super::super::{Durability, format};
    use super::*;
    use crate::topic::PARTITIONS_MAX;

    #[test]
    fn partitions_of_which_nothing_is_there_have_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let access = Access::Write(Durability::Process);
        let file = LogFile::new(folder.path().join("log.db"), "sqlite:log.db".to_owned(), access);
        let connection = format::open(&file).unwrap();
        let add = |topic_id: i64| {
            let name = format!("t{topic_id}");
            let spec = TopicSpec { name, partitions: PARTITIONS_MAX, ..TopicSpec::default() };
            let added = file.write(&connection, "testing", |writing| {
                writing.own.topic_rows += 1;
                insert_topic(&writing.transaction, topic_id, &spec)
                    .map_err(|error| file.failure(DOING, error))
            });
            added.unwrap();
        };
        let most = PARTITIONS_OF_LOG_MAX / i64::from(PARTITIONS_MAX);
        (1..=most).for_each(add);
        assert!(Catalogue::load(&file, &connection).is_ok());
        add(most + 1);
        let error = Catalogue::load(&file, &connection).err().unwrap().to_string();
        assert!(error.contains("1052672 partitions"), "{error}");
    }
}
