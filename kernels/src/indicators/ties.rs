//! Lines at some number of deviations from the mean, on which a close may lie. The side of the line on which the close
//! lies is computed in whole numbers.
//!
//! The closes of a window are whole numbers of their smallest unit, x are their distances from the newest one, and k =
//! K / T deviations. Then `|c − m| > k·s` is `(Σx)²·(T² + K²) > K²·n·Σx²`. If the two sides differ by more than
//! [`NEAR`], floating-point numbers decide.

use std::cmp::Ordering;

/// Relative distance from the line within which floating-point numbers do not determine the side. Their own error is a
/// thousandth of it.
const NEAR: f64 = 1e-6;

/// Powers of ten up to the number of decimals of prices and lines.
const TENS: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Magnitude up to which the rounding to whole numbers is exact.
const WHOLE_MAX: f64 = 2_251_799_813_685_248.0;

/// Adding and subtracting this number rounds to a whole number.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Greatest distance from the newest close for which the sums fit.
const DISTANCE_MAX: u64 = 1 << 48;

/// A line at `units / per` standard deviations from the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Units of deviations; 0 if there is no line.
    pub units: u64,
    pub per: u64,
}

/// The whole number nearest to a product.
#[inline(always)]
pub(crate) fn rounded(product: f64) -> f64 {
    (product + ROUND) - ROUND
}

/// The number of units of 1e-9 nearest to a price: exact up to 51 bits.
#[inline(always)]
pub(super) fn units_e9(price: f64) -> f64 {
    let product = price * 1e9;
    if product.abs() < WHOLE_MAX { rounded(product) } else { product }
}

/// The fewest decimals, at least `digits`, with which a number is a multiple of its last decimal; `None` if there are
/// too many.
fn digits_of(value: f64, digits: usize) -> Option<usize> {
    (digits..TENS.len()).find(|&digits| {
        let product = value * TENS[digits];
        product.abs() < WHOLE_MAX && rounded(product) / TENS[digits] == value
    })
}

/// The least power of ten up to 1e9 that makes all values whole numbers of up to 51 bits; `None` if there is none.
pub(crate) fn scale_of(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let digits = values.clone().try_fold(0, |digits, value| digits_of(value, digits))?;
    // With the decimals of the others, a number with few decimals may be too large.
    values.clone().all(|value| digits_of(value, digits) == Some(digits)).then_some(TENS[digits])
}

impl Line {
    /// The line at `deviations` deviations from the mean. If that number has more than nine decimals, it is the default
    /// line, which is never near.
    pub fn new(deviations: f64) -> Self {
        let of_digits = |digits: usize| Self {
            units: (deviations * TENS[digits]).round() as u64,
            per: TENS[digits] as u64,
        };
        digits_of(deviations, 0).map_or(Self::default(), of_digits)
    }

    /// True if floating-point numbers do not determine on which side of the line a value lies; false for NaN.
    #[inline(always)]
    pub fn is_near(self, value: f64, line: f64) -> bool {
        (self.units > 0) & (line > 0.0) & ((value.abs() - line).abs() <= NEAR * line)
    }

    /// Compares the newest close's distance from the mean with the line's. `None` if the closes have no common unit
    /// that is small enough.
    pub fn compare(self, closes: impl Iterator<Item = f64> + Clone, newest: f64) -> Option<Ordering> {
        let digits = closes.clone().try_fold(0, |digits, close| digits_of(close, digits))?;
        let unit = |close: f64| rounded(close * TENS[digits]) as i64;
        let (mut count, mut sum, mut squares) = (0_u64, 0_i64, 0_u128);
        for close in closes {
            let distance = unit(close) - unit(newest);
            if distance.unsigned_abs() >= DISTANCE_MAX {
                return None;
            }
            count += 1;
            sum += distance;
            squares += u128::from(distance.unsigned_abs()) * u128::from(distance.unsigned_abs());
        }
        let (units, per) = (u128::from(self.units), u128::from(self.per));
        let sum = u128::from(sum.unsigned_abs());
        let of_close = product(sum * sum, per * per + units * units);
        Some(of_close.cmp(&product(squares * u128::from(count), units * units)))
    }
}

