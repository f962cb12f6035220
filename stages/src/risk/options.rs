//! European options in closed form, and the volatilities that prices imply. A unit is an option.

use std::ops::Range;

use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{
    AssetMarket, DevicePricing, Greeks, OptionKind, Options, ParameterError, implied_volatility,
};
use warptape_schemas::risk::{
    self, Asset, ImpliedVolatilities, ImpliedVolatility, ImpliedVolatilityResult, OptionResult, OptionValue,
    OptionValues, Quantity, RiskError, RiskOutcome, VanillaOption,
};

use super::assets::Resolved;
use super::{Partial, bad, check_count};

/// Options of a request at most: their values have to fit into a record.
const OPTIONS_MAX: usize = 10_000;
/// Of an option: what it is, and what is found of it.
const OPTION_BYTES: usize = 16 * size_of::<f64>();

/// Stands for the volatility of options that is asked for.
const ANY_VOLATILITY: f64 = 1.0;

#[derive(Debug)]
pub(super) struct OptionTask {
    options: Options,
}

impl OptionTask {
    pub(super) fn new(problem: &OptionValues, assets: &Resolved) -> Result<Self, RiskError> {
        check_count("problem.options", problem.options.len(), 1..=OPTIONS_MAX)?;
        Ok(Self { options: columns(&problem.options, &assets.markets)? })
    }

    pub(super) fn units(&self) -> i64 {
        self.options.len() as i64
    }

    pub(super) fn bytes(&self) -> usize {
        self.options.len() * OPTION_BYTES
    }

    pub(super) fn run(&self, isa: Isa, range: Range<usize>) -> Partial {
        let mut greeks = Box::<Greeks>::default();
        greeks.add(isa, &self.options, range);
        Partial::Greeks(greeks)
    }

    pub(super) fn run_on_device(
        &self,
        pricing: &mut DevicePricing,
        device: &mut dyn Device,
        range: Range<usize>,
    ) -> Result<Partial, DeviceError> {
        let mut greeks = Box::<Greeks>::default();
        pricing.greeks(device, &self.options, range, &mut greeks)?;
        Ok(Partial::Greeks(greeks))
    }
}

#[derive(Debug)]
pub(super) struct ImpliedTask {
    options: Options,
    prices: Vec<f64>,
}

impl ImpliedTask {
    pub(super) fn new(problem: &ImpliedVolatilities, assets: &Resolved) -> Result<Self, RiskError> {
        let count = problem.options.len();
        check_count("problem.options", count, 1..=OPTIONS_MAX)?;
        check_count("problem.prices", problem.prices.len(), count..=count)?;
        Ok(Self { options: columns(&problem.options, &assets.markets)?, prices: problem.prices.clone() })
    }

    pub(super) fn units(&self) -> i64 {
        self.options.len() as i64
    }

    pub(super) fn bytes(&self) -> usize {
        self.options.len() * OPTION_BYTES
    }

    pub(super) fn run(&self, isa: Isa, range: Range<usize>) -> Partial {
        let mut volatilities = Vec::with_capacity(range.len());
        let prices = &self.prices[range.clone()];
        implied_volatility(isa, &self.options, range, prices, &mut volatilities);
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
        pricing.implied_volatility(device, &self.options, range, prices, &mut volatilities)?;
        Ok(Partial::Volatilities(volatilities))
    }
}

/// The assets of a problem that their volatility does not matter to.
pub(super) fn without_volatility(assets: &[Asset]) -> Vec<Asset> {
    let given = |asset: &Asset| Asset { volatility: Quantity::Given(ANY_VOLATILITY), ..asset.clone() };
    assets.iter().map(given).collect()
}

fn columns(given: &[VanillaOption], assets: &[AssetMarket]) -> Result<Options, RiskError> {
    let mut options = Options::default();
    for (number, option) in given.iter().enumerate() {
        let field = |name: &str| format!("problem.options[{number}].{name}");
        let asset = asset_of(assets, option.asset, || field("asset"))?;
        let pushed = options.push(kind_of(option.kind), asset, option.strike, option.expiry_years);
        pushed.map_err(|error| of_option(error, field, option.asset))?;
    }
    Ok(options)
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

pub(super) fn outcome(partials: &[&Partial]) -> RiskOutcome {
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
        }));
    }
    RiskOutcome::Options(OptionResult { values })
}

pub(super) fn implied_outcome(partials: &[&Partial]) -> RiskOutcome {
    let mut volatilities = Vec::new();
    for partial in partials {
        let Partial::Volatilities(found) = partial else { continue };
        volatilities.extend(found.iter().map(|found| ImpliedVolatility {
            volatility: found.ok(),
            error: found.err().map_or(String::new(), |error| error.to_string()),
        }));
    }
    RiskOutcome::ImpliedVolatilities(ImpliedVolatilityResult { volatilities })
}
