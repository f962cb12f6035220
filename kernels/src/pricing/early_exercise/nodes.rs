//! Nodes and weights, computed with 50 digits and rounded to the nearest double.
//! `tests/scripts/make_early_exercise_nodes.py` writes `nodes.bin`, which contains little-endian doubles.

/// Number of nodes of a boundary, without expiry.
pub const NODES: usize = 32;
/// Points of the integrals that improve a boundary.
pub const LEVEL_POINTS: usize = 64;
/// Points of the integral of the premium.
pub const PREMIUM_POINTS: usize = 256;

const BYTES: &[u8; 8 * (NODES + 3 * LEVEL_POINTS + 3 * PREMIUM_POINTS)] = include_bytes!("nodes.bin");
const PREMIUMS_FROM: usize = NODES + 3 * LEVEL_POINTS;

/// `cos(kπ/32)`; the last one, −1, is left out.
pub const CHEBYSHEV: [f64; NODES] = column(0);
/// `sin θ` of the points from 0 to π/2, by Gauss and Legendre.
pub const LEVEL_SINES: [f64; LEVEL_POINTS] = column(NODES);
/// `cos θ` of the same points.
pub const LEVEL_COSINES: [f64; LEVEL_POINTS] = column(NODES + LEVEL_POINTS);
/// Weights of these points, times `2 sin θ cos θ`.
pub const LEVEL_WEIGHTS: [f64; LEVEL_POINTS] = column(NODES + 2 * LEVEL_POINTS);
/// `sin θ` of the points from 0 to π/2, by Takahasi and Mori.
pub const PREMIUM_SINES: [f64; PREMIUM_POINTS] = column(PREMIUMS_FROM);
/// `cos θ` of the same points.
pub const PREMIUM_COSINES: [f64; PREMIUM_POINTS] = column(PREMIUMS_FROM + PREMIUM_POINTS);
/// Weights of these points, times `2 sin θ cos θ`.
pub const PREMIUM_WEIGHTS: [f64; PREMIUM_POINTS] = column(PREMIUMS_FROM + 2 * PREMIUM_POINTS);

/// `N` numbers, from the one at this place on.
const fn column<const N: usize>(from: usize) -> [f64; N] {
    let mut column = [0.0; N];
    let mut number = 0;
    while number < N {
        let (_, rest) = BYTES.split_at(8 * (from + number));
        if let Some(bytes) = rest.first_chunk() {
            column[number] = f64::from_le_bytes(*bytes);
        }
        number += 1;
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_their_places() {
        assert_eq!((CHEBYSHEV[0], CHEBYSHEV[NODES / 2].abs() < 1e-16), (1.0, true));
        for (sines, cosines) in [(&LEVEL_SINES[..], &LEVEL_COSINES[..]), (&PREMIUM_SINES, &PREMIUM_COSINES)] {
            for (sine, cosine) in sines.iter().zip(cosines) {
                assert!((sine * sine + cosine * cosine - 1.0).abs() < 1e-15, "{sine}, {cosine}");
            }
            assert!(sines.is_sorted() && cosines.iter().rev().is_sorted());
        }
        // The integral of 2 sin θ cos θ from 0 to π/2 is 1.
        for weights in [&LEVEL_WEIGHTS[..], &PREMIUM_WEIGHTS] {
            assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-13);
        }
    }
}
