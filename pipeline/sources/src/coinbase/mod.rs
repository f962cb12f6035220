//! Messages of Coinbase Exchange's WebSocket feed, live or recorded: a line `<receive ns> <JSON>` per message.
//!
//! | message | becomes |
//! | --- | --- |
//! | `match` | a trade at its `time`; `side` is the maker's, so the aggressor is the other one |
//! | `ticker` | a quote of `best_bid` and `best_ask` at its `time`, without sizes if the message has none |
//! | `last_match`, `heartbeat` | nothing; a live feed compares their trade id with the trades that it got |
//! | `match` of price or size 0 | nothing |
//! | `error` | nothing; it ends a live feed |
//! | any other | nothing |
//!
//! Messages without ticks are counted by type.

mod messages;

use std::path::PathBuf;

pub use self::messages::CoinbaseMessages;
use super::SourceError;
use super::arrival_merge::ArrivalMerge;
use super::capture::CaptureFile;

/// Ticks of one or more recordings.
pub type CoinbaseCapture = ArrivalMerge<CaptureFile<CoinbaseMessages>>;

impl CoinbaseCapture {
    /// Opens recordings, each with the venue of its symbols: `BTC-USD` of venue `COINBASE` becomes `COINBASE:BTC-USD`.
    ///
    /// # Errors
    /// If no file is given, or one cannot be opened.
    pub fn open(files: &[(String, PathBuf)]) -> Result<CoinbaseCapture, SourceError> {
        if files.is_empty() {
            return Err(SourceError::NoFiles);
        }
        let open = |(venue, path): &(String, PathBuf)| CaptureFile::open(path, CoinbaseMessages::new(venue));
        Ok(ArrivalMerge::new(files.iter().map(open).collect::<Result<_, _>>()?))
    }
}
