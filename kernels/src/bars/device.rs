//! Rows and open bars as a device has them.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::open::OpenBar;
use super::slab::{BarSlab, OpenBars};
use super::spec::BarSpec;
use crate::rows::{RowKind, Rows};

/// An open bar: as `Bar` of `bars.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DeviceBar {
    volume_e9: i128,
    notional_e18: i128,
    number: i64,
    open_time_ns: i64,
    close_time_ns: i64,
    open_e9: i64,
    high_e9: i64,
    low_e9: i64,
    close_e9: i64,
    trades: i64,
}

/// What neighbouring trades come to: as `Part` of `bars.cu`. Only the device looks into it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct DevicePart {
    bar: DeviceBar,
    rows: [u32; 4],
}

/// Trades that one thread of `fold_runs` takes.
pub const RUN: usize = 32;

/// What the kernels that fold bars are given: as `FoldArgs` of `bars.cu`. All but `kind`, `parameter`, `places`,
/// `trades`, `open_max` and `closed_max` are addresses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[expect(missing_docs, reason = "bars.cu says what each one is")]
pub struct FoldArgs {
    pub kind: u64,
    pub parameter: i64,
    pub places: u64,
    pub slot: u64,
    pub group: u64,
    pub trades: u64,
    pub trade_begin: u64,
    pub trade_place: u64,
    pub trade_row: u64,
    pub trade_time_ns: u64,
    pub trade_price_e9: u64,
    pub trade_size_e9: u64,
    pub quote_begin: u64,
    pub quote_row: u64,
    pub quote_bid_e9: u64,
    pub quote_ask_e9: u64,
    pub mark_begin: u64,
    pub mark_row: u64,
    pub mark_ns: u64,
    pub open_max: u64,
    pub open: u64,
    pub open_count: u64,
    pub bid_e9: u64,
    pub ask_e9: u64,
    pub parts: u64,
    pub part_count: u64,
    pub closed_max: u64,
    pub closed_count: u64,
    pub failed: u64,
    pub first: u64,
    pub closed: u64,
}

impl FoldArgs {
    /// Those that follow from the specification: what closes a bar, and how many may be open.
    pub fn new(spec: BarSpec, allowed_lateness_ns: i64) -> Self {
        let (kind, parameter) = match spec {
            BarSpec::Time { interval_ns } => (0, interval_ns),
            BarSpec::Ticks { count } => (1, count),
            BarSpec::Volume { volume_e9 } => (2, volume_e9),
        };
        let open_max = spec.open_bars_max(allowed_lateness_ns) as u64;
        Self { kind, parameter, open_max, ..Self::default() }
    }
}

/// Rows of groups, sorted by slot for a device: each slot's in log order, trades, quotes and watermarks apart. The *place* of
/// a slot counts all slots of the groups, the first group's first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "bars.cu says what each one is")]
pub struct StagedRows {
    pub group: Vec<u32>,
    pub trade_begin: Vec<u32>,
    pub trade_place: Vec<u32>,
    pub trade_row: Vec<u32>,
    pub trade_time_ns: Vec<i64>,
    pub trade_price_e9: Vec<i64>,
    pub trade_size_e9: Vec<i64>,
    pub quote_begin: Vec<u32>,
    pub quote_row: Vec<u32>,
    pub quote_bid_e9: Vec<i64>,
    pub quote_ask_e9: Vec<i64>,
    pub mark_begin: Vec<u32>,
    pub mark_row: Vec<u32>,
    pub mark_ns: Vec<i64>,
}

