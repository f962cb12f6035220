//! Matrices that are given in the request, or computed from the market's samples.

use warptape_events::risk::{RiskError, RiskErrorCode};
use warptape_kernels::Isa;
use warptape_kernels::math::ln;
use warptape_kernels::portfolio::{Covariance, CovarianceError};

use super::assets::{RETURNS_MIN, Resolved};
use super::{bad, check_count};
use crate::SymbolMarket;

/// Most assets of a matrix from the market, because it is made before lanes have work on it.
const MARKET_ASSETS_MAX: usize = 256;
/// Greatest relative distance of a given matrix from symmetry, and of correlations on the diagonal from 1. Matrices
/// computed elsewhere have roundings.
const TOLERANCE: f64 = 1e-9;
/// Least number of horizons in the history of a market: with fewer, overlapping returns say little.
const HORIZONS_MIN: usize = 10;

/// Samples that all assets have in common.
pub(super) struct CommonSamples {
    /// Number of the first sample.
    first: i64,
    /// Returns between them.
    pub(super) times: usize,
}

impl CommonSamples {
    /// The samples in common of all assets that have a market.
    pub(super) fn of(assets: &[Option<SymbolMarket>]) -> Self {
        let spans = || {
            assets.iter().flatten().map(|market| (market.last_sample, market.samples.prices().len() as i64))
        };
        let last = spans().map(|(last, _)| last).min().unwrap_or(0);
        let first = spans().map(|(last, count)| last - count + 1).max().unwrap_or(0);
        Self { first, times: (last - first).max(0) as usize }
    }
}

/// Log returns of assets over the samples that they have in common.
#[derive(Debug)]
pub(super) struct MarketReturns {
    /// Returns of all assets, time by time.
    pub(super) returns: Vec<f64>,
    pub(super) periods_per_year: f64,
    pub(super) decay: f64,
    times: usize,
}

impl MarketReturns {
    /// The returns of all assets, 0 for those without a market. `field` is the matrix of the request that needs them.
    pub(super) fn of(assets: &Resolved, field: &str) -> Result<Self, RiskError> {
        check_count("problem.assets", assets.samples.len(), 1..=MARKET_ASSETS_MAX)?;
        let prices: Vec<Option<(Vec<f64>, i64)>> = assets
            .samples
            .iter()
            .map(|market| market.as_ref().map(|market| (market.samples.prices(), market.last_sample)))
            .collect();
        let Some(market) = assets.samples.iter().flatten().next() else {
            return Err(missing(field, "no asset has a market: wait, or give numbers".to_owned()));
        };
        let CommonSamples { first, times } = CommonSamples::of(&assets.samples);
        if times < RETURNS_MIN {
            let message = format!(
                "the assets have {times} sampled returns in common, {RETURNS_MIN} are needed: wait, or give numbers"
            );
            return Err(missing(field, message));
        }
        let mut returns = Vec::with_capacity(times * assets.samples.len());
        for time in 0..times {
            for of_asset in &prices {
                let Some((prices, last_sample)) = of_asset else {
                    returns.push(0.0);
                    continue;
                };
                let at = (first - (last_sample - prices.len() as i64 + 1)) as usize + time;
                returns.push(ln(prices[at + 1] / prices[at]));
            }
        }
        Ok(Self {
            returns,
            periods_per_year: market.year_ns / market.sample_interval_ns as f64,
            decay: market.decay,
            times,
        })
    }

    /// Log returns over a horizon in years, which is rounded to whole samples, for each sample that ends one; and the
    /// rounded horizon. Returns are sums of sampled ones and overlap, so that all of the history counts. The history
    /// must have at least ten horizons.
    pub(super) fn over(self, horizon_years: f64, field: &str) -> Result<(Vec<f64>, f64), RiskError> {
        let samples = (horizon_years * self.periods_per_year).round().max(1.0);
        let wanted = HORIZONS_MIN as f64 * samples;
        if wanted > self.times as f64 {
            let message = format!(
                "a horizon of {horizon_years} years is {samples} samples; {} sampled returns are known, {wanted} are needed: wait, \
                 shorten the horizon, raise stages.market.window or stages.market.sample_interval_ms, or give returns",
                self.times
            );
            return Err(missing(field, message));
        }
        let (samples, assets) = (samples as usize, self.returns.len() / self.times);
        let over = |place: usize| {
            let of_asset = self.returns[place..].iter().step_by(assets).take(samples);
            of_asset.fold(0.0, |sum, value| sum + value)
        };
        let returns = (0..(self.times - samples + 1) * assets).map(over).collect();
        Ok((returns, samples as f64 / self.periods_per_year))
    }

    /// The exponentially weighted covariance of the returns, annualised.
    pub(super) fn covariance(&self, isa: Isa, assets: usize) -> Result<Covariance, CovarianceError> {
        let covariance = Covariance::exponential(isa, assets, &self.returns, self.decay)?;
        Ok(covariance.scaled(self.periods_per_year))
    }
}

/// A given matrix without the roundings of its computation: nearly equal halves become their mean. Another matrix is
/// returned unchanged, and refused by its user.
pub(super) fn symmetric(assets: usize, numbers: &[f64]) -> Vec<f64> {
    let mut matrix = numbers.to_vec();
    if matrix.len() != assets * assets {
        return matrix;
    }
    for row in 0..assets {
        for column in 0..row {
            let [one, other] = [row * assets + column, column * assets + row];
            let most = (matrix[row * assets + row] * matrix[column * assets + column]).sqrt();
            if (matrix[one] - matrix[other]).abs() <= TOLERANCE * most {
                let mean = (matrix[one] + matrix[other]) / 2.0;
                [matrix[one], matrix[other]] = [mean; 2];
            }
        }
    }
    matrix
}

/// Likewise for correlations; numbers within rounding of 1 or −1 become exact.
pub(super) fn correlations(assets: usize, numbers: &[f64]) -> Vec<f64> {
    let mut matrix = symmetric(assets, numbers);
    for (place, correlation) in matrix.iter_mut().enumerate() {
        let is_diagonal = place % (assets + 1) == 0;
        if (*correlation - 1.0).abs() <= TOLERANCE && (is_diagonal || *correlation > 1.0) {
            *correlation = 1.0;
        } else if (-1.0 - TOLERANCE..-1.0).contains(correlation) {
            *correlation = -1.0;
        }
    }
    matrix
}

fn missing(field: &str, message: String) -> RiskError {
    RiskError { code: RiskErrorCode::MissingMarketData, field: field.to_owned(), message }
}

/// The error of an unusable matrix.
pub(super) fn of_matrix(error: &CovarianceError, field: &str) -> RiskError {
    bad(field, error.to_string())
}
