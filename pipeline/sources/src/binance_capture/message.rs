//! One line of a recording, parsed without allocating.
//!
//! Fields are read as [`Scalar`]s, because the same name is a text in one event and an array in another (`b` of a book
//! ticker and of a depth update): one pass, and arrays are skipped.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use warptape_events::tick::{Scales, Side};

use crate::time_unit::{TimeUnit, binance_time_ns};
use crate::{FieldProblem, Scaled, parse_prices, parse_sizes};

/// What a line says.
pub(super) struct CaptureMessage<'a> {
    /// The greatest time that the event carries; 0 where there is none.
    pub(super) event_time_ns_max: i64,
    pub(super) event: CaptureEvent<'a>,
}

/// The events that matter.
pub(super) enum CaptureEvent<'a> {
    Trade {
        stream: TradeStream,
        ticker: &'a str,
        event_time_ns: i64,
        trade_id: i64,
        price: i64,
        size: i64,
        scales: Scales,
        side: Side,
    },
    BookTicker {
        ticker: &'a str,
        event_time_ns: Option<i64>,
        /// Price and size; zeros where there is none.
        bid: [i64; 2],
        ask: [i64; 2],
        scales: Scales,
    },
    /// Its name.
    Other(&'a str),
}

/// The streams that tell trades. Both tell all of them, so that one of a symbol is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TradeStream {
    /// Each trade.
    Trades,
    /// Trades of one order at one price as one.
    Aggregates,
}

/// Parses `<receive ns> <JSON>`. The JSON is an event, or a combined stream's envelope with an event as its `data`.
pub(super) fn parse_line(line: &[u8]) -> Result<(i64, CaptureMessage<'_>), FieldProblem> {
    let space = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    let (receive, json) = line.split_at(space);
    let unit = TimeUnit::Nanoseconds;
    let receive_time_ns =
        unit.parse_ns(receive).ok_or_else(|| FieldProblem::new("receive time", receive, unit.expected()))?;
    let event = match parse_json(json)? {
        Envelope { data: Some(event) } => event,
        Envelope { data: None } => parse_json(json)?,
    };
    Ok((receive_time_ns, event.into_message()?))
}

fn parse_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, FieldProblem> {
    serde_json::from_slice(json)
        .map_err(|error| FieldProblem::new("event", json, format!("the JSON of a stream's event ({error})")))
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: Option<Fields<'a>>,
}

/// The fields of all events that matter, by their names in the stream.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields<'a> {
    #[serde(borrow)]
    e: Scalar<'a>,
    #[serde(borrow, rename = "E")]
    event_time: Scalar<'a>,
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
}

impl<'a> Fields<'a> {
    fn into_message(self) -> Result<CaptureMessage<'a>, FieldProblem> {
        let (event, times_ns) = match self.e {
            Scalar::Text("trade") => self.trade(TradeStream::Trades)?,
            Scalar::Text("aggTrade") => self.trade(TradeStream::Aggregates)?,
            Scalar::Text("bookTicker") => {
                let times_ns = self.both_times_ns()?;
                let [event_time_ns, transaction_time_ns] = times_ns;
                (self.book_ticker(transaction_time_ns.or(event_time_ns))?, times_ns)
            }
            Scalar::Text(name @ "depthUpdate") => (CaptureEvent::Other(name), self.both_times_ns()?),
            // Spot book tickers name no event: they are known by their fields.
            Scalar::Absent if self.is_spot_book_ticker() => (self.book_ticker(None)?, [None, None]),
            // What `T` means depends on the event (of a mark price: the next funding, in the future).
            name => {
                let name = if let Scalar::Text(name) = name { name } else { "event without a name" };
                (CaptureEvent::Other(name), [self.event_time.optional_time_ns("E").unwrap_or(None), None])
            }
        };
        let event_time_ns_max = times_ns.into_iter().flatten().max().unwrap_or(0);
        Ok(CaptureMessage { event_time_ns_max, event })
    }

    fn both_times_ns(&self) -> Result<[Option<i64>; 2], FieldProblem> {
        Ok([self.event_time.optional_time_ns("E")?, self.transaction_time.optional_time_ns("T")?])
    }

    /// A trade, and both of its times.
    fn trade(&self, stream: TradeStream) -> Result<(CaptureEvent<'a>, [Option<i64>; 2]), FieldProblem> {
        let event_time_ns = self.transaction_time.time_ns("T")?;
        let ([price], price_scale) = prices([("p", self.p)])?;
        let ([size], size_scale) = sizes([("q", self.q)])?;
        let event = CaptureEvent::Trade {
            stream,
            ticker: self.s.ticker()?,
            event_time_ns,
            trade_id: match stream {
                TradeStream::Trades => self.t.integer("t")?,
                TradeStream::Aggregates => self.a.integer("a")?,
            },
            price,
            size,
            scales: Scales { price: price_scale, size: size_scale },
            // The maker waited, so the other side was the aggressor.
            side: if self.m.boolean("m")? { Side::Sell } else { Side::Buy },
        };
        Ok((event, [self.event_time.optional_time_ns("E")?, Some(event_time_ns)]))
    }

    fn is_spot_book_ticker(&self) -> bool {
        let texts = [self.s, self.b, self.bid_size, self.a, self.ask_size];
        texts.iter().all(|field| matches!(field, Scalar::Text(_)))
    }

    fn book_ticker(&self, event_time_ns: Option<i64>) -> Result<CaptureEvent<'a>, FieldProblem> {
        let ([bid_price, ask_price], price_scale) = prices([("b", self.b), ("a", self.a)])?;
        let ([bid_size, ask_size], size_scale) = sizes([("B", self.bid_size), ("A", self.ask_size)])?;
        Ok(CaptureEvent::BookTicker {
            ticker: self.s.ticker()?,
            event_time_ns,
            bid: [bid_price, bid_size],
            ask: [ask_price, ask_size],
            scales: Scales { price: price_scale, size: size_scale },
        })
    }
}

