//! Assets of a problem, with what is taken from the market.

use warptape_events::risk::{Asset, AssetKind, MarketAsOf, Matrix, Quantity, RiskError, RiskErrorCode};
use warptape_kernels::math::ln;
use warptape_kernels::portfolio::realised_volatilities;
use warptape_kernels::pricing::AssetMarket;

use super::matrices::CommonSamples;
use super::rounds::Kind;
use super::{MarketOf, bad, check_count, check_length};
use crate::SymbolMarket;

/// Assets of a request at most.
pub(super) const ASSETS_MAX: usize = 4_096;
/// Bytes of a symbol at most.
const SYMBOL_BYTES_MAX: usize = 64;
/// Stands for the volatility of an asset whose problem does not use it.
const ANY_VOLATILITY: f64 = 1.0;
/// Returns that a volatility or a matrix needs at least: of fewer, its relative standard error is more than an eighth.
pub(super) const RETURNS_MIN: usize = 30;

/// What is known of the assets of a problem.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) markets: Vec<AssetMarket>,
    /// By asset, whether its price is that of a future: then its yield is its rate.
    pub(super) futures: Vec<bool>,
    /// What the market has of each asset, where a matrix is taken from it; nothing otherwise.
    pub(super) samples: Vec<SymbolMarket>,
    /// What was taken from the market.
    pub(super) as_of: Vec<MarketAsOf>,
}

impl Resolved {
    /// Gives every asset of a problem its numbers.
    pub(super) fn of(kind: &dyn Kind, market_of: MarketOf<'_>) -> Result<Self, RiskError> {
        let wants_samples = matches!(kind.matrix(), Some(Matrix::Market(_)));
        if kind.wants_volatilities() {
            return Self::new(kind.assets(), wants_samples, market_of);
        }
        let given = |asset: &Asset| Asset { volatility: Quantity::Given(ANY_VOLATILITY), ..asset.clone() };
        Self::new(&kind.assets().iter().map(given).collect::<Vec<_>>(), wants_samples, market_of)
    }

    fn new(assets: &[Asset], wants_samples: bool, market_of: MarketOf<'_>) -> Result<Self, RiskError> {
        check_count("problem.assets", assets.len(), 0..=ASSETS_MAX)?;
        let mut resolved = Self::default();
        for (number, asset) in assets.iter().enumerate() {
            resolved.add(number, asset, wants_samples, market_of)?;
        }
        resolved.note_matrix();
        Ok(resolved)
    }

    fn add(
        &mut self,
        number: usize,
        asset: &Asset,
        wants_samples: bool,
        market_of: MarketOf<'_>,
    ) -> Result<(), RiskError> {
        let field = |name: &str| format!("problem.assets[{number}].{name}");
        check_length(&field("symbol"), &asset.symbol, 0..=SYMBOL_BYTES_MAX)?;
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
        self.futures.push(is_future);
        if !wants_market(asset, wants_samples) {
            self.markets.push(market);
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
        if is_market(&asset.volatility) {
            let prices = found.samples.prices();
            let returns = prices.len().saturating_sub(1);
            if returns < RETURNS_MIN {
                return Err(no_volatility(&asset.symbol, returns, field("volatility")));
            }
            let volatility = realised_volatility(&prices, found.year_ns / found.sample_interval_ns as f64);
            market.volatility = volatility;
            taken.volatility = Some(volatility);
            taken.returns = returns as i32;
            taken.window_ns = returns as i64 * found.sample_interval_ns;
        }
        self.markets.push(market);
        self.as_of.push(taken);
        if wants_samples {
            self.samples.push(found);
        }
        Ok(())
    }
}

impl Resolved {
    /// Says on how many returns a matrix of the market is, where nothing else of the asset was made of returns.
    fn note_matrix(&mut self) {
        let Some(market) = self.samples.first() else { return };
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

/// Whether something of an asset is taken from the market; with a matrix from there, of every one.
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

fn no_volatility(symbol: &str, returns: usize, field: String) -> RiskError {
    let message = format!(
        "{returns} returns of {symbol} were sampled, a volatility needs {RETURNS_MIN}: wait, or give a number"
    );
    RiskError { code: RiskErrorCode::MissingMarketData, field, message }
}
