//! The side of a window's mean on which its last close lies, computed exactly with sums of closes as whole numbers.
//! `sweep.cu` has the twin.
//!
//! Closes with a common unit, which is a power of ten down to 1e-9, count as decimal numbers in that unit. Other closes
//! count as their bits, in units of 2⁻⁸³; every close from 1e-9 on is a multiple of that.
//!
//! If the distance exceeds the possible error of floating-point sums, these determine the side. Otherwise the exact sum
//! is updated. This takes a step or two per bar in total, however often it is needed.

use crate::indicators::ties;

/// Number of 64-bit limbs, enough for closes up to 1e12 and windows of up to 2²⁰ of them.
const LIMBS: usize = 3;
/// Negative exponent of the unit, as a power of two.
const UNIT_BITS: i32 = 83;
/// Bits of the lower part of a mantissa, which is multiplied in two parts.
const LOW_BITS: u32 = 26;

/// Sum of the closes of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowSum {
    limbs: [u64; LIMBS],
    /// Bar before which the window ends.
    next: usize,
}

impl WindowSum {
    /// The side of the close at `bar` relative to the mean of the window of `length` bars that ends with it. The result
    /// is −1 if the close is below the mean, 0 if equal, 1 if above.
    ///
    /// `scale` is the power of ten of the closes' unit ([`scale_of`]).
    #[cold]
    #[inline(never)]
    pub(super) fn side(&mut self, closes: &[f64], scale: f64, bar: usize, length: usize) -> f64 {
        if bar + 1 - self.next >= length {
            *self = Self { limbs: [0; LIMBS], next: bar + 1 - length };
            (self.next..=bar).for_each(|at| add(&mut self.limbs, closes[at], scale, 1));
        } else {
            for at in self.next..=bar {
                add(&mut self.limbs, closes[at], scale, 1);
                if at >= length {
                    add(&mut self.limbs, closes[at - length], scale, -1);
                }
            }
        }
        self.next = bar + 1;
        let mut less = self.limbs;
        add(&mut less, closes[bar], scale, -(length as i64));
        match less {
            [0, 0, 0] => 0.0,
            // The close times the length exceeds the sum.
            [.., highest] if (highest as i64) < 0 => 1.0,
            _ => -1.0,
        }
    }
}

/// The power of ten that makes all closes whole numbers. 0 if there is none up to 1e9, or if one of them has more than
/// 51 bits.
pub(super) fn scale_of(closes: &[f64]) -> f64 {
    ties::scale_of(closes.iter().copied()).unwrap_or(0.0)
}

/// Adds a close `times` times.
fn add(limbs: &mut [u64; LIMBS], close: f64, scale: f64, times: i64) {
    let (whole, shift) = if scale > 0.0 {
        (ties::rounded(close * scale) as u64, 0)
    } else {
        let bits = close.to_bits();
        let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
        (mantissa, ((bits >> 52) as i32 - 1_075 + UNIT_BITS) as u32)
    };
    let (high, low) = (whole >> LOW_BITS, whole & ((1 << LOW_BITS) - 1));
    add_shifted(limbs, low as i64 * times, shift);
    add_shifted(limbs, high as i64 * times, shift + LOW_BITS);
}

fn add_shifted(limbs: &mut [u64; LIMBS], number: i64, shift: u32) {
    let (first, bit) = ((shift / 64) as usize, shift % 64);
    let sign = (number >> 63) as u64;
    let low = (number as u64) << bit;
    let high = if bit == 0 { sign } else { (number >> (64 - bit)) as u64 };
    let mut carry = false;
    for (place, limb) in limbs.iter_mut().enumerate().skip(first) {
        let part = if place == first {
            low
        } else if place == first + 1 {
            high
        } else {
            sign
        };
        let (sum, one) = limb.overflowing_add(part);
        let (sum, other) = sum.overflowing_add(u64::from(carry));
        (*limb, carry) = (sum, one | other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_exact_whatever_was_asked_before() {
        let closes = [1e-9, 0.1, 0.2, 0.3, 1e12, 3.0, 1.0, 2.0, 3.0, 2.0, 1e12, 5.0, 5.0, 5.0, 5.0, 1e-9];
        let sides = |length: usize, asked: fn(usize) -> bool| -> Vec<f64> {
            let mut sum = WindowSum::default();
            let bars = (length - 1..closes.len()).filter(|&bar| asked(bar));
            bars.map(|bar| sum.side(&closes, 0.0, bar, length)).collect()
        };
        assert_eq!(sides(3, |bar| bar == 3 || bar == 9), [1.0, -1.0]);
        assert_eq!(sides(4, |bar| bar >= 13), [-1.0, 0.0, -1.0]);
        // The windows are 3, 1, 2 and 1, 2, 3, 2.
        assert_eq!((sides(3, |bar| bar == 7), sides(4, |bar| bar == 9)), (vec![0.0], vec![0.0]));
        assert_eq!(sides(1, |_| true), [0.0; 16]);
        for length in [2, 3, 5] {
            let all = sides(length, |_| true);
            let few = sides(length, |bar| bar % 3 == 0);
            let at = |bar: usize| all[bar + 1 - length];
            assert_eq!(few, (length - 1..16).filter(|bar| bar % 3 == 0).map(at).collect::<Vec<_>>());
        }
    }
    /// In doubles, these closes would not equal their mean.
    #[test]
    fn decimal_closes_are_the_numbers_that_they_were_written_as() {
        let side = |closes: &[f64]| {
            let scale = scale_of(closes);
            WindowSum::default().side(closes, scale, closes.len() - 1, closes.len())
        };
        for tie in [[100.1, 100.3, 100.2], [1.0, 1.2, 1.1], [1e-9, 3e-9, 2e-9], [2e6, 2e6 + 2e-9, 2e6 + 1e-9]]
        {
            assert_eq!(side(&tie), 0.0, "{tie:?}");
        }
        assert_eq!(side(&[100.1, 100.3, 100.200_000_001]), 1.0);
        assert_eq!(side(&[100.1, 100.300_000_001, 100.2]), -1.0);
        assert_eq!(
            (scale_of(&[1.0, 20.0]), scale_of(&[1.0, 20.25]), scale_of(&[1.0, 1.0 / 3.0])),
            (1.0, 100.0, 0.0)
        );
        assert_eq!(scale_of(&[1e12, 1e-9]), 0.0, "too many units");
        assert_eq!(scale_of(&[]), 1.0);
    }
}
