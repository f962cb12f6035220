//! The digest of tick records: computed in one place, for the run and for its replay.

use warptape_record::Record;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Contribution of a record to the digest of its partition, which is their sum modulo 2^64. It is a function of offset,
/// key and value, as `SealedPartition::ticks_digest` of the journal specifies.
pub fn tick_record_digest(record: &Record) -> u64 {
    let key = record.key.as_deref().map_or(0, xxh3_64);
    xxh3_64_with_seed(&record.value, key.wrapping_add(record.offset.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_a_tick_record_is_counts() {
        let record = |offset, key: Option<&[u8]>, value: &[u8]| {
            let (headers, timestamp_ns) = (Vec::new(), 0);
            let (key, value) = (key.map(<[u8]>::to_vec), value.to_vec());
            tick_record_digest(&Record { offset, key, headers, timestamp_ns, value })
        };
        let digests = [
            record(5, None, b"tick"),
            record(6, None, b"tick"),
            record(5, Some(b""), b"tick"),
            record(5, Some(b"A:X"), b"tick"),
            record(5, None, b"tock"),
        ];
        for (index, digest) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(digest), "{index}");
        }
        // Journals hold the digest, so it must not change.
        assert_eq!(record(0, None, b""), 0x2d06_8005_38d3_94c2);
    }
}
