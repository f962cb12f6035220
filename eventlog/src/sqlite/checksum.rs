//! Checksums of the tables' rows: XXH3 of a row's content and place, so that moved rows are detected as well as changed
//! ones.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::block::StoredRecord;

/// Kind of a row's content. Its numbers are part of stored checksums, so they never change.
#[derive(Clone, Copy)]
enum StoredKind {
    Block = 1,
    Record = 2,
    Topic = 3,
    End = 4,
    Committed = 5,
    GivenUp = 6,
    Placed = 7,
    Segment = 8,
    Statistics = 9,
}

/// Returns a hash of a row's numbers, which seeds the hash of its bytes.
fn seed<const N: usize>(kind: StoredKind, numbers: [i64; N]) -> u64 {
    const NUMBERS_MAX: usize = 8;
    const { assert!(N < NUMBERS_MAX) };
    let mut bytes = [0; NUMBERS_MAX * 8];
    let all = std::iter::once(kind as i64).chain(numbers);
    for (part, number) in bytes.chunks_exact_mut(8).zip(all) {
        part.copy_from_slice(&number.to_le_bytes());
    }
    xxh3_64(&bytes[..(N + 1) * 8])
}

/// Converts a hash for a column of SQLite: the same bits, signed.
fn column(hash: u64) -> i64 {
    hash.cast_signed()
}

fn length(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).expect("what is in memory is shorter")
}

/// Returns the checksum of a block whose first record has this offset.
pub(super) fn of_block(topic_id: i64, partition: i32, offset: i64, count: i64, bytes: &[u8]) -> i64 {
    column(xxh3_64_with_seed(bytes, seed(StoredKind::Block, [topic_id, partition.into(), offset, count])))
}

/// Returns the checksum of the row of a block in a segment: of its reference, and of its content by that one's hash.
pub(super) fn of_placed(
    topic_id: i64,
    partition: i32,
    offset: i64,
    count: i64,
    reference: &[u8],
    content: u64,
) -> i64 {
    let numbers = [topic_id, partition.into(), offset, count, content.cast_signed()];
    column(xxh3_64_with_seed(reference, seed(StoredKind::Placed, numbers)))
}

/// Returns the check of a block's statistics, which are used without the block.
pub(super) fn of_statistics(
    topic_id: i64,
    partition: i32,
    offset: i64,
    count: i64,
    statistics: &[u8],
) -> u32 {
    let seed = seed(StoredKind::Statistics, [topic_id, partition.into(), offset, count]);
    // The low half of a good hash is a good hash.
    (xxh3_64_with_seed(statistics, seed) & u64::from(u32::MAX)) as u32
}

/// Returns the checksum of a segment's row.
pub(super) fn of_segment(number: u32, topic_id: i64, rows: i64, bytes: i64) -> i64 {
    column(seed(StoredKind::Segment, [number.into(), topic_id, rows, bytes]))
}

/// Returns the checksum of a record in a row of its own.
pub(super) fn of_record(topic_id: i64, partition: i32, record: &StoredRecord<'_>) -> i64 {
    let key = record.key.unwrap_or_default();
    // A missing key differs from an empty one.
    let key_length = record.key.map_or(-1, length);
    let seed = seed(
        StoredKind::Record,
        [topic_id, partition.into(), record.offset, record.timestamp_ns, key_length, length(record.headers)],
    );
    let parts = [key, record.headers, record.value];
    column(parts.into_iter().fold(seed, |seed, part| xxh3_64_with_seed(part, seed)))
}

/// Returns the checksum of a topic's row.
pub(super) fn of_topic(topic_id: i64, name: &str, partitions: i32, compacted: bool) -> i64 {
    let seed = seed(StoredKind::Topic, [topic_id, partitions.into(), compacted.into()]);
    column(xxh3_64_with_seed(name.as_bytes(), seed))
}

/// Returns the checksum of the row with a partition's end.
pub(super) fn of_end(topic_id: i64, partition: i32, next: i64, rows: i64) -> i64 {
    column(seed(StoredKind::End, [topic_id, partition.into(), next, rows]))
}

/// Returns the checksum of a group's committed offset.
pub(super) fn of_committed(group: &str, topic_id: i64, partition: i32, next: i64) -> i64 {
    let seed = seed(StoredKind::Committed, [topic_id, partition.into(), next]);
    column(xxh3_64_with_seed(group.as_bytes(), seed))
}

/// Returns the checksum of a range of given-up offsets.
pub(super) fn of_given_up(topic_id: i64, partition: i32, first: i64, next: i64) -> i64 {
    column(seed(StoredKind::GivenUp, [topic_id, partition.into(), first, next]))
}

/// Returns the hash of bytes alone: of a part of the head file, or of the content of a block in a segment.
pub(super) fn of_bytes(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksums are stored in files. If their results changed, every existing log would count as damaged.
    #[test]
    fn checksums_stay_what_they_are() {
        let record = StoredRecord {
            offset: 7,
            timestamp_ns: -1,
            key: Some(b"key"),
            headers: b"headers",
            value: b"value",
        };
        let found = [
            of_block(1, 2, 3, 4, b"block"),
            of_record(1, 2, &record),
            of_topic(1, "ticks", 4, false),
            of_end(1, 2, 3, 4),
            of_committed("group", 1, 2, 3),
            of_given_up(1, 2, 3, 4),
            of_placed(1, 2, 3, 4, b"reference", 5),
            of_segment(1, 2, 3, 4),
            of_statistics(1, 2, 3, 4, b"statistics").into(),
        ];
        let expected = [
            3_448_885_943_173_391_598,
            -2_467_938_527_288_567_143,
            -1_194_437_214_541_524_209,
            -1_671_418_143_769_822_341,
            -960_410_550_038_895_996,
            -4_703_616_617_949_654_131,
            9_212_459_633_706_218_217,
            -8_960_651_052_897_871_790,
            958_874_452,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn every_part_counts() {
        let record = |offset, timestamp_ns, key, headers, value| StoredRecord {
            offset,
            timestamp_ns,
            key,
            headers,
            value,
        };
        let sums = [
            of_record(1, 2, &record(3, 4, Some(b"k"), b"h", b"v")),
            of_record(2, 2, &record(3, 4, Some(b"k"), b"h", b"v")),
            of_record(1, 3, &record(3, 4, Some(b"k"), b"h", b"v")),
            of_record(1, 2, &record(4, 4, Some(b"k"), b"h", b"v")),
            of_record(1, 2, &record(3, 5, Some(b"k"), b"h", b"v")),
            of_record(1, 2, &record(3, 4, Some(b""), b"h", b"v")),
            of_record(1, 2, &record(3, 4, None, b"h", b"v")),
            of_record(1, 2, &record(3, 4, Some(b"kh"), b"", b"v")),
            of_record(1, 2, &record(3, 4, Some(b"k"), b"", b"hv")),
            of_block(1, 2, 3, 4, b"v"),
            of_block(1, 2, 4, 4, b"v"),
            of_block(1, 2, 3, 5, b"v"),
            of_end(1, 2, 3, 4),
            of_given_up(1, 2, 3, 4),
            of_segment(1, 2, 3, 4),
            of_placed(1, 2, 3, 4, b"v", 5),
            of_placed(1, 2, 3, 4, b"v", 6),
            of_placed(1, 2, 3, 4, b"w", 5),
            of_placed(1, 2, 3, 5, b"v", 5),
            of_statistics(1, 2, 3, 4, b"v").into(),
            of_statistics(1, 2, 3, 5, b"v").into(),
        ];
        let mut unique = sums.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), sums.len(), "{sums:?}");
    }
}
