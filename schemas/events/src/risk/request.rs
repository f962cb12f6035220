//! Questions about risk: `schemas/avro/risk_request.avsc`, and as JSON. This file has options in closed form, and the
//! files beside it the other problems.

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    DigitalPayout, Instrument, OptimisationProblem, OptionKind, PortfolioProblem, RiskMeasure,
    SimulationProblem, SweepProblem, TaskClass,
};
use crate::known::{self, KnownSchema};
use crate::wire::{Wire, wire_enum};

/// A question about risk. It is answered by exactly one RiskResult in the partition of the same number, an
/// error if need be. Its key on the topic is the symbol where the market matters, so that it comes to the
/// partition of the symbol's ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct RiskRequest {
    /// Chosen by whoever asks, 1 to 128 bytes: a second request with the same id gets an error of code
    /// DUPLICATE, and no other answer.
    pub request_id: String,
    /// Who asks, up to 64 bytes: tenants share the lanes of a class by their weights. May be empty.
    #[serde(default)]
    pub tenant: String,
    /// How urgent it is.
    #[serde(default)]
    pub class: TaskClass,
    /// When the answer is of no use any more, in nanoseconds since 1970-01-01T00:00:00Z; null: never.
    #[serde(default)]
    pub deadline_ns: Option<i64>,
    /// Seed of random numbers: the same request with the same seed and market has the same answer, to the bit.
    #[serde(default)]
    pub seed: i64,
    /// Whether all lanes begin a round of units at once, each with its share by score: free ones wait for the
    /// others, for a bounded time. False: lanes take units as they are free.
    #[serde(default)]
    #[wire(default = "false")]
    pub gang: bool,
    /// What is asked.
    pub problem: RiskProblem,
    /// Id of a request before this one in the same partition that nobody needs an answer to any more; its result
    /// is then an error of code EXPIRED that names this request. What is asked besides does not matter: no
    /// options, for instance. Null: nothing is cancelled.
    #[serde(default)]
    #[wire(default = "null")]
    pub cancels: Option<String>,
}

impl RiskRequest {
    /// Returns the oldest version of the schema that is still written and has its problem.
    pub fn schema(&self) -> KnownSchema {
        match &self.problem {
            problem if problem.is_of_version_5() => known::RISK_REQUEST,
            RiskProblem::DigitalOptions(_) => known::RISK_REQUEST_4,
            _ => known::RISK_REQUEST_3,
        }
    }
}

/// Price and Greeks of European options by Black, Scholes and Merton.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct OptionValues {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// 1 to 10,000 options.
    pub options: Vec<VanillaOption>,
}

/// An asset that a problem is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Asset {
    /// VENUE:TICKER as on the ticks topic where anything is taken from the market; else any name, for the
    /// reader.
    pub symbol: String,
    /// Price now, from 1e-12 to 1e15.
    pub spot: Quantity,
    /// Per square root of a year, from 1e-6 to 100: 0.2 is 20 %.
    #[serde(default)]
    pub volatility: Quantity,
    /// Interest rate per year, continuously compounded, from -10 to 10.
    #[serde(default)]
    pub rate: f64,
    /// Dividend yield per year, continuously compounded, from -10 to 10; of a currency its interest rate, the foreign one; of a FUTURE 0, or
    /// the rate.
    #[serde(default, alias = "foreign_rate")]
    pub dividend_yield: f64,
    /// What the price is of.
    #[serde(default, skip_serializing_if = "AssetKind::is_spot")]
    #[wire(since = 5, default = "\"SPOT\"")]
    pub kind: AssetKind,
}

/// What a price is of: SPOT, which is paid now, so that its forward grows with the rate less the dividend yield, or FUTURE, which is
/// expected to stay, so that a rate discounts what is paid later and does nothing else (Black 1976).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AssetKind {
    /// Paid now.
    #[serde(alias = "spot")]
    #[default]
    Spot,
    /// The price of a future.
    #[serde(alias = "future")]
    Future,
}

impl AssetKind {
    fn is_spot(&self) -> bool {
        *self == Self::Spot
    }
}

/// Take it from live state as of the decision: of a spot the last mid (last trade where there are no quotes),
/// of a volatility the realised one of the sampled window, of a matrix the exponentially weighted one of that
/// window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct FromMarket {
    /// MARKET.
    pub from: MarketSource,
}

/// Where a number comes from that is not given: MARKET, the live state of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MarketSource {
    /// The live state of the pipeline.
    #[serde(alias = "market")]
    Market,
}

/// A number that is given, or taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(untagged, expecting = "a number, or {\"from\": \"market\"}")]
pub enum Quantity {
    /// The given number.
    Given(f64),
    /// Taken from live state.
    Market(FromMarket),
}

/// A European option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct VanillaOption {
    /// Index of its asset among the problem's.
    pub asset: i32,
    /// Call or put.
    pub kind: OptionKind,
    /// From 1e-12 to 1e15.
    pub strike: f64,
    /// Years until expiry, from 3e-9 to 60.
    pub expiry_years: f64,
}

/// Volatilities at which European options have given prices. The assets' own volatility does not matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct ImpliedVolatilities {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// 1 to 10,000 options.
    pub options: Vec<VanillaOption>,
    /// A price for each option.
    pub prices: Vec<f64>,
}

/// A matrix by rows that is given, or taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(untagged, expecting = "an array of numbers, or {\"from\": \"market\"}")]
pub enum Matrix {
    /// The given matrix.
    Given(Vec<f64>),
    /// Taken from live state.
    Market(FromMarket),
}

