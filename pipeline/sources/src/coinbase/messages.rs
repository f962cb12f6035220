//! Converts Coinbase's messages to ticks.

use serde::Deserialize;
use warptape_events::tick::{Scales, Side, Tick, TickKind};

use crate::capture::{Message, Scalar, VenueMessages, parse_json, prices, sizes, split_line};
use crate::symbol::join_symbol;
use crate::{FieldProblem, ZERO_TRADE};

/// Reader of Coinbase's messages.
pub struct CoinbaseMessages {
    venue: String,
}

/// The fields of all messages of interest, by their names in the feed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow, rename = "type")]
    kind: Scalar<'a>,
    #[serde(borrow)]
    product_id: Scalar<'a>,
    #[serde(borrow)]
    time: Scalar<'a>,
    #[serde(borrow)]
    trade_id: Scalar<'a>,
    #[serde(borrow)]
    last_trade_id: Scalar<'a>,
    #[serde(borrow)]
    price: Scalar<'a>,
    #[serde(borrow)]
    size: Scalar<'a>,
    #[serde(borrow)]
    side: Scalar<'a>,
    #[serde(borrow)]
    best_bid: Scalar<'a>,
    #[serde(borrow)]
    best_bid_size: Scalar<'a>,
    #[serde(borrow)]
    best_ask: Scalar<'a>,
    #[serde(borrow)]
    best_ask_size: Scalar<'a>,
    #[serde(borrow)]
    message: Scalar<'a>,
    #[serde(borrow)]
    reason: Scalar<'a>,
}

impl CoinbaseMessages {
    /// Creates a reader whose symbols get this venue.
    pub fn new(venue: &str) -> Self {
        Self { venue: venue.to_owned() }
    }

    fn symbol(&self, product: &Scalar) -> Result<String, FieldProblem> {
        let ticker =
            product.text().ok_or_else(|| product.problem("product_id", "a product such as BTC-USD"))?;
        join_symbol(&self.venue, ticker).map_err(|expected| FieldProblem::new("product_id", ticker, expected))
    }

    fn last_trade(
        &self,
        kind: &'static str,
        fields: &Fields,
        trade_id: i64,
    ) -> Result<Message, FieldProblem> {
        Ok(Message::LastTrade { kind, symbol: self.symbol(&fields.product_id)?, trade_id })
    }

    fn trade(&self, fields: &Fields, receive_time_ns: i64) -> Result<Message, FieldProblem> {
        let symbol = self.symbol(&fields.product_id)?;
        let trade_id = fields.trade_id.integer("trade_id")?;
        let numbers = prices([("price", &fields.price)])
            .and_then(|price| Ok((price, sizes([("size", &fields.size)])?)));
        let (([price], price_scale), ([size], size_scale)) = match numbers {
            Err(problem) if problem.does_not_fit => {
                return Ok(Message::UnfitTrade { problem, symbol, trade_id });
            }
            numbers => numbers?,
        };
        if price == 0 || size == 0 {
            return Ok(Message::PassedTrade { kind: ZERO_TRADE.to_owned(), trade: Some((symbol, trade_id)) });
        }
        // `side` is the maker's side.
        let side = match fields.side.text() {
            Some("sell") => Side::Buy,
            Some("buy") => Side::Sell,
            _ => return Err(fields.side.problem("side", "buy or sell")),
        };
        Ok(Message::Tick(Tick {
            symbol,
            kind: TickKind::Trade,
            event_time_ns: fields.time.rfc3339_ns("time")?,
            receive_time_ns,
            trade_id,
            side,
            price_e9: price,
            size_e9: size,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales { price: price_scale, size: size_scale },
        }))
    }

    fn quote(&self, fields: &Fields, receive_time_ns: i64) -> Result<Message, FieldProblem> {
        let both = [("best_bid", &fields.best_bid), ("best_ask", &fields.best_ask)];
        let ([bid_price_e9, ask_price_e9], price_scale) = prices(both)?;
        // Older recordings have no sizes.
        let ([bid_size_e9, ask_size_e9], size_scale) = match (&fields.best_bid_size, &fields.best_ask_size) {
            (Scalar::Absent, Scalar::Absent) => ([0; 2], Scales::E9.size),
            (bid, ask) => sizes([("best_bid_size", bid), ("best_ask_size", ask)])?,
        };
        Ok(Message::Tick(Tick {
            symbol: self.symbol(&fields.product_id)?,
            kind: TickKind::Quote,
            event_time_ns: fields.time.rfc3339_ns("time")?,
            receive_time_ns,
            trade_id: 0,
            side: Side::None,
            price_e9: 0,
            size_e9: 0,
            bid_price_e9,
            bid_size_e9,
            ask_price_e9,
            ask_size_e9,
            scales: Scales { price: price_scale, size: size_scale },
        }))
    }
}

