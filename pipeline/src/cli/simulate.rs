//! Arguments of `simulate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Arguments of `warptape simulate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Tasks arrive at a modelled fleet in virtual time, and the production scheduler decides. All policies get the same arrivals, and the same seeds
give the same output. Figures are means over seeds, with the half-width of their 95 % confidence interval. See docs/scheduling.md.

Example: warptape simulate --fleet examples/simulate/volta-turing-radeon.toml --workload examples/simulate/three-kinds.toml --policy fair,lp-price
         warptape simulate --experiment adlro --seeds 20")]
pub struct SimulateArgs {
    /// Lanes: their classes, with numbers and speeds at each kind of tasks and at ticks (TOML)
    #[arg(long, value_name = "FILE", required_unless_present = "experiment")]
    pub fleet: Option<PathBuf>,
    /// Tasks: their kinds, sizes and arrivals, and ticks beside them (TOML), or recorded tasks (a name that ends in .csv)
    #[arg(long, value_name = "FILE", required_unless_present = "experiment")]
    pub workload: Option<PathBuf>,
    /// Task policies: values of risk.policy, networks as dqn:FILE, and the simulator's baselines in docs/scheduling.md
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "fair,lp-price")]
    pub policy: Vec<String>,
    /// Runs of each policy at each load
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub seeds: u64,
    /// Loads: arriving work as shares of the fleet's capacity; recordings and closed loops have their own
    #[arg(long, value_name = "SHARE", value_delimiter = ',', default_value = "0.85")]
    pub load: Vec<f64>,
    /// Target time of a lane for one slice, in microseconds (default: that of risk.slice_us)
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(i64).range(1..=1_000_000))]
    pub slice_us: Option<i64>,
    /// Placement policy for the groups of ticks, if the workload has ticks; a value of scheduler.placement_policy
    #[arg(long, value_name = "NAME", default_value = "rendezvous")]
    pub placement: String,
    /// Folder for pictures: completion time against load, and for each policy utilisation and lanes over time
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<PathBuf>,
    /// A published experiment, with its own fleet, workloads and policies, as a page of Markdown
    #[arg(long, value_enum, conflicts_with_all = ["fleet", "workload", "policy", "load", "slice_us", "placement", "svg", "output"])]
    pub experiment: Option<Experiment>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = SimulateFormat::Table)]
    pub output: SimulateFormat,
}

/// How a simulation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SimulateFormat {
    /// A table for each load
    Table,
    /// One JSON object for each policy and load, with all figures
    Json,
    /// A line for each figure
    Csv,
}

/// A published experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// 16 GPUs, three kinds of jobs, in a closed loop and in an open one
    Adlro,
}
