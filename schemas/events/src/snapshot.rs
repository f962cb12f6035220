//! Stage state at an offset.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::wire::Wire;

/// One part of the stage state at an offset, in device-neutral bytes. The record ends with a BLAKE3 checksum of all of
/// it, which is written and checked by the codec, and is no part of [`Wire::SHAPE`].
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Snapshot {
    /// Partition of the source topic.
    pub partition: i32,
    /// Symbol group; [`Snapshot::INTAKE`] for the partition's intake, [`Snapshot::SEGMENT`] for what is no state.
    pub group: i32,
    /// Next offset to read: the state contains every record before it.
    pub offset: i64,
    /// Number of this part, from 0.
    pub part: i32,
    /// Number of parts.
    pub parts: i32,
    /// Version of the layout of the state bytes.
    pub state_version: i32,
    /// The state bytes, or this part of them.
    pub state: Vec<u8>,
}

/// Bytes of the checksum at the end of the datum.
const CHECKSUM_SIZE: usize = blake3::OUT_LEN;

impl Snapshot {
    /// The group number of a partition's intake: its symbols and watermark.
    pub const INTAKE: i32 = -1;
    /// The group number of a record that is no state, but the stage configuration of the partition from its offset on, as JSON.
    pub const SEGMENT: i32 = -2;
}

impl Snapshot {
    /// Appends it with its checksum.
    pub fn put_with_checksum(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.put(out);
        let checksum = blake3::hash(&out[start..]);
        out.extend_from_slice(checksum.as_bytes());
    }

    /// Reads it, and its checksum, which [`check_checksum`] compares.
    pub fn get_with_checksum(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let snapshot = Self::get(cursor)?;
        cursor.take(CHECKSUM_SIZE)?;
        Ok(snapshot)
    }
}

/// Compares the checksum, which is the last field in every version, with the bytes before it.
pub fn check_checksum(datum: &[u8]) -> Result<(), DecodeError> {
    let Some((state, checksum)) = datum.split_last_chunk::<CHECKSUM_SIZE>() else {
        return Err(DecodeError::Truncated { length: datum.len() });
    };
    // blake3::Hash compares in constant time; plain bytes are enough here.
    if blake3::hash(state).as_bytes() == checksum { Ok(()) } else { Err(DecodeError::Checksum) }
}
