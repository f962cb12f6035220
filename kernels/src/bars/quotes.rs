//! Quotes by event time: which of them is a bar's.

use std::collections::VecDeque;

use crate::StateError;
use crate::state::{get_i64, get_u32, put_i64, put_u32};

/// The most quotes that bars by count or volume keep for a slot.
pub const RECENT_QUOTES_MAX: usize = 64;

/// A slot's best bid and ask from an event time on; a price of 0 says that the side has no orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quote {
    pub time_ns: i64,
    pub bid_e9: i64,
    pub ask_e9: i64,
}

impl Quote {
    /// Writes the quote.
    pub fn write(&self, out: &mut Vec<u8>) {
        [self.time_ns, self.bid_e9, self.ask_e9].into_iter().for_each(|value| put_i64(out, value));
    }

    /// Reads what [`Quote::write`] wrote.
    pub fn read(bytes: &mut &[u8]) -> Result<Self, StateError> {
        let mut next = || get_i64(bytes, "quote");
        Ok(Self { time_ns: next()?, bid_e9: next()?, ask_e9: next()? })
    }
}

/// A slot's newest quotes by event time: those that later trades may ask for, at most [`RECENT_QUOTES_MAX`] of them.
///
/// A bar by count or volume ends at a trade, at whatever event time that trade has. A trade that is not late is not older than
/// the slot's newest quote by more than the allowed lateness, so that of all quotes from before that, one is enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentQuotes {
    /// Ascending by event time, and by arrival among equals.
    quotes: VecDeque<Quote>,
}

impl RecentQuotes {
    /// Takes in a quote that arrived after those before.
    #[inline]
    pub fn add(&mut self, quote: Quote, allowed_lateness_ns: i64) {
        let newer = self.quotes.iter().rev().take_while(|kept| kept.time_ns > quote.time_ns).count();
        if self.quotes.len() == RECENT_QUOTES_MAX {
            if newer == RECENT_QUOTES_MAX {
                return;
            }
            self.quotes.pop_front();
        }
        self.quotes.insert(self.quotes.len() - newer, quote);
        let newest_ns = self.quotes[self.quotes.len() - 1].time_ns;
        let settled_ns = newest_ns.saturating_sub(allowed_lateness_ns);
        while self.quotes.len() > 1 && self.quotes[1].time_ns <= settled_ns {
            self.quotes.pop_front();
        }
    }

    /// Bid and ask of the last quote at an event time or before; 0 where none is kept.
    #[inline]
    pub fn at(&self, time_ns: i64) -> [i64; 2] {
        let found = self.quotes.iter().rev().find(|quote| quote.time_ns <= time_ns);
        found.map_or([0; 2], |quote| [quote.bid_e9, quote.ask_e9])
    }

    /// The quotes, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Quote> {
        self.quotes.iter()
    }

    /// Writes how many quotes there are, and each, oldest first.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.quotes.len() as u32);
        self.quotes.iter().for_each(|quote| quote.write(out));
    }

    /// Reads what [`RecentQuotes::write`] wrote.
    pub fn read(bytes: &mut &[u8]) -> Result<Self, StateError> {
        let count = get_u32(bytes, "recent quotes")? as usize;
        if count > RECENT_QUOTES_MAX {
            return Err(StateError::Impossible { what: "recent quotes", found: format!("{count} quotes") });
        }
        let quotes = (0..count).map(|_| Quote::read(bytes)).collect::<Result<VecDeque<_>, _>>()?;
        if !quotes.iter().is_sorted_by_key(|quote| quote.time_ns) {
            let found = "quotes that are not in the order of their event times".to_owned();
            return Err(StateError::Impossible { what: "recent quotes", found });
        }
        Ok(Self { quotes })
    }
}

impl FromIterator<Quote> for RecentQuotes {
    /// Quotes as they were kept, oldest first.
    fn from_iter<I: IntoIterator<Item = Quote>>(quotes: I) -> Self {
        Self { quotes: quotes.into_iter().collect() }
    }
}
