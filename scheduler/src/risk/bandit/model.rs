//! A linear model of a residual with a confidence bound, in integers (LinUCB: Li, Chu, Langford and Schapire, WWW
//! 2010).
//!
//! ```text
//!   A = λI + Σ x xᵀ      b = Σ y x      θ = A⁻¹ b      prediction = θᵀ x      width = √(xᵀ A⁻¹ x)      uncertainty = width / √(xᵀ x)
//! ```
//!
//! | number | bits after the point | range |
//! |---|---|---|
//! | feature `x` | 10 | −1 to 1 |
//! | residual `y`, prediction: powers of two | 16 | −4 to 4 |
//! | uncertainty | 16 | 0 to 1 |
//! | `A`, exact | 20 | entries below 2¹¹ |
//! | `b`, exact | 26 | below 2¹² |
//! | `A⁻¹` | 40 | −1 to 1, as λ is 1 |
//! | `θ` | 26 | −16 to 16, beyond which it saturates |
//!
//! Each sample updates `A⁻¹` by the formula of Sherman and Morrison, which rounds. After [`REFRESH`] samples it is
//! computed anew from `A`, which is exact, by elimination and one step of Newton's iteration. So rounding errors add up
//! over at most that many samples. At the same time all samples so far lose a share of their weight, so that old
//! samples count ever less. Hence `A` and `b` stay below the sum of [`REFRESH`] × [`FORGETTING`] samples. The test
//! `errors_stay_bounded` checks that A·A⁻¹ is within 2⁻¹⁸ of the identity before each refresh, and within 2⁻²⁴ after
//! it.

use serde::{Deserialize, Serialize};

/// Number of features of a choice.
pub(crate) const FEATURES: usize = 6;
/// Features with 10 bits after the point, from −1 to 1.
pub(crate) type Features = [i16; FEATURES];
/// The value 1 of a feature.
pub(crate) const FEATURE_ONE: i64 = 1 << FEATURE_POINT;
/// One power of two in residuals and predictions. Also the uncertainty of a model without samples.
pub(crate) const ONE: i64 = 1 << 16;
/// Greatest absolute value of residuals and predictions, at which they saturate: four powers of two.
pub(crate) const RESIDUAL_MAX: i64 = 4 * ONE;
/// Samples after which the inverse is computed anew.
const REFRESH: i64 = 64;
/// Share of their weight that all samples lose when the inverse is computed anew: 1/16.
const FORGETTING: i64 = 16;

const FEATURE_POINT: u32 = 10;
const INVERSE_POINT: u32 = 40;
/// Bits after the point of `b` and `θ`: those of a feature plus those of a residual.
const SUM_POINT: u32 = FEATURE_POINT + 16;
const PRIOR: i64 = 1 << (2 * FEATURE_POINT);
const WEIGHT_MAX: i64 = 16 << SUM_POINT;

// A sum stays below REFRESH × FORGETTING samples, plus the REFRESH samples of one period.
const SAMPLES_MAX: i64 = REFRESH * (FORGETTING + 1);
const _: () = assert!(SAMPLES_MAX.checked_mul(FEATURE_ONE * RESIDUAL_MAX).is_some());
// Elimination begins with as many bits after the point as the inverse has, and leaves room for a factor of 2⁸.
const _: () = assert!(
    (SAMPLES_MAX * FEATURE_ONE * FEATURE_ONE + PRIOR).ilog2() + INVERSE_POINT - 2 * FEATURE_POINT < 55
);

type Matrix = [[i64; FEATURES]; FEATURES];

/// Linear model of the residual.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Model {
    /// `A`.
    information: Matrix,
    /// `A⁻¹`.
    inverse: Matrix,
    /// `b`.
    sums: [i64; FEATURES],
    /// `θ`.
    weights: [i64; FEATURES],
    /// Samples since the inverse was computed anew.
    since_refresh: i64,
}

impl Default for Model {
    /// A model without samples: it predicts 0, with an uncertainty of 1.
    fn default() -> Self {
        let diagonal = |value: i64| {
            let mut matrix = [[0; FEATURES]; FEATURES];
            (0..FEATURES).for_each(|index| matrix[index][index] = value);
            matrix
        };
        Self {
            information: diagonal(PRIOR),
            inverse: diagonal(1 << INVERSE_POINT),
            sums: [0; FEATURES],
            weights: [0; FEATURES],
            since_refresh: 0,
        }
    }
}

impl Model {
    /// The expected residual, with 16 bits after the point.
    pub(crate) fn predict(&self, features: &Features) -> i64 {
        let sum: i64 = self.weights.iter().zip(features).map(|(weight, x)| weight * i64::from(*x)).sum();
        let expected = rounded(sum.into(), SUM_POINT + FEATURE_POINT - 16);
        expected.clamp(-RESIDUAL_MAX, RESIDUAL_MAX)
    }

