//! The exercise rule of an American option: continuation values by regression over pilot paths (Longstaff and Schwartz,
//! *Valuing American Options by Simulation*, 2001).
//!
//! Backwards from the last date, the later payments of the pilot paths in the money are regressed on `1, y, y², y³`.
//! Here `y = ±(S/K − 1)` is the payoff of exercise in units of the strike. The paths themselves are computed backwards
//! from expiry, as a Brownian bridge to 0 now. If the Brownian motion is `W` a date later, it is normal about `W·k/(k +
//! 1)` at date k, with the variance `k/(k + 1)`. So only one date of the paths is kept, and the search may pause
//! between any two dates. Sums over paths have the same shape as those for prices.
//!
//! The value of waiting is at least that of the European option. If that exceeds the payoff, no path stops, whatever
//! the regression; the price up to which this holds is computed for each date in advance. So no rule is worth less than
//! waiting for expiry.

use super::american::{AmericanSpec, AmericanTerms};
use super::draws::{Draws, LANES, Lanes, Stream};
use super::options::ParameterError;
use super::sampling::{NumberSource, Sampling};
use super::sums::{GROUPS, sum_halves, sum_tree};
use crate::isa::{HotLoop, Isa};
use crate::math::{Real, estrin, exp, normal_cdf};

/// Number of polynomials in continuation values.
pub(crate) const BASIS: usize = 4;
/// Number of a regression's sums of powers of y, up to twice the highest. Below: including its sums of the basis times
/// the values.
const MOMENTS: usize = 2 * BASIS - 1;
const SUMS: usize = MOMENTS + BASIS;
/// Least share of a polynomial's scaled square that the previous polynomials do not explain; a polynomial with less is
/// left out.
const PIVOT_MIN: f64 = 1e-10;

/// The exercise rule of a date, in strikes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Continuation<T = f64> {
    /// The least payoff of exercise that is not below the value of the European option.
    pub least: T,
    /// Coefficients of the value of waiting.
    pub value: [T; BASIS],
}

/// The continuation at expiry, which is worth nothing.
const NOTHING: Continuation = Continuation { least: 0.0, value: [0.0; BASIS] };
/// Coefficients of a date without information: no path exercises there.
const NEVER: [f64; BASIS] = [f64::INFINITY, 0.0, 0.0, 0.0];

impl Continuation {
    pub fn of<T: Real>(&self) -> Continuation<T> {
        Continuation { least: T::of(self.least), value: self.value.map(T::of) }
    }
}

/// True if exercise pays more than waiting is worth.
#[inline(always)]
pub(crate) fn is_exercised<T: Real>(y: T, continuation: &Continuation<T>) -> bool {
    (y > T::of(0.0)) & (y >= continuation.least) & (y >= estrin(&continuation.value, y))
}

/// The first tested distance from the strike, in standard deviations until expiry. Below: the number of its doublings.
const FIRST_DEVIATIONS: f64 = 0.05;
const DOUBLINGS: u32 = 10;
const HALVINGS: u32 = 50;

/// The least payoff of exercise that is not below the value of the European option, `dates_left` dates before expiry;
/// infinite if there is none.
fn least(terms: &AmericanTerms, dates_left: u32) -> f64 {
    let left = f64::from(dates_left);
    let (mean, deviation) = (terms.drift.value * left, terms.diffusion.value * left.sqrt());
    let (discount, growth) = (exp(-(terms.step_rate * left)), exp(mean + 0.5 * (deviation * deviation)));
    let pays = |distance: f64| terms.sign * (exp(terms.sign * distance) - 1.0);
    let is_enough = |distance: f64| {
        let moneyness = exp(terms.sign * distance);
        let below = (terms.sign * distance + mean) / deviation;
        let asset = moneyness * growth * normal_cdf(terms.sign * (below + deviation));
        pays(distance) >= discount * (terms.sign * (asset - normal_cdf(terms.sign * below)))
    };
    let (mut low, mut high) = (0.0, FIRST_DEVIATIONS * deviation);
    for _ in 0..DOUBLINGS {
        if is_enough(high) {
            break;
        }
        (low, high) = (high, 2.0 * high);
    }
    if !is_enough(high) {
        return f64::INFINITY;
    }
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    pays(high)
}

/// The search for a rule, backwards from the last date. Each step is a function of the previous one, on any lane.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleSearch {
    spec: AmericanSpec,
    terms: AmericanTerms,
    /// Number of remaining dates; the last of them is next.
    dates_left: u32,
    /// The exercise rule of each finished date.
    continuations: Vec<Continuation>,
    /// The Brownian motion of the pilot paths at the date finished last, by group, in units of the square root of the
    /// time between dates.
    moved: Vec<Lanes<f64>>,
    /// Payments of the pilot paths if exercised at that date or later, in units of the strike.
    values: Vec<Lanes<f64>>,
}

