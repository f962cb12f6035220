//! Checks that all commits are present: compares the log's own counts with its head.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use rusqlite::Connection;

use super::catalogue::Catalogue;
use super::ends::{self, Own};
use super::file::LogFile;
use super::format;
use super::head::{self, Found, Head, HeadFile, head_path};
use crate::LogError;

/// Most partitions named in a message.
const NAMED_MAX: usize = 8;

/// Offsets of a partition that the head knows but the log lacks.
pub(super) struct Lost {
    /// The topic's name, or its number if the name is lost too.
    pub(super) topic: String,
    pub(super) topic_id: i64,
    pub(super) partition: i32,
    pub(super) first: i64,
    pub(super) next: i64,
}

/// Reads the head of the log.
pub(super) fn read_head(file: &LogFile) -> Result<Found, LogError> {
    head::read(&file.path).map_err(|cause| head_denied(file, &cause))
}

fn head_denied(file: &LogFile, cause: &std::io::Error) -> LogError {
    LogError::Denied {
        url: file.url.clone(),
        doing: format!("reading its head {}", head_path(&file.path).display()),
        cause: cause.to_string(),
    }
}

/// Creates a missing file for its owner alone; its write-ahead log gets the same permissions.
pub(super) fn make_file(file: &LogFile) -> Result<(), LogError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file.path) {
        // Left open on purpose: closing it would drop the locks that other connections of this process have on the file
        // by now.
        Ok(descriptor) => std::mem::forget(descriptor),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => {
            return Err(LogError::Denied {
                url: file.url.clone(),
                doing: "making the file".to_owned(),
                cause: error.to_string(),
            });
        }
    }
    Ok(())
}

/// Refuses to create a log at a path that held one before. The files beside it are checked before the file itself: a
/// process that is just creating the log has created its file by then.
pub(super) fn refuse_in_place_of_a_log(
    file: &LogFile,
    is_empty: impl FnOnce() -> Result<bool, LogError>,
) -> Result<(), LogError> {
    let there = match read_head(file)? {
        Found::Head(Head { transactions, .. }) if transactions > 0 => {
            format!("its head {} records {transactions} transactions", head_path(&file.path).display())
        }
        _ if format::has_wal(&file.path) => {
            format!("its write-ahead log {} exists", format::wal_path(&file.path).display())
        }
        _ => return Ok(()),
    };
    if !is_empty()? {
        return Ok(());
    }
    Err(LogError::Unreadable {
        url: file.url.clone(),
        found: format!("the log is missing or empty, but {there}"),
        action: "put the file back; to begin a new log in its place, remove what lies beside it: its \
             name with -head, -wal, -shm and -segments"
            .to_owned(),
    })
}

/// Rejects a log that lacks committed transactions.
pub(super) fn compare(file: &LogFile, connection: &Connection) -> Result<(), LogError> {
    let (found, own) = look(&mut || read_head(file), &mut || Own::read(file, connection))?;
    judge(file, connection, &found, &own)
}

/// Rejects a log without transactions that this head knows. The head file may have lost its name.
pub(super) fn compare_with(file: &LogFile, connection: &Connection, head: &HeadFile) -> Result<(), LogError> {
    let found = head.read().map_err(|cause| head_denied(file, &cause))?;
    judge(file, connection, &found, &Own::read(file, connection)?)
}