    /// Uncertainty of the prediction, from 0 to 1, with 16 bits after the point: the width relative to that of a model
    /// without samples. So large features alone do not mean uncertainty.
    pub(crate) fn uncertainty(&self, features: &Features) -> i64 {
        let of_row = |row: &[i64; FEATURES]| -> i64 {
            row.iter().zip(features).map(|(entry, x)| entry * i64::from(*x)).sum::<i64>() >> FEATURE_POINT
        };
        let square: i64 =
            self.inverse.iter().zip(features).map(|(row, x)| of_row(row) * i64::from(*x)).sum::<i64>()
                >> FEATURE_POINT;
        // The width of a model without samples is the norm of the features. The quotient of the squares has 32 bits
        // after the point.
        let length: i64 = features.iter().map(|x| i64::from(*x) * i64::from(*x)).sum();
        let quotient = (square.max(0) << (32 + 2 * FEATURE_POINT - INVERSE_POINT)) / length.max(1);
        ((quotient as u64).isqrt() as i64).min(ONE)
    }

    /// Learns the residual of a choice with these features.
    pub(crate) fn learn(&mut self, features: &Features, residual: i64) {
        let residual = residual.clamp(-RESIDUAL_MAX, RESIDUAL_MAX);
        for (row, x) in features.iter().enumerate() {
            self.sums[row] += i64::from(*x) * residual;
            for (column, other) in features.iter().enumerate() {
                self.information[row][column] += i64::from(*x) * i64::from(*other);
            }
        }
        self.since_refresh += 1;
        match self.since_refresh < REFRESH {
            true => self.update_inverse(features),
            false => self.refresh(),
        }
        for (weight, row) in self.weights.iter_mut().zip(&self.inverse) {
            let wide: i128 =
                row.iter().zip(&self.sums).map(|(entry, sum)| i128::from(*entry) * i128::from(*sum)).sum();
            *weight = rounded(wide, INVERSE_POINT).clamp(-WEIGHT_MAX, WEIGHT_MAX);
        }
    }

    /// Reduces the weight of all samples, and computes the inverse anew.
    fn refresh(&mut self) {
        for (row, entries) in self.information.iter_mut().enumerate() {
            for (column, entry) in entries.iter_mut().enumerate() {
                // The prior does not lose weight.
                let prior = if row == column { PRIOR } else { 0 };
                *entry -= (*entry - prior) / FORGETTING;
            }
        }
        self.sums.iter_mut().for_each(|sum| *sum -= *sum / FORGETTING);
        self.inverse = inverse_of(&self.information);
        self.since_refresh = 0;
    }

    /// `A⁻¹ − (A⁻¹x)(A⁻¹x)ᵀ / (1 + xᵀA⁻¹x)`, which is the inverse of `A + xxᵀ`.
    fn update_inverse(&mut self, features: &Features) {
        let along = self.inverse.map(|row| {
            let sum: i64 = row.iter().zip(features).map(|(entry, x)| entry * i64::from(*x)).sum();
            rounded(sum.into(), FEATURE_POINT)
        });
        let dot: i64 = along.iter().zip(features).map(|(entry, x)| entry * i64::from(*x)).sum();
        let divisor = (1 << INVERSE_POINT) + rounded(dot.into(), FEATURE_POINT).max(0);
        let scaled = along.map(|entry| product(entry, reciprocal(divisor)));
        for (row, scaled) in scaled.into_iter().enumerate() {
            for (column, along) in along.into_iter().enumerate().skip(row) {
                let entry = self.inverse[row][column] - product(scaled, along);
                (self.inverse[row][column], self.inverse[column][row]) = (entry, entry);
            }
        }
    }

    /// All numbers of the model, for a hash.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> {
        let Self { information, inverse, sums, weights, since_refresh } = self;
        let matrices = information.iter().chain(inverse).flatten();
        matrices.chain(sums).chain(weights).chain([since_refresh]).copied()
    }
}

/// `wide / 2^bits`, rounded to the nearest.
fn rounded(wide: i128, bits: u32) -> i64 {
    ((wide + (1 << (bits - 1))) >> bits) as i64
}

/// A product of two numbers with 40 bits after the point.
fn product(one: i64, other: i64) -> i64 {
    rounded(i128::from(one) * i128::from(other), INVERSE_POINT)
}

/// The reciprocal of a positive number with 40 bits after the point.
fn reciprocal(value: i64) -> i64 {
    ((1i128 << (2 * INVERSE_POINT)) / i128::from(value)) as i64
}

