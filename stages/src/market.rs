//! The market after a partition's ticks: last prices by symbol, and earlier ones at regular times.
//!
//! ```text
//!   event time  ──┬─────────┬─────────┬────►  multiples of the sampling interval
//!                 ▼         ▼         ▼
//!   samples     last price of every symbol, the newest `window + 1` of them: `window` returns
//! ```
//!
//! The market is kept on the host, beside the intake, where it costs a tick one store, because requests read few
//! symbols. It is a function of the partition's log: late ticks are not seen. A sample is taken when event time first
//! reaches a multiple of the interval. Prices are the last by event time: a tick that arrives out of order never
//! replaces a newer one.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use warptape_events::tick::Scales;
use warptape_kernels::ParameterMistake;

use crate::StageError;
use crate::bytes::{get_i64, get_u32, put_i64, put_u32};
use crate::samples::{SampleRow, SampleRows};
use crate::scales::{PriceScales, price_of};

/// Most returns that are kept of each symbol.
const WINDOW_MAX: u32 = 4_096;
/// The least decay: with a smaller one, only the last return would count.
const DECAY_MIN: f64 = 0.01;
const SECOND_NS: i64 = 1_000_000_000;

/// Configuration of the samples of the market.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarketConfig {
    /// Time between samples, in nanoseconds of event time.
    pub sample_interval_ns: i64,
    /// Returns that are kept, from which volatilities and correlations are computed.
    pub window: u32,
    /// Weight of a squared return relative to the one after it.
    pub decay: f64,
    /// Hours of event time in a year, by which variances are annualised; 8,760 for markets that never close.
    #[serde(default = "hours_of_365_days", skip_serializing_if = "are_of_365_days")]
    pub trading_hours_a_year: f64,
}

/// Hours of 365 days.
const HOURS_A_YEAR: f64 = 8_760.0;
/// Nanoseconds of an hour.
const HOUR_NS: f64 = 3.6e12;

fn hours_of_365_days() -> f64 {
    HOURS_A_YEAR
}

/// True for the default hours, which are not recorded.
fn are_of_365_days(hours: &f64) -> bool {
    *hours == HOURS_A_YEAR
}

impl Default for MarketConfig {
    fn default() -> Self {
        Self { sample_interval_ns: SECOND_NS, window: 256, decay: 0.94, trading_hours_a_year: HOURS_A_YEAR }
    }
}

impl MarketConfig {
    /// All mistakes, each with its field and the allowed values.
    pub fn check(&self) -> Vec<ParameterMistake> {
        let mut mistakes = Vec::new();
        if !(1_000_000..=86_400 * SECOND_NS).contains(&self.sample_interval_ns) {
            let given = self.sample_interval_ns;
            let allowed = "a millisecond to a day is allowed";
            mistakes.push(ParameterMistake::new("sample_interval_ns", format!("{given} ns"), allowed));
        }
        if !(2..=WINDOW_MAX).contains(&self.window) {
            let allowed = format!("2 to {WINDOW_MAX} are allowed");
            mistakes.push(ParameterMistake::new("window", self.window, allowed));
        }
        if !(DECAY_MIN..=1.0).contains(&self.decay) {
            let allowed = format!("{DECAY_MIN} to 1 is allowed");
            mistakes.push(ParameterMistake::new("decay", self.decay, allowed));
        }
        if !(1.0..=HOURS_A_YEAR).contains(&self.trading_hours_a_year) {
            let given = self.trading_hours_a_year;
            let allowed = format!("1 to {HOURS_A_YEAR} is allowed");
            mistakes.push(ParameterMistake::new("trading_hours_a_year", given, allowed));
        }
        mistakes
    }

    /// Event time of a year, in nanoseconds.
    pub fn year_ns(&self) -> f64 {
        self.trading_hours_a_year * HOUR_NS
    }

