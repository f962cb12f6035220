//! Statistics of a block: the range of its records' times, and a filter of their keys. Readers skip blocks by them.
//! A skipped block in a segment is not read.
//!
//! A row with statistics has a negative count of records, and these bytes before its block or reference, integers
//! little endian:
//!
//! ```text
//! length of statistics u16, check u32, statistics: least time i64, greatest time i64, filter of keys
//! ```
//!
//! The filter is a Bloom filter in which a key sets [`BITS`] bits. An empty one contains every key. A reader that skips a block
//! cannot verify the row's checksum, which covers the block. So `check` covers the statistics and the row's place.

use xxhash_rust::xxh3::xxh3_64;

use super::checksum;
use super::reference::REFERENCE_BYTES;
use crate::{About, Selection};

/// Bytes before the statistics. Below: of the times.
const HEAD_BYTES: usize = 6;
const TIMES_BYTES: usize = 16;
/// Largest filter in bytes. Below: least size of a filter of few keys, if the block has room for it.
const FILTER_BYTES_MAX: usize = 1 << 10;
const FILTER_BYTES_MIN: usize = 4;
/// Statistics take at most this fraction of their block.
const BLOCK_SHARE: usize = 50;
/// Bits of a filter per key: about 1 of 100 other keys seems to be in it. Below: least bits of a smaller filter.
const BITS_PER_KEY: usize = 10;
const BITS_PER_KEY_MIN: usize = 5;
/// Number of bits that a key sets. Below: factor between the hashes that choose them, 2^64 over the golden ratio.
const BITS: usize = 6;
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Most bytes of a row with statistics that refers to a segment.
pub(super) const REFERENCE_BYTES_MAX: usize = HEAD_BYTES + TIMES_BYTES + FILTER_BYTES_MAX + REFERENCE_BYTES;
/// Least bytes of a row with statistics and a block. So the length tells both kinds of rows apart.
const BLOCK_BYTES_MIN: usize = BLOCK_SHARE * (HEAD_BYTES + TIMES_BYTES);
const _: () = assert!(REFERENCE_BYTES_MAX < BLOCK_BYTES_MIN);

/// Knowledge about the records of a block under construction.
#[derive(Default)]
pub(super) enum Gathered {
    /// There is no record yet.
    #[default]
    Empty,
    /// Every record was described.
    Known { least_ns: i64, greatest_ns: i64, keys: Vec<u64> },
    /// Statistics that the block had in another log.
    Kept(Vec<u8>),
    /// A record was not described.
    Unknown,
}

impl Gathered {
    /// Adds a record with its own key.
    pub(super) fn add(&mut self, own: Option<&[u8]>, about: Option<&About<'_>>) {
        if matches!(self, Self::Kept(_)) {
            return;
        }
        let Some(about) = about.filter(|_| !matches!(self, Self::Unknown)) else {
            *self = Self::Unknown;
            return;
        };
        if matches!(self, Self::Empty) {
            *self = Self::Known { least_ns: i64::MAX, greatest_ns: i64::MIN, keys: Vec::new() };
        }
        let Self::Known { least_ns, greatest_ns, keys } = self else { return };
        *least_ns = about.least_ns.min(*least_ns);
        *greatest_ns = about.greatest_ns.max(*greatest_ns);
        for key in own.into_iter().chain(about.keys.iter().map(AsRef::as_ref)) {
            keys.push(xxh3_64(key));
        }
    }

    /// Returns the statistics for a block of so many bytes; `None` if too little is known or the block is too small.
    pub(super) fn encode(&self, block_bytes: usize) -> Option<Vec<u8>> {
        let filter_bytes_max = room_for_filter(block_bytes)?;
        match self {
            Self::Empty | Self::Unknown => None,
            Self::Kept(statistics) => {
                (statistics.len() <= TIMES_BYTES + filter_bytes_max).then(|| statistics.clone())
            }
            Self::Known { least_ns, greatest_ns, keys } => {
                let mut bytes = [least_ns.to_le_bytes(), greatest_ns.to_le_bytes()].concat();
                bytes.extend(filter_of(keys.clone(), filter_bytes_max));
                Some(bytes)
            }
        }
    }

    /// Returns true if a block of so many bytes may get statistics.
    pub(super) fn may_fit(&self, block_bytes: usize) -> bool {
        matches!(self, Self::Known { .. } | Self::Kept(_)) && room_for_filter(block_bytes).is_some()
    }
}