impl StagedRows {
    /// Sorts ranges of the rows of groups, given with their numbers of slots. Rows are numbered through all groups, those
    /// outside of the ranges too, in 32 bits.
    pub fn new(groups: &[(usize, &Rows, Range<usize>)]) -> Self {
        let rows_total: usize = groups.iter().map(|(_, rows, _)| rows.len()).sum();
        assert!(rows_total < u32::MAX as usize, "rows of a batch are counted in 32 bits");
        let mut staged = Self::default();
        let places: usize = groups.iter().map(|(slots, ..)| slots).sum();
        staged.mark_begin.push(0);
        // How many come before each place, then where the next one of it goes.
        let (mut trades, mut quotes) = (vec![0_u32; places + 1], vec![0_u32; places + 1]);
        let mut first_place = 0;
        for (group, (slots, rows, range)) in groups.iter().enumerate() {
            staged.group.extend(std::iter::repeat_n(group as u32, *slots));
            for (kind, slot) in rows.kind[range.clone()].iter().zip(&rows.slot[range.clone()]) {
                match kind {
                    RowKind::Trade => trades[first_place + *slot as usize + 1] += 1,
                    RowKind::Quote => quotes[first_place + *slot as usize + 1] += 1,
                    RowKind::Watermark | RowKind::Barrier => {}
                }
            }
            first_place += slots;
        }
        for begins in [&mut trades, &mut quotes] {
            (0..places).for_each(|place| begins[place + 1] += begins[place]);
        }
        staged.trade_begin.clone_from(&trades);
        staged.quote_begin.clone_from(&quotes);
        staged.resize(trades[places] as usize, quotes[places] as usize);
        let (mut first_place, mut first_row) = (0, 0);
        for (slots, rows, range) in groups {
            for row in range.clone() {
                let (place, number) = (first_place + rows.slot[row] as usize, (first_row + row) as u32);
                match rows.kind[row] {
                    RowKind::Trade => {
                        let to = trades[place] as usize;
                        trades[place] += 1;
                        staged.trade_place[to] = place as u32;
                        staged.trade_row[to] = number;
                        staged.trade_time_ns[to] = rows.time_ns[row];
                        staged.trade_price_e9[to] = rows.price_e9[row];
                        staged.trade_size_e9[to] = rows.size_e9[row];
                    }
                    RowKind::Quote => {
                        let to = quotes[place] as usize;
                        quotes[place] += 1;
                        staged.quote_row[to] = number;
                        staged.quote_bid_e9[to] = rows.price_e9[row];
                        staged.quote_ask_e9[to] = rows.size_e9[row];
                    }
                    RowKind::Watermark => {
                        staged.mark_row.push(number);
                        staged.mark_ns.push(rows.time_ns[row]);
                    }
                    RowKind::Barrier => {}
                }
            }
            staged.mark_begin.push(staged.mark_row.len() as u32);
            first_place += slots;
            first_row += rows.len();
        }
        staged
    }

    fn resize(&mut self, trades: usize, quotes: usize) {
        for column in [&mut self.trade_place, &mut self.trade_row] {
            column.resize(trades, 0);
        }
        for column in [&mut self.trade_time_ns, &mut self.trade_price_e9, &mut self.trade_size_e9] {
            column.resize(trades, 0);
        }
        self.quote_row.resize(quotes, 0);
        for column in [&mut self.quote_bid_e9, &mut self.quote_ask_e9] {
            column.resize(quotes, 0);
        }
    }
}

impl BarSlab {
    /// Open bars of a slot as a device has them, by ascending number.
    pub fn open_bars(&self, slot: usize) -> Vec<DeviceBar> {
        match &self.open {
            OpenBars::Time(bars) => {
                bars.of_slot(slot).map(|(number, bar)| DeviceBar::new(number, bar)).collect()
            }
            OpenBars::Filled(bars) => {
                bars.of_slot(slot).map(|bar| DeviceBar::new(0, bar)).into_iter().collect()
            }
        }
    }

    /// Sets the open bars of a slot that has none, by ascending number.
    pub fn set_open_bars(&mut self, slot: usize, open: &[DeviceBar]) {
        for bar in open {
            match &mut self.open {
                OpenBars::Time(bars) => bars.set_bar(slot, bar.number, bar.bar()),
                OpenBars::Filled(bars) => bars.set_bar(slot, bar.bar()),
            }
        }
    }
}

impl DeviceBar {
    fn new(number: i64, bar: &OpenBar) -> Self {
        let OpenBar {
            volume_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
        } = *bar;
        Self {
            volume_e9,
            notional_e18,
            number,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
        }
    }

    fn bar(&self) -> OpenBar {
        let Self {
            volume_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            ..
        } = *self;
        OpenBar {
            volume_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
        }
    }
}
