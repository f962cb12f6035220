//! Records of many ticks, by columns: how they are written. `TickDecoder` reads them, with whatever columns their writers have.

use std::borrow::Cow;

use crate::tick::{Scales, Side, Tick, TickKind};
use crate::wire::Wire;

/// Many ticks of one partition in one record, by columns: row i is made of item i of each array, and rows are in log order. All arrays but
/// `symbols` have one item per row; those with a default may be left empty instead, which means the default in every row. 1 to 65,536 rows.
/// The record is accepted or rejected as a whole.
#[derive(Wire)]
pub struct TickBatch<'a> {
    /// Dictionary of the symbols in this record, each `VENUE:TICKER` of 1 to 64 bytes of UTF-8 without control characters. An entry that no
    /// row uses has no effect.
    symbols: Vec<Cow<'a, str>>,
    /// Index of each row into `symbols`, from 0.
    symbol: Vec<i32>,
    /// Kind of each row. A trade leaves the bid and ask columns 0, a quote leaves `trade_id`, `side`, `price_e9` and `size_e9` 0.
    kind: Vec<TickKind>,
    /// Venue time of each row, in nanoseconds since the epoch; positive.
    event_time_ns: Vec<i64>,
    /// Recorder time of each row, in nanoseconds since the epoch, 0 where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    receive_time_ns: Vec<i64>,
    /// Venue trade id of each row; 0 for quotes and where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    trade_id: Vec<i64>,
    /// Aggressor of each trade. Empty: `NONE` in every row.
    #[wire(default = "[]")]
    side: Vec<Side>,
    /// Trade price of each row scaled by 1e-9. Negative prices are prices of spreads and energy; 0 is none: a trade at 0 is written as
    /// `ScaledTickBatch`. 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    price_e9: Vec<i64>,
    /// Trade size of each row scaled by 1e-9; 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    size_e9: Vec<i64>,
    /// Best bid of each row scaled by 1e-9; 0 where there is none, and for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_price_e9: Vec<i64>,
    /// Size at the best bid of each row scaled by 1e-9; 0 for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_size_e9: Vec<i64>,
    /// Best offer of each row scaled by 1e-9; 0 where there is none, and for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_price_e9: Vec<i64>,
    /// Size at the best offer of each row scaled by 1e-9; 0 for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_size_e9: Vec<i64>,
}

/// Ticks whose prices or sizes are no 64-bit numbers of 1e-9, and prices of 0: as `TickBatch`, but prices and sizes are decimal numbers with a
/// scale, which is the number of digits behind the decimal point. Row i is made of item i of each array, and rows are in log order. `symbols`,
/// `price_scale` and `size_scale` have one item per entry of the dictionary; all others have one item per row, and those with a default may be
/// left empty instead, which means the default in every row. 1 to 65,536 rows. The record is accepted or rejected as a whole. A symbol's
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
    kind: Vec<TickKind>,
    /// Venue time of each row, in nanoseconds since the epoch; positive.
    event_time_ns: Vec<i64>,
    /// Recorder time of each row, in nanoseconds since the epoch, 0 where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    receive_time_ns: Vec<i64>,
    /// Venue trade id of each row; 0 for quotes and where unknown. Empty: 0 in every row.
    #[wire(default = "[]")]
    trade_id: Vec<i64>,
    /// Aggressor of each trade. Empty: `NONE` in every row.
    #[wire(default = "[]")]
    side: Vec<Side>,
    /// Trade price of each row, of either sign or 0; 0 for quotes. Empty: 0 in every row, which must be quotes then.
    #[wire(default = "[]")]
    price: Vec<i64>,
    /// Trade size of each row; 0 for quotes. Empty: 0 in every row.
    #[wire(default = "[]")]
    size: Vec<i64>,
    /// Best bid of each row, of either sign; 0 where there is none, which a bid of 0 cannot be told from, and for trades. Empty: 0 in every
    /// row.
    #[wire(default = "[]")]
    bid_price: Vec<i64>,
    /// Size at the best bid of each row; 0 for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    bid_size: Vec<i64>,
    /// Best offer of each row, of either sign; 0 where there is none, which an offer of 0 cannot be told from, and for trades. Empty: 0 in
    /// every row.
    #[wire(default = "[]")]
    ask_price: Vec<i64>,
    /// Size at the best offer of each row; 0 for trades. Empty: 0 in every row.
    #[wire(default = "[]")]
    ask_size: Vec<i64>,
}

