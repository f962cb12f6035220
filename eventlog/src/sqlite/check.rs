//! Reads everything and reports the first thing that is wrong.

use rusqlite::{Connection, params};

use super::catalogue::{Catalogue, Topic, records_table};
use super::file::LogFile;
use super::headers;
use crate::LogError;

const DOING: &str = "checking the log";

/// Checks the structure of the file, then that the records of each partition end where the catalogue says, without a
/// gap unless the topic is compacted, and that their headers can be read. Payloads mean nothing here and are not
/// checked: the file has no checksums of them.
pub(super) fn check(file: &LogFile, connection: &Connection) -> Result<(), LogError> {
    let failed = |error| file.failure(DOING, error);
    // One read transaction: writers go on meanwhile, and the catalogue must fit the records.
    let transaction = connection.unchecked_transaction().map_err(failed)?;
    let found: String =
        transaction.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(failed)?;
    if found != "ok" {
        return Err(file.damaged(found));
    }
    let catalogue = Catalogue::load(file, &transaction)?;
    for topic in catalogue.topics() {
        for partition in 0..topic.spec.partitions {
            let found = check_partition(&transaction, topic, partition).map_err(failed)?;
            if let Some(found) = found {
                return Err(file.damaged(format!("{}/{partition}: {found}", topic.spec.name)));
            }
        }
    }
    Ok(())
}

fn check_partition(
    connection: &Connection,
    topic: &Topic,
    partition: i32,
) -> rusqlite::Result<Option<String>> {
    let next: i64 = connection
        .prepare_cached("SELECT next_offset FROM partitions WHERE topic_id = ?1 AND partition = ?2")?
        .query_row(params![topic.topic_id, partition], |row| row.get(0))?;
    let table = records_table(topic.topic_id, partition);
    let mut statement = connection.prepare(&topic.layout.select(&table))?;
    let mut rows = statement.query([i64::MIN])?;
    let mut expected = 0;
    while let Some(row) = rows.next()? {
        let wrong = |offset: i64, found: String| Ok(Some(format!("at offset {offset}: {found}")));
        let records = match topic.layout.records(row) {
            Ok(records) => records,
            Err(found) => return wrong(expected, found),
        };
        for record in records {
            let record = match record {
                Ok(record) => record,
                Err(found) => return wrong(expected, found),
            };
            let offset = record.offset;
            if offset < expected || (offset > expected && !topic.spec.compacted) {
                return Ok(Some(format!("found offset {offset} in place of {expected}")));
            }
            if let Err(found) = headers::decode(record.headers) {
                return Ok(Some(format!("offset {offset} has {found}")));
            }
            expected = offset + 1;
        }
    }
    // The newest record of a partition is the newest of its key, so that compaction leaves it.
    Ok((expected != next).then(|| format!("the records end at {expected}, the catalogue says {next}")))
}
