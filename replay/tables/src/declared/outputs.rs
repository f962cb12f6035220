//! The table of signals.

use warptape_schemas::signal::INDICATOR_COUNT;
use warptape_stages::Indicator;

use super::joined;
use crate::table::{
    Column, Table, float, int, maybe_bool, maybe_float, maybe_int, maybe_price, maybe_size, maybe_text, time,
    word,
};

/// Signals.
pub(crate) const SIGNALS: Table = Table {
    name: "signals",
    words: "A signal, in the order of its partition.",
    columns: &joined::<{ BAR.len() + FURTHER_COUNT + REST.len() }>(&[BAR, &FURTHER, REST]),
};

/// Number of indicators that are off by default.
pub(crate) const FURTHER_COUNT: usize = Indicator::ALL.len() - INDICATOR_COUNT;

/// Columns of the indicators that are off by default, which signals have in a map.
const FURTHER: [Column; FURTHER_COUNT] = {
    let mut columns = [maybe_float("", ""); FURTHER_COUNT];
    let mut index = 0;
    while index < FURTHER_COUNT {
        let indicator = Indicator::ALL[INDICATOR_COUNT + index];
        columns[index] = maybe_float(indicator.name(), indicator.about());
        index += 1;
    }
    columns
};

/// Columns before those of the indicators that are off by default.
const BAR: &[Column] = &[
    int("partition", "partition of the topic; ticks and their signals have the same partition"),
    int("offset", "offset in the topic of signals"),
    time("record_time_ns", "time of its record in the log"),
    word("symbol", "`VENUE:TICKER`"),
    word("kind", "what happened: `BAR`, `EMA_CROSS_UP` and so on, as in signal.avsc"),
    word("bar_spec", "specification of the bar: `1s`, `tick:100`, `volume:10`"),
    time("bar_start_ns", "event time of the start of the bar"),
    time("bar_end_ns", "event time of the end of the bar"),
    int("source_offset", "offset of the tick record that caused it"),
    int("source_index", "row of the tick in that record"),
    float("value", "the value that crossed; for a bar, the close"),
    float("threshold", "the value or threshold that was crossed; 0 for a bar"),
    maybe_price("open", "first price of the bar; null if the signal has no bar"),
    maybe_price("high", "highest price of the bar"),
    maybe_price("low", "lowest price of the bar"),
    maybe_price("close", "last price of the bar"),
    maybe_size(
        "volume",
        "sum of the sizes; in logs of earlier versions, 9,223,372,036.854775807 means at least that much",
    ),
    maybe_int("trades", "number of trades"),
    maybe_price("bid_price", "last bid before the end of the bar; null if there is none"),
    maybe_price("ask_price", "last offer before the end of the bar; null if there is none"),
    maybe_float("sma", "simple moving average; indicators are null until enough bars closed"),
    maybe_float("ema_fast", "fast exponential moving average"),
    maybe_float("ema_slow", "slow exponential moving average"),
    maybe_float("bollinger_middle", "middle of the Bollinger bands"),
    maybe_float("bollinger_upper", "upper Bollinger band"),
    maybe_float("bollinger_lower", "lower Bollinger band"),
    maybe_float("rsi", "relative strength index"),
    maybe_float("macd", "MACD"),
    maybe_float("macd_signal", "signal line of MACD"),
    maybe_float("macd_histogram", "MACD minus its signal line"),
    maybe_float("atr", "average true range"),
    maybe_float("vwap", "volume-weighted average price"),
    maybe_float("momentum", "momentum"),
    maybe_float("roc", "rate of change"),
    maybe_float("zscore", "z-score"),
    maybe_float("realised_volatility", "realised volatility"),
];

/// Columns after those of the indicators that are off by default.
const REST: &[Column] = &[
    maybe_text(
        "further_indicators",
        "JSON with values, by name, of formulas and other indicators without a column here",
    ),
    maybe_bool("partial", "true if the bar lacks a part of its interval"),
    maybe_size("buy_volume", "sum of the sizes of trades with an aggressive buyer"),
    maybe_size("sell_volume", "sum of the sizes of trades with an aggressive seller"),
    maybe_int("buy_trades", "number of trades with an aggressive buyer"),
    maybe_int("sell_trades", "number of trades with an aggressive seller"),
    maybe_size("bid_size", "size of the bid; 0 if it is unknown, null without a bid"),
    maybe_size("ask_size", "size of the offer; 0 if it is unknown, null without an offer"),
    maybe_bool("quote_forgotten", "true if the quote of the bar was dropped, so bid and offer are missing"),
    maybe_text(
        "name",
        "name of the alert, for kind `ALERT`; of the formula or alert that failed, for kind `FAULT`",
    ),
];
