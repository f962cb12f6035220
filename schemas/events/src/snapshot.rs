//! State of a partition's stages at an offset.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Content, Named, Shape, Shaped};
use crate::wire::Wire;

/// One part of the state of a partition's stages at an offset, in bytes that any device reads.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Snapshot {
    /// Partition of the tick topic.
    pub partition: i32,
    /// Number of the symbol group, from 0. The partition's intake (symbols and watermark) has -1. The stage
    /// configuration from the offset on, as JSON, has -2; it is no state. Pages of symbols that left memory at the
    /// offset have 1048576 and above; later snapshots still need them.
    pub group: i32,
    /// Next offset to read: the state contains every record before it.
    pub offset: i64,
    /// Number of this part of the state bytes, from 0.
    pub part: i32,
    /// Number of parts of the state, at least 1.
    pub parts: i32,
    /// Version of the layout of the state bytes.
    pub state_version: i32,
    /// State bytes of this part.
    pub state: Vec<u8>,
    /// BLAKE3 of the Avro encoding of this record up to this field, without the 10-byte single-object header. It is the
    /// last field in every version.
    pub checksum: Checksum,
}

/// Placeholder for a record's checksum, which is computed when the record is written, and compared when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum;

/// Length of the checksum at the end of the datum, in bytes.
const CHECKSUM_SIZE: usize = blake3::OUT_LEN;

impl Shaped for Checksum {
    const SHAPE: Shape = Shape::Named(&Named {
        name: "Blake3",
        doc: "A BLAKE3 hash.",
        content: Content::Fixed(CHECKSUM_SIZE),
    });
}

impl Wire<'_> for Checksum {
    /// Appends zeros; [`Snapshot::put_with_checksum`] replaces them.
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0; CHECKSUM_SIZE]);
    }

    /// Skips the checksum; [`check_checksum`] compares it.
    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        cursor.take(CHECKSUM_SIZE).map(|_| Self)
    }
}

impl Snapshot {
    /// Group number of a partition's intake: its symbols and watermark.
    pub const INTAKE: i32 = -1;
    /// Group number of a record that is not state, but the partition's stage configuration from its offset on, as JSON.
    pub const SEGMENT: i32 = -2;
    /// Group number of page 0; the following numbers are those of the further pages.
    pub const PAGES: i32 = 1 << 20;

    /// Appends the snapshot with its checksum.
    pub fn put_with_checksum(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.put(out);
        let end = out.len() - CHECKSUM_SIZE;
        let checksum = blake3::hash(&out[start..end]);
        out[end..].copy_from_slice(checksum.as_bytes());
    }
}

/// Compares the checksum, which is the last field in every version, with the bytes before it.
pub fn check_checksum(datum: &[u8]) -> Result<(), DecodeError> {
    let Some((state, checksum)) = datum.split_last_chunk::<CHECKSUM_SIZE>() else {
        return Err(DecodeError::Truncated { length: datum.len() });
    };
    // `blake3::Hash` would compare in constant time, which is not needed here.
    if blake3::hash(state).as_bytes() == checksum { Ok(()) } else { Err(DecodeError::Checksum) }
}
