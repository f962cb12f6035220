//! The last values of each slot.

use super::lanes::{BlockRows, LANES};

/// The last `length` values of `Q` quantities of each slot; zeros in place of missing values, no values if `length` is
/// 0. The n-th value of a slot, counted from 0, is at position n mod `length`, so rings need no counters of their own.
#[derive(Clone, Debug)]
pub(super) struct Ring<const Q: usize> {
    pub length: usize,
    /// Values by position, then by page of blocks of slots, so that blocks that are advanced together access memory in
    /// order. A page is allocated for its first value, so that slots with few values take little memory.
    pages: Vec<Option<Box<Page<Q>>>>,
    /// Number of pages of a position.
    stride: usize,
}

/// Values of neighbouring blocks at one position.
type Page<const Q: usize> = [BlockRows<Q>; PAGE_BLOCKS];

/// Blocks of a page.
const PAGE_BLOCKS: usize = 8;

/// The place of one value in a ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingStep {
    pub position: usize,
    /// True if sums over the ring are to be recomputed: at the last position, once in [`WRAPS_PER_SUM`] wraps.
    pub sums_due: bool,
}

/// Number of wraps of a ring after which sums over it are recomputed.
pub(super) const WRAPS_PER_SUM: usize = 8;

impl RingStep {
    /// The place of the next value after `values` values, which must be a whole number below 2^52.
    #[inline(always)]
    pub fn new(values: f64, length: usize) -> Self {
        const TWO_TO_52: f64 = 4_503_599_627_370_496.0;
        // The last bits of the number 2^52 + n are n.
        let values = ((values + TWO_TO_52).to_bits() & 0x000f_ffff_ffff_ffff) as usize;
        let (wraps, position) = (values / length, values % length);
        Self { position, sums_due: (position + 1 == length) & (wraps % WRAPS_PER_SUM == WRAPS_PER_SUM - 1) }
    }
}

impl<const Q: usize> Ring<Q> {
    pub fn new(length: u32) -> Self {
        Self { length: length as usize, pages: Vec::new(), stride: 0 }
    }

    /// Makes room for `slots` slots.
    pub fn resize(&mut self, slots: usize) {
        let (before, needed) = (self.stride, slots.div_ceil(LANES * PAGE_BLOCKS));
        if needed <= before {
            return;
        }
        // All pages get new positions, so room is reserved for more.
        self.stride = needed.max(before + before / 4);
        let mut moved = std::mem::take(&mut self.pages).into_iter();
        self.pages.reserve_exact(self.stride * self.length);
        for position in 1..=self.length {
            self.pages.extend(moved.by_ref().take(before));
            self.pages.resize_with(position * self.stride, || None);
        }
    }

    /// The row of a block at `position`.
    #[inline(always)]
    pub fn row(&self, block: usize, position: usize) -> &BlockRows<Q> {
        match &self.pages[position * self.stride + block / PAGE_BLOCKS] {
            Some(page) => &page[block % PAGE_BLOCKS],
            None => &BlockRows::ZERO,
        }
    }

    /// The row of a block at `position`, for changes.
    #[inline(always)]
    pub fn row_mut(&mut self, block: usize, position: usize) -> &mut BlockRows<Q> {
        let page = &mut self.pages[position * self.stride + block / PAGE_BLOCKS];
        let page = match page {
            Some(page) => page,
            None => new_page(page),
        };
        &mut page[block % PAGE_BLOCKS]
    }

    /// The row of a block `back` values before `position`; `back` is at most the length.
    #[inline(always)]
    pub fn row_before(&self, block: usize, position: usize, back: usize) -> &BlockRows<Q> {
        let wrapped = position + self.length - back;
        self.row(block, if position >= back { position - back } else { wrapped })
    }

    /// The rows of a block at the last `count` positions.
    #[inline(always)]
    pub fn last_rows(&self, block: usize, count: usize) -> impl Iterator<Item = &BlockRows<Q>> {
        (self.length - count..self.length).map(move |position| self.row(block, position))
    }

