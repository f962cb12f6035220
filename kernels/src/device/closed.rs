//! Closed bars in a device's layout, and their conversion to the host's columns.

use bytemuck::{Pod, Zeroable};

use crate::bars::{BySide, ClosedBars};
use crate::indicators::{INDICATORS, IndicatorColumns};
use crate::rows::{RowKind, Rows};
use crate::signals::{Detected, SignalParams};

/// Indicator columns of a bar on a device. The size of a bar must be a multiple of 16 bytes, so an odd number of
/// columns is rounded up.
const COLUMNS: usize = INDICATORS.next_multiple_of(2);

/// A closed bar, with the values of its indicators and the signals detected on it: `ClosedBar` of `device.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[expect(missing_docs, reason = "device.cuh says what each one is")]
pub struct DeviceClosedBar {
    pub volume_e9: i128,
    pub notional_e18: i128,
    pub volumes_e9: [i128; 2],
    pub quote_sizes_e9: [i128; 2],
    pub start_ns: i64,
    pub end_ns: i64,
    pub open_e9: i64,
    pub high_e9: i64,
    pub low_e9: i64,
    pub close_e9: i64,
    pub trades: i64,
    pub trades_of: [i64; 2],
    pub bid_e9: i64,
    pub ask_e9: i64,
    pub place: u32,
    pub row: u32,
    pub next: u32,
    pub detected: u32,
    pub indicators: [f64; COLUMNS],
    pub spec: u32,
    pub rank: u32,
}

/// The bars that slots have closed: `ClosedBars` of `device.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[expect(missing_docs, reason = "device.cuh says what each one is")]
pub struct ClosedBarsArgs {
    pub places: u64,
    pub slot: u64,
    pub first: u64,
    pub bars: u64,
}

impl DeviceClosedBar {
    /// Adds the bar to the columns, as the host's own kernels would. It belongs to `slot`, and the row at `row` closed
    /// it.
    pub fn receive(
        &self,
        slot: u32,
        rows: &Rows,
        row: usize,
        signals: &SignalParams,
        (closed, columns, detected): (&mut ClosedBars, &mut IndicatorColumns, &mut Vec<Detected>),
    ) {
        let at = closed.len();
        self.push_to(closed, slot, rows, row);
        columns.push(self.indicators[..INDICATORS].try_into().expect("a bar has all columns"));
        signals.add_detected(closed, columns, at, self.detected, detected);
    }

    fn push_to(&self, closed: &mut ClosedBars, slot: u32, rows: &Rows, row: usize) {
        closed.slot.push(slot);
        closed.start_ns.push(self.start_ns);
        closed.end_ns.push(self.end_ns);
        closed.open_e9.push(self.open_e9);
        closed.high_e9.push(self.high_e9);
        closed.low_e9.push(self.low_e9);
        closed.close_e9.push(self.close_e9);
        closed.volume_e9.push(self.volume_e9);
        closed.notional_e18.push(self.notional_e18);
        closed.trades.push(self.trades);
        closed.bid_price_e9.push(self.bid_e9);
        closed.ask_price_e9.push(self.ask_e9);
        closed.by_side.push(BySide { volumes_e9: self.volumes_e9, trades: self.trades_of });
        closed.quote_sizes_e9.push(self.quote_sizes_e9);
        closed.is_cut.push(rows.kind[row] == RowKind::CUT);
        closed.offset.push(rows.offset[row]);
        closed.index.push(rows.index[row]);
        closed.row.push(row as u32);
    }
}
