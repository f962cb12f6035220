//! Numbers and rings by slot, with four slots side by side. There are two ways of access: a whole block in place, or
//! any slots by copying.

use super::ring::{Ring, RingStep};

/// Number of slots whose numbers are stored side by side. Four fill a vector register of AVX2; eight were slower in
/// measurements. Processing one slot at a time gives the same bits.
pub(super) const LANES: usize = 4;

/// `K` numbers of each slot of a block; no row of them crosses a cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(32))]
pub(super) struct BlockRows<const K: usize>(pub [[f64; LANES]; K]);

impl<const K: usize> BlockRows<K> {
    pub const ZERO: Self = Self([[0.0; LANES]; K]);
}

/// `K` numbers for each slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns<const K: usize> {
    pub blocks: Vec<BlockRows<K>>,
}

impl<const K: usize> Columns<K> {
    /// Makes room for `slots` slots, with zeros.
    pub fn resize(&mut self, slots: usize) {
        let blocks = slots.div_ceil(LANES);
        if blocks > self.blocks.capacity() {
            // Doubling would leave half of the memory unused.
            self.blocks.reserve_exact(blocks + blocks / 4 - self.blocks.len());
        }
        self.blocks.resize(blocks, BlockRows::ZERO);
    }

    /// The numbers of one slot.
    pub fn of_slot(&self, slot: usize) -> [f64; K] {
        self.blocks[slot / LANES].0.map(|row| row[slot % LANES])
    }

    /// Sets the numbers of one slot.
    pub fn set_slot(&mut self, slot: usize, numbers: [f64; K]) {
        for (row, number) in self.blocks[slot / LANES].0.iter_mut().zip(numbers) {
            row[slot % LANES] = number;
        }
    }
}

/// Slots that are advanced together; all are different.
pub(super) trait SlotPlaces<const L: usize> {
    /// The slots' places in rings of one length.
    type Steps: Copy;

    /// The slot of a lane.
    fn slot(&self, lane: usize) -> usize;

    /// The places of the next values in rings of this length, given the number of values so far.
    fn steps(&self, values: &[f64; L], length: usize) -> Self::Steps;

    /// The place of one lane's value.
    fn step(steps: Self::Steps, lane: usize) -> RingStep;

    /// Reads the values that were put into a ring `back` values before the next one; `back` is at most the ring's
    /// length.
    fn read<const Q: usize>(&self, ring: &Ring<Q>, steps: Self::Steps, back: usize) -> [[f64; L]; Q];

    /// Replaces the oldest values of a ring by new ones, and returns the oldest.
    fn exchange<const Q: usize>(
        &self,
        ring: &mut Ring<Q>,
        steps: Self::Steps,
        values: &[[f64; L]; Q],
    ) -> [[f64; L]; Q];

    /// The block, if the slots form one and the sums of all its slots are due at the same time.
    fn due(&self, steps: Self::Steps) -> Option<usize>;

    /// Takes `N` numbers of the slots, from the quantity `first` on, for changes: in place, or copied to `scratch`. The
    /// caller must then call [`SlotPlaces::put`].
    fn take<'a, const K: usize, const N: usize>(
        &self,
        blocks: &'a mut [BlockRows<K>],
        first: usize,
        scratch: &'a mut [[f64; L]; N],
    ) -> &'a mut [[f64; L]; N];

    /// Writes back the numbers that [`SlotPlaces::take`] copied to `scratch`.
    fn put<const K: usize, const N: usize>(
        &self,
        blocks: &mut [BlockRows<K>],
        first: usize,
        scratch: &[[f64; L]; N],
    );

    /// A copy of `N` numbers of the slots, from the quantity `first` on.
    #[inline(always)]
    fn load<const K: usize, const N: usize>(
        &self,
        blocks: &mut [BlockRows<K>],
        first: usize,
    ) -> [[f64; L]; N] {
        *self.take(blocks, first, &mut [[0.0; L]; N])
    }

    /// Sets `N` numbers of the slots, from the quantity `first` on.
    #[inline(always)]
    fn store<const K: usize, const N: usize>(
        &self,
        blocks: &mut [BlockRows<K>],
        first: usize,
        numbers: [[f64; L]; N],
    ) {
        let mut scratch = [[0.0; L]; N];
        *self.take(blocks, first, &mut scratch) = numbers;
        self.put(blocks, first, &scratch);
    }
}

/// All slots of a block, given by its number; all have had the same number of bars.
pub(super) struct Block(pub usize);

impl Block {
    /// The block that consists of these slots, in order; `None` if there is none.
    #[inline(always)]
    pub fn of(slots: &[u32; LANES]) -> Option<Self> {
        let mut different = slots[0] % LANES as u32;
        for lane in 1..LANES {
            different |= slots[lane] ^ (slots[0] | lane as u32);
        }
        (different == 0).then_some(Self(slots[0] as usize / LANES))
    }
}

impl SlotPlaces<LANES> for Block {
    type Steps = RingStep;

    #[inline(always)]
    fn slot(&self, lane: usize) -> usize {
        self.0 * LANES + lane
    }

    #[inline(always)]
    fn steps(&self, values: &[f64; LANES], length: usize) -> RingStep {
        RingStep::new(values[0], length)
    }

    #[inline(always)]
    fn step(step: RingStep, _: usize) -> RingStep {
        step
    }

    #[inline(always)]
    fn read<const Q: usize>(&self, ring: &Ring<Q>, step: RingStep, back: usize) -> [[f64; LANES]; Q] {
        ring.row_before(self.0, step.position, back).0
    }

