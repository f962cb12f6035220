//! Formulas of one indicator and slot, without state. All functions are `#[inline(always)]` and free of branches on
//! values, so that a loop over slots around them becomes vector code.

use super::ties::units_e9;
use crate::bars::NOTIONAL_TOO_LARGE;
use crate::math::Quotient;

/// Number of integer steps per unit of prices and sizes.
const ONE_E9: f64 = 1e9;

const TWO_TO_32: f64 = 4_294_967_296.0;

/// Converts a price to a number: the integer is rounded to the nearest `f64`, which is exact up to 2^53, and then
/// divided by 1e9.
#[inline(always)]
pub(crate) fn scaled(value_e9: i64) -> f64 {
    value_e9 as f64 / ONE_E9
}

/// The result of [`scaled`], computed from two exact halves with one rounding: neither the baseline nor AVX2 has a
/// vector conversion of 64-bit integers.
#[inline(always)]
pub(super) fn scaled_by_halves(value_e9: i64) -> f64 {
    (f64::from((value_e9 >> 32) as i32) * TWO_TO_32 + f64::from(value_e9 as u32)) / ONE_E9
}

/// Converts an integer to a number, within 2 units in the last place: each half of its magnitude is rounded, then the
/// sum. The result is infinite for an unknown notional.
#[inline(always)]
pub(super) fn wide(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    signed(value, magnitude as u64 as f64 + (magnitude >> 64) as u64 as f64 * (TWO_TO_32 * TWO_TO_32))
}

#[inline(always)]
fn signed(value: i128, magnitude: f64) -> f64 {
    let magnitude = if value == NOTIONAL_TOO_LARGE { f64::INFINITY } else { magnitude };
    if value < 0 { -magnitude } else { magnitude }
}

/// The result of [`wide`], computed from four exact quarters with three roundings.
#[inline(always)]
pub(super) fn wide_by_quarters(value: i128) -> f64 {
    const SCALES: [f64; 4] = [1.0, TWO_TO_32, TWO_TO_32 * TWO_TO_32, TWO_TO_32 * TWO_TO_32 * TWO_TO_32];
    let magnitude = value.unsigned_abs();
    let quarters =
        [magnitude as u32, (magnitude >> 32) as u32, (magnitude >> 64) as u32, (magnitude >> 96) as u32];
    let mut parts = [0.0; 4];
    for quarter in 0..4 {
        parts[quarter] = f64::from(quarters[quarter]) * SCALES[quarter];
    }
    signed(value, (parts[0] + parts[1]) + (parts[2] + parts[3]))
}

/// Constants of an average over a number of samples. Samples are counted from 1, in whole numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub length: f64,
    /// 1 / n
    pub inverse: f64,
    /// 2 / (n + 1)
    alpha: f64,
}

impl Period {
    pub fn new(length: u32) -> Self {
        let length = f64::from(length);
        Self { length, inverse: 1.0 / length, alpha: 2.0 / (length + 1.0) }
    }

    /// n, 1 / n and 2 / (n + 1).
    pub fn constants(&self) -> [f64; 3] {
        [self.length, self.inverse, self.alpha]
    }

    /// The number of samples, n.
    #[inline(always)]
    pub fn from_constants([length, inverse, alpha]: [f64; 3]) -> Self {
        Self { length, inverse, alpha }
    }

    /// The next state of an exponential average. The state is 0 before the first sample, the sum of the samples up to
    /// the n-th, then the average. If `SETTLED` is true, there were more than n samples.
    #[inline(always)]
    pub fn exponential<const SETTLED: bool>(&self, state: f64, input: f64, sample: f64) -> f64 {
        let next = state + (input - state) * self.alpha;
        if SETTLED { next } else { self.seeded(next, state, input, sample) }
    }

    /// The next state of Wilder's average, which has the same seed as an exponential one.
    #[inline(always)]
    pub fn wilder<const SETTLED: bool>(&self, state: f64, input: f64, sample: f64) -> f64 {
        let next = (state * (self.length - 1.0) + input) * self.inverse;
        if SETTLED { next } else { self.seeded(next, state, input, sample) }
    }

    #[inline(always)]
    fn seeded(&self, next: f64, state: f64, input: f64, sample: f64) -> f64 {
        let sum = state + input;
        if sample < 1.0 {
            0.0
        } else if sample < self.length {
            sum
        } else if sample == self.length {
            sum / self.length
        } else {
            next
        }
    }

    /// The value if there are at least n samples; else NaN.
    #[inline(always)]
    pub fn when_full<const SETTLED: bool>(&self, value: f64, sample: f64) -> f64 {
        if SETTLED || sample >= self.length { value } else { f64::NAN }
    }
}

#[inline(always)]
fn greater(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The distance of a value from the mean, in deviations.
#[inline(always)]
pub(super) fn zscore(distance: f64, deviation: f64) -> f64 {
    let score = distance / deviation;
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

/// The change in percent; NaN if the earlier price is not positive.
#[inline(always)]
pub(super) fn rate_of_change(close: f64, before: f64) -> f64 {
    let rate = (close / before - 1.0) * 100.0;
    if before > 0.0 { rate } else { f64::NAN }
}

/// The average price. `notional_e18` is price times size in 1e-18, infinite if unknown; `volume_e9` is in 1e-9.
#[inline(always)]
pub(super) fn vwap(notional_e18: f64, volume_e9: f64) -> f64 {
    let price = notional_e18 / (volume_e9 * ONE_E9);
    // Both conditions are always evaluated, because `&&` would be a branch.
    if (volume_e9 > 0.0) & (notional_e18.abs() < f64::INFINITY) { price } else { f64::NAN }
}

/// Square of the logarithmic return; infinite if a price has no logarithm. The difference of the prices is computed in
/// whole units, so that the return is as accurate near 0 as elsewhere.
#[inline(always)]
pub(super) fn squared_return(close: f64, previous_close: f64) -> f64 {
    let quotient = Quotient::new(units_e9(close), units_e9(previous_close));
    let change = quotient.ln(1.0 / quotient.sum);
    // Both conditions are always evaluated, because `&&` would be a branch.
    if (close > 0.0) & (previous_close > 0.0) { change * change } else { f64::INFINITY }
}

#[inline(always)]
pub(super) fn realised_volatility(squares: f64) -> f64 {
    if squares < f64::INFINITY { squares.sqrt() } else { f64::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_rounded_once_and_divided() {
        let mut value: i64 = 1;
        for step in 0..10_000 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step);
            let price = value >> (step % 63);
            assert_eq!(scaled(price), scaled_by_halves(price), "{price}");
        }
        for price in [0, -1, i64::MAX, i64::MIN, i64::MAX - 511, (1 << 53) + 1] {
            assert_eq!(scaled(price), scaled_by_halves(price), "{price}");
        }
    }

    #[test]
    fn wide_integers_are_nearly_converted() {
        for shift in 0..127 {
            for value in
                [1_i128 << shift, (1_i128 << shift) - 1, (0x1234_5678_9abc_def1 << 60) >> (126 - shift)]
            {
                for value in [value, -value] {
                    let (found, expected) = (wide(value), value as f64);
                    assert_eq!(found, wide_by_quarters(value), "{value}");
                    let error = (found - expected).abs();
                    assert!(error <= expected.abs() * f64::EPSILON, "{value}: {found} {expected}");
                }
            }
        }
        for value in [wide(NOTIONAL_TOO_LARGE), wide_by_quarters(NOTIONAL_TOO_LARGE)] {
            assert!(value.is_infinite());
        }
    }
}
