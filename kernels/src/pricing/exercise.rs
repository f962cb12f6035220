//! When an American option is exercised: continuation values by regression over pilot paths (Longstaff and Schwartz, *Valuing American
//! Options by Simulation*, 2001).
//!
//! From the last date back, what the pilot paths in the money get later is regressed on `1, y, y², y³`, with `y = ±(S/K − 1)` what
//! exercise pays in strikes. Sums over paths have the shape of those of prices; nothing depends on where or in which parts they are computed.

use super::american::{AmericanSpec, AmericanTerms};
use super::draws::{Draws, LANES, Lanes, Stream};
use super::sums::{GROUPS, sum_halves, sum_tree};
use crate::isa::{Isa, Work};
use crate::math::{Keys, estrin, exp};

/// Polynomials that continuation values are made of.
pub(crate) const BASIS: usize = 4;
/// Sums for a regression: of the powers of y up to twice the highest, and of the basis times the values.
const MOMENTS: usize = 2 * BASIS - 1;
const SUMS: usize = MOMENTS + BASIS;
/// What is left of a polynomial's square, of 1, when those before explain it: then it is left out.
const PIVOT_MIN: f64 = 1e-10;

/// Coefficients of a continuation value, in strikes.
pub(crate) type Continuation = [f64; BASIS];
/// At expiry.
pub(crate) const NOTHING: Continuation = [0.0; BASIS];
/// Where nothing is known.
const NEVER: Continuation = [f64::INFINITY, 0.0, 0.0, 0.0];

/// Whether exercise pays more than to wait.
#[inline(always)]
pub(crate) fn is_exercised(y: f64, continuation: &Continuation) -> bool {
    (y > 0.0) & (y >= estrin(continuation, y))
}

/// By date, and what the option is worth now if it is not exercised now, in strikes.
pub(crate) fn continuations(spec: &AmericanSpec, terms: &AmericanTerms) -> (Vec<Continuation>, f64) {
    let mut found = (vec![NOTHING; spec.exercises as usize], 0.0);
    Isa::detect().run(Pilot { spec, terms, found: &mut found });
    found
}

struct Pilot<'a> {
    spec: &'a AmericanSpec,
    terms: &'a AmericanTerms,
    found: &'a mut (Vec<Continuation>, f64),
}

impl Pilot<'_> {
    /// What exercise pays, by date and group of paths, or less than nothing.
    #[inline(always)]
    fn pays(&self) -> Vec<Vec<Lanes<f64>>> {
        let keys = Keys::new(self.spec.key);
        let mut draws = Draws::new();
        let groups = self.spec.pilot_blocks as usize * GROUPS;
        let mut x = vec![[0.0; LANES]; groups];
        let mut z = [0.0; LANES];
        let mut pays = Vec::with_capacity(self.spec.exercises as usize);
        for date in 0..u64::from(self.spec.exercises) {
            let mut of_date = vec![[0.0; LANES]; groups];
            for (group, (x, y)) in x.iter_mut().zip(&mut of_date).enumerate() {
                draws.normals(&keys, group as u64, date, Stream::PILOT, &mut z);
                for lane in 0..LANES {
                    x[lane] += self.terms.drift + self.terms.diffusion * z[lane];
                    y[lane] = self.terms.pays(x[lane]);
                }
            }
            pays.push(of_date);
        }
        pays
    }
}

impl Work for Pilot<'_> {
    #[inline(always)]
    fn run(self) {
        let mut pays = self.pays();
        let discount = exp(-self.terms.step_rate);
        let mut values = pays.pop().expect("there is a date");
        values.iter_mut().flatten().for_each(|value| *value = if *value > 0.0 { *value } else { 0.0 });
        let (found, now) = self.found;
        for (date, pays) in pays.iter().enumerate().rev() {
            let blocks = values.chunks_mut(GROUPS).zip(pays.chunks(GROUPS));
            let sums: Vec<[f64; SUMS]> =
                blocks.map(|(values, pays)| block_sums(values, pays, discount)).collect();
            let continuation = regressed(&sum_tree(&sums));
            found[date] = continuation;
            for (values, pays) in values.iter_mut().zip(pays) {
                for (value, y) in values.iter_mut().zip(pays) {
                    *value = if is_exercised(*y, &continuation) { *y } else { *value };
                }
            }
        }
        let sums: Vec<[f64; 1]> = values
            .chunks(GROUPS)
            .map(|groups| {
                let mut lanes = [0.0; LANES];
                groups.iter().for_each(|values| (0..LANES).for_each(|lane| lanes[lane] += values[lane]));
                [sum_halves(&mut lanes)]
            })
            .collect();
        *now = discount * (sum_tree(&sums)[0] / (values.len() * LANES) as f64);
    }
}

