//! Arguments of `hot`, and the flag that `run` and `demo` share with it.

use clap::{Args, Subcommand, ValueEnum};

use super::ListFormat;

/// Location of hot state.
#[derive(Clone, Debug, Args)]
pub struct HotStateArg {
    /// Hot state: `redis://HOST:PORT`, `rediss://…` for TLS, or `memory` (sets hot_state.url)
    #[arg(id = "hot-state", long = "hot-state", global = true, value_name = "URL")]
    pub url: Option<String>,
}

/// Arguments of `warptape hot`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape hot get BINANCE:BTCUSDT --hot-state redis://localhost")]
pub struct HotArgs {
    /// Query on hot state
    #[command(subcommand)]
    pub command: HotCommand,
    /// Location of hot state
    #[command(flatten)]
    pub hot_state: HotStateArg,
}

/// Queries on hot state.
#[derive(Clone, Debug, Subcommand)]
pub enum HotCommand {
    /// Print the latest signals and indicators of a symbol, and where it is computed
    Get(HotGetArgs),
    /// Print the result of a risk request
    Result(HotResultArgs),
}

/// Arguments of `warptape hot get`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Reads from the Redis of hot_state.url. If that is `memory`, the default, the command computes the answer from the log, which is slower and
always up to date. A symbol without any signal is unknown: the command lists similar names and exits with status 1.

Example: warptape hot get BINANCE:BTCUSDT -o json --hot-state redis://localhost")]
pub struct HotGetArgs {
    /// Symbol, `VENUE:TICKER`
    pub symbol: String,
    /// Format of the output; JSON is one object, and CSV has the signals
    #[arg(short, long, value_enum, default_value_t = ListFormat::Table)]
    pub output: ListFormat,
    /// All columns, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
}

/// Arguments of `warptape hot result`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Reads from the Redis of hot_state.url, which keeps results for hot_state.result_ttl_s. If that is `memory`, the default, the command searches
the results in the log, which is slower and reaches back as far as the log does.
Exit status: 0 there is a result, also an error result; 1 there is none.

Example: warptape hot result desk-7 -o json --hot-state redis://localhost")]
pub struct HotResultArgs {
    /// Id of the request
    pub request_id: String,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = HotFormat::Table)]
    pub output: HotFormat,
    /// All columns, uncut, whatever the width of the terminal
    #[arg(long)]
    pub wide: bool,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HotFormat {
    /// Aligned columns
    Table,
    /// One JSON object with all fields
    Json,
}
