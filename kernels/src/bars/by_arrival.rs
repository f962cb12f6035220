//! The rule by which former logs were processed: a bar's quote was the last one to arrive before the bar was closed.

use std::ops::Range;

use super::closed::ClosedBars;
use crate::rows::Rows;

/// Bid and ask price of the quote of each slot that arrived last. Bars have their quotes by event time; this is for running
/// logs again whose signals were made before that.
///
/// For each range of rows: fold it with every [`super::BarSlab`], then [`QuotesByArrival::fill`] for each of their results,
/// then [`QuotesByArrival::fold`] once.
#[derive(Clone, Debug, Default)]
pub struct QuotesByArrival {
    quotes: Vec<[i64; 2]>,
    /// The last quotes as of the row that [`QuotesByArrival::fill`] has reached.
    walked: Vec<[i64; 2]>,
}

impl QuotesByArrival {
    /// Makes room for `slots` slots; there are never fewer than before.
    pub fn resize(&mut self, slots: usize) {
        self.quotes.resize(self.quotes.len().max(slots), [0; 2]);
    }

    /// Replaces bid and ask of bars that rows of `range` closed by those of the slot's last quote before that row in log order,
    /// 0 where there is none. The quotes must be those before the range, and stay so.
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
            [closed.bid_price_e9[bar], closed.ask_price_e9[bar]] = self.walked[closed.slot[bar] as usize];
        }
    }

    /// Takes in the quotes of `range`. Panics at a slot for which there is no room.
    pub fn fold(&mut self, rows: &Rows, range: Range<usize>) {
        apply(&mut self.quotes, rows, range);
    }
}

fn apply(quotes: &mut [[i64; 2]], rows: &Rows, range: Range<usize>) {
    for row in range {
        if rows.kind[row].is_quote() {
            quotes[rows.slot[row] as usize] = [rows.price_e9[row], rows.size_e9[row]];
        }
    }
}
