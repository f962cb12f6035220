//! Open bars that close when they are full: by number of trades or by volume. One per slot.

use std::ops::Range;

use super::closed::ClosedBars;
use super::open::{OpenBar, Trade};
use super::quotes::{Quote, RecentQuotes};
use crate::StateError;
use crate::rows::{RowKind, Rows};
use crate::state::{get_u8, put_u8};

/// What fills a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Trades(i64),
    VolumeE9(i64),
}

/// The open bar of each slot.
#[derive(Clone, Debug)]
pub(crate) struct FilledBars {
    fill: Fill,
    allowed_lateness_ns: i64,
    /// The open bar of each slot; it has no trades where the slot has none open.
    open: Vec<OpenBar>,
    /// The recent quotes of each slot.
    quotes: Vec<RecentQuotes>,
}

impl FilledBars {
    pub fn new(fill: Fill, allowed_lateness_ns: i64) -> Self {
        Self { fill, allowed_lateness_ns, open: Vec::new(), quotes: Vec::new() }
    }

    pub fn resize(&mut self, slots: usize) {
        self.open.resize(self.open.len().max(slots), OpenBar::default());
        self.quotes.resize(self.quotes.len().max(slots), RecentQuotes::default());
    }

    pub fn fold(&mut self, rows: &Rows, range: Range<usize>, closed: &mut ClosedBars) {
        match self.fill {
            Fill::Trades(count) => self.fold_until(rows, range, closed, |bar| bar.trades >= count),
            Fill::VolumeE9(volume_e9) => {
                self.fold_until(rows, range, closed, |bar| bar.volume_e9 >= i128::from(volume_e9));
            }
        }
    }

    fn fold_until(
        &mut self,
        rows: &Rows,
        range: Range<usize>,
        closed: &mut ClosedBars,
        is_full: impl Fn(&OpenBar) -> bool,
    ) {
        for row in range {
            let (slot, time_ns) = (rows.slot[row], rows.time_ns[row]);
            match rows.kind[row] {
                RowKind::QUOTE => {
                    let quote = Quote { time_ns, bid_e9: rows.price_e9[row], ask_e9: rows.size_e9[row] };
                    self.quotes[slot as usize].add(quote, self.allowed_lateness_ns);
                    continue;
                }
                RowKind::WATERMARK | RowKind::BARRIER => continue,
                _ => {}
            }
            let bar = &mut self.open[slot as usize];
            if bar.trades == 0 {
                *bar = OpenBar::of_trade(Trade::of(rows, row));
            } else {
                bar.add_by_arrival(Trade::of(rows, row));
            }
            if is_full(bar) {
                let quote = self.quotes[slot as usize].at(bar.close_time_ns);
                closed.push(slot, [bar.open_time_ns, bar.close_time_ns], bar, quote, rows, row);
                bar.trades = 0;
            }
        }
    }

    /// The open bar of a slot.
    pub fn of_slot(&self, slot: usize) -> Option<&OpenBar> {
        Some(&self.open[slot]).filter(|bar| bar.trades > 0)
    }

    /// Sets the open bar of a slot.
    pub fn set_bar(&mut self, slot: usize, bar: OpenBar) {
        self.open[slot] = bar;
    }

    /// Sets the bar and the quotes of a slot to those of a slot of other bars.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        self.open[to] = from.open[slot];
        self.quotes[to] = from.quotes[slot].clone();
    }

    /// The quotes that are kept for a slot.
    pub fn quotes(&self, slot: usize) -> &RecentQuotes {
        &self.quotes[slot]
    }

    /// Sets the quotes that are kept for a slot.
    pub fn set_quotes(&mut self, slot: usize, quotes: RecentQuotes) {
        self.quotes[slot] = quotes;
    }

    /// Writes for each slot its quotes, whether a bar is open, and the bar.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (bar, quotes) in self.open.iter().zip(&self.quotes) {
            quotes.write(out);
            put_u8(out, u8::from(bar.trades > 0));
            if bar.trades > 0 {
                bar.write(out);
            }
        }
    }

    /// Reads what [`FilledBars::write`] wrote.
    pub fn read(
        fill: Fill,
        allowed_lateness_ns: i64,
        slots: usize,
        bytes: &mut &[u8],
    ) -> Result<Self, StateError> {
        let mut bars = Self::new(fill, allowed_lateness_ns);
        for _ in 0..slots {
            bars.quotes.push(RecentQuotes::read(bytes)?);
            bars.open.push(match get_u8(bytes, "open bar")? {
                0 => OpenBar::default(),
                1 => OpenBar::read(bytes)?,
                found => {
                    return Err(StateError::Impossible { what: "open bar", found: format!("mark {found}") });
                }
            });
        }
        Ok(bars)
    }
}
