//! The segments of a log for its readers: some open files, and the lock that keeps all of them in place.

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::io::Errno;

use super::failure::{self, Fault};
use super::limits::{LOCK_WAIT_MAX, RECORD_BYTES_MAX, SEGMENTS_OPEN_MAX};
use super::reference::Reference;
use super::segment::{self, SegmentFile};
use super::wake::lock;
use crate::LogError;

/// Longest block in bytes: a record and the numbers before its parts.
pub(super) const BLOCK_BYTES_MAX: usize = RECORD_BYTES_MAX + (1 << 20);

/// The segments of one log.
pub(super) struct Segments {
    url: String,
    log: PathBuf,
    /// Open segments by number, the last used one at the end.
    open: Mutex<VecDeque<(u32, Arc<File>)>>,
    /// Segments to which producers of this process append without waiting for the disk.
    unsynced: Mutex<Vec<Arc<File>>>,
}

/// A lock on the folder of segments; ends when dropped.
pub(super) struct Hold {
    _folder: File,
}

impl Segments {
    pub(super) fn new(url: &str, log: &Path) -> Self {
        Self { url: url.to_owned(), log: log.to_owned(), open: Mutex::default(), unsynced: Mutex::default() }
    }

    /// Reads a block into a buffer.
    pub(super) fn read(&self, reference: Reference, into: &mut Vec<u8>) -> Result<(), Fault> {
        let Reference { segment, position, length } = reference;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > BLOCK_BYTES_MAX || i64::try_from(reference.end()).is_err() {
            let found =
                format!("a block of {length} bytes at byte {position} of a segment, which no writer makes");
            return Err(Fault::Damage(found));
        }
        let read = self.file(segment).and_then(|file| {
            into.resize(length, 0);
            file.read_exact_at(into, position)
        });
        read.map_err(|cause| self.fault(reference, &cause))
    }

    /// Describes the place of a block, for messages.
    pub(super) fn place(&self, reference: Reference) -> String {
        let path = segment::path(&self.log, reference.segment);
        format!("the block at byte {} of the segment {}", reference.position, path.display())
    }

    fn fault(&self, reference: Reference, cause: &io::Error) -> Fault {
        let path = segment::path(&self.log, reference.segment);
        let path = path.display();
        match cause.kind() {
            ErrorKind::NotFound => Fault::Damage(format!("the segment {path} is missing")),
            ErrorKind::UnexpectedEof => {
                Fault::Damage(format!("the segment {path} ends before byte {}", reference.end()))
            }
            ErrorKind::InvalidData => Fault::Damage(format!("the segment {path} cannot be used: {cause}")),
            _ if [Errno::LOOP, Errno::NOTDIR]
                .map(|errno| Some(errno.raw_os_error()))
                .contains(&cause.raw_os_error()) =>
            {
                Fault::Damage(format!("the segment {path} cannot be used: a link or a file is in its place"))
            }
            _ => Fault::Failed(failure::explain_io(&self.url, &format!("reading the segment {path}"), cause)),
        }
    }

    /// Returns an open segment.
    fn file(&self, number: u32) -> io::Result<Arc<File>> {
        if let Some(file) = self.used(number) {
            return Ok(file);
        }
        let file = Arc::new(segment::open(&self.log, number)?);
        let mut open = lock(&self.open);
        // The disk keeps the bytes of a removed segment as long as it is open.
        open.retain(|(_, file)| file.metadata().is_ok_and(|metadata| metadata.nlink() > 0));
        if open.len() >= SEGMENTS_OPEN_MAX {
            open.pop_front();
        }
        open.push_back((number, Arc::clone(&file)));
        Ok(file)
    }

    fn used(&self, number: u32) -> Option<Arc<File>> {
        let mut open = lock(&self.open);
        let index = open.iter().rposition(|(found, _)| *found == number)?;
        let entry = open.remove(index)?;
        let file = Arc::clone(&entry.1);
        open.push_back(entry);
        Some(file)
    }

    /// Adds a segment whose producer does not wait for the disk.
    pub(super) fn add_unsynced(&self, segment: &SegmentFile) {
        lock(&self.unsynced).push(segment.file());
    }

