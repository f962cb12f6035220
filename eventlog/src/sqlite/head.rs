//! The head of the log, in a separate file beside the log: `PATH-head`.
//!
//! SQLite silently treats a missing, truncated or damaged write-ahead log as a shorter one. So after each commit, the
//! log's number of transactions and the ends of the written partitions are stored here. After a crash the head may
//! therefore be older than the log, but never newer. Opening the log compares the two. Integers are little endian; each
//! part ends with its XXH3:
//!
//! ```text
//!   0  magic, transactions u64, checksum u64                        two slots, written in turn; the newer whole one counts
//!  64  the other slot
//! 128  topic number i64, partition i64, next offset i64, checksum   one per partition, in the order of the topics' numbers
//! ```
//!
//! Writers of the log hold a shared lock on the file. The last writer closes the log when it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::beside::{NONBLOCK, beside, kind_of, open_file};
use super::checksum;
use super::limits::NOFOLLOW;

const MAGIC: [u8; 8] = *b"WTLGHEAD";
const SLOT_BYTES: usize = 24;
/// Distance between the slots in bytes; it keeps them out of each other's sectors.
const SLOT_STRIDE: usize = 64;
const SLOTS: u64 = 2;
const ENTRIES_AT: u64 = SLOT_STRIDE as u64 * SLOTS;
const ENTRY_BYTES: usize = 32;
/// Most bytes that are read: enough for more partitions than any log has.
const BYTES_MAX: u64 = 64 << 20;

/// The end of a partition according to the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadEnd {
    /// Its number among all partitions of the log.
    pub(super) index: u64,
    pub(super) topic_id: i64,
    pub(super) partition: i32,
    pub(super) next: i64,
}

/// The contents of the head file.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) transactions: i64,
    /// Ends of partitions; entries with a wrong checksum are left out.
    pub(super) ends: Vec<HeadEnd>,
}

/// Result of reading a head.
#[derive(Debug)]
pub(super) enum Found {
    Absent,
    /// This process may not read the head.
    Forbidden,
    /// Both slots are damaged.
    Damaged,
    Head(Head),
}

/// Returns the path of a log's head.
pub(super) fn head_path(log: &Path) -> PathBuf {
    beside(log, "-head")
}

/// Returns true if some process writes the log.
pub(super) fn is_held(log: &Path) -> bool {
    let held =
        open_file(&head_path(log)).map(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)));
    held.unwrap_or(false)
}

/// Reads the head of a log. Returns `Forbidden` if this process may not read it.
pub(super) fn read(log: &Path) -> io::Result<Found> {
    match open_file(&head_path(log)) {
        Ok(file) => read_from(&file),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Absent),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Found::Forbidden),
        Err(error) => Err(error),
    }
}

/// Reads the number of transactions alone; `None` if both slots are damaged.
pub(super) fn transactions(file: &File) -> io::Result<Option<i64>> {
    let mut bytes = [0; ENTRIES_AT as usize];
    let length = file.read_at(&mut bytes, 0)?;
    Ok(newest(&bytes[..length]))
}

/// Returns the greater number of transactions of the whole slots.
fn newest(bytes: &[u8]) -> Option<i64> {
    let slot = |slot: u64| {
        let at = slot as usize * SLOT_STRIDE;
        let bytes = checked(bytes.get(at..at + SLOT_BYTES)?)?;
        let (magic, transactions) = bytes.split_first_chunk::<8>()?;
        (*magic == MAGIC).then(|| number(transactions))
    };
    (0..SLOTS).filter_map(slot).max()
}

fn read_from(mut file: &File) -> io::Result<Found> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    let Some(transactions) = newest(&bytes) else { return Ok(Found::Damaged) };
    let entries = bytes.get(ENTRIES_AT as usize..).unwrap_or_default().chunks_exact(ENTRY_BYTES);
    let entry = |(index, bytes): (u64, &[u8])| {
        let bytes = checked(bytes)?;
        let partition = number(&bytes[8..16]).try_into().ok()?;
        Some(HeadEnd { index, topic_id: number(&bytes[..8]), partition, next: number(&bytes[16..24]) })
    };
    Ok(Found::Head(Head { transactions, ends: (0..).zip(entries).filter_map(entry).collect() }))
}

/// Returns the bytes before a part's checksum; `None` if the checksum is wrong.
fn checked(part: &[u8]) -> Option<&[u8]> {
    let (bytes, sum) = part.split_last_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == checksum::of_bytes(bytes)).then_some(bytes)
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().expect("parts are cut to eight bytes"))
}

