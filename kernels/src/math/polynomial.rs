//! Polynomials in Estrin's order: pairs, pairs of pairs, and so on, so that no step waits for more than it must.

use super::Real;

/// The value of a polynomial with up to 32 coefficients, lowest degree first.
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