/// Sums of a block's paths in the money, after values are discounted by a step.
#[inline(always)]
fn block_sums(values: &mut [Lanes<f64>], pays: &[Lanes<f64>], discount: f64) -> [f64; SUMS] {
    let mut lanes = [[0.0; LANES]; SUMS];
    for (values, pays) in values.iter_mut().zip(pays) {
        for lane in 0..LANES {
            values[lane] *= discount;
            let y = pays[lane];
            let mut power = if y > 0.0 { 1.0 } else { 0.0 };
            for moment in 0..MOMENTS {
                lanes[moment][lane] += power;
                if moment < BASIS {
                    lanes[MOMENTS + moment][lane] += power * values[lane];
                }
                power *= y;
            }
        }
    }
    std::array::from_fn(|sum| sum_halves(&mut lanes[sum]))
}

/// Least squares by Cholesky's factors of the normal equations, scaled to ones on the diagonal. A polynomial that those before
/// explain has no coefficient.
fn regressed(sums: &[f64; SUMS]) -> Continuation {
    if sums[0] == 0.0 || !sums.iter().all(|sum| sum.is_finite()) {
        return NEVER;
    }
    let scale: [f64; BASIS] = std::array::from_fn(|row| {
        let square = sums[2 * row];
        if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 }
    });
    let (mut factors, mut left) = ([[0.0; BASIS]; BASIS], [0.0; BASIS]);
    for row in 0..BASIS {
        for column in 0..=row {
            let mut rest = sums[row + column] * scale[row] * scale[column];
            for (of_row, of_column) in factors[row].iter().zip(&factors[column]).take(column) {
                rest -= of_row * of_column;
            }
            if row == column {
                factors[row][row] = if rest > PIVOT_MIN { rest.sqrt() } else { 0.0 };
            } else if factors[column][column] > 0.0 {
                factors[row][column] = rest / factors[column][column];
            }
        }
        let mut rest = sums[MOMENTS + row] * scale[row];
        for before in 0..row {
            rest -= factors[row][before] * left[before];
        }
        left[row] = if factors[row][row] > 0.0 { rest / factors[row][row] } else { 0.0 };
    }
    let mut found = [0.0; BASIS];
    for row in (0..BASIS).rev() {
        let mut rest = left[row];
        for after in row + 1..BASIS {
            rest -= factors[after][row] * found[after];
        }
        found[row] = if factors[row][row] > 0.0 { rest / factors[row][row] } else { 0.0 };
    }
    std::array::from_fn(|row| found[row] * scale[row])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums_of(points: &[(f64, f64)]) -> [f64; SUMS] {
        let mut sums = [0.0; SUMS];
        for (y, value) in points {
            let mut power = 1.0;
            for moment in 0..MOMENTS {
                sums[moment] += power;
                if moment < BASIS {
                    sums[MOMENTS + moment] += power * value;
                }
                power *= y;
            }
        }
        sums
    }

    #[test]
    fn a_cubic_is_found_and_what_is_explained_is_left_out() {
        let cubic = |y: f64| 0.3 + y * (0.2 + y * (-0.7 + y * 0.4));
        let points: Vec<(f64, f64)> = (1..50).map(|n| f64::from(n) / 50.0).map(|y| (y, cubic(y))).collect();
        let found = regressed(&sums_of(&points));
        for (found, exact) in found.iter().zip([0.3, 0.2, -0.7, 0.4]) {
            assert!((found - exact).abs() < 1e-9, "{found} instead of {exact}");
        }
        // One point: its value.
        let found = regressed(&sums_of(&[(0.5, 0.25), (0.5, 0.75)]));
        assert!((estrin(&found, 0.5) - 0.5).abs() < 1e-14, "{found:?}");
        assert_eq!(regressed(&[0.0; SUMS]), NEVER);
        assert!(!is_exercised(0.9, &NEVER) && is_exercised(0.1, &NOTHING) && !is_exercised(0.0, &NOTHING));
    }
}