    /// True if all values are the defaults, so that the configuration is recorded without them.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The market of one symbol, after the records before an offset.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolMarket {
    /// Partition of its ticks.
    pub partition: i32,
    /// Offset of the first record that is not in it.
    pub next_offset: i64,
    /// Mid of the last quote that had two sides, else the last trade; `None` before either, and if it is not positive.
    pub spot: Option<f64>,
    /// True if the price is known and not positive.
    pub is_not_positive: bool,
    /// Event time of the quote or the trade of the price; `None` before either.
    pub time_ns: Option<i64>,
    /// Prices at the samples since the last one without a known, positive price.
    pub samples: Samples,
    /// Number of the last sample: its event time divided by the sampling interval.
    pub last_sample: i64,
    /// Event time from one sample to the next, in nanoseconds.
    pub sample_interval_ns: i64,
    /// Weight of a squared return relative to the one after it.
    pub decay: f64,
    /// Event time of a year, in nanoseconds.
    pub year_ns: f64,
}

/// Prices of a symbol at regular times. They are shared with the market, so that taking them for a request copies
/// nothing while ticks wait.
#[derive(Clone)]
pub struct Samples {
    rows: Arc<SampleRows>,
    symbol: usize,
}

impl Samples {
    /// The prices since the last sample without a positive one, oldest first.
    pub fn prices(&self) -> Vec<f64> {
        let price = |row: &SampleRow| row.get(self.symbol).unwrap_or(0.0);
        let mut prices: Vec<f64> = self.rows.iter().map(price).collect();
        let first = prices.iter().rposition(|price| *price == 0.0).map_or(0, |last| last + 1);
        prices.drain(..first);
        prices
    }
}

impl From<Vec<f64>> for Samples {
    fn from(prices: Vec<f64>) -> Self {
        let rows = prices.into_iter().map(|price| SampleRow::after(None, [price].into_iter())).collect();
        Self { rows: Arc::new(rows), symbol: 0 }
    }
}

impl PartialEq for Samples {
    fn eq(&self, other: &Self) -> bool {
        self.prices() == other.prices()
    }
}

impl fmt::Debug for Samples {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.prices().fmt(formatter)
    }
}

/// The last prices of a symbol; 0 if there were none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastPrices {
    trade_time_ns: i64,
    trade_e9: i64,
    /// Event time of the last quote with both sides.
    quote_time_ns: i64,
    bid_e9: i64,
    ask_e9: i64,
    /// Event time of the newest tick of any kind; the least number before the first.
    newest_ns: i64,
    /// Digits of the prices after the decimal point.
    scale: u8,
}

impl LastPrices {
    fn of_scale(scale: u8) -> Self {
        let newest_ns = i64::MIN;
        Self { trade_time_ns: 0, trade_e9: 0, quote_time_ns: 0, bid_e9: 0, ask_e9: 0, newest_ns, scale }
    }

    /// True if there was a quote with two sides.
    fn has_quote(&self) -> bool {
        self.quote_time_ns > 0
    }

    /// The price; `None` if it is not positive, because other prices have no returns and volatilities.
    fn price(&self) -> Option<f64> {
        let price = match self.has_quote() {
            true => (self.bid_e9 as f64 + self.ask_e9 as f64) / 2.0,
            false => self.trade_e9 as f64,
        };
        (price > 0.0).then_some(price_of(price, self.scale))
    }

    /// Event time of the price.
    fn time_ns(&self) -> Option<i64> {
        let time_ns = if self.has_quote() { self.quote_time_ns } else { self.trade_time_ns };
        (time_ns > 0).then_some(time_ns)
    }

    /// True if there was a price, and the last one is not positive.
    fn is_not_positive(&self) -> bool {
        self.price().is_none() && self.quote_time_ns.max(self.trade_time_ns) > 0
    }
}

/// The market of one partition.
#[derive(Debug)]
pub(crate) struct Market {
    config: MarketConfig,
    /// Last prices, by symbol number.
    last: Vec<LastPrices>,
    /// Samples, which are changed in place unless a request still has them.
    samples: Arc<SampleRows>,
    /// Number of the last sample.
    last_sample: i64,
    /// Event time of the next sample; the first tick determines it.
    next_sample_ns: i64,
}

