//! Ticks in the form that programs pass: decimals as text.

use warptape_schemas::tick::{Scales, Side, Tick, TickKind};
use warptape_sources::{DecimalError, parse_prices, parse_sizes};

use crate::usage_error::UsageError;

/// A tick with decimals as text, such as `61837.63`. Empty texts and 0 mean "none" or "unknown".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenTick {
    /// Symbol, `VENUE:TICKER`.
    pub symbol: String,
    /// `TRADE` or `QUOTE`; if empty, a tick with a price is a trade.
    pub kind: String,
    /// Time of the event, ns since the epoch.
    pub event_time_ns: i64,
    /// Time of receipt, ns since the epoch.
    pub receive_time_ns: i64,
    /// Trade id of the venue.
    pub trade_id: i64,
    /// `BUY` or `SELL`: side of the aggressor.
    pub side: String,
    /// Trade price.
    pub price: String,
    /// Trade size.
    pub size: String,
    /// Best bid.
    pub bid_price: String,
    /// Size at the best bid.
    pub bid_size: String,
    /// Best ask price.
    pub ask_price: String,
    /// Size at the best ask.
    pub ask_size: String,
}

impl GivenTick {
    /// Returns the tick.
    ///
    /// # Errors
    /// If a field is invalid; the message names it.
    pub fn tick(&self) -> Result<Tick, UsageError> {
        let kind = match (&*self.kind, self.price.is_empty()) {
            ("TRADE", _) | ("", false) => TickKind::Trade,
            ("QUOTE", _) | ("", true) => TickKind::Quote,
            (other, _) => return Err(self.wrong("kind", other, "TRADE or QUOTE")),
        };
        let side = match &*self.side {
            "BUY" => Side::Buy,
            "SELL" => Side::Sell,
            "" | "NONE" => Side::None,
            other => return Err(self.wrong("side", other, "BUY, SELL or NONE")),
        };
        let prices = [("price", &self.price), ("bid_price", &self.bid_price), ("ask_price", &self.ask_price)];
        let sizes = [("size", &self.size), ("bid_size", &self.bid_size), ("ask_size", &self.ask_size)];
        let [price_e9, bid_price_e9, ask_price_e9] =
            self.scaled(prices, |texts| parse_prices(texts, true))?;
        let [size_e9, bid_size_e9, ask_size_e9] = self.scaled(sizes, parse_sizes)?;
        Ok(Tick {
            symbol: self.symbol.clone(),
            kind,
            event_time_ns: self.event_time_ns,
            receive_time_ns: self.receive_time_ns,
            trade_id: self.trade_id,
            side,
            price_e9,
            size_e9,
            bid_price_e9,
            bid_size_e9,
            ask_price_e9,
            ask_size_e9,
            scales: Scales::E9,
        })
    }

    /// Parses three numbers to multiples of 1e-9. More decimals need the scale of the symbol's first price, which only
    /// a feed of files keeps in the log.
    fn scaled(
        &self,
        fields: [(&str, &String); 3],
        parse: impl Fn([&[u8]; 3]) -> Result<([i64; 3], u8), (usize, DecimalError)>,
    ) -> Result<[i64; 3], UsageError> {
        let texts = fields.map(|(_, text)| if text.is_empty() { &b"0"[..] } else { text.as_bytes() });
        let wrong = |at: usize, wanted: &str| self.wrong(fields[at].0, fields[at].1, wanted);
        match parse(texts) {
            Ok((values, 9)) => Ok(values),
            Ok(_) => {
                // Digits beyond nine, before or after the point.
                let beyond = |text: &str| {
                    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
                    whole.len().saturating_sub(9).max(fraction.len().saturating_sub(9))
                };
                let worst = (0..3).max_by_key(|at| beyond(fields[*at].1)).unwrap_or_default();
                Err(wrong(
                    worst,
                    "at most 9 decimals and 9,223,372,036; `warptape feed csv` takes other scales",
                ))
            }
            Err((at, error)) => Err(wrong(at, &error.to_string())),
        }
    }

    fn wrong(&self, field: &str, found: &str, wanted: &str) -> UsageError {
        let Self { symbol, event_time_ns, .. } = self;
        UsageError(format!("tick of {symbol:?} at {event_time_ns} ns: {field} is {found:?}; give {wanted}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(price: &str) -> GivenTick {
        GivenTick {
            symbol: "A:X".to_owned(),
            event_time_ns: 1,
            price: price.to_owned(),
            ..GivenTick::default()
        }
    }

    #[test]
    fn decimals_are_taken_exactly_and_others_refused() {
        for (text, expected) in [("12.5", 12_500_000_000), ("-0.000000001", -1), ("7", 7_000_000_000)] {
            let tick = trade(text).tick().expect(text);
            assert_eq!(
                (tick.kind, tick.price_e9, tick.scales),
                (TickKind::Trade, expected, Scales::E9),
                "{text}"
            );
        }
        for text in ["1e-7", "NaN", "0.0000000001", "99999999999", "1,5"] {
            let error = trade(text).tick().expect_err(text).to_string();
            assert!(error.contains("tick of \"A:X\" at 1 ns: price is") && error.contains(text), "{error}");
        }
        let error = GivenTick { size: "-1".to_owned(), ..trade("1") }.tick().expect_err("a negative size");
        assert!(error.to_string().contains("size is \"-1\""), "{error}");
    }

    #[test]
    fn a_tick_without_a_price_is_a_quote() {
        let quote = GivenTick { bid_price: "3.1".to_owned(), ..trade("") };
        let tick = quote.tick().expect("a quote");
        assert_eq!((tick.kind, tick.price_e9, tick.bid_price_e9), (TickKind::Quote, 0, 3_100_000_000));
        let error = GivenTick { side: "B".to_owned(), ..trade("1") }.tick().expect_err("no side");
        assert!(error.to_string().contains("side is \"B\"; give BUY, SELL or NONE"), "{error}");
    }
}
