//! A segment: a file of blocks in the folder `PATH-segments`. One producer appends to it, and no byte changes later.
//!
//! ```text
//!  0  magic, version u64, number u64     little endian
//! 24  blocks one after another           rows of the log refer to them; other bytes have no meaning
//! ```
//!
//! The producer locks the file as long as it may append. A file is opened by its number, never by a name from the log,
//! and never through a link.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::beside::{beside, kind_of};

const MAGIC: [u8; 8] = *b"WTLGSEGM";
const VERSION: u64 = 1;
/// Position of the first block.
pub(super) const HEADER_BYTES: u64 = 24;
/// Suffix of a segment's name, after its number.
const ENDING: &str = ".segment";
/// Most parts of one system call.
const PARTS_MAX: usize = 256;

/// Returns the path of a log's folder of segments.
pub(super) fn folder_path(log: &Path) -> PathBuf {
    beside(log, "-segments")
}

/// Returns the path of a segment, for messages.
pub(super) fn path(log: &Path, number: u32) -> PathBuf {
    folder_path(log).join(name(number))
}

fn name(number: u32) -> String {
    format!("{number}{ENDING}")
}

/// Returns the number of a segment with this file name; `None` for any other name.
pub(super) fn number_of(file_name: &OsStr) -> Option<u32> {
    let number = file_name.to_str()?.strip_suffix(ENDING)?.parse().ok()?;
    (name(number).as_str() == file_name).then_some(number)
}

/// Returns the numbers of all files of segments.
pub(super) fn numbers(log: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    match std::fs::read_dir(folder_path(log)) {
        Ok(entries) => {
            for entry in entries {
                numbers.extend(number_of(&entry?.file_name()));
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(numbers)
}

/// Opens the folder; it must not be a link.
pub(super) fn open_folder(log: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(folder_path(log), flags, Mode::empty())?))
}

/// Opens a segment's file in the folder; rejects links, pipes and devices.
fn open_in(folder: &File, number: u32, flags: OFlags, mode: Mode) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name(number), flags, mode)?);
    match kind_of(&file.metadata()?) {
        None => Ok(file),
        Some(kind) => Err(io::Error::new(ErrorKind::InvalidData, format!("it is {kind}, not a file"))),
    }
}

/// Opens a segment for reading. Its header may be damaged, because the checksums of rows cover the blocks.
pub(super) fn open(log: &Path, number: u32) -> io::Result<File> {
    open_in(&open_folder(log)?, number, OFlags::RDONLY, Mode::empty())
}

/// Returns true if no producer may append to the segment, or if it does not exist.
pub(super) fn is_free(log: &Path, number: u32) -> io::Result<bool> {
    match open(log, number) {
        Ok(file) => match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// Removes a segment's file, unless it is gone already.
pub(super) fn remove(log: &Path, number: u32) -> io::Result<()> {
    let removed = open_folder(log)
        .and_then(|folder| Ok(rustix::fs::unlinkat(&folder, name(number), rustix::fs::AtFlags::empty())?));
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The segment of a producer, which may append to it.
#[derive(Debug)]
pub(super) struct SegmentFile {
    pub(super) number: u32,
    /// Position of the next block.
    pub(super) end: u64,
    file: File,
    path: PathBuf,
}

impl SegmentFile {
    /// Creates a segment with the permissions of the log, and locks it. The caller holds the log's write lock. A file of
    /// this number without blocks is the rest of a transaction that failed.
    ///
    /// # Errors
    /// A file of this number has blocks: they belong to another log, or to a newer state of this one.
    pub(super) fn create(log: &Path, number: u32, is_synced: bool) -> io::Result<Self> {
        let mode = std::fs::metadata(log)?.mode() & 0o666;
        let folder = make_folder(log, mode)?;
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = open_in(&folder, number, flags, Mode::from_raw_mode(0o600))?;
        let path = path(log, number);
        if file.metadata()?.len() > HEADER_BYTES {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                format!("{} has blocks of another log; move it away", path.display()),
            ));
        }
        file.set_permissions(PermissionsExt::from_mode(mode))?;
        file.try_lock()?;
        file.write_all_at(&[MAGIC, VERSION.to_le_bytes(), u64::from(number).to_le_bytes()].concat(), 0)?;
        if is_synced {
            file.sync_all()?;
            sync_folder(log)?;
        }
        Ok(Self { number, end: HEADER_BYTES, file, path })
    }

    /// Appends blocks one after another, and waits for the disk on request. After an error nothing counts as appended.
    pub(super) fn append(&mut self, blocks: &[&[u8]], is_synced: bool) -> io::Result<()> {
        let mut position = self.end;
        for blocks in blocks.chunks(PARTS_MAX) {
            let mut parts: Vec<_> = blocks.iter().map(|block| IoSlice::new(block)).collect();
            let mut parts = parts.as_mut_slice();
            while !parts.is_empty() {
                let written = match rustix::io::pwritev(&self.file, parts, position) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Err(rustix::io::Errno::INTR) => continue,
                    written => written?,
                };
                position += written as u64;
                IoSlice::advance_slices(&mut parts, written);
            }
        }
        if is_synced {
            self.file.sync_data()?;
        }
        self.end = position;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the file still has its name.
    pub(super) fn is_in_place(&self) -> bool {
        let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let named = std::fs::symlink_metadata(&self.path).map(place);
        self.file.metadata().map(place).is_ok_and(|own| named.is_ok_and(|named| named == own))
    }
}

/// Waits until the names of new segments are on the disk.
pub(super) fn sync_folder(log: &Path) -> io::Result<()> {
    open_folder(log)?.sync_all()?;
    File::open(log.parent().expect("a file is in a folder"))?.sync_all()
}

/// Opens the folder, and creates it if it is missing, for the users who may use the log.
fn make_folder(log: &Path, mode: u32) -> io::Result<File> {
    match open_folder(log) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    let path = folder_path(log);
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path)?;
    let folder = open_folder(log)?;
    // The users who may read the file may search its folder.
    folder.set_permissions(PermissionsExt::from_mode(mode | (mode & 0o444) >> 2))?;
    Ok(folder)
}
