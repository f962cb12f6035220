//! Arguments of `feed`.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use super::count::{parse_count, parse_count_from_one};
use super::live_feed::LiveSource;
use crate::usage_error::UsageError;

/// Arguments of `warptape feed`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Creates missing topics. All ticks of a symbol go to one partition, chosen as Kafka's clients choose it \
for the symbol as key, and stay in order. The log records what was fed: feeding the same source again adds nothing, a \
source that has grown adds its new ticks, and an interrupted feed resumes where it stopped.

Example: warptape feed synth --symbols 100 --ticks 1000000 --log sqlite:market.db")]
pub struct FeedArgs {
    /// Source of the ticks
    #[command(subcommand)]
    pub source: FeedSource,
}

/// Sources of ticks.
#[derive(Clone, Debug, Subcommand)]
pub enum FeedSource {
    /// Files and markets that can be fed again.
    #[command(flatten)]
    Stored(StoredSource),
    /// Venues that are fed live.
    #[command(flatten)]
    Live(LiveSource),
}

/// Sources that can be fed again.
#[derive(Clone, Debug, Subcommand)]
pub enum StoredSource {
    /// Recordings of Binance's streams, combined or raw, plain or gzip
    #[command(after_help = BINANCE_CAPTURE)]
    BinanceCapture(CaptureArgs),
    /// Recordings of Coinbase Exchange's feed, plain or gzip
    #[command(after_help = COINBASE_CAPTURE)]
    CoinbaseCapture(CaptureArgs),
    /// CSV files: Binance's trade and aggTrade dumps, known by their names, and any others with --map
    Csv(CsvArgs),
    /// Databento files (trades; mbp-1, mbp-10, tbbo, bbo; cmbp-1, tcbbo, cbbo), plain or zstd
    Dbn(DbnArgs),
    /// A synthetic market
    Synth(SynthArgs),
}

const BINANCE_CAPTURE: &str = "\
Each line has the time of receipt in nanoseconds, a blank, and the JSON. The command reads trade, aggTrade and \
bookTicker events; it takes a symbol's trades from trade or aggTrade, whichever comes first. It counts and leaves out \
all other events, trades of price or size 0, and a futures market's transfers (X is INSURANCE_FUND, ADL or NA), which \
aggTrade lacks too. Several files are merged by time of receipt. The same ticker on two venues is two symbols.

Example: warptape feed binance-capture BINANCE=spot.txt.gz BINANCE-USDM=perp.txt.gz";

const COINBASE_CAPTURE: &str = "\
Each line has the time of receipt in nanoseconds, a blank, and the JSON. The command reads the messages match and \
ticker. It counts and leaves out all others, and trades of price or size 0. Several files are merged by time of \
receipt.

Example: warptape feed coinbase-capture btc.jsonl --venue COINBASE";

/// Arguments that all sources have.
#[derive(Clone, Debug, Args)]
pub struct FeedCommon {
    /// Number of ticks of one partition in each record
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_batch)]
    pub batch: NonZeroUsize,
    /// Publish at most this many ticks per second
    #[arg(long, value_name = "TICKS/S", value_parser = parse_count_from_one)]
    pub rate: Option<u64>,
    /// With --rate, commit ticks every so many milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100, requires = "rate", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub commit_ms: u64,
    /// Publish all ticks, also those that are in the log already, which then count twice
    #[arg(long)]
    pub again: bool,
}

/// Treatment of gaps in the times of files.
#[derive(Clone, Copy, Debug, Args)]
pub struct GapArgs {
    /// Have `run` follow gaps longer than stages.future_max_ms if at least eight rows lie after them. Event time is
    /// set in the log before the first tick after the gap. Ticks of other feeds that are further behind are late from
    /// then on
    #[arg(long)]
    pub follow_gaps: bool,
}

/// The most ticks that a record may hold.
const BATCH_TICKS_MAX: usize = warptape_schemas::ROWS_MAX;

pub(super) fn parse_batch(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<NonZeroUsize>() {
        Ok(batch) if batch.get() <= BATCH_TICKS_MAX => Ok(batch),
        _ => Err(format!("give a whole number from 1 to {BATCH_TICKS_MAX}")),
    }
}

