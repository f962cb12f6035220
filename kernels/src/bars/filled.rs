//! Open bars that close when they are full, by number of trades or by volume; one per slot.

use std::ops::Range;

use super::closed::ClosedBars;
use super::open::{AGGRESSORS, OpenBar, Trade};
use super::quotes::{Quote, RecentQuotes};
use crate::StateError;
use crate::rows::{RowKind, Rows};
use crate::state::{get_u8, put_u8};

/// The condition under which a bar is full.
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
    /// The open bar of each slot; a bar without trades if none is open.
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
            Fill::Trades(count) => self.fold_until(rows, range, closed, |bar| bar.trade_count() >= count),
            Fill::VolumeE9(volume_e9) => {
                self.fold_until(rows, range, closed, |bar| bar.volume_e9() >= i128::from(volume_e9));
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
        let mut quote_sizes = rows.quote_sizes[rows.quotes_before(range.start)..].iter();
        for row in range {
            let slot = rows.slot[row];
            match rows.kind[row].base() {
                RowKind::QUOTE => {
                    let sizes = *quote_sizes.next().expect("each quote has an entry");
                    let quote = Quote::of(rows, row, sizes);
                    self.quotes[slot as usize].add(quote, self.allowed_lateness_ns);
                    continue;
                }
                RowKind::WATERMARK | RowKind::BARRIER => continue,
                _ => {}
            }
            let bar = &mut self.open[slot as usize];
            if bar.is_empty() {
                *bar = OpenBar::of_trade(Trade::of(rows, row));
            } else {
                bar.add_by_arrival(Trade::of(rows, row));
            }
            if is_full(bar) {
                let top = self.quotes[slot as usize].at(bar.close_time_ns);
                closed.push(slot, [bar.open_time_ns, bar.close_time_ns], bar, top, rows, row);
                bar.trades = [0; AGGRESSORS];
            }
        }
    }

    /// The open bar of a slot; `None` if it has no trades.
    pub fn of_slot(&self, slot: usize) -> Option<&OpenBar> {
        Some(&self.open[slot]).filter(|bar| !bar.is_empty())
    }

    /// Sets the open bar of a slot.
    pub fn set_bar(&mut self, slot: usize, bar: OpenBar) {
        self.open[slot] = bar;
    }

    /// Copies the bar and the quotes of a slot from another value.
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

    /// Writes for each slot its quotes, a mark for an open bar, and the bar.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (bar, quotes) in self.open.iter().zip(&self.quotes) {
            quotes.write(out);
            put_u8(out, u8::from(!bar.is_empty()));
            if !bar.is_empty() {
                bar.write(out);
            }
        }
    }

    /// Reads the bytes of [`FilledBars::write`].
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
