//! Arguments of live feeds.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::count::parse_count_from_one;
use super::feed::{parse_batch, parse_venue};
use warptape_sources::live::LiveVenue;

/// Venues that are fed live.
#[derive(Clone, Debug, Subcommand)]
pub enum LiveSource {
    /// Binance live: trades, best bid and best ask (needs the feature live-feeds)
    #[command(after_help = BINANCE)]
    BinanceLive(LiveArgs),
    /// Coinbase Exchange live: trades, best bid and best ask (needs the feature live-feeds)
    #[command(after_help = COINBASE)]
    CoinbaseLive(LiveArgs),
}

const BINANCE: &str = "\
The command takes the streams trade and bookTicker of each symbol over one WebSocket. A connection that ends is made \
again after 250 ms at first, and after 30 s at most. Trades that are missing by their ids, cut connections and the \
difference of the clocks are reported. docs/feeds.md says what holds across connections and restarts.

Example: warptape feed binance-live --symbols BTCUSDT,ETHUSDT --record btc.jsonl --log sqlite:live.db
         warptape feed binance-capture btc.jsonl --venue BINANCE --log sqlite:again.db";

const COINBASE: &str = "\
The command takes the channels matches, ticker and heartbeat of each product over one WebSocket. A connection that ends \
is made again after 250 ms at first, and after 30 s at most. Trades that are missing by their ids, cut connections and \
the difference of the clocks are reported. docs/feeds.md says what holds across connections and restarts.

Example: warptape feed coinbase-live --symbols BTC-USD,ETH-USD --record btc.jsonl --log sqlite:live.db
         warptape feed coinbase-capture btc.jsonl --venue COINBASE --log sqlite:again.db";

/// Arguments of a live feed.
#[derive(Clone, Debug, Args)]
pub struct LiveArgs {
    /// Tickers as the venue has them, between commas
    #[arg(long, value_name = "TICKERS", required = true, value_delimiter = ',')]
    pub symbols: Vec<String>,
    /// Venue of the symbols (default: BINANCE or COINBASE)
    #[arg(long, value_name = "NAME", value_parser = parse_venue)]
    pub venue: Option<String>,
    /// Address of the server: wss://HOST[:PORT], or ws:// without TLS (default: the venue's public one)
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Write the received messages to a new file, which a feed of captures reads; messages that are no part of the feed
    /// go to FILE.bad
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// End after this many seconds (default: at Ctrl-C)
    #[arg(long, value_name = "S", value_parser = parse_count_from_one)]
    pub seconds: Option<u64>,
    /// End after this many ticks
    #[arg(long, value_name = "N", value_parser = parse_count_from_one)]
    pub until_ticks: Option<u64>,
    /// Warn if trades are received this much before or after their event time, in the median, which is known up to 10 s
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(..10_000))]
    pub clock_warn_ms: u64,
    /// Largest number of ticks of one partition in each record
    #[arg(long, value_name = "N", default_value = "256", value_parser = parse_batch)]
    pub batch: NonZeroUsize,
}

impl LiveSource {
    /// Returns the venue and its arguments.
    pub fn parts(&self) -> (LiveVenue, &LiveArgs) {
        match self {
            LiveSource::BinanceLive(args) => (LiveVenue::Binance, args),
            LiveSource::CoinbaseLive(args) => (LiveVenue::Coinbase, args),
        }
    }
}
