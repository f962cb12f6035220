//! The bytes of a block: consecutive records of a transaction in a partition, many to a row of its table.
//!
//! A row costs SQLite about a microsecond, whatever its content, and there are about 100,000 signals per second. Layout
//! per record, integers little endian:
//!
//! ```text
//! timestamp_ns i64, key length + 1 u32 (0: no key), headers length u32 (0: none), value length u32, key, headers, value
//! ```

use super::limits::LARGE_BLOCK_BYTES;
use super::reference::{Placed, Reference};
use super::statistics::Gathered;
use super::{checksum, headers};
use crate::{About, NewRecord, Record};

/// Length in bytes from which the next record begins a new block. Reading one record reads its whole block.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Size of the numbers before a record's key, headers and value, in bytes.
pub(super) const HEAD_BYTES: usize = 20;

/// Records to be appended, as blocks.
#[derive(Default)]
pub(super) struct Blocks(Vec<Block>);

/// A block, stored as one row.
#[derive(Default)]
pub(super) struct Block {
    /// Number of its records.
    pub(super) count: i64,
    pub(super) bytes: Vec<u8>,
    /// Its place in a segment; `None` if its row has the bytes.
    pub(super) placed: Option<Placed>,
    gathered: Gathered,
    /// True if the next record begins a new block.
    is_closed: bool,
}

/// A record as stored in the log.
#[derive(Clone, Copy)]
pub(super) struct StoredRecord<'a> {
    pub(super) offset: i64,
    pub(super) timestamp_ns: i64,
    pub(super) key: Option<&'a [u8]>,
    /// Headers, encoded as in [`headers`]; empty if there are none.
    pub(super) headers: &'a [u8],
    pub(super) value: &'a [u8],
}

impl Blocks {
    pub(super) fn push(&mut self, record: &NewRecord<'_>) {
        let headers = headers::encode(&record.headers).unwrap_or_default();
        let stored = StoredRecord {
            offset: 0,
            timestamp_ns: record.timestamp_ns,
            key: record.key.as_deref(),
            headers: &headers,
            value: &record.value,
        };
        self.push_about(&stored, record.about.as_ref());
    }

    /// Appends a stored record. Its offset is ignored: records are consecutive.
    pub(super) fn push_stored(&mut self, record: &StoredRecord<'_>) {
        self.push_about(record, None);
    }

    /// Begins a block with these statistics of another log, for records that were a block there.
    pub(super) fn begin_described(&mut self, statistics: &[u8]) {
        let gathered = Gathered::Kept(statistics.to_vec());
        self.0.push(Block { gathered, ..Block::default() });
    }

    /// Makes the next record begin a block.
    pub(super) fn end_block(&mut self) {
        if let Some(block) = self.0.last_mut() {
            block.is_closed = true;
        }
    }

    /// Returns true if some block may be stored with statistics.
    pub(super) fn may_have_statistics(&self) -> bool {
        self.0.iter().any(|block| block.gathered.may_fit(block.bytes.len()))
    }

    fn push_about(&mut self, record: &StoredRecord<'_>, about: Option<&About<'_>>) {
        let &StoredRecord { timestamp_ns, key, headers, value, .. } = record;
        let bytes = HEAD_BYTES + key.map_or(0, <[u8]>::len) + headers.len() + value.len();
        match self.0.last() {
            None => self.0.push(Block::default()),
            Some(block) if block.is_full(bytes) => {
                self.0.push(Block { bytes: Vec::with_capacity(BLOCK_BYTES), ..Block::default() });
            }
            Some(_) => {}
        }
        let block = self.0.last_mut().expect("there is one by now");
        block.count += 1;
        block.gathered.add(key, about);
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&timestamp_ns.to_le_bytes());
        let lengths = [key.map_or(0, |key| key.len() + 1), headers.len(), value.len()];
        for (part, length) in head[8..].chunks_exact_mut(4).zip(lengths) {
            // RECORD_BYTES_MAX bounds every part far below 4 GiB.
            let length = u32::try_from(length).expect("a part is smaller than a transaction may be");
            part.copy_from_slice(&length.to_le_bytes());
        }
        for part in [&head, key.unwrap_or_default(), headers, value] {
            block.bytes.extend_from_slice(part);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.0.iter_mut()
    }

