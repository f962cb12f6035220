//! Mean-variance optimisation (Markowitz, *Portfolio selection*, 1952): the best weights of assets for a mean and a
//! covariance.
//!
//! The minimum of `½·γ·wᵀΣw − μᵀw`, with the risk aversion γ, or of `½·wᵀΣw` with a given `μᵀw`. In both cases `Σ w` is
//! the budget, and each weight is within its bounds. Clarabel's interior-point method solves it on one thread, so that
//! the same problem gives the same bits. All numbers are in the unit of the means and the covariance, which must be per
//! the same time.

use std::ops::RangeInclusive;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use thiserror::Error;
use warptape_kernels::portfolio::{Covariance, CovarianceError};

/// Greatest number of assets: the time of the solver grows as its cube.
pub const ASSETS_MAX: usize = 1_000;
/// Allowed risk aversion.
pub const RISK_AVERSION_RANGE: RangeInclusive<f64> = 1e-6..=1e9;
/// Allowed means, bounds and budget.
pub const NUMBER_RANGE: RangeInclusive<f64> = -1e9..=1e9;

/// Gaps and residuals at which the solver stops, relative to the greatest number of the objective.
const TOLERANCE: f64 = 1e-12;
/// Gaps and residuals that are accepted if rounding allows no smaller ones.
const TOLERANCE_REDUCED: f64 = 1e-9;
const ITERATIONS_MAX: u32 = 200;

/// The objective of the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// Greatest mean minus half of the variance times this risk aversion γ.
    RiskAversion(f64),
    /// Least variance with exactly this mean.
    TargetReturn(f64),
}

/// A problem.
#[derive(Clone, Debug, PartialEq)]
pub struct MeanVariance<'a> {
    /// Covariance of the assets' returns, Σ.
    pub covariance: &'a Covariance,
    /// Expected return of each asset, μ.
    pub means: &'a [f64],
    /// Least weight of each asset, l.
    pub lower: &'a [f64],
    /// Greatest weight of each asset, u.
    pub upper: &'a [f64],
    /// Sum of the weights: 1 invests all of the capital, 0 makes long positions pay for short ones.
    pub budget: f64,
    /// The objective of the weights.
    pub objective: Objective,
}

/// Its solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// Weight of each asset.
    pub weights: Vec<f64>,
    /// Expected return, `μᵀw`.
    pub mean: f64,
    /// Variance, `wᵀΣw`.
    pub variance: f64,
}

/// Reasons for which there is no solution.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OptimisationError {
    /// A list has too few or too many numbers.
    #[error("{field} has {count} numbers: give {expected}, one for each asset of the covariance")]
    Shape {
        /// Name of the list.
        field: &'static str,
        /// Numbers in the list.
        count: usize,
        /// Numbers that it should have.
        expected: usize,
    },
    /// There are no assets, or too many.
    #[error("there are {assets} assets: give from 1 to {ASSETS_MAX}")]
    Assets {
        /// Given number of assets.
        assets: usize,
    },
    /// A number is outside its range.
    #[error("{field}{} is {value}: give a number from {least:e} to {greatest:e}", of_asset(*.asset))]
    Parameter {
        /// Name of the number.
        field: &'static str,
        /// The asset of the number; `None` for a number of all assets.
        asset: Option<usize>,
        /// The given value.
        value: f64,
        /// The least allowed value.
        least: f64,
        /// The greatest allowed value.
        greatest: f64,
    },
    /// The covariance cannot be used.
    #[error(transparent)]
    Covariance(#[from] CovarianceError),
    /// No weights within the bounds satisfy the budget or the target.
    #[error(
        "{field} is {value}, but within bounds and budget it is from {least} to {greatest}: change one of them"
    )]
    Infeasible {
        /// `budget` or `target_return`.
        field: &'static str,
        /// The wanted value.
        value: f64,
        /// The least possible value.
        least: f64,
        /// The greatest possible value.
        greatest: f64,
    },
    /// The solver ends without a solution: numbers differ too much in size.
    #[error(
        "the solver found no solution ({status}): give means, covariance and bounds of more similar size"
    )]
    Unsolved {
        /// Status of the solver.
        status: String,
    },
}

