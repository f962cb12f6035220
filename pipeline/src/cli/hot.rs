//! Arguments of `hot`, and the flag that `run` and `demo` share with it.

use clap::{Args, Subcommand, ValueEnum};

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
Asks the Redis of hot_state.url. With `memory`, the default, it folds the answer from the log: slower, always right.
A symbol that has no signal yet is not known: exit status 1, with the names that are near.

Example: warptape hot get BINANCE:BTCUSDT -o json --hot-state redis://localhost")]
pub struct HotGetArgs {
    /// Symbol, `VENUE:TICKER`
    pub symbol: String,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = HotFormat::Table)]
    pub output: HotFormat,
}

/// Arguments of `warptape hot result`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Asks the Redis of hot_state.url, which keeps results for hot_state.result_ttl_s. With `memory`, the default, it looks
through the results of the log: slower, and as far back as the log goes.
A request without a result is exit status 1. A result that says why there is no answer is a result: exit status 0.

Example: warptape hot result desk-7 -o json --hot-state redis://localhost")]
pub struct HotResultArgs {
    /// Id of the request
    pub request_id: String,
    /// Format of the output
    #[arg(short, long, value_enum, default_value_t = HotFormat::Table)]
    pub output: HotFormat,
}

/// How hot state is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HotFormat {
    /// Aligned columns
    Table,
    /// One JSON object with all fields
    Json,
}
