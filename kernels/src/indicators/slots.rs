//! The slots of a block, and reading and writing their entries of a column.

/// The slots of a block, all different.
pub(super) struct Slots<const L: usize> {
    pub numbers: [usize; L],
    /// Whether each follows the one before it.
    adjacent: bool,
}

impl<const L: usize> Slots<L> {
    #[inline(always)]
    pub fn new(slots: &[u32; L]) -> Self {
        let mut numbers = [0; L];
        let mut adjacent = true;
        for lane in 0..L {
            numbers[lane] = slots[lane] as usize;
            adjacent &= numbers[lane] == numbers[0] + lane;
        }
        Self { numbers, adjacent }
    }

    #[inline(always)]
    pub fn read<T: Copy + Default>(&self, column: &[T]) -> [T; L] {
        let mut lanes = [T::default(); L];
        if self.adjacent {
            lanes.copy_from_slice(&column[self.numbers[0]..][..L]);
        } else {
            for lane in 0..L {
                lanes[lane] = column[self.numbers[lane]];
            }
        }
        lanes
    }

    #[inline(always)]
    pub fn write<T: Copy>(&self, column: &mut [T], lanes: &[T; L]) {
        if self.adjacent {
            column[self.numbers[0]..][..L].copy_from_slice(lanes);
        } else {
            for lane in 0..L {
                column[self.numbers[lane]] = lanes[lane];
            }
        }
    }
}
