//! The exact tables of a log, and the check that its file contains nothing else.
//!
//! A log from elsewhere is untrusted data. SQLite would execute parts of a schema other than tables: views, triggers,
//! and expressions in defaults, checks, indices and generated columns. So the whole schema is compared with this
//! crate's own before any statement touches a table.

use std::collections::BTreeSet;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::file::LogFile;
use super::table::Table;
use super::{format, segment_rows};
use crate::LogError;
use crate::topic::PARTITIONS_MAX;

const DOING: &str = "reading the schema of the file";
/// Most items named in a message. Below: most characters of each name.
const NAMED_MAX: usize = 8;
const NAME_CHARS_MAX: usize = 64;

/// The tables of a new log without topics.
pub(super) const TABLES: &str = "
    CREATE TABLE topics(
        topic_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partitions INTEGER NOT NULL, compacted INTEGER NOT NULL,
        checksum INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE partitions(
        topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL, rows INTEGER NOT NULL,
        checksum INTEGER NOT NULL, PRIMARY KEY(topic_id, partition)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE committed_offsets(
        group_name TEXT NOT NULL, topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
        checksum INTEGER NOT NULL, PRIMARY KEY(group_name, topic_id, partition)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE given_up(
        topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, first_offset INTEGER NOT NULL,
        next_offset INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY(topic_id, partition, first_offset)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE producers(
        transactional_id TEXT NOT NULL PRIMARY KEY, epoch INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// A schema item that does not belong to a log.
pub(super) struct Foreign {
    /// Its kind and name.
    pub(super) what: String,
    /// True if it takes the place of a log's own table or index.
    is_in_place: bool,
}

/// Rejects a file whose schema is not that of a log.
pub(super) fn check(file: &LogFile, connection: &Connection) -> Result<(), LogError> {
    // The version comes first: the table appears with it, and stays.
    let has_segments = format::has_segments(connection).map_err(|error| file.failure(DOING, error))?;
    let (foreign, tables) = read(file, connection)?;
    if !foreign.is_empty() {
        let action = "the file is unchanged; get the log from its writer again, or drop the foreign parts \
             with `warptape log recover`";
        return Err(refused(file, &foreign, action));
    }
    let is_expected = |name: &&str| has_segments || *name != name_of(segment_rows::TABLE.trim());
    let missing = statements().map(name_of).filter(is_expected).find(|name| !tables.contains(*name));
    missing.map_or(Ok(()), |name| Err(file.damaged(format!("the table {name:?} is missing"))))
}

/// Returns the foreign items, which a recovery leaves out. Rejects a file in which a foreign item replaces a table of
/// the log.
pub(super) fn left_out(file: &LogFile, connection: &Connection) -> Result<Vec<Foreign>, LogError> {
    let (foreign, _) = read(file, connection)?;
    let (in_place, beside): (Vec<_>, Vec<_>) = foreign.into_iter().partition(|foreign| foreign.is_in_place);
    match in_place.is_empty() {
        true => Ok(beside),
        false => Err(refused(file, &in_place, "the file is unchanged; get the log from its writer again")),
    }
}

fn refused(file: &LogFile, foreign: &[Foreign], action: &str) -> LogError {
    let named: Vec<_> = foreign.iter().take(NAMED_MAX).map(|foreign| foreign.what.as_str()).collect();
    let more = match foreign.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let verb = if foreign.len() == 1 { "is" } else { "are" };
    LogError::Unreadable {
        url: file.url.clone(),
        found: format!("{}{more} {verb} not part of a log", named.join(", ")),
        action: action.to_owned(),
    }
}

/// Reads the schema: the foreign items, and the names of the tables that match a log's.
fn read(file: &LogFile, connection: &Connection) -> Result<(Vec<Foreign>, BTreeSet<String>), LogError> {
    let (mut foreign, mut tables) = (Vec::new(), BTreeSet::new());
    let mut query = || {
        let sql = "SELECT rowid, type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut last = i64::MIN;
        while let Some(row) = rows.next()? {
            let rowid: i64 = row.get(0)?;
            if rowid <= last {
                return Ok(false);
            }
            last = rowid;
            let text = |column: usize| row.get_ref(column).map(text);
            let [kind, name, table, sql] = [text(1)?, text(2)?, text(3)?, text(4)?];
            let item = Item { kind: &kind, name: &name, table: &table, sql: &sql };
            match item.is_of_a_log() {
                true if kind == "table" => drop(tables.insert(name)),
                true => {}
                false => foreign.push(item.foreign()),
            }
        }
        Ok(true)
    };
    match query() {
        Ok(true) => Ok((foreign, tables)),
        Ok(false) => Err(file.damaged("the B-tree of its schema has a cycle".to_owned())),
        Err(error) => Err(file.failure(DOING, error)),
    }
}

/// Returns a value of the schema as text; a log's schema contains no other type.
fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Blob(_) => "?".to_owned(),
    }
}

/// A row of the schema.
struct Item<'a> {
    kind: &'a str,
    name: &'a str,
    table: &'a str,
    /// The statement that creates the item; empty for an index that SQLite created with a table.
    sql: &'a str,
}

impl Item<'_> {
    fn is_of_a_log(&self) -> bool {
        let &Self { kind, name, table, sql } = self;
        let is = |expected: &str| words(sql) == words(expected);
        match kind {
            "table" if name == table => match statements().find(|statement| name_of(statement) == name) {
                Some(expected) => is(expected),
                None => tables(name).iter().any(|table| is(&table.sql())),
            },
            "index" if name == "sqlite_autoindex_topics_1" => table == "topics" && sql.is_empty(),
            "index" => tables(table).iter().any(|table| table.index_name() == name && is(&table.index_sql())),
            _ => false,
        }
    }

    fn foreign(&self) -> Foreign {
        let shown = |name: &str| -> String { name.chars().take(NAME_CHARS_MAX).collect() };
        let name = self.name.strip_suffix("_keys").unwrap_or(self.name);
        let is_own = |name: &str| {
            statements().any(|statement| name_of(statement).eq_ignore_ascii_case(name))
                || !tables(&name.to_ascii_lowercase()).is_empty()
        };
        Foreign {
            what: format!("the {} {:?}", shown(self.kind), shown(self.name)),
            // A trigger or an index cannot be read in place of a table.
            is_in_place: is_own(name) && !matches!(self.kind, "trigger" | "index"),
        }
    }
}

/// Returns the statements that create a log's tables.
fn statements() -> impl Iterator<Item = &'static str> {
    TABLES.split(';').chain([segment_rows::TABLE]).map(str::trim).filter(|statement| !statement.is_empty())
}

