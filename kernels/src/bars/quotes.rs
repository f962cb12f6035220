//! Quotes by event time, and the selection of a bar's quote.

use std::collections::VecDeque;

use crate::StateError;
use crate::rows::{ABSENT, Rows, SIZE_EXPONENT_MAX};
use crate::state::{get_i64, get_u8, get_u32, put_i64, put_u8, put_u32};

/// Most quotes of a slot that bars by count or volume keep.
pub const RECENT_QUOTES_MAX: usize = 256;

/// Special size of both sides of a quote that is no longer kept.
pub const FORGOTTEN: i64 = -2;

/// A slot's best bid and ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Top {
    /// Bid and ask price; 0 for a side without orders.
    pub prices_e9: [i64; 2],
    /// Sizes of bid and ask in `10^exponent` of 1e-9; 0 if they are unknown, or [`ABSENT`].
    pub sizes: [i64; 2],
    pub exponent: u32,
}

impl Top {
    /// No orders.
    pub const NONE: Self = Self { prices_e9: [0; 2], sizes: [ABSENT; 2], exponent: 0 };
    /// A quote that is no longer kept.
    pub const FORGOTTEN: Self = Self { prices_e9: [0; 2], sizes: [FORGOTTEN; 2], exponent: 0 };

    /// Sizes in 1e-9; the special values for absent and forgotten sizes stay unchanged.
    pub fn sizes_e9(&self) -> [i128; 2] {
        let unit = 10_i128.pow(self.exponent);
        self.sizes.map(|size| if size < 0 { size.into() } else { i128::from(size) * unit })
    }

    /// Writes prices and sizes.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.prices_e9.into_iter().for_each(|price| put_i64(out, price));
        self.sizes.into_iter().for_each(|size| put_i64(out, size));
        put_u8(out, self.exponent as u8);
    }

    /// Reads the bytes of [`Top::write`].
    pub fn read(bytes: &mut &[u8]) -> Result<Self, StateError> {
        let mut next = || get_i64(bytes, "quote");
        let prices_e9 = [next()?, next()?];
        let sizes = [next()?, next()?];
        let exponent = u32::from(get_u8(bytes, "unit of a quote's sizes")?);
        if exponent > SIZE_EXPONENT_MAX || sizes.iter().any(|&size| size < ABSENT) {
            let found = format!("a quote with sizes {sizes:?} of 10^{exponent}");
            return Err(StateError::Impossible { what: "quote", found });
        }
        Ok(Self { prices_e9, sizes, exponent })
    }
}

impl Default for Top {
    fn default() -> Self {
        Self::NONE
    }
}

/// A slot's best bid and ask from an event time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quote {
    pub time_ns: i64,
    pub top: Top,
}

impl Quote {
    /// The quote at a row, with its sizes from the columns of the rows.
    #[inline(always)]
    pub fn of(rows: &Rows, row: usize, sizes: [i64; 2]) -> Self {
        let prices_e9 = [rows.price_e9[row], rows.size_e9[row]];
        Self {
            time_ns: rows.time_ns[row],
            top: Top { prices_e9, sizes, exponent: rows.kind[row].exponent() },
        }
    }

    /// Writes the quote.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_i64(out, self.time_ns);
        self.top.write(out);
    }

    /// Reads the bytes of [`Quote::write`].
    pub fn read(bytes: &mut &[u8]) -> Result<Self, StateError> {
        Ok(Self { time_ns: get_i64(bytes, "quote")?, top: Top::read(bytes)? })
    }
}

/// A slot's newest quotes by event time: those that later trades may need, at most [`RECENT_QUOTES_MAX`].
///
/// A bar by count or volume ends at a trade, at any event time. A trade that is not late is older than the slot's
/// newest quote by at most the allowed lateness. So a single quote from before that time is enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentQuotes {
    /// Quotes, ascending by event time, and by arrival if times are equal.
    quotes: VecDeque<Quote>,
    /// True if a dropped quote might have been needed by a trade.
    pub has_forgotten: bool,
}

impl RecentQuotes {
    /// Adds a quote, which arrived after all earlier ones.
    #[inline]
    pub fn add(&mut self, quote: Quote, allowed_lateness_ns: i64) {
        let newer = self.quotes.iter().rev().take_while(|kept| kept.time_ns > quote.time_ns).count();
        if self.quotes.len() == RECENT_QUOTES_MAX {
            self.has_forgotten = true;
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

    /// Bid and ask of the last quote at or before an event time.
    #[inline]
    pub fn at(&self, time_ns: i64) -> Top {
        let found = self.quotes.iter().rev().find(|quote| quote.time_ns <= time_ns);
        found.map_or(if self.has_forgotten { Top::FORGOTTEN } else { Top::NONE }, |quote| quote.top)
    }

    /// The quotes, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Quote> {
        self.quotes.iter()
    }

    /// Writes a mark for dropped quotes, the number of quotes, and each quote, oldest first.
    pub fn write(&self, out: &mut Vec<u8>) {
        put_u8(out, u8::from(self.has_forgotten));
        put_u32(out, self.quotes.len() as u32);
        self.quotes.iter().for_each(|quote| quote.write(out));
    }

    /// Reads the bytes of [`RecentQuotes::write`].
    pub fn read(bytes: &mut &[u8]) -> Result<Self, StateError> {
        let impossible = |found| StateError::Impossible { what: "recent quotes", found };
        let has_forgotten = match get_u8(bytes, "recent quotes")? {
            mark @ 0..=1 => mark == 1,
            mark => return Err(impossible(format!("mark {mark}"))),
        };
        let count = get_u32(bytes, "recent quotes")? as usize;
        if count > RECENT_QUOTES_MAX {
            return Err(impossible(format!("{count} quotes")));
        }
        let quotes = (0..count).map(|_| Quote::read(bytes)).collect::<Result<VecDeque<_>, _>>()?;
        if !quotes.iter().is_sorted_by_key(|quote| quote.time_ns) {
            return Err(impossible("quotes that are not in the order of their event times".to_owned()));
        }
        Ok(Self { quotes, has_forgotten })
    }
}

impl FromIterator<Quote> for RecentQuotes {
    /// Collects quotes, which must be in the order of age, oldest first.
    fn from_iter<I: IntoIterator<Item = Quote>>(quotes: I) -> Self {
        Self { quotes: quotes.into_iter().collect(), has_forgotten: false }
    }
}
