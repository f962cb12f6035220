//! Parses one line of a recording. It allocates only for texts with escapes.
//!
//! Fields are read as [`Scalar`]s in one pass, and arrays are skipped. The reason: a name may be a text in one event
//! and an array in another (`b` of book tickers and of depth updates).

use std::borrow::Cow;

use serde::Deserialize;
use warptape_events::tick::{Scales, Side};

use super::payload::Payload;
use crate::FieldProblem;
use crate::capture::{Scalar, parse_json, prices, sizes, split_line};

/// The content of a line.
pub(super) struct CaptureMessage<'a> {
    /// Greatest time in the event; 0 if it has none.
    pub(super) event_time_ns_max: i64,
    pub(super) event: CaptureEvent<'a>,
}

/// The events of interest.
pub(super) enum CaptureEvent<'a> {
    Trade {
        stream: TradeStream,
        ticker: Cow<'a, str>,
        event_time_ns: i64,
        trade_id: i64,
        price: i64,
        size: i64,
        scales: Scales,
        side: Side,
    },
    /// A trade with a price or a size that does not fit a tick.
    UnfitTrade { stream: TradeStream, ticker: Cow<'a, str>, trade_id: i64, problem: FieldProblem },
    BookTicker {
        ticker: Cow<'a, str>,
        event_time_ns: Option<i64>,
        /// Price and size; zeros for an absent side.
        bid: [i64; 2],
        ask: [i64; 2],
        scales: Scales,
    },
    /// A trade outside the market.
    NoMarketTrade {
        /// The order type that marks the trade.
        order_type: Cow<'a, str>,
        /// Ticker and trade id; `None` if the event lacks one of them.
        trade: Option<(Cow<'a, str>, i64)>,
    },
    /// An event of another kind, by its name.
    Other(Cow<'a, str>),
}

/// The streams with trades. Each has all trades, so one stream per symbol is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TradeStream {
    /// Single trades.
    Trades,
    /// Aggregated trades: all trades of one order at one price are one trade.
    Aggregates,
}

/// Order types (`X`) of futures trades that move a position between accounts without an order in the book. `aggTrade`
/// omits such trades.
const NO_MARKET: [&str; 3] = ["INSURANCE_FUND", "ADL", "NA"];

/// Parses `<receive ns> <JSON>`. The JSON is an event or an array of events, or a combined stream's envelope with
/// either of these as its `data`.
pub(super) fn parse_line(line: &[u8]) -> Result<(i64, CaptureMessage<'_>), FieldProblem> {
    let (receive_time_ns, json) = split_line(line)?;
    let is_array = json.trim_ascii_start().starts_with(b"[");
    let payload = if is_array { Some(parse_json(json)?) } else { parse_json::<Envelope>(json)?.data };
    let message = match payload {
        Some(Payload::Events(events)) => events.into_message(),
        Some(Payload::Event(event)) => event.into_message()?,
        Some(Payload::Bare) => Fields::default().into_message()?,
        None => parse_json::<Fields>(json)?.into_message()?,
    };
    Ok((receive_time_ns, message))
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: Option<Payload<'a>>,
}

/// The fields of all events of interest, by their names in the stream.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Fields<'a> {
    #[serde(borrow)]
    pub(super) e: Scalar<'a>,
    #[serde(borrow, rename = "E")]
    pub(super) event_time: Scalar<'a>,
    #[serde(borrow, rename = "T")]
    transaction_time: Scalar<'a>,
    #[serde(borrow)]
    s: Scalar<'a>,
    #[serde(borrow)]
    t: Scalar<'a>,
    #[serde(borrow)]
    p: Scalar<'a>,
    #[serde(borrow)]
    q: Scalar<'a>,
    #[serde(borrow)]
    m: Scalar<'a>,
    #[serde(borrow)]
    b: Scalar<'a>,
    #[serde(borrow, rename = "B")]
    bid_size: Scalar<'a>,
    #[serde(borrow)]
    a: Scalar<'a>,
    #[serde(borrow, rename = "A")]
    ask_size: Scalar<'a>,
    #[serde(borrow, rename = "X")]
    order_type: Scalar<'a>,
}

