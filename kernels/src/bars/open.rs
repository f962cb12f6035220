//! One open bar: how trades and quotes change it, and its encoding.

use super::quotes::Quote;
use crate::StateError;
use crate::rows::{RowKind, Rows, SIZE_EXPONENT_MAX};
use crate::state::{get_i64, get_i128, put_i64, put_i128};

/// Marks an unknown notional, because the bar's prices and volume could exceed 128 bits.
pub(crate) const NOTIONAL_TOO_LARGE: i128 = i128::MIN;

/// Number of entries by [`Aggressor`](crate::Aggressor).
pub(super) const AGGRESSORS: usize = 3;

/// Unit of trade sizes in 1e-9, by exponent.
const SIZE_UNITS: [i128; SIZE_EXPONENT_MAX as usize + 1] = {
    let mut units = [1; SIZE_EXPONENT_MAX as usize + 1];
    let mut exponent = 1;
    while exponent < units.len() {
        units[exponent] = units[exponent - 1] * 10;
        exponent += 1;
    }
    units
};

/// A trade in the form in which bars add it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trade {
    pub time_ns: i64,
    pub price_e9: i64,
    pub size_e9: i128,
    /// Price times size, modulo 2^128.
    pub notional_e18: i128,
    /// Number of the aggressor.
    pub aggressor: u32,
}

impl Trade {
    #[inline(always)]
    pub fn new(kind: RowKind, time_ns: i64, price_e9: i64, size: i64) -> Self {
        let (size_e9, notional_e18) = (i128::from(size), i128::from(price_e9) * i128::from(size));
        let aggressor = kind.aggressor();
        if kind.exponent() == 0 {
            return Self { time_ns, price_e9, size_e9, notional_e18, aggressor };
        }
        let unit = SIZE_UNITS[kind.exponent() as usize];
        let (size_e9, notional_e18) = (size_e9 * unit, notional_e18.wrapping_mul(unit));
        Self { time_ns, price_e9, size_e9, notional_e18, aggressor }
    }

    /// The trade at a row, which must be a trade.
    #[inline(always)]
    pub fn of(rows: &Rows, row: usize) -> Self {
        Self::new(rows.kind[row], rows.time_ns[row], rows.price_e9[row], rows.size_e9[row])
    }
}

/// A bar that is not closed yet. A bar without trades closes without a result, and is kept only for its quote; a bar
/// with neither is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenBar {
    /// Sums of sizes by [`Aggressor`](crate::Aggressor).
    pub volumes_e9: [i128; AGGRESSORS],
    /// Sum of price times size modulo 2^128, which does not depend on the order: see [`OpenBar::notional_e18`].
    pub notional_e18: i128,
    /// Event time of the trade with the open price.
    pub open_time_ns: i64,
    /// Event time of the trade with the close price.
    pub close_time_ns: i64,
    pub open_e9: i64,
    pub high_e9: i64,
    pub low_e9: i64,
    pub close_e9: i64,
    /// Numbers of trades by [`Aggressor`](crate::Aggressor).
    pub trades: [i64; AGGRESSORS],
    /// Last quote within a time bar; `None` if there was none.
    pub quote: Option<Quote>,
}

impl OpenBar {
    /// Makes a bar of its first trade.
    #[inline(always)]
    pub fn of_trade(trade: Trade) -> Self {
        let Trade { time_ns, price_e9, size_e9, notional_e18, aggressor } = trade;
        let mut bar = Self {
            volumes_e9: [0; AGGRESSORS],
            notional_e18,
            open_time_ns: time_ns,
            close_time_ns: time_ns,
            open_e9: price_e9,
            high_e9: price_e9,
            low_e9: price_e9,
            close_e9: price_e9,
            trades: [0; AGGRESSORS],
            quote: None,
        };
        bar.volumes_e9[aggressor as usize] = size_e9;
        bar.trades[aggressor as usize] = 1;
        bar
    }

