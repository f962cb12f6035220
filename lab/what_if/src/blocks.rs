//! The recorded run in blocks of time. The spread between blocks indicates how well the run repeats.
//!
//! The model's fit to the run does not show this. A model may match one overloaded minute closely, while the next
//! minute with the same load differs.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use warptape_simulator::interval;

use crate::figures::{Figures, latencies};

/// Greatest number of blocks; beyond it, pairs of blocks are merged.
const BLOCKS_MAX: usize = 16;
/// Least number of blocks from which an interval is computed.
const BLOCKS_MIN: usize = 4;
/// Initial length of a block, in nanoseconds.
const BLOCK_NS_MIN: i64 = 1_000_000;
/// Ratio of mean latencies, second half to first half, above which the run counts as overloaded.
const GROWTH_MAX: f64 = 2.0;
/// Least number of rows in each half for this ratio to be used.
const HALF_ROWS_MIN: u64 = 100;

/// Latencies of rows, grouped by the arrival times of the rows.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    begin_ns: Option<i64>,
    length_ns: i64,
    blocks: VecDeque<Histogram<u64>>,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { begin_ns: None, length_ns: BLOCK_NS_MIN, blocks: VecDeque::new() }
    }
}

impl Blocks {
    /// Records the latency of rows that arrived at `since_ns`, in nanoseconds.
    pub(crate) fn rows_done(&mut self, since_ns: i64, rows: i64, latency_ns: i64) {
        let begin_ns = *self.begin_ns.get_or_insert(since_ns);
        // Rows that arrived before the first completed ones belong to the first block.
        let after_ns = since_ns.saturating_sub(begin_ns).max(0);
        while after_ns / self.length_ns >= BLOCKS_MAX as i64 {
            self.halve();
        }
        let block = (after_ns / self.length_ns) as usize;
        while self.blocks.len() <= block {
            self.blocks.push_back(latencies());
        }
        Figures::record(&mut self.blocks[block], rows, latency_ns);
    }

    /// Merges the blocks in pairs.
    fn halve(&mut self) {
        let mut blocks = std::mem::take(&mut self.blocks).into_iter();
        while let Some(mut first) = blocks.next() {
            if let Some(second) = blocks.next() {
                first.add(second).expect("the bounds are the same");
            }
            self.blocks.push_back(first);
        }
        self.length_ns = self.length_ns.saturating_mul(2);
    }

    /// Returns half the width of the 95 % interval of a figure's mean over blocks; `None` if fewer than `BLOCKS_MIN`
    /// blocks have rows.
    pub(crate) fn half_95(&self, figure: impl Fn(&Histogram<u64>) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.blocks.iter().filter(|block| !block.is_empty()).map(figure).collect();
        (values.len() >= BLOCKS_MIN).then(|| interval(&values).half)
    }

    /// True if rows of the second half took much longer than rows of the first half, so the run did not carry its load.
    /// Its figures then depend on when the recording ended.
    pub(crate) fn is_overloaded(&self) -> bool {
        let middle = self.blocks.len() / 2;
        let mut halves = [latencies(), latencies()];
        for (index, block) in self.blocks.iter().enumerate() {
            halves[usize::from(index >= middle)].add(block).expect("the bounds are the same");
        }
        let [first, second] = &halves;
        first.len().min(second.len()) >= HALF_ROWS_MIN && second.mean() > GROWTH_MAX * first.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn blocks(count: i64, latency_ms: impl Fn(i64) -> i64) -> Blocks {
        let mut blocks = Blocks::default();
        (0..count).for_each(|number| blocks.rows_done(number * 10 * MS, 3, latency_ms(number) * MS));
        blocks
    }

    #[test]
    fn a_steady_run_repeats_itself_and_a_growing_backlog_does_not() {
        let mean = |block: &Histogram<u64>| block.mean() / 1e6;
        let steady = blocks(1_000, |number| 20 + number % 3);
        assert!((8..=BLOCKS_MAX).contains(&steady.blocks.len()), "{}", steady.blocks.len());
        assert_eq!(steady.blocks.iter().map(Histogram::len).sum::<u64>(), 3_000);
        assert!(steady.half_95(mean).is_some_and(|half| half < 0.1), "{:?}", steady.half_95(mean));
        assert!(!steady.is_overloaded());
        let growing = blocks(1_000, |number| 20 + number);
        assert!(growing.half_95(mean).is_some_and(|half| half > 100.0), "{:?}", growing.half_95(mean));
        assert!(growing.is_overloaded());
        assert!(!blocks(1_000, |number| 1_020 - number).is_overloaded(), "a backlog that is worked off");
        assert_eq!(blocks(3, |_| 1).half_95(mean), None);
    }
}
