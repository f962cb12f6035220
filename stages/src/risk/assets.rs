//! Assets of a problem, with what is taken from the market.

use warptape_kernels::math::ln;
use warptape_kernels::portfolio::realised_volatilities;
use warptape_kernels::pricing::AssetMarket;
use warptape_schemas::risk::{Asset, MarketAsOf, Matrix, Quantity, RiskError, RiskErrorCode};

use super::{MarketOf, check_count, check_length};
use crate::SymbolMarket;

/// Assets of a request at most.
pub(super) const ASSETS_MAX: usize = 4_096;
/// Bytes of a symbol at most.
const SYMBOL_BYTES_MAX: usize = 64;
/// Returns that a volatility or a matrix needs at least.
pub(super) const RETURNS_MIN: usize = 2;
/// Years are of 365 days, without holidays.
pub(super) const YEAR_NS: f64 = 365.0 * 86_400.0 * 1e9;

/// What is known of the assets of a problem.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    pub(super) markets: Vec<AssetMarket>,
    /// What the market has of each asset, where a matrix is taken from it; nothing otherwise.
    pub(super) samples: Vec<SymbolMarket>,
    /// What was taken from the market.
    pub(super) as_of: Vec<MarketAsOf>,
}

impl Resolved {
    /// Gives every asset its numbers.
    pub(super) fn new(assets: &[Asset], market_of: MarketOf<'_>) -> Result<Self, RiskError> {
        Self::with_matrix(assets, &Matrix::Given(Vec::new()), market_of)
    }

    /// The same of a problem with a matrix of the assets' returns.
    pub(super) fn with_matrix(
        assets: &[Asset],
        matrix: &Matrix,
        market_of: MarketOf<'_>,
    ) -> Result<Self, RiskError> {
        check_count("problem.assets", assets.len(), 0..=ASSETS_MAX)?;
        let mut resolved = Self::default();
        for (number, asset) in assets.iter().enumerate() {
            resolved.add(number, asset, matches!(matrix, Matrix::Market(_)), market_of)?;
        }
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
        };
        if is_market(&asset.spot) {
            let spot = found.spot.ok_or_else(|| no_price(&asset.symbol, field("spot")))?;
            market.spot = spot;
            taken.spot = Some(spot);
        }
        if is_market(&asset.volatility) {
            let prices = found.samples.prices();
            let volatility = realised_volatility(&prices, found.sample_interval_ns)
                .ok_or_else(|| no_volatility(&asset.symbol, prices.len(), field("volatility")))?;
            market.volatility = volatility;
            taken.volatility = Some(volatility);
        }
        self.markets.push(market);
        self.as_of.push(taken);
        if wants_samples {
            self.samples.push(found);
        }
        Ok(())
    }
}

/// Of the window, by the year.
fn realised_volatility(prices: &[f64], sample_interval_ns: i64) -> Option<f64> {
    let returns: Vec<f64> = prices.windows(2).map(|pair| ln(pair[1] / pair[0])).collect();
    if returns.len() < RETURNS_MIN {
        return None;
    }
    let of_assets = realised_volatilities(1, &returns, YEAR_NS / sample_interval_ns as f64);
    Some(of_assets.expect("prices are above 0, and samples at least a millisecond apart")[0])
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

fn no_price(symbol: &str, field: String) -> RiskError {
    let message =
        format!("{symbol} had neither a trade nor a quote with two sides yet: wait, or give a number");
    RiskError { code: RiskErrorCode::MissingMarketData, field, message }
}

fn no_volatility(symbol: &str, samples: usize, field: String) -> RiskError {
    let message = format!(
        "{samples} prices of {symbol} were sampled, a volatility needs {}: wait, or give a number",
        RETURNS_MIN + 1
    );
    RiskError { code: RiskErrorCode::MissingMarketData, field, message }
}