    /// Returns the size of all blocks in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|block| block.bytes.len()).sum()
    }
}

impl Block {
    /// Returns true if a record of so many bytes begins another block.
    fn is_full(&self, bytes: usize) -> bool {
        // A block that an attempt to commit has placed stays as it is.
        let is_too_long = self.count > 0 && self.bytes.len() + bytes > BLOCK_BYTES;
        self.placed.is_some() || self.is_closed || is_too_long
    }

    /// Returns its statistics; `None` if too little is known, or if it is too small for them.
    pub(super) fn statistics(&self) -> Option<Vec<u8>> {
        self.gathered.encode(self.bytes.len())
    }

    /// Returns true if a segment should hold the bytes, and none does yet.
    pub(super) fn is_to_be_placed(&self) -> bool {
        self.bytes.len() >= LARGE_BLOCK_BYTES && self.placed.is_none()
    }

    /// Notes the place of the bytes.
    pub(super) fn place(&mut self, segment: u32, position: u64) {
        // A transaction's records bound the length, and one block has one record beyond 64 KiB.
        let length = u32::try_from(self.bytes.len()).expect("a block is smaller than 4 GiB");
        let reference = Reference { segment, position, length };
        self.placed = Some(Placed { reference, content: checksum::of_bytes(&self.bytes) });
    }

    /// Returns the records of the block; the first one gets the offset `first`.
    pub(super) fn records(&self, first: i64) -> impl Iterator<Item = StoredRecord<'_>> {
        Records::new(first, self.count, &self.bytes).map(|stored| stored.expect("it was made a moment ago"))
    }
}

impl StoredRecord<'_> {
    /// Converts to a record; returns the fault if the headers are damaged.
    pub(super) fn to_record(self) -> Result<Record, String> {
        Ok(Record {
            offset: self.offset,
            timestamp_ns: self.timestamp_ns,
            key: self.key.map(<[u8]>::to_vec),
            headers: headers::decode(self.headers)?,
            value: self.value.to_vec(),
        })
    }
}

/// The records of a block, up to the first damaged one.
#[derive(Clone)]
pub(super) struct Records<'a> {
    /// Number of records in the whole block.
    count: i64,
    /// Offset of the next record.
    pub(super) next_offset: i64,
    /// Number of remaining records.
    pub(super) left: i64,
    /// Bytes of the remaining records.
    pub(super) bytes: &'a [u8],
}

impl<'a> Records<'a> {
    /// Reads `count` records from a block's bytes; the first of them has the offset `first`.
    pub(super) fn new(first: i64, count: i64, bytes: &'a [u8]) -> Self {
        Self { count, next_offset: first, left: count, bytes }
    }

    fn end(&mut self, found: String) -> Option<Result<StoredRecord<'a>, String>> {
        (self.left, self.bytes) = (0, &[]);
        Some(Err(found))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<StoredRecord<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let &mut Self { count, left, .. } = self;
        match (left, self.bytes.is_empty()) {
            (..=0, true) => None,
            (..=0, false) => self.end(format!("a block of {count} records that holds more")),
            (_, true) => self.end(format!("a block of {count} records that holds {left} records less")),
            _ => {
                let Some((stored, rest)) = take(self.next_offset, self.bytes) else {
                    return self.end("a block that ends too early".to_owned());
                };
                (self.next_offset, self.left, self.bytes) = (self.next_offset + 1, left - 1, rest);
                Some(Ok(stored))
            }
        }
    }
}

