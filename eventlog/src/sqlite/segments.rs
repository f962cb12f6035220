//! The segments of a log for its readers: some open files, and the lock that keeps all of them in place.

use std::collections::{BTreeMap, VecDeque};
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
use super::segment;
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
    /// Length and time of the last change of each segment, as of the last wait for the disk.
    synced: Mutex<BTreeMap<u32, (u64, i64, i64)>>,
}

/// A lock on the folder of segments; ends when dropped.
pub(super) struct Hold {
    _folder: File,
}

impl Segments {
    pub(super) fn new(url: &str, log: &Path) -> Self {
        Self { url: url.to_owned(), log: log.to_owned(), open: Mutex::default(), synced: Mutex::default() }
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

    /// Waits until all segments are on the disk, whoever wrote them.
    pub(super) fn sync(&self) -> io::Result<()> {
        let mut synced = lock(&self.synced);
        let before = std::mem::take(&mut *synced);
        let mut has_changed = false;
        for number in segment::numbers(&self.log)? {
            let file = match segment::open(&self.log, number) {
                Ok(file) => file,
                // It was removed a moment ago.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let metadata = file.metadata()?;
            let state = (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
            if before.get(&number) != Some(&state) {
                file.sync_data()?;
                has_changed = true;
            }
            synced.insert(number, state);
        }
        if has_changed { segment::sync_folder(&self.log) } else { Ok(()) }
    }

    /// Closes a segment.
    pub(super) fn forget(&self, number: u32) {
        lock(&self.open).retain(|(found, _)| *found != number);
    }

    /// Returns the space that all segments take, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let entries = std::fs::read_dir(segment::folder_path(&self.log)).into_iter().flatten().flatten();
        // A sparse file has fewer bytes than its length says.
        let bytes = entries.filter_map(|entry| Some(entry.metadata().ok()?.blocks().saturating_mul(512)));
        bytes.fold(0, u64::saturating_add)
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
    use super::super::segment::SegmentFile;
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
    fn segments_of_all_processes_reach_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.db");
        let [log, other] = [0; 2].map(|_| SqliteLog::open(&path, Durability::Process).unwrap());
        log.create_topics(&[TopicSpec { name: "t".to_owned(), partitions: 1, ..TopicSpec::default() }])
            .unwrap();
        let segments = &log.file.segments;
        let synced = || lock(&segments.synced).clone();
        let mut producer = other.producer("p").unwrap();
        write(&mut *producer);
        segments.sync().unwrap();
        let before = synced();
        assert_eq!(before.keys().copied().collect::<Vec<_>>(), [1]);
        write(&mut *producer);
        assert_eq!(synced(), before);
        segments.sync().unwrap();
        assert!(synced()[&1].0 > before[&1].0);
        drop(producer);
        segment::remove(&path, 1).unwrap();
        segments.sync().unwrap();
        assert!(synced().is_empty());
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