impl MeanVariance<'_> {
    /// The best weights.
    pub fn solve(&self) -> Result<Optimum, OptimisationError> {
        self.check()?;
        self.covariance.factor()?;
        self.check_feasible()?;
        let (quadratic, linear) = self.cost();
        let (constraints, limits, equalities) = self.constraints();
        let cones = [ZeroConeT(equalities), NonnegativeConeT(limits.len() - equalities)];
        let unsolved = |status: String| OptimisationError::Unsolved { status };
        let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &limits, &cones, settings())
            .map_err(|error| unsolved(error.to_string()))?;
        solver.solve();
        match solver.solution.status {
            SolverStatus::Solved | SolverStatus::AlmostSolved => {}
            status => return Err(unsolved(status.to_string())),
        }
        let bounds = self.lower.iter().zip(self.upper);
        let weights = solver.solution.x.iter().zip(bounds);
        Ok(self.optimum(weights.map(|(weight, (lower, upper))| weight.clamp(*lower, *upper)).collect()))
    }

    fn optimum(&self, weights: Vec<f64>) -> Optimum {
        let product = |one: &[f64], other: &[f64]| {
            one.iter().zip(other).fold(0.0, |sum, (one, other)| sum + one * other)
        };
        let mean = product(self.means, &weights);
        let variance = product(&self.covariance.product(&weights), &weights).max(0.0);
        Optimum { weights, mean, variance }
    }

    fn check(&self) -> Result<(), OptimisationError> {
        let expected = self.covariance.assets();
        if !(1..=ASSETS_MAX).contains(&expected) {
            return Err(OptimisationError::Assets { assets: expected });
        }
        for (field, numbers) in [("means", self.means), ("lower", self.lower), ("upper", self.upper)] {
            if numbers.len() != expected {
                return Err(OptimisationError::Shape { field, count: numbers.len(), expected });
            }
            for (asset, &value) in numbers.iter().enumerate() {
                check(field, Some(asset), value, NUMBER_RANGE)?;
            }
        }
        for (asset, (&lower, &upper)) in self.lower.iter().zip(self.upper).enumerate() {
            check("upper", Some(asset), upper, lower..=*NUMBER_RANGE.end())?;
        }
        check("budget", None, self.budget, NUMBER_RANGE)?;
        match self.objective {
            Objective::RiskAversion(aversion) => check("risk_aversion", None, aversion, RISK_AVERSION_RANGE),
            Objective::TargetReturn(target) => check("target_return", None, target, NUMBER_RANGE),
        }
    }

    fn check_feasible(&self) -> Result<(), OptimisationError> {
        let sum = |numbers: &[f64]| numbers.iter().sum::<f64>();
        within("budget", self.budget, sum(self.lower), sum(self.upper))?;
        match self.objective {
            Objective::RiskAversion(_) => Ok(()),
            Objective::TargetReturn(target) => {
                let (least, greatest) = (-self.greatest_mean(-1.0), self.greatest_mean(1.0));
                within("target_return", target, least, greatest)
            }
        }
    }

    /// The greatest mean, times a sign, within bounds and budget: the budget beyond the lower bounds goes to the best
    /// assets.
    fn greatest_mean(&self, sign: f64) -> f64 {
        let mean = |asset: usize| sign * self.means[asset];
        let mut order: Vec<usize> = (0..self.means.len()).collect();
        order.sort_by(|&one, &other| mean(other).total_cmp(&mean(one)));
        let mut left = self.budget - self.lower.iter().sum::<f64>();
        order.into_iter().fold(0.0, |sum, asset| {
            let more = left.min(self.upper[asset] - self.lower[asset]);
            left -= more;
            sum + mean(asset) * (self.lower[asset] + more)
        })
    }

    /// Upper triangle of the quadratic cost, and the linear cost, scaled so that the greatest number is 1.
    fn cost(&self) -> (CscMatrix<f64>, Vec<f64>) {
        let n = self.means.len();
        let (aversion, weight) = match self.objective {
            Objective::RiskAversion(aversion) => (aversion, -1.0),
            Objective::TargetReturn(_) => (1.0, 0.0),
        };
        let upper = (0..n).flat_map(|column| (0..=column).map(move |row| (row, column)));
        let mut numbers: Vec<f64> =
            upper.map(|(row, column)| aversion * self.covariance.of(row, column)).collect();
        let mut linear: Vec<f64> = self.means.iter().map(|mean| weight * mean).collect();
        let greatest = numbers.iter().chain(&linear).fold(0.0_f64, |most, number| most.max(number.abs()));
        if greatest > 0.0 {
            numbers.iter_mut().chain(&mut linear).for_each(|number| *number /= greatest);
        }
        let columns = (0..=n).map(|column| column * (column + 1) / 2).collect();
        let rows = (0..n).flat_map(|column| 0..=column).collect();
        (CscMatrix::new(n, n, columns, rows, numbers), linear)
    }

    /// Matrix and limits of `A·w + s = b`: first rows with `s = 0` (budget, target, weights without choice), then rows
    /// with `s ≥ 0`.
    fn constraints(&self) -> (CscMatrix<f64>, Vec<f64>, usize) {
        let mut rows: Vec<(f64, Vec<(usize, f64)>)> =
            vec![(self.budget, (0..self.means.len()).map(|asset| (asset, 1.0)).collect())];
        if let Objective::TargetReturn(target) = self.objective {
            // A row of zeros adds no condition, nor does one of equal numbers, which is a multiple of the budget's.
            let first = self.means[0];
            if self.means.iter().any(|mean| *mean != first) {
                let most = self.means.iter().fold(0.0_f64, |most, mean| most.max(mean.abs()));
                let means = self.means.iter().map(|mean| mean / most).enumerate().collect();
                rows.push((target / most, means));
            }
        }
        let bounds = || self.lower.iter().zip(self.upper).enumerate();
        rows.extend(bounds().filter(|(_, (l, u))| l == u).map(|(asset, (l, _))| (*l, vec![(asset, 1.0)])));
        let equalities = rows.len();
        for (asset, (lower, upper)) in bounds().filter(|(_, (l, u))| l < u) {
            rows.push((*upper, vec![(asset, 1.0)]));
            rows.push((-lower, vec![(asset, -1.0)]));
        }
        let mut columns = vec![Vec::new(); self.means.len()];
        for (number, (_, row)) in rows.iter().enumerate() {
            row.iter().for_each(|&(asset, factor)| columns[asset].push((number, factor)));
        }
        let mut ends = vec![0];
        ends.extend(columns.iter().scan(0, |end, column| {
            *end += column.len();
            Some(*end)
        }));
        let (numbers, factors) = columns.into_iter().flatten().unzip();
        let matrix = CscMatrix::new(rows.len(), self.means.len(), ends, numbers, factors);
        (matrix, rows.into_iter().map(|(limit, _)| limit).collect(), equalities)
    }
}

