//! Kernels as a GPU has them: their sources, and the arguments and state that they are given.
//!
//! Each `.cu` file stands beside its twin in Rust and gives the same bits. Arguments are one struct per kernel, of fields of
//! eight bytes, so that both sides lay it out alike; pointers are addresses in the device's memory.

mod api;
mod batch;
mod closed;
mod faults;
mod slab;
mod slots;
mod staged;
mod workspace;

pub use crate::bars::device::FoldArgs;
pub use crate::compaction::{CompactionArgs, GATHER_THREADS, TILE, ordered};
pub use api::{Address, DOWNLOADS_MAX, Device, DeviceError, Devices, NoDevices, Sample};
pub use batch::{RunningBatch, StagedBatch};
pub use closed::{ClosedBarsArgs, DeviceClosedBar};
pub use faults::{Fault, FaultError, FaultyDevice, FaultyDevices};
pub use slab::{DeviceSlab, SlabConfig};
pub use slots::{SlotState, SpecState};
pub use staged::{GroupRows, StagedRows};
pub use workspace::WorkMemory;
pub(crate) use workspace::{Workspace, piece_bytes, with_workspace};

/// A file of CUDA C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub text: &'static str,
}

/// What kernels include, in the order in which they need each other.
pub const HEADERS: [Source; 15] = [
    // Made from the table of indicators: there is no such file.
    Source { name: "indicators.cuh", text: crate::indicators::HEADER },
    Source { name: "device.cuh", text: include_str!("device.cuh") },
    Source { name: "polynomial.cuh", text: include_str!("../math/polynomial.cuh") },
    Source { name: "ln.cuh", text: include_str!("../math/ln.cuh") },
    Source { name: "exp.cuh", text: include_str!("../math/exp.cuh") },
    Source { name: "normal.cuh", text: include_str!("../math/normal.cuh") },
    Source { name: "philox.cuh", text: include_str!("../math/philox.cuh") },
    Source { name: "real.cuh", text: include_str!("../math/real.cuh") },
    Source { name: "dual.cuh", text: include_str!("../math/dual.cuh") },
    Source { name: "greeks.cuh", text: include_str!("../pricing/greeks.cuh") },
    Source { name: "sobol.cuh", text: include_str!("../math/sobol.cuh") },
    Source { name: "draws.cuh", text: include_str!("../pricing/draws.cuh") },
    Source { name: "bridge.cuh", text: include_str!("../pricing/bridge.cuh") },
    Source { name: "sums.cuh", text: include_str!("../pricing/sums.cuh") },
    Source { name: "payoffs.cuh", text: include_str!("../pricing/payoffs.cuh") },
];

impl Source {
    /// Whether it includes a header itself.
    fn includes(&self, header: &Source) -> bool {
        let is_of_header = |line: &str| {
            line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"')) == Some(header.name)
        };
        self.text.lines().any(is_of_header)
    }

    /// The text without what makes a file of it: what it includes stands before it.
    fn body(&self) -> impl Iterator<Item = &'static str> {
        self.text.lines().filter(|line| !line.starts_with("#include \"") && *line != "#pragma once")
    }
}

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of its function, of C linkage.
    pub function: &'static str,
    /// Name of the struct that it is given.
    pub args: &'static str,
    /// The file it is in.
    pub source: Source,
}

const BARS: Source = Source { name: "bars.cu", text: include_str!("../bars/bars.cu") };

/// Folds runs of trades, 32 of them a thread: takes [`FoldArgs`].
pub const FOLD_RUNS: Kernel = Kernel { function: "fold_runs", args: "warptape::FoldArgs", source: BARS };

/// Merges what `fold_runs` and `fold_quotes` made into open bars, and closes them: takes [`FoldArgs`].
pub const CLOSE_BARS: Kernel = Kernel { function: "close_bars", args: "warptape::FoldArgs", source: BARS };

/// Folds runs of quotes for time bars, 32 of them a thread: takes [`FoldArgs`].
pub const FOLD_QUOTES: Kernel = Kernel { function: "fold_quotes", args: "warptape::FoldArgs", source: BARS };