/// Returns a part with its checksum.
fn sealed<const N: usize>(numbers: [[u8; 8]; N]) -> Vec<u8> {
    let mut bytes = numbers.concat();
    let sum = checksum::of_bytes(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// The head file, open in a process that writes the log.
#[derive(Debug)]
pub(super) struct HeadFile {
    file: File,
}

impl HeadFile {
    /// Opens or creates the file, with the permissions of the log. Returns `None` while another process closes the log.
    pub(super) fn open(log: &Path) -> io::Result<Option<Self>> {
        let path = head_path(log);
        let mode = std::fs::metadata(log)?.mode() & 0o666;
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(mode)
            .custom_flags(NOFOLLOW | NONBLOCK);
        let file = options.open(path)?;
        let metadata = file.metadata()?;
        if let Some(kind) = kind_of(&metadata) {
            return Err(io::Error::other(format!("it is {kind}, not a file")));
        }
        // The file follows the log's current permissions, not this process's umask or earlier permissions.
        if metadata.mode() & 0o666 != mode && metadata.uid() == rustix::process::geteuid().as_raw() {
            file.set_permissions(PermissionsExt::from_mode(mode))?;
        }
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Stores the number of transactions and the partitions' ends after a transaction. Older values than those in the
    /// file are dropped.
    pub(super) fn write(&self, transactions: i64, ends: &[HeadEnd]) -> io::Result<()> {
        for end in ends {
            let numbers = [end.topic_id, end.partition.into(), end.next].map(i64::to_le_bytes);
            self.file.write_all_at(&sealed(numbers), ENTRIES_AT + end.index * ENTRY_BYTES as u64)?;
        }
        let slot = transactions.cast_unsigned() % SLOTS;
        self.file.write_all_at(&sealed([MAGIC, transactions.to_le_bytes()]), slot * SLOT_STRIDE as u64)
    }

    /// Waits until the file is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Reads the file's contents.
    pub(super) fn read(&self) -> io::Result<Found> {
        read_from(&self.file)
    }

    /// Returns true if the file still has its name.
    pub(super) fn is_in_place(&self, log: &Path) -> bool {
        let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::symlink_metadata(head_path(log)).map(place);
        self.file.metadata().map(place).is_ok_and(|own| named.is_ok_and(|named| named == own))
    }

    /// Returns true if no other process has the file open, and prevents others from opening it until this value is
    /// dropped.
    pub(super) fn is_alone(&self) -> bool {
        self.file.try_lock().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(log: &Path) -> Head {
        match read(log).unwrap() {
            Found::Head(head) => head,
            other => panic!("{other:?}"),
        }
    }

    fn end(index: u64, next: i64) -> HeadEnd {
        HeadEnd { index, topic_id: 3, partition: 7, next }
    }

    #[test]
    fn the_newer_whole_slot_counts() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.db");
        assert!(matches!(read(&log).unwrap(), Found::Absent));
        std::fs::write(&log, "").unwrap();
        let head = HeadFile::open(&log).unwrap().unwrap();
        assert!(matches!(read(&log).unwrap(), Found::Damaged));
        head.write(4, &[end(0, 10)]).unwrap();
        head.write(5, &[end(2, 20)]).unwrap();
        assert_eq!(found(&log).transactions, 5);
        assert_eq!(found(&log).ends, [end(0, 10), end(2, 20)]);
        let whole = std::fs::read(head_path(&log)).unwrap();
        for bit in 0..SLOT_BYTES * 8 {
            let mut bytes = whole.clone();
            bytes[SLOT_STRIDE + bit / 8] ^= 1 << (bit % 8);
            std::fs::write(head_path(&log), bytes).unwrap();
            assert_eq!(found(&log).transactions, 4, "bit {bit}");
        }
        for length in 0..whole.len() {
            std::fs::write(head_path(&log), &whole[..length]).unwrap();
            match read(&log).unwrap() {
                Found::Absent | Found::Forbidden => panic!("it is there"),
                Found::Damaged => assert!(length < SLOT_BYTES),
                Found::Head(head) => assert!(head.transactions <= 5 && head.ends.len() <= 2, "{length}"),
            }
        }
    }

    #[test]
    fn who_may_read_the_log_may_read_its_head() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.db");
        std::fs::write(&log, "").unwrap();
        for mode in [0o666, 0o640, 0o600] {
            std::fs::set_permissions(&log, PermissionsExt::from_mode(mode)).unwrap();
            drop(HeadFile::open(&log).unwrap().unwrap());
            assert_eq!(std::fs::metadata(head_path(&log)).unwrap().mode() & 0o777, mode);
        }
        std::fs::set_permissions(head_path(&log), PermissionsExt::from_mode(0o000)).unwrap();
        // The superuser may read every file.
        if File::open(head_path(&log)).is_err() {
            assert!(matches!(read(&log).unwrap(), Found::Forbidden));
        }
    }

    #[test]
    fn the_last_one_finds_itself_alone() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.db");
        std::fs::write(&log, "").unwrap();
        let open = || HeadFile::open(&log).unwrap();
        let (one, two) = (open().unwrap(), open().unwrap());
        assert!(!one.is_alone());
        drop(one);
        assert!(two.is_alone());
        assert!(open().is_none(), "nobody writes while the log is closed");
        drop(two);
        assert!(open().is_some());
    }
}
