//! European options in closed form, and the volatilities that prices imply. A unit is an option.

use std::ops::Range;

use warptape_events::risk::{
    Asset, ImpliedVolatilities, ImpliedVolatility, ImpliedVolatilityResult, OptionResult, OptionValue,
    OptionValues, RiskError, RiskOutcome, VanillaOption,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{AssetMarket, Greeks, Options, ParameterError, implied_volatility};

use super::assets::Resolved;
use super::rounds::{DeviceRisk, Kind, Next, Partial, Plan, Round, places};
use super::rules::Rules;
use super::{bad, check_count, cost};

/// Options of a request at most: their values have to fit into a record.
pub(super) const OPTIONS_MAX: usize = 10_000;
/// Bytes that an option takes, with the values that are found of it.
const OPTION_BYTES: usize = 16 * size_of::<f64>();

/// Options of a request that have numbers, and why others have none.
#[derive(Debug)]
pub(super) struct ReadOptions<O> {
    pub(super) options: O,
    /// Why the others have none, by their place in the request, ascending.
    bad: Vec<(usize, String)>,
}

impl Kind for OptionValues {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn plan(&self, assets: &Resolved, _: i64, rules: Rules) -> Result<Plan, RiskError> {
        check_count("problem.options", self.options.len(), 1..=OPTIONS_MAX)?;
        let rows = vanilla(&self.options, &assets.markets)?;
        let count = rows.options.len();
        let (bytes, cost_ns) = (rows.bytes(count), cost::options(count));
        Ok(Plan { first: Box::new(OptionRound { rows, rules }), bytes, cost_ns })
    }
}

#[derive(Debug)]
struct OptionRound {
    rows: ReadOptions<Options>,
    rules: Rules,
}

impl Round for OptionRound {
    fn units(&self) -> i64 {
        self.rows.options.len() as i64
    }

    fn rate_key(&self) -> String {
        "options".to_owned()
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let mut greeks = Box::<Greeks>::default();
        match self.rules {
            Rules::First => greeks.add_as_before(isa, &self.rows.options, places(units)),
            Rules::SobolInTimeOrder | Rules::CurveInAllYears | Rules::Now => {
                greeks.add(isa, &self.rows.options, places(units))
            }
        }
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

/// Price and Greeks by option.
fn values_of(partials: &[&Partial]) -> Vec<OptionValue> {
    let mut values = Vec::new();
    for partial in partials {
        let Partial::Greeks(greeks) = partial else { continue };
        values.extend((0..greeks.price().len()).map(|place| OptionValue {
            price: greeks.price()[place],
            delta: greeks.delta()[place],
            gamma: greeks.gamma()[place],
            vega: greeks.vega()[place],
            theta: greeks.theta()[place],
            rho: greeks.rho()[place],
            vanna: greeks.vanna()[place],
            volga: greeks.volga()[place],
            error: String::new(),
        }));
    }
    values
}

impl Kind for ImpliedVolatilities {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn wants_volatilities(&self) -> bool {
        false
    }

    fn plan(&self, assets: &Resolved, _: i64, _: Rules) -> Result<Plan, RiskError> {
        let count = self.options.len();
        check_count("problem.options", count, 1..=OPTIONS_MAX)?;
        check_count("problem.prices", self.prices.len(), count..=count)?;
        let rows = vanilla(&self.options, &assets.markets)?;
        let prices: Vec<f64> =
            (0..count).filter(|&place| rows.is_good(place)).map(|place| self.prices[place]).collect();
        let (bytes, cost_ns) = (rows.bytes(prices.len()), cost::implied(prices.len()));
        Ok(Plan { first: Box::new(ImpliedRound { rows, prices }), bytes, cost_ns })
    }
}

#[derive(Debug)]
struct ImpliedRound {
    rows: ReadOptions<Options>,
    /// Prices of the options that have numbers.
    prices: Vec<f64>,
}

impl Round for ImpliedRound {
    fn units(&self) -> i64 {
        self.rows.options.len() as i64
    }

    fn rate_key(&self) -> String {
        "implied-volatilities".to_owned()
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
        let without = |error| ImpliedVolatility { volatility: None, error };
        let volatilities = self.rows.with_bad(volatilities, without);
        Next::Outcome(RiskOutcome::ImpliedVolatilities(ImpliedVolatilityResult { volatilities }))
    }
}

fn without_value(error: String) -> OptionValue {
    let none = f64::NAN;
    OptionValue {
        price: none,
        delta: none,
        gamma: none,
        vega: none,
        theta: none,
        rho: none,
        vanna: none,
        volga: none,
        error,
    }
}

impl<O: Default> ReadOptions<O> {
    /// Pushes the options of a problem, each with the name of its fields in the request. An option with a parameter that nothing can
    /// be priced with is one bad row; if there is no other, that is the error.
    pub(super) fn new<G>(
        given: &[G],
        mut push: impl FnMut(&mut O, &G, &dyn Fn(&str) -> String) -> Result<(), RiskError>,
    ) -> Result<Self, RiskError> {
        let mut rows = Self { options: O::default(), bad: Vec::new() };
        let mut first = None;
        for (number, option) in given.iter().enumerate() {
            let field = |name: &str| format!("problem.options[{number}].{name}");
            if let Err(error) = push(&mut rows.options, option, &field) {
                rows.bad.push((number, format!("{}: {}", error.field, error.message)));
                first.get_or_insert(error);
            }
        }
        match first {
            Some(error) if rows.bad.len() == given.len() => Err(error),
            _ => Ok(rows),
        }
    }

    /// Bytes of so many options, and of why others have no numbers.
    pub(super) fn bytes(&self, options: usize) -> usize {
        let texts = self.bad.iter().map(|(_, error)| error.len());
        (options + self.bad.len()) * OPTION_BYTES + texts.sum::<usize>()
    }

    /// Whether the option at a place of the request has numbers.
    fn is_good(&self, place: usize) -> bool {
        self.bad.binary_search_by_key(&place, |(bad, _)| *bad).is_err()
    }

    /// The answer: price and Greeks of the good ones, and why the others have none.
    pub(super) fn outcome(&self, partials: &[&Partial]) -> RiskOutcome {
        RiskOutcome::Options(OptionResult { values: self.with_bad(values_of(partials), without_value) })
    }

    /// What was found of the good ones, with what stands for the bad ones between them, in the order of the request.
    fn with_bad<T>(&self, found: Vec<T>, without: impl Fn(String) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(found.len() + self.bad.len());
        let mut found = found.into_iter();
        for (place, error) in &self.bad {
            all.extend(found.by_ref().take(place - all.len()));
            all.push(without(error.clone()));
        }
        all.extend(found);
        all
    }
}

/// European options of a problem.
fn vanilla(given: &[VanillaOption], assets: &[AssetMarket]) -> Result<ReadOptions<Options>, RiskError> {
    ReadOptions::new(given, |options: &mut Options, option, field| {
        let asset = asset_of(assets, option.asset, || field("asset"))?;
        let pushed = options.push(option.kind, asset, option.strike, option.expiry_years);
        pushed.map_err(|error| of_option(error, field, option.asset))
    })
}

/// An asset by its index.
pub(super) fn asset_of(
    assets: &[AssetMarket],
    index: i32,
    field: impl Fn() -> String,
) -> Result<&AssetMarket, RiskError> {
    let found = usize::try_from(index).ok().and_then(|index| assets.get(index));
    found.ok_or_else(|| bad(field(), format!("{index}; there are {} assets, from 0 on", assets.len())))
}

/// Blames the option, or its asset.
pub(super) fn of_option(error: ParameterError, field: &dyn Fn(&str) -> String, asset: i32) -> RiskError {
    let field = match error.field {
        "spot" | "rate" | "dividend_yield" | "volatility" => {
            format!("problem.assets[{asset}].{}", error.field)
        }
        of_option => field(of_option),
    };
    bad(field, error.to_string())
}
