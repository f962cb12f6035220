//! European options in closed form, and implied volatilities. A unit is an option.

use std::ops::Range;

use warptape_events::risk::{
    Asset, ImpliedVolatilities, ImpliedVolatility, ImpliedVolatilityResult, OptionResult, OptionValue,
    OptionValues, RiskError, RiskOutcome, VanillaOption,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{AssetMarket, Greeks, Options, ParameterError, implied_volatility};

use super::assets::Resolved;
use super::bad_rows::BadRows;
use super::rounds::{DeviceRisk, Next, Partial, Plan, ProblemKind, Round, places};
use super::{bad, check_count, cost};

/// Most options of a request: their values have to fit into a record.
pub(super) const OPTIONS_MAX: usize = 10_000;
/// Bytes of an option and its values.
const OPTION_BYTES: usize = 16 * size_of::<f64>();
/// Days of a year, and points of volatility.
pub(super) const YEAR_DAYS: f64 = 365.0;
pub(super) const POINTS: f64 = 100.0;

/// The good options of a request, and the errors of the others.
#[derive(Debug)]
pub(super) struct ReadOptions<O> {
    pub(super) options: O,
    /// Terms of the good options, for their derived figures.
    terms: Vec<Terms>,
    bad: BadRows,
}

/// Inputs of an option's derived figures, besides its computed ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) spot: f64,
    pub(super) years: f64,
    pub(super) is_future: bool,
}

impl Terms {
    /// Adds figures that follow from others: per day, per point, and by the yield. The price is `e^{−rT}` times a
    /// function of the forward. With the forward fixed, as the price of a future is, the rate only discounts. A yield
    /// moves only the forward.
    pub(super) fn told(&self, mut value: OptionValue) -> OptionValue {
        let Self { spot, years, is_future } = *self;
        value.theta_per_day = value.theta / YEAR_DAYS;
        value.vega_per_point = value.vega / POINTS;
        if is_future {
            value.rho = -(years * value.price);
        } else {
            value.rho_foreign = -(years * spot * value.delta);
        }
        value
    }
}

impl ProblemKind for OptionValues {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn has_rows(&self) -> bool {
        true
    }

    fn plan(&self, assets: &Resolved, _: i64) -> Result<Plan, RiskError> {
        check_count("problem.options", self.options.len(), 1..=OPTIONS_MAX)?;
        let rows = vanilla(&self.options, assets)?;
        let count = rows.options.len();
        let (bytes, cost_ns) = (rows.bytes(count), cost::options(count));
        Ok(Plan { first: Box::new(OptionRound { rows }), bytes, cost_ns })
    }
}

#[derive(Debug)]
struct OptionRound {
    rows: ReadOptions<Options>,
}

impl Round for OptionRound {
    fn units(&self) -> i64 {
        self.rows.options.len() as i64
    }

    fn rate_key(&self) -> String {
        "options".to_owned()
    }

    fn unit_width(&self) -> usize {
        1
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let mut greeks = Box::<Greeks>::default();
        greeks.add(isa, &self.rows.options, places(units));
        Partial::Greeks(greeks)
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let mut greeks = Box::<Greeks>::default();
        memory.pricing.greeks(device, &self.rows.options, places(units), &mut greeks)?;
        Ok(Partial::Greeks(greeks))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        Next::Outcome(self.rows.outcome(partials))
    }
}

/// Price and Greeks, by option.
fn values_of(partials: &[&Partial]) -> Vec<OptionValue> {
    let mut values = Vec::new();
    for partial in partials {
        let Partial::Greeks(greeks) = partial else { continue };
        values.extend((0..greeks.price().len()).map(|place| value_of(greeks, place)));
    }
    values
}

/// The value of one option, without the figures that follow from its terms.
pub(super) fn value_of(greeks: &Greeks, place: usize) -> OptionValue {
    OptionValue {
        price: greeks.price()[place],
        delta: greeks.delta()[place],
        gamma: greeks.gamma()[place],
        vega: greeks.vega()[place],
        theta: greeks.theta()[place],
        rho: greeks.rho()[place],
        vanna: greeks.vanna()[place],
        volga: greeks.volga()[place],
        ..value(0.0)
    }
}

/// A value whose numbers are all this one.
pub(super) fn value(number: f64) -> OptionValue {
    OptionValue {
        price: number,
        delta: number,
        gamma: number,
        vega: number,
        theta: number,
        rho: number,
        vanna: number,
        volga: number,
        error: String::new(),
        id: String::new(),
        theta_per_day: number,
        vega_per_point: number,
        rho_foreign: number,
    }
}

impl ProblemKind for ImpliedVolatilities {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn has_rows(&self) -> bool {
        true
    }

    fn wants_volatilities(&self) -> bool {
        false
    }