impl Market {
    pub(crate) fn new(config: MarketConfig) -> Self {
        let samples = Arc::default();
        Self { config, last: Vec::new(), samples, last_sample: 0, next_sample_ns: i64::MIN }
    }

    /// Adds a symbol with prices of this scale.
    pub(crate) fn add_symbol(&mut self, scale: u8) {
        self.last.push(LastPrices::of_scale(scale));
    }

    /// Sets the scales of all symbols.
    pub(crate) fn set_price_scales(&mut self, scales: &PriceScales) {
        for (symbol, last) in (0..).zip(&mut self.last) {
            last.scale = scales.of(symbol);
        }
    }

    /// Moves event time on, before the tick that moves it is seen.
    #[inline]
    pub(crate) fn advance(&mut self, time_ns: i64) {
        if time_ns >= self.next_sample_ns {
            self.sample(time_ns);
        }
    }

    /// Event time at which the next sample is taken.
    pub(crate) fn next_sample_ns(&self) -> i64 {
        self.next_sample_ns
    }

    /// Moves event time back. Nothing after this time counts as seen, because newer prices come with earlier times.
    pub(crate) fn go_back(&mut self, time_ns: i64) {
        for last in &mut self.last {
            last.trade_time_ns = last.trade_time_ns.min(time_ns);
            last.quote_time_ns = last.quote_time_ns.min(time_ns);
            last.newest_ns = last.newest_ns.min(time_ns);
        }
        let interval_ns = self.config.sample_interval_ns;
        self.last_sample = time_ns.div_euclid(interval_ns);
        self.next_sample_ns = self.last_sample.saturating_add(1).saturating_mul(interval_ns);
    }

    /// Event time of a symbol's newest tick; the least number before the first.
    pub(crate) fn newest_ns(&self, symbol: u32) -> i64 {
        self.last[symbol as usize].newest_ns
    }

    #[inline]
    pub(crate) fn trade(&mut self, symbol: u32, time_ns: i64, price_e9: i64) {
        let last = &mut self.last[symbol as usize];
        last.newest_ns = last.newest_ns.max(time_ns);
        if time_ns >= last.trade_time_ns {
            (last.trade_time_ns, last.trade_e9) = (time_ns, price_e9);
        }
    }

    /// Takes a quote, whose sides may have no orders. A quote with a single side or with crossed sides has no mid, so
    /// the one before it stays.
    #[inline]
    pub(crate) fn quote(&mut self, symbol: u32, time_ns: i64, [bid_e9, ask_e9]: [i64; 2], has_sides: bool) {
        let last = &mut self.last[symbol as usize];
        last.newest_ns = last.newest_ns.max(time_ns);
        let has_mid = has_sides && bid_e9 <= ask_e9;
        if time_ns >= last.quote_time_ns && has_mid {
            (last.quote_time_ns, last.bid_e9, last.ask_e9) = (time_ns, bid_e9, ask_e9);
        }
    }

    /// Takes a sample for each multiple of the interval that event time has reached since the last one.
    fn sample(&mut self, time_ns: i64) {
        let interval_ns = self.config.sample_interval_ns;
        let due = time_ns.div_euclid(interval_ns);
        let is_first = self.next_sample_ns == i64::MIN;
        let kept = self.config.window as usize + 1;
        // There was nothing to sample before the first tick.
        let missed = if is_first { 0 } else { due.abs_diff(self.last_sample) };
        let prices = self.last.iter().map(|last| last.price().unwrap_or(0.0));
        let row = SampleRow::after(self.samples.back(), prices);
        let samples = Arc::make_mut(&mut self.samples);
        for _ in 0..missed.min(kept as u64) {
            if samples.len() == kept {
                samples.pop_front();
            }
            samples.push_back(row.clone());
        }
        self.last_sample = due;
        self.next_sample_ns = due.saturating_add(1).saturating_mul(interval_ns);
    }