/// A product of 256 bits, the upper half first.
fn product(a: u128, b: u128) -> [u128; 2] {
    let halves = |value: u128| [value >> 64, value & u128::from(u64::MAX)];
    let ([a_high, a_low], [b_high, b_low]) = (halves(a), halves(b));
    let [carry, lowest] = halves(a_low * b_low);
    let [first, middle] = halves(a_high * b_low + carry);
    let [second, middle] = halves(a_low * b_high + middle);
    [a_high * b_high + first + second, middle << 64 | lowest]
}

/// Adjusts a value so that it compares correctly with a line: it becomes the line itself if it lies on it.
pub(super) fn settled(value: f64, line: f64, side: Ordering) -> f64 {
    match side {
        Ordering::Equal => line,
        Ordering::Greater if value <= line => line.next_up(),
        Ordering::Less if value >= line => line.next_down(),
        _ => value,
    }
}

/// Adjusts a band so that it compares correctly with a close: it becomes the close itself if the close lies on it.
pub(super) fn settled_band(band: f64, close: f64, is_upper: bool, side: Ordering) -> f64 {
    let is_beyond = if is_upper { close > band } else { close < band };
    match side {
        Ordering::Equal => close,
        Ordering::Greater if !is_beyond && is_upper => close.next_down(),
        Ordering::Greater if !is_beyond => close.next_up(),
        Ordering::Less if is_beyond => close,
        _ => band,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_numbers_or_none() {
        assert_eq!(Line::new(3.0), Line { units: 3, per: 1 });
        assert_eq!(Line::new(2.1), Line { units: 21, per: 10 });
        assert_eq!(Line::new(0.000_000_001), Line { units: 1, per: 1_000_000_000 });
        assert_eq!(Line::new(std::f64::consts::PI), Line::default());
    }

    #[test]
    fn products_have_256_bits() {
        assert_eq!(product(u128::MAX, u128::MAX), [u128::MAX - 1, 1]);
        assert_eq!(product(1 << 127, 6), [3, 0]);
        assert_eq!(
            product(u128::from(u64::MAX), u128::from(u64::MAX)),
            [0, (1 << 64) * (u128::from(u64::MAX) - 1) + 1]
        );
    }

    /// Nine equal closes and one at a `distance`: the latter is exactly three deviations from the mean.
    #[test]
    fn sides_are_told_to_the_last_unit() {
        let compare = |others: f64, newest: f64, last: f64| {
            let mut closes = vec![others; 9];
            closes[0] = last;
            closes.push(newest);
            Line::new(3.0).compare(closes.iter().copied(), newest)
        };
        assert_eq!(compare(100.1, 100.7, 100.1), Some(Ordering::Equal));
        assert_eq!(compare(130_000_000.0, 130_000_001.0, 130_000_000.0), Some(Ordering::Equal));
        // One of the other closes differs by a unit, which increases the deviation.
        assert_eq!(compare(100.1, 100.7, 100.100_000_001), Some(Ordering::Less));
        assert_eq!(
            Line::new(2.999_999).compare([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0].into_iter(), 2.0),
            Some(Ordering::Greater)
        );
        // The first closes are too far apart for the sums; the second are not decimal numbers of nine digits.
        assert_eq!(compare(0.000_000_001, 900_000.0, 0.000_000_001), None);
        assert_eq!(compare(1.0 / 3.0, 2.0, 1.0), None);
    }

    #[test]
    fn units_are_those_of_the_price() {
        for units in [1_i64, 12_345, 61_686_299_999_999, 2_251_799_813_685_247] {
            assert_eq!(units_e9(units as f64 / 1e9), units as f64);
        }
        assert_eq!(units_e9(-0.000_000_007), -7.0);
        assert_eq!(units_e9(130_000_000.0), 130_000_000e9);
    }
}
