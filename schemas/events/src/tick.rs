//! Ticks: one at a time ([`Tick`]) for producers, and as columns ([`TickColumns`]) for the pipeline.

use crate::check::InvalidTick;
use crate::wire::Wire;

pub use crate::symbol_table::SymbolTable;

/// Kind of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
#[repr(u8)]
pub enum TickKind {
    /// A trade, with price, size, side and trade id.
    Trade = 0,
    /// A change of the best bid or offer, in the `bid_…` and `ask_…` fields.
    Quote = 1,
}

/// Aggressor of a trade: the side that crossed the spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Wire)]
#[repr(u8)]
pub enum Side {
    /// The aggressor is unknown, or the tick is a quote.
    #[default]
    None = 0,
    /// The buyer was the aggressor.
    Buy = 1,
    /// The seller was the aggressor.
    Sell = 2,
}

/// Numbers of digits after the decimal point, of prices and sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scales {
    /// Number of digits of prices.
    pub price: u8,
    /// Number of digits of sizes.
    pub size: u8,
}

impl Scales {
    /// Nine digits, as in almost all prices and sizes.
    pub const E9: Self = Self { price: 9, size: 9 };
    /// Greatest number of digits.
    pub const MAX: u8 = 18;
}

impl Default for Scales {
    fn default() -> Self {
        Self::E9
    }
}

/// The scales of a row that are not [`Scales::E9`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowScales {
    /// The row.
    pub row: u32,
    /// The row's scales.
    pub scales: Scales,
}

/// One trade or quote. Producers of many ticks should write `TickBatch` or the smaller `PackedTickBatch`, which cost the
/// broker and the reader far less per tick. Trades at a price of 0, and prices or sizes that are not 64-bit multiples of 1e-9, need `ScaledTickBatch`.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Tick {
    /// Symbol, `VENUE:TICKER`, such as `BINANCE:BTCUSDT`: 1 to 64 bytes of UTF-8 without control characters. The same
    /// ticker on two venues is two symbols.
    pub symbol: String,
    /// Trade or quote. A trade has 0 in the bid and ask fields. A quote has 0 in `trade_id`, `price_e9` and `size_e9`,
    /// and the side `NONE`.
    pub kind: TickKind,
    /// Time of the event at the venue, in nanoseconds since 1970-01-01T00:00:00Z; positive. Bars are cut by this time.
    pub event_time_ns: i64,
    /// Time at which the recorder received the tick, in nanoseconds since the Unix epoch; 0 if unknown. It may be
    /// before the event time, because clocks differ.
    #[wire(default = "0")]
    pub receive_time_ns: i64,
    /// Trade id of the venue; 0 if unknown, and for quotes.
    #[wire(default = "0")]
    pub trade_id: i64,
    /// Aggressor of a trade; `NONE` if unknown, and for quotes.
    #[wire(default = "\"NONE\"")]
    pub side: Side,
    /// Trade price, in units of 1e-9: 61,234.5 is 61234500000000. It is not 0 for a trade, and may be negative, as for
    /// spreads and energy. 0 for quotes.
    #[wire(default = "0")]
    pub price_e9: i64,
    /// Trade size, in units of 1e-9; 0 or more; 0 for quotes.
    #[wire(default = "0")]
    pub size_e9: i64,
    /// Best bid, in units of 1e-9; 0 if there is none, and for trades. It may be negative.
    #[wire(default = "0")]
    pub bid_price_e9: i64,
    /// Size at the best bid, in units of 1e-9; 0 for trades. If both sizes are 0, sizes are unknown; otherwise a side
    /// of size 0 has no orders.
    #[wire(default = "0")]
    pub bid_size_e9: i64,
    /// Best offer, in units of 1e-9; 0 if there is none, and for trades. It may be negative.
    #[wire(default = "0")]
    pub ask_price_e9: i64,
    /// Size at the best offer, in units of 1e-9; 0 for trades. If both sizes are 0, sizes are unknown; otherwise a side
    /// of size 0 has no orders.
    #[wire(default = "0")]
    pub ask_size_e9: i64,
    /// Scales of prices and sizes. The record `Tick` has no field for them, so only ticks with [`Scales::E9`] are
    /// written as one.
    #[wire(skip)]
    pub scales: Scales,
}

