//! Risk requests: `schemas/avro/risk_request.avsc`, and as JSON. This file has options in closed form; the files beside
//! it have the other problems.

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    DigitalPayout, Instrument, OptimisationProblem, OptionKind, PortfolioProblem, RiskMeasure,
    SimulationProblem, SweepProblem, TaskClass,
};
use crate::known::{self, KnownSchema};
use crate::wire::{Wire, wire_enum};

/// A question about risk. Each request has exactly one `RiskResult`, in the partition of the same number; the result is
/// an error if there is no answer. The key of the record is the symbol if numbers come from the market. The request
/// then comes to the partition of the symbol's ticks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RiskRequest {
    /// Id of the request, chosen by its sender, 1 to 128 bytes. A second request with the same id gets only an error of
    /// code `DUPLICATE`.
    pub request_id: String,
    /// Tenant that asks, up to 64 bytes; may be empty. Tenants share the lanes of a class by their weights.
    #[serde(default)]
    pub tenant: String,
    /// Urgency of the request.
    #[serde(default)]
    pub class: TaskClass,
    /// Time after which the answer is of no use, in nanoseconds since 1970-01-01T00:00:00Z; null: never. The result is
    /// then an error of code `EXPIRED`.
    #[serde(default)]
    pub deadline_ns: Option<i64>,
    /// Seed of random numbers. The same request with the same seed and market has the same answer, to the bit.
    #[serde(default)]
    pub seed: i64,
    /// True if all lanes begin a round of work at the same time, each with a share by its weight. Free lanes wait for
    /// the others, for a bounded time. False: work is divided as `risk.split` in the configuration says.
    #[serde(default)]
    #[wire(default = "false")]
    pub gang: bool,
    /// Problem to solve.
    pub problem: RiskProblem,
    /// Id of an earlier request in the same partition that this one cancels; null: none. The result of the cancelled
    /// request is an error of code `EXPIRED` that names this one. The problem of this request is ignored, so an empty
    /// list of options is enough.
    #[serde(default)]
    #[wire(default = "null")]
    pub cancels: Option<String>,
}

impl RiskRequest {
    /// Returns the oldest version of the schema that is still written and has the request's problem.
    pub fn schema(&self) -> KnownSchema {
        match &self.problem {
            problem if problem.is_of_version_5() => known::RISK_REQUEST,
            RiskProblem::DigitalOptions(_) => known::RISK_REQUEST_4,
            _ => known::RISK_REQUEST_3,
        }
    }
}

/// Price and Greeks of European options, in closed form (Black, Scholes and Merton).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OptionValues {
    /// Assets, up to 4,096. Other fields name them by index, from 0.
    pub assets: Vec<Asset>,
    /// Options, 1 to 10,000.
    pub options: Vec<VanillaOption>,
}

/// An asset of a problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Asset {
    /// Symbol of the asset, up to 64 bytes. If a number comes from the market: `VENUE:TICKER` as in the tick topic.
    /// Otherwise any name.
    pub symbol: String,
    /// Price now, from 1e-12 to 1e15.
    pub spot: Quantity,
    /// Volatility per square root of a year, from 1e-6 to 100: 0.2 is 20 %.
    #[serde(default)]
    pub volatility: Quantity,
    /// Interest rate per year, continuously compounded, from -10 to 10: 0.03 is 3 %.
    #[serde(default)]
    pub rate: f64,
    /// Dividend yield per year, continuously compounded, from -10 to 10. For a currency: its interest rate, the foreign
    /// one. For a `FUTURE`: 0, or the same as the rate.
    #[serde(default, alias = "foreign_rate")]
    pub dividend_yield: f64,
    /// Kind of the asset's price.
    #[serde(default, skip_serializing_if = "AssetKind::is_spot")]
    #[wire(since = 5, default = "\"SPOT\"")]
    pub kind: AssetKind,
}

/// Kind of an asset's price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AssetKind {
    /// The price is paid now: the forward grows with the rate less the dividend yield.
    #[serde(alias = "spot")]
    #[default]
    Spot,
    /// The price is that of a future, which is expected to stay. The rate only discounts later payments (Black 1976).
    #[serde(alias = "future")]
    Future,
}

impl AssetKind {
    fn is_spot(&self) -> bool {
        *self == Self::Spot
    }
}

/// Value taken from the live market when the request is prepared. Spot: mid of the last quote with two sides, or the
/// last trade if there is none. Volatility: realised volatility of the sampled window. Matrix: exponentially weighted
/// covariance or correlation of that window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FromMarket {
    /// Source of the value: `MARKET`.
    pub from: MarketSource,
}

/// Source of a value that the request does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MarketSource {
    /// The live state of the pipeline.
    #[serde(alias = "market")]
    Market,
}

/// A number that is given, or taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "a number, or {\"from\": \"market\"}")]
pub enum Quantity {
    /// The given number.
    Given(f64),
    /// Taken from the live market.
    Market(FromMarket),
}

