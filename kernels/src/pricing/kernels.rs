//! Kernels of prices from files with several kernels; other kernels are declared beside their twins.

use crate::device::{CudaSource, Kernel};

const BLACK_SCHOLES: CudaSource =
    CudaSource { name: "black_scholes.cu", text: include_str!("black_scholes.cu") };
const SIMULATION: CudaSource = CudaSource { name: "simulation.cu", text: include_str!("simulation.cu") };

/// Prices options in closed form: takes `OptionArgs`.
pub const PRICE_OPTIONS: Kernel =
    Kernel { function: "price_options", args: "warptape::OptionArgs", source: BLACK_SCHOLES };

/// Finds implied volatilities: takes `OptionArgs`.
pub const IMPLY_VOLATILITIES: Kernel =
    Kernel { function: "imply_volatilities", args: "warptape::OptionArgs", source: BLACK_SCHOLES };

/// Simulates paths, and sums their values lane by lane: takes `SimulationArgs`.
pub const SIMULATE_BLOCKS: Kernel =
    Kernel { function: "simulate_blocks", args: "warptape::SimulationArgs", source: SIMULATION };

/// Simulates paths with Greeks: takes `SimulationArgs`.
pub const SIMULATE_GREEKS: Kernel =
    Kernel { function: "simulate_greeks", args: "warptape::SimulationArgs", source: SIMULATION };

const BASKET: CudaSource = CudaSource { name: "basket.cu", text: include_str!("basket.cu") };

/// Simulates baskets: takes `BasketArgs`.
pub const SIMULATE_BASKETS: Kernel =
    Kernel { function: "simulate_baskets", args: "warptape::BasketArgs", source: BASKET };

/// Simulates baskets with Greeks: takes `BasketArgs`.
pub const SIMULATE_BASKET_GREEKS: Kernel =
    Kernel { function: "simulate_basket_greeks", args: "warptape::BasketArgs", source: BASKET };

const AMERICAN: CudaSource = CudaSource { name: "american.cu", text: include_str!("american.cu") };

/// Simulates American options: takes `AmericanArgs`.
pub const SIMULATE_AMERICANS: Kernel =
    Kernel { function: "simulate_americans", args: "warptape::AmericanArgs", source: AMERICAN };

/// Simulates American options with Greeks: takes `AmericanArgs`.
pub const SIMULATE_AMERICAN_GREEKS: Kernel =
    Kernel { function: "simulate_american_greeks", args: "warptape::AmericanArgs", source: AMERICAN };

const EARLY_EXERCISE: CudaSource =
    CudaSource { name: "early_exercise.cu", text: include_str!("early_exercise/early_exercise.cu") };

/// Improves early-exercise boundaries: takes `EarlyExerciseArgs`.
pub const IMPROVE_BOUNDARIES: Kernel =
    Kernel { function: "improve_boundaries", args: "warptape::EarlyExerciseArgs", source: EARLY_EXERCISE };

/// Computes early-exercise premiums: takes `EarlyExerciseArgs`.
pub const WEIGH_PREMIUMS: Kernel =
    Kernel { function: "weigh_premiums", args: "warptape::EarlyExerciseArgs", source: EARLY_EXERCISE };

/// Sums over lanes: takes `SumArgs`.
pub const SUM_LANES: Kernel = Kernel {
    function: "sum_lanes",
    args: "warptape::SumArgs",
    source: CudaSource { name: "sums.cu", text: include_str!("sums.cu") },
};
