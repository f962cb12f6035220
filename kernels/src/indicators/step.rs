//! The loop that advances indicators by a bar.
//!
//! ```text
//! for each block of four slots
//!   closed bars ──▶ prices, weights ─┬▶ averages (state: columns) ───────────────┬▶ output columns
//!                                    └▶ windows (state: rings and rolling sums) ─┘
//! ```
//!
//! All of this is vector code if the slots form a block in order and have had the same number of bars. Other slots are
//! advanced four at a time if they are different, with loads and stores slot by slot, and otherwise one at a time.

#![expect(clippy::needless_range_loop, reason = "a lane is a position in several arrays at once")]

use super::averages::{AVERAGES, BARS, PREVIOUS_CLOSE, Prices};
use super::columns::IndicatorColumns;
use super::formulas;
use super::lanes::{Block, LANES, Scattered, SlotPlaces};
use super::slab::IndicatorSlab;
use super::table::{ALWAYS, FURTHER};
use super::windows::Entering;
use crate::bars::ClosedBars;
use crate::isa::HotLoop;

/// One call of [`IndicatorSlab::update`]. `ON` is true if some indicator that may be off is on, so that the loop need
/// not check for it.
pub(super) struct Update<'a, const ON: bool> {
    pub slab: &'a mut IndicatorSlab,
    pub closed: &'a ClosedBars,
    pub out: &'a mut IndicatorColumns,
}

impl<const ON: bool> HotLoop for Update<'_, ON> {
    #[inline(always)]
    fn run(self) {
        // All columns have the same known length, so one bounds check is enough for all.
        let bars = self.closed.len();
        let mut step = Step::<ON> {
            slab: self.slab,
            slots: &self.closed.slot[..bars],
            high_e9: &self.closed.high_e9[..bars],
            low_e9: &self.closed.low_e9[..bars],
            close_e9: &self.closed.close_e9[..bars],
            notional_e18: &self.closed.notional_e18[..bars],
            volume_e9: &self.closed.volume_e9[..bars],
            out: self.out,
        };
        let mut row = 0;
        while row < bars {
            // One at a time if the same slot repeats, or if a run of slots has not yet reached the start of a block.
            let four = step.slots[row..]
                .first_chunk::<LANES>()
                .filter(|slots| slots[0] != slots[1] && !is_run_within_block(slots));
            row += match four {
                Some(slots) if let Some(block) = step.block(slots) => step.bars(row, &block),
                Some(slots) if distinct(slots) => step.bars(row, &Scattered(*slots)),
                _ => step.bars(row, &Scattered([step.slots[row]])),
            };
        }
    }
}

/// The state, the required columns of the closed bars, and the output.
struct Step<'a, const ON: bool> {
    slab: &'a mut IndicatorSlab,
    slots: &'a [u32],
    high_e9: &'a [i64],
    low_e9: &'a [i64],
    close_e9: &'a [i64],
    notional_e18: &'a [i128],
    volume_e9: &'a [i128],
    out: &'a mut IndicatorColumns,
}

/// True if the slots are consecutive, but do not begin at the start of a block.
#[inline(always)]
fn is_run_within_block(slots: &[u32; LANES]) -> bool {
    let mut run = !slots[0].is_multiple_of(LANES as u32);
    for lane in 1..LANES {
        run &= slots[lane] == slots[0].wrapping_add(lane as u32);
    }
    run
}

/// True if no slot occurs twice.
#[inline(always)]
fn distinct(slots: &[u32; LANES]) -> bool {
    let mut equal = false;
    for distance in 1..=LANES / 2 {
        for lane in 0..LANES {
            equal |= slots[lane] == slots[(lane + distance) % LANES];
        }
    }
    !equal
}

impl<const ON: bool> Step<'_, ON> {
    /// The block of the slots; `None` unless they form one and have had the same number of bars.
    #[inline(always)]
    fn block(&self, slots: &[u32; LANES]) -> Option<Block> {
        let block = Block::of(slots)?;
        let bars = &self.slab.columns.blocks[block.0].0[BARS];
        let mut together = true;
        for lane in 1..LANES {
            together &= bars[lane] == bars[0];
        }
        together.then_some(block)
    }

    /// Advances slots by the bars at `row ..`, and returns the number of these bars.
    #[inline(always)]
    fn bars<const L: usize, P: SlotPlaces<L>>(&mut self, row: usize, place: &P) -> usize {
        let [bars_before] = place.load(&mut self.slab.columns.blocks, BARS);
        let mut settled = true;
        for lane in 0..L {
            settled &= bars_before[lane] >= self.slab.averages.settled_after;
        }
        if settled {
            self.settled_bars::<L, true, P>(row, place, bars_before);
        } else {
            self.settled_bars::<L, false, P>(row, place, bars_before);
        }
        L
    }

    #[inline(always)]
    fn settled_bars<const L: usize, const SETTLED: bool, P: SlotPlaces<L>>(
        &mut self,
        row: usize,
        place: &P,
        bars_before: [f64; L],
    ) {
        let IndicatorSlab { averages, columns, windows, .. } = &mut *self.slab;
        // All blocks have the same length, so one bounds check is enough.
        let blocks = columns.blocks.as_mut_slice();
        let prices = Prices {
            high: scaled(self.high_e9, row),
            low: scaled(self.low_e9, row),
            close: scaled(self.close_e9, row),
        };
        let weights = [wide(self.notional_e18, row), wide(self.volume_e9, row)];
        let mut lanes = [[0.0; L]; ALWAYS];
        let mut scratch = [[0.0; L]; AVERAGES];
        let state = place.take(blocks, 0, &mut scratch);
        let mut squared_return = [0.0; L];
        for lane in 0..L {
            state[BARS][lane] = bars_before[lane] + 1.0;
        }
        for lane in 0..L {
            squared_return[lane] = formulas::squared_return(prices.close[lane], state[PREVIOUS_CLOSE][lane]);
        }
        averages.step::<L, SETTLED>(state, &prices, &mut lanes);
        state[PREVIOUS_CLOSE] = prices.close;
        place.put(blocks, 0, &scratch);
        let entering = Entering { prices, squared_return, weights, bars_before };
        windows.roll::<L, SETTLED, P>(place, blocks, &entering, &mut lanes);
        self.out.set(row, &lanes);
        if ON {
            let mut lanes = [[f64::NAN; L]; FURTHER];
            windows.roll_further::<L, SETTLED, P>(place, &entering, &mut lanes);
            self.out.set_further(row, &lanes);
        }
    }
}

#[inline(always)]
fn scaled<const L: usize>(column_e9: &[i64], row: usize) -> [f64; L] {
    let column_e9 = &column_e9[row..][..L];
    let mut lanes = [0.0; L];
    for lane in 0..L {
        let value_e9 = column_e9[lane];
        lanes[lane] = if L == 1 { formulas::scaled(value_e9) } else { formulas::scaled_by_halves(value_e9) };
    }
    lanes
}

#[inline(always)]
fn wide<const L: usize>(column: &[i128], row: usize) -> [f64; L] {
    let column = &column[row..][..L];
    let mut lanes = [0.0; L];
    for lane in 0..L {
        lanes[lane] =
            if L == 1 { formulas::wide(column[lane]) } else { formulas::wide_by_quarters(column[lane]) };
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_distinct_or_not() {
        let slots = [7, 3, 9, 1];
        assert!(distinct(&slots));
        for first in 0..LANES {
            for second in first + 1..LANES {
                let mut slots = slots;
                slots[second] = slots[first];
                assert!(!distinct(&slots), "{first} {second}");
            }
        }
    }
}
