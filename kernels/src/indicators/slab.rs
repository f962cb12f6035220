//! Indicator state of all slots of a group. The step that advances it is in `step`.

use super::averages::{Averages, BARS};
use super::columns::IndicatorColumns;
use super::lanes::Columns;
use super::step::Update;
use super::table::IndicatorParams;
use super::windows::{QUANTITIES, Windows};
use crate::bars::ClosedBars;
use crate::isa::Isa;
use crate::signals::SignalParams;

/// Indicator state of all slots of a group.
#[derive(Clone, Debug)]
pub struct IndicatorSlab {
    pub(super) params: IndicatorParams,
    pub(super) slots: usize,
    pub(super) averages: Averages,
    /// The numbers of [`super::averages`], then the sums of [`super::windows`].
    pub(super) columns: Columns<QUANTITIES>,
    pub(super) windows: Windows,
    /// True if any indicator that may be off is on.
    has_further: bool,
}

impl IndicatorSlab {
    /// A slab without slots. The parameters must have passed [`IndicatorParams::check`]. The parameters of signals
    /// matter only for the lines on which values may lie.
    pub fn new(params: IndicatorParams, signals: &SignalParams) -> Self {
        Self {
            slots: 0,
            averages: Averages::new(&params),
            columns: Columns::default(),
            windows: Windows::new(&params, signals),
            has_further: params.has_further(),
            params,
        }
    }

    /// Makes room for `slots` slots; the number never decreases.
    pub fn resize(&mut self, slots: usize) {
        self.slots = self.slots.max(slots);
        self.columns.resize(self.slots);
        self.windows.resize(self.slots);
    }

    /// Copies the state of a slot from a slab with the same windows.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        let numbers = from.columns.of_slot(slot);
        // A slot without bars has zeros in all rings, like a new one.
        if numbers[BARS] > 0.0 {
            self.columns.set_slot(to, numbers);
            self.windows.copy_slot(to, &from.windows, slot);
        }
    }

    /// Advances each slot by its bars, in the given order, and sets `out` to the indicators after each bar. Panics at a
    /// slot without room.
    pub fn update(&mut self, isa: Isa, closed: &ClosedBars, out: &mut IndicatorColumns) {
        out.resize(closed.len(), self.has_further);
        // Four bars of different slots are computed side by side, which fills AVX2's registers. With fewer bars, only
        // the values of one bar are side by side.
        let isa = if closed.len() < 4 { isa } else { isa.of_four() };
        if self.has_further {
            isa.run(Update::<true> { slab: self, closed, out });
        } else {
            isa.run(Update::<false> { slab: self, closed, out });
        }
    }
}
