//! The bytes of a DBN file, watched so that a file cut short is not taken for a whole one.

use std::io::{self, Read};

/// `DBN`, the version, and the length of the metadata that follow (little endian).
const PRELUDE_BYTES: usize = 8;
/// Longest metadata, which the decoder has in memory as a whole: those of a million symbols.
const METADATA_BYTES_MAX: u64 = 256 << 20;

/// A stream of which the decoder must not mistake the middle for the end: it takes bytes that are missing for the end
/// of the records. Here they are an error, and the bytes that were there are counted.
pub(super) struct WholeStream<R> {
    inner: R,
    read_bytes: u64,
    prelude: [u8; PRELUDE_BYTES],
}

impl<R> WholeStream<R> {
    pub(super) fn new(inner: R) -> WholeStream<R> {
        WholeStream { inner, read_bytes: 0, prelude: [0; PRELUDE_BYTES] }
    }

    /// Whether everything read so far is the metadata and this many bytes of records.
    pub(super) fn holds(&self, records_bytes: u64) -> bool {
        self.read_bytes == self.metadata_bytes() + records_bytes
    }

    /// Length of what comes before the records.
    fn metadata_bytes(&self) -> u64 {
        let [_, _, _, _, length @ ..] = self.prelude;
        PRELUDE_BYTES as u64 + u64::from(u32::from_le_bytes(length))
    }
}

impl<R: Read> Read for WholeStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => error,
        })?;
        if self.read_bytes < PRELUDE_BYTES as u64 {
            let have = self.read_bytes as usize;
            let new = read.min(PRELUDE_BYTES - have);
            self.prelude[have..have + new].copy_from_slice(&buffer[..new]);
        }
        self.read_bytes += read as u64;
        let is_dbn = self.read_bytes >= PRELUDE_BYTES as u64 && self.prelude.starts_with(b"DBN");
        if is_dbn && self.metadata_bytes() > METADATA_BYTES_MAX {
            let found = format!(
                "its metadata are said to have {} bytes; there may be up to {METADATA_BYTES_MAX}",
                self.metadata_bytes()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, found));
        }
        Ok(read)
    }
}
