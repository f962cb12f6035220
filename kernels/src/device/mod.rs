//! Kernels for GPUs: their sources, arguments and state.
//!
//! Each `.cu` file lies beside its twin in Rust, which gives the same bits. Each kernel takes one struct of eight-byte
//! fields, which has the same layout on both sides; pointers are addresses in the device's memory.

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
use crate::pricing;
pub use crate::pricing::kernels::*;
pub use api::{Address, DOWNLOADS_MAX, Device, DeviceError, Devices, NoDevices, Sample};
pub use batch::{RunningBatch, StagedBatch};
pub use closed::{ClosedBarsArgs, DeviceClosedBar};
pub use faults::{Fault, FaultError, FaultyDevice, FaultyDevices};
pub use slab::{DeviceSlab, SlabConfig};
pub use slots::{SlotState, SpecState};
pub use staged::{GroupRows, StagedRows};
pub use workspace::WorkMemory;
pub(crate) use workspace::{Workspace, piece_bytes, with_workspace};

/// Number of threads of a block for which the kernels are written.
pub const BLOCK_THREADS: usize = 128;

/// A file of CUDA C++.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CudaSource {
    /// Name of the file.
    pub name: &'static str,
    /// The source text.
    pub text: &'static str,
}

/// The headers that kernels include, each after those that it needs.
pub const HEADERS: [CudaSource; 16] = [
    // This header is generated from the table of indicators; there is no such file.
    CudaSource { name: "indicators.cuh", text: crate::indicators::HEADER },
    CudaSource { name: "device.cuh", text: include_str!("device.cuh") },
    CudaSource { name: "polynomial.cuh", text: include_str!("../math/polynomial.cuh") },
    CudaSource { name: "ln.cuh", text: include_str!("../math/ln.cuh") },
    CudaSource { name: "ties.cuh", text: include_str!("../indicators/ties.cuh") },
    CudaSource { name: "exp.cuh", text: include_str!("../math/exp.cuh") },
    CudaSource { name: "normal.cuh", text: include_str!("../math/normal.cuh") },
    CudaSource { name: "philox.cuh", text: include_str!("../math/philox.cuh") },
    CudaSource { name: "real.cuh", text: include_str!("../math/real.cuh") },
    CudaSource { name: "dual.cuh", text: include_str!("../math/dual.cuh") },
    CudaSource { name: "greeks.cuh", text: include_str!("../pricing/greeks.cuh") },
    CudaSource { name: "sobol.cuh", text: include_str!("../math/sobol.cuh") },
    CudaSource { name: "draws.cuh", text: include_str!("../pricing/draws.cuh") },
    CudaSource { name: "bridge.cuh", text: include_str!("../pricing/bridge.cuh") },
    CudaSource { name: "sums.cuh", text: include_str!("../pricing/sums.cuh") },
    CudaSource { name: "payoffs.cuh", text: include_str!("../pricing/payoffs.cuh") },
];

impl CudaSource {
    /// True if the source directly includes a header.
    fn includes(&self, header: &CudaSource) -> bool {
        let is_of_header = |line: &str| {
            line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"')) == Some(header.name)
        };
        self.text.lines().any(is_of_header)
    }

    /// The lines of code, without `#pragma once` and without includes, whose texts precede it in a program.
    fn body(&self) -> impl Iterator<Item = &'static str> {
        self.text.lines().filter(|line| !line.starts_with("#include \"") && *line != "#pragma once")
    }
}

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Name of its function, which has C linkage.
    pub function: &'static str,
    /// Name of its argument struct.
    pub args: &'static str,
    /// The source file of the kernel.
    pub source: CudaSource,
}

const BARS: CudaSource = CudaSource { name: "bars.cu", text: include_str!("../bars/bars.cu") };

/// Folds runs of 32 trades, one run per thread: takes [`FoldArgs`].
pub const FOLD_RUNS: Kernel = Kernel { function: "fold_runs", args: "warptape::FoldArgs", source: BARS };

/// Merges the parts of `fold_runs` and `fold_quotes` into open bars, and closes them: takes [`FoldArgs`].
pub const CLOSE_BARS: Kernel = Kernel { function: "close_bars", args: "warptape::FoldArgs", source: BARS };

/// Folds runs of 32 quotes for time bars, one run per thread: takes [`FoldArgs`].
pub const FOLD_QUOTES: Kernel = Kernel { function: "fold_quotes", args: "warptape::FoldArgs", source: BARS };

impl Kernel {
    /// The source of the kernel and all its headers, as one text for a compiler.
    pub fn program(&self) -> String {
        let mut sources = vec![self.source];
        for header in HEADERS.iter().rev() {
            if sources.iter().any(|source| source.includes(header)) {
                sources.push(*header);
            }
        }
        sources.iter().rev().flat_map(CudaSource::body).flat_map(|line| [line, "\n"]).collect()
    }
}

