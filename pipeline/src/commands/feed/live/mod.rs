//! `feed binance-live` and `feed coinbase-live`: publish a venue's messages until a signal or a limit.
//!
//! The connection has its own thread, so a slow commit does not delay the times of receipt.

mod connection;
mod feeding;
mod recorder;
mod words;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;

use super::{publisher_name, stopped, summary};
use crate::cli::{Interrupt, LiveSource};
use crate::commands::topics::ready_topics;
use crate::feed_ledger::{FeedInput, FeedLedger, claim};
use crate::open::{Purpose, open_log};
use crate::printable::stdout;
use crate::publisher::Publisher;
use crate::settings::Settings;
use crate::usage_error::UsageError;
use warptape_sources::live::{LiveSession, LiveVenue, SYMBOLS_MAX};

use self::connection::Target;
use self::feeding::{Feeding, Limits};
use self::recorder::Recorder;

/// Publishes the ticks of a venue.
pub fn execute(source: &LiveSource, settings: &Settings) -> anyhow::Result<ExitCode> {
    let (venue, args) = source.parts();
    let tickers = tickers(venue, &args.symbols)?;
    let name = args.venue.as_deref().unwrap_or(venue.name());
    let address = venue.address(args.url.as_deref().unwrap_or(venue.url()), &tickers);
    let target = Target::new(&address, venue.subscription(&tickers))?;
    let recorder = args.record.as_deref().map(Recorder::create).transpose()?;
    let interrupt = Interrupt::install()?;
    let log = open_log(settings, Purpose::Feed)?.log;
    let partitions = ready_topics(&*log, settings, Purpose::Feed)?;
    let topics = &settings.topics.names;
    let inputs: Vec<FeedInput> = tickers.iter().map(|ticker| input(venue, name, ticker)).collect();
    let _claims = claim(&*log, &topics.feeds, &inputs)?;
    let stopping = interrupt.clone();
    let mut publisher = Publisher::new(
        &log,
        &publisher_name(topics, &inputs),
        &topics.ticks,
        partitions,
        args.batch,
        Box::new(move || stopping.since()),
    )?;
    // A live feed cannot be continued, so the ledger keeps only the scales of prices.
    let ledger = FeedLedger::open(&*log, &topics.feeds, &[], false)?;
    let mut session = LiveSession::new(venue, name, &tickers);
    ledger.scales().iter().for_each(|(symbol, scale)| session.know_scale(symbol, *scale));
    publisher.keep(ledger);

    let started = Instant::now();
    let limits = Limits {
        end: args.seconds.and_then(|seconds| started.checked_add(std::time::Duration::from_secs(seconds))),
        ticks: args.until_ticks.unwrap_or(u64::MAX),
        clock_warn_ms: args.clock_warn_ms,
    };
    let mut feeding = Feeding::new(name, session, publisher, recorder, limits);
    let fed = feeding.run(&target.start(interrupt.clone())?, &interrupt);
    let published = feeding.published();
    fed.with_context(|| stopped(published.ticks, feeding.in_doubt_ticks()))?;
    let first = summary::published(published, &log.url(), started.elapsed());
    let interrupted = if interrupt.is_set() { ", interrupted" } else { "" };
    feeding.write_summary(&mut stdout(), &format!("{first}{interrupted}"), venue)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the tickers in the venue's spelling, without duplicates.
fn tickers(venue: LiveVenue, texts: &[String]) -> Result<Vec<String>, UsageError> {
    let ticker = |text: &String| {
        let refused = |expected| UsageError(format!("--symbols: found `{text:.40}`, expected {expected}"));
        venue.ticker(text).map_err(refused)
    };
    let tickers: BTreeSet<String> = texts.iter().map(ticker).collect::<Result<_, _>>()?;
    if tickers.len() > SYMBOLS_MAX {
        let count = tickers.len();
        return Err(UsageError(format!(
            "--symbols: {count} symbols are too many; a feed takes {SYMBOLS_MAX}: start another feed for the \
             others"
        )));
    }
    Ok(tickers.into_iter().collect())
}

/// Returns the ledger's input of a symbol. The log uses it to refuse a second live feed of that symbol.
fn input(venue: LiveVenue, name: &str, ticker: &str) -> FeedInput {
    let source = format!("{} symbol={name}:{ticker}", venue.source());
    FeedInput { source, path: None, is_sorted: false, other_order: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_named_once_and_have_limits() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let found = tickers(LiveVenue::Binance, &texts(&["ethusdt", "BTCUSDT", "BtcUsdt"]));
        assert_eq!(found.expect("tickers"), ["BTCUSDT", "ETHUSDT"]);
        let many: Vec<String> = (0..=SYMBOLS_MAX).map(|number| format!("A{number}")).collect();
        assert!(tickers(LiveVenue::Binance, &many[1..]).is_ok());
        for wrong in [many, texts(&["BTC/USD"]), texts(&[""])] {
            let error = tickers(LiveVenue::Binance, &wrong).expect_err("refused").to_string();
            assert!(error.starts_with("--symbols"), "{error}");
        }
    }
}
