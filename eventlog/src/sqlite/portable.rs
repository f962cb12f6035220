//! A new log file with records of another log at their original offsets.
//!
//! The file is written under a temporary name, and renamed once it is complete and on the disk. So no interruption
//! leaves a file that looks like a log. The module knows neither the records' origin nor their meaning.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::beside::beside;
use super::block::{Blocks, StoredRecord};
use super::catalogue::{self, GivenUp};
use super::ends::{self, End, Own};
use super::file::LogFile;
use super::format;
use super::limits::{Access, NOFOLLOW, PAGE_BYTES};
use super::table::Table;
use super::{head, headers, segment};
use crate::topic::check_spec;
use crate::{LogError, Record, RecordClock, TopicPartition, TopicSpec};

const DOING: &str = "writing a copy of records";
/// Suffix of the file's name until it is complete.
const UNFINISHED: &str = "-unfinished";

/// A log file under construction. It is removed if dropped before [`PortableFile::finish`].
pub struct PortableFile {
    /// The file under its temporary name.
    file: LogFile,
    connection: Connection,
    /// Lock that keeps other processes from writing the file.
    lock: Option<File>,
    to: PathBuf,
    before: Own,
    own: Own,
    topics: BTreeMap<String, (i64, TopicSpec)>,
    /// Current end of each partition.
    ends: BTreeMap<TopicPartition, End>,
}

impl PortableFile {
    /// Begins a file that will get the name `path`. Nothing may exist there except an empty file.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let url = format!("sqlite:{}", path.as_ref().display());
        let to = format::locate(&url, path.as_ref(), false)?;
        refuse_taken(&url, &to)?;
        let unfinished = beside(&to, UNFINISHED);
        let lock = lock(&url, &unfinished)?;
        let file = LogFile::new(unfinished, url, Access::Read);
        let failed = |error| file.failure(DOING, error);
        let connection = Connection::open(&file.path).map_err(failed)?;
        // No reader sees the file before it is complete.
        connection
            .execute_batch(&format!(
                "PRAGMA page_size = {}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN",
                PAGE_BYTES
            ))
            .map_err(failed)?;
        format::make_tables(&connection).map_err(failed)?;
        let before = Own::read(&file, &connection)?;
        let own = Own { transactions: before.transactions + 1, ..before };
        let (topics, ends) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { file, connection, lock: Some(lock), to, before, own, topics, ends })
    }

    /// Adds a new topic. The file stores only the number of partitions, and whether the topic is compacted.
    pub fn add_topic(&mut self, spec: &TopicSpec) -> Result<(), LogError> {
        check_spec(&self.file.url, spec)?;
        self.own.topic_rows += 1;
        let topic_id = self.own.topic_rows;
        let failed = |error| self.file.failure(DOING, error);
        catalogue::insert_topic(&self.connection, topic_id, spec).map_err(failed)?;
        for partition in 0..spec.partitions {
            table(topic_id, partition, spec).create(&self.connection).map_err(failed)?;
            ends::write(&self.file, &self.connection, topic_id, partition, End::default())?;
            self.ends.insert(TopicPartition { topic: spec.name.clone(), partition }, End::default());
        }
        self.topics.insert(spec.name.clone(), (topic_id, spec.clone()));
        Ok(())
    }

    /// Stores the clock that a topic's record times come from, once per topic; `None` if it is unknown. Without a call
    /// it is the writers' clock.
    pub fn tell_record_clock(&mut self, topic: &str, clock: Option<RecordClock>) -> Result<(), LogError> {
        let (Table { topic_id, .. }, _) =
            self.place(&TopicPartition { topic: topic.to_owned(), partition: 0 })?;
        ends::write_clock(&self.file, &self.connection, topic_id, clock)
    }

    /// Appends records of a partition, by ascending offset. Offsets that are left out never get records in the file.
    /// The partition begins at offset 0 unless [`PortableFile::remove_before`] was called.
    ///
    /// # Errors
    /// The partition does not exist, an offset is below one already written, or the disk does not take the records.
    pub fn append(&mut self, to: &TopicPartition, records: &[Record]) -> Result<(), LogError> {
        let (table, mut end) = self.place(to)?;
        for run in records.chunk_by(|before, after| before.offset + 1 == after.offset) {
            let first = run[0].offset;
            // In a compacted topic, records may be missing anywhere.
            if first < end.next || !table.compacted {
                self.leave_out(&table, to, end.next, first)?;
            }
            let mut blocks = Blocks::default();
            for record in run {
                let headers = headers::encode(&record.headers).unwrap_or_default();
                blocks.push_stored(&StoredRecord {
                    offset: record.offset,
                    timestamp_ns: record.timestamp_ns,
                    key: record.key.as_deref(),
                    headers: &headers,
                    value: &record.value,
                });
            }
            let appended = table
                .append(&self.connection, first, &blocks)
                .map_err(|error| self.file.failure(DOING, error))?;
            end = End { next: appended.next, rows: end.rows + appended.rows };
        }
        self.ends.insert(to.clone(), end);
        Ok(())
    }

    /// Makes the partition begin at this offset, because earlier records were removed or are left out. The partition
    /// must not have records yet.
    pub fn remove_before(&mut self, to: &TopicPartition, first: i64) -> Result<(), LogError> {
        let (table, end) = self.place(to)?;
        if first > end.next && !table.compacted {
            catalogue::give_up(&self.connection, table.topic_id, table.partition, end.next, first)
                .map_err(|error| self.file.failure(DOING, error))?;
        }
        self.ends.insert(to.clone(), End { next: end.next.max(first), ..end });
        Ok(())
    }

    /// Marks all offsets of a partition before this one as empty.
    pub fn skip_to(&mut self, to: &TopicPartition, next: i64) -> Result<(), LogError> {
        let (table, end) = self.place(to)?;
        self.leave_out(&table, to, end.next, next)?;
        self.ends.insert(to.clone(), End { next, ..end });
        Ok(())
    }

    /// Stores the next-to-read offset of a group.
    pub fn commit(&mut self, group: &str, of: &TopicPartition, next: i64) -> Result<(), LogError> {
        let (Table { topic_id, partition, .. }, _) = self.place(of)?;
        let row = (group, topic_id, partition, next);
        let is_new = catalogue::store_committed(&self.connection, row)
            .map_err(|error| self.file.failure(DOING, error))?;
        self.own.committed_rows += i64::from(is_new);
        Ok(())
    }

    /// Completes the file, flushes it to the disk, and renames it.
    pub fn finish(mut self) -> Result<(), LogError> {
        for (place, end) in &self.ends {
            let (topic_id, _) = self.topics[&place.topic];
            ends::write(&self.file, &self.connection, topic_id, place.partition, *end)?;
        }
        self.own.write(&self.file, &self.connection, &self.before)?;
        self.connection
            .execute_batch("COMMIT; PRAGMA journal_mode = WAL")
            .map_err(|error| self.file.failure(DOING, error))?;
        let done = self.sync_and_name();
        done.map_err(|cause| self.storage(&cause))
    }

    fn sync_and_name(&mut self) -> io::Result<()> {
        let memory = Connection::open_in_memory().map_err(io::Error::other)?;
        let written = std::mem::replace(&mut self.connection, memory);
        written.close().map_err(|(_, error)| io::Error::other(error))?;
        let unfinished = &self.file.path;
        OpenOptions::new().write(true).open(unfinished)?.sync_all()?;
        if fs::metadata(&self.to).is_ok_and(|found| found.len() > 0) {
            return Err(io::Error::other("another process has created the file meanwhile"));
        }
        fs::rename(unfinished, &self.to)?;
        self.lock = None;
        let folder = self.to.parent().expect("a file is in a folder");
        File::open(folder)?.sync_all()
    }

    /// Returns the table of a partition, and the partition's current end.
    fn place(&self, of: &TopicPartition) -> Result<(Table, End), LogError> {
        let TopicPartition { topic, partition } = of;
        let found = self.topics.get(topic).zip(self.ends.get(of));
        let ((topic_id, spec), end) = found.ok_or_else(|| LogError::UnknownTopic {
            url: self.file.url.clone(),
            topic: format!("{topic}/{partition}"),
            known: self.topics.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })?;
        Ok((table(*topic_id, *partition, spec), *end))
    }

    /// Marks these offsets as empty.
    fn leave_out(
        &self,
        table: &Table,
        place: &TopicPartition,
        first: i64,
        next: i64,
    ) -> Result<(), LogError> {
        if next < first {
            return Err(LogError::Argument {
                url: self.file.url.clone(),
                argument: "offset",
                value: next.to_string(),
                allowed: format!("{first} or more in {}/{}", place.topic, place.partition),
            });
        }
        if next == first {
            return Ok(());
        }
        // If no records were removed before the first ones, the range begins with the special value: aborted
        // transactions take offsets as well.
        let first = if first == 0 { GivenUp::FROM_THE_BEGINNING } else { first };
        catalogue::give_up(&self.connection, table.topic_id, table.partition, first, next)
            .map_err(|error| self.file.failure(DOING, error))
    }

    fn storage(&self, cause: &io::Error) -> LogError {
        storage(&self.file.url, cause)
    }
}