/// Advances the indicators of slots by their closed bars: takes `IndicatorArgs`.
pub const UPDATE_INDICATORS: Kernel = Kernel {
    function: "update_indicators",
    args: "warptape::IndicatorArgs",
    source: CudaSource { name: "indicators.cu", text: include_str!("../indicators/indicators.cu") },
};

/// Detects signals on closed bars: takes `SignalArgs`.
pub const DETECT_SIGNALS: Kernel = Kernel {
    function: "detect_signals",
    args: "warptape::SignalArgs",
    source: CudaSource { name: "signals.cu", text: include_str!("../signals/signals.cu") },
};

const COMPACTION: CudaSource =
    CudaSource { name: "compaction.cu", text: include_str!("../compaction/compaction.cu") };

const fn compaction(function: &'static str) -> Kernel {
    Kernel { function, args: "warptape::CompactionArgs", source: COMPACTION }
}

/// Counts the closed bars before each place within its tile: takes [`CompactionArgs`].
pub const SCAN_PLACES: Kernel = compaction("scan_places");

/// Counts the closed bars before each tile, in one block: takes [`CompactionArgs`].
pub const SCAN_TILES: Kernel = compaction("scan_tiles");

/// Copies closed bars to their places in order: takes [`CompactionArgs`].
pub const GATHER_BARS: Kernel = compaction("gather_bars");

/// Moves the state of slots from one place in memory to another: takes `MoveArgs`.
pub const MOVE_SLOTS: Kernel = Kernel {
    function: "move_slots",
    args: "warptape::MoveArgs",
    source: CudaSource { name: "slots.cu", text: include_str!("slots.cu") },
};

/// Applies trading rules to bars: takes `SweepArgs`.
pub const SWEEP_RULES: Kernel = Kernel {
    function: "sweep_rules",
    args: "warptape::SweepArgs",
    source: CudaSource { name: "sweep.cu", text: include_str!("../sweep/sweep.cu") },
};

const PORTFOLIO: CudaSource =
    CudaSource { name: "portfolio.cu", text: include_str!("../portfolio/portfolio.cu") };
const COVARIANCE: CudaSource =
    CudaSource { name: "covariance.cu", text: include_str!("../portfolio/covariance.cu") };

const fn portfolio(function: &'static str) -> Kernel {
    Kernel { function, args: "warptape::PortfolioArgs", source: PORTFOLIO }
}

/// Draws normal numbers for each asset and scenario: takes `PortfolioArgs`.
pub const DRAW_NORMALS: Kernel = portfolio("draw_normals");

/// Turns normal numbers into moves of spot prices: takes `PortfolioArgs`.
pub const MOVE_SPOTS: Kernel = portfolio("move_spots");

/// Revalues each position in each scenario: takes `PortfolioArgs`.
pub const REVALUE_POSITIONS: Kernel = portfolio("revalue_positions");

/// Sums profits by book: takes `PortfolioArgs`.
pub const SUM_BOOKS: Kernel = portfolio("sum_books");

/// Subtracts its mean from each column of a matrix: takes `CovarianceArgs`.
pub const CENTRE_RETURNS: Kernel =
    Kernel { function: "centre_returns", args: "warptape::CovarianceArgs", source: COVARIANCE };

/// Sums the products of columns of a matrix: takes `CovarianceArgs`.
pub const SUM_PRODUCTS: Kernel =
    Kernel { function: "sum_products", args: "warptape::CovarianceArgs", source: COVARIANCE };

/// The kernels that lanes run for ticks, and the kernel of sweeps.
const OF_TICKS: [Kernel; 10] = [
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
];

const OF_PORTFOLIOS: [Kernel; 6] =
    [DRAW_NORMALS, MOVE_SPOTS, REVALUE_POSITIONS, SUM_BOOKS, CENTRE_RETURNS, SUM_PRODUCTS];

/// All kernels; those of one file are adjacent.
pub const KERNELS: [Kernel; OF_TICKS.len() + pricing::KERNELS.len() + OF_PORTFOLIOS.len()] =
    joined(&[&OF_TICKS, &pricing::KERNELS, &OF_PORTFOLIOS]);

/// Joins the lists, which have `N` kernels in total.
const fn joined<const N: usize>(lists: &[&[Kernel]]) -> [Kernel; N] {
    let mut all = [FOLD_RUNS; N];
    let (mut list, mut place, mut at) = (0, 0, 0);
    while list < lists.len() {
        while place < lists[list].len() {
            all[at] = lists[list][place];
            (place, at) = (place + 1, at + 1);
        }
        (list, place) = (list + 1, 0);
    }
    assert!(at == N, "a kernel is missing");
    all
}

/// Compiler options except the architecture. They forbid contraction and reassociation, and round divisions and square
/// roots to nearest.
pub const COMPILER_OPTIONS: [&str; 6] =
    ["--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false", "--device-int128"];