fn judge(file: &LogFile, connection: &Connection, found: &Found, own: &Own) -> Result<(), LogError> {
    let path = head_path(&file.path);
    let action = |how: &str| {
        format!(
            "{how}, or build a usable log from its intact contents with `warptape log recover --log {}`",
            file.url
        )
    };
    let (found, action) = match found {
        Found::Head(head) if head.transactions > own.transactions => {
            let lost = lost_ends(file, connection, head);
            let missing = match head.transactions - own.transactions {
                1 => "1 transaction is lost".to_owned(),
                count => format!("{count} transactions are lost"),
            };
            let found = format!(
                "{missing}: the log has {}, but its head {} records {}{}. The write-ahead log is missing, \
                 cut or damaged, the file is an older copy, or power was lost under log.durability = \
                 \"process\"",
                own.transactions,
                path.display(),
                head.transactions,
                describe(&lost),
            );
            let how = match own.is_open {
                true => "put the file back together with its -wal and -head",
                false => "put the newer file back, or remove the head to use the older one",
            };
            (found, action(how))
        }
        Found::Absent | Found::Damaged if own.is_open => {
            let state = if matches!(found, Found::Absent) { "is missing" } else { "is damaged" };
            let found = format!(
                "its head {} {state}, although the log was not closed: the write-ahead log may be missing \
                 too, with the latest commits",
                path.display(),
            );
            let how = "copy a log together with the files beside it (its name with -wal, -head and -segments), or with `warptape log backup`";
            (found, action(how))
        }
        // Without a readable head, a reader cannot compare.
        Found::Absent | Found::Forbidden | Found::Damaged | Found::Head(_) => return Ok(()),
    };
    Err(LogError::Unreadable { url: file.url.clone(), found, action })
}

/// Reads the head, then the log's own counts. The order matters: while the log is written, the head is never ahead of
/// counts that are read after it.
fn look(
    head: &mut dyn FnMut() -> Result<Found, LogError>,
    own: &mut dyn FnMut() -> Result<Own, LogError>,
) -> Result<(Found, Own), LogError> {
    let (found, before) = (head()?, own()?);
    if before.is_open && matches!(found, Found::Absent | Found::Damaged) {
        // A new writer creates the head before it marks the log as open, and continues writing meanwhile.
        return Ok((head()?, own()?));
    }
    Ok((found, before))
}

/// Returns the offsets that the head knows but the log lacks, by partition.
pub(super) fn lost_ends(file: &LogFile, connection: &Connection, head: &Head) -> Vec<Lost> {
    let catalogue = Catalogue::load(file, connection).unwrap_or_default();
    let mut lost = Vec::new();
    for end in &head.ends {
        // A missing partition has lost everything.
        let first = ends::read(file, connection, end.topic_id, end.partition).map_or(0, |end| end.next);
        if first < end.next {
            let name = catalogue.topics().find(|topic| topic.topic_id == end.topic_id);
            lost.push(Lost {
                topic: name.map_or_else(
                    || format!("topic number {}", end.topic_id),
                    |topic| topic.spec.name.clone(),
                ),
                topic_id: end.topic_id,
                partition: end.partition,
                first,
                next: end.next,
            });
        }
    }
    lost
}

/// Names the first partitions with losses, for a message.
fn describe(lost: &[Lost]) -> String {
    if lost.is_empty() {
        return String::new();
    }
    let one = |lost: &Lost| {
        format!("{}/{} offsets {} to {}", lost.topic, lost.partition, lost.first, lost.next - 1)
    };
    let named: Vec<_> = lost.iter().take(NAMED_MAX).map(one).collect();
    let more = match lost.len() - named.len() {
        0 => String::new(),
        more => format!(" and offsets of {more} other partitions"),
    };
    format!(" ({}{more})", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_begins_meanwhile_is_not_behind_its_head() {
        // Between any two reads the writer creates its head, marks the log as open, or commits.
        let mut transactions = 0;
        let mut heads = [Found::Absent, Found::Head(Head { transactions: 3, ends: Vec::new() })].into_iter();
        let mut own = || {
            transactions += 2;
            Ok(Own { transactions, is_open: true, ..Own::default() })
        };
        let (found, own) = look(&mut || Ok(heads.next().unwrap()), &mut own).unwrap();
        let Found::Head(head) = found else { panic!("{found:?}") };
        assert!(head.transactions <= own.transactions);
        assert_eq!(own.transactions, 4);
    }
}
