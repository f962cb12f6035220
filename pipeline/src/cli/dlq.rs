//! Arguments of `dlq`.

use clap::{Args, Subcommand};

/// Arguments of `warptape dlq`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape dlq list --log sqlite:market.db")]
pub struct DlqArgs {
    /// What to do
    #[command(subcommand)]
    pub command: DlqCommand,
}

/// What to do with dead letters.
#[derive(Clone, Debug, Subcommand)]
pub enum DlqCommand {
    /// List dead letters: where they are, where they came from, why they died
    #[command(after_help = "Example: warptape dlq list --log sqlite:market.db")]
    List,
    /// Show one with everything it holds, its original bytes as hex and ASCII
    Show(DlqShowArgs),
    /// Send the original bytes back to their topics
    Replay(DlqReplayArgs),
}

/// Arguments of `warptape dlq show`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape dlq show 17 --partition 2 --log sqlite:market.db")]
pub struct DlqShowArgs {
    /// Offset in the dead-letter topic
    #[arg(value_parser = clap::value_parser!(i64).range(0..))]
    pub offset: i64,
    /// Partition of the dead-letter topic
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub partition: i32,
}

/// Arguments of `warptape dlq replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Sends what was not replayed yet, and remembers how far it came in the same transaction: a second call, or one after a
crash, sends nothing twice. With --offset, --from or --to exactly these records are sent, replayed before or not, and
nothing is remembered. What is still wrong becomes a dead letter once more.

Example: warptape dlq replay --log sqlite:market.db")]
pub struct DlqReplayArgs {
    /// Only this partition of the dead-letter topic
    #[arg(long, value_name = "N")]
    pub partition: Option<i32>,
    /// Only this offset
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "to"], value_parser = clap::value_parser!(i64).range(0..))]
    pub offset: Option<i64>,
    /// First offset
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub from: Option<i64>,
    /// Last offset
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub to: Option<i64>,
}
