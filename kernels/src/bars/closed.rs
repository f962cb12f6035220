//! Closed bars as columns, in the order of closing.

use super::open::OpenBar;
use super::quotes::Top;
use crate::{RowKind, Rows};

/// Trades with aggressive buyers, and with aggressive sellers, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BySide {
    /// Sums of sizes.
    pub volumes_e9: [i128; 2],
    /// Numbers of trades.
    pub trades: [i64; 2],
}

/// Bars that closed, in the order of closing. All columns have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClosedBars {
    /// Slot of the bar.
    pub slot: Vec<u32>,
    /// Time bars: the multiple of the interval at which the bar starts. Others: event time of the first trade.
    pub start_ns: Vec<i64>,
    /// Time bars: the multiple of the interval at which the bar ends. Others: event time of the last trade.
    pub end_ns: Vec<i64>,
    /// First price.
    pub open_e9: Vec<i64>,
    /// Greatest price.
    pub high_e9: Vec<i64>,
    /// Smallest price.
    pub low_e9: Vec<i64>,
    /// Last price.
    pub close_e9: Vec<i64>,
    /// Sum of sizes.
    pub volume_e9: Vec<i128>,
    /// Sum of price times size; the least `i128` if it may have more than 128 bits.
    pub notional_e18: Vec<i128>,
    /// Number of trades.
    pub trades: Vec<i64>,
    /// Bid price of the slot's last quote before the bar's end; 0 if there was none.
    pub bid_price_e9: Vec<i64>,
    /// Ask price of the slot's last quote before the bar's end; 0 if there was none.
    pub ask_price_e9: Vec<i64>,
    /// Volumes and numbers of the trades with a known aggressor.
    pub by_side: Vec<BySide>,
    /// Sizes of bid and ask. 0 if the quote has no sizes, [`crate::ABSENT`] for a side without orders,
    /// [`crate::FORGOTTEN`] if the quote is no longer kept.
    pub quote_sizes_e9: Vec<[i128; 2]>,
    /// True if the bar was closed before its end ([`RowKind::CUT`]).
    pub is_cut: Vec<bool>,
    /// Offset of the row that closed the bar.
    pub offset: Vec<i64>,
    /// Index of the row that closed the bar within its record.
    pub index: Vec<u32>,
    /// Position of the row that closed the bar, in the [`Rows`] from which it was folded.
    pub row: Vec<u32>,
}

impl ClosedBars {
    /// Number of bars.
    pub fn len(&self) -> usize {
        self.slot.len()
    }

    /// True if there are no bars.
    pub fn is_empty(&self) -> bool {
        self.slot.is_empty()
    }

    /// Removes all bars and keeps the memory.
    pub fn clear(&mut self) {
        let Self {
            slot,
            start_ns,
            end_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            volume_e9,
            notional_e18,
            trades,
            bid_price_e9,
            ask_price_e9,
            by_side,
            quote_sizes_e9,
            is_cut,
            offset,
            index,
            row,
        } = self;
        by_side.clear();
        quote_sizes_e9.clear();
        is_cut.clear();
        let prices = [open_e9, high_e9, low_e9, close_e9, bid_price_e9, ask_price_e9];
        for column in prices.into_iter().chain([start_ns, end_ns, trades, offset]) {
            column.clear();
        }
        for column in [volume_e9, notional_e18] {
            column.clear();
        }
        for column in [slot, index, row] {
            column.clear();
        }
    }

    /// Adds a bar of `slot` from start to end, with its bid and ask, closed by the row at `row`.
    #[inline]
    pub(crate) fn push(
        &mut self,
        slot: u32,
        [start_ns, end_ns]: [i64; 2],
        bar: &OpenBar,
        top: Top,
        rows: &Rows,
        row: usize,
    ) {
        self.slot.push(slot);
        self.start_ns.push(start_ns);
        self.end_ns.push(end_ns);
        self.open_e9.push(bar.open_e9);
        self.high_e9.push(bar.high_e9);
        self.low_e9.push(bar.low_e9);
        self.close_e9.push(bar.close_e9);
        self.volume_e9.push(bar.volume_e9());
        self.notional_e18.push(bar.notional_e18());
        self.trades.push(bar.trade_count());
        self.bid_price_e9.push(top.prices_e9[0]);
        self.ask_price_e9.push(top.prices_e9[1]);
        let [_, buyers, sellers] = bar.volumes_e9;
        self.by_side.push(BySide { volumes_e9: [buyers, sellers], trades: [bar.trades[1], bar.trades[2]] });
        self.quote_sizes_e9.push(top.sizes_e9());
        self.is_cut.push(rows.kind[row] == RowKind::CUT);
        self.offset.push(rows.offset[row]);
        self.index.push(rows.index[row]);
        self.row.push(u32::try_from(row).expect("rows of a batch are counted in 32 bits"));
    }
}
