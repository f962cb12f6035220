//! Arguments of `risk`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `warptape risk`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Each command sends one request to the topic risk.requests and waits for the result from a running pipeline. FILE holds \
a request as JSON: see docs/risk.md, and examples/risk for one of each kind. Exit status: 0 done, 1 an error result or \
none within --timeout-s or before Ctrl-C (the request is then cancelled), 3 a simulation that misses its standard \
error.

Example: warptape risk price --kind call --strike 100 --expiry-days 30 --spot 100 --volatility 0.2")]
pub struct RiskArgs {
    /// Kind of request
    #[command(subcommand)]
    pub command: RiskSubcommand,
}

/// Commands of `warptape risk`.
#[derive(Clone, Debug, Subcommand)]
pub enum RiskSubcommand {
    /// Print a JSON Schema of requests, by which editors complete and check them
    #[command(after_help = "Example: warptape risk schema > risk-request.schema.json")]
    Schema,
    /// Send a request
    #[command(flatten)]
    Ask(Box<RiskCommand>),
}

/// Kinds of requests.
#[derive(Clone, Debug, Subcommand)]
pub enum RiskCommand {
    /// Price of options, in closed form or by simulation
    #[command(after_help = "\
Without any simulation flag, the price is in closed form. A year has 365 days.

A FILE that ends in .csv or .parquet has a contract in each row, with the columns id, type (european, american, digital, \
forward, spot), kind, strike, expiry_years or expiry_days, symbol, spot, volatility, rate, dividend_yield or foreign_rate, future, \
pays and amount; each result has the id of its row.

Example: warptape risk price --kind call --strike 60000 --expiry-days 30 --symbol BINANCE:BTCUSDT
         warptape risk price examples/risk/rows/contracts.csv
         warptape risk price --kind call --strike 100 --expiry-days 365 --spot 100 --volatility 0.2 \\
           --contract asian --steps 252 --standard-error 0.01
         warptape risk price examples/risk/price_barrier.json -o json")]
    Price(PriceArgs),
    /// Price of options with Greeks
    #[command(after_help = "\
The closed form gives delta, gamma, vega, theta, rho, vanna and volga; a simulation gives the first five, each with its standard error.
American options have no vanna and no volga: `–` in tables, null in JSON.

Example: warptape risk greeks --kind put --strike 100 --expiry-days 30 --spot 100 --volatility 0.2 --rate 0.03
         warptape risk greeks examples/risk/greeks.json")]
    Greeks(PriceArgs),
    /// Volatility at which a European option has a given price
    #[command(
        after_help = "Example: warptape risk implied-vol --kind call --strike 100 --expiry-days 30 --spot 100 --price 2.5"
    )]
    ImpliedVol(ImpliedVolArgs),
    /// Value at risk and expected shortfall of a portfolio
    #[command(after_help = "\
--positions replaces the positions of FILE by those of a CSV or Parquet file, with the columns name, book, quantity, \
symbol and those of contracts. A position that cannot be valued is listed with the reason.

Example: warptape risk var examples/risk/var_historical.json
         warptape risk var examples/risk/var_historical.json --positions book.csv")]
    Var(PortfolioArgs),
    /// Profit of a portfolio in named scenarios
    #[command(after_help = "\
The command splits a book of more than 8,000 positions into several requests and adds up their profits.

Example: warptape risk stress examples/risk/stress.json
         warptape risk stress examples/risk/stress.json --positions book.parquet")]
    Stress(PortfolioArgs),
    /// Weights of least variance within bounds and a budget
    #[command(after_help = "Example: warptape risk optimise examples/risk/optimise.json")]
    Optimise(FileArgs),
    /// Results of trading rules on bars (a backtest sweep)
    #[command(after_help = "\
FILE holds closes and rules. With --symbols, the closes come from the closed bars in the topic signals. The file of \
--rules holds an array of rules. A list in place of a number makes one rule per number, and several lists make one \
rule per combination: {\"type\": \"ema-cross\", \"fast\": [5, 10], \"slow\": [20, 50]} is four rules.

Example: warptape risk sweep examples/risk/sweep.json
         warptape risk sweep --symbols SYNTH:AAAA,SYNTH:AAAB --bars 1m --rules examples/risk/rules/grid.json")]
    Sweep(SweepArgs),
    /// Send a request of any kind from a file
    #[command(after_help = "\
For request kinds without a command of their own, and for requests that a program writes.

Example: warptape risk request examples/risk/greeks.json")]
    Request(FileArgs),
    /// Cancel a request whose answer is no longer needed
    #[command(after_help = "\
The cancelled request gets an error result that names this request. Work that lanes still do for it is lost.

Example: warptape risk cancel risk-4711-1722470400000000000")]
    Cancel(CancelArgs),
}

