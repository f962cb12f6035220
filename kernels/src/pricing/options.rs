//! European options in columns, checked as they are added.

use std::ops::RangeInclusive;

use thiserror::Error;
pub use warptape_terms::OptionKind;

/// The market of one asset, constant until expiry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AssetMarket {
    /// Price of the asset now.
    pub spot: f64,
    /// Interest rate, per year, continuously compounded.
    pub rate: f64,
    /// Dividend yield (or foreign rate, or cost of carry taken from the rate), per year, continuously compounded.
    pub dividend_yield: f64,
    /// Volatility, per square root of a year: 0.2 is 20 %.
    pub volatility: f64,
}

/// A parameter outside its range.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{field} is {value}: give a number from {least:e} to {greatest:e}")]
pub struct ParameterError {
    /// Name of the parameter.
    pub field: &'static str,
    /// The given value.
    pub value: f64,
    /// The least allowed value.
    pub least: f64,
    /// The greatest allowed value.
    pub greatest: f64,
}

/// Range of prices of assets, strikes and barriers.
pub const PRICE_RANGE: RangeInclusive<f64> = 1e-12..=1e15;
/// Range of volatilities, per square root of a year.
pub const VOLATILITY_RANGE: RangeInclusive<f64> = 1e-6..=100.0;
/// Range of rates and yields, per year.
pub const RATE_RANGE: RangeInclusive<f64> = -10.0..=10.0;
/// Range of the years until expiry; the least is about a tenth of a second.
pub const EXPIRY_YEARS_RANGE: RangeInclusive<f64> = 3e-9..=60.0;

/// Checks that a number is in its range; the error names the number.
pub(crate) fn check(
    field: &'static str,
    value: f64,
    range: RangeInclusive<f64>,
) -> Result<(), ParameterError> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(ParameterError { field, value, least: *range.start(), greatest: *range.end() })
}

impl AssetMarket {
    pub(crate) fn check(&self) -> Result<(), ParameterError> {
        check("spot", self.spot, PRICE_RANGE)?;
        check("rate", self.rate, RATE_RANGE)?;
        check("dividend_yield", self.dividend_yield, RATE_RANGE)?;
        check("volatility", self.volatility, VOLATILITY_RANGE)
    }
}

/// Number of columns of an option.
pub(crate) const OPTION_COLUMNS: usize = 7;

/// European options, in columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Sign of the kind, spot, strike, rate, dividend yield, volatility, years until expiry.
    pub(crate) columns: [Vec<f64>; OPTION_COLUMNS],
}

impl Options {
    /// Adds an option.
    pub fn push(
        &mut self,
        kind: OptionKind,
        market: &AssetMarket,
        strike: f64,
        expiry_years: f64,
    ) -> Result<(), ParameterError> {
        market.check()?;
        check("strike", strike, PRICE_RANGE)?;
        check("expiry_years", expiry_years, EXPIRY_YEARS_RANGE)?;
        let AssetMarket { spot, rate, dividend_yield, volatility } = *market;
        let numbers = [kind.sign(), spot, strike, rate, dividend_yield, volatility, expiry_years];
        for (column, number) in self.columns.iter_mut().zip(numbers) {
            column.push(number);
        }
        Ok(())
    }

    /// Number of options.
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// True if there are no options.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all options.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let market = AssetMarket { spot: 100.0, rate: 0.01, dividend_yield: 0.0, volatility: 0.2 };
        let mut options = Options::default();
        let mut pushed = |market: AssetMarket, strike, expiry| {
            options.push(OptionKind::Call, &market, strike, expiry).err().map(|error| error.field)
        };
        assert_eq!(pushed(market, 100.0, 1.0), None);
        assert_eq!(pushed(AssetMarket { spot: 0.0, ..market }, 100.0, 1.0), Some("spot"));
        assert_eq!(pushed(AssetMarket { rate: f64::NAN, ..market }, 100.0, 1.0), Some("rate"));
        assert_eq!(
            pushed(AssetMarket { dividend_yield: 11.0, ..market }, 100.0, 1.0),
            Some("dividend_yield")
        );
        assert_eq!(pushed(AssetMarket { volatility: -0.2, ..market }, 100.0, 1.0), Some("volatility"));
        assert_eq!(pushed(market, f64::INFINITY, 1.0), Some("strike"));
        assert_eq!(pushed(market, 100.0, 0.0), Some("expiry_years"));
        assert_eq!(options.len(), 1);
        let error = check("strike", 0.0, PRICE_RANGE).unwrap_err();
        assert_eq!(error.to_string(), "strike is 0: give a number from 1e-12 to 1e15");
    }
}
