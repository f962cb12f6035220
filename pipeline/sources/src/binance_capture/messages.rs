//! Converts Binance's messages to ticks. Spot book tickers have no time, so they get the time of the events before
//! them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use warptape_events::tick::{Side, Tick, TickKind};

use super::message::{self, CaptureEvent, TradeStream};
use crate::capture::{Message, VenueMessages};
use crate::symbol::join_symbol;
use crate::{FieldProblem, ZERO_TRADE};

/// The stream from which each symbol's trades are taken: the first one that had a trade of it. All files share this, so
/// that no trade occurs both alone and within an aggregate.
pub(super) type TradeStreams = Arc<Mutex<HashMap<String, TradeStream>>>;

/// Reader of Binance's messages.
pub struct BinanceMessages {
    venue: String,
    trade_streams: TradeStreams,
    /// Greatest event time so far; 0 before the first.
    event_time_ns_max: i64,
    /// Greatest event time before the last line.
    before_ns: i64,
}

impl BinanceMessages {
    /// Creates a reader whose symbols get this venue.
    pub fn new(venue: &str) -> Self {
        Self::sharing(venue, TradeStreams::default())
    }

    pub(super) fn sharing(venue: &str, trade_streams: TradeStreams) -> Self {
        Self { venue: venue.to_owned(), trade_streams, event_time_ns_max: 0, before_ns: 0 }
    }

    fn symbol(&self, ticker: &str) -> Result<String, FieldProblem> {
        join_symbol(&self.venue, ticker).map_err(|expected| FieldProblem::new("s", ticker, expected))
    }

    /// Returns true if the symbol had a trade of the stream, so that its trades are taken from it.
    fn is_of_stream(&self, symbol: &str, stream: TradeStream) -> bool {
        let streams = self.trade_streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.get(symbol) == Some(&stream)
    }

    fn message(&self, event: CaptureEvent, receive_time_ns: i64) -> Result<Message, FieldProblem> {
        Ok(match event {
            CaptureEvent::Trade { price, size, ticker, trade_id, .. } if price == 0 || size == 0 => {
                let trade = self.symbol(&ticker).ok().map(|symbol| (symbol, trade_id));
                Message::PassedTrade { kind: ZERO_TRADE.to_owned(), trade }
            }
            CaptureEvent::NoMarketTrade { order_type, trade } => {
                let numbered =
                    trade.and_then(|(ticker, trade_id)| Some((self.symbol(&ticker).ok()?, trade_id)));
                Message::PassedTrade { kind: format!("trade of {order_type}"), trade: numbered }
            }
            CaptureEvent::Trade { stream, ticker, event_time_ns, trade_id, price, size, scales, side } => {
                let symbol = self.symbol(&ticker)?;
                if !is_taken(&self.trade_streams, &symbol, stream) {
                    let kind = match stream {
                        TradeStream::Trades => "trade of a symbol with aggTrade before",
                        TradeStream::Aggregates => "aggTrade of a symbol with trade before",
                    };
                    return Ok(Message::Other(kind.to_owned()));
                }
                Message::Tick(Tick {
                    symbol,
                    kind: TickKind::Trade,
                    event_time_ns,
                    receive_time_ns,
                    trade_id,
                    side,
                    price_e9: price,
                    size_e9: size,
                    bid_price_e9: 0,
                    bid_size_e9: 0,
                    ask_price_e9: 0,
                    ask_size_e9: 0,
                    scales,
                })
            }
            CaptureEvent::UnfitTrade { stream, ticker, trade_id, problem } => match self.symbol(&ticker) {
                Ok(symbol) if self.is_of_stream(&symbol, stream) => {
                    Message::UnfitTrade { problem, symbol, trade_id }
                }
                _ => return Err(problem),
            },
            CaptureEvent::BookTicker { ticker, event_time_ns, bid, ask, scales } => Message::Tick(Tick {
                symbol: self.symbol(&ticker)?,
                kind: TickKind::Quote,
                event_time_ns: match event_time_ns {
                    Some(time_ns) => time_ns,
                    None if self.event_time_ns_max > 0 => self.event_time_ns_max,
                    None => receive_time_ns,
                },
                receive_time_ns,
                trade_id: 0,
                side: Side::None,
                price_e9: 0,
                size_e9: 0,
                bid_price_e9: bid[0],
                bid_size_e9: bid[1],
                ask_price_e9: ask[0],
                ask_size_e9: ask[1],
                scales,
            }),
            CaptureEvent::Other(name) => Message::Other(name.into_owned()),
        })
    }
}

