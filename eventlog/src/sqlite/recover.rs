//! Recovers a damaged log: copies its undamaged parts into a new file, notes the losses, and replaces the log by the
//! copy.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;

use super::beside::beside;
use super::check::LogProgress;
use super::copy::{CopiedLog, Damage, copy};
use super::ends::Own;
use super::file::LogFile;
use super::head::{Found, Head, HeadFile};
use super::limits::Access;
use super::{Durability, format, opening, schema, segment};
use crate::LogError;

const DOING: &str = "recovering the log";
/// Suffix of the copy until it replaces the log.
const COPIED: &str = "-recovering";

/// A loss accepted by a recovery. It is displayed as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The last transactions; their number.
    Transactions(i64),
    /// Records of a partition; their offsets stay empty.
    Records {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The first offset.
        first: i64,
        /// The offset after the last one.
        next: i64,
        /// The finding instead of the records.
        found: String,
    },
    /// A topic with all of its partitions.
    Topic {
        /// Its number, which is part of its tables' names.
        topic_id: i64,
        /// Its name as found; it may be damaged.
        name: String,
    },
    /// A committed offset of a group.
    Committed {
        /// The group.
        group: String,
        /// The partition, as `TOPIC/PARTITION`.
        place: String,
        /// The offset as found.
        next: i64,
        /// Its offset after the recovery; `None` if the group reads from the beginning.
        set_to: Option<i64>,
    },
    /// An item that no log contains.
    Foreign {
        /// Its kind and its name.
        what: String,
    },
    /// A loss without further details.
    Unnamed {
        /// The finding instead of the lost item.
        found: String,
    },
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transactions(1) => write!(f, "the last transaction is lost"),
            Self::Transactions(count) => write!(f, "the last {count} transactions are lost"),
            Self::Records { topic, partition, first, next, found } => {
                write!(f, "{topic}/{partition} offsets {first} to {} are given up: {found}", next - 1)
            }
            Self::Topic { topic_id, name } => {
                write!(f, "topic number {topic_id} (name as found: {name:?}) is given up: its row is damaged")
            }
            Self::Committed { group, place, next, set_to: Some(offset) } => {
                write!(f, "group {group:?} continues at offset {offset} of {place} instead of {next}")
            }
            Self::Committed { group, place, next, set_to: None } => write!(
                f,
                "group {group:?} reads {place} from the beginning: its committed offset (as found: {next}) is damaged"
            ),
            Self::Foreign { what } => write!(f, "{what} is left out: it does not belong to a log"),
            Self::Unnamed { found } => write!(f, "an unidentifiable part is given up: {found}"),
        }
    }
}

/// Result of a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The losses; empty if the log was whole.
    pub losses: Vec<Loss>,
    /// Path of the damaged log, kept with its write-ahead log and its segments; `None` if the log was whole and left unchanged.
    pub kept: Option<PathBuf>,
}

