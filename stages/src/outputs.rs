//! Encoded signals and their one true order.
//!
//! Lanes finish groups in any order; a partition's signals are put back into the order of their causes before they are
//! written, so that the topic's bytes say nothing about lanes or batches.

use std::collections::{BTreeMap, VecDeque};

/// What orders a signal within its partition. No two signals of a partition have equal keys.
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
}

/// Encoded signals of one group, by ascending key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignalChunk {
    keys: Vec<SignalKey>,
    /// End of each signal's bytes.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl SignalChunk {
    /// Adds a signal, whose bytes `encode` appends. Keys must ascend.
    pub fn push(&mut self, key: SignalKey, encode: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(self.keys.last().is_none_or(|last| *last < key), "keys ascend");
        self.keys.push(key);
        encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Number of signals.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The signal at `index`.
    pub fn get(&self, index: usize) -> (SignalKey, &[u8]) {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        (self.keys[index], &self.bytes[start..self.ends[index]])
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
    chunk: SignalChunk,
    /// Signals before this one were taken.
    next: usize,
}

impl SignalMerge {
    /// Adds what a group emitted.
    pub fn push(&mut self, chunk: SignalChunk) {
        if !chunk.is_empty() {
            self.len += chunk.len();
            self.bytes += chunk.bytes.len();
            self.chunks.push_back(Waiting { chunk, next: 0 });
        }
    }

    /// Signals that wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the signals that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the bytes that wait by the offset that caused them.
    pub fn bytes_by_offset(&self, sizes: &mut BTreeMap<i64, usize>) {
        for waiting in &self.chunks {
            for index in waiting.next..waiting.chunk.len() {
                let (key, bytes) = waiting.chunk.get(index);
                *sizes.entry(key.offset).or_default() += bytes.len();
            }
        }
    }

    /// Gives all signals caused by records before `offset` to `take`, in order.
    pub fn take_before(&mut self, offset: i64, mut take: impl FnMut(SignalKey, &[u8])) {
        let mut order = Vec::new();
        for (position, waiting) in self.chunks.iter_mut().enumerate() {
            let keys = &waiting.chunk.keys;
            let count = keys[waiting.next..].partition_point(|key| key.offset < offset);
            order.extend((waiting.next..waiting.next + count).map(|index| (keys[index], position, index)));
            waiting.next += count;
        }
        order.sort_unstable();
        for &(_, position, index) in &order {
            let (key, bytes) = self.chunks[position].chunk.get(index);
            self.bytes -= bytes.len();
            take(key, bytes);
        }
        self.len -= order.len();
        self.chunks.retain(|waiting| waiting.next < waiting.chunk.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(offset: i64, symbol: u32) -> SignalKey {
        SignalKey { offset, index: 0, symbol, spec: 0, bar_start_ns: 0, kind: 0 }
    }

    fn chunk(keys: &[(i64, u32)]) -> SignalChunk {
        let mut chunk = SignalChunk::default();
        for &(offset, symbol) in keys {
            chunk.push(key(offset, symbol), |bytes| bytes.push(offset as u8 * 10 + symbol as u8));
        }
        chunk
    }

    #[test]
    fn signals_come_in_order_of_cause_and_only_of_complete_records() {
        let mut merge = SignalMerge::default();
        merge.push(chunk(&[(1, 0), (3, 0), (5, 0)]));
        merge.push(chunk(&[(1, 1), (2, 1), (4, 1)]));
        let mut taken = Vec::new();
        merge.take_before(4, |_, bytes| taken.extend_from_slice(bytes));
        assert_eq!(taken, [10, 11, 21, 30]);
        assert_eq!(merge.len(), 2);
        merge.push(chunk(&[(4, 0)]));
        taken.clear();
        merge.take_before(i64::MAX, |_, bytes| taken.extend_from_slice(bytes));
        assert_eq!(taken, [40, 41, 50]);
        assert!(merge.is_empty());
    }
}
