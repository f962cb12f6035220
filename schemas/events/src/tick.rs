//! Ticks: one at a time ([`Tick`]) for producers, and as columns ([`TickColumns`]) for the pipeline.

use crate::check::InvalidTick;
use crate::wire::Wire;

pub use crate::symbol_table::SymbolTable;

/// What a tick reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
#[repr(u8)]
pub enum TickKind {
    /// A trade happened: price, size, side and trade id are set.
    Trade = 0,
    /// The best bid or offer changed: the `bid_…` and `ask_…` fields are set.
    Quote = 1,
}

/// Who crossed the spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Wire)]
#[repr(u8)]
pub enum Side {
    /// Not known, or a quote.
    #[default]
    None = 0,
    /// The buyer was the aggressor.
    Buy = 1,
    /// The seller was the aggressor.
    Sell = 2,
}

/// Numbers of digits behind the decimal point, of prices and sizes.
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
    /// Its scales.
    pub scales: Scales,
}

/// One trade or quote: the record that any producer can write. Producers of many ticks use `TickBatch`, which costs the broker and the reader
/// far less per tick. A trade at a price of 0 is written as `ScaledTickBatch`.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct Tick {
    /// `VENUE:TICKER`, such as `BINANCE:BTCUSDT`; the same ticker on two venues is two symbols. 1 to 64 bytes of UTF-8 without control
    /// characters.
    pub symbol: String,
    /// Trade or quote. A trade leaves the bid and ask fields 0, a quote leaves `trade_id`, `side`, `price_e9` and `size_e9` 0.
    pub kind: TickKind,
    /// Time of the event at the venue, in nanoseconds since 1970-01-01T00:00:00Z. Positive. Bars are cut by this time.
    pub event_time_ns: i64,
    /// Time the recorder received it, in nanoseconds since the epoch; 0 where unknown. It may lie before the event time: real clocks do
    /// that.
    #[wire(default = "0")]
    pub receive_time_ns: i64,
    /// The venue's trade id; 0 for quotes and where unknown.
    #[wire(default = "0")]
    pub trade_id: i64,
    /// The aggressor of a trade.
    #[wire(default = "\"NONE\"")]
    pub side: Side,
    /// Trade price scaled by 1e-9: 61,234.5 is 61234500000000. Negative prices are prices of spreads and energy. 0 for quotes.
    #[wire(default = "0")]
    pub price_e9: i64,
    /// Trade size scaled by 1e-9; 0 for quotes.
    #[wire(default = "0")]
    pub size_e9: i64,
    /// Best bid scaled by 1e-9; 0 where there is none, and for trades.
    #[wire(default = "0")]
    pub bid_price_e9: i64,
    /// Size at the best bid scaled by 1e-9; 0 for trades.
    #[wire(default = "0")]
    pub bid_size_e9: i64,
    /// Best offer scaled by 1e-9; 0 where there is none, and for trades.
    #[wire(default = "0")]
    pub ask_price_e9: i64,
    /// Size at the best offer scaled by 1e-9; 0 for trades.
    #[wire(default = "0")]
    pub ask_size_e9: i64,
    /// Scales of prices and sizes. A record `Tick` has no field for them, so it is not written for scales other than
    /// [`Scales::E9`].
    #[wire(skip)]
    pub scales: Scales,
}

/// Ticks of one partition as columns: row `i` of every column is one tick, in log order. A trade has 0 in the quote
/// columns, and a quote in the trade columns, so that each column can be used alone.
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
    /// Bad rows of the current record, ascending, each with its first problem. They must be passed over: they have no
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

    /// Removes all rows and keeps the memory.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes the rows from `len` on.
    pub fn truncate(&mut self, len: usize) {
        // Destructured without `..`, so that a new column cannot be forgotten.
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

    /// Appends a tick without checking it. Ticks from elsewhere come through [`crate::TickDecoder`].
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
    /// If there is no such row, or `symbols` is not the table of these columns.
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
