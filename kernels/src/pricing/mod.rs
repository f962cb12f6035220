//! Prices of options and their Greeks, in closed form and by Monte Carlo. The module knows no requests, no threads and
//! no clock: it only computes numbers. Any part of the work is given by a range of indices, so that lanes can share it
//! without a change of the bits.

mod american;
mod american_greeks;
mod basket;
mod basket_greeks;
mod black_scholes;
mod bridge;
mod correlations;
mod device;
mod digital;
pub(crate) mod draws;
mod early_exercise;
mod exercise;
mod greeks;
mod implied;
pub(crate) mod kernels;
pub(crate) mod options;
mod parity;
mod paths;
mod payoffs;
pub(crate) mod sampling;
mod simulation;
mod stop;
mod sums;
mod terms;
mod walks;

use crate::device::Kernel;
use kernels::*;

pub use american::{AmericanSimulation, AmericanSpec, EXERCISES_MAX, PILOT_BLOCKS_MAX};
pub use american_greeks::AmericanGreekSimulation;
pub use basket::{BASKET_ASSETS_MAX, BasketAsset, BasketError, BasketSimulation, BasketSpec, WEIGHT_RANGE};
pub use basket_greeks::{AssetGreeks, BasketGreekEstimate, BasketGreekSimulation};
pub use black_scholes::Greeks;
pub use correlations::CorrelationError;
pub use device::DevicePricing;
pub use digital::{DigitalPayout, Digitals, PRICE_DIGITALS};
pub use early_exercise::{AmericanError, AmericanGreeks, AmericanOption, AmericanValue, ExerciseBoundary};
pub use exercise::RuleSearch;
pub use greeks::{GREEK_BUMP_MAX, GreekEstimate, GreekSimulation, GreekSums, Measured};
pub use implied::{NoVolatility, implied_volatility};
pub use options::{
    AssetMarket, EXPIRY_YEARS_RANGE, OptionKind, Options, PRICE_RANGE, ParameterError, RATE_RANGE,
    VOLATILITY_RANGE,
};
pub use sampling::{SOBOL_REPLICATES, Sampling};
pub use simulation::{
    BarrierKind, Contract, Estimate, MIXED_FIXINGS_MAX, Precision, STEPS_MAX, Simulation, SimulationSpec,
};
pub use stop::{STOP_BLOCKS_FIRST, StopDecision, StopRule};
pub use sums::{BLOCK_SAMPLES, BlockSums};

/// Kernels of prices; those of one file are adjacent.
pub(crate) const KERNELS: [Kernel; 12] = [
    PRICE_OPTIONS,
    IMPLY_VOLATILITIES,
    PRICE_DIGITALS,
    SIMULATE_BLOCKS,
    SIMULATE_GREEKS,
    SIMULATE_BASKETS,
    SIMULATE_BASKET_GREEKS,
    SIMULATE_AMERICANS,
    SIMULATE_AMERICAN_GREEKS,
    IMPROVE_BOUNDARIES,
    WEIGH_PREMIUMS,
    SUM_LANES,
];
