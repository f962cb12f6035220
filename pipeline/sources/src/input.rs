//! Files read line by line, plain or packed (gzip, Zstandard, zip), in UTF-8 or UTF-16, with bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use super::utf16::{Utf16, Utf16Reader};
use super::zip_entry::{ZIP_MAGIC, ZipEntry};
use super::{ProgressUnit, SourceError, SourceProgress};

/// Number of bytes requested from the system at once.
const READ_BYTES: usize = 128 * 1024;
/// Longest line in bytes: a full-depth book snapshot of a few thousand levels has some 200 kB.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A file that counts the bytes read from it. The count is shared, because decoders own their reader.
pub(super) struct CountedFile {
    file: File,
    read_bytes: Arc<AtomicU64>,
}

/// Number of bytes read from a [`CountedFile`], which updates it.
pub struct FileProgress {
    read_bytes: Arc<AtomicU64>,
    total_bytes: u64,
}

impl CountedFile {
    pub(super) fn open(path: &Path) -> Result<(BufReader<CountedFile>, FileProgress), SourceError> {
        let failed = |source| SourceError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let kind = metadata.file_type();
        if kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
            let found = "it is a device or a socket; name a file or a pipe";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, found)));
        }
        if metadata.is_dir() {
            return Err(failed(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a folder; name its files",
            )));
        }
        let read_bytes = Arc::new(AtomicU64::new(0));
        let progress = FileProgress { read_bytes: Arc::clone(&read_bytes), total_bytes: metadata.len() };
        Ok((BufReader::with_capacity(READ_BYTES, CountedFile { file, read_bytes }), progress))
    }
}

impl CountedFile {
    /// Continues reading at another offset.
    fn go_to(&mut self, place: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(place))?;
        self.read_bytes.store(place, Ordering::Relaxed);
        Ok(())
    }
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read_bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

impl FileProgress {
    /// Returns the sum over files.
    pub(super) fn sum<'a>(files: impl Iterator<Item = &'a FileProgress>) -> SourceProgress {
        let (done, total) = files.fold((0, 0), |(done, total), file| {
            // A file may grow during the reading.
            let read = file.read_bytes.load(Ordering::Relaxed).min(file.total_bytes);
            (done + read, total + file.total_bytes)
        });
        SourceProgress { done, total: Some(total), unit: ProgressUnit::Bytes }
    }
}

/// Returns the unpacked contents of a file, as sources read it. Its first bytes determine the format, whatever its
/// name. `None` for a file that is not packed.
///
/// # Errors
/// If the file cannot be read.
pub fn unpacked(path: &Path) -> io::Result<Option<Box<dyn Read>>> {
    let mut file = BufReader::with_capacity(READ_BYTES, File::open(path)?);
    let beginning = file.fill_buf()?;
    Ok(match beginning {
        _ if beginning.starts_with(&GZIP_MAGIC) => Some(Box::new(MultiGzDecoder::new(file))),
        _ if beginning.starts_with(&ZSTD_MAGIC) => Some(Box::new(zstd::Decoder::with_buffer(file)?)),
        _ if beginning.starts_with(&ZIP_MAGIC) => {
            let entry = ZipEntry::find(path)?;
            let mut archive = File::open(path)?;
            archive.seek(SeekFrom::Start(entry.start))?;
            Some(entry.unpack(BufReader::with_capacity(READ_BYTES, archive)))
        }
        _ => None,
    })
}

/// Returns the unpacked text of a file. Its first bytes determine the format, whatever its name.
fn unpacked_text(path: &Path, mut file: BufReader<CountedFile>) -> io::Result<Box<dyn BufRead + Send>> {
    let beginning = file.fill_buf()?;
    let buffered =
        |unpacked: Box<dyn Read + Send>| Box::new(BufReader::with_capacity(READ_BYTES, unpacked)) as Box<_>;
    Ok(match beginning {
        _ if beginning.starts_with(&GZIP_MAGIC) => buffered(Box::new(MultiGzDecoder::new(file))),
        _ if beginning.starts_with(&ZSTD_MAGIC) => buffered(Box::new(zstd::Decoder::with_buffer(file)?)),
        _ if beginning.starts_with(&ZIP_MAGIC) => {
            let mut archive = file.into_inner();
            if !archive.file.metadata()?.is_file() {
                let found = "a zip archive from a pipe: unpack it";
                return Err(io::Error::new(io::ErrorKind::InvalidData, found));
            }
            let entry = ZipEntry::find(path)?;
            archive.go_to(entry.start)?;
            buffered(entry.unpack(BufReader::with_capacity(READ_BYTES, archive)))
        }
        _ => Box::new(file),
    })
}

