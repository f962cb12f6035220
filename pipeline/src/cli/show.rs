//! Arguments of the commands that only look: `tail`, `topics`, `devices`, `config`.

use clap::{Args, Subcommand, ValueEnum};
use warptape_kernels::BarSpec;

use super::replay::parse_time;

/// Arguments of `warptape tail`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Without --from-beginning, --since or --until only new records are printed. Ends on Ctrl-C, or with --exit-at-end.
--since and --until compare the event time of ticks and late ticks, the end of a signal's bar, and the time at which other records happened or were written.
On a terminal, tables are fitted to its width (COLUMNS overrides it). Elsewhere they have all columns, as with --wide.
JSON has times and decimals as text beside the raw integers: event_time beside event_time_ns, price beside price_e9.

Example: warptape tail signals --symbol SYNTH:AAAA --kind bar --bar 1m --since 2024-08-08T00:01:00Z --exit-at-end
Example: warptape tail signals --from-beginning --exit-at-end --columns symbol,bar_end,close,rsi -o csv")]
pub struct TailArgs {
    /// Topic, with or without the configured prefix: ticks, signals, journal, snapshots, late, dead-letter, lifecycle,
    /// risk.requests, risk.results, feeds, control, control.results
    pub topic: String,
    /// Format of the records
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
    /// Begin with the oldest record
    #[arg(long)]
    pub from_beginning: bool,
    /// End after the last record that exists when the command starts
    #[arg(long)]
    pub exit_at_end: bool,
    /// Only records of this symbol, `VENUE:TICKER`
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
    /// Only records of these kinds, separated by commas. The kind of a tick or signal is its kind, of a dead letter its
    /// reason, and of a journal's entry its input
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Only signals of this bar, such as 1m or tick:100
    #[arg(long, value_name = "BAR", value_parser = parse_bar)]
    pub bar: Option<String>,
    /// Only records of this event time or later: a time in UTC such as 2026-11-24T03:00:00Z, or ns since the epoch.
    /// Begins with the oldest record
    #[arg(long, value_name = "TIME", value_parser = parse_time_or_ns, allow_negative_numbers = true)]
    pub since: Option<i64>,
    /// Only records before this event time, in the same forms. Begins with the oldest record
    #[arg(long, value_name = "TIME", value_parser = parse_time_or_ns, allow_negative_numbers = true)]
    pub until: Option<i64>,
    /// Columns of a table or of CSV, separated by commas, in this order. An unknown name lists the known ones
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub columns: Vec<String>,
    /// All columns, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
    /// Integers of JSON as strings, because jq and JavaScript change integers beyond 2^53
    #[arg(long)]
    pub raw: bool,
}

impl TailArgs {
    /// True if records are wanted that exist when the command starts.
    pub fn reads_old_records(&self) -> bool {
        self.from_beginning || self.since.is_some() || self.until.is_some()
    }
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// Aligned columns of the main fields
    // Its earlier name in `dlq list`.
    #[value(alias = "text")]
    Table,
    /// JSON with all fields, one object a line
    Json,
    /// Comma-separated values below a line of names, with exact times and numbers
    Csv,
}

/// Parses a bar. Returns it as signals name it.
pub(super) fn parse_bar(text: &str) -> Result<String, String> {
    text.parse::<BarSpec>().map(|spec| spec.to_string()).map_err(|error| error.to_string())
}

/// Parses a time, or ns since the epoch.
fn parse_time_or_ns(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(ns) => Ok(ns),
        Err(_) => parse_time(text).map_err(|error| format!("{error}, or ns since the epoch")),
    }
}

/// Arguments of `warptape topics`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape topics --log sqlite:market.db")]
pub struct TopicsArgs {
    /// Format of the list
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
    /// All columns, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
    /// Integers of JSON as strings, because jq and JavaScript change integers beyond 2^53
    #[arg(long)]
    pub raw: bool,
    /// Action on topics (default: list them)
    #[command(subcommand)]
    pub command: Option<TopicsCommand>,
}

/// Actions on topics.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum TopicsCommand {
    /// Create topics that are missing, as configured: partitions, replicas, compaction, retention
    #[command(after_help = "Example: warptape topics create --log kafka:localhost:9092")]
    Create,
    /// Print an AsyncAPI document of the topics: names as configured, schemas of their records
    #[command(after_help = "Example: warptape topics schema > asyncapi.json")]
    Schema,
}

/// Arguments of `warptape devices`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape devices -c warptape.toml")]
pub struct DevicesArgs {}

/// Arguments of `warptape config`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape config show -c warptape.toml")]
pub struct ConfigArgs {
    /// Action on the configuration
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// Actions on the configuration.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print ok, or list all mistakes (exit status 1)
    #[command(after_help = "Example: warptape config check -c warptape.toml")]
    Check,
    /// Print the effective values as TOML, each with its origin
    #[command(after_help = "Example: warptape config show -c warptape.toml --log sqlite:market.db")]
    Show,
    /// Print a JSON Schema of the file, by which editors complete and check it
    #[command(after_help = "Example: warptape config schema > warptape.schema.json
In the first line of warptape.toml: #:schema ./warptape.schema.json")]
    Schema,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bars_of_filters() {
        assert_eq!(parse_time_or_ns("1970-01-01T00:00:01.5Z"), Ok(1_500_000_000));
        assert_eq!(parse_time_or_ns("-5"), Ok(-5));
        assert!(parse_time_or_ns("noon").unwrap_err().ends_with("or ns since the epoch"));
        assert_eq!(parse_bar("60s").as_deref(), Ok("1m"));
        assert!(parse_bar("minute").unwrap_err().contains("write a time"));
    }
}