    /// True if the bar has no trades.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.trades == [0; AGGRESSORS]
    }

    /// Number of trades.
    #[inline(always)]
    pub fn trade_count(&self) -> i64 {
        self.trades.iter().sum()
    }

    /// Sum of sizes, which saturates.
    #[inline(always)]
    pub fn volume_e9(&self) -> i128 {
        let [unknown, buyers, sellers] = self.volumes_e9;
        unknown.saturating_add(buyers).saturating_add(sellers)
    }

    /// Adds the next quote by arrival, and keeps it unless the kept one has a later event time.
    #[inline(always)]
    pub fn add_quote(&mut self, quote: Quote) {
        if self.quote.is_none_or(|last| quote.time_ns >= last.time_ns) {
            self.quote = Some(quote);
        }
    }

    /// Adds a trade; open and close are by event time, and by arrival if times are equal.
    #[inline(always)]
    pub fn add_by_event_time(&mut self, trade: Trade) {
        let Trade { time_ns, price_e9, .. } = trade;
        if time_ns < self.open_time_ns {
            self.open_time_ns = time_ns;
            self.open_e9 = price_e9;
        }
        if time_ns >= self.close_time_ns {
            self.close_time_ns = time_ns;
            self.close_e9 = price_e9;
        }
        self.add_sums(trade);
    }

    /// Adds a trade; open and close are by arrival.
    #[inline(always)]
    pub fn add_by_arrival(&mut self, trade: Trade) {
        self.close_time_ns = trade.time_ns;
        self.close_e9 = trade.price_e9;
        self.add_sums(trade);
    }

    #[inline(always)]
    fn add_sums(&mut self, trade: Trade) {
        self.high_e9 = self.high_e9.max(trade.price_e9);
        self.low_e9 = self.low_e9.min(trade.price_e9);
        // Sizes are not negative, so a saturating sum does not depend on the order either.
        let volume_e9 = &mut self.volumes_e9[trade.aggressor as usize];
        *volume_e9 = volume_e9.saturating_add(trade.size_e9);
        self.notional_e18 = self.notional_e18.wrapping_add(trade.notional_e18);
        self.trades[trade.aggressor as usize] += 1;
    }

    /// Sum of price times size, or [`NOTIONAL_TOO_LARGE`]. The magnitude of the sum is at most the greatest magnitude
    /// of a price times the volume. If that has 127 bits, the sum modulo 2^128 is the sum.
    #[inline(always)]
    pub fn notional_e18(&self) -> i128 {
        let price_e9 = self.high_e9.unsigned_abs().max(self.low_e9.unsigned_abs());
        match i128::from(price_e9).checked_mul(self.volume_e9()) {
            Some(_) => self.notional_e18,
            None => NOTIONAL_TOO_LARGE,
        }
    }

    /// Writes the bar without its quote.
    pub fn write(&self, out: &mut Vec<u8>) {
        for value in
            [self.open_time_ns, self.close_time_ns, self.open_e9, self.high_e9, self.low_e9, self.close_e9]
        {
            put_i64(out, value);
        }
        self.volumes_e9.iter().for_each(|volume_e9| put_i128(out, *volume_e9));
        put_i128(out, self.notional_e18);
        self.trades.iter().for_each(|trades| put_i64(out, *trades));
    }

    /// Reads the bytes of [`OpenBar::write`].
    pub fn read(bytes: &mut &[u8]) -> Result<Self, StateError> {
        let mut next = || get_i64(bytes, "open bar");
        let (open_time_ns, close_time_ns) = (next()?, next()?);
        let (open_e9, high_e9, low_e9, close_e9) = (next()?, next()?, next()?, next()?);
        let mut volumes_e9 = [0; AGGRESSORS];
        for volume_e9 in &mut volumes_e9 {
            *volume_e9 = get_i128(bytes, "open bar volume")?;
        }
        let notional_e18 = get_i128(bytes, "open bar notional")?;
        let mut trades = [0; AGGRESSORS];
        for trades in &mut trades {
            *trades = get_i64(bytes, "open bar trades")?;
        }
        let prices = low_e9 <= open_e9 && open_e9 <= high_e9 && low_e9 <= close_e9 && close_e9 <= high_e9;
        let are_counts = trades.iter().all(|trades| (0..=i64::MAX / 4).contains(trades));
        let are_sums = trades
            .iter()
            .zip(&volumes_e9)
            .all(|(&trades, &volume)| volume >= 0 && (trades > 0 || volume == 0));
        if !prices || !are_counts || !are_sums || trades == [0; AGGRESSORS] {
            let found = format!(
                "a bar of {trades:?} trades with open, high, low, close {open_e9}, {high_e9}, {low_e9}, {close_e9} \
                 and volumes {volumes_e9:?}"
            );
            return Err(StateError::Impossible { what: "open bar", found });
        }
        Ok(Self {
            volumes_e9,
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
