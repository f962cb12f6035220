//! The single file of a zip archive, the form in which Binance and others deliver dumps.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

/// First bytes of a non-empty archive.
pub(super) const ZIP_MAGIC: [u8; 4] = *b"PK\x03\x04";

/// The position of the single file in an archive.
pub(super) struct ZipEntry {
    pub(super) start: u64,
    packed_bytes: u64,
    is_stored: bool,
    crc32: u32,
}

impl ZipEntry {
    /// Finds the file in the archive's directory.
    ///
    /// # Errors
    /// If the archive is damaged, has no file or several, or uses another compression than Deflate.
    pub(super) fn find(path: &Path) -> io::Result<ZipEntry> {
        let refused = |found: String| io::Error::new(io::ErrorKind::InvalidData, found);
        let mut archive = ZipArchive::new(BufReader::new(File::open(path)?)).map_err(io::Error::other)?;
        let mut found = None;
        for number in 0..archive.len() {
            let entry = archive.by_index_raw(number).map_err(io::Error::other)?;
            if !entry.is_file() {
                continue;
            }
            if found.is_some() {
                return Err(refused(
                    "a zip archive of several files: unpack it, and name its files".to_owned(),
                ));
            }
            if entry.encrypted() {
                return Err(refused("a zip archive with a password: unpack it".to_owned()));
            }
            let is_stored = match entry.compression() {
                CompressionMethod::Stored => true,
                method if method == CompressionMethod::DEFLATE => false,
                _ => {
                    let found = "a zip archive that uses another method than deflate: unpack it";
                    return Err(refused(found.to_owned()));
                }
            };
            let start = entry.data_start().ok_or_else(|| refused("a damaged zip archive".to_owned()))?;
            found = Some(ZipEntry {
                start,
                packed_bytes: entry.compressed_size(),
                is_stored,
                crc32: entry.crc32(),
            });
        }
        found.ok_or_else(|| refused("a zip archive without a file".to_owned()))
    }

    /// Returns the unpacked file. `archive` must be positioned at the file's start.
    pub(super) fn unpack<R: BufRead + Send + 'static>(&self, archive: R) -> Box<dyn Read + Send> {
        let packed = archive.take(self.packed_bytes);
        if self.is_stored {
            Box::new(Checked { inner: packed, crc: Crc::new(), expected: self.crc32 })
        } else {
            Box::new(Checked { inner: DeflateDecoder::new(packed), crc: Crc::new(), expected: self.crc32 })
        }
    }
}

/// A stream that returns an error at its end if its checksum is wrong.
struct Checked<R> {
    inner: R,
    crc: Crc,
    expected: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.crc.update(&buffer[..read]);
        if read == 0 && !buffer.is_empty() && self.crc.sum() != self.expected {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "its checksum differs from the one in the archive",
            ));
        }
        Ok(read)
    }
}