impl RiskCommand {
    /// Returns the arguments that requests of all kinds have.
    pub fn asking(&self) -> &AskingArgs {
        match self {
            RiskCommand::Price(args) | RiskCommand::Greeks(args) => &args.asking,
            RiskCommand::ImpliedVol(args) => &args.asking,
            RiskCommand::Var(args) | RiskCommand::Stress(args) => &args.asking,
            RiskCommand::Optimise(args) | RiskCommand::Request(args) => &args.asking,
            RiskCommand::Sweep(args) => &args.asking,
            RiskCommand::Cancel(args) => &args.asking,
        }
    }
}

/// Arguments that requests of all kinds have.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct AskingArgs {
    /// Class of urgency (default: interactive)
    #[arg(long, value_parser = PossibleValuesParser::new(["critical", "interactive", "batch"]))]
    pub class: Option<String>,
    /// Tenant that asks; tenants share the lanes by their weights
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Deadline: time from now after which the answer is of no use
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(1..=DEADLINE_MS_MAX))]
    pub deadline_ms: Option<i64>,
    /// Longest wait for the result, in seconds
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout_s: u64,
    /// Id of the request; each id is answered once (default: a new id)
    #[arg(long, value_name = "ID")]
    pub request_id: Option<String>,
    /// Seed of random numbers: the same seed and market give the same result, to the bit
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<i64>,
    /// Run as a gang: all lanes begin at once, each with its share, and free lanes wait for the others
    #[arg(long)]
    pub gang: bool,
    /// Wait until the pipeline has accepted the ticks present when it got its partitions (default: use the market as
    /// far as it is processed)
    #[arg(long)]
    pub wait_for_ticks: bool,
    /// Age of a market's price, in seconds, from which on a warning is printed
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=31_536_000))]
    pub market_age_s: u64,
    /// Format of the result
    #[arg(short, long, value_enum, default_value_t = RiskFormat::Table)]
    pub output: RiskFormat,
}

/// The most milliseconds until a deadline: a year.
const DEADLINE_MS_MAX: i64 = 365 * 86_400_000;

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RiskFormat {
    /// Aligned columns
    Table,
    /// One JSON object with all fields
    Json,
}

/// Arguments of the commands that take a file only.
#[derive(Clone, Debug, Args)]
pub struct FileArgs {
    /// The request as JSON; `-` is standard input
    pub file: PathBuf,
    /// Common arguments
    #[command(flatten)]
    pub asking: AskingArgs,
}

/// Arguments of the commands that take a portfolio.
#[derive(Clone, Debug, Args)]
pub struct PortfolioArgs {
    /// The request as JSON; `-` is standard input
    pub file: PathBuf,
    /// Positions as CSV or Parquet, in place of the request's
    #[arg(long, value_name = "FILE")]
    pub positions: Option<PathBuf>,
    /// Common arguments
    #[command(flatten)]
    pub asking: AskingArgs,
}

/// Arguments of `warptape risk cancel`.
#[derive(Clone, Debug, Args)]
pub struct CancelArgs {
    /// Id of the request to cancel
    #[arg(value_name = "ID")]
    pub cancels: String,
    /// Common arguments
    #[command(flatten)]
    pub asking: AskingArgs,
}

/// Arguments of `warptape risk price` and `greeks`.
#[derive(Clone, Debug, Args)]
pub struct PriceArgs {
    /// The request as JSON, or contracts as CSV or Parquet, instead of flags; `-` is standard input
    pub file: Option<PathBuf>,
    /// The option
    #[command(flatten)]
    pub option: OptionFlags,
    /// Volatility per square root of a year: 0.2 is 20 % (default with --symbol: the market's realised one)
    #[arg(long, value_parser = finite, value_name = "V", allow_negative_numbers = true, conflicts_with = "file", help_heading = "The option")]
    pub volatility: Option<f64>,
    /// The simulation
    #[command(flatten)]
    pub simulation: SimulationFlags,
    /// Common arguments
    #[command(flatten)]
    pub asking: AskingArgs,
}

/// Arguments of `warptape risk implied-vol`.
#[derive(Clone, Debug, Args)]
pub struct ImpliedVolArgs {
    /// The request as JSON, instead of flags; `-` is standard input
    pub file: Option<PathBuf>,
    /// The option
    #[command(flatten)]
    pub option: OptionFlags,
    /// Price of the option
    #[arg(long, value_parser = finite, value_name = "P", conflicts_with = "file", help_heading = "The option")]
    pub price: Option<f64>,
    /// Common arguments
    #[command(flatten)]
    pub asking: AskingArgs,
}