    /// Waits until everything appended so far is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        // A file without another owner gets no more bytes.
        let with_end = |file: &Arc<File>| (Arc::strong_count(file) == 1, Arc::clone(file));
        let files: Vec<_> = lock(&self.unsynced).iter().map(with_end).collect();
        if files.is_empty() {
            return Ok(());
        }
        for (_, file) in &files {
            file.sync_data()?;
        }
        segment::sync_folder(&self.log)?;
        let is_done =
            |file: &Arc<File>| files.iter().any(|(is_done, other)| *is_done && Arc::ptr_eq(file, other));
        lock(&self.unsynced).retain(|file| !is_done(file));
        Ok(())
    }

    /// Closes a segment.
    pub(super) fn forget(&self, number: u32) {
        lock(&self.open).retain(|(found, _)| *found != number);
    }

    /// Returns the size of all segments in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let entries = std::fs::read_dir(segment::folder_path(&self.log)).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
    }

    /// Keeps every process from removing segments, for readers of a long snapshot. Returns `None` if there are none yet.
    pub(super) fn hold(&self, pause: &dyn Fn()) -> Result<Option<Hold>, LogError> {
        const DOING: &str = "locking the folder of its segments";
        let failed = |cause: io::Error| failure::explain_io(&self.url, DOING, &cause);
        let folder = match segment::open_folder(&self.log) {
            Ok(folder) => folder,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let started = Instant::now();
        loop {
            match folder.try_lock_shared() {
                Ok(()) => return Ok(Some(Hold { _folder: folder })),
                Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_WAIT_MAX => {
                    pause();
                }
                Err(TryLockError::WouldBlock) => return Err(failure::busy(&self.url, DOING)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    /// Locks the folder for removing segments; `None` if there is no folder, or if somebody else has locked it.
    pub(super) fn hold_alone(&self) -> io::Result<Option<Hold>> {
        let folder = match segment::open_folder(&self.log) {
            Ok(folder) => folder,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match folder.try_lock() {
            Ok(()) => Ok(Some(Hold { _folder: folder })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, EventLog, NewRecord, Producer, SqliteLog, TopicSpec};

    fn write(producer: &mut dyn Producer) {
        for _ in 0..10 {
            producer.begin().unwrap();
            let value = vec![7; 20_000];
            producer
                .send(NewRecord { topic: "t".into(), value: value.into(), ..NewRecord::default() })
                .unwrap();
            producer.commit().unwrap();
        }
    }

    #[test]
    fn what_a_producer_appended_reaches_the_disk_after_its_end_too() {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).unwrap();
        log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 1, ..TopicSpec::default() }])
            .unwrap();
        let segments = &log.file.segments;
        let unsynced = || lock(&segments.unsynced).len();
        let mut producer = log.producer("p").unwrap();
        write(&mut *producer);
        segments.sync().unwrap();
        assert_eq!((unsynced(), segment::is_free(&log.file.path, 1).unwrap()), (1, false));
        drop(producer);
        assert_eq!((unsynced(), segment::is_free(&log.file.path, 1).unwrap()), (1, true));
        segments.sync().unwrap();
        assert_eq!(unsynced(), 0);
    }

    #[test]
    fn few_segments_stay_open() {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteLog::open(folder.path().join("log.db"), Durability::Process).unwrap();
        let segments = &log.file.segments;
        for number in 1..=2 * SEGMENTS_OPEN_MAX as u32 {
            drop(SegmentFile::create(&log.file.path, number, false).unwrap());
            for number in [1, number] {
                segments.file(number).unwrap();
            }
        }
        let numbers = || lock(&segments.open).iter().map(|(number, _)| *number).collect::<Vec<_>>();
        assert_eq!(numbers().len(), SEGMENTS_OPEN_MAX);
        assert!(numbers().contains(&1), "it was used last");
        // Segments that were removed are closed.
        for number in numbers() {
            segment::remove(&log.file.path, number).unwrap();
        }
        drop(SegmentFile::create(&log.file.path, 100, false).unwrap());
        segments.file(100).unwrap();
        assert_eq!(numbers(), [100]);
    }
}
