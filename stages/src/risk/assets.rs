//! Assets of a problem, with their data from the market.

use warptape_events::risk::{Asset, AssetKind, MarketAsOf, Matrix, Quantity, RiskError, RiskErrorCode};
use warptape_kernels::math::ln;
use warptape_kernels::portfolio::realised_volatilities;
use warptape_kernels::pricing::AssetMarket;

use super::matrices::CommonSamples;
use super::rounds::ProblemKind;
use super::{MarketOf, bad, check_count, check_length};
use crate::SymbolMarket;

/// Greatest number of assets of a request.
pub(super) const ASSETS_MAX: usize = 4_096;
/// Greatest size of a symbol, in bytes.
const SYMBOL_BYTES_MAX: usize = 64;
/// Placeholder for the volatility of an asset whose problem does not use it.
const ANY_VOLATILITY: f64 = 1.0;
/// Placeholder for the market of an asset without one; nothing is computed from it.
pub(super) const ANY_MARKET: AssetMarket =
    AssetMarket { spot: 1.0, rate: 0.0, dividend_yield: 0.0, volatility: ANY_VOLATILITY };
/// Least number of returns for a volatility or a matrix: with fewer, its relative standard error exceeds an eighth.
pub(super) const RETURNS_MIN: usize = 30;

/// The numbers of the assets of a problem.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) markets: Vec<AssetMarket>,
    /// True for an asset whose price is that of a future: then its yield is its rate.
    pub(super) futures: Vec<bool>,
    /// The reason why an asset has no market; then its numbers are placeholders.
    missing: Vec<Option<RiskError>>,
    /// The market of each asset, if a matrix is taken from the market; empty otherwise.
    pub(super) samples: Vec<Option<SymbolMarket>>,
    /// Data that was taken from the market.
    pub(super) as_of: Vec<MarketAsOf>,
}

impl Resolved {
    /// Resolves the numbers of every asset of a problem.
    pub(super) fn of(kind: &dyn ProblemKind, market_of: MarketOf<'_>) -> Result<Self, RiskError> {
        let wants_samples = matches!(kind.matrix(), Some(Matrix::Market(_)));
        check_count("problem.assets", kind.assets().len(), 0..=ASSETS_MAX)?;
        let leaves_out = kind.has_rows();
        let returns_min = if leaves_out && wants_samples { RETURNS_MIN } else { 0 };
        let mut resolved = Self::default();
        for (number, asset) in kind.assets().iter().enumerate() {
            let mut asset = asset.clone();
            if !kind.wants_volatilities() {
                asset.volatility = Quantity::Given(ANY_VOLATILITY);
            }
            check_length(&format!("problem.assets[{number}].symbol"), &asset.symbol, 0..=SYMBOL_BYTES_MAX)?;
            let added = resolved.add(number, &asset, wants_samples, returns_min, market_of);
            match added {
                Err(error) if leaves_out => {
                    resolved.add_missing(error, wants_samples);
                }
                other => other?,
            }
        }
        resolved.note_matrix();
        Ok(resolved)
    }

    /// Assets of which only samples are wanted.
    #[cfg(test)]
    pub(super) fn of_samples(samples: Vec<Option<SymbolMarket>>) -> Self {
        Self { samples, ..Self::default() }
    }

    /// Adds an asset without a market.
    fn add_missing(&mut self, error: RiskError, wants_samples: bool) {
        self.markets.push(ANY_MARKET);
        self.futures.push(false);
        self.missing.push(Some(error));
        if wants_samples {
            self.samples.push(None);
        }
    }

    /// Checks that an asset has a market; else returns its error.
    pub(super) fn check_known(&self, asset: usize) -> Result<(), RiskError> {
        self.missing.get(asset).and_then(Option::as_ref).map_or(Ok(()), |error| Err(error.clone()))
    }