impl RuleSearch {
    /// Checks all parameters and begins the search.
    pub fn new(spec: AmericanSpec) -> Result<Self, ParameterError> {
        spec.check()?;
        let groups = spec.pilot_blocks as usize * GROUPS;
        Ok(Self {
            spec,
            terms: AmericanTerms::new(&spec),
            dates_left: spec.exercises,
            continuations: vec![NOTHING; spec.exercises as usize],
            moved: vec![[0.0; LANES]; groups],
            values: vec![[0.0; LANES]; groups],
        })
    }

    /// Processes some more dates, at most the remaining ones.
    pub fn advance(&mut self, isa: Isa, dates: u32) {
        isa.run(Dates { search: self, dates });
    }

    /// Number of finished dates.
    pub fn dates(&self) -> u32 {
        self.spec.exercises - self.dates_left
    }

    /// True if all dates are finished.
    pub fn is_done(&self) -> bool {
        self.dates_left == 0
    }

    /// Spec, terms, and continuation values by date.
    pub(crate) fn into_parts(self) -> (AmericanSpec, AmericanTerms, Vec<Continuation>) {
        (self.spec, self.terms, self.continuations)
    }

    /// Value of the option now, without immediate exercise, in units of the strike. All dates must be finished.
    pub(crate) fn later(&self) -> f64 {
        let of_block = |groups: &[Lanes<f64>]| {
            let mut lanes = [0.0; LANES];
            groups.iter().for_each(|values| (0..LANES).for_each(|lane| lanes[lane] += values[lane]));
            [sum_halves(&mut lanes)]
        };
        let sums: Vec<[f64; 1]> = self.values.chunks(GROUPS).map(of_block).collect();
        exp(-self.terms.step_rate) * (sum_tree(&sums)[0] / (self.values.len() * LANES) as f64)
    }

    /// Moves the paths back to a date, counted from 1. Returns the payoffs of exercise there, negative out of the
    /// money.
    #[inline(always)]
    fn move_to(&mut self, source: &NumberSource, date: u32, pays: &mut [Lanes<f64>]) {
        let is_last = date == self.spec.exercises;
        let share = f64::from(date) / f64::from(date + 1);
        let (kept, spread) = if is_last { (0.0, f64::from(date).sqrt()) } else { (share, share.sqrt()) };
        let drifted = f64::from(date) * self.terms.drift.value;
        let (mut draws, mut z) = (Draws::new(), [0.0; LANES]);
        for (group, (moved, pays)) in self.moved.iter_mut().zip(pays).enumerate() {
            draws.normals(source, group as u64, u64::from(date) - 1, Stream::PILOT, &mut z);
            for lane in 0..LANES {
                moved[lane] = kept * moved[lane] + spread * z[lane];
                pays[lane] = self.terms.pays(drifted + self.terms.diffusion.value * moved[lane]);
            }
        }
    }
}

/// The hot loop over some dates of a search.
struct Dates<'a> {
    search: &'a mut RuleSearch,
    dates: u32,
}

impl HotLoop for Dates<'_> {
    #[inline(always)]
    fn run(self) {
        let search = self.search;
        let AmericanSpec { key, exercises, .. } = search.spec;
        let source = NumberSource::new(Sampling::Random, key, exercises, 1);
        let discount = exp(-search.terms.step_rate);
        let mut pays = vec![[0.0; LANES]; search.values.len()];
        for _ in 0..self.dates.min(search.dates_left) {
            let date = search.dates_left;
            search.dates_left -= 1;
            search.move_to(&source, date, &mut pays);
            let blocks = search.values.chunks_mut(GROUPS).zip(pays.chunks(GROUPS));
            let continuation = if date == exercises {
                NOTHING
            } else {
                let sums: Vec<[f64; SUMS]> =
                    blocks.map(|(values, pays)| block_sums(values, pays, discount)).collect();
                let least = least(&search.terms, exercises - date);
                Continuation { least, value: regressed(&sum_tree(&sums)) }
            };
            search.continuations[date as usize - 1] = continuation;
            for (values, pays) in search.values.iter_mut().zip(&pays) {
                for (value, y) in values.iter_mut().zip(pays) {
                    *value = if is_exercised(*y, &continuation) { *y } else { *value };
                }
            }
        }
    }
}

/// Discounts the values of a block's paths by a step, and sums over the paths in the money.
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

/// Least squares by Cholesky's factor of the normal equations, scaled to ones on the diagonal. A polynomial that the
/// earlier ones explain gets no coefficient.
fn regressed(sums: &[f64; SUMS]) -> [f64; BASIS] {
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
        // A regression on one point gives its mean value.
        let found = regressed(&sums_of(&[(0.5, 0.25), (0.5, 0.75)]));
        assert!((estrin(&found, 0.5) - 0.5).abs() < 1e-14, "{found:?}");
        assert_eq!(regressed(&[0.0; SUMS]), NEVER);
        let never = Continuation { value: NEVER, ..NOTHING };
        assert!(!is_exercised(0.9, &never) && is_exercised(0.1, &NOTHING) && !is_exercised(0.0, &NOTHING));
        let late = Continuation { least: 0.2, ..NOTHING };
        assert!(!is_exercised(0.1, &late) && is_exercised(0.2, &late));
    }
}