fn of_asset(asset: Option<usize>) -> String {
    asset.map_or(String::new(), |asset| format!(" of asset {asset}"))
}

fn settings() -> DefaultSettings<f64> {
    DefaultSettings {
        verbose: false,
        max_threads: 1,
        direct_solve_method: "qdldl".to_owned(),
        max_iter: ITERATIONS_MAX,
        tol_gap_abs: TOLERANCE,
        tol_gap_rel: TOLERANCE,
        tol_feas: TOLERANCE,
        reduced_tol_gap_abs: TOLERANCE_REDUCED,
        reduced_tol_gap_rel: TOLERANCE_REDUCED,
        reduced_tol_feas: TOLERANCE_REDUCED,
        ..DefaultSettings::default()
    }
}

fn check(
    field: &'static str,
    asset: Option<usize>,
    value: f64,
    range: RangeInclusive<f64>,
) -> Result<(), OptimisationError> {
    let (least, greatest) = (*range.start(), *range.end());
    if range.contains(&value) {
        Ok(())
    } else {
        Err(OptimisationError::Parameter { field, asset, value, least, greatest })
    }
}

/// Checks a range, with an allowance for roundings of the sums.
fn within(field: &'static str, value: f64, least: f64, greatest: f64) -> Result<(), OptimisationError> {
    let rounding = 1e-12 * least.abs().max(greatest.abs()).max(value.abs());
    if value >= least - rounding && value <= greatest + rounding {
        Ok(())
    } else {
        Err(OptimisationError::Infeasible { field, value, least, greatest })
    }
}
