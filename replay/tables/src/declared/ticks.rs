//! Tables of ticks: accepted, late, and rejected.

use super::joined;
use crate::table::{
    Column, ColumnKind, Table, bytes, column, int, maybe_bytes, maybe_int, maybe_price, maybe_size,
    maybe_text, maybe_time, text, time, word,
};

/// Columns of a tick, in every table of ticks.
const TICK: &[Column] = &[
    word("symbol", "`VENUE:TICKER`"),
    word("kind", "`TRADE` or `QUOTE`"),
    time("event_time_ns", "time of the event at the venue"),
    maybe_time("receive_time_ns", "time at which the recorder received it; null if unknown"),
    maybe_int("trade_id", "trade id of the venue; null if unknown, and for quotes"),
    word("side", "aggressor of a trade: `BUY`, `SELL`, or `NONE` if unknown and for quotes"),
    maybe_price("price", "price of a trade; null for quotes"),
    maybe_size("size", "size of a trade; null for quotes"),
    maybe_price("bid_price", "best bid of a quote; null for trades, and if price and size are 0"),
    maybe_size(
        "bid_size",
        "size of the best bid; null if the price is. If all sizes of a quote are 0, they are unknown",
    ),
    maybe_price("ask_price", "best offer of a quote; null for trades, and if price and size are 0"),
    maybe_size(
        "ask_size",
        "size of the best offer; null if the price is. If all sizes of a quote are 0, they are unknown",
    ),
    int("price_scale", "digits after the decimal point of the prices in the record"),
    int("size_scale", "digits after the decimal point of the sizes in the record"),
];

const TICK_PLACE: &[Column] = &[
    int("partition", "partition of the topic"),
    int("offset", "offset of the record"),
    int("index", "row of the tick in the record, from 0"),
    time("record_time_ns", "time of the record in the log"),
];

const LATE_PLACE: &[Column] = &[
    int("partition", "partition of the topic"),
    int("offset", "offset in the topic of late ticks"),
    time("record_time_ns", "time of its record in the log"),
    word("source_topic", "topic of the tick's record"),
    int("source_partition", "partition of the tick's record"),
    int("source_offset", "offset of the tick's record"),
    int("source_index", "row of the tick in that record"),
];

const LATENESS: &[Column] = &[
    time("watermark_ns", "watermark of the partition when the tick arrived"),
    int("lateness_ns", "watermark minus event time, in nanoseconds"),
];

/// Ticks.
pub(crate) const TICKS: Table = Table {
    name: "ticks",
    words: "A valid tick, in the order of its partition. Late ticks are here as well; rejected ones are dead letters.",
    columns: &joined::<{ TICK_PLACE.len() + TICK.len() }>(&[TICK_PLACE, TICK]),
};

/// Late ticks.
pub(crate) const LATE: Table = Table {
    name: "late",
    words: "A tick that arrived too late for its bars.",
    columns: &joined::<{ LATE_PLACE.len() + TICK.len() + LATENESS.len() }>(&[LATE_PLACE, TICK, LATENESS]),
};

/// Dead letters.
pub(crate) const DEAD_LETTERS: Table = Table {
    name: "dead_letters",
    words: "A record, or rows of one, that could not be processed.",
    columns: &[
        int("partition", "partition of the topic"),
        int("offset", "offset in the topic of dead letters"),
        time("record_time_ns", "time of its record in the log"),
        word("source_topic", "topic of the rejected record"),
        int("source_partition", "partition of the rejected record"),
        int("source_offset", "offset of the rejected record; of the first one for a batch of records"),
        maybe_int(
            "source_last_offset",
            "offset of the last record of an unreadable batch; null for one record",
        ),
        word("reason", "reason of the rejection, as in dead_letter.avsc"),
        text("detail", "reason in words"),
        column(
            "rows",
            ColumnKind::Ints,
            false,
            "rejected rows of the record; empty if all of it was rejected",
        ),
        maybe_bytes("key", "key of the record, up to 4,096 bytes"),
        bytes("value", "value of the record, up to 524,288 bytes, or a record of the rejected rows alone"),
        maybe_int("key_bytes", "length of the whole key; null if neither key nor value was cut"),
        maybe_int("value_bytes", "length of the whole value; null if neither key nor value was cut"),
        maybe_text("digest", "BLAKE3 hash of the whole key and value as hex digits; null if neither was cut"),
    ],
};