impl VenueMessages for BinanceMessages {
    fn read(&mut self, line: &[u8]) -> Result<Message, FieldProblem> {
        let (receive_time_ns, message) = message::parse_line(line)?;
        let read = self.message(message.event, receive_time_ns)?;
        self.before_ns = self.event_time_ns_max;
        self.event_time_ns_max = self.before_ns.max(message.event_time_ns_max);
        Ok(read)
    }

    fn forget_last(&mut self) {
        self.event_time_ns_max = self.before_ns;
    }
}

/// Returns true if trades of the symbol are taken from the stream.
fn is_taken(streams: &TradeStreams, symbol: &str, stream: TradeStream) -> bool {
    let mut streams = streams.lock().unwrap_or_else(PoisonError::into_inner);
    match streams.get(symbol) {
        Some(taken) => *taken == stream,
        None => {
            streams.insert(symbol.to_owned(), stream);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::tick::Scales;

    use super::*;
    use crate::PassedOver;
    use crate::arrival_merge::TickInput as _;
    use crate::capture::CaptureFile;
    use crate::test_ticks::{gzip, write_file};

    const SPOT: &str = r#"1000 {"stream":"btcusdt@bookTicker","data":{"u":7,"s":"BTCUSDT","b":"61837.63","B":"3.78826000","a":"61837.64","A":"1.5"}}
1001 {"stream":"btcusdt@depth@100ms","data":{"e":"depthUpdate","E":1723161255208,"s":"BTCUSDT","U":1,"u":2,"b":[["61737.63","0.0"]],"a":[]}}
1002 {"stream":"btcusdt@bookTicker","data":{"u":8,"s":"BTCUSDT","b":"61837.63","B":"3.78826000","a":"0.0","A":"0.0"}}
1003 {"stream":"btcusdt@trade","data":{"e":"trade","E":1723161255343,"s":"BTCUSDT","t":3735683259,"p":"61837.63000000","q":"0.02000000","T":1723161255342,"m":true,"M":true}}
1004 {"stream":"btcusdt@bookTicker","data":{"u":9,"s":"BTCUSDT","b":"1","B":"2","a":"3","A":"4"}}
1005 {"lastUpdateId":1,"bids":[["1","2"]],"asks":[]}
1006 {"stream":"btcusdt@trade","data":{"e":"trade","E":1723161255343,"s":"BTCUSDT","t":1,"p":"0","q":"0","T":1723161255342,"X":"NA","m":false}}
1007 {"stream":"btcusdt@kline_1m","data":{"e":"kline","E":1723161255999,"s":"BTCUSDT","k":{"t":1,"o":"\u0031"}}}

1008 {"stream":"btcusdt@bookTicker","data":{"e":"bookTicker","u":5,"s":"BTCUSDT","b":"1","B":"2","a":"3","A":"4","T":1723161256313,"E":1723161256314}}
"#;

    fn read(bytes: &[u8]) -> (Vec<Result<Tick, String>>, PassedOver) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut file = CaptureFile::open(&write_file(&folder, "a.jsonl", bytes), BinanceMessages::new("V"))
            .expect("opens");
        let ticks = (&mut file).map(|tick| tick.map_err(|error| error.to_string())).collect();
        (ticks, file.passed_over())
    }

    fn quote(event_time_ns: i64, receive_time_ns: i64, book: [i64; 4]) -> Result<Tick, String> {
        let [bid_price_e9, bid_size_e9, ask_price_e9, ask_size_e9] = book;
        Ok(Tick {
            symbol: "V:BTCUSDT".to_owned(),
            kind: TickKind::Quote,
            event_time_ns,
            receive_time_ns,
            trade_id: 0,
            side: Side::None,
            price_e9: 0,
            size_e9: 0,
            bid_price_e9,
            bid_size_e9,
            ask_price_e9,
            ask_size_e9,
            scales: Scales::E9,
        })
    }

    #[test]
    fn events_become_ticks() {
        const E9: i64 = 1_000_000_000;
        let trade = Tick {
            symbol: "V:BTCUSDT".to_owned(),
            kind: TickKind::Trade,
            event_time_ns: 1_723_161_255_342_000_000,
            receive_time_ns: 1003,
            trade_id: 3_735_683_259,
            side: Side::Sell,
            price_e9: 61_837_630_000_000,
            size_e9: 20_000_000,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        };
        let expected = vec![
            // Before the first event, the quote has the receive time; afterwards the time of the depth update, then `E`
            // of the trade.
            quote(1000, 1000, [61_837_630_000_000, 3_788_260_000, 61_837_640_000_000, 1_500_000_000]),
            quote(1_723_161_255_208_000_000, 1002, [61_837_630_000_000, 3_788_260_000, 0, 0]),
            Ok(trade),
            quote(1_723_161_255_343_000_000, 1004, [E9, 2 * E9, 3 * E9, 4 * E9]),
            quote(1_723_161_256_313_000_000, 1008, [E9, 2 * E9, 3 * E9, 4 * E9]),
        ];
        let kinds =
            ["depthUpdate", "event without a name", "trade of price or size 0", "kline", "empty line"];
        let ignored = PassedOver { ignored: kinds.map(|kind| (kind.to_owned(), 1)).into(), bad: 0 };
        assert_eq!(read(SPOT.as_bytes()), (expected.clone(), ignored.clone()));
        assert_eq!(read(&gzip(SPOT.as_bytes())), (expected, ignored));
    }

    #[test]
    fn trades_come_from_one_stream_of_a_symbol() {
        let trade = |stream: &str, symbol: &str, id: u32| {
            format!(
                "1 {{\"e\":\"{stream}\",\"E\":1723161255343,\"s\":\"{symbol}\",\"t\":{id},\"a\":{id},\"p\":\"1\",\"q\":\"2\",\
                 \"T\":1723161255342,\"m\":true}}\n"
            )
        };
        let lines = [
            trade("aggTrade", "A", 1),
            trade("trade", "B", 2),
            trade("trade", "A", 3),
            trade("aggTrade", "B", 4),
            trade("aggTrade", "A", 5),
        ];
        let (ticks, passed_over) = read(lines.concat().as_bytes());
        let taken: Vec<_> = ticks.into_iter().map(|tick| tick.expect("a trade").trade_id).collect();
        assert_eq!(taken, [1, 2, 5]);
        let kinds = ["trade of a symbol with aggTrade before", "aggTrade of a symbol with trade before"];
        assert_eq!(passed_over.ignored, kinds.map(|kind| (kind.to_owned(), 1)).into());
    }

    #[test]
    fn transfers_of_futures_are_no_trades_and_leave_the_bars_of_aggregates() {
        let trade = |id: u32, price: &str, size: &str, order_type: &str| {
            format!(
                "{id} {{\"e\":\"trade\",\"E\":1723075200100,\"T\":1723075200100,\"s\":\"B\",\"t\":{id},\"p\":\"{price}\",\
                 \"q\":\"{size}\",\"X\":\"{order_type}\",\"m\":false}}\n"
            )
        };
        let lines = [
            trade(1, "26000.0", "0.5", "MARKET"),
            trade(2, "28600.0", "0.3", "INSURANCE_FUND"),
            trade(3, "23400.0", "0.2", "ADL"),
            trade(4, "26001.0", "0.5", "A_NEW_ONE"),
            trade(5, "0", "0", "NA"),
            trade(6, "25000.0", "0.1", "N\\u0041"),
            trade(7, "0", "0.1", "MARKET"),
        ];
        let (ticks, passed_over) = read(lines.concat().as_bytes());
        let prices: Vec<_> = ticks.into_iter().map(|tick| tick.expect("a trade").price_e9).collect();
        assert_eq!(prices, [26_000_000_000_000, 26_001_000_000_000]);
        let kinds = [
            ("trade of INSURANCE_FUND", 1),
            ("trade of ADL", 1),
            ("trade of NA", 1),
            ("trade of price or size 0", 2),
        ];
        assert_eq!(passed_over.ignored, kinds.map(|(kind, count)| (kind.to_owned(), count)).into());
    }

    #[test]
    fn a_bad_line_is_named() {
        let bad = SPOT.replacen("\"p\":\"61837.63000000\"", "\"p\":\"NaN\"", 1);
        let (ticks, _) = read(bad.as_bytes());
        let message = ticks[2].as_ref().expect_err("NaN is no price");
        assert!(message.contains("a.jsonl:4: column `p`: found `NaN`, expected digits"), "{message}");
    }
}