    /// The newest `count` values of a slot, oldest first; the newest one is at `position`.
    #[inline(always)]
    pub fn newest(
        &self,
        slot: usize,
        position: usize,
        count: usize,
    ) -> impl Iterator<Item = [f64; Q]> + Clone + '_ {
        let (block, oldest) = (slot / LANES, position + self.length + 1 - count);
        (oldest..oldest + count).map(move |position| {
            let position = if position >= self.length { position - self.length } else { position };
            let mut values = [0.0; Q];
            for (value, row) in values.iter_mut().zip(&self.row(block, position).0) {
                *value = row[slot % LANES];
            }
            values
        })
    }

    /// The values of a slot that has had `values` values so far, oldest first.
    pub fn of_slot(&self, slot: usize, values: i64) -> impl Iterator<Item = [f64; Q]> + '_ {
        let count = values.min(self.length as i64) as usize;
        // Before the first value, the position does not matter.
        let position = (values - 1).max(0) as usize % self.length.max(1);
        self.newest(slot, position, count)
    }

    /// The values of a slot by position, regardless of their age.
    pub fn positions_of(&self, slot: usize) -> impl Iterator<Item = [f64; Q]> + '_ {
        self.newest(slot, self.length.max(1) - 1, self.length)
    }

    /// Sets the values of a slot by position; the quantities of a position are adjacent.
    pub fn set_positions_of(&mut self, slot: usize, mut values: impl Iterator<Item = f64>) {
        for position in 0..self.length {
            let BlockRows(row) = self.row_mut(slot / LANES, position);
            for (quantity, value) in row.iter_mut().zip(values.by_ref()) {
                quantity[slot % LANES] = value;
            }
        }
    }

    /// Copies the values of a slot from a ring of the same length. Positions without a value so far take no memory.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        for (position, values) in from.positions_of(slot).enumerate() {
            let is_there = self.pages[position * self.stride + to / LANES / PAGE_BLOCKS].is_some();
            if !is_there && values.iter().all(|value| value.to_bits() == 0) {
                continue;
            }
            let BlockRows(row) = self.row_mut(to / LANES, position);
            for (quantity, value) in row.iter_mut().zip(values) {
                quantity[to % LANES] = value;
            }
        }
    }

    /// Sets the newest values of one quantity of a slot that has had `values` values so far.
    pub fn set_slot(&mut self, slot: usize, quantity: usize, values: i64, newest: &[f64]) {
        let start = (values - newest.len() as i64) as usize;
        for (position, &value) in newest.iter().enumerate() {
            let position = (start + position) % self.length;
            self.row_mut(slot / LANES, position).0[quantity][slot % LANES] = value;
        }
    }
}

#[cold]
fn new_page<const Q: usize>(page: &mut Option<Box<Page<Q>>>) -> &mut Page<Q> {
    page.insert(Box::new([BlockRows::ZERO; PAGE_BLOCKS]))
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{Block, Scattered, SlotPlaces};
    use super::*;

    fn ring(slots: usize) -> Ring<1> {
        let mut ring = Ring::new(3);
        ring.resize(slots);
        ring
    }

    #[test]
    fn a_ring_keeps_the_last_values_of_each_slot() {
        let mut ring = ring(10);
        let place = Scattered([9]);
        for value in 1..=8 {
            let steps = place.steps(&[f64::from(value - 1)], 3);
            let before = |back: i32| [f64::from(value - back).max(0.0)];
            let newest_of = |count: i32| (0..count).rev().map(before);
            for back in 1..=3 {
                assert_eq!(place.read(&ring, steps, back as usize), [before(back)]);
            }
            assert_eq!(place.exchange(&mut ring, steps, &[[f64::from(value)]]), [before(3)]);
            for count in 1..=3_usize {
                assert!(ring.newest(9, steps[0].position, count).eq(newest_of(count as i32)));
            }
            let values = i64::from(value);
            assert!(ring.of_slot(9, values).eq(newest_of(value.min(3))));
            let newest: Vec<f64> = ring.of_slot(9, values).map(|[value]| value).collect();
            let mut copy = self::ring(10);
            copy.set_slot(9, 0, values, &newest);
            assert_eq!(copy.pages, ring.pages);
        }
        assert_eq!(ring.of_slot(8, 0).count(), 0);
    }

    #[test]
    fn a_block_is_read_and_written_as_its_slots_are() {
        let (mut whole, mut single) = (ring(2 * LANES), ring(2 * LANES));
        for value in 0..50 {
            let values: [f64; LANES] = std::array::from_fn(|lane| f64::from(value * 100 + lane as i32));
            let step = Block(1).steps(&[f64::from(value); LANES], 3);
            let [oldest] = Block(1).read(&whole, step, 2);
            let [left] = Block(1).exchange(&mut whole, step, &[values]);
            let due = Block(1).due(step);
            assert_eq!(due.is_some(), value % 24 == 23);
            for lane in 0..LANES {
                let place = Scattered([(LANES + lane) as u32]);
                let steps = place.steps(&[f64::from(value)], 3);
                assert_eq!(steps[0].sums_due, due.is_some());
                assert_eq!(place.read(&single, steps, 2), [[oldest[lane]]]);
                assert_eq!(place.exchange(&mut single, steps, &[[values[lane]]]), [[left[lane]]]);
                if let Some(block) = due {
                    let newest = single.newest(LANES + lane, steps[0].position, 2);
                    assert!(whole.last_rows(block, 2).map(|row| [row.0[0][lane]]).eq(newest));
                }
            }
            assert_eq!(whole.pages, single.pages);
        }
    }

    #[test]
    fn values_stay_where_they_belong_when_slots_are_added() {
        let mut grown = ring(0);
        for slot in 0..100_u32 {
            grown.resize(slot as usize + 1);
            let place = Scattered([slot]);
            place.exchange(&mut grown, place.steps(&[1.0], 3), &[[f64::from(slot)]]);
        }
        for slot in 0..100_u32 {
            let place = Scattered([slot]);
            assert_eq!(place.read(&grown, place.steps(&[1.0], 3), 0), [[f64::from(slot)]]);
        }
    }

    #[test]
    fn whole_numbers_are_divided_exactly() {
        for (values, length, position) in
            [(0.0, 7, 0), (6.0, 7, 6), (7.0, 7, 0), (4_503_599_627_370_495.0, 10, 5)]
        {
            assert_eq!(RingStep::new(values, length).position, position);
        }
    }
}
