//! The last quote of each slot, and the one that each closed bar saw.

use std::ops::Range;

use super::closed::ClosedBars;
use crate::StateError;
use crate::rows::{RowKind, Rows};
use crate::state::{expect_head, get_i64, put_head, put_i64};

const STATE_VERSION: u32 = 1;

/// Bid and ask price of each slot's last quote.
///
/// For each range of rows: fold it with every [`super::BarSlab`], then [`QuoteSlab::fill`] for each of their results,
/// then [`QuoteSlab::fold`] once.
#[derive(Clone, Debug, Default)]
pub struct QuoteSlab {
    quotes: Vec<Quote>,
    /// The quotes as they were at a row within the range that is being filled from; no part of the state.
    walked: Vec<Quote>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Quote {
    bid_price_e9: i64,
    ask_price_e9: i64,
}

impl QuoteSlab {
    /// Makes room for `slots` slots; there are never fewer than before.
    pub fn resize(&mut self, slots: usize) {
        self.quotes.resize(self.quotes.len().max(slots), Quote::default());
    }

    /// Fills bid and ask of bars that rows of `range` closed: the slot's last quote before that row in log order, 0 where
    /// there is none. The slab must stand at the start of the range and stays there.
    pub fn fill(&mut self, rows: &Rows, range: Range<usize>, closed: &mut ClosedBars) {
        if closed.is_empty() {
            return;
        }
        self.walked.clone_from(&self.quotes);
        let mut next = range.start;
        for bar in 0..closed.len() {
            let row = closed.row[bar] as usize;
            debug_assert!(range.contains(&row), "bars were closed by rows of another range");
            apply(&mut self.walked, rows, next..row.max(next));
            next = row.max(next);
            let quote = self.walked[closed.slot[bar] as usize];
            closed.bid_price_e9[bar] = quote.bid_price_e9;
            closed.ask_price_e9[bar] = quote.ask_price_e9;
        }
    }

    /// Takes in the quotes of `range`. Panics at a slot there is no room for.
    pub fn fold(&mut self, rows: &Rows, range: Range<usize>) {
        apply(&mut self.quotes, rows, range);
    }

    /// Bid and ask price of a slot's last quote.
    pub(crate) fn quote(&self, slot: usize) -> [i64; 2] {
        [self.quotes[slot].bid_price_e9, self.quotes[slot].ask_price_e9]
    }

    /// Sets them.
    pub(crate) fn set_quote(&mut self, slot: usize, [bid_price_e9, ask_price_e9]: [i64; 2]) {
        self.quotes[slot] = Quote { bid_price_e9, ask_price_e9 };
    }

    /// Adds the state's bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_head(out, STATE_VERSION, self.quotes.len());
        for quote in &self.quotes {
            put_i64(out, quote.bid_price_e9);
            put_i64(out, quote.ask_price_e9);
        }
    }

    /// Reads what [`QuoteSlab::write`] wrote for the same number of slots, and moves `bytes` behind it.
    pub fn read(slots: usize, bytes: &mut &[u8]) -> Result<Self, StateError> {
        expect_head(bytes, "quote state", STATE_VERSION, slots)?;
        let mut quotes = Vec::new();
        for _ in 0..slots {
            let bid_price_e9 = get_i64(bytes, "bid price")?;
            quotes.push(Quote { bid_price_e9, ask_price_e9: get_i64(bytes, "ask price")? });
        }
        Ok(Self { quotes, walked: Vec::new() })
    }
}

fn apply(quotes: &mut [Quote], rows: &Rows, range: Range<usize>) {
    for row in range {
        if rows.kind[row] == RowKind::Quote {
            quotes[rows.slot[row] as usize] =
                Quote { bid_price_e9: rows.price_e9[row], ask_price_e9: rows.size_e9[row] };
        }
    }
}