fn name_of(statement: &str) -> &str {
    let rest = statement.strip_prefix("CREATE TABLE ").expect("there are tables alone");
    rest.split_once('(').expect("a table has columns").0
}

/// Returns the partitions' tables with this name: of a topic that is compacted, or is not.
fn tables(name: &str) -> Vec<Table> {
    let numbers = name.strip_prefix("records_").and_then(|numbers| numbers.split_once('_'));
    let parsed = numbers.and_then(|(topic, partition)| Some((topic.parse().ok()?, partition.parse().ok()?)));
    let Some((topic_id, partition)) = parsed else { return Vec::new() };
    if !(1..).contains(&topic_id) || !(0..PARTITIONS_MAX).contains(&partition) {
        return Vec::new();
    }
    let table = |compacted| Table { topic_id, partition, compacted };
    // The name must be spelled exactly as this crate does, numbers included.
    [false, true].map(table).into_iter().filter(|table| table.name() == name).collect()
}

/// Returns a statement's words and signs without the spaces between them. A log's statements have no string literals
/// and no comments.
fn words(sql: &str) -> String {
    let mut words = String::with_capacity(sql.len());
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut was_space = false;
    for character in sql.chars() {
        if character.is_ascii_whitespace() {
            was_space = true;
            continue;
        }
        if was_space && is_word(character) && words.ends_with(is_word) {
            words.push(' ');
        }
        words.push(character);
        was_space = false;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_between_words_does_not_count() {
        assert_eq!(
            words("CREATE  TABLE t(\n a INTEGER ,b TEXT )  STRICT"),
            "CREATE TABLE t(a INTEGER,b TEXT)STRICT"
        );
        assert_ne!(words("a b"), words("ab"));
    }

    #[test]
    fn names_of_partitions_have_one_spelling() {
        let is_table = |name: &str| !tables(name).is_empty();
        assert!(is_table("records_1_0") && is_table("records_12_4095"));
        for name in
            ["records_01_0", "records_+1_0", "records_1_4096", "records_0_0", "records_1", "Records_1_0"]
        {
            assert!(!is_table(name), "{name}");
        }
    }
}
