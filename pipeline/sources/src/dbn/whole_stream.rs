//! Checks the bytes of a DBN file. Rejects truncated files, which the decoder would accept as complete, and records
//! with a damaged length.

use std::io::{self, Read};

/// Size of the prelude: `DBN`, the version, and the length of the metadata that follow (little endian).
const PRELUDE_BYTES: usize = 8;
/// Greatest length of the metadata in bytes, enough for a million symbols. The decoder keeps all of it in memory.
const METADATA_BYTES_MAX: u64 = 256 << 20;
/// Unit of the length with which a record begins.
const LENGTH_UNIT_BYTES: u64 = 4;
/// Alignment of records, which the decoder reads in place.
const RECORD_ALIGNMENT_BYTES: u64 = 8;

/// A stream with checks that the decoder lacks. It finds missing bytes at the end, and record lengths that are not a
/// multiple of eight bytes.
pub(super) struct WholeStream<R> {
    inner: R,
    read_bytes: u64,
    prelude: [u8; PRELUDE_BYTES],
    /// Stream offset of the first unread record; `None` until the prelude was read.
    next_record: Option<u64>,
    /// Fault of the next record; `None` if the record is good.
    bad_record: Option<String>,
}

impl<R> WholeStream<R> {
    pub(super) fn new(inner: R) -> WholeStream<R> {
        WholeStream { inner, read_bytes: 0, prelude: [0; PRELUDE_BYTES], next_record: None, bad_record: None }
    }

    /// Returns true if the bytes read so far are exactly the metadata and `records_bytes` bytes of records.
    pub(super) fn holds(&self, records_bytes: u64) -> bool {
        self.read_bytes == self.metadata_bytes() + records_bytes
    }

    /// Returns the number of bytes before the records.
    fn metadata_bytes(&self) -> u64 {
        let [_, _, _, _, length @ ..] = self.prelude;
        PRELUDE_BYTES as u64 + u64::from(u32::from_le_bytes(length))
    }

    /// Follows the lengths of the records in these bytes, which begin at offset `first`. Returns the number of good
    /// bytes.
    fn follow_records(&mut self, first: u64, bytes: &[u8]) -> usize {
        let mut record = self.next_record.unwrap_or_else(|| self.metadata_bytes());
        while let Some(&length) =
            record.checked_sub(first).and_then(|at| bytes.get(usize::try_from(at).ok()?))
        {
            let record_bytes = u64::from(length) * LENGTH_UNIT_BYTES;
            if record_bytes == 0 || !record_bytes.is_multiple_of(RECORD_ALIGNMENT_BYTES) {
                self.bad_record = Some(format!(
                    "the record at byte {record} (uncompressed) claims {record_bytes} bytes, which is not a \
                     multiple of {RECORD_ALIGNMENT_BYTES}: the file is damaged there"
                ));
                self.next_record = Some(record);
                return (record - first) as usize;
            }
            record += record_bytes;
        }
        self.next_record = Some(record);
        bytes.len()
    }
}

impl<R: Read> Read for WholeStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(problem) = &self.bad_record {
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem.clone()));
        }
        let read = self.inner.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => error,
        })?;
        if self.read_bytes < PRELUDE_BYTES as u64 {
            let have = self.read_bytes as usize;
            let new = read.min(PRELUDE_BYTES - have);
            self.prelude[have..have + new].copy_from_slice(&buffer[..new]);
        }
        let first = self.read_bytes;
        self.read_bytes += read as u64;
        let is_dbn = self.read_bytes >= PRELUDE_BYTES as u64 && self.prelude.starts_with(b"DBN");
        if is_dbn && self.metadata_bytes() > METADATA_BYTES_MAX {
            let found = format!(
                "its metadata claim {} bytes; at most {METADATA_BYTES_MAX} are allowed",
                self.metadata_bytes()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, found));
        }
        if !is_dbn {
            return Ok(read);
        }
        // Records before a bad one are good; the next call reports the bad one.
        let good = self.follow_records(first, &buffer[..read]);
        self.read_bytes = first + good as u64;
        if good == 0 && read > 0 { self.read(buffer) } else { Ok(good) }
    }
}
