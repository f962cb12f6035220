//! The files beside a log's file: what they may be, and that they stay what they are while the log is in use.
//!
//! ```text
//! PATH-wal      the write-ahead log: what is committed and not in the file yet
//! PATH-shm      its index, which every process has in memory; the locks of readers and writers are on it
//! PATH-journal  of SQLite, while a file becomes a log
//! PATH-head     see `head`
//! ```
//!
//! SQLite goes on with a file that has lost its name, where nobody else finds what it writes; and a process that reads the index where it
//! was cut is killed (SIGBUS). So both are looked at before each use of the log.

use super::limits::NOFOLLOW;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Opening a pipe waits for nobody.
pub(super) const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;
/// SQLite's index has at least as many bytes once it is in use.
const INDEX_BYTES_MIN: u64 = 32 << 10;

/// The path of the log with an ending.
pub(super) fn beside(log: &Path, ending: &str) -> PathBuf {
    let mut path = log.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// Opens a file for reading that must be a file of its own: what is a link, a pipe or a device may be anything, and may be without end.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(NOFOLLOW | NONBLOCK).open(path)?;
    match kind_of(&file.metadata()?) {
        None => Ok(file),
        Some(kind) => Err(io::Error::other(format!("it is {kind}, not a file"))),
    }
}

/// The kind of something that is not a file, in words; `None` for a file.
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

/// Names a thing that stands in place of a file beside the log: the log opens no such thing.
pub(super) fn odd(log: &Path) -> io::Result<Option<String>> {
    for ending in ["-wal", "-shm", "-journal", "-head"] {
        let path = beside(log, ending);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if let Some(kind) = kind_of(&metadata) {
            return Ok(Some(format!("{} is {kind}, not a file", path.display())));
        }
    }
    Ok(None)
}

/// True if the index was cut while others use it: reading it would kill this process as well.
pub(super) fn is_index_cut(log: &Path) -> bool {
    fs::symlink_metadata(beside(log, "-shm")).is_ok_and(|index| index.len() < INDEX_BYTES_MIN)
}

/// The harm to a file that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    /// The write-ahead log has no name, or its name is another file's.
    WalGone,
    /// The write-ahead log has fewer bytes than before, which it may.
    WalShorter,
    /// The index has no name, or its name is another file's.
    IndexGone,
    /// The index has fewer bytes than before, and must not be read.
    IndexCut,
}

/// The write-ahead log and its index, as they were when they were looked at last.
pub(super) struct Beside {
    log: PathBuf,
    /// `None` for both before the log is open, and for a log that has neither.
    seen: Mutex<[Option<FileIdentity>; 2]>,
}

/// The file that has a name, and its length.
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

    /// Remembers the files as they are now: some connection has them open.
    pub(super) fn note(&self) {
        *self.seen() = self.now();
    }

    /// Forgets them: no connection has them open any more.
    pub(super) fn forget(&self) {
        *self.seen() = Default::default();
    }

    /// The harm to the files since they were noted.
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

    /// Takes the length of the write-ahead log as it is: it was begun again.
    pub(super) fn accept_wal(&self) {
        let [wal, _] = self.now();
        self.seen()[0] = wal;
    }

    /// Bytes of the write-ahead log.
    pub(super) fn wal_bytes(&self) -> u64 {
        FileIdentity::of(&beside(&self.log, "-wal")).map_or(0, |wal| wal.bytes)
    }

    /// True if the files beside the log were cut: what they hold must not be folded into it.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self.harm(), Some(Harm::IndexCut | Harm::WalShorter))
    }

    fn now(&self) -> [Option<FileIdentity>; 2] {
        ["-wal", "-shm"].map(|ending| FileIdentity::of(&beside(&self.log, ending)))
    }

    fn seen(&self) -> MutexGuard<'_, [Option<FileIdentity>; 2]> {
        // Nothing is left half-done.
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
            // Its number is no other file's as long as it is open.
            let _open = File::open(path).unwrap();
            fs::remove_file(path).unwrap();
            assert_eq!(files.harm(), Some(harm));
            // Another file in its place is not the one that is open.
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
        assert!(open_file(Path::new("/dev/null")).unwrap_err().to_string().contains("a device"));
        assert!(open_file(folder.path()).unwrap_err().to_string().contains("a directory"));
    }
}