impl Drop for PortableFile {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // A remaining file is rejected as a log, and the next attempt overwrites it.
            let _ = fs::remove_file(&self.file.path);
        }
    }
}

fn table(topic_id: i64, partition: i32, spec: &TopicSpec) -> Table {
    Table { topic_id, partition, compacted: spec.compacted }
}

fn storage(url: &str, cause: &io::Error) -> LogError {
    LogError::Storage { url: url.to_owned(), doing: DOING.to_owned(), cause: cause.to_string() }
}

/// Rejects a destination if a file exists there, or files beside a log of this name.
fn refuse_taken(url: &str, to: &Path) -> Result<(), LogError> {
    let taken = [to.to_path_buf(), format::wal_path(to), head::head_path(to), segment::folder_path(to)];
    match taken.iter().find(|path| fs::symlink_metadata(path).is_ok_and(|found| found.len() > 0)) {
        None => Ok(()),
        Some(path) => Err(LogError::Unreadable {
            url: url.to_owned(),
            found: format!("{} exists, and existing files are never overwritten", path.display()),
            action: "name a new file, or remove this one".to_owned(),
        }),
    }
}

/// Creates the file anew, and locks it against other processes.
fn lock(url: &str, unfinished: &Path) -> Result<File, LogError> {
    let failed = |cause: io::Error| storage(url, &cause);
    let open = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NOFOLLOW)
        .open(unfinished);
    let file = open.map_err(failed)?;
    let is_held = match file.try_lock() {
        Ok(()) => {
            // The previous holder may have renamed the file before it released the lock.
            let (own, named) = (file.metadata().map_err(failed)?, fs::metadata(unfinished));
            named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino()))
        }
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(cause)) => return Err(failed(cause)),
    };
    if !is_held {
        return Err(LogError::Unreadable {
            url: url.to_owned(),
            found: format!("another process is writing {}", unfinished.display()),
            action: "wait for it, or name another file".to_owned(),
        });
    }
    file.set_len(0).map_err(failed)?;
    Ok(file)
}
