//! The files beside a log's file: their allowed kinds, and checks that they stay unchanged while the log is in use.
//!
//! ```text
//! PATH-wal      the write-ahead log: commits that are not in the file yet
//! PATH-shm      its index, which every process maps into memory; it holds the locks of readers and writers
//! PATH-journal  of SQLite, while a file becomes a log
//! PATH-head     see `head`
//! PATH-segments the folder of large blocks, see `segment`
//! ```
//!
//! SQLite keeps using a file that has lost its name, so that other processes do not find its data. A process that reads
//! a truncated part of the index is killed (SIGBUS). So both cases are checked before each use of the log.

use super::limits::NOFOLLOW;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Flag with which opening a pipe returns at once.
pub(super) const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
/// Smallest size of SQLite's index in use, in bytes.
const INDEX_BYTES_MIN: u64 = 32 << 10;

/// Returns the path of the log with a suffix.
pub(super) fn beside(log: &Path, ending: &str) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// Opens a regular file for reading; rejects links, pipes and devices, which may contain anything and be endless.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NOFOLLOW | NONBLOCK).open(path)?;
    match kind_of(&file.metadata()?) {
        None => Ok(file),
        Some(kind) => Err(io::Error::other(format!("it is {kind}, not a file"))),
    }
}

/// Returns the kind of something other than a regular file, in words; `None` for a regular file.
pub(super) fn kind_of(metadata: &fs::Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    Some(match kind {
        _ if kind.is_file() => return None,
        _ if kind.is_dir() => "a directory",
        _ if kind.is_symlink() => "a link",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    })
}

/// Describes a link, pipe or the like in place of a file beside the log, which the log never opens; `None` if there is
/// none.
pub(super) fn odd(log: &Path) -> io::Result<Option<String>> {
    for (ending, is_folder) in
        [("-wal", false), ("-shm", false), ("-journal", false), ("-head", false), ("-segments", true)]
    {
        let path = beside(log, ending);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let kind = kind_of(&metadata);
        if metadata.is_dir() != is_folder || !is_folder && kind.is_some() {
            let expected = if is_folder { "a directory" } else { "a file" };
            let kind = kind.unwrap_or("a file");
            return Ok(Some(format!("{} is {kind}, not {expected}", path.display())));
        }
    }
    Ok(None)
}

/// Returns true if the index was truncated while in use: reading it would kill this process as well.
pub(super) fn is_index_cut(log: &Path) -> bool {
    fs::symlink_metadata(beside(log, "-shm")).is_ok_and(|index| index.len() < INDEX_BYTES_MIN)
}

/// Damage to a file that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    /// The write-ahead log has lost its name, or another file has it.
    WalGone,
    /// The write-ahead log is shorter than before, which is allowed.
    WalShorter,
    /// The index has lost its name, or another file has it.
    IndexGone,
    /// The index is shorter than before, and must not be read.
    IndexCut,
}

/// The write-ahead log and its index, as last checked.
pub(super) struct Beside {
    log: PathBuf,
    /// The write-ahead log and its index. Both are `None` before the log is open, or if it has neither.
    seen: Mutex<[Option<FileIdentity>; 2]>,
}

/// Identity and length of a named file.
#[derive(Clone, Copy)]
struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
}