pub(super) fn recover(path: &Path, progress: &mut dyn FnMut(LogProgress)) -> Result<Recovered, LogError> {
    let url = format!("sqlite:{}", path.display());
    let path = format::locate(&url, path, true)?;
    let file = LogFile::new(path.clone(), url.clone(), Access::Write(Durability::Process));
    format::refuse_neighbours(&file)?;
    format::refuse_remnant(&file)?;
    // The head stays open to the end, so that no other process begins to write meanwhile.
    let head_file = HeadFile::open(&path).map_err(|cause| storage(&url, cause))?;
    if !head_file.as_ref().is_some_and(HeadFile::is_alone) {
        return Err(LogError::Storage {
            url,
            doing: DOING.to_owned(),
            cause: "another process writes the log: stop it first".to_owned(),
        });
    }
    put_back(&path).map_err(|cause| storage(&url, cause))?;
    let is_refused = super::SqliteLog::open_existing(&path).is_err();
    let connection = file.connect()?;
    connection.leave_as_it_is();
    // Without this setting, SQLite reads no part of a truncated file. Nothing is written to this file.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)
        .and_then(|_| connection.pragma_update(None, "writable_schema", true))
        .map_err(|error| file.failure(DOING, error))?;
    format::identify(&file, &connection)?;
    let mut losses: Vec<_> = schema::left_out(&file, &connection)?
        .into_iter()
        .map(|foreign| Loss::Foreign { what: foreign.what })
        .collect();
    file.begin_reading_all(&connection)?;
    let head = match opening::read_head(&file)? {
        Found::Head(head) => head,
        Found::Absent | Found::Forbidden | Found::Damaged => Head::default(),
    };
    let copied = beside(&path, COPIED);
    // Removes the copy of an earlier recovery that was killed.
    remove(&copied).map_err(|cause| storage(&url, cause))?;
    {
        let reading = connection.unchecked_transaction().map_err(|error| file.failure(DOING, error))?;
        // If the log has lost the number of transactions, the head has it.
        let own = Own::read(&file, &reading).ok();
        let found = own.map_or(head.transactions, |own| own.transactions);
        // A head that is not newer than the log knows no lost records, whatever else it contains.
        let behind = match own {
            Some(own) if head.transactions <= own.transactions => Vec::new(),
            _ => opening::lost_ends(&file, &reading, &head),
        };
        if head.transactions > found {
            losses.push(Loss::Transactions(head.transactions - found));
        }
        let transactions = head.transactions.max(found) + 1;
        let source = CopiedLog { file: &file, connection: &reading, transactions };
        copy(&source, &copied, Damage::LeaveOut { losses: &mut losses, behind: &behind }, progress)?;
    }
    drop(connection);
    if losses.is_empty() && !is_refused {
        remove(&copied).map_err(|cause| storage(&url, cause))?;
        return Ok(Recovered { losses, kept: None });
    }
    let kept = replace(&path, &copied).map_err(|cause| storage(&url, cause))?;
    Ok(Recovered { losses, kept: Some(kept) })
}

fn storage(url: &str, cause: std::io::Error) -> LogError {
    LogError::Storage { url: url.to_owned(), doing: DOING.to_owned(), cause: cause.to_string() }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Yields the paths under which a damaged log may be kept, the first choice first.
fn kept_paths(path: &Path) -> impl Iterator<Item = PathBuf> {
    (1..).map(|number| beside(path, &format!("-damaged-{number}")))
}

/// Undoes a recovery that was killed in [`replace`] before it moved the log. In that case its copy still exists, and
/// the write-ahead log has already been moved to the place where it is kept.
fn put_back(path: &Path) -> std::io::Result<()> {
    if format::has_wal(path) {
        return Ok(());
    }
    let Ok(copied) = fs::metadata(beside(path, COPIED)) else { return Ok(()) };
    let moved = kept_paths(path)
        .take_while(|kept| kept.exists() || format::wal_path(kept).exists())
        .filter(|kept| !kept.exists())
        .map(|kept| format::wal_path(&kept))
        .filter_map(|wal| {
            let metadata = fs::metadata(&wal).ok()?;
            Some(((metadata.ctime(), metadata.ctime_nsec()), wal))
        })
        .filter(|(changed, _)| *changed >= (copied.mtime(), copied.mtime_nsec()))
        .max();
    let Some((_, wal)) = moved else { return Ok(()) };
    remove(&beside(path, "-shm"))?;
    fs::rename(wal, format::wal_path(path))
}

/// Replaces the log by the copy, and keeps the original. The write-ahead log moves first, so that it is never used with
/// the copy. Without its write-ahead log, the original is rejected as long as its head exists.
fn replace(path: &Path, copied: &Path) -> std::io::Result<PathBuf> {
    let kept = kept_paths(path)
        .find(|kept| {
            !kept.exists() && !format::wal_path(kept).exists() && !segment::folder_path(kept).exists()
        })
        .expect("some number is free");
    let wal = format::wal_path(path);
    if wal.exists() {
        fs::rename(&wal, format::wal_path(&kept))?;
    }
    remove(&beside(path, "-shm"))?;
    fs::rename(path, &kept)?;
    // The copy has no segments.
    let folder = segment::folder_path(path);
    if folder.exists() {
        fs::rename(&folder, segment::folder_path(&kept))?;
    }
    fs::rename(copied, path)?;
    Ok(kept)
}