/// The inverse of `A`, by elimination without pivoting and one step X ← X + X(I − AX), which removes elimination's
/// rounding errors. Elimination is stable for matrices like `A`, because each pivot is at least λ.
fn inverse_of(information: &Matrix) -> Matrix {
    let mut rest = information.map(|row| row.map(|entry| entry << (INVERSE_POINT - 2 * FEATURE_POINT)));
    for pivot in 0..FEATURES {
        let by = reciprocal(rest[pivot][pivot].max(1 << INVERSE_POINT));
        rest[pivot][pivot] = 1 << INVERSE_POINT;
        rest[pivot] = rest[pivot].map(|entry| product(entry, by));
        for row in (0..FEATURES).filter(|row| *row != pivot) {
            let factor = std::mem::take(&mut rest[row][pivot]);
            let by_pivot = rest[pivot];
            for (entry, of_pivot) in rest[row].iter_mut().zip(by_pivot) {
                *entry -= product(factor, of_pivot);
            }
        }
    }
    let found = rest;
    let residue = residue(information, &found);
    for row in 0..FEATURES {
        for column in row..FEATURES {
            let step: i128 =
                (0..FEATURES).map(|inner| i128::from(found[row][inner]) * residue[inner][column]).sum();
            let entry = found[row][column] + rounded(step, INVERSE_POINT + 2 * FEATURE_POINT);
            (rest[row][column], rest[column][row]) = (entry, entry);
        }
    }
    rest
}

/// `I − AX`, exact, with 60 bits after the point.
fn residue(information: &Matrix, inverse: &Matrix) -> [[i128; FEATURES]; FEATURES] {
    let mut residue = [[0; FEATURES]; FEATURES];
    for (row, entries) in residue.iter_mut().enumerate() {
        for (column, entry) in entries.iter_mut().enumerate() {
            let sum: i128 = (0..FEATURES)
                .map(|inner| i128::from(information[row][inner]) * i128::from(inverse[inner][column]))
                .sum();
            let identity = if row == column { 1i128 << (INVERSE_POINT + 2 * FEATURE_POINT) } else { 0 };
            *entry = identity - sum;
        }
    }
    residue
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::task::draw;

    /// Features of a number; the first one is 1.
    fn features(number: i64) -> Features {
        let mut features = [FEATURE_ONE as i16; FEATURES];
        for (index, feature) in features.iter_mut().enumerate().skip(1) {
            *feature = draw("test/features", 7, number, index as u64, 2_049) as i16 - 1_024;
        }
        features
    }

    /// Greatest absolute entry of A·A⁻¹ − I, with 60 bits after the point.
    fn distance(model: &Model) -> i128 {
        let residue = residue(&model.information, &model.inverse);
        residue.as_flattened().iter().map(|entry| entry.abs()).max().unwrap()
    }

    fn check_distances(features: impl Fn(i64) -> Features) {
        let mut model = Model::default();
        for number in 0..20_000 {
            model.learn(&features(number), RESIDUAL_MAX);
            let bits = if model.since_refresh == 0 { 60 - 24 } else { 60 - 18 };
            assert!(distance(&model) < 1 << bits, "{number}: {:?}", distance(&model));
        }
    }

    #[test]
    fn errors_stay_bounded() {
        check_distances(features);
        // With equal features, all directions but one stay at the prior; with features that differ in the last bit,
        // nearly so.
        check_distances(|_| [1_024; FEATURES]);
        check_distances(|number| [1_024, -1_024, 1_024, -1_024, 1_024, 1_023 + (number % 2) as i16]);
        check_distances(|number| features(number).map(|feature| feature / 1_024));
        check_distances(|_| [0; FEATURES]);
    }

    #[test]
    fn weights_are_found_and_what_was_seen_is_certain() {
        let mut model = Model::default();
        for x in [features(1), [1_024, 0, 0, 0, 0, 0], [1_024; FEATURES], [1, -1, 0, 0, 0, 0]] {
            assert_eq!((model.predict(&x), model.uncertainty(&x)), (0, ONE), "{x:?}");
        }
        let residual = |x: &Features| {
            // 1/2 + 2·x₁ − x₃, and up to a quarter of noise.
            let noise = draw("test/noise", 7, i64::from(x[2]), 0, 1 << 15) as i64 - (1 << 14);
            ONE / 2 + 128 * i64::from(x[1]) - 64 * i64::from(x[3]) + noise
        };
        (0..3_000).map(features).for_each(|x| model.learn(&x, residual(&x)));
        for (found, expected) in model.weights.iter().zip([1, 4, 0, -2, 0, 0]) {
            let half = 1 << (SUM_POINT - 1);
            assert!((found - expected * half).abs() < half / 16, "{:?}", model.weights);
        }
        let known = model.uncertainty(&features(1));
        assert!(known < ONE / 10, "{known}");
    }

    #[test]
    fn what_has_changed_is_forgotten_after_some_thousand_samples() {
        let mut model = Model::default();
        (0..5_000).for_each(|number| model.learn(&features(number), ONE));
        (5_000..9_000).for_each(|number| model.learn(&features(number), -ONE));
        let found = model.predict(&features(1));
        assert!((found + ONE).abs() < ONE / 16, "{found}");
    }

    #[test]
    fn nothing_leaves_the_range() {
        let mut model = Model::default();
        for residual in [i64::MAX, i64::MIN, 0].into_iter().cycle().take(9_999) {
            let x = features(residual >> 62);
            model.learn(&x, residual);
            assert!(model.predict(&x).abs() <= RESIDUAL_MAX && (0..=ONE).contains(&model.uncertainty(&x)));
        }
    }
}
