//! Assets of a problem, with what is taken from the market.

use warptape_kernels::math::ln;
use warptape_kernels::pricing::AssetMarket;
use warptape_schemas::risk::{Asset, MarketAsOf, Quantity, RiskError, RiskErrorCode};

use super::MarketOf;
use crate::SymbolMarket;

/// Returns that a volatility needs at least.
const RETURNS_MIN: usize = 2;
/// Years are of 365 days, without holidays.
const YEAR_NS: f64 = 365.0 * 86_400.0 * 1e9;

/// Gives every asset its numbers, and tells which were taken from the market.
pub(super) fn resolve(
    assets: &[Asset],
    market_of: MarketOf<'_>,
    as_of: &mut Vec<MarketAsOf>,
) -> Result<Vec<AssetMarket>, RiskError> {
    let asset = |(number, asset): (usize, &Asset)| {
        let field = |name: &str| format!("problem.assets[{number}].{name}");
        let is_market = |quantity: &Quantity| matches!(quantity, Quantity::Market(_));
        let mut market = AssetMarket {
            spot: given(&asset.spot),
            rate: asset.rate,
            dividend_yield: asset.dividend_yield,
            volatility: given(&asset.volatility),
        };
        if !is_market(&asset.spot) && !is_market(&asset.volatility) {
            return Ok(market);
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
            let volatility = realised_volatility(&found)
                .ok_or_else(|| no_volatility(&asset.symbol, found.samples.len(), field("volatility")))?;
            market.volatility = volatility;
            taken.volatility = Some(volatility);
        }
        as_of.push(taken);
        Ok(market)
    };
    assets.iter().enumerate().map(asset).collect()
}

/// Root of the mean squared log return of the window, by the year.
fn realised_volatility(market: &SymbolMarket) -> Option<f64> {
    let returns = market.samples.len().checked_sub(1).filter(|returns| *returns >= RETURNS_MIN)?;
    let squares = market.samples.windows(2).map(|pair| {
        let change = ln(pair[1] / pair[0]);
        change * change
    });
    // In the order of the window: the bits are those of the log.
    let mean = squares.fold(0.0, |sum, square| sum + square) / returns as f64;
    let periods = YEAR_NS / market.sample_interval_ns as f64;
    Some((mean * periods).sqrt())
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
