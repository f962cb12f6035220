//! Arguments of `dlq`.

use clap::{Args, Subcommand, ValueEnum};

use super::ListFormat;

/// Arguments of `warptape dlq`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape dlq list --log sqlite:market.db")]
pub struct DlqArgs {
    /// Action on dead letters
    #[command(subcommand)]
    pub command: DlqCommand,
}

/// Actions on dead letters.
#[derive(Clone, Debug, Subcommand)]
pub enum DlqCommand {
    /// List dead letters: their places, their origins and the reasons
    List(DlqListArgs),
    /// Show one dead letter with everything it holds, its original bytes as hex and ASCII
    Show(DlqShowArgs),
    /// Send the original bytes of dead letters back to their topics
    Replay(DlqReplayArgs),
}

/// Arguments of `warptape dlq list`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape dlq list --log sqlite:market.db")]
pub struct DlqListArgs {
    /// Format of the list; JSON has the ticks that the original record holds
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
    /// All columns, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
    /// Integers of JSON as strings, because jq and JavaScript change integers beyond 2^53
    #[arg(long)]
    pub raw: bool,
}

/// How a dead letter is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DlqFormat {
    /// For people
    Text,
    /// One JSON object a line with all fields, and the ticks that the original record holds
    Json,
}

/// Arguments of `warptape dlq show`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape dlq show 2:17 --log sqlite:market.db")]
pub struct DlqShowArgs {
    /// Partition and offset in the dead-letter topic, as `tail` prints them, or an offset alone
    #[arg(value_name = "[PARTITION:]OFFSET", value_parser = parse_place)]
    pub place: LetterPlace,
    /// Partition, if the offset is given alone (default: 0)
    #[arg(long, value_name = "N")]
    pub partition: Option<i32>,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = DlqFormat::Text)]
    pub output: DlqFormat,
}

/// Place of a record in the dead-letter topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetterPlace {
    /// Partition; `None` if it was not given with the offset.
    pub partition: Option<i32>,
    /// Offset.
    pub offset: i64,
}

fn parse_place(text: &str) -> Result<LetterPlace, String> {
    let place = || {
        let (partition, offset) = match text.split_once(':') {
            Some((partition, offset)) => (Some(partition.parse().ok()?), offset),
            None => (None, text),
        };
        let offset = offset.parse().ok().filter(|offset| *offset >= 0)?;
        Some(LetterPlace { partition, offset })
    };
    place().ok_or_else(|| "give PARTITION:OFFSET, such as 2:17, or OFFSET with --partition".to_owned())
}

/// Arguments of `warptape dlq replay`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Without a range, the command sends all dead letters that it has not sent before. It stores its progress in the same transaction, so a second
call, or one after a crash, sends nothing twice. With --offset, --from or --to it sends exactly these, sent before or not, and stores no
progress. A record that still cannot be processed becomes a dead letter again.

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
