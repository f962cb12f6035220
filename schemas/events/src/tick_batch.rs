//! Writers of records of many ticks, by columns. `TickDecoder` reads them, with any columns of their writers.

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Shape, Shaped};
use crate::tick::{Scales, Side, Tick, TickKind};
use crate::varint::put_long;
use crate::wire::Wire;

/// Many ticks of one partition in one record, by columns: row i is made of item i of each array, and rows are in log order. All arrays but
/// `symbols` have one item per row; those with a default may be left empty instead, which means the default in every row. 1 to 65,536 rows.
/// A bad row is rejected by itself.
#[derive(Wire)]
pub struct TickBatch<'a> {
    /// Dictionary of the symbols in this record, each `VENUE:TICKER` of 1 to 64 bytes of UTF-8 without control characters. An entry that no
    /// row uses has no effect.
    symbols: Vec<Cow<'a, str>>,
    /// Index of each row into `symbols`, from 0.
    symbol: Vec<i32>,
    /// Kind of each row. A trade leaves the bid and ask columns 0, a quote leaves `trade_id`, `side`, `price_e9` and `size_e9` 0.
    kind: Column<'a, Kind>,
    /// Venue time of each row, in nanoseconds since the epoch; positive.
    event_time_ns: Column<'a, EventTime>,
    /// Recorder time of each row, in nanoseconds since the epoch, 0 where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    receive_time_ns: Column<'a, ReceiveTime>,
    /// Venue trade id of each row; 0 for quotes and where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    trade_id: Column<'a, TradeId>,
    /// Aggressor of each trade. Empty: `NONE` in every row.
    #[wire(default = "[]")]
    side: Column<'a, Aggressor>,
    /// Trade price of each row scaled by 1e-9. Negative prices are prices of spreads and energy; 0 is none: a trade at 0 is written as
    /// `ScaledTickBatch`. 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    price_e9: Column<'a, Price>,
    /// Trade size of each row scaled by 1e-9; 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    size_e9: Column<'a, Size>,
    /// Best bid of each row scaled by 1e-9; 0 where there is none, and for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_price_e9: Column<'a, BidPrice>,
    /// Size at the best bid of each row scaled by 1e-9; 0 for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_size_e9: Column<'a, BidSize>,
    /// Best offer of each row scaled by 1e-9; 0 where there is none, and for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_price_e9: Column<'a, AskPrice>,
    /// Size at the best offer of each row scaled by 1e-9; 0 for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_size_e9: Column<'a, AskSize>,
}

/// Ticks whose prices or sizes are no 64-bit numbers of 1e-9, and prices of 0: as `TickBatch`, but prices and sizes are decimal numbers with a
/// scale, which is the number of digits behind the decimal point. Row i is made of item i of each array, and rows are in log order. `symbols`,
/// `price_scale` and `size_scale` have one item per entry of the dictionary; all others have one item per row, and those with a default may be
/// left empty instead, which means the default in every row. 1 to 65,536 rows. A bad row is rejected by itself. A symbol's
/// prices have one scale in all of its partition, that of its first tick there: prices of another scale are accepted where they can be
/// written with it exactly.
#[derive(Wire)]
pub struct ScaledTickBatch<'a> {
    /// Dictionary of the symbols in this record, each `VENUE:TICKER` of 1 to 64 bytes of UTF-8 without control characters. An entry that no
    /// row uses has no effect. A symbol may stand in several entries, with different scales.
    symbols: Vec<Cow<'a, str>>,
    /// Scale of the prices of each entry's rows: 0 to 18 digits behind the decimal point.
    price_scale: Vec<i32>,
    /// Scale of the sizes of each entry's rows: 0 to 18 digits behind the decimal point. Sizes are kept in 1e-9: more than nine digits are
    /// accepted where those behind the ninth are 0.
    size_scale: Vec<i32>,
    /// Index of each row into `symbols`, from 0: its symbol and its scales.
    symbol: Vec<i32>,
    /// Kind of each row. A trade leaves the bid and ask columns 0, a quote leaves `trade_id`, `side`, `price` and `size` 0.
    kind: Column<'a, Kind>,
    /// Venue time of each row, in nanoseconds since the epoch; positive.
    event_time_ns: Column<'a, EventTime>,
    /// Recorder time of each row, in nanoseconds since the epoch, 0 where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    receive_time_ns: Column<'a, ReceiveTime>,
    /// Venue trade id of each row; 0 for quotes and where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    trade_id: Column<'a, TradeId>,
    /// Aggressor of each trade. Empty: `NONE` in every row.
    #[wire(default = "[]")]
    side: Column<'a, Aggressor>,
    /// Trade price of each row, of either sign or 0; 0 for quotes. Empty: 0 in every row, which must be quotes then.
    #[wire(default = "[]")]
    price: Column<'a, Price>,
    /// Trade size of each row; 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    size: Column<'a, Size>,
    /// Best bid of each row, of either sign; 0 where there is none, which a bid of 0 cannot be told from, and for trades. Empty: 0 in every
    /// row.
    #[wire(default = "[]")]
    bid_price: Column<'a, BidPrice>,
    /// Size at the best bid of each row; 0 for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_size: Column<'a, BidSize>,
    /// Best offer of each row, of either sign; 0 where there is none, which an offer of 0 cannot be told from, and for trades. Empty: 0 in
    /// every row.
    #[wire(default = "[]")]
    ask_price: Column<'a, AskPrice>,
    /// Size at the best offer of each row; 0 for trades. Empty: 0 in every row.
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

/// The value of a tick in a column. It is a type and not a function, so that the compiler writes each column out.
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

/// A column: ticks to write, or items that were read.
enum Column<'a, V: Value> {
    Of(&'a [Tick]),
    Items(Vec<V::Item>),
}

impl<'a, V: Value<Item: Default + PartialEq>> Column<'a, V> {
    /// Returns an empty column if all values are the default, which an empty column means.
    fn or_empty(ticks: &'a [Tick]) -> Self {
        let is_default = ticks.iter().all(|tick| V::of(tick) == V::Item::default());
        Self::Of(if is_default { &[] } else { ticks })
    }
}

impl<'a> Column<'a, Price> {
    /// Returns the prices of a batch with trades even if all are 0. An empty column would mean that trades have no
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