/// Returns the size of the largest filter of a block; `None` if the block is too small for statistics.
fn room_for_filter(block_bytes: usize) -> Option<usize> {
    let room = (block_bytes / BLOCK_SHARE).checked_sub(HEAD_BYTES + TIMES_BYTES)?;
    Some(room.min(FILTER_BYTES_MAX))
}

/// Returns the filter of these hashes of keys; empty if it would be larger than `bytes_max`.
fn filter_of(mut keys: Vec<u64>, bytes_max: usize) -> Vec<u8> {
    keys.sort_unstable();
    keys.dedup();
    // A filter of no key is not empty, because an empty one contains all.
    let bytes_min = if keys.is_empty() { 1 } else { FILTER_BYTES_MIN };
    let bytes = (keys.len() * BITS_PER_KEY).div_ceil(8).max(bytes_min).min(bytes_max);
    if bytes * 8 < keys.len() * BITS_PER_KEY_MIN {
        return Vec::new();
    }
    let mut filter = vec![0; bytes];
    for (byte, bit) in keys.into_iter().flat_map(|key| places(key, bytes)) {
        filter[byte] |= bit;
    }
    filter
}

/// Returns the bits of a key: index of the byte, and mask.
fn places(key: u64, filter_bytes: usize) -> impl Iterator<Item = (usize, u8)> {
    let bits = filter_bytes as u64 * 8;
    // The high half of each product depends on all bits of the key's hash.
    let products = std::iter::successors(Some(key), |product| Some(product.wrapping_mul(FACTOR)));
    products.skip(1).take(BITS).map(move |product| {
        let bit = ((product >> 32) * bits) >> 32;
        ((bit / 8) as usize, 1 << (bit % 8))
    })
}

/// The content of a row: the number of its records, its statistics if it has some, and the block or the reference.
pub(super) struct Content<'a> {
    pub(super) count: i64,
    pub(super) statistics: Option<Statistics<'a>>,
    pub(super) block: &'a [u8],
}

/// The statistics of a row.
#[derive(Clone, Copy)]
pub(super) struct Statistics<'a> {
    check: u32,
    /// Times and filter.
    pub(super) bytes: &'a [u8],
}

impl<'a> Content<'a> {
    /// Reads the columns of a row, or returns the fault.
    pub(super) fn of(count: i64, stored: &'a [u8]) -> Result<Self, String> {
        if count >= 0 {
            return Ok(Self { count, statistics: None, block: stored });
        }
        let split = || {
            let (length, rest) = stored.split_first_chunk::<2>()?;
            let (check, rest) = rest.split_first_chunk::<4>()?;
            let (bytes, block) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
            let is_long_enough = bytes.len() >= TIMES_BYTES;
            is_long_enough.then_some((Statistics { check: u32::from_le_bytes(*check), bytes }, block))
        };
        let (statistics, block) = split().ok_or("statistics of a block that end too early")?;
        let count = count.checked_neg().ok_or("a row without a number of records")?;
        Ok(Self { count, statistics: Some(statistics), block })
    }
}

impl Statistics<'_> {
    /// Returns true if these statistics belong to the row at this place.
    pub(super) fn is_intact(&self, topic_id: i64, partition: i32, offset: i64, count: i64) -> bool {
        self.check == checksum::of_statistics(topic_id, partition, offset, count, self.bytes)
    }

    /// Returns true unless no record of the block is selected.
    pub(super) fn may_have(&self, selection: &Selection) -> bool {
        let time = |at: usize| self.bytes[at..].first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
        selection.takes_times(time(0), time(8))
            && selection.key.as_deref().is_none_or(|key| self.may_have_key(key))
    }

    fn may_have_key(&self, key: &[u8]) -> bool {
        let filter = &self.bytes[TIMES_BYTES..];
        filter.is_empty() || places(xxh3_64(key), filter.len()).all(|(byte, bit)| filter[byte] & bit != 0)
    }
}

