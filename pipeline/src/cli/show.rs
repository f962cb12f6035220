//! Arguments of the commands that only look: `tail`, `topics`, `devices`, `config`.

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `warptape tail`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Without --from-beginning only new records are printed. Ends on Ctrl-C, or with --exit-at-end.

Example: warptape tail signals --from-beginning -o json | head")]
pub struct TailArgs {
    /// Topic, with or without the configured prefix: ticks, signals, journal, snapshots, late, dead-letter, lifecycle,
    /// risk.requests, risk.results, feeds, control, control.results
    pub topic: String,
    /// Format of the records
    #[arg(short, long, value_enum, default_value_t = TailFormat::Table)]
    pub output: TailFormat,
    /// Begin with the oldest record
    #[arg(long)]
    pub from_beginning: bool,
    /// End after the last record that exists when the command starts
    #[arg(long)]
    pub exit_at_end: bool,
    /// Only records of this symbol, `VENUE:TICKER`
    #[arg(long, value_name = "SYMBOL")]
    pub symbol: Option<String>,
}

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TailFormat {
    /// Aligned columns of the main fields
    Table,
    /// One JSON object a line with all fields
    Json,
}

/// Arguments of `warptape topics`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape topics --log sqlite:market.db")]
pub struct TopicsArgs {
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
