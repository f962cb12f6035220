//! Prices of options: closed forms and Monte Carlo. Knows no requests, no threads and no clock: numbers in, numbers out, and
//! any part of the work by its range of indices, so that lanes may share it and the bits stay the same.

mod black_scholes;
mod device;
pub(crate) mod draws;
mod implied;
pub(crate) mod options;
mod payoffs;
mod simulation;
mod sums;

pub use black_scholes::Greeks;
pub use device::DevicePricing;
pub use implied::{NoVolatility, implied_volatility};
pub use options::{
    AssetMarket, EXPIRY_YEARS_RANGE, OptionKind, Options, PRICE_RANGE, ParameterError, RATE_RANGE,
    VOLATILITY_RANGE,
};
pub use simulation::{
    BarrierKind, Contract, Estimate, MIXED_FIXINGS_MAX, Precision, STEPS_MAX, Simulation, SimulationSpec,
};
pub use sums::{BLOCK_SAMPLES, BlockSums};