/// A European option.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VanillaOption {
    /// Index of its asset in the problem, from 0.
    pub asset: i32,
    /// Call or put.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
    /// Years until expiry, from 3e-9 to 60; in positions and contracts also 0, which is now.
    pub expiry_years: f64,
}

/// Volatilities at which European options have given prices. The assets' own volatilities are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ImpliedVolatilities {
    /// Assets, up to 4,096. Other fields name them by index, from 0.
    pub assets: Vec<Asset>,
    /// Options, 1 to 10,000.
    pub options: Vec<VanillaOption>,
    /// Price of each option.
    pub prices: Vec<f64>,
}

/// A matrix by rows that is given, or taken from the market.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "an array of numbers, or {\"from\": \"market\"}")]
pub enum Matrix {
    /// The given matrix.
    Given(Vec<f64>),
    /// Taken from the live market.
    Market(FromMarket),
}

/// Price and Greeks of European digital options, in closed form (Reiner and Rubinstein).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DigitalOptions {
    /// Assets, up to 4,096. Other fields name them by index, from 0.
    pub assets: Vec<Asset>,
    /// Options, 1 to 10,000.
    pub options: Vec<DigitalOption>,
}

/// A European digital option, which pays a fixed amount or nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DigitalOption {
    /// Index of its asset in the problem, from 0.
    pub asset: i32,
    /// A call pays if the price at expiry is above the strike, a put if it is below.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
    /// Years until expiry, from 3e-9 to 60; in positions and contracts also 0, which is now.
    pub expiry_years: f64,
    /// Payout: cash, or units of the asset.
    pub pays: DigitalPayout,
    /// Amount of the payout, in cash or in units of the asset, from 1e-12 to 1e15.
    #[serde(default = "one")]
    #[wire(default = "1.0")]
    pub amount: f64,
}

fn one() -> f64 {
    1.0
}

/// An American option, which may be exercised at any time until expiry. It is valued by its boundary of exercise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AmericanOption {
    /// Index of its asset in the problem, from 0.
    pub asset: i32,
    /// Call or put.
    pub kind: OptionKind,
    /// Strike, from 1e-12 to 1e15.
    pub strike: f64,
    /// Years until expiry, from 3e-9 to 60; also 0, which is now.
    pub expiry_years: f64,
}

/// Price and Greeks of contracts of several kinds, each by its formula and with its id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Contracts {
    /// Assets, up to 4,096. Other fields name them by index, from 0.
    pub assets: Vec<Asset>,
    /// Contracts, 1 to 10,000.
    pub contracts: Vec<NamedContract>,
    /// True if Greeks of American options are computed too, which takes several times as long. Greeks of other
    /// contracts are always computed.
    #[serde(default)]
    pub greeks: bool,
}

/// A contract with an id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedContract {
    /// Id of the contract, which the answer repeats, up to 64 bytes; may be empty.
    #[serde(default)]
    pub id: String,
    /// The contract. One unit of it is priced.
    pub contract: Instrument,
}

/// Declares problems: the variants in the order of the schema's branches, each with its `type` in JSON.
macro_rules! problems {
    ($($(#[$document:meta])* $name:literal $variant:ident($problem:ty);)+) => {
        /// Problem of a request.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Wire)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        #[serde(tag = "type")]
        pub enum RiskProblem {
            $($(#[$document])* #[serde(rename = $name)] $variant($problem),)+
        }

        impl RiskProblem {
            /// Returns the problem's `type` in JSON.
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
    /// Price and Greeks of European options, in closed form (Black, Scholes and Merton).
    "options" Options(OptionValues);
    /// Volatilities at which European options have given prices. The assets' own volatilities are ignored.
    "implied-volatilities" ImpliedVolatilities(ImpliedVolatilities);
    /// Price of an option by Monte Carlo: assets follow geometric Brownian motions.
    "simulation" Simulation(SimulationProblem);
    /// Risk of a portfolio of positions.
    "portfolio" Portfolio(PortfolioProblem);
    /// Weights of assets with the least variance for their expected return, within bounds and a budget.
    "optimisation" Optimisation(OptimisationProblem);
    /// Results of trading rules on recorded bars.
    "sweep" Sweep(SweepProblem);
    /// Price and Greeks of European digital options, in closed form (Reiner and Rubinstein).
    "digital-options" DigitalOptions(DigitalOptions);
    /// Price and Greeks of contracts of several kinds, each by its formula and with its id.
    "contracts" Contracts(Contracts);
}

impl RiskProblem {
    /// Returns the problem's assets; a sweep has none.
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

    /// True if the problem needs version 5 of the schema.
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

wire_enum!("Right of an option: to buy (CALL) or to sell (PUT).", OptionKind { 0 => Call, 1 => Put });
wire_enum!("Payout of a digital option: CASH, or units of the ASSET.", DigitalPayout { 0 => Cash, 1 => Asset });