/// Price and Greeks of European digital options, which pay all or nothing, by Reiner and Rubinstein.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct DigitalOptions {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// 1 to 10,000 options.
    pub options: Vec<DigitalOption>,
}

/// An option that pays an amount, or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct DigitalOption {
    /// Index of its asset among the problem's.
    pub asset: i32,
    /// A call pays if the price at expiry is above the strike, a put if it is below.
    pub kind: OptionKind,
    /// From 1e-12 to 1e15.
    pub strike: f64,
    /// Years until expiry, from 3e-9 to 60.
    pub expiry_years: f64,
    /// Cash or the asset.
    pub pays: DigitalPayout,
    /// How much of it, from 1e-12 to 1e15.
    #[serde(default = "one")]
    #[wire(default = "1.0")]
    pub amount: f64,
}

fn one() -> f64 {
    1.0
}

/// An option that may be exercised at any time until it expires, valued by its boundary of exercise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct AmericanOption {
    /// Index of its asset among the problem's.
    pub asset: i32,
    /// Call or put.
    pub kind: OptionKind,
    /// From 1e-12 to 1e15.
    pub strike: f64,
    /// Years until expiry, from 3e-9 to 60.
    pub expiry_years: f64,
}

/// Price and Greeks of contracts of several kinds, each by its formula, with the name that whoever asks has for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct Contracts {
    /// Assets, which are referred to by index.
    pub assets: Vec<Asset>,
    /// 1 to 10,000 contracts.
    pub contracts: Vec<NamedContract>,
    /// Whether Greeks of American options are wanted as well, which take some times as long; those of others are always given.
    #[serde(default)]
    pub greeks: bool,
}

/// A contract with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[serde(deny_unknown_fields)]
pub struct NamedContract {
    /// What the answer calls it, up to 64 bytes; may be empty.
    #[serde(default)]
    pub id: String,
    /// The contract: one unit of it is priced.
    pub contract: Instrument,
}

/// Declares problems: the variants in the order of the schema's branches, each with its `type` in JSON.
macro_rules! problems {
    ($($(#[$document:meta])* $name:literal $variant:ident($problem:ty);)+) => {
        /// What is asked.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
        #[serde(tag = "type")]
        pub enum RiskProblem {
            $($(#[$document])* #[serde(rename = $name)] $variant($problem),)+
        }

        impl RiskProblem {
            /// Returns its `type` in JSON.
            pub fn type_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            /// Reads the fields of a problem by its type, so that an error can name the field; `None` for an unknown
            /// type.
            pub fn of_type<'de, D: Deserializer<'de>>(name: &str, fields: D) -> Option<Result<Self, D::Error>> {
                Some(match name {
                    $($name => Deserialize::deserialize(fields).map(Self::$variant),)+
                    _ => return None,
                })
            }
        }
    };
}

problems! {
    /// Price and Greeks of European options by Black, Scholes and Merton.
    "options" Options(OptionValues);
    /// Volatilities at which European options have given prices. The assets' own volatility does not matter.
    "implied-volatilities" ImpliedVolatilities(ImpliedVolatilities);
    /// Price of an option by Monte Carlo: assets follow geometric Brownian motions.
    "simulation" Simulation(SimulationProblem);
    /// Risk of positions.
    "portfolio" Portfolio(PortfolioProblem);
    /// Weights of least variance for what they are expected to earn, within bounds and a budget.
    "optimisation" Optimisation(OptimisationProblem);
    /// What trading rules would have made of recorded bars.
    "sweep" Sweep(SweepProblem);
    /// Price and Greeks of European digital options, which pay all or nothing, by Reiner and Rubinstein.
    "digital-options" DigitalOptions(DigitalOptions);
    /// Price and Greeks of contracts of several kinds, each by its formula, with the name that whoever asks has for it.
    "contracts" Contracts(Contracts);
}

impl RiskProblem {
    /// Returns its assets; a sweep has none.
    pub fn assets(&self) -> &[Asset] {
        match self {
            Self::Options(problem) => &problem.assets,
            Self::ImpliedVolatilities(problem) => &problem.assets,
            Self::Simulation(problem) => &problem.assets,
            Self::Portfolio(problem) => &problem.assets,
            Self::Optimisation(problem) => &problem.assets,
            Self::Sweep(_) => &[],
            Self::DigitalOptions(problem) => &problem.assets,
            Self::Contracts(problem) => &problem.assets,
        }
    }

    /// True if it needs version 5 of the schema.
    fn is_of_version_5(&self) -> bool {
        let is_new = match self {
            Self::Contracts(_) => true,
            Self::Portfolio(portfolio) => {
                let is_new = |instrument: &Instrument| {
                    matches!(instrument, Instrument::American(_) | Instrument::Digital(_))
                };
                let moves_yields = match &portfolio.measure {
                    RiskMeasure::Stress(stress) => stress.scenarios.iter().any(|scenario| {
                        scenario.yield_shift != 0.0
                            || scenario.yield_twist != 0.0
                            || scenario.shocks.iter().any(|shock| shock.dividend_yield != 0.0)
                    }),
                    _ => false,
                };
                moves_yields || portfolio.positions.iter().any(|position| is_new(&position.instrument))
            }
            _ => false,
        };
        is_new || self.assets().iter().any(|asset| asset.kind != AssetKind::Spot)
    }
}

wire_enum!("Right to buy (CALL) or to sell (PUT).", OptionKind { 0 => Call, 1 => Put });
wire_enum!("What is paid: CASH, or units of the ASSET.", DigitalPayout { 0 => Cash, 1 => Asset });
