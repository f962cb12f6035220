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
    /// The numbers that [`super::averages`] keeps, then the sums over [`super::windows`].
    pub(super) columns: Columns<QUANTITIES>,
    pub(super) windows: Windows,
    /// Whether an indicator is on that may be off.
    has_further: bool,
}

impl IndicatorSlab {
    /// A slab with no slots. The parameters must have passed [`IndicatorParams::check`]; of those of signals, the lines matter on which
    /// values may lie.
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

    /// Makes room for `slots` slots; there are never fewer than before.
    pub fn resize(&mut self, slots: usize) {
        self.slots = self.slots.max(slots);
        self.columns.resize(self.slots);
        self.windows.resize(self.slots);
    }

    /// Sets the state of a slot to that of a slot of a slab with the same windows.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        let numbers = from.columns.of_slot(slot);
        // One without bars has zeros in all rings, as has a slot that begins.
        if numbers[BARS] > 0.0 {
            self.columns.set_slot(to, numbers);
            self.windows.copy_slot(to, &from.windows, slot);
        }
    }

    /// Advances each slot by its bars, in the order given, and sets `out` to the indicators after each bar.
    /// Panics at a slot for which there is no room.
    pub fn update(&mut self, isa: Isa, closed: &ClosedBars, out: &mut IndicatorColumns) {
        out.resize(closed.len(), self.has_further);
        // Four bars of different slots are computed side by side, as many as AVX2's registers hold; with fewer bars it is the values of
        // one bar that are side by side.
        let isa = if closed.len() < 4 { isa } else { isa.of_four() };
        if self.has_further {
            isa.run(Update::<true> { slab: self, closed, out });
        } else {
            isa.run(Update::<false> { slab: self, closed, out });
        }
    }
}