/// Ticks of one partition as columns: row `i` of every column is one tick, in log order. A trade has 0 in the quote
/// columns, and a quote in the trade columns, so that each column can be used on its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TickColumns {
    /// Symbol id in the partition's [`SymbolTable`].
    pub symbol: Vec<u32>,
    /// Trade or quote.
    pub kind: Vec<TickKind>,
    /// Venue time, ns since the epoch.
    pub event_time_ns: Vec<i64>,
    /// Recorder time, ns since the epoch; 0 if unknown.
    pub receive_time_ns: Vec<i64>,
    /// Venue trade id.
    pub trade_id: Vec<i64>,
    /// Aggressor.
    pub side: Vec<Side>,
    /// Trade price.
    pub price_e9: Vec<i64>,
    /// Trade size.
    pub size_e9: Vec<i64>,
    /// Best bid.
    pub bid_price_e9: Vec<i64>,
    /// Size at the best bid.
    pub bid_size_e9: Vec<i64>,
    /// Best offer.
    pub ask_price_e9: Vec<i64>,
    /// Size at the best offer.
    pub ask_size_e9: Vec<i64>,
    /// Rows whose prices and sizes are not scaled by 1e-9, ascending.
    pub scales: Vec<RowScales>,
    /// Invalid rows of the current record, ascending, each with its first problem. They must be skipped: they have no
    /// symbol number, and their other values are meaningless.
    pub rejected: Vec<InvalidTick>,
}

impl TickColumns {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.event_time_ns.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.event_time_ns.is_empty()
    }

    /// Returns the rows that were not rejected.
    pub fn good_rows(&self) -> impl Iterator<Item = usize> {
        let mut rejected = self.rejected.iter().peekable();
        (0..self.len()).filter(move |row| {
            while rejected.next_if(|rejected| rejected.row < *row).is_some() {}
            rejected.peek().is_none_or(|rejected| rejected.row != *row)
        })
    }

    /// Removes all rows, but keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes the rows from `len` on.
    pub fn truncate(&mut self, len: usize) {
        // The pattern has no `..`, so that a new column cannot be forgotten.
        let Self {
            symbol,
            kind,
            event_time_ns,
            receive_time_ns,
            trade_id,
            side,
            price_e9,
            size_e9,
            bid_price_e9,
            bid_size_e9,
            ask_price_e9,
            ask_size_e9,
            scales,
            rejected,
        } = self;
        rejected.clear();
        scales.truncate(scales.partition_point(|of| (of.row as usize) < len));
        symbol.truncate(len);
        kind.truncate(len);
        side.truncate(len);
        for column in [
            event_time_ns,
            receive_time_ns,
            trade_id,
            price_e9,
            size_e9,
            bid_price_e9,
            bid_size_e9,
            ask_price_e9,
            ask_size_e9,
        ] {
            column.truncate(len);
        }
    }

    /// Appends a tick without checking it. Use [`crate::TickDecoder`] for ticks from other programs.
    pub fn push(&mut self, tick: &Tick, symbols: &mut SymbolTable) {
        if tick.scales != Scales::E9 {
            self.scales.push(RowScales { row: self.len() as u32, scales: tick.scales });
        }
        self.symbol.push(symbols.intern(&tick.symbol));
        self.kind.push(tick.kind);
        self.event_time_ns.push(tick.event_time_ns);
        self.receive_time_ns.push(tick.receive_time_ns);
        self.trade_id.push(tick.trade_id);
        self.side.push(tick.side);
        self.price_e9.push(tick.price_e9);
        self.size_e9.push(tick.size_e9);
        self.bid_price_e9.push(tick.bid_price_e9);
        self.bid_size_e9.push(tick.bid_size_e9);
        self.ask_price_e9.push(tick.ask_price_e9);
        self.ask_size_e9.push(tick.ask_size_e9);
    }

    /// Returns one row as a tick.
    ///
    /// # Panics
    /// There is no such row, or `symbols` is not the table of these columns.
    pub fn tick(&self, row: usize, symbols: &SymbolTable) -> Tick {
        Tick {
            symbol: symbols.name(self.symbol[row]).to_owned(),
            kind: self.kind[row],
            event_time_ns: self.event_time_ns[row],
            receive_time_ns: self.receive_time_ns[row],
            trade_id: self.trade_id[row],
            side: self.side[row],
            price_e9: self.price_e9[row],
            size_e9: self.size_e9[row],
            bid_price_e9: self.bid_price_e9[row],
            bid_size_e9: self.bid_size_e9[row],
            ask_price_e9: self.ask_price_e9[row],
            ask_size_e9: self.ask_size_e9[row],
            scales: self.scales_of(row),
        }
    }

    /// Returns the scales of a row.
    pub fn scales_of(&self, row: usize) -> Scales {
        let found = self.scales.binary_search_by_key(&row, |of| of.row as usize);
        found.map_or(Scales::E9, |position| self.scales[position].scales)
    }

    /// Returns the rows from `first` on whose scales are not [`Scales::E9`].
    pub fn scales_from(&self, first: usize) -> &[RowScales] {
        &self.scales[self.scales.partition_point(|of| (of.row as usize) < first)..]
    }
}
