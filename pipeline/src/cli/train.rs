//! Arguments of `train`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `warptape train`.
#[derive(Clone, Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
The command trains a network that chooses lanes for tasks, against a simulator that runs the production scheduler. It then compares the network
with rules on arrivals that training never saw. To use the network, give the policy dqn:FILE to `simulate` or `replay what-if`, or name the file in
risk.networks for a running process. --resume continues from FILE.checkpoint; FILE.svg is the learning curve. Ctrl-C ends training early and keeps
the best network so far. Without an interruption, the same seed gives the same bytes on the same machine. See docs/scheduling.md.

Training needs a binary with the feature `training`: cargo build --release --features training.

Example: warptape train --fleet examples/simulate/volta-turing-radeon.toml --workload examples/simulate/three-kinds.toml --to best.network"
)]
pub struct TrainArgs {
    /// Action other than training
    #[command(subcommand)]
    pub command: Option<TrainCommand>,
    /// Lanes to learn for, as `simulate` takes them (TOML)
    #[arg(long, value_name = "FILE", required = true)]
    pub fleet: Option<PathBuf>,
    /// Tasks to learn from: their kinds, sizes and arrivals (TOML); loads, speeds and faults are drawn anew for each
    /// episode
    #[arg(long, value_name = "FILE", required = true)]
    pub workload: Option<PathBuf>,
    /// File to write the network to
    #[arg(long, value_name = "FILE", required = true)]
    pub to: Option<PathBuf>,
    /// Architecture of the network
    #[arg(long, value_enum, default_value_t = NetworkKind::Improved)]
    pub kind: NetworkKind,
    /// Seed of the initial weights, the episodes and all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Number of episodes, including those before --resume
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub episodes: u64,
    /// Tasks of an episode
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub tasks: u32,
    /// Time limit, in seconds; training ends with the episode in progress then
    #[arg(long, value_name = "S")]
    pub seconds: Option<u64>,
    /// Go on from FILE.checkpoint
    #[arg(long)]
    pub resume: bool,
    /// Runs of the network and of each rule on each scene of the comparison; 0 leaves it out
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=1_000))]
    pub seeds: u64,
}

/// Actions of `train` beside training.
#[derive(Clone, Debug, Subcommand)]
pub enum TrainCommand {
    /// Compare a network with rules on arrivals that no training saw
    Compare(CompareArgs),
}

/// Arguments of `warptape train compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Example: warptape train compare best.network --fleet examples/simulate/volta-turing-radeon.toml --workload examples/simulate/three-kinds.toml")]
pub struct CompareArgs {
    /// File of the network
    #[arg(value_name = "NETWORK")]
    pub network: PathBuf,
    /// Lanes (TOML)
    #[arg(long, value_name = "FILE")]
    pub fleet: PathBuf,
    /// Tasks (TOML)
    #[arg(long, value_name = "FILE")]
    pub workload: PathBuf,
    /// Runs of the network and of each rule on each scene
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub seeds: u64,
}

/// An architecture of networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NetworkKind {
    /// Network for any number of lanes: features of each lane, masks, dueling double DQN
    Improved,
    /// Network as published, for the number of lanes of the fleet
    Paper,
}
