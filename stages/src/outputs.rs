//! Encoded signals and their canonical order.
//!
//! Lanes finish groups in any order. A partition's signals are written in the order of their causes, so that the
//! topic's bytes do not depend on lanes or batches.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// The sort key of a signal within its partition. All signals of a partition have different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SignalKey {
    /// Offset of the record that caused it.
    pub offset: i64,
    /// Row within that record.
    pub index: u32,
    /// Number of the symbol in its partition.
    pub symbol: u32,
    /// Index of the bar specification in the configuration.
    pub spec: u16,
    /// Start of the bar.
    pub bar_start_ns: i64,
    /// Kind of signal, as numbered in the schema.
    pub kind: u8,
    /// Number among the alerts and faults of formulas at the bar; 0 for other kinds.
    pub number: u16,
}

/// Encoded signals of one group, by ascending key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalChunk {
    keys: Vec<SignalKey>,
    /// Ends of each signal's symbol and of its record in `bytes`.
    ends: Vec<[usize; 2]>,
    bytes: Vec<u8>,
}

/// An encoded signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalRef<'a> {
    /// Its place in the order.
    pub key: SignalKey,
    /// Its symbol, UTF-8.
    pub symbol: &'a [u8],
    /// The encoded record.
    pub bytes: &'a [u8],
}

impl SignalChunk {
    /// Adds a signal, whose bytes `encode` appends. Keys must ascend.
    pub fn push(&mut self, key: SignalKey, symbol: &str, encode: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.keys.last().is_none_or(|last| *last < key), "keys ascend");
        self.keys.push(key);
        self.bytes.extend_from_slice(symbol.as_bytes());
        let symbol_end = self.bytes.len();
        encode(&mut self.bytes);
        self.ends.push([symbol_end, self.bytes.len()]);
    }

    /// Number of signals.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Bytes of some signals, with their symbols.
    fn bytes_of(&self, range: Range<usize>) -> usize {
        let end = |index: usize| if index == 0 { 0 } else { self.ends[index - 1][1] };
        end(range.end) - end(range.start)
    }

    /// The signal at `index`.
    pub fn get(&self, index: usize) -> SignalRef<'_> {
        let start = if index == 0 { 0 } else { self.ends[index - 1][1] };
        let [symbol_end, end] = self.ends[index];
        let (symbol, bytes) = (&self.bytes[start..symbol_end], &self.bytes[symbol_end..end]);
        SignalRef { key: self.keys[index], symbol, bytes }
    }
}

/// Signals of one partition that wait for their records to be complete.
#[derive(Debug, Default)]
pub struct SignalMerge {
    chunks: VecDeque<Waiting>,
    len: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    chunk: Arc<SignalChunk>,
    /// Index of the first signal that was not taken.
    next: usize,
}

impl SignalMerge {
    /// Adds the signals of a group.
    pub fn push(&mut self, chunk: SignalChunk) {
        if !chunk.is_empty() {
            self.len += chunk.len();
            self.bytes += chunk.bytes.len();
            self.chunks.push_back(Waiting { chunk: Arc::new(chunk), next: 0 });
        }
    }

    /// Signals that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if no signal waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the signals that wait, with their symbols.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds up the waiting bytes by the offset of the record that caused them.
    pub fn bytes_by_offset(&self, sizes: &mut BTreeMap<i64, usize>) {
        for waiting in &self.chunks {
            for index in waiting.next..waiting.chunk.len() {
                let offset = waiting.chunk.keys[index].offset;
                *sizes.entry(offset).or_default() += waiting.chunk.bytes_of(index..index + 1);
            }
        }
    }

    /// Offset of the first record whose signals wait; `None` if none wait.
    pub fn first_offset(&self) -> Option<i64> {
        self.chunks.iter().map(|waiting| waiting.chunk.keys[waiting.next].offset).min()
    }

    /// Takes all signals caused by records before `offset`.
    pub fn take_before(&mut self, offset: i64) -> MergedSignals {
        let mut merged = MergedSignals::default();
        for waiting in &mut self.chunks {
            let keys = &waiting.chunk.keys;
            let end = waiting.next + keys[waiting.next..].partition_point(|key| key.offset < offset);
            if end == waiting.next {
                continue;
            }
            let place = |index| ChunkPlace { chunk: merged.chunks.len() as u32, index: index as u32 };
            merged.order.extend((waiting.next..end).map(|index| (keys[index], place(index))));
            self.bytes -= waiting.chunk.bytes_of(waiting.next..end);
            waiting.next = end;
            merged.chunks.push(Arc::clone(&waiting.chunk));
        }
        self.len -= merged.order.len();
        self.chunks.retain(|waiting| waiting.next < waiting.chunk.len());
        // Each chunk is a sorted run; a stable sort finds the runs and merges them.
        merged.order.sort_by_key(|&(key, _)| key);
        merged
    }
}

/// Signals in their order, still in the chunks that the lanes encoded.
#[derive(Clone, Debug, Default)]
pub struct MergedSignals {
    chunks: Vec<Arc<SignalChunk>>,
    order: Vec<(SignalKey, ChunkPlace)>,
}

/// The place of a signal.
#[derive(Clone, Copy, Debug)]
struct ChunkPlace {
    chunk: u32,
    index: u32,
}

impl MergedSignals {
    /// Number of signals.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Drops the signals caused by records before `offset`.
    pub fn skip_before(&mut self, offset: i64) {
        let count = self.order.partition_point(|(key, _)| key.offset < offset);
        self.order.drain(..count);
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = SignalKey> {
        self.order.iter().map(|&(key, _)| key)
    }

    /// The signals in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SignalRef<'_>> {
        self.order.iter().map(|(_, place)| self.chunks[place.chunk as usize].get(place.index as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(offset: i64, symbol: u32) -> SignalKey {
        SignalKey { offset, index: 0, symbol, spec: 0, bar_start_ns: 0, kind: 0, number: 0 }
    }

    fn chunk(keys: &[(i64, u32)]) -> SignalChunk {
        let mut chunk = SignalChunk::default();
        for &(offset, symbol) in keys {
            chunk.push(key(offset, symbol), "S", |bytes| bytes.push(offset as u8 * 10 + symbol as u8));
        }
        chunk
    }

    #[test]
    fn signals_come_in_order_of_cause_and_only_of_complete_records() {
        let mut merge = SignalMerge::default();
        merge.push(chunk(&[(1, 0), (3, 0), (5, 0)]));
        merge.push(chunk(&[(1, 1), (2, 1), (4, 1)]));
        let taken =
            |signals: &MergedSignals| -> Vec<u8> { signals.iter().map(|signal| signal.bytes[0]).collect() };
        let mut signals = merge.take_before(4);
        assert_eq!(taken(&signals), [10, 11, 21, 30]);
        signals.skip_before(2);
        assert_eq!(taken(&signals), [21, 30]);
        assert_eq!((merge.len(), merge.bytes()), (2, 4));
        merge.push(chunk(&[(4, 0)]));
        assert_eq!(taken(&merge.take_before(i64::MAX)), [40, 41, 50]);
        assert_eq!((merge.len(), merge.bytes()), (0, 0));
    }
}