impl FileIdentity {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        Some(Self { device: metadata.dev(), inode: metadata.ino(), bytes: metadata.len() })
    }

    fn is(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Beside {
    pub(super) fn new(log: PathBuf) -> Self {
        Self { log, seen: Mutex::default() }
    }

    /// Notes the files' current state while some connection has them open.
    pub(super) fn note(&self) {
        *self.seen() = self.now();
    }

    /// Forgets the files; no connection has them open any more.
    pub(super) fn forget(&self) {
        *self.seen() = Default::default();
    }

    /// Returns the damage to the files since they were noted; `None` if there is none.
    pub(super) fn harm(&self) -> Option<Harm> {
        let mut seen = self.seen();
        let [wal, index] = self.now();
        if let Some(before) = seen[1] {
            match index.filter(|index| index.is(&before)) {
                None => return Some(Harm::IndexGone),
                Some(index) if index.bytes < before.bytes => return Some(Harm::IndexCut),
                index => seen[1] = index,
            }
        }
        if let Some(before) = seen[0] {
            match wal.filter(|wal| wal.is(&before)) {
                None => return Some(Harm::WalGone),
                Some(wal) if wal.bytes < before.bytes => return Some(Harm::WalShorter),
                wal => seen[0] = wal,
            }
        }
        None
    }

    /// Accepts the current length of the write-ahead log, which was begun again.
    pub(super) fn accept_wal(&self) {
        let [wal, _] = self.now();
        self.seen()[0] = wal;
    }

    /// Returns the length of the write-ahead log in bytes.
    pub(super) fn wal_bytes(&self) -> u64 {
        FileIdentity::of(&beside(&self.log, "-wal")).map_or(0, |wal| wal.bytes)
    }

    /// Returns true if the files beside the log were truncated: their content must not be folded into it.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.harm(), Some(Harm::IndexCut | Harm::WalShorter))
    }

    fn now(&self) -> [Option<FileIdentity>; 2] {
        ["-wal", "-shm"].map(|ending| FileIdentity::of(&beside(&self.log, ending)))
    }

    fn seen(&self) -> MutexGuard<'_, [Option<FileIdentity>; 2]> {
        // The value is complete even if a holder panicked.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_a_file_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.db");
        let [wal, index] = ["-wal", "-shm"].map(|ending| beside(&log, ending));
        let files = Beside::new(log);
        assert_eq!(files.harm(), None);
        let make = || {
            fs::write(&wal, [1; 100]).unwrap();
            fs::write(&index, [1; 100]).unwrap();
            files.note();
        };
        make();
        fs::write(&wal, [1; 200]).unwrap();
        fs::write(&index, [1; 200]).unwrap();
        assert_eq!(files.harm(), None);
        fs::write(&index, [1; 199]).unwrap();
        assert_eq!(files.harm(), Some(Harm::IndexCut));
        assert!(files.is_cut());
        make();
        fs::write(&wal, "").unwrap();
        assert_eq!(files.harm(), Some(Harm::WalShorter));
        files.accept_wal();
        assert_eq!(files.harm(), None);
        for (path, harm) in [(&wal, Harm::WalGone), (&index, Harm::IndexGone)] {
            make();
            // No other file gets its inode number while it is open.
            let _open = File::open(path).unwrap();
            fs::remove_file(path).unwrap();
            assert_eq!(files.harm(), Some(harm));
            // Another file under its name is not the open one.
            let other = folder.path().join("other");
            fs::write(&other, [1; 500]).unwrap();
            fs::rename(&other, path).unwrap();
            assert_eq!(files.harm(), Some(harm));
            assert!(!files.is_cut());
        }
        files.forget();
        assert_eq!(files.harm(), None);
    }

    #[test]
    fn what_is_no_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log.db");
        assert_eq!(odd(&log).unwrap(), None);
        std::os::unix::fs::symlink("/etc/passwd", beside(&log, "-head")).unwrap();
        assert!(odd(&log).unwrap().unwrap().contains("-head is a link"));
        assert!(open_file(&beside(&log, "-head")).is_err());
        fs::remove_file(beside(&log, "-head")).unwrap();
        fs::create_dir(beside(&log, "-segments")).unwrap();
        assert_eq!(odd(&log).unwrap(), None);
        fs::remove_dir(beside(&log, "-segments")).unwrap();
        fs::write(beside(&log, "-segments"), "").unwrap();
        assert!(odd(&log).unwrap().unwrap().contains("-segments is a file, not a directory"));
        assert!(open_file(Path::new("/dev/null")).unwrap_err().to_string().contains("a device"));
        assert!(open_file(folder.path()).unwrap_err().to_string().contains("a directory"));
    }
}