    /// The market of a symbol.
    pub(crate) fn of(&self, symbol: u32, partition: i32, next_offset: i64) -> SymbolMarket {
        let symbol = symbol as usize;
        SymbolMarket {
            partition,
            next_offset,
            spot: self.last[symbol].price(),
            is_not_positive: self.last[symbol].is_not_positive(),
            time_ns: self.last[symbol].time_ns(),
            samples: Samples { rows: self.samples.clone(), symbol },
            last_sample: self.last_sample,
            sample_interval_ns: self.config.sample_interval_ns,
            decay: self.config.decay,
            year_ns: self.config.year_ns(),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_i64(out, self.last_sample);
        put_i64(out, self.next_sample_ns);
        for last in &self.last {
            let LastPrices { trade_time_ns, trade_e9, quote_time_ns, bid_e9, ask_e9, newest_ns, scale: _ } =
                *last;
            let numbers = [trade_time_ns, trade_e9, quote_time_ns, bid_e9, ask_e9, newest_ns];
            numbers.into_iter().for_each(|number| put_i64(out, number));
        }
        put_u32(out, self.samples.len() as u32);
        let before = std::iter::once(None).chain(self.samples.iter().map(Some));
        self.samples.iter().zip(before).for_each(|(row, before)| row.write(before, out));
    }

    /// Reads the bytes of a partition with `symbols` symbols.
    pub(crate) fn read(config: MarketConfig, symbols: usize, bytes: &mut &[u8]) -> Result<Self, StageError> {
        let mut market = Self::new(config);
        market.last_sample = get_i64(bytes, "last sample")?;
        market.next_sample_ns = get_i64(bytes, "next sample")?;
        for _ in 0..symbols {
            let mut next = || get_i64(bytes, "last prices");
            let (trade_time_ns, trade_e9) = (next()?, next()?);
            let (quote_time_ns, bid_e9, ask_e9) = (next()?, next()?, next()?);
            let newest_ns = next()?;
            let scale = Scales::E9.price;
            market.last.push(LastPrices {
                trade_time_ns,
                trade_e9,
                quote_time_ns,
                bid_e9,
                ask_e9,
                newest_ns,
                scale,
            });
        }
        let samples = get_u32(bytes, "sample count")?;
        if samples > config.window + 1 {
            return Err(StageError::Damaged { found: format!("{samples} samples") });
        }
        let mut rows = SampleRows::new();
        for _ in 0..samples {
            rows.push_back(SampleRow::read(rows.back(), symbols, bytes)?);
        }
        market.samples = Arc::new(rows);
        Ok(market)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn market() -> Market {
        let mut market = Market::new(MarketConfig { window: 3, ..MarketConfig::default() });
        (0..2).for_each(|_| market.add_symbol(Scales::E9.price));
        market
    }

    const S: i64 = SECOND_NS;

    /// A quote, whose sides without a price have no orders.
    fn quote(market: &mut Market, symbol: u32, time_ns: i64, prices: [i64; 2]) {
        market.quote(symbol, time_ns, prices, prices[0] != 0 && prices[1] != 0);
    }

    #[test]
    fn a_sample_is_the_last_price_before_its_time() {
        let mut market = market();
        market.advance(S + 1);
        market.trade(0, S + 1, 5 * S);
        market.advance(2 * S - 1);
        market.trade(0, 2 * S - 1, 6 * S);
        assert_eq!(market.of(0, 7, 8).samples.prices(), [0.0; 0]);
        market.advance(2 * S);
        market.trade(0, 2 * S, 7 * S);
        let of = market.of(0, 7, 8);
        assert_eq!((of.samples.prices(), of.spot, of.last_sample), (vec![6.0], Some(7.0), 2));
        assert_eq!((of.partition, of.next_offset), (7, 8));
        // Two intervals without a tick, and an interval in which the other symbol begins.
        market.advance(4 * S);
        quote(&mut market, 1, 4 * S, [10 * S, 11 * S]);
        market.advance(5 * S);
        assert_eq!(market.of(0, 0, 0).samples.prices(), [6.0, 7.0, 7.0, 7.0]);
        assert_eq!(market.of(1, 0, 0).samples.prices(), [10.5]);
        market.advance(6 * S);
        assert_eq!(market.of(0, 0, 0).samples.prices(), [7.0; 4]);
        market.advance(1_000_000 * S);
        assert_eq!(market.of(1, 0, 0).samples.prices(), [10.5; 4]);
    }

    #[test]
    fn what_was_taken_of_a_market_stays_as_it_was() {
        let mut market = market();
        for second in 1..5 {
            market.advance(second * S);
            market.trade(0, second * S, second * S);
        }
        let taken = market.of(0, 0, 0);
        market.advance(6 * S);
        assert_eq!(taken.samples.prices(), [1.0, 2.0, 3.0]);
        assert_eq!(market.of(0, 0, 0).samples.prices(), [2.0, 3.0, 4.0, 4.0]);
    }

    #[test]
    fn a_quote_with_one_side_has_no_mid() {
        let mut market = market();
        assert_eq!(market.of(0, 0, 0).spot, None);
        quote(&mut market, 0, S, [10 * S, 0]);
        assert_eq!(market.of(0, 0, 0).spot, None);
        market.trade(0, S, 9 * S);
        assert_eq!(market.of(0, 0, 0).spot, Some(9.0));
        quote(&mut market, 0, S, [10 * S, 12 * S]);
        assert_eq!(market.of(0, 0, 0).spot, Some(11.0));
        quote(&mut market, 0, S, [0, 13 * S]);
        assert_eq!(market.of(0, 0, 0).spot, Some(11.0), "the last mid");
    }

    #[test]
    fn a_price_out_of_order_never_replaces_a_newer_one() {
        let mut market = market();
        for (time_ns, price) in [(5, 50), (3, 30), (5, 55), (4, 40)] {
            market.trade(0, time_ns, price * S);
            quote(&mut market, 1, time_ns, [price * S, price * S]);
        }
        // A quote with one side is no price, and does not make an earlier one old.
        quote(&mut market, 1, 9, [90 * S, 0]);
        quote(&mut market, 1, 4, [45 * S, 45 * S]);
        assert_eq!([0, 1].map(|symbol| market.of(symbol, 0, 0).spot), [Some(55.0); 2]);
    }

    #[test]
    fn what_was_written_reads_back() {
        let mut market = market();
        for second in 1..9 {
            market.advance(second * S);
            market.trade(0, second * S, second);
            if second > 4 {
                quote(&mut market, 1, second * S, [second, second + 1]);
            }
        }
        let mut bytes = Vec::new();
        market.write(&mut bytes);
        let mut rest = bytes.as_slice();
        let mut again = Market::read(market.config, 2, &mut rest).expect("what was written");
        assert!(rest.is_empty());
        for market in [&mut market, &mut again] {
            market.advance(9 * S);
        }
        for symbol in 0..2 {
            assert_eq!(market.of(symbol, 0, 0), again.of(symbol, 0, 0));
        }
        for length in 0..bytes.len() {
            let bytes = &mut &bytes[..length];
            assert!(Market::read(market.config, 2, bytes).is_err());
        }
    }

    #[test]
    fn what_falls_to_0_and_below_has_no_spot_and_no_samples_before() {
        let mut market = market();
        market.advance(0);
        quote(&mut market, 0, 0, [5, 7]);
        market.trade(1, 0, 3);
        market.advance(SECOND_NS);
        quote(&mut market, 0, SECOND_NS, [-3, 1]);
        market.trade(1, SECOND_NS, 0);
        market.advance(2 * SECOND_NS);
        for symbol in [0, 1] {
            let found = market.of(symbol, 0, 0);
            assert_eq!((found.spot, found.is_not_positive, found.samples.prices()), (None, true, vec![]));
        }
        quote(&mut market, 0, 2 * SECOND_NS, [2, 4]);
        market.trade(1, 2 * SECOND_NS, 4);
        market.advance(3 * SECOND_NS);
        for (symbol, price) in [(0, 3e-9), (1, 4e-9)] {
            let found = market.of(symbol, 0, 0);
            assert_eq!((found.spot, found.is_not_positive), (Some(price), false));
            assert_eq!(found.samples.prices(), [price], "what was before says nothing of returns");
        }
    }
}