fn prices<const N: usize>(fields: [(&str, Scalar); N]) -> Result<Scaled<N>, FieldProblem> {
    let texts = decimals(&fields)?;
    parse_prices(texts, false)
        .map_err(|(number, error)| FieldProblem::of_number(fields[number].0, texts[number], error))
}

fn sizes<const N: usize>(fields: [(&str, Scalar); N]) -> Result<Scaled<N>, FieldProblem> {
    let texts = decimals(&fields)?;
    parse_sizes(texts)
        .map_err(|(number, error)| FieldProblem::of_number(fields[number].0, texts[number], error))
}

fn decimals<'a, const N: usize>(fields: &[(&str, Scalar<'a>); N]) -> Result<[&'a [u8]; N], FieldProblem> {
    let mut texts = [&b""[..]; N];
    for (text, (column, field)) in texts.iter_mut().zip(fields) {
        *text = match field {
            Scalar::Text(found) => found.as_bytes(),
            other => return Err(other.problem(column, "a decimal number as text, such as \"61837.63\"")),
        };
    }
    Ok(texts)
}

/// A JSON value as far as ticks need it.
#[derive(Clone, Copy, Default)]
enum Scalar<'a> {
    #[default]
    Absent,
    Text(&'a str),
    Integer(i64),
    Boolean(bool),
    /// An array, an object, null, a fraction, or a text with escapes: never part of a tick.
    Other,
}

impl<'a> Scalar<'a> {
    fn ticker(self) -> Result<&'a str, FieldProblem> {
        match self {
            Scalar::Text(text) if !text.is_empty() => Ok(text),
            other => Err(other.problem("s", "a ticker such as BTCUSDT")),
        }
    }

    fn integer(self, column: &str) -> Result<i64, FieldProblem> {
        match self {
            Scalar::Integer(value) => Ok(value),
            other => Err(other.problem(column, "an integer")),
        }
    }

    fn boolean(self, column: &str) -> Result<bool, FieldProblem> {
        match self {
            Scalar::Boolean(value) => Ok(value),
            other => Err(other.problem(column, "true or false")),
        }
    }

    fn time_ns(self, column: &str) -> Result<i64, FieldProblem> {
        let time_ns = match self {
            Scalar::Integer(time) => binance_time_ns(time),
            _ => None,
        };
        time_ns.ok_or_else(|| self.problem(column, TimeUnit::Binance.expected()))
    }

    fn optional_time_ns(self, column: &str) -> Result<Option<i64>, FieldProblem> {
        match self {
            Scalar::Absent => Ok(None),
            present => present.time_ns(column).map(Some),
        }
    }

    fn problem(self, column: &str, expected: &str) -> FieldProblem {
        let found = match self {
            Scalar::Absent => "nothing".to_owned(),
            Scalar::Text(text) => text.to_owned(),
            Scalar::Integer(value) => value.to_string(),
            Scalar::Boolean(value) => value.to_string(),
            Scalar::Other => "another kind of value".to_owned(),
        };
        FieldProblem::new(column, found, expected)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(text))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(value).map_or(Scalar::Other, Scalar::Integer))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Boolean(value))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Scalar::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
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
        assert!(matches!(message.event, CaptureEvent::Other("markPriceUpdate")));
        check(&TRADE[..TRADE.len() - 1], "event");
        check(&TRADE[1..], "receive time");
        check(&TRADE.replacen('5', "0", 1), "receive time");
        check("5", "event");
        check("not a line", "receive time");
        check("", "receive time");
    }
}
