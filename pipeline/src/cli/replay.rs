//! Arguments of `replay`.

mod chain;
mod debug;
mod diff;
mod report;
mod timeline;
#[cfg(feature = "lab")]
mod what_if;
#[cfg(not(feature = "lab"))]
#[path = "replay/what_if_missing.rs"]
mod what_if;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub use chain::{
    BACKWARDS, ChainFormat, SlowestArgs, WhyArgs, WhyNotArgs, WhySubject, WindowArgs, parse_bound,
};
pub use debug::{DebugArgs, DebugFormat, parse_condition};
pub use diff::DiffArgs;
pub use timeline::TimelineArgs;
pub use what_if::WhatIfArgs;

pub use report::ReportArgs;

pub(super) use diff::parse_log;

use super::ExportArgs;
pub(in crate::cli) use chain::parse_time;

/// Arguments of `warptape replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape replay verify --log sqlite:market.db --outputs")]
pub struct ReplayArgs {
    /// Analysis of the recorded run
    #[command(subcommand)]
    pub command: ReplayCommand,
}

/// Analyses of a recorded run.
#[derive(Clone, Debug, Subcommand)]
pub enum ReplayCommand {
    /// Re-step every recorded input and compare every decision and state hash
    Verify(VerifyArgs),
    /// Explain a signal, a risk result, a batch or a decision: the waits, the alternatives and the reason for the
    /// choice
    Why(WhyArgs),
    /// List the signals that took longest from their tick to their commit, each with the main cause
    Slowest(SlowestArgs),
    /// Explain why a lane had no more to do at a given time
    WhyNot(WhyNotArgs),
    /// Compare two runs: their first difference, the groups on other lanes, and the cost
    Diff(DiffArgs),
    /// Step through the inputs of a journal in the terminal: next, back, to a sequence or time, until a condition holds
    Debug(DebugArgs),
    /// Write the log, or a window of it, to one portable file, or to tables
    Export(ExportArgs),
    /// Write a timeline of lanes, queues, partitions and commits that Perfetto shows (ui.perfetto.dev)
    Timeline(TimelineArgs),
    /// Write one HTML page of the run, or of a window of it: rates, latencies, lanes, placement, decisions, and the
    /// slowest signals
    Report(ReportArgs),
    /// Estimate a recorded run under another policy, configuration or fleet, beside the measured run and the error of
    /// the model
    WhatIf(WhatIfArgs),
}

/// Arguments of `warptape replay verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Exit status: 0 identical, 1 different (the first difference is printed), 2 the log cannot be read.
With --follow the command runs until Ctrl-C or the first difference. With --listen as well, it stays after a difference and reports it over HTTP.

Example: warptape replay verify --log sqlite:market.db --outputs")]
pub struct VerifyArgs {
    /// Rerun the stages over the recorded ticks as well and compare every signal bit for bit
    #[arg(long)]
    pub outputs: bool,
    /// Consumer group of the run; outputs are compared up to its committed offsets (default: engine.group)
    #[arg(long, value_name = "GROUP", requires = "outputs")]
    pub group: Option<String>,
    /// Keep verifying what a running pipeline commits, from each process's last start or checkpoint. With --outputs
    /// that covers signals, late ticks and dead letters, but no risk results
    #[arg(long)]
    pub follow: bool,
    /// Follow from the first entry that the log has
    #[arg(long, requires = "follow")]
    pub from_beginning: bool,
    /// Serve metrics, health and probes of the verifier over HTTP at this address, such as 127.0.0.1:9465
    #[arg(long, value_name = "ADDR:PORT", requires = "follow")]
    pub listen: Option<String>,
    /// File of an Ed25519 public key in PEM. The key must have signed each journal up to its end; may be given for
    /// several keys
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    pub public_key: Vec<PathBuf>,
    /// Compare with anchors kept elsewhere: a file (journal.anchor_file), or the URL of another log
    /// (journal.anchor_log). This finds what was cut off, rolled back or rewritten since
    #[arg(long, value_name = "FILE|URL", conflicts_with = "follow")]
    pub from_anchor: Option<String>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = VerifyFormat::Text)]
    pub output: VerifyFormat,
}

/// How a verification is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VerifyFormat {
    /// In words
    Text,
    /// One JSON object
    Json,
}
