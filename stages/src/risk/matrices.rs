//! Matrices that are given, or taken from the market's samples.

use warptape_kernels::Isa;
use warptape_kernels::math::ln;
use warptape_kernels::portfolio::{Covariance, CovarianceError};
use warptape_schemas::risk::{RiskError, RiskErrorCode};

use super::assets::{RETURNS_MIN, Resolved, YEAR_NS};
use super::{bad, check_count};

/// Assets of a matrix from the market at most: it is made before lanes have anything to do with it.
const MARKET_ASSETS_MAX: usize = 256;

/// Log returns of assets over the samples that they have in common.
#[derive(Debug)]
pub(super) struct MarketReturns {
    /// One time after the other.
    pub(super) returns: Vec<f64>,
    pub(super) periods_per_year: f64,
    pub(super) decay: f64,
}

impl MarketReturns {
    /// Those of all assets; `field` is the matrix that wants them.
    pub(super) fn of(assets: &Resolved, field: &str) -> Result<Self, RiskError> {
        check_count("problem.assets", assets.samples.len(), 1..=MARKET_ASSETS_MAX)?;
        let prices: Vec<Vec<f64>> = assets.samples.iter().map(|market| market.samples.prices()).collect();
        let spans = || {
            let counts = prices.iter().map(|prices| prices.len() as i64);
            assets.samples.iter().map(|market| market.last_sample).zip(counts)
        };
        let last = spans().map(|(last, _)| last).min().unwrap_or(0);
        let first = spans().map(|(last, count)| last - count + 1).max().unwrap_or(0);
        let times = (last - first).max(0) as usize;
        if times < RETURNS_MIN {
            let message = format!(
                "the assets have {times} sampled returns in common, {RETURNS_MIN} are needed: wait, or give numbers"
            );
            return Err(RiskError {
                code: RiskErrorCode::MissingMarketData,
                field: field.to_owned(),
                message,
            });
        }
        let mut returns = Vec::with_capacity(times * assets.samples.len());
        for time in 0..times {
            for (prices, (last, count)) in prices.iter().zip(spans()) {
                let at = (first - (last - count + 1)) as usize + time;
                returns.push(ln(prices[at + 1] / prices[at]));
            }
        }
        let market = &assets.samples[0];
        Ok(Self {
            returns,
            periods_per_year: YEAR_NS / market.sample_interval_ns as f64,
            decay: market.decay,
        })
    }

    /// Their exponentially weighted covariance, by the year.
    pub(super) fn covariance(&self, isa: Isa, assets: usize) -> Result<Covariance, CovarianceError> {
        let covariance = Covariance::exponential(isa, assets, &self.returns, self.decay)?;
        Ok(covariance.scaled(self.periods_per_year))
    }
}

/// Blames a matrix.
pub(super) fn of_matrix(error: &CovarianceError, field: &str) -> RiskError {
    bad(field, error.to_string())
}
