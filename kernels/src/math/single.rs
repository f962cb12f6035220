//! The elementary functions in `f32`, by the formulas of `exp.rs`, `ln.rs` and `normal.rs` with fewer coefficients, and
//! without branches. Largest errors measured against the functions in `f64`: below [`RELATIVE_ERROR_MAX`].

use super::estrin;

/// Bound on the relative error of the functions (of the logarithm away from 1).
#[cfg(test)]
const RELATIVE_ERROR_MAX: f64 = 5e-7;

const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// The upper part of ln 2, whose last fifteen bits are zero, so that multiples up to 2^9 are exact.
const LN2_HIGH: f32 = f32::from_bits(0x3f31_8000);
const LN2_LOW: f32 = f32::from_bits(0xb95e_8083);
/// Adding this to a number below 2^22 rounds it to an integer, which is then in the last bits.
const SHIFT: f32 = 12_582_912.0;

const Q: [f32; 5] = [0.499_999_93, 0.166_665_2, 0.041_668_39, 0.008_368_781, 0.001_381_470_7];
const P: [f32; 3] = [0.666_667_76, 0.399_775_5, 0.298_716_1];

pub(super) const CENTRAL: [[f32; 4]; 2] =
    [[3.387_132_6, 50.433_228, 159.282_15, 59.102_68], [1.0, 17.894_861, 78.754_18, 67.181_55]];
pub(super) const TAIL: ([f32; 4], [f32; 3]) =
    ([-2.646_408_3, -0.674_677_5, 1.920_771_7, 0.478_566_85], [1.0, 1.955_788_7, 0.477_888_6]);

/// `e^x`, clamped to `e^±87`.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let [less_1, power] = reduced(x);
    (1.0 + less_1) * power
}

/// `e^x − 1`, with the same bounds.
#[inline(always)]
pub(super) fn exp_less_1(x: f32) -> f32 {
    let [less_1, power] = reduced(x);
    less_1 * power + (power - 1.0)
}

/// `e^r − 1` and `2^k`.
#[inline(always)]
fn reduced(x: f32) -> [f32; 2] {
    let x = if x > 87.0 { 87.0 } else { x };
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * LOG2_E + SHIFT;
    let k = shifted - SHIFT;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    [r + (r * r) * estrin(&Q, r), f32::from_bits(shifted.to_bits().wrapping_add(127) << 23)]
}

/// Natural logarithm of a positive, finite, normal number.
#[inline(always)]
pub(super) fn ln_of_positive(x: f32) -> f32 {
    const SQRT_HALF_BITS: u32 = 0x3f35_04f3;
    const ONE_BITS: u32 = 0x3f80_0000;
    let shifted = x.to_bits().wrapping_add(ONE_BITS - SQRT_HALF_BITS);
    let k = (shifted >> 23) as i32 as f32 - 127.0;
    let f = f32::from_bits((shifted & 0x007f_ffff) + SQRT_HALF_BITS) - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let r = z * estrin(&P, z);
    k * LN2_HIGH + (f - (half_square - (s * (half_square + r) + k * LN2_LOW)))
}

#[cfg(test)]
mod tests {
    use super::super::Real;
    use super::super::real::tests::quantile_of;
    use super::*;

    #[test]
    fn errors_stay_below_their_bound() {
        let mut worst = [0.0_f64; 4];
        for step in 0..400_000_u32 {
            let x = -87.0 + 174.0 * (f64::from(step) / 400_000.0);
            let y = super::super::exp(x) as f32;
            let small = (x / f64::from(1 + step % 1_000)) as f32;
            // Near 1, the relative error of the logarithm is not bounded, so such numbers are replaced.
            let y = if (0.5..2.0).contains(&y) { 3.0 } else { y };
            let p =
                f32::outer([u64::from(step.wrapping_mul(0x9e37_79b9) >> (step % 28)), 0]).abs().min(0.499);
            let checks = [
                (exp(x as f32), super::super::exp(f64::from(x as f32))),
                (exp_less_1(small), super::super::exp::exp_less_1(f64::from(small))),
                (ln_of_positive(y), super::super::ln(f64::from(y))),
                (quantile_of(p), super::super::inverse_normal_cdf(1.0 - f64::from(p))),
            ]
            .map(|(found, exact)| (f64::from(found), exact));
            for (worst, (found, exact)) in worst.iter_mut().zip(checks) {
                *worst = worst.max((found / exact - 1.0).abs());
            }
        }
        println!("largest errors of exp, exp less 1, ln and the quantile: {worst:?}");
        assert!(worst.iter().all(|error| *error < RELATIVE_ERROR_MAX && *error > 3e-8), "{worst:?}");
    }
}