/// Arguments of feeds of recorded messages.
#[derive(Clone, Debug, Args)]
pub struct CaptureArgs {
    /// Recordings; NAME=FILE if a file's venue differs from --venue
    #[arg(required = true, value_name = "[NAME=]FILE")]
    pub files: Vec<VenueFile>,
    /// Venue of the files that name none
    #[arg(long, value_name = "NAME", value_parser = parse_venue)]
    pub venue: Option<String>,
    /// Gaps
    #[command(flatten)]
    pub gaps: GapArgs,
    /// Common arguments
    #[command(flatten)]
    pub common: FeedCommon,
}

impl CaptureArgs {
    /// Returns each file with its venue.
    pub fn venues(&self) -> Result<Vec<(String, PathBuf)>, UsageError> {
        let named = |file: &VenueFile| {
            let venue = file.venue.clone().or_else(|| self.venue.clone()).ok_or_else(|| {
                UsageError(format!(
                    "{}: the venue is missing; give --venue NAME for all files, or NAME={} for this one",
                    file.path.display(),
                    file.path.display()
                ))
            })?;
            Ok((venue, file.path.clone()))
        };
        self.files.iter().map(named).collect()
    }
}

/// A file, with its venue if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueFile {
    /// Venue name; `None` if the argument is a plain path.
    pub venue: Option<String>,
    /// The file.
    pub path: PathBuf,
}

impl FromStr for VenueFile {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<VenueFile, Infallible> {
        let named =
            text.split_once('=').filter(|(venue, path)| parse_venue(venue).is_ok() && !path.is_empty());
        Ok(match named {
            Some((venue, path)) => VenueFile { venue: Some(venue.to_owned()), path: path.into() },
            None => VenueFile { venue: None, path: text.into() },
        })
    }
}

pub(super) fn parse_venue(text: &str) -> Result<String, String> {
    let allowed =
        |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'_' | b'-');
    if (1..=24).contains(&text.len()) && text.bytes().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("give a venue of 1 to 24 characters of A-Z 0-9 . _ -, such as BINANCE".to_owned())
    }
}

/// Arguments of `warptape feed csv`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A map names the column of each field, by its name or its number from 1. A constant stands in single quotes. Fields: \
symbol, time, receive_time, date, price, size, trade_id, side, buyer_is_maker, bid_price, bid_size, ask_price, \
ask_size, kind, only, except. A tick needs a symbol, a time, and a price and size or a quote; docs/feeds.md has a map \
for each of many vendors.
  time=ts:ms                                 unit of a time: s, ms, us, ns, rfc3339, or a strptime format
  date=1:'%Y.%m.%d',time=2:'%H:%M:%S',zone=America/New_York   separate date and time, in a time zone
  price=px:e9                                prices in units of 1e-9
  side=s,buy='B|1',sell='S|-1'               other words for the aggressor
  only=type:'4|5', except=flag:'X'           lines to read, lines to leave out
  delimiter=';', decimal=comma, thousands=dot, header=no
  empty=last                                 an empty side of a quote repeats the previous one
  signed=yes                                 prices may be 0 or below
  round=9                                    as --round
The command refuses files before it publishes anything if rows are not in the order of their times, if times jump \
ahead by more than stages.future_max_ms, or if a tick cannot hold a number. It counts trades of price or size 0 and \
leaves them out.

Example: warptape feed csv BTCUSDT-trades-2024-08-08.zip --venue BINANCE
         warptape feed csv ticks.csv --map \"symbol=sym,time=ts:ms,price=px,size=qty,side=side\"
         warptape feed csv trades.csv quotes.csv --map \"$TRADES\" --map \"$QUOTES\"")]