/// Text in UTF-8; the first bytes distinguish it from UTF-16 once they are read.
enum Text {
    Unread(Option<Box<dyn BufRead + Send>>),
    Utf8(Box<dyn BufRead + Send>),
    Utf16(Box<BufReader<Utf16Reader<Box<dyn BufRead + Send>>>>),
}

impl Read for Text {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Text {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if let Text::Unread(reader) = self {
            let order = match reader {
                Some(reader) => Utf16::of(reader.fill_buf()?),
                None => None,
            };
            if let Some(reader) = reader.take() {
                *self = match order {
                    Some(order) => Text::Utf16(Box::new(BufReader::new(Utf16Reader::new(reader, order)))),
                    None => Text::Utf8(reader),
                };
            }
        }
        match self {
            Text::Unread(_) => Ok(&[]),
            Text::Utf8(reader) => reader.fill_buf(),
            Text::Utf16(reader) => reader.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match self {
            Text::Unread(_) => {}
            Text::Utf8(reader) => reader.consume(count),
            Text::Utf16(reader) => reader.consume(count),
        }
    }
}

/// Lines of a text file, packed or not.
pub(super) struct Lines {
    path: PathBuf,
    reader: Text,
    progress: FileProgress,
    line: Vec<u8>,
    number: u64,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Lines, SourceError> {
        let (file, progress) = CountedFile::open(path)?;
        let failed = |source| SourceError::Open { path: path.to_owned(), source };
        let reader = Text::Unread(Some(unpacked_text(path, file).map_err(failed)?));
        Ok(Lines { path: path.to_owned(), reader, progress, line: Vec::new(), number: 0 })
    }

    /// Reads the next line, which [`Lines::line`] then returns. Returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, SourceError> {
        self.line.clear();
        let mut limited = (&mut self.reader).take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.line).map_err(|source| SourceError::Read {
            path: self.path.clone(),
            line: self.number,
            source,
        })?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if read > LINE_BYTES_MAX {
            let path = self.path.clone();
            return Err(SourceError::LineTooLong { path, line: self.number, limit_bytes: LINE_BYTES_MAX });
        }
        Ok(true)
    }

    /// Returns the line just read, without its end (`\n` or `\r\n`).
    pub(super) fn line(&self) -> &[u8] {
        without_end(self.raw())
    }

    /// Returns the line just read, byte for byte.
    pub(super) fn raw(&self) -> &[u8] {
        &self.line
    }

    /// Returns the number of the line just read, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn progress(&self) -> &FileProgress {
        &self.progress
    }
}

/// Returns a line without its end.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_ticks::{gzip, write_file};

    fn read(bytes: &[u8]) -> Result<Vec<Vec<u8>>, SourceError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut lines = Lines::open(&write_file(&folder, "lines", bytes))?;
        let mut read = Vec::new();
        while lines.advance()? {
            read.push(lines.line().to_vec());
            assert_eq!(lines.number(), read.len() as u64);
        }
        let progress = FileProgress::sum([lines.progress()].into_iter());
        assert_eq!(progress.done, bytes.len() as u64, "all of the file was read");
        assert_eq!(progress.total, Some(bytes.len() as u64));
        Ok(read)
    }

    #[test]
    fn plain_and_gzipped_lines_are_the_same() {
        let text = b"one\r\n\ntwo\nthree";
        let expected: [&[u8]; 4] = [b"one", b"", b"two", b"three"];
        assert_eq!(read(text).expect("readable"), expected);
        assert_eq!(read(&gzip(text)).expect("readable"), expected);
        let members = [gzip(b"one\n\n"), gzip(b"two\nthree")].concat();
        assert_eq!(read(&members).expect("readable"), expected);
        assert_eq!(read(b"").expect("readable"), [b""; 0]);
    }

    #[test]
    fn a_gzip_file_cut_short_is_an_error() {
        let mut bytes = gzip("line\n".repeat(10_000).as_bytes());
        bytes.truncate(bytes.len() - 9);
        let message = read(&bytes).expect_err("cut short").to_string();
        assert!(message.contains("cut short"), "{message}");
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let error = read(&vec![b'x'; LINE_BYTES_MAX + 1]).expect_err("too long");
        assert!(matches!(error, SourceError::LineTooLong { line: 1, .. }), "{error}");
        assert_eq!(read(&vec![b'x'; LINE_BYTES_MAX]).expect("just fits").len(), 1);
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for path in [folder.path().to_owned(), folder.path().join("missing"), PathBuf::from("/dev/zero")] {
            let error = Lines::open(&path).err().expect("cannot be read").to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }
}