    #[inline(always)]
    fn exchange<const Q: usize>(
        &self,
        ring: &mut Ring<Q>,
        step: RingStep,
        values: &[[f64; LANES]; Q],
    ) -> [[f64; LANES]; Q] {
        std::mem::replace(&mut ring.row_mut(self.0, step.position).0, *values)
    }

    #[inline(always)]
    fn due(&self, step: RingStep) -> Option<usize> {
        step.sums_due.then_some(self.0)
    }

    #[inline(always)]
    fn take<'a, const K: usize, const N: usize>(
        &self,
        blocks: &'a mut [BlockRows<K>],
        first: usize,
        _: &'a mut [[f64; LANES]; N],
    ) -> &'a mut [[f64; LANES]; N] {
        blocks[self.0].0[first..].first_chunk_mut().expect("a block has these quantities")
    }

    #[inline(always)]
    fn put<const K: usize, const N: usize>(&self, _: &mut [BlockRows<K>], _: usize, _: &[[f64; LANES]; N]) {}
}

/// Any slots, all different.
pub(super) struct Scattered<const L: usize>(pub [u32; L]);

impl<const L: usize> SlotPlaces<L> for Scattered<L> {
    type Steps = [RingStep; L];

    #[inline(always)]
    fn slot(&self, lane: usize) -> usize {
        self.0[lane] as usize
    }

    #[inline(always)]
    fn steps(&self, values: &[f64; L], length: usize) -> [RingStep; L] {
        let mut steps = [RingStep { position: 0, sums_due: false }; L];
        for lane in 0..L {
            steps[lane] = RingStep::new(values[lane], length);
        }
        steps
    }

    #[inline(always)]
    fn step(steps: [RingStep; L], lane: usize) -> RingStep {
        steps[lane]
    }

    #[inline(always)]
    fn read<const Q: usize>(&self, ring: &Ring<Q>, steps: [RingStep; L], back: usize) -> [[f64; L]; Q] {
        let mut values = [[0.0; L]; Q];
        for lane in 0..L {
            let slot = self.slot(lane);
            let BlockRows(row) = ring.row_before(slot / LANES, steps[lane].position, back);
            for quantity in 0..Q {
                values[quantity][lane] = row[quantity][slot % LANES];
            }
        }
        values
    }

    #[inline(always)]
    fn exchange<const Q: usize>(
        &self,
        ring: &mut Ring<Q>,
        steps: [RingStep; L],
        values: &[[f64; L]; Q],
    ) -> [[f64; L]; Q] {
        let mut oldest = [[0.0; L]; Q];
        for lane in 0..L {
            let slot = self.slot(lane);
            let BlockRows(row) = ring.row_mut(slot / LANES, steps[lane].position);
            for quantity in 0..Q {
                oldest[quantity][lane] =
                    std::mem::replace(&mut row[quantity][slot % LANES], values[quantity][lane]);
            }
        }
        oldest
    }

    #[inline(always)]
    fn due(&self, _: [RingStep; L]) -> Option<usize> {
        None
    }

    #[inline(always)]
    fn take<'a, const K: usize, const N: usize>(
        &self,
        blocks: &'a mut [BlockRows<K>],
        first: usize,
        scratch: &'a mut [[f64; L]; N],
    ) -> &'a mut [[f64; L]; N] {
        for lane in 0..L {
            let rows = &blocks[self.slot(lane) / LANES].0[first..][..N];
            for quantity in 0..N {
                scratch[quantity][lane] = rows[quantity][self.slot(lane) % LANES];
            }
        }
        scratch
    }

    #[inline(always)]
    fn put<const K: usize, const N: usize>(
        &self,
        blocks: &mut [BlockRows<K>],
        first: usize,
        scratch: &[[f64; L]; N],
    ) {
        for lane in 0..L {
            let rows = &mut blocks[self.slot(lane) / LANES].0[first..][..N];
            for quantity in 0..N {
                rows[quantity][self.slot(lane) % LANES] = scratch[quantity][lane];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_changed_in_blocks_and_one_by_one() {
        let mut columns = Columns::<3>::default();
        columns.resize(10);
        let slots = [7, 9, 2, 4];
        let more = |[numbers]: [[f64; LANES]; 1]| [numbers.map(|number| number + 1.0)];
        for round in 0..3 {
            let numbers = more(Block(1).load(&mut columns.blocks, 1));
            Block(1).store(&mut columns.blocks, 1, numbers);
            let numbers = more(Scattered(slots).load(&mut columns.blocks, 2));
            Scattered(slots).store(&mut columns.blocks, 2, numbers);
            for slot in 0..10 {
                let expected = [false, (4..8).contains(&slot), slots.contains(&slot)];
                let expected = expected.map(|changed| if changed { f64::from(round + 1) } else { 0.0 });
                assert_eq!(columns.of_slot(slot as usize), expected);
            }
        }
        columns.set_slot(4, [5.0, 6.0, 7.0]);
        assert_eq!(columns.of_slot(4), [5.0, 6.0, 7.0]);
    }

    #[test]
    fn a_block_is_aligned_and_in_order() {
        let block = |slots| Block::of(&slots).map(|block| block.0);
        assert_eq!(block([4, 5, 6, 7]), Some(1));
        assert_eq!(block([0, 1, 2, 3]), Some(0));
        assert_eq!(block([1, 2, 3, 4]), None);
        assert_eq!(block([4, 5, 7, 6]), None);
        assert_eq!(block([4, 5, 6, 11]), None);
        assert_eq!(block([7, 5, 6, 7]), None);
    }
}