impl VenueMessages for CoinbaseMessages {
    fn read(&mut self, line: &[u8]) -> Result<Message, FieldProblem> {
        let (receive_time_ns, json) = split_line(line)?;
        let fields: Fields = parse_json(json)?;
        match fields.kind.text() {
            Some("match") => self.trade(&fields, receive_time_ns),
            Some("ticker") => self.quote(&fields, receive_time_ns),
            Some("last_match") => {
                self.last_trade("last_match", &fields, fields.trade_id.integer("trade_id")?)
            }
            Some("heartbeat") => {
                self.last_trade("heartbeat", &fields, fields.last_trade_id.integer("last_trade_id")?)
            }
            Some("error") => {
                let texts = [&fields.message, &fields.reason].into_iter().filter_map(Scalar::text);
                Ok(Message::Refused(texts.collect::<Vec<_>>().join(": ")))
            }
            Some(other) => Ok(Message::Other(other.to_owned())),
            None => Err(fields.kind.problem("type", "the type of a message, such as match")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATCH: &str = r#"7 {"type":"match","trade_id":10,"sequence":50,"maker_order_id":"ac928c66-ca53-498f-9c13-a110027a60e8","taker_order_id":"132fb6ae-456b-4654-b4e0-d681ac05cea1","time":"2014-11-07T08:19:27.028459Z","product_id":"BTC-USD","size":"5.23512","price":"400.23","side":"sell"}"#;
    const TICKER: &str = r#"8 {"type":"ticker","sequence":37475248783,"product_id":"ETH-USD","price":"1285.22","open_24h":"1310.79","volume_24h":"245532.79269678","low_24h":"1280.52","high_24h":"1313.8","volume_30d":"9788783.60117027","best_bid":"1285.04","best_bid_size":"0.46688654","best_ask":"1285.27","best_ask_size":"1.56637040","side":"buy","time":"2022-10-19T23:28:22.061769Z","trade_id":370843401,"last_size":"11.4396987"}"#;

    fn read(line: &str) -> Result<Message, String> {
        CoinbaseMessages::new("C").read(line.as_bytes()).map_err(|problem| problem.column)
    }

    fn tick(line: &str) -> Tick {
        match read(line) {
            Ok(Message::Tick(tick)) => tick,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_match_is_a_trade_of_the_takers_side() {
        let trade = Tick {
            symbol: "C:BTC-USD".to_owned(),
            kind: TickKind::Trade,
            event_time_ns: 1_415_348_367_028_459_000,
            receive_time_ns: 7,
            trade_id: 10,
            side: Side::Buy,
            price_e9: 400_230_000_000,
            size_e9: 5_235_120_000,
            bid_price_e9: 0,
            bid_size_e9: 0,
            ask_price_e9: 0,
            ask_size_e9: 0,
            scales: Scales::E9,
        };
        assert_eq!(tick(MATCH), trade);
        assert_eq!(tick(&MATCH.replace("\"sell\"", "\"buy\"")), Tick { side: Side::Sell, ..trade });
    }

    #[test]
    fn a_ticker_is_a_quote() {
        let quote = tick(TICKER);
        assert_eq!(quote.symbol, "C:ETH-USD");
        assert_eq!((quote.event_time_ns, quote.receive_time_ns), (1_666_222_102_061_769_000, 8));
        assert_eq!((quote.bid_price_e9, quote.bid_size_e9), (1_285_040_000_000, 466_886_540));
        assert_eq!((quote.ask_price_e9, quote.ask_size_e9), (1_285_270_000_000, 1_566_370_400));
        let without = TICKER
            .replace("\"best_bid_size\":\"0.46688654\",", "")
            .replace("\"best_ask_size\":\"1.56637040\",", "");
        assert_eq!(tick(&without), Tick { bid_size_e9: 0, ask_size_e9: 0, ..quote });
    }

    #[test]
    fn other_messages_make_no_ticks() {
        let last = |kind, trade_id| Ok(Message::LastTrade { kind, symbol: "C:BTC-USD".to_owned(), trade_id });
        assert_eq!(read(&MATCH.replace("\"match\"", "\"last_match\"")), last("last_match", 10));
        let heartbeat = r#"1 {"type":"heartbeat","sequence":90,"last_trade_id":20,"product_id":"BTC-USD","time":"2014-11-07T08:19:28.464459Z"}"#;
        assert_eq!(read(heartbeat), last("heartbeat", 20));
        let zero = MATCH.replace("\"5.23512\"", "\"0\"");
        let trade = Some(("C:BTC-USD".to_owned(), 10));
        assert_eq!(read(&zero), Ok(Message::PassedTrade { kind: ZERO_TRADE.to_owned(), trade }));
        let other = r#"1 {"type":"subscriptions","channels":[{"name":"ticker","product_ids":["BTC-USD"]}]}"#;
        assert_eq!(read(other), Ok(Message::Other("subscriptions".to_owned())));
        let error =
            r#"1 {"type":"error","message":"Failed to subscribe","reason":"X-Y is not a valid product"}"#;
        let reason = "Failed to subscribe: X-Y is not a valid product".to_owned();
        assert_eq!(read(error), Ok(Message::Refused(reason)));
    }

    #[test]
    fn every_field_is_checked() {
        for (line, from, to, column) in [
            (MATCH, "\"400.23\"", "400.23", "price"),
            (MATCH, "\"400.23\"", "\"-1\"", "price"),
            (MATCH, "\"5.23512\"", "null", "size"),
            (MATCH, "\"trade_id\":10", "\"trade_id\":\"10\"", "trade_id"),
            (MATCH, "\"BTC-USD\"", "\"\"", "product_id"),
            (MATCH, "\"BTC-USD\"", "7", "product_id"),
            (MATCH, "\"sell\"", "\"ask\"", "side"),
            (MATCH, "2014-11-07T", "2014-13-07T", "time"),
            (MATCH, "\"match\"", "[]", "type"),
            (MATCH, "\"match\"", "\"heartbeat\"", "last_trade_id"),
            (MATCH, "}", "", "event"),
            (MATCH, "7 {", "x {", "receive time"),
            (TICKER, "\"1285.04\"", "\"\"", "best_bid"),
            (TICKER, "\"1.56637040\"", "1.5", "best_ask_size"),
            (TICKER, "\"time\"", "\"tim\"", "time"),
        ] {
            assert!(line.contains(from), "{from}");
            assert_eq!(read(&line.replacen(from, to, 1)), Err(column.to_owned()), "{from} -> {to}");
        }
    }
}
