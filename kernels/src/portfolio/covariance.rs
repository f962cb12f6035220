//! Covariances of assets' returns: given, or from a matrix of returns.
//!
//! With the returns `x_ta` of asset a at time t, T times, the oldest first:
//!
//! | estimate | formula |
//! | --- | --- |
//! | sample | `Σ_t (x_ta − m_a)(x_tb − m_b) / (T − 1)`, with the means m |
//! | exponentially weighted | `Σ_t λ^{T−1−t} x_ta x_tb / Σ_t λ^{T−1−t}`, with means of 0 (RiskMetrics, 1996) |
//!
//! Sums go from the oldest to the newest, `sum = decay·sum + product`, with a decay of 1 for the sample.

use thiserror::Error;

use super::positions::ASSETS_MAX;
use super::scenarios::CELLS_MAX;
use super::semi_definite::{self, Indefinite};
use crate::isa::{HotLoop, Isa};
use crate::pricing::ParameterError;
use crate::pricing::options::check;

/// Share of an asset's variance, per asset, up to which the part that the other assets do not explain counts as
/// rounding.
const ROUNDING: f64 = 1e-14;
/// Greatest difference between the two halves of the matrix, as a share of the greatest possible value of a covariance.
const ASYMMETRY_MAX: f64 = 1e-12;
/// Number of rows, and of columns, of the matrix that a hot loop computes side by side.
const TILE: [usize; 2] = [4, 16];

/// Errors of a covariance.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CovarianceError {
    /// A list has too few or too many numbers.
    #[error("{field} has {count} numbers: give {expected}")]
    Shape {
        /// Name of the list.
        field: &'static str,
        /// Numbers in the list.
        count: usize,
        /// Numbers that it should have.
        expected: usize,
    },
    /// There are more numbers than are allowed.
    #[error(
        "{assets} assets at {times} times are too many: give {ASSETS_MAX} assets and {CELLS_MAX} numbers at most"
    )]
    TooMany {
        /// Given number of assets.
        assets: usize,
        /// Given number of times.
        times: usize,
    },
    /// There are too few returns.
    #[error("there are returns of {times} times: give {least} at least")]
    TooFew {
        /// Given number of times.
        times: usize,
        /// Least number of times.
        least: usize,
    },
    /// A number is infinite or NaN.
    #[error("{field} of asset {asset} is {value} (row {row}): give a finite number")]
    NotFinite {
        /// Name of the matrix.
        field: &'static str,
        /// Row in the matrix.
        row: usize,
        /// Column.
        asset: usize,
        /// The given value.
        value: f64,
    },
    /// The matrix is not symmetric.
    #[error(
        "the covariance of assets {first} and {second} is {value} one way and {other} the other: give a symmetric matrix"
    )]
    Asymmetric {
        /// One asset.
        first: usize,
        /// The other.
        second: usize,
        /// The element in row `first`, column `second`.
        value: f64,
        /// The element in row `second`, column `first`.
        other: f64,
    },
    /// No returns can have such a covariance.
    #[error(
        "the covariance is not positive semi-definite: its least eigenvalue is {least:e} and its greatest {greatest:e}, which no rounding \
         explains: give one that some returns have, such as this one with its negative eigenvalues set to 0"
    )]
    Indefinite {
        /// The least eigenvalue.
        least: f64,
        /// The greatest.
        greatest: f64,
    },
    /// A variance is negative.
    #[error("the covariance has a variance of {variance:e} for asset {asset}: a variance is 0 or more")]
    NegativeVariance {
        /// The asset.
        asset: usize,
        /// Its variance.
        variance: f64,
    },
    /// A parameter is out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
}

/// A covariance matrix of assets' returns over some time.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariance {
    assets: usize,
    values: Vec<f64>,
}

impl Covariance {
    /// A symmetric matrix, given row by row.
    pub fn new(assets: usize, values: Vec<f64>) -> Result<Self, CovarianceError> {
        check_matrix("covariance", assets, assets, &values)?;
        for first in 0..assets {
            let variance = values[first * assets + first];
            if variance < 0.0 {
                return Err(CovarianceError::NegativeVariance { asset: first, variance });
            }
        }
        let mut covariance = Self { assets, values };
        for first in 0..assets {
            for second in 0..first {
                let [value, other] = [covariance.of(first, second), covariance.of(second, first)];
                let most = (covariance.of(first, first) * covariance.of(second, second)).sqrt();
                if (value - other).abs() > ASYMMETRY_MAX * most {
                    return Err(CovarianceError::Asymmetric { first, second, value, other });
                }
                covariance.values[second * assets + first] = value;
            }
        }
        Ok(covariance)
    }

