//! Encoding of records of many ticks, by columns. `TickDecoder` reads such records, whatever the columns of their
//! writers.

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Shape, Shaped};
use crate::tick::{Scales, Side, Tick, TickKind};
use crate::varint::put_long;
use crate::wire::Wire;

/// Many ticks of one partition in one record, by columns and in log order: row i has item i of each array. A record has
/// 1 to 65,536 rows. Every array except `symbols` has one item per row. An array with a default may be empty, which
/// means the default in every row. A bad row is rejected alone.
#[derive(Wire)]
pub struct TickBatch<'a> {
    /// Dictionary of the record's symbols, each `VENUE:TICKER` in 1 to 64 bytes of UTF-8 without control characters.
    /// Unused entries have no effect.
    symbols: Vec<Cow<'a, str>>,
    /// Symbol of each row: its index in `symbols`, from 0.
    symbol: Vec<i32>,
    /// Kind of each row. A trade has 0 in the bid and ask columns. A quote has 0 in `trade_id`, `price_e9` and
    /// `size_e9`, and the side `NONE`.
    kind: Column<'a, Kind>,
    /// Time of each row's event at the venue, in nanoseconds since 1970-01-01T00:00:00Z; positive.
    event_time_ns: Column<'a, EventTime>,
    /// Time at which the recorder received each row, in nanoseconds since the Unix epoch; 0 if unknown. Empty: 0 in
    /// every row.
    #[wire(default = "[]")]
    receive_time_ns: Column<'a, ReceiveTime>,
    /// Trade id of the venue for each row; 0 if unknown, and for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    trade_id: Column<'a, TradeId>,
    /// Aggressor of each trade; `NONE` if unknown, and for quotes. Empty: `NONE` in every row.
    #[wire(default = "[]")]
    side: Column<'a, Aggressor>,
    /// Trade price of each row, in units of 1e-9; 0 for quotes. It may be negative, as for spreads and energy. 0 means
    /// no price, so trades at 0 need `ScaledTickBatch`. Empty: 0 in every row.
    #[wire(default = "[]")]
    price_e9: Column<'a, Price>,
    /// Trade size of each row, in units of 1e-9; 0 or more; 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    size_e9: Column<'a, Size>,
    /// Best bid of each row, in units of 1e-9; 0 if there is none, and for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_price_e9: Column<'a, BidPrice>,
    /// Size at the best bid of each row, in units of 1e-9; 0 for trades. If both sizes of a quote are 0, they are
    /// unknown; otherwise a side of size 0 has no orders. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_size_e9: Column<'a, BidSize>,
    /// Best offer of each row, in units of 1e-9; 0 if there is none, and for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_price_e9: Column<'a, AskPrice>,
    /// Size at the best offer of each row, in units of 1e-9; 0 for trades. If both sizes of a quote are 0, they are
    /// unknown; otherwise a side of size 0 has no orders. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_size_e9: Column<'a, AskSize>,
}

/// Many ticks of one partition in one record, by columns, with a decimal scale for prices and sizes. It allows trades
/// at a price of 0, and numbers that are not 64-bit multiples of 1e-9. A scale is the number of digits after the
/// decimal point: 1234 with scale 2 is 12.34. Row i has item i of each array, in log order; a record has 1 to 65,536
/// rows. `symbols`, `price_scale` and `size_scale` have one item per entry of the dictionary; every other array has one
/// item per row. An array with a default may be empty, which means the default in every row. A bad row is rejected
/// alone. The first tick of a symbol in a partition sets the scale of its prices there. Prices of another scale are
/// accepted if they are exact in that one.
#[derive(Wire)]
pub struct ScaledTickBatch<'a> {
    /// Dictionary of the record's symbols, each `VENUE:TICKER` in 1 to 64 bytes of UTF-8 without control characters.
    /// Unused entries have no effect. A symbol may have several entries, with different scales.
    symbols: Vec<Cow<'a, str>>,
    /// Scale of the prices in each entry's rows: 0 to 18 digits after the decimal point.
    price_scale: Vec<i32>,
    /// Scale of the sizes in each entry's rows: 0 to 18 digits after the decimal point. Sizes are kept in units of
    /// 1e-9, so digits after the ninth must be 0.
    size_scale: Vec<i32>,
    /// Entry of each row, which gives its symbol and scales: the index in `symbols`, from 0.
    symbol: Vec<i32>,
    /// Kind of each row. A trade has 0 in the bid and ask columns. A quote has 0 in `trade_id`, `price` and `size`, and
    /// the side `NONE`.
    kind: Column<'a, Kind>,
    /// Time of each row's event at the venue, in nanoseconds since 1970-01-01T00:00:00Z; positive.
    event_time_ns: Column<'a, EventTime>,
    /// Time at which the recorder received each row, in nanoseconds since the Unix epoch; 0 if unknown. Empty: 0 in
    /// every row.
    #[wire(default = "[]")]
    receive_time_ns: Column<'a, ReceiveTime>,
    /// Trade id of the venue for each row; 0 if unknown, and for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    trade_id: Column<'a, TradeId>,
    /// Aggressor of each trade; `NONE` if unknown, and for quotes. Empty: `NONE` in every row.
    #[wire(default = "[]")]
    side: Column<'a, Aggressor>,
    /// Trade price of each row, in its price scale; 0 for quotes. A trade's price may be negative or 0. Empty: 0 in
    /// every row, and all rows must be quotes.
    #[wire(default = "[]")]
    price: Column<'a, Price>,
    /// Trade size of each row, in its size scale; 0 or more; 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    size: Column<'a, Size>,
    /// Best bid of each row, in its price scale; 0 if there is none, and for trades. It may be negative. A bid at 0
    /// counts if its size is not 0. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_price: Column<'a, BidPrice>,
    /// Size at the best bid of each row, in its size scale; 0 for trades. If both sizes of a quote are 0, they are
    /// unknown; otherwise a side of size 0 has no orders. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_size: Column<'a, BidSize>,
    /// Best offer of each row, in its price scale; 0 if there is none, and for trades. It may be negative. An offer at
    /// 0 counts if its size is not 0. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_price: Column<'a, AskPrice>,
    /// Size at the best offer of each row, in its size scale; 0 for trades. If both sizes of a quote are 0, they are
    /// unknown; otherwise a side of size 0 has no orders. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_size: Column<'a, AskSize>,
}