pub struct CsvArgs {
    /// Files, plain or packed (gzip, zstd, zip of one file), in UTF-8 or UTF-16
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Meaning of the columns: FIELD=COLUMN pairs, see below; one for all files, or one for each of them
    #[arg(long, value_name = "MAP")]
    pub map: Vec<String>,
    /// Venue of tickers that name none (default for Binance's dumps: BINANCE)
    #[arg(long, value_name = "NAME", value_parser = parse_venue)]
    pub venue: Option<String>,
    /// Round prices and sizes to N decimals, half to even, such as 9 for printed floats (61686.299999999996); a map's
    /// own `round` wins
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=18))]
    pub round: Option<u8>,
    /// Feed the rows of each file in the order of their times
    #[arg(long)]
    pub sort: bool,
    /// Feed the rows in the order of the file, although some are late or lie after a gap that is not followed
    #[arg(long, conflicts_with = "sort")]
    pub keep_order: bool,
    /// Count lines that do not parse and write them to FILE.bad, instead of ending at the first
    #[arg(long)]
    pub skip_bad: bool,
    /// Gaps
    #[command(flatten)]
    pub gaps: GapArgs,
    /// Common arguments
    #[command(flatten)]
    pub common: FeedCommon,
}

/// Arguments of `warptape feed dbn`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The command reads the first level of mbp-10, and of bbo and cbbo the book at the end of each interval. It counts \
trades of size 0 and leaves them out. The id of a trade is its sequence. If a data set has several publishers, each is \
a venue, such as DBEQ.BASIC.XCHI; consolidated books belong to the data set.

Example: warptape feed dbn es-trades.dbn.zst --venue GLBX")]
pub struct DbnArgs {
    /// Files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Venue of the symbols (default: the name of the data set)
    #[arg(long, value_name = "NAME", value_parser = parse_venue)]
    pub venue: Option<String>,
    /// Skip records that cannot be used, such as those of an instrument without a symbol; they are counted
    #[arg(long)]
    pub skip_bad: bool,
    /// Gaps
    #[command(flatten)]
    pub gaps: GapArgs,
    /// Common arguments
    #[command(flatten)]
    pub common: FeedCommon,
}

/// Arguments of `warptape feed synth`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: warptape feed synth --symbols 100 --ticks 1000000 --seed 7 --rate 50000")]
pub struct SynthArgs {
    /// Symbols of the market
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=456_976))]
    pub symbols: u32,
    /// Ticks to publish, such as 250000 or 1e6
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = parse_count)]
    pub ticks: u64,
    /// Seed of the market: the same seed gives the same ticks on every machine
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Common arguments
    #[command(flatten)]
    pub common: FeedCommon,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_name_its_venue() {
        let check = |text: &str, venue: Option<&str>, path: &str| {
            let file: VenueFile = text.parse().unwrap();
            assert_eq!((file.venue.as_deref(), file.path), (venue, PathBuf::from(path)), "{text}");
        };
        check("a.gz", None, "a.gz");
        check("BINANCE=a.gz", Some("BINANCE"), "a.gz");
        check("BINANCE=a=b.gz", Some("BINANCE"), "a=b.gz");
        check("./dir=1/a.gz", None, "./dir=1/a.gz");
        check("=a", None, "=a");
        check("X=", None, "X=");
    }

    #[test]
    fn a_file_without_a_venue_is_refused() {
        let args = |files: &[&str], venue: Option<&str>| CaptureArgs {
            files: files.iter().map(|text| text.parse().unwrap()).collect(),
            venue: venue.map(str::to_owned),
            gaps: GapArgs { follow_gaps: false },
            common: FeedCommon { batch: NonZeroUsize::MIN, rate: None, commit_ms: 100, again: false },
        };
        let error = args(&["A=x", "y"], None).venues().unwrap_err().to_string();
        assert!(error.contains("y: the venue is missing") && error.contains("--venue"), "{error}");
        let venues = args(&["A=x", "y"], Some("B")).venues().unwrap();
        assert_eq!(venues, [("A".to_owned(), "x".into()), ("B".to_owned(), "y".into())]);
    }

    #[test]
    fn batches_have_limits() {
        assert_eq!(parse_batch("65536").map(NonZeroUsize::get), Ok(65_536));
        for wrong in ["0", "65537", "-1", "x", ""] {
            assert!(parse_batch(wrong).is_err(), "{wrong}");
        }
    }
}
