//! One indicator step of one slot, without state of its own. All functions are `#[inline(always)]` and free of branches
//! that depend on values, so that a loop over slots around them becomes vector code.

use super::params::IndicatorParams;

/// Prices as integers per unit.
const ONE_E9: f64 = 1e9;

/// A price or size as a number: the nearest one to `value / 1e9` that there is, but for one more rounding of integers
/// beyond 2^53.
#[inline(always)]
pub(crate) fn scaled(value_e9: i64) -> f64 {
    value_e9 as f64 / ONE_E9
}

/// Constants of an average over a number of samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub length: i64,
    pub length_f64: f64,
    /// 1 / n
    pub inverse: f64,
    /// 2 / (n + 1)
    pub alpha: f64,
}

impl Period {
    pub fn new(length: u32) -> Self {
        let length_f64 = f64::from(length);
        Self {
            length: i64::from(length),
            length_f64,
            inverse: 1.0 / length_f64,
            alpha: 2.0 / (length_f64 + 1.0),
        }
    }

    /// The next state of an exponential average: the sum of the samples up to the first n, then the average. `sample`
    /// counts samples from 1; the state is 0 before. `SETTLED` promises that `sample > n`.
    #[inline(always)]
    pub fn exponential<const SETTLED: bool>(&self, state: f64, input: f64, sample: i64) -> f64 {
        let next = state + (input - state) * self.alpha;
        if SETTLED { next } else { self.seeded(next, state, input, sample) }
    }

    /// Likewise of Wilder's average.
    #[inline(always)]
    pub fn wilder<const SETTLED: bool>(&self, state: f64, input: f64, sample: i64) -> f64 {
        let next = (state * (self.length_f64 - 1.0) + input) * self.inverse;
        if SETTLED { next } else { self.seeded(next, state, input, sample) }
    }

    #[inline(always)]
    fn seeded(&self, next: f64, state: f64, input: f64, sample: i64) -> f64 {
        let sum = state + input;
        if sample < 1 {
            0.0
        } else if sample < self.length {
            sum
        } else if sample == self.length {
            sum / self.length_f64
        } else {
            next
        }
    }

    /// The value once there are n samples.
    #[inline(always)]
    pub fn when_full<const SETTLED: bool>(&self, value: f64, sample: i64) -> f64 {
        if SETTLED || sample >= self.length { value } else { f64::NAN }
    }
}

/// Periods of all indicators.
#[derive(Clone, Debug)]
pub(super) struct Periods {
    pub sma: Period,
    pub ema_fast: Period,
    pub ema_slow: Period,
    pub bollinger: Period,
    pub bollinger_width: f64,
    pub rsi: Period,
    pub macd_fast: Period,
    pub macd_slow: Period,
    pub macd_signal: Period,
    pub atr: Period,
    pub vwap: Period,
    pub momentum: Period,
    pub roc: Period,
    pub zscore: Period,
    pub realised_volatility: Period,
    /// After this many bars of a slot all its averages are beyond their seeds and all its windows are full.
    pub settled_after: i64,
}

impl Periods {
    pub fn new(params: &IndicatorParams) -> Self {
        let longest = params.windows().into_iter().map(|(_, window, _)| i64::from(window)).max();
        let macd = i64::from(params.macd_slow) + i64::from(params.macd_signal);
        Self {
            sma: Period::new(params.sma),
            ema_fast: Period::new(params.ema_fast),
            ema_slow: Period::new(params.ema_slow),
            bollinger: Period::new(params.bollinger),
            bollinger_width: params.bollinger_width,
            rsi: Period::new(params.rsi),
            macd_fast: Period::new(params.macd_fast),
            macd_slow: Period::new(params.macd_slow),
            macd_signal: Period::new(params.macd_signal),
            atr: Period::new(params.atr),
            vwap: Period::new(params.vwap),
            momentum: Period::new(params.momentum),
            roc: Period::new(params.roc),
            zscore: Period::new(params.zscore),
            realised_volatility: Period::new(params.realised_volatility),
            settled_after: longest.map_or(macd, |longest| macd.max(longest + 1)),
        }
    }
}

/// `(greater of a and b)`, where neither is NaN.
#[inline(always)]
fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Population standard deviation from Σd/n and Σd²/n.
#[inline(always)]
pub(super) fn deviation(mean_distance: f64, mean_square: f64) -> f64 {
    greater(mean_square - mean_distance * mean_distance, 0.0).sqrt()
}

/// How many deviations the newest value, from which distances are measured, lies above the mean.
#[inline(always)]
pub(super) fn zscore(mean_distance: f64, deviation: f64) -> f64 {
    let score = -mean_distance / deviation;
    if deviation > 0.0 { score } else { 0.0 }
}

#[inline(always)]
pub(super) fn rsi(gain: f64, loss: f64) -> f64 {
    let index = 100.0 * (gain / (gain + loss));
    if gain + loss > 0.0 { index } else { 0.0 }
}

#[inline(always)]
pub(super) fn true_range(high: f64, low: f64, previous_close: f64) -> f64 {
    greater(high - low, greater((high - previous_close).abs(), (low - previous_close).abs()))
}

#[inline(always)]
pub(super) fn rate_of_change(close: f64, before: f64) -> f64 {
    let rate = (close / before - 1.0) * 100.0;
    if before == 0.0 { 0.0 } else { rate }
}

/// `notional` in price times size, 1e-18, and `volume` in 1e-9.
#[inline(always)]
pub(super) fn vwap(notional_e18: f64, volume_e9: f64) -> f64 {
    let price = notional_e18 / (volume_e9 * ONE_E9);
    if volume_e9 > 0.0 { price } else { f64::NAN }
}

/// Square of the logarithmic return; infinite where a price has no logarithm.
#[inline(always)]
pub(super) fn squared_return(close: f64, previous_close: f64) -> f64 {
    let change = crate::math::ln_of_positive(close / previous_close);
    // Both conditions are evaluated: `&&` would be a branch.
    if (close > 0.0) & (previous_close > 0.0) { change * change } else { f64::INFINITY }
}

#[inline(always)]
pub(super) fn realised_volatility(squares: f64) -> f64 {
    if squares < f64::INFINITY { squares.sqrt() } else { f64::NAN }
}
