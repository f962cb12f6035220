//! Polynomials, lowest degree first.

use super::Real;

/// The value of a polynomial in Estrin's order: pairs, pairs of pairs, and so on, which keeps the chain of dependent
/// steps short.
#[inline(always)]
pub(crate) fn estrin<T: Real, const N: usize>(coefficients: &[T; N], x: T) -> T {
    let mut terms = *coefficients;
    let (mut count, mut power) = (N, x);
    while count > 1 {
        let pairs = count / 2;
        for pair in 0..pairs {
            terms[pair] = terms[2 * pair] + power * terms[2 * pair + 1];
        }
        if count % 2 == 1 {
            terms[pairs] = terms[count - 1];
        }
        count -= pairs;
        power = power * power;
    }
    terms[0]
}

/// `p(x)` and `(p(y) − p(x)) / (y − x)`, without subtracting values of p.
///
/// The quotient is the polynomial in y whose coefficients are the partial sums of Horner's scheme at x. Even and odd
/// coefficients are treated apart, which halves the chain of dependent steps. With `p(x) = e(x²) + x·o(x²)` and their
/// quotients e' and o' it is `(x + y)·(e' + y·o') + o(x²)`.
#[inline(always)]
pub(crate) fn value_and_slope<const N: usize>(coefficients: &[f64; N], x: f64, y: f64) -> [f64; 2] {
    let (x_square, y_square) = (x * x, y * y);
    // The first element of each is for the even coefficients, the second for the odd ones.
    let (mut values, mut slopes) = ([0.0; 2], [0.0; 2]);
    for (power, coefficient) in coefficients.iter().enumerate().rev() {
        let part = power % 2;
        if power + 2 >= N {
            values[part] = *coefficient;
            continue;
        }
        slopes[part] = if power + 4 >= N { values[part] } else { values[part] + y_square * slopes[part] };
        values[part] = coefficient + x_square * values[part];
    }
    [values[0] + x * values[1], (x + y) * (slopes[0] + y * slopes[1]) + values[1]]
}
