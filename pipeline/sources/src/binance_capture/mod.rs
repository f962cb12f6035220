//! Recorded Binance streams, combined or raw: text files, plain or gzipped, with a line `<receive ns> <JSON>` per
//! event.
//!
//! | event | becomes |
//! | --- | --- |
//! | `trade` | a trade at its `T`; the seller was the aggressor where the buyer was the maker (`m`) |
//! | `aggTrade` | the same as of `trade`; a symbol's trades are those of the stream, `trade` or `aggTrade`, that came first |
//! | `bookTicker` | a quote at its `T`, else its `E` |
//! | book ticker of the spot market, which has neither | a quote at the greatest event time (`E` or `T`) seen before it in its file, or at its receive time where there was none |
//! | `depthUpdate` | nothing, but its times count for the line above |
//! | `trade` of price or size 0, a marker and no execution | nothing |
//! | `trade` of futures whose order type (`X`) is `INSURANCE_FUND`, `ADL` or `NA`: a transfer that `aggTrade` does not tell | nothing |
//! | an array of events, anything else | nothing |
//!
//! Ignored events are counted by kind.
//!
//! Times are milliseconds or microseconds, distinguished by magnitude. Several files are merged by receive time; equal
//! times are in the order of the files. So the log of a partition has the events in order of arrival, which determines
//! lateness.

mod message;
mod messages;
mod payload;

use std::path::PathBuf;

pub use self::messages::BinanceMessages;
use self::messages::TradeStreams;
use super::SourceError;
use super::arrival_merge::ArrivalMerge;
use super::capture::CaptureFile;

/// Ticks of one or more recordings.
pub type BinanceCapture = ArrivalMerge<CaptureFile<BinanceMessages>>;

impl BinanceCapture {
    /// Opens recordings, each with the venue of its symbols: `BTCUSDT` of venue `BINANCE` becomes `BINANCE:BTCUSDT`.
    ///
    /// # Errors
    /// If no file is given, or one cannot be opened.
    pub fn open(files: &[(String, PathBuf)]) -> Result<BinanceCapture, SourceError> {
        if files.is_empty() {
            return Err(SourceError::NoFiles);
        }
        let streams = TradeStreams::default();
        let open = |(venue, path): &(String, PathBuf)| {
            CaptureFile::open(path, BinanceMessages::sharing(venue, streams.clone()))
        };
        Ok(ArrivalMerge::new(files.iter().map(open).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use warptape_events::tick::TickKind;

    use super::*;
    use crate::test_ticks::write_file;
    use crate::{PassedOver, TickSource};

    /// The recorded files, with their numbers of trades and of book tickers according to their README.
    const RECORDINGS: [(&str, &str, u64, u64); 4] = [
        ("BINANCE", "spot-btcusdt_20240808.jsonl.gz", 9_757, 28_040),
        ("BINANCE", "spot-ethusdt_20240808.jsonl.gz", 6_106, 24_077),
        ("BINANCE-USDM", "usdm-btcusdt_20240808.jsonl.gz", 21_313, 66_089),
        ("BINANCE-USDM", "usdm-ethusdt_20240808.jsonl.gz", 14_076, 53_992),
    ];

    #[test]
    fn what_is_left_out_is_the_beginning_of_the_whole() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let trade = |(received, stream, symbol): &(u32, &str, &str)| {
            format!(
                "{received} {{\"e\":\"{stream}\",\"E\":1723161255343,\"s\":\"{symbol}\",\"t\":{received},\"a\":{received},\
                 \"p\":\"1\",\"q\":\"2\",\"T\":1723161255342,\"m\":true}}\n"
            )
        };
        // Each time, the other file decides from which stream the symbol's trades are taken.
        let first =
            [(1, "trade", "A"), (4, "trade", "B"), (5, "trade", "A"), (7, "trade", "B"), (9, "trade", "A")];
        let second = [(2, "aggTrade", "B"), (3, "aggTrade", "A"), (6, "aggTrade", "B"), (8, "aggTrade", "A")];
        let files = [
            ("a.jsonl", first.iter().map(trade).collect::<String>()),
            ("b.jsonl", second.iter().map(trade).collect()),
        ];
        let files = files.map(|(name, text)| ("V".to_owned(), write_file(&folder, name, text)));
        let open = || BinanceCapture::open(&files).expect("the files can be opened");
        let rest = |source: &mut BinanceCapture| -> Vec<(i64, usize)> {
            let mut rest = Vec::new();
            while let Some(tick) = source.next() {
                rest.push((tick.expect("a trade").trade_id, source.last_input()));
            }
            rest
        };
        let whole = rest(&mut open());
        assert_eq!(whole.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 5, 6, 9]);
        for taken in 0..=whole.len() {
            let mut source = open();
            for input in 0..files.len() {
                source.leave(input, whole[..taken].iter().filter(|(_, of)| *of == input).count() as u64);
            }
            assert_eq!(rest(&mut source), whole[taken..], "{taken} are left out");
        }
    }

    #[test]
    fn recordings_give_the_ticks_their_readme_counts_in_order_of_receipt() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/binance-2024-08");
        if !folder.is_dir() {
            println!("not run: the recordings are absent ({})", folder.display());
            return;
        }
        let files = RECORDINGS.map(|(venue, name, _, _)| (venue.to_owned(), folder.join(name)));
        let mut source = BinanceCapture::open(&files).expect("the recordings can be opened");
        let mut counts: BTreeMap<(String, bool), u64> = BTreeMap::new();
        let mut received_ns = 0;
        for tick in &mut source {
            let tick = tick.expect("the recordings parse");
            assert!(received_ns <= tick.receive_time_ns, "merged by receive time");
            received_ns = tick.receive_time_ns;
            // The recorder's clock was about 1.3 s behind; a spot book ticker has the time of an earlier event.
            let lag_ns = tick.event_time_ns - tick.receive_time_ns;
            assert!((0..2_000_000_000).contains(&lag_ns), "event and receive time belong together: {tick:?}");
            match tick.kind {
                TickKind::Trade => {
                    assert!(tick.price_e9 > 0 && tick.size_e9 > 0 && tick.trade_id > 0, "{tick:?}")
                }
                TickKind::Quote => {
                    assert!(0 < tick.bid_price_e9 && tick.bid_price_e9 < tick.ask_price_e9, "{tick:?}")
                }
            }
            *counts.entry((tick.symbol, tick.kind == TickKind::Trade)).or_default() += 1;
        }
        let expected: BTreeMap<(String, bool), u64> = RECORDINGS
            .iter()
            .zip(["BTCUSDT", "ETHUSDT", "BTCUSDT", "ETHUSDT"])
            .flat_map(|((venue, _, trades, quotes), ticker)| {
                let symbol = format!("{venue}:{ticker}");
                [((symbol.clone(), true), *trades), ((symbol, false), *quotes)]
            })
            .collect();
        assert_eq!(counts, expected);
        // The files have 3,451 + 3,434 + 6,551 + 6,586 depth updates, and one depth snapshot each.
        let kinds = [("depthUpdate", 20_022), ("event without a name", 4)];
        let ignored = kinds.map(|(kind, count)| (kind.to_owned(), count)).into();
        assert_eq!(source.passed_over(), PassedOver { ignored, bad: 0 });
        let progress = source.progress();
        assert_eq!(Some(progress.done), progress.total);
    }
}
