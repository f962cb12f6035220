//! The reference to a block in a segment, which a row has in place of the block's bytes.
//!
//! A reference is shorter than any block, so its length tells them apart. Integers are little endian:
//!
//! ```text
//! segment u32, position u64, length u32
//! ```

use super::block::HEAD_BYTES;

/// Size of a reference.
pub(super) const REFERENCE_BYTES: usize = 16;
const _: () = assert!(REFERENCE_BYTES < HEAD_BYTES, "a block has a record at least");

/// The place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Number of the segment.
    pub(super) segment: u32,
    /// First byte of the block in the segment's file.
    pub(super) position: u64,
    /// Length of the block in bytes.
    pub(super) length: u32,
}

/// The place of a block to be appended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) reference: Reference,
    /// Hash of the block's bytes.
    pub(super) content: u64,
}

impl Reference {
    pub(super) fn encode(&self) -> [u8; REFERENCE_BYTES] {
        let mut bytes = [0; REFERENCE_BYTES];
        bytes[..4].copy_from_slice(&self.segment.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.position.to_le_bytes());
        bytes[12..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads a reference; `None` if these are the bytes of a block.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (segment, rest) = bytes.split_first_chunk::<4>()?;
        let (position, rest) = rest.split_first_chunk::<8>()?;
        Some(Self {
            segment: u32::from_le_bytes(*segment),
            position: u64::from_le_bytes(*position),
            length: u32::from_le_bytes(rest.try_into().ok()?),
        })
    }

    /// Returns the position after the block.
    pub(super) fn end(&self) -> u64 {
        self.position.saturating_add(self.length.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_survives_and_a_block_is_none() {
        let reference = Reference { segment: 7, position: u64::MAX - 1, length: 3 };
        assert_eq!(Reference::decode(&reference.encode()), Some(reference));
        assert_eq!(reference.end(), u64::MAX);
        for length in (0..40).filter(|length| *length != REFERENCE_BYTES) {
            assert_eq!(Reference::decode(&vec![1; length]), None, "{length} bytes");
        }
    }
}