fn take(offset: i64, bytes: &[u8]) -> Option<(StoredRecord<'_>, &[u8])> {
    let (timestamp, bytes) = bytes.split_first_chunk::<8>()?;
    let (key, bytes) = bytes.split_first_chunk::<4>()?;
    let (headers, bytes) = bytes.split_first_chunk::<4>()?;
    let (value, bytes) = bytes.split_first_chunk::<4>()?;
    let [key, headers, value] =
        [key, headers, value].map(|length| usize::try_from(u32::from_le_bytes(*length)).ok());
    let (key, bytes) = match key? {
        0 => (None, bytes),
        length => {
            let (key, bytes) = bytes.split_at_checked(length - 1)?;
            (Some(key), bytes)
        }
    };
    let (headers, bytes) = bytes.split_at_checked(headers?)?;
    let (value, rest) = bytes.split_at_checked(value?)?;
    Some((StoredRecord { offset, timestamp_ns: i64::from_le_bytes(*timestamp), key, headers, value }, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(first: i64, block: &Block, bytes: &[u8]) -> Result<Vec<Record>, String> {
        Records::new(first, block.count, bytes).map(|stored| stored?.to_record()).collect()
    }

    proptest! {
        #[test]
        fn any_records_survive(
            parts in prop::collection::vec(
                (any::<i64>(), prop::option::of(prop::collection::vec(any::<u8>(), 0..4)), 0..2_usize, 0..40_000_usize),
                1..20,
            ),
        ) {
            let mut blocks = Blocks::default();
            for (timestamp_ns, key, headers, length) in &parts {
                let headers = vec![("name".to_owned(), vec![7]); *headers];
                blocks.push(&NewRecord {
                    key: key.as_deref().map(Into::into),
                    headers: headers.into(),
                    timestamp_ns: *timestamp_ns,
                    value: vec![1; *length].into(),
                    ..NewRecord::default()
                });
            }
            let mut read_back = Vec::new();
            for block in blocks.iter() {
                prop_assert!(block.count == 1 || block.bytes.len() <= BLOCK_BYTES);
                read_back.extend(read(read_back.len() as i64, block, &block.bytes).unwrap());
            }
            prop_assert_eq!(read_back.len(), parts.len());
            for (at, (record, (timestamp_ns, key, headers, length))) in read_back.iter().zip(&parts).enumerate() {
                prop_assert_eq!(record.offset, at as i64);
                prop_assert_eq!(record.timestamp_ns, *timestamp_ns);
                prop_assert_eq!(&record.key, key);
                prop_assert_eq!(record.headers.len(), *headers);
                prop_assert_eq!(&record.value, &vec![1; *length]);
            }
        }
    }

    #[test]
    fn a_placed_block_gets_no_more_records() {
        let mut blocks = Blocks::default();
        let record = || NewRecord { value: vec![1; 5_000].into(), ..NewRecord::default() };
        blocks.push(&record());
        blocks.iter_mut().for_each(|block| block.place(1, 24));
        blocks.push(&record());
        let placed = blocks.iter().map(|block| (block.count, block.placed.is_some()));
        assert_eq!(placed.collect::<Vec<_>>(), [(1, true), (1, false)]);
    }

    #[test]
    fn every_cut_and_every_wrong_count_is_noticed() {
        let mut blocks = Blocks::default();
        for value in [b"one".as_slice(), b"", b"three"] {
            blocks.push(&NewRecord { key: Some(b"k".into()), value: value.into(), ..NewRecord::default() });
        }
        let block = &blocks.0[0];
        assert_eq!(read(7, block, &block.bytes).unwrap().last().unwrap().offset, 9);
        for length in 0..block.bytes.len() {
            read(7, block, &block.bytes[..length]).expect_err("a cut block was read");
        }
        for count in [-1, 0, 2, 4] {
            let wrong = Block { count, bytes: block.bytes.clone(), ..Block::default() };
            read(7, &wrong, &wrong.bytes).expect_err("a block of another count was read");
        }
    }
}