    /// The covariance for these volatilities and this matrix of correlations, given row by row: `σ_a·σ_b·ρ_ab`.
    pub fn from_correlations(volatilities: &[f64], correlations: &[f64]) -> Result<Self, CovarianceError> {
        let assets = volatilities.len();
        check_matrix("volatilities", assets, 1, volatilities)?;
        check_matrix("correlations", assets, assets, correlations)?;
        for (number, correlation) in correlations.iter().enumerate() {
            let least = if number % (assets + 1) == 0 { 1.0 } else { -1.0 };
            check("correlations", *correlation, least..=1.0)?;
        }
        let value = |number: usize| {
            volatilities[number / assets] * volatilities[number % assets] * correlations[number]
        };
        Self::new(assets, (0..assets * assets).map(value).collect())
    }

    /// The sample covariance of a matrix of returns, given time by time.
    pub fn sample(isa: Isa, assets: usize, returns: &[f64]) -> Result<Self, CovarianceError> {
        let (times, divisor) = sample_sums(assets, returns)?;
        let mut centred = returns.to_vec();
        isa.run(Centre { assets, times, values: &mut centred });
        Self::of_sums(isa, assets, &centred, 1.0, divisor)
    }

    /// The exponentially weighted covariance of a matrix of returns, given time by time. RiskMetrics uses a lambda of
    /// 0.94 for days.
    pub fn exponential(
        isa: Isa,
        assets: usize,
        returns: &[f64],
        lambda: f64,
    ) -> Result<Self, CovarianceError> {
        let divisor = exponential_divisor(assets, returns, lambda)?;
        Self::of_sums(isa, assets, returns, lambda, divisor)
    }

    fn of_sums(
        isa: Isa,
        assets: usize,
        rows: &[f64],
        decay: f64,
        divisor: f64,
    ) -> Result<Self, CovarianceError> {
        let mut values = vec![0.0; assets * assets];
        isa.run(Products { assets, rows, decay, divisor, values: &mut values });
        Self::of_values(assets, values)
    }

    /// A covariance from computed values; an error if they are not finite, because returns were too large to be
    /// squared.
    pub(super) fn of_values(assets: usize, values: Vec<f64>) -> Result<Self, CovarianceError> {
        check_matrix("covariance", assets, assets, &values)?;
        Ok(Self { assets, values })
    }

    /// Number of assets.
    pub fn assets(&self) -> usize {
        self.assets
    }

    /// Covariance of two assets.
    pub fn of(&self, first: usize, second: usize) -> f64 {
        self.values[first * self.assets + second]
    }

    /// The matrix, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The covariance over another time: a factor of 252 converts that of a day to that of a year.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { assets: self.assets, values: self.values.iter().map(|value| value * factor).collect() }
    }

    /// Volatilities: square roots of the variances.
    pub fn volatilities(&self) -> Vec<f64> {
        (0..self.assets).map(|asset| self.of(asset, asset).sqrt()).collect()
    }

    /// Correlations, row by row: 1 for an asset with itself, 0 with an asset that does not vary.
    pub fn correlations(&self) -> Vec<f64> {
        let volatilities = self.volatilities();
        let correlation = |number: usize| {
            let (first, second) = (number / self.assets, number % self.assets);
            let most = volatilities[first] * volatilities[second];
            if first == second {
                1.0
            } else if most == 0.0 {
                0.0
            } else {
                // Both halves are computed in the same order of assets, so that they have the same bits.
                (self.values[number] / most).clamp(-1.0, 1.0)
            }
        };
        (0..self.values.len()).map(correlation).collect()
    }

    /// Returns the product with a vector.
    pub fn product(&self, vector: &[f64]) -> Vec<f64> {
        let row = |row: &[f64]| row.iter().zip(vector).fold(0.0, |sum, (one, other)| sum + one * other);
        if self.assets == 0 { Vec::new() } else { self.values.chunks_exact(self.assets).map(row).collect() }
    }

    /// Returns the lower triangular factor L, row by row, with `L·Lᵀ` equal to the covariance. For a positive definite
    /// matrix it is Cholesky's; otherwise it is the factor of the nearest positive semi-definite matrix.
    ///
    /// # Errors
    /// The matrix has negative eigenvalues that rounding does not explain.
    pub fn factor(&self) -> Result<Vec<f64>, CovarianceError> {
        if let Some(factor) = self.cholesky() {
            return Ok(factor);
        }
        let factor = semi_definite::lower_factor(self.assets, &self.values);
        factor.map_err(|Indefinite { least, greatest }| CovarianceError::Indefinite { least, greatest })
    }

    /// Returns Cholesky's factor; `None` if the earlier assets explain an asset's variance up to rounding.
    fn cholesky(&self) -> Option<Vec<f64>> {
        let n = self.assets;
        let mut factor = vec![0.0; n * n];
        for column in 0..n {
            let variance = self.of(column, column);
            let own = &factor[column * n..column * n + column];
            let rest = own.iter().fold(variance, |rest, number| rest - number * number);
            // The comparison is false for NaN as well.
            let is_free = rest > n as f64 * ROUNDING * variance;
            if !is_free {
                return None;
            }
            let pivot = rest.sqrt();
            factor[column * n + column] = pivot;
            for row in column + 1..n {
                let [upper, lower] = [column, row].map(|row| &factor[row * n..row * n + column]);
                let rest = upper.iter().zip(lower).fold(self.of(row, column), |rest, (u, l)| rest - u * l);
                factor[row * n + column] = rest / pivot;
            }
        }
        Some(factor)
    }
}