impl Kernel {
    /// Its source and all that it includes, as one text for a compiler.
    pub fn program(&self) -> String {
        let mut sources = vec![self.source];
        for header in HEADERS.iter().rev() {
            if sources.iter().any(|source| source.includes(header)) {
                sources.push(*header);
            }
        }
        sources.iter().rev().flat_map(Source::body).flat_map(|line| [line, "\n"]).collect()
    }
}

/// Moves slots on by their closed bars: takes `IndicatorArgs`.
pub const UPDATE_INDICATORS: Kernel = Kernel {
    function: "update_indicators",
    args: "warptape::IndicatorArgs",
    source: Source { name: "indicators.cu", text: include_str!("../indicators/indicators.cu") },
};

/// Detects signals on closed bars: takes `SignalArgs`.
pub const DETECT_SIGNALS: Kernel = Kernel {
    function: "detect_signals",
    args: "warptape::SignalArgs",
    source: Source { name: "signals.cu", text: include_str!("../signals/signals.cu") },
};

const COMPACTION: Source =
    Source { name: "compaction.cu", text: include_str!("../compaction/compaction.cu") };

const fn compaction(function: &'static str) -> Kernel {
    Kernel { function, args: "warptape::CompactionArgs", source: COMPACTION }
}

/// Counts the closed bars before each place within its tile: takes [`CompactionArgs`].
pub const SCAN_PLACES: Kernel = compaction("scan_places");

/// Counts the closed bars before each tile, in one block: takes [`CompactionArgs`].
pub const SCAN_TILES: Kernel = compaction("scan_tiles");

/// Copies closed bars to where they belong: takes [`CompactionArgs`].
pub const GATHER_BARS: Kernel = compaction("gather_bars");

/// Moves the state of slots from one place in memory to another: takes `MoveArgs`.
pub const MOVE_SLOTS: Kernel = Kernel {
    function: "move_slots",
    args: "warptape::MoveArgs",
    source: Source { name: "slots.cu", text: include_str!("slots.cu") },
};

/// Works through bars by trading rules: takes `SweepArgs`.
pub const SWEEP_RULES: Kernel = Kernel {
    function: "sweep_rules",
    args: "warptape::SweepArgs",
    source: Source { name: "sweep.cu", text: include_str!("../sweep/sweep.cu") },
};

const BLACK_SCHOLES: Source =
    Source { name: "black_scholes.cu", text: include_str!("../pricing/black_scholes.cu") };
const SIMULATION: Source = Source { name: "simulation.cu", text: include_str!("../pricing/simulation.cu") };

/// Prices options in closed form: takes `OptionArgs`.
pub const PRICE_OPTIONS: Kernel =
    Kernel { function: "price_options", args: "warptape::OptionArgs", source: BLACK_SCHOLES };

/// Finds the volatilities that prices imply: takes `OptionArgs`.
pub const IMPLY_VOLATILITIES: Kernel =
    Kernel { function: "imply_volatilities", args: "warptape::OptionArgs", source: BLACK_SCHOLES };

/// Simulates paths, and sums what they are worth lane by lane: takes `SimulationArgs`.
pub const SIMULATE_BLOCKS: Kernel =
    Kernel { function: "simulate_blocks", args: "warptape::SimulationArgs", source: SIMULATION };

/// The same with Greeks: takes `SimulationArgs`.
pub const SIMULATE_GREEKS: Kernel =
    Kernel { function: "simulate_greeks", args: "warptape::SimulationArgs", source: SIMULATION };

const BASKET: Source = Source { name: "basket.cu", text: include_str!("../pricing/basket.cu") };

/// Simulates baskets: takes `BasketArgs`.
pub const SIMULATE_BASKETS: Kernel =
    Kernel { function: "simulate_baskets", args: "warptape::BasketArgs", source: BASKET };

/// The same with Greeks: takes `BasketArgs`.
pub const SIMULATE_BASKET_GREEKS: Kernel =
    Kernel { function: "simulate_basket_greeks", args: "warptape::BasketArgs", source: BASKET };

const AMERICAN: Source = Source { name: "american.cu", text: include_str!("../pricing/american.cu") };

