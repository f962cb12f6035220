//! One open bar: how trades and quotes change it, and its bytes.

use super::quotes::Quote;
use crate::StateError;
use crate::state::{get_i64, get_i128, put_i64, put_i128};

/// A bar that is not closed yet; without trades it will be none, and without a quote too it stands for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenBar {
    pub volume_e9: i128,
    pub notional_e18: i128,
    /// Event time of the trade that made the open price.
    pub open_time_ns: i64,
    /// Event time of the trade that made the close price.
    pub close_time_ns: i64,
    pub open_e9: i64,
    pub high_e9: i64,
    pub low_e9: i64,
    pub close_e9: i64,
    pub trades: i64,
    /// Time bars: the last quote within the bar.
    pub quote: Option<Quote>,
}

impl OpenBar {
    /// Whether there are neither trades nor a quote.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.trades == 0 && self.quote.is_none()
    }

    /// The bar of a first trade.
    #[inline(always)]
    pub fn of_trade(time_ns: i64, price_e9: i64, size_e9: i64) -> Self {
        Self {
            volume_e9: i128::from(size_e9),
            notional_e18: i128::from(price_e9) * i128::from(size_e9),
            open_time_ns: time_ns,
            close_time_ns: time_ns,
            open_e9: price_e9,
            high_e9: price_e9,
            low_e9: price_e9,
            close_e9: price_e9,
            trades: 1,
            quote: None,
        }
    }

    /// Keeps a quote that arrived after those before, if it is the last by event time.
    #[inline(always)]
    pub fn add_quote(&mut self, quote: Quote) {
        if self.quote.is_none_or(|last| quote.time_ns >= last.time_ns) {
            self.quote = Some(quote);
        }
    }

    /// Adds a trade; open and close are by event time, and by arrival among equals.
    #[inline(always)]
    pub fn add_by_event_time(&mut self, time_ns: i64, price_e9: i64, size_e9: i64) {
        if time_ns < self.open_time_ns {
            self.open_time_ns = time_ns;
            self.open_e9 = price_e9;
        }
        if time_ns >= self.close_time_ns {
            self.close_time_ns = time_ns;
            self.close_e9 = price_e9;
        }
        self.add_sums(price_e9, size_e9);
    }

    /// Adds a trade; open and close are by arrival.
    #[inline(always)]
    pub fn add_by_arrival(&mut self, time_ns: i64, price_e9: i64, size_e9: i64) {
        self.close_time_ns = time_ns;
        self.close_e9 = price_e9;
        self.add_sums(price_e9, size_e9);
    }

    #[inline(always)]
    fn add_sums(&mut self, price_e9: i64, size_e9: i64) {
        self.high_e9 = self.high_e9.max(price_e9);
        self.low_e9 = self.low_e9.min(price_e9);
        self.volume_e9 += i128::from(size_e9);
        // A product of two i64 fits; only sums of several products near 2^126 can pass 2^127.
        self.notional_e18 = self.notional_e18.saturating_add(i128::from(price_e9) * i128::from(size_e9));
        self.trades += 1;
    }

    /// Writes the bar but for its quote.
    pub fn write(&self, out: &mut Vec<u8>) {
        for value in
            [self.open_time_ns, self.close_time_ns, self.open_e9, self.high_e9, self.low_e9, self.close_e9]
        {
            put_i64(out, value);
        }
        put_i128(out, self.volume_e9);
        put_i128(out, self.notional_e18);
        put_i64(out, self.trades);
    }

    /// Reads what [`OpenBar::write`] wrote.
    pub fn read(bytes: &mut &[u8]) -> Result<Self, StateError> {
        let mut next = || get_i64(bytes, "open bar");
        let (open_time_ns, close_time_ns) = (next()?, next()?);
        let (open_e9, high_e9, low_e9, close_e9) = (next()?, next()?, next()?, next()?);
        let volume_e9 = get_i128(bytes, "open bar volume")?;
        let notional_e18 = get_i128(bytes, "open bar notional")?;
        let trades = get_i64(bytes, "open bar trades")?;
        let prices = low_e9 <= open_e9 && open_e9 <= high_e9 && low_e9 <= close_e9 && close_e9 <= high_e9;
        // Sums of i64 sizes: more than this cannot come together, and adding to it cannot overflow.
        let volume = volume_e9.unsigned_abs() <= 1 << 126;
        if !prices || !volume || !(1..=i64::MAX / 2).contains(&trades) {
            let found = format!(
                "a bar of {trades} trades with open, high, low, close {open_e9}, {high_e9}, {low_e9}, {close_e9} \
                 and volume {volume_e9}"
            );
            return Err(StateError::Impossible { what: "open bar", found });
        }
        Ok(Self {
            volume_e9,
            notional_e18,
            open_time_ns,
            close_time_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            trades,
            quote: None,
        })
    }
}