    fn plan(&self, assets: &Resolved, _: i64) -> Result<Plan, RiskError> {
        let count = self.options.len();
        check_count("problem.options", count, 1..=OPTIONS_MAX)?;
        check_count("problem.prices", self.prices.len(), count..=count)?;
        let rows = vanilla(&self.options, assets)?;
        let prices: Vec<f64> =
            (0..count).filter(|&place| rows.bad.is_good(place)).map(|place| self.prices[place]).collect();
        let (bytes, cost_ns) = (rows.bytes(prices.len()), cost::implied(prices.len()));
        Ok(Plan { first: Box::new(ImpliedRound { rows, prices }), bytes, cost_ns })
    }
}

#[derive(Debug)]
struct ImpliedRound {
    rows: ReadOptions<Options>,
    /// Prices of the good options.
    prices: Vec<f64>,
}

impl Round for ImpliedRound {
    fn units(&self) -> i64 {
        self.rows.options.len() as i64
    }

    fn rate_key(&self) -> String {
        "implied-volatilities".to_owned()
    }

    fn unit_width(&self) -> usize {
        1
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let range = places(units);
        let mut volatilities = Vec::with_capacity(range.len());
        let prices = &self.prices[range.clone()];
        implied_volatility(isa, &self.rows.options, range, prices, &mut volatilities);
        Partial::Volatilities(volatilities)
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let range = places(units);
        let mut volatilities = Vec::with_capacity(range.len());
        let prices = &self.prices[range.clone()];
        memory.pricing.implied_volatility(device, &self.rows.options, range, prices, &mut volatilities)?;
        Ok(Partial::Volatilities(volatilities))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let mut volatilities = Vec::new();
        for partial in partials {
            let Partial::Volatilities(found) = partial else { continue };
            volatilities.extend(found.iter().map(|found| ImpliedVolatility {
                volatility: found.ok(),
                error: found.err().map_or(String::new(), |error| error.to_string()),
            }));
        }
        let without = |_, error| ImpliedVolatility { volatility: None, error };
        let volatilities = self.rows.bad.between(volatilities, without);
        Next::Outcome(RiskOutcome::ImpliedVolatilities(ImpliedVolatilityResult { volatilities }))
    }
}

/// The value of a bad option: its error, and NaN for the numbers.
pub(super) fn without_value(error: String) -> OptionValue {
    OptionValue { error, ..value(f64::NAN) }
}

impl<O: Default> ReadOptions<O> {
    /// Reads the options of a problem by `push`, which gets the names of their fields in the request. An option with a
    /// parameter that cannot be priced is one bad row; if there is no other, its error is returned.
    pub(super) fn new<G>(
        given: &[G],
        mut push: impl FnMut(&mut O, &G, &dyn Fn(&str) -> String) -> Result<Terms, RiskError>,
    ) -> Result<Self, RiskError> {
        let mut options = O::default();
        let read = given.iter().enumerate().map(|(number, option)| {
            push(&mut options, option, &|name: &str| format!("problem.options[{number}].{name}"))
        });
        let (terms, bad) = BadRows::divide(read)?;
        Ok(Self { options, terms, bad })
    }

    /// Bytes of `options` options, and of the errors of bad ones.
    pub(super) fn bytes(&self, options: usize) -> usize {
        (options + self.bad.len()) * OPTION_BYTES + self.bad.bytes()
    }

    /// The answer: price and Greeks of the good options, and the errors of the others.
    pub(super) fn outcome(&self, partials: &[&Partial]) -> RiskOutcome {
        let values = values_of(partials).into_iter().zip(&self.terms);
        let values = values.map(|(value, terms)| terms.told(value)).collect();
        let values = self.bad.between(values, |_, error| without_value(error));
        RiskOutcome::Options(OptionResult { values })
    }
}

/// European options of a problem.
fn vanilla(given: &[VanillaOption], assets: &Resolved) -> Result<ReadOptions<Options>, RiskError> {
    ReadOptions::new(given, |options: &mut Options, option, field| {
        let (asset, terms) = asset_of(assets, option.asset, option.expiry_years, || field("asset"))?;
        let pushed = options.push(option.kind, asset, option.strike, option.expiry_years);
        pushed.map_err(|error| of_option(error, field, option.asset))?;
        Ok(terms)
    })
}

/// An asset by its index, with the terms of an option on it.
pub(super) fn asset_of(
    assets: &Resolved,
    index: i32,
    years: f64,
    field: impl Fn() -> String,
) -> Result<(&AssetMarket, Terms), RiskError> {
    let count = assets.markets.len();
    let place = usize::try_from(index).ok().filter(|&place| place < count);
    let place = place.ok_or_else(|| bad(field(), format!("{index}; there are {count} assets, from 0 on")))?;
    assets.check_known(place)?;
    let market = &assets.markets[place];
    Ok((market, Terms { spot: market.spot, years, is_future: assets.futures[place] }))
}

/// Attributes an error to a field of the option, or of its asset.
pub(super) fn of_option(error: ParameterError, field: &dyn Fn(&str) -> String, asset: i32) -> RiskError {
    let field = match error.field {
        "spot" | "rate" | "dividend_yield" | "volatility" => {
            format!("problem.assets[{asset}].{}", error.field)
        }
        of_option => field(of_option),
    };
    bad(field, error.to_string())
}