impl<'a> Fields<'a> {
    fn into_message(mut self) -> Result<CaptureMessage<'a>, FieldProblem> {
        let name = std::mem::take(&mut self.e);
        let (event, times_ns) = match name.text() {
            Some("trade") => self.trade(TradeStream::Trades)?,
            Some("aggTrade") => self.trade(TradeStream::Aggregates)?,
            Some("bookTicker") => {
                let times_ns = self.both_times_ns()?;
                let [event_time_ns, transaction_time_ns] = times_ns;
                (self.book_ticker(transaction_time_ns.or(event_time_ns))?, times_ns)
            }
            Some("depthUpdate") => (CaptureEvent::Other("depthUpdate".into()), self.both_times_ns()?),
            // Spot book tickers have no event name, so their fields identify them.
            None if matches!(name, Scalar::Absent) && self.is_spot_book_ticker() => {
                (self.book_ticker(None)?, [None, None])
            }
            // The meaning of `T` depends on the event: in a mark price it is the time of the next funding, in the
            // future.
            _ => {
                let times_ns = [self.event_time.optional_time_ns("E").unwrap_or(None), None];
                let name = if let Scalar::Text(name) = name { name } else { "event without a name".into() };
                (CaptureEvent::Other(name), times_ns)
            }
        };
        let event_time_ns_max = times_ns.into_iter().flatten().max().unwrap_or(0);
        Ok(CaptureMessage { event_time_ns_max, event })
    }

    fn both_times_ns(&self) -> Result<[Option<i64>; 2], FieldProblem> {
        Ok([self.event_time.optional_time_ns("E")?, self.transaction_time.optional_time_ns("T")?])
    }

    /// Returns a trade and both of its times.
    fn trade(self, stream: TradeStream) -> Result<(CaptureEvent<'a>, [Option<i64>; 2]), FieldProblem> {
        let event_time_ns = self.transaction_time.time_ns("T")?;
        let times_ns = [self.event_time.optional_time_ns("E")?, Some(event_time_ns)];
        let trade_id = match stream {
            TradeStream::Trades => self.t.integer("t"),
            TradeStream::Aggregates => self.a.integer("a"),
        };
        let numbers = prices([("p", &self.p)]).and_then(|price| Ok((price, sizes([("q", &self.q)])?)));
        let (([price], price_scale), ([size], size_scale)) = match (numbers, &trade_id) {
            (Ok(numbers), _) => numbers,
            // Its times do not count for later quotes.
            (Err(problem), Ok(trade_id)) if problem.does_not_fit => {
                let (Ok(ticker), trade_id) = (self.s.ticker(), *trade_id) else { return Err(problem) };
                return Ok((CaptureEvent::UnfitTrade { stream, ticker, trade_id, problem }, [None, None]));
            }
            (Err(problem), _) => return Err(problem),
        };
        let is_execution = price != 0 && size != 0;
        if let Scalar::Text(order_type) = self.order_type
            && is_execution
            && NO_MARKET.contains(&&*order_type)
        {
            let trade = self.s.ticker().ok().zip(self.t.integer("t").ok());
            return Ok((CaptureEvent::NoMarketTrade { order_type, trade }, times_ns));
        }
        let event = CaptureEvent::Trade {
            stream,
            ticker: self.s.ticker()?,
            event_time_ns,
            trade_id: trade_id?,
            price,
            size,
            scales: Scales { price: price_scale, size: size_scale },
            // The aggressor is on the other side than the maker.
            side: if self.m.boolean("m")? { Side::Sell } else { Side::Buy },
        };
        Ok((event, times_ns))
    }

    fn is_spot_book_ticker(&self) -> bool {
        let fields = [&self.s, &self.b, &self.bid_size, &self.a, &self.ask_size];
        fields.iter().all(|field| matches!(field, Scalar::Text(_)))
    }

    fn book_ticker(self, event_time_ns: Option<i64>) -> Result<CaptureEvent<'a>, FieldProblem> {
        let ([bid_price, ask_price], price_scale) = prices([("b", &self.b), ("a", &self.a)])?;
        let ([bid_size, ask_size], size_scale) = sizes([("B", &self.bid_size), ("A", &self.ask_size)])?;
        Ok(CaptureEvent::BookTicker {
            ticker: self.s.ticker()?,
            event_time_ns,
            bid: [bid_price, bid_size],
            ask: [ask_price, ask_size],
            scales: Scales { price: price_scale, size: size_scale },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, column: &str) {
        let problem = parse_line(line.as_bytes()).err();
        assert_eq!(problem.map(|problem| problem.column).as_deref(), Some(column), "{line}");
    }

    const TRADE: &str = r#"5 {"data":{"e":"trade","E":1723161255343,"s":"B","t":9,"p":"1.5","q":"2","T":1723161255342,"m":false}}"#;

    #[test]
    fn an_event_needs_no_envelope_and_a_trade_may_be_of_several() {
        let raw = TRADE.replace("{\"data\":", "").replace("}}", "}");
        let aggregate = r#"5 {"e":"aggTrade","E":1723161255343,"s":"B","a":26129,"p":"1.5","q":"2","f":100,"l":105,"T":1723161255342,"m":true,"M":true}"#;
        let combined = aggregate.replacen('{', "{\"stream\":\"b@aggTrade\",\"data\":{", 1) + "}";
        for (line, expected) in [
            (TRADE, (TradeStream::Trades, 9)),
            (&raw, (TradeStream::Trades, 9)),
            (aggregate, (TradeStream::Aggregates, 26_129)),
            (&combined, (TradeStream::Aggregates, 26_129)),
        ] {
            let (_, message) =
                parse_line(line.as_bytes()).map_err(|problem| problem.to_string()).expect(line);
            let CaptureEvent::Trade { stream, trade_id, event_time_ns, .. } = message.event else {
                panic!("{line}")
            };
            assert_eq!(((stream, trade_id), event_time_ns), (expected, 1_723_161_255_342_000_000), "{line}");
        }
        check(&aggregate.replace("\"a\":26129,", ""), "a");
    }

    #[test]
    fn an_array_of_any_length_is_one_event() {
        let ticker = |number: usize| {
            format!(
                r#"{{"e":"24hrMiniTicker","E":{},"s":"S{number}USDT","c":"1"}}"#,
                1_723_075_200_000 + number
            )
        };
        for (count, name, event_time_ns_max) in [
            (0, "array without events", 0),
            (1, "array of 24hrMiniTicker", 1_723_075_200_000_000_000),
            (12, "array of 24hrMiniTicker", 1_723_075_200_011_000_000),
            (14, "array of 24hrMiniTicker", 1_723_075_200_013_000_000),
        ] {
            let array = format!("[{}]", (0..count).map(ticker).collect::<Vec<_>>().join(", "));
            let combined = format!(r#"5 {{"stream": "!miniTicker@arr", "data": {array}}}"#);
            for line in [combined, format!("5 {array}"), format!("5  [{array}]")] {
                let (_, message) =
                    parse_line(line.as_bytes()).map_err(|found| found.to_string()).expect(&line);
                assert_eq!(message.event_time_ns_max, event_time_ns_max, "{line}");
                assert!(matches!(message.event, CaptureEvent::Other(found) if found == name), "{line}");
            }
        }
        for other in ["5 [1,-1,1.5,\"\\u0041\",true,null]", "5 {\"data\":7}", "5 {\"data\":\"a\"}"] {
            let (_, message) = parse_line(other.as_bytes()).map_err(|found| found.to_string()).expect(other);
            assert!(matches!(message.event, CaptureEvent::Other(_)), "{other}");
        }
        check("5 [{\"e\":\"trade\"}", "event");
        check("5 [1] 2", "event");
    }

    #[test]
    fn every_text_may_have_escapes() {
        let escaped = TRADE
            .replace("\"trade\"", r#""tr\u0061de""#)
            .replace("\"s\":\"B\"", r#""\u0073":"\u6d4b\/\"\ud83d\ude00""#)
            .replace("\"1.5\"", r#""\u0031.5""#)
            .replace("\"q\":\"2\"", r#""q":"\u0032""#);
        let (_, message) = parse_line(escaped.as_bytes()).map_err(|found| found.to_string()).expect(&escaped);
        let CaptureEvent::Trade { ticker, price, size, .. } = message.event else { panic!("{escaped}") };
        assert_eq!((&*ticker, price, size), ("测/\"😀", 1_500_000_000, 2_000_000_000));
        let book = r#"5 {"s":"\u0042","b":"\u0031","B":"2","a":"\u0033","A":"\u0034","e":"book\u0054icker"}"#;
        let (_, message) = parse_line(book.as_bytes()).map_err(|found| found.to_string()).expect(book);
        let CaptureEvent::BookTicker { ticker, bid, ask, .. } = message.event else { panic!("{book}") };
        const E9: i64 = 1_000_000_000;
        assert_eq!((&*ticker, bid, ask), ("B", [E9, 2 * E9], [3 * E9, 4 * E9]));
        check(&TRADE.replace("\"s\":\"B\"", r#""s":"\ud83d""#), "event");
    }

    #[test]
    fn every_field_of_a_trade_is_checked() {
        assert!(matches!(
            parse_line(TRADE.as_bytes()).map(|(_, message)| message.event),
            Ok(CaptureEvent::Trade { side: Side::Buy, trade_id: 9, price: 1_500_000_000, .. })
        ));
        check(&TRADE.replace("\"p\":\"1.5\"", "\"p\":1.5"), "p");
        check(&TRADE.replace("\"p\":\"1.5\"", "\"p\":\"-1.5\""), "p");
        check(&TRADE.replace("\"q\":\"2\",", ""), "q");
        check(&TRADE.replace("\"s\":\"B\"", "\"s\":\"\""), "s");
        check(&TRADE.replace("\"t\":9", "\"t\":\"9\""), "t");
        check(&TRADE.replace("\"m\":false", "\"m\":0"), "m");
        check(&TRADE.replace("\"T\":1723161255342", "\"T\":0"), "T");
        check(&TRADE.replace(",\"T\":1723161255342", ""), "T");
        check(&TRADE.replace("\"E\":1723161255343", "\"E\":-1"), "E");
        let other =
            TRADE.replace("\"trade\"", "\"markPriceUpdate\"").replace("1723161255342", "1923161255342");
        let (_, message) = parse_line(other.as_bytes()).expect("an event of another kind");
        assert_eq!(message.event_time_ns_max, 1_723_161_255_343_000_000, "its T is no event time");
        assert!(matches!(message.event, CaptureEvent::Other(name) if name == "markPriceUpdate"));
        check(&TRADE[..TRADE.len() - 1], "event");
        check(&TRADE[1..], "receive time");
        check(&TRADE.replacen('5', "0", 1), "receive time");
        check("5", "event");
        check("not a line", "receive time");
        check("", "receive time");
    }
}
