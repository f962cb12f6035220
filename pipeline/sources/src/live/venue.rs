//! The venues of live feeds: addresses, symbols and subscriptions.

use serde_json::json;

use crate::binance_capture::BinanceMessages;
use crate::capture::VenueMessages;
use crate::coinbase::CoinbaseMessages;

/// Greatest number of symbols in one feed. Binance allows 1,024 streams per connection. The feed names two streams per
/// symbol in the address, which servers limit to a few KiB.
pub const SYMBOLS_MAX: usize = 100;
/// Longest ticker in bytes.
const TICKER_BYTES_MAX: usize = 32;

/// A venue with a live feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveVenue {
    /// Binance: the streams `trade` and `bookTicker` of each symbol.
    Binance,
    /// Coinbase Exchange: the channels `matches`, `ticker` and `heartbeat`.
    Coinbase,
}

impl LiveVenue {
    /// Returns the name of the source for `feed`.
    pub fn source(self) -> &'static str {
        match self {
            LiveVenue::Binance => "binance-live",
            LiveVenue::Coinbase => "coinbase-live",
        }
    }

    /// Returns the name of the source that reads recordings of this feed.
    pub fn recording_source(self) -> &'static str {
        match self {
            LiveVenue::Binance => "binance-capture",
            LiveVenue::Coinbase => "coinbase-capture",
        }
    }

    /// Returns the default venue of the symbols.
    pub fn name(self) -> &'static str {
        match self {
            LiveVenue::Binance => "BINANCE",
            LiveVenue::Coinbase => "COINBASE",
        }
    }

    /// Returns the public address.
    pub fn url(self) -> &'static str {
        match self {
            LiveVenue::Binance => "wss://stream.binance.com:9443",
            LiveVenue::Coinbase => "wss://ws-feed.exchange.coinbase.com",
        }
    }

    /// Returns the ticker as the venue's messages spell it. An error names the expected form.
    pub fn ticker(self, text: &str) -> Result<String, String> {
        let ticker = text.to_ascii_uppercase();
        let (mark, example) = match self {
            LiveVenue::Binance => (b'_', "BTCUSDT"),
            LiveVenue::Coinbase => (b'-', "BTC-USD"),
        };
        let is_allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == mark;
        if (1..=TICKER_BYTES_MAX).contains(&ticker.len()) && ticker.bytes().all(is_allowed) {
            return Ok(ticker);
        }
        let mark = char::from(mark);
        Err(format!("1 to {TICKER_BYTES_MAX} letters, digits and {mark}, such as {example}"))
    }

    /// Returns the address, on a server, that requests the messages of the tickers.
    pub fn address(self, url: &str, tickers: &[String]) -> String {
        match self {
            LiveVenue::Binance => {
                let streams = |ticker: &String| {
                    let ticker = ticker.to_ascii_lowercase();
                    format!("{ticker}@trade/{ticker}@bookTicker")
                };
                let streams: Vec<String> = tickers.iter().map(streams).collect();
                format!("{}/stream?streams={}", url.trim_end_matches('/'), streams.join("/"))
            }
            LiveVenue::Coinbase => url.to_owned(),
        }
    }

    /// Returns the message that requests the tickers' messages; `None` if the address already does.
    pub fn subscription(self, tickers: &[String]) -> Option<String> {
        match self {
            LiveVenue::Binance => None,
            LiveVenue::Coinbase => {
                let channels = ["matches", "ticker", "heartbeat"];
                Some(json!({"type": "subscribe", "product_ids": tickers, "channels": channels}).to_string())
            }
        }
    }

    /// Returns a reader of the messages, for symbols of this venue.
    pub(super) fn messages(self, venue: &str) -> Box<dyn VenueMessages> {
        match self {
            LiveVenue::Binance => Box::new(BinanceMessages::new(venue)),
            LiveVenue::Coinbase => Box::new(CoinbaseMessages::new(venue)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickers_become_addresses_and_subscriptions() {
        let tickers = |venue: LiveVenue, texts: [&str; 2]| texts.map(|text| venue.ticker(text).expect(text));
        let binance = tickers(LiveVenue::Binance, ["btcusdt", "BTCUSD_PERP"]);
        assert_eq!(binance, ["BTCUSDT", "BTCUSD_PERP"]);
        let address = "ws://h:1/stream?streams=btcusdt@trade/btcusdt@bookTicker/btcusd_perp@trade/btcusd_perp@bookTicker";
        assert_eq!(LiveVenue::Binance.address("ws://h:1/", &binance), address);
        assert_eq!(LiveVenue::Binance.subscription(&binance), None);
        let coinbase = tickers(LiveVenue::Coinbase, ["btc-usd", "ETH-EUR"]);
        assert_eq!(LiveVenue::Coinbase.address("ws://h:1", &coinbase), "ws://h:1");
        let message = LiveVenue::Coinbase.subscription(&coinbase).expect("a message");
        let message: serde_json::Value = serde_json::from_str(&message).expect("JSON");
        assert_eq!(message["product_ids"], json!(["BTC-USD", "ETH-EUR"]));
        for wrong in ["", "BTC/USD", "BTC USD", "a@b", "测", &"A".repeat(33)] {
            assert!(LiveVenue::Binance.ticker(wrong).is_err() && LiveVenue::Coinbase.ticker(wrong).is_err());
        }
    }
}