/// An option on one asset, by flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The option")]
#[group(conflicts_with = "file")]
pub struct OptionFlags {
    /// Kind of the option: the right to buy or to sell
    #[arg(long, value_parser = PossibleValuesParser::new(["call", "put"]))]
    pub kind: Option<String>,
    /// Strike; an option of contract lookback without one has a floating strike
    #[arg(long, value_parser = finite, value_name = "K", allow_negative_numbers = true)]
    pub strike: Option<f64>,
    /// Days until expiry
    #[arg(long, value_parser = finite, value_name = "D", allow_negative_numbers = true)]
    pub expiry_days: Option<f64>,
    /// Symbol, `VENUE:TICKER`; its market supplies the values that are missing here
    #[arg(long)]
    pub symbol: Option<String>,
    /// Price of the asset now
    #[arg(long, value_parser = finite, value_name = "S", allow_negative_numbers = true)]
    pub spot: Option<f64>,
    /// Interest rate per year, continuously compounded
    #[arg(long, value_parser = finite, value_name = "R", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// Dividend yield per year, continuously compounded; for a currency, the foreign interest rate
    #[arg(
        value_parser = finite,
        long,
        value_name = "Q",
        allow_negative_numbers = true,
        visible_alias = "foreign-rate",
        conflicts_with = "future"
    )]
    pub dividend_yield: Option<f64>,
    /// The price is that of a future: rates only discount
    #[arg(long)]
    pub future: bool,
}

/// A price by simulation, by flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Simulation")]
#[group(conflicts_with = "file")]
pub struct SimulationFlags {
    /// Contract, which defines the payoff
    #[arg(long, value_parser = PossibleValuesParser::new(["european", "asian", "barrier", "lookback", "american"]))]
    pub contract: Option<String>,
    /// Kind of the barrier: where it lies, and whether a touch ends the option or starts it
    #[arg(long, value_parser = PossibleValuesParser::new(["up-out", "up-in", "down-out", "down-in"]))]
    pub barrier_kind: Option<String>,
    /// Price of the barrier
    #[arg(long, value_parser = finite, value_name = "B")]
    pub barrier: Option<f64>,
    /// Steps of a path: the fixings of an Asian option, or the exercise dates of an American one that is simulated
    /// (default: 1)
    #[arg(long, value_name = "N")]
    pub steps: Option<i32>,
    /// The most samples (default: 1,048,576)
    #[arg(long, value_name = "N")]
    pub paths: Option<i64>,
    /// Stop at this standard error of the price
    #[arg(long, value_parser = finite, value_name = "E")]
    pub standard_error: Option<f64>,
    /// Precision in which paths are computed
    #[arg(long, value_parser = PossibleValuesParser::new(["f64", "mixed"]))]
    pub precision: Option<String>,
    /// Source of the random numbers
    #[arg(long, value_parser = PossibleValuesParser::new(["philox", "sobol"]))]
    pub sampling: Option<String>,
    /// Take pairs of paths that mirror each other as samples; not with sobol
    #[arg(long)]
    pub antithetic: bool,
}

impl SimulationFlags {
    /// True if the contract is American and no flag of its simulation is given.
    pub fn is_of_boundary(&self) -> bool {
        self.contract.as_deref() == Some("american") && !self.any_of_paths()
    }

    /// True if any option of a simulation is given.
    pub fn any(&self) -> bool {
        let SimulationFlags { contract, barrier_kind, barrier, .. } = self;
        contract.is_some() || barrier_kind.is_some() || barrier.is_some() || self.any_of_paths()
    }

    fn any_of_paths(&self) -> bool {
        let SimulationFlags { steps, paths, standard_error, precision, sampling, antithetic, .. } = self;
        steps.is_some()
            || paths.is_some()
            || standard_error.is_some()
            || precision.is_some()
            || sampling.is_some()
            || *antithetic
    }
}

/// Arguments of `warptape risk sweep`.
#[derive(Clone, Debug, Args)]
pub struct SweepArgs {
    /// The request as JSON, instead of recorded bars; `-` is standard input
    #[arg(required_unless_present = "symbols")]
    pub file: Option<PathBuf>,
    /// Recorded bars
    #[command(flatten)]
    pub recorded: Option<RecordedFlags>,
    /// Common arguments
    #[command(flatten)]
    pub asking: AskingArgs,
}

/// A sweep over bars in the log, by flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Recorded bars")]
#[group(conflicts_with = "file")]
pub struct RecordedFlags {
    /// Symbols, `VENUE:TICKER`, separated by commas
    #[arg(long, value_name = "A,B", value_delimiter = ',', required = false, requires_all = ["bars", "rules"])]
    pub symbols: Vec<String>,
    /// Specification of the bars, as in stages.bars, such as 1m
    #[arg(long, value_name = "SPEC", required = false, requires = "symbols")]
    pub bars: String,
    /// Rules as a JSON array
    #[arg(long, value_name = "FILE", required = false, requires = "symbols")]
    pub rules: PathBuf,
    /// Cost of each notional traded: 0.0001 is a basis point
    #[arg(long, value_parser = finite, value_name = "C", requires = "symbols")]
    pub cost: Option<f64>,
}

/// Parses a finite number, as JSON requires.
fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "not a finite number".to_owned())
}