/// Returns the bytes before the block or the reference of a row with statistics.
pub(super) fn head(topic_id: i64, partition: i32, offset: i64, count: i64, statistics: &[u8]) -> Vec<u8> {
    let length = u16::try_from(statistics.len()).expect("a filter has a largest size");
    let check = checksum::of_statistics(topic_id, partition, offset, count, statistics);
    [&length.to_le_bytes()[..], &check.to_le_bytes(), statistics].concat()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    /// A large block.
    const BYTES: usize = 64 << 10;

    fn about<'a>(keys: &[&'a str], times: (i64, i64)) -> About<'a> {
        let keys = keys.iter().map(|key| Cow::Borrowed(key.as_bytes())).collect();
        About { keys, least_ns: times.0, greatest_ns: times.1 }
    }

    fn selection(key: Option<&str>, since_ns: Option<i64>, until_ns: Option<i64>) -> Selection {
        let key = key.map(|key| key.as_bytes().to_vec());
        Selection { key, since_ns, until_ns, ..Selection::default() }
    }

    fn may_have(statistics: &[u8], selection: &Selection) -> bool {
        Statistics { check: 0, bytes: statistics }.may_have(selection)
    }

    #[test]
    fn times_and_keys_of_all_records_count() {
        let mut gathered = Gathered::default();
        assert_eq!(gathered.encode(BYTES), None);
        gathered.add(Some(b"own"), Some(&about(&["a", "b"], (5, 7))));
        gathered.add(None, Some(&about(&[], (-3, -3))));
        let statistics = gathered.encode(BYTES).unwrap();
        for key in ["own", "a", "b"] {
            assert!(may_have(&statistics, &selection(Some(key), None, None)), "{key}");
        }
        assert!(!may_have(&statistics, &selection(Some("c"), None, None)));
        for (since_ns, until_ns, expected) in [
            (None, None, true),
            (Some(7), None, true),
            (Some(8), None, false),
            (None, Some(-2), true),
            (None, Some(-3), false),
            (Some(0), Some(4), true),
        ] {
            let found = may_have(&statistics, &selection(None, since_ns, until_ns));
            assert_eq!(found, expected, "{since_ns:?} to {until_ns:?}");
        }
        // One record without a description, and nothing is known.
        gathered.add(Some(b"own"), None);
        gathered.add(None, Some(&About::at(1)));
        assert_eq!(gathered.encode(BYTES), None);
    }

    #[test]
    fn a_filter_has_every_key_few_others_and_a_largest_size() {
        let name = |number: usize| format!("V:{number}");
        for (keys, block_bytes, others_max) in
            [(0, BYTES, 0), (1, BYTES, 100), (125, BYTES, 100), (800, BYTES, 200), (125, 6_000, 1_000)]
        {
            let mut gathered = Gathered::default();
            gathered.add(None, Some(&About::at(1)));
            (0..keys).for_each(|key| gathered.add(Some(name(key).as_bytes()), Some(&About::at(1))));
            let statistics = gathered.encode(block_bytes).unwrap();
            assert!(statistics.len() + HEAD_BYTES <= block_bytes / BLOCK_SHARE, "{keys} keys");
            let has = |key| may_have(&statistics, &selection(Some(&name(key)), None, None));
            assert!((0..keys).all(has), "{keys} keys");
            let others = (keys..keys + 5_000).filter(|key| has(*key)).count();
            assert!(others <= others_max, "{others} of 5000 other keys are in a filter of {keys}");
        }
        let mut gathered = Gathered::default();
        (0..3_000).for_each(|key| gathered.add(Some(name(key).as_bytes()), Some(&About::at(1))));
        let statistics = gathered.encode(BYTES).unwrap();
        assert_eq!(statistics.len(), TIMES_BYTES, "too many keys");
        assert!(may_have(&statistics, &selection(Some("any"), None, None)));
        assert_eq!(gathered.encode(BLOCK_BYTES_MIN - 1), None);
        assert!(gathered.encode(BLOCK_BYTES_MIN).is_some());
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let mut gathered = Gathered::default();
        gathered.add(Some(b"k"), Some(&About::at(9)));
        let statistics = gathered.encode(BYTES).unwrap();
        let stored = [head(1, 2, 3, 4, &statistics), b"block".to_vec()].concat();
        let content = Content::of(-4, &stored).unwrap();
        let found = content.statistics.unwrap();
        assert_eq!((content.count, content.block, found.bytes), (4, &b"block"[..], &*statistics));
        assert!(found.is_intact(1, 2, 3, 4));
        for (topic_id, partition, offset, count) in [(2, 2, 3, 4), (1, 3, 3, 4), (1, 2, 4, 4), (1, 2, 3, 5)] {
            assert!(!found.is_intact(topic_id, partition, offset, count));
        }
        for length in 0..HEAD_BYTES + TIMES_BYTES {
            Content::of(-4, &stored[..length]).err().expect("cut statistics were read");
        }
        Content::of(i64::MIN, &stored).err().expect("a count that has no opposite was read");
        assert!(Content::of(4, b"block").unwrap().statistics.is_none());
    }

    /// Filters are stored in files, so the bits of a key never change.
    #[test]
    fn filters_stay_what_they_are() {
        assert_eq!(filter_of(vec![xxh3_64(b"V:A"), xxh3_64(b"V:B")], 100), [10, 69, 49, 36]);
    }
}