    fn add(
        &mut self,
        number: usize,
        asset: &Asset,
        wants_samples: bool,
        returns_min: usize,
        market_of: MarketOf<'_>,
    ) -> Result<(), RiskError> {
        let field = |name: &str| format!("problem.assets[{number}].{name}");
        let mut market = AssetMarket {
            spot: given(&asset.spot),
            rate: asset.rate,
            dividend_yield: asset.dividend_yield,
            volatility: given(&asset.volatility),
        };
        let is_future = asset.kind == AssetKind::Future;
        if is_future {
            if asset.dividend_yield != 0.0 && asset.dividend_yield != asset.rate {
                let message = format!(
                    "{}; a future has none, because its price is expected to stay: give 0",
                    asset.dividend_yield
                );
                return Err(bad(field("dividend_yield"), message));
            }
            market.dividend_yield = asset.rate;
        }
        if !wants_market(asset, wants_samples) {
            self.push(market, is_future);
            return Ok(());
        }
        let found = market_of(&asset.symbol).ok_or_else(|| unknown(&asset.symbol, field("symbol")))?;
        let mut taken = MarketAsOf {
            symbol: asset.symbol.clone(),
            partition: found.partition,
            next_offset: found.next_offset,
            spot: None,
            volatility: None,
            returns: 0,
            window_ns: 0,
            time_ns: Some(found.last_sample.saturating_mul(found.sample_interval_ns)),
        };
        if is_market(&asset.spot) {
            let spot = found.spot.ok_or_else(|| no_price(&asset.symbol, &found, field("spot")))?;
            market.spot = spot;
            (taken.spot, taken.time_ns) = (Some(spot), found.time_ns);
        }
        let wants_returns = returns_min > 0 || is_market(&asset.volatility);
        let prices = if wants_returns { found.samples.prices() } else { Vec::new() };
        let returns = prices.len().saturating_sub(1);
        if returns < returns_min {
            return Err(too_few("a matrix", &asset.symbol, returns, field("symbol")));
        }
        if is_market(&asset.volatility) {
            if returns < RETURNS_MIN {
                return Err(too_few("a volatility", &asset.symbol, returns, field("volatility")));
            }
            let volatility = realised_volatility(&prices, found.year_ns / found.sample_interval_ns as f64);
            market.volatility = volatility;
            taken.volatility = Some(volatility);
            taken.returns = returns as i32;
            taken.window_ns = returns as i64 * found.sample_interval_ns;
        }
        self.push(market, is_future);
        self.as_of.push(taken);
        if wants_samples {
            self.samples.push(Some(found));
        }
        Ok(())
    }

    fn push(&mut self, market: AssetMarket, is_future: bool) {
        self.markets.push(market);
        self.futures.push(is_future);
        self.missing.push(None);
    }
}

impl Resolved {
    /// Records the number of returns behind a matrix of the market, for assets of which nothing else was computed from
    /// returns.
    fn note_matrix(&mut self) {
        let Some(market) = self.samples.iter().flatten().next() else { return };
        let (times, interval_ns) = (CommonSamples::of(&self.samples).times, market.sample_interval_ns);
        for taken in self.as_of.iter_mut().filter(|taken| taken.returns == 0) {
            taken.returns = times as i32;
            taken.window_ns = times as i64 * interval_ns;
        }
    }
}

/// Annualised volatility of the prices in the window.
fn realised_volatility(prices: &[f64], periods_per_year: f64) -> f64 {
    let returns: Vec<f64> = prices.windows(2).map(|pair| ln(pair[1] / pair[0])).collect();
    let of_assets = realised_volatilities(1, &returns, periods_per_year);
    of_assets.expect("prices are above 0, and samples at least a millisecond apart")[0]
}

/// True if a quantity of an asset is taken from the market; with a matrix from there, true for every asset.
pub(super) fn wants_market(asset: &Asset, has_matrix: bool) -> bool {
    is_market(&asset.spot) || is_market(&asset.volatility) || has_matrix
}

fn is_market(quantity: &Quantity) -> bool {
    matches!(quantity, Quantity::Market(_))
}

fn given(quantity: &Quantity) -> f64 {
    match quantity {
        Quantity::Given(number) => *number,
        Quantity::Market(_) => 0.0,
    }
}

fn unknown(symbol: &str, field: String) -> RiskError {
    let message = format!(
        "no tick of {symbol} was seen in the partitions of this process: check its name, wait for ticks, or give numbers"
    );
    RiskError { code: RiskErrorCode::UnknownSymbol, field, message }
}

fn no_price(symbol: &str, market: &SymbolMarket, field: String) -> RiskError {
    let message = if market.is_not_positive {
        format!("the last price of {symbol} is 0 or less, and this needs a positive one: give a number")
    } else {
        format!("{symbol} had neither a trade nor a quote with two sides yet: wait, or give a number")
    };
    RiskError { code: RiskErrorCode::MissingMarketData, field, message }
}

fn too_few(wanted: &str, symbol: &str, returns: usize, field: String) -> RiskError {
    let message = format!(
        "{returns} returns of {symbol} were sampled, {wanted} needs {RETURNS_MIN}: wait, or give a number"
    );
    RiskError { code: RiskErrorCode::MissingMarketData, field, message }
}