impl<'a> TickBatch<'a> {
    /// Returns a batch of ticks, each with the index of its symbol in `symbols`.
    pub fn new(symbols: Vec<Cow<'a, str>>, symbol: Vec<i32>, ticks: &'a [Tick]) -> Self {
        Self {
            symbols,
            symbol,
            kind: Column::Of(ticks),
            event_time_ns: Column::Of(ticks),
            receive_time_ns: Column::or_empty(ticks),
            trade_id: Column::or_empty(ticks),
            side: Column::or_empty(ticks),
            price_e9: Column::of_trades(ticks),
            size_e9: Column::or_empty(ticks),
            bid_price_e9: Column::or_empty(ticks),
            bid_size_e9: Column::or_empty(ticks),
            ask_price_e9: Column::or_empty(ticks),
            ask_size_e9: Column::or_empty(ticks),
        }
    }
}

impl<'a> ScaledTickBatch<'a> {
    /// Returns a batch of ticks, each with the index of its symbol and scales in `dictionary`.
    pub fn new(dictionary: &[(&'a str, Scales)], symbol: Vec<i32>, ticks: &'a [Tick]) -> Self {
        Self {
            symbols: dictionary.iter().map(|(symbol, _)| Cow::Borrowed(*symbol)).collect(),
            price_scale: dictionary.iter().map(|(_, scales)| scales.price.into()).collect(),
            size_scale: dictionary.iter().map(|(_, scales)| scales.size.into()).collect(),
            symbol,
            kind: Column::Of(ticks),
            event_time_ns: Column::Of(ticks),
            receive_time_ns: Column::or_empty(ticks),
            trade_id: Column::or_empty(ticks),
            side: Column::or_empty(ticks),
            price: Column::of_trades(ticks),
            size: Column::or_empty(ticks),
            bid_price: Column::or_empty(ticks),
            bid_size: Column::or_empty(ticks),
            ask_price: Column::or_empty(ticks),
            ask_size: Column::or_empty(ticks),
        }
    }
}

/// The value of a tick in a column. It is a type and not a function, so that the compiler generates code for each
/// column.
trait Value {
    type Item: for<'a> Wire<'a>;
    fn of(tick: &Tick) -> Self::Item;
}

macro_rules! values {
    ($($name:ident: $item:ty = $field:ident,)+) => {$(
        struct $name;

        impl Value for $name {
            type Item = $item;

            fn of(tick: &Tick) -> $item {
                tick.$field
            }
        }
    )+};
}

values! {
    Kind: TickKind = kind,
    EventTime: i64 = event_time_ns,
    ReceiveTime: i64 = receive_time_ns,
    TradeId: i64 = trade_id,
    Aggressor: Side = side,
    Price: i64 = price_e9,
    Size: i64 = size_e9,
    BidPrice: i64 = bid_price_e9,
    BidSize: i64 = bid_size_e9,
    AskPrice: i64 = ask_price_e9,
    AskSize: i64 = ask_size_e9,
}

/// A column: ticks to be written, or items that were read.
enum Column<'a, V: Value> {
    Of(&'a [Tick]),
    Items(Vec<V::Item>),
}

impl<'a, V: Value<Item: Default + PartialEq>> Column<'a, V> {
    /// Returns an empty column if all values are the default, because an empty column means that.
    fn or_empty(ticks: &'a [Tick]) -> Self {
        let is_default = ticks.iter().all(|tick| V::of(tick) == V::Item::default());
        Self::Of(if is_default { &[] } else { ticks })
    }
}

impl<'a> Column<'a, Price> {
    /// Returns the prices of a batch with trades, even if all are 0. An empty column would mean that trades have no
    /// price.
    fn of_trades(ticks: &'a [Tick]) -> Self {
        let has_trades = ticks.iter().any(|tick| tick.kind == TickKind::Trade);
        Self::Of(if has_trades { ticks } else { &[] })
    }
}

impl<V: Value> Shaped for Column<'_, V> {
    const SHAPE: Shape = V::Item::MANY;
}

impl<'a, V: Value> Wire<'a> for Column<'a, V> {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Of([]) => out.push(0),
            Self::Of(ticks) => {
                put_long(ticks.len() as i64, out);
                for tick in *ticks {
                    V::of(tick).put(out);
                }
                out.push(0);
            }
            Self::Items(items) => items.put(out),
        }
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Wire::get(cursor).map(Self::Items)
    }
}