impl<'a> TickBatch<'a> {
    /// Ticks of which each has the symbol whose index in `symbols` is given.
    pub fn new(symbols: Vec<Cow<'a, str>>, symbol: Vec<i32>, ticks: &[Tick]) -> Self {
        Self {
            symbols,
            symbol,
            kind: column(ticks, |tick| tick.kind),
            event_time_ns: column(ticks, |tick| tick.event_time_ns),
            receive_time_ns: column_or_empty(ticks, |tick| tick.receive_time_ns),
            trade_id: column_or_empty(ticks, |tick| tick.trade_id),
            side: column_or_empty(ticks, |tick| tick.side),
            price_e9: prices(ticks),
            size_e9: column_or_empty(ticks, |tick| tick.size_e9),
            bid_price_e9: column_or_empty(ticks, |tick| tick.bid_price_e9),
            bid_size_e9: column_or_empty(ticks, |tick| tick.bid_size_e9),
            ask_price_e9: column_or_empty(ticks, |tick| tick.ask_price_e9),
            ask_size_e9: column_or_empty(ticks, |tick| tick.ask_size_e9),
        }
    }
}

impl<'a> ScaledTickBatch<'a> {
    /// Ticks of which each has the symbol and the scales whose index in `dictionary` is given.
    pub fn new(dictionary: &[(&'a str, Scales)], symbol: Vec<i32>, ticks: &[Tick]) -> Self {
        Self {
            symbols: dictionary.iter().map(|(symbol, _)| Cow::Borrowed(*symbol)).collect(),
            price_scale: dictionary.iter().map(|(_, scales)| scales.price.into()).collect(),
            size_scale: dictionary.iter().map(|(_, scales)| scales.size.into()).collect(),
            symbol,
            kind: column(ticks, |tick| tick.kind),
            event_time_ns: column(ticks, |tick| tick.event_time_ns),
            receive_time_ns: column_or_empty(ticks, |tick| tick.receive_time_ns),
            trade_id: column_or_empty(ticks, |tick| tick.trade_id),
            side: column_or_empty(ticks, |tick| tick.side),
            price: prices(ticks),
            size: column_or_empty(ticks, |tick| tick.size_e9),
            bid_price: column_or_empty(ticks, |tick| tick.bid_price_e9),
            bid_size: column_or_empty(ticks, |tick| tick.bid_size_e9),
            ask_price: column_or_empty(ticks, |tick| tick.ask_price_e9),
            ask_size: column_or_empty(ticks, |tick| tick.ask_size_e9),
        }
    }
}

fn column<T>(ticks: &[Tick], value: impl Fn(&Tick) -> T) -> Vec<T> {
    ticks.iter().map(value).collect()
}

/// Nothing stands for the default in every row.
fn column_or_empty<T: Default + PartialEq>(ticks: &[Tick], value: impl Fn(&Tick) -> T) -> Vec<T> {
    if ticks.iter().all(|tick| value(tick) == T::default()) { Vec::new() } else { column(ticks, value) }
}

/// That all prices are 0 is written out: nothing stands for the default in every row, which is no price.
fn prices(ticks: &[Tick]) -> Vec<i64> {
    let has_trades = ticks.iter().any(|tick| tick.kind == TickKind::Trade);
    if has_trades { column(ticks, |tick| tick.price_e9) } else { Vec::new() }
}
