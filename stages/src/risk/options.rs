//! European options in closed form, and the volatilities that prices imply. A unit is an option.

use std::ops::Range;

use warptape_events::risk::{
    self, Asset, ImpliedVolatilities, ImpliedVolatility, ImpliedVolatilityResult, OptionResult, OptionValue,
    OptionValues, Quantity, RiskError, RiskOutcome, VanillaOption,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{
    AssetMarket, DevicePricing, Greeks, OptionKind, Options, ParameterError, implied_volatility,
};

use super::assets::Resolved;
use super::rules::Rules;
use super::{Partial, bad, check_count};

/// Options of a request at most: their values have to fit into a record.
const OPTIONS_MAX: usize = 10_000;
/// Of an option: what it is, and what is found of it.
const OPTION_BYTES: usize = 16 * size_of::<f64>();

/// Stands for the volatility of options that is asked for.
const ANY_VOLATILITY: f64 = 1.0;

/// Options of a request that have numbers, and why others have none.
#[derive(Debug)]
struct Rows {
    options: Options,
    /// By place in the request, rising.
    bad: Vec<(usize, String)>,
}

#[derive(Debug)]
pub(super) struct OptionTask {
    rows: Rows,
    rules: Rules,
}

impl OptionTask {
    pub(super) fn new(problem: &OptionValues, assets: &Resolved, rules: Rules) -> Result<Self, RiskError> {
        check_count("problem.options", problem.options.len(), 1..=OPTIONS_MAX)?;
        Ok(Self { rows: Rows::new(&problem.options, &assets.markets)?, rules })
    }

    pub(super) fn units(&self) -> i64 {
        self.rows.options.len() as i64
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    pub(super) fn run(&self, isa: Isa, range: Range<usize>) -> Partial {
        let mut greeks = Box::<Greeks>::default();
        match self.rules {
            Rules::First => greeks.add_as_before(isa, &self.rows.options, range),
            Rules::SobolInTimeOrder | Rules::Now => greeks.add(isa, &self.rows.options, range),
        }
        Partial::Greeks(greeks)
    }

    pub(super) fn run_on_device(
        &self,
        pricing: &mut DevicePricing,
        device: &mut dyn Device,
        range: Range<usize>,
    ) -> Result<Partial, DeviceError> {
        let mut greeks = Box::<Greeks>::default();
        pricing.greeks(device, &self.rows.options, range, &mut greeks)?;
        Ok(Partial::Greeks(greeks))
    }

    pub(super) fn outcome(&self, partials: &[&Partial]) -> RiskOutcome {
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
        RiskOutcome::Options(OptionResult { values: self.rows.with_bad(values, without_value) })
    }
}

#[derive(Debug)]
pub(super) struct ImpliedTask {
    rows: Rows,
    /// Of the options that have numbers.
    prices: Vec<f64>,
}

impl ImpliedTask {
    pub(super) fn new(problem: &ImpliedVolatilities, assets: &Resolved) -> Result<Self, RiskError> {
        let count = problem.options.len();
        check_count("problem.options", count, 1..=OPTIONS_MAX)?;
        check_count("problem.prices", problem.prices.len(), count..=count)?;
        let rows = Rows::new(&problem.options, &assets.markets)?;
        let is_good = |place: &usize| rows.bad.binary_search_by_key(place, |(bad, _)| *bad).is_err();
        let prices = (0..count).filter(is_good).map(|place| problem.prices[place]).collect();
        Ok(Self { rows, prices })
    }

    pub(super) fn units(&self) -> i64 {
        self.rows.options.len() as i64
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    pub(super) fn run(&self, isa: Isa, range: Range<usize>) -> Partial {
        let mut volatilities = Vec::with_capacity(range.len());
        let prices = &self.prices[range.clone()];
        implied_volatility(isa, &self.rows.options, range, prices, &mut volatilities);
        Partial::Volatilities(volatilities)
    }

    pub(super) fn run_on_device(
        &self,
        pricing: &mut DevicePricing,
        device: &mut dyn Device,
        range: Range<usize>,
    ) -> Result<Partial, DeviceError> {
        let mut volatilities = Vec::with_capacity(range.len());
        let prices = &self.prices[range.clone()];
        pricing.implied_volatility(device, &self.rows.options, range, prices, &mut volatilities)?;
        Ok(Partial::Volatilities(volatilities))
    }

    pub(super) fn outcome(&self, partials: &[&Partial]) -> RiskOutcome {
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
        RiskOutcome::ImpliedVolatilities(ImpliedVolatilityResult { volatilities })
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

/// The assets of a problem that their volatility does not matter to.
pub(super) fn without_volatility(assets: &[Asset]) -> Vec<Asset> {
    let given = |asset: &Asset| Asset { volatility: Quantity::Given(ANY_VOLATILITY), ..asset.clone() };
    assets.iter().map(given).collect()
}

impl Rows {
    /// An option with a parameter that nothing can be priced with is one bad row; if there is no other, that is the error.
    fn new(given: &[VanillaOption], assets: &[AssetMarket]) -> Result<Self, RiskError> {
        let mut rows = Self { options: Options::default(), bad: Vec::new() };
        let mut first = None;
        for (number, option) in given.iter().enumerate() {
            if let Err(error) = rows.push(number, option, assets) {
                rows.bad.push((number, format!("{}: {}", error.field, error.message)));
                first.get_or_insert(error);
            }
        }
        match first {
            Some(error) if rows.bad.len() == given.len() => Err(error),
            _ => Ok(rows),
        }
    }

    fn push(
        &mut self,
        number: usize,
        option: &VanillaOption,
        assets: &[AssetMarket],
    ) -> Result<(), RiskError> {
        let field = |name: &str| format!("problem.options[{number}].{name}");
        let asset = asset_of(assets, option.asset, || field("asset"))?;
        let pushed = self.options.push(kind_of(option.kind), asset, option.strike, option.expiry_years);
        pushed.map_err(|error| of_option(error, field, option.asset))
    }

    fn bytes(&self) -> usize {
        let texts = self.bad.iter().map(|(_, error)| error.len());
        (self.options.len() + self.bad.len()) * OPTION_BYTES + texts.sum::<usize>()
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
fn of_option(error: ParameterError, field: impl Fn(&str) -> String, asset: i32) -> RiskError {
    let field = match error.field {
        "spot" | "rate" | "dividend_yield" | "volatility" => {
            format!("problem.assets[{asset}].{}", error.field)
        }
        of_option => field(of_option),
    };
    bad(field, error.to_string())
}

pub(super) fn kind_of(kind: risk::OptionKind) -> OptionKind {
    match kind {
        risk::OptionKind::Call => OptionKind::Call,
        risk::OptionKind::Put => OptionKind::Put,
    }
}
