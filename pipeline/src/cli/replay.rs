//! Arguments of `replay`.

use clap::{Args, Subcommand, ValueEnum};

use super::ExportArgs;

/// Arguments of `warptape replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape replay verify --log sqlite:market.db --outputs")]
pub struct ReplayArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ReplayCommand,
}

/// What to replay for.
#[derive(Clone, Debug, Subcommand)]
pub enum ReplayCommand {
    /// Re-step every recorded input and compare every decision and state hash
    Verify(VerifyArgs),
    /// Say what the decisions of one journal entry were chosen among, by what, and what would have changed them
    Why(WhyArgs),
    /// Write the log, or a window of it, to one portable file, or to tables
    Export(ExportArgs),
}

/// Arguments of `warptape replay why`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
`warptape tail journal` lists entries by their sequence.

Example: warptape replay why 42 --log sqlite:market.db")]
pub struct WhyArgs {
    /// Sequence of the entry in the journal
    pub sequence: i64,
    /// Partition of the journal: the ordinal of the process
    #[arg(long, value_name = "ORDINAL", default_value_t = 0)]
    pub partition: i32,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t = VerifyFormat::Text)]
    pub output: VerifyFormat,
}

/// Arguments of `warptape replay verify`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Exit status: 0 identical, 1 different (the first difference is printed), 2 the log cannot be read.

Example: warptape replay verify --log sqlite:market.db --outputs")]
pub struct VerifyArgs {
    /// Rerun the stages over the recorded ticks as well and compare every signal bit for bit
    #[arg(long)]
    pub outputs: bool,
    /// Consumer group of the run, whose committed offsets say how far outputs go; engine.group where not given
    #[arg(long, value_name = "GROUP", requires = "outputs")]
    pub group: Option<String>,
    /// How to print what was found
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