/// Simulates American options: takes `AmericanArgs`.
pub const SIMULATE_AMERICANS: Kernel =
    Kernel { function: "simulate_americans", args: "warptape::AmericanArgs", source: AMERICAN };

/// The same with Greeks: takes `AmericanArgs`.
pub const SIMULATE_AMERICAN_GREEKS: Kernel =
    Kernel { function: "simulate_american_greeks", args: "warptape::AmericanArgs", source: AMERICAN };

const EARLY_EXERCISE: Source =
    Source { name: "early_exercise.cu", text: include_str!("../pricing/early_exercise/early_exercise.cu") };

/// Improves boundaries of early exercise: takes `EarlyExerciseArgs`.
pub const IMPROVE_BOUNDARIES: Kernel =
    Kernel { function: "improve_boundaries", args: "warptape::EarlyExerciseArgs", source: EARLY_EXERCISE };

/// Finds what early exercise is worth: takes `EarlyExerciseArgs`.
pub const WEIGH_PREMIUMS: Kernel =
    Kernel { function: "weigh_premiums", args: "warptape::EarlyExerciseArgs", source: EARLY_EXERCISE };

/// Sums over lanes: takes `SumArgs`.
pub const SUM_LANES: Kernel = Kernel {
    function: "sum_lanes",
    args: "warptape::SumArgs",
    source: Source { name: "sums.cu", text: include_str!("../pricing/sums.cu") },
};

const PORTFOLIO: Source = Source { name: "portfolio.cu", text: include_str!("../portfolio/portfolio.cu") };
const COVARIANCE: Source = Source { name: "covariance.cu", text: include_str!("../portfolio/covariance.cu") };

const fn portfolio(function: &'static str) -> Kernel {
    Kernel { function, args: "warptape::PortfolioArgs", source: PORTFOLIO }
}

/// Draws normal numbers for each asset and scenario: takes `PortfolioArgs`.
pub const DRAW_NORMALS: Kernel = portfolio("draw_normals");

/// Makes moves of spot prices of normal numbers: takes `PortfolioArgs`.
pub const MOVE_SPOTS: Kernel = portfolio("move_spots");

/// Revalues each position in each scenario: takes `PortfolioArgs`.
pub const REVALUE_POSITIONS: Kernel = portfolio("revalue_positions");

/// Sums profits by book: takes `PortfolioArgs`.
pub const SUM_BOOKS: Kernel = portfolio("sum_books");

/// Takes the mean from each column of a matrix: takes `CovarianceArgs`.
pub const CENTRE_RETURNS: Kernel =
    Kernel { function: "centre_returns", args: "warptape::CovarianceArgs", source: COVARIANCE };

/// Sums the products of columns of a matrix: takes `CovarianceArgs`.
pub const SUM_PRODUCTS: Kernel =
    Kernel { function: "sum_products", args: "warptape::CovarianceArgs", source: COVARIANCE };

/// All kernels.
pub const KERNELS: [Kernel; 27] = [
    FOLD_RUNS,
    CLOSE_BARS,
    FOLD_QUOTES,
    UPDATE_INDICATORS,
    DETECT_SIGNALS,
    SCAN_PLACES,
    SCAN_TILES,
    GATHER_BARS,
    MOVE_SLOTS,
    SWEEP_RULES,
    PRICE_OPTIONS,
    IMPLY_VOLATILITIES,
    SIMULATE_BLOCKS,
    SIMULATE_GREEKS,
    SIMULATE_BASKETS,
    SIMULATE_BASKET_GREEKS,
    SIMULATE_AMERICANS,
    SIMULATE_AMERICAN_GREEKS,
    IMPROVE_BOUNDARIES,
    WEIGH_PREMIUMS,
    SUM_LANES,
    DRAW_NORMALS,
    MOVE_SPOTS,
    REVALUE_POSITIONS,
    SUM_BOOKS,
    CENTRE_RETURNS,
    SUM_PRODUCTS,
];

/// Options for the compiler, without the architecture: nothing is contracted or reassociated, and divisions and square
/// roots are rounded to nearest.
pub const COMPILER_OPTIONS: [&str; 6] =
    ["--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false", "--device-int128"];