/// Realised volatility of each asset, annualised: `√(Σ_t x_t² / T · periods_per_year)`, with a mean of 0.
pub fn realised_volatilities(
    assets: usize,
    returns: &[f64],
    periods_per_year: f64,
) -> Result<Vec<f64>, CovarianceError> {
    let times = check_returns(assets, returns, 1)?;
    check("periods_per_year", periods_per_year, 1e-3..=1e12)?;
    let squares = |asset: usize| {
        let of_asset = returns.iter().skip(asset).step_by(assets);
        of_asset.fold(0.0, |sum, value| sum + value * value)
    };
    Ok((0..assets).map(|asset| (squares(asset) / times as f64 * periods_per_year).sqrt()).collect())
}

/// Number of times, and the divisor of the sample's sums.
pub(super) fn sample_sums(assets: usize, returns: &[f64]) -> Result<(usize, f64), CovarianceError> {
    let times = check_returns(assets, returns, 2)?;
    Ok((times, (times - 1) as f64))
}

/// The divisor of exponentially weighted sums.
pub(super) fn exponential_divisor(
    assets: usize,
    returns: &[f64],
    lambda: f64,
) -> Result<f64, CovarianceError> {
    let times = check_returns(assets, returns, 1)?;
    check("lambda", lambda, 1e-6..=1.0)?;
    Ok((0..times).fold(0.0, |sum, _| lambda * sum + 1.0))
}

fn check_returns(assets: usize, returns: &[f64], least: usize) -> Result<usize, CovarianceError> {
    let times = returns.len() / assets.max(1);
    if times < least {
        return Err(CovarianceError::TooFew { times, least });
    }
    check_matrix("returns", assets, times, returns)?;
    Ok(times)
}

fn check_matrix(
    field: &'static str,
    assets: usize,
    rows: usize,
    values: &[f64],
) -> Result<(), CovarianceError> {
    if assets > ASSETS_MAX || values.len() > CELLS_MAX {
        return Err(CovarianceError::TooMany { assets, times: rows });
    }
    if values.len() != assets * rows {
        return Err(CovarianceError::Shape { field, count: values.len(), expected: assets * rows });
    }
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(at) => {
            let (row, asset) = (at / assets, at % assets);
            Err(CovarianceError::NotFinite { field, row, asset, value: values[at] })
        }
    }
}

/// The hot loop that subtracts the mean from each column.
struct Centre<'a> {
    assets: usize,
    times: usize,
    values: &'a mut [f64],
}

impl HotLoop for Centre<'_> {
    #[inline(always)]
    fn run(self) {
        let mut means = vec![0.0; self.assets];
        for row in self.values.chunks_exact(self.assets) {
            means.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        means.iter_mut().for_each(|sum| *sum /= self.times as f64);
        for row in self.values.chunks_exact_mut(self.assets) {
            row.iter_mut().zip(&means).for_each(|(value, mean)| *value -= mean);
        }
    }
}

/// The hot loop that sums products of columns, tile by tile.
struct Products<'a> {
    assets: usize,
    rows: &'a [f64],
    decay: f64,
    divisor: f64,
    values: &'a mut [f64],
}

impl HotLoop for Products<'_> {
    #[inline(always)]
    fn run(self) {
        let [height, width] = TILE;
        for first in (0..self.assets).step_by(height) {
            // The upper triangle mirrors the lower one.
            for second in (0..(first + height).min(self.assets)).step_by(width) {
                let sums = tile(self.rows, self.assets, self.decay, first, second);
                for (row, sums) in (first..self.assets).zip(&sums) {
                    for (column, sum) in (second..=row).zip(sums) {
                        let value = sum / self.divisor;
                        self.values[row * self.assets + column] = value;
                        self.values[column * self.assets + row] = value;
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn tile(rows: &[f64], assets: usize, decay: f64, first: usize, second: usize) -> [[f64; TILE[1]]; TILE[0]] {
    let mut sums = [[0.0; TILE[1]]; TILE[0]];
    let heights = first..assets.min(first + TILE[0]);
    let widths = second..assets.min(second + TILE[1]);
    let (mut left, mut right) = ([0.0; TILE[0]], [0.0; TILE[1]]);
    for row in rows.chunks_exact(assets) {
        left[..heights.len()].copy_from_slice(&row[heights.clone()]);
        right[..widths.len()].copy_from_slice(&row[widths.clone()]);
        for (sums, left) in sums.iter_mut().zip(&left) {
            for (sum, right) in sums.iter_mut().zip(&right) {
                *sum = decay * *sum + left * right;
            }
        }
    }
    sums
}
