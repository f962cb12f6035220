//! The nine numeric fields of a tick, by name and by column.

use crate::tick::TickColumns;

/// A numeric field of a tick, in schema order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LongField {
    EventTime,
    ReceiveTime,
    TradeId,
    Price,
    Size,
    BidPrice,
    BidSize,
    AskPrice,
    AskSize,
}

/// Number of numeric fields.
pub const LONG_FIELD_COUNT: usize = 9;

impl LongField {
    pub const ALL: [Self; LONG_FIELD_COUNT] = [
        Self::EventTime,
        Self::ReceiveTime,
        Self::TradeId,
        Self::Price,
        Self::Size,
        Self::BidPrice,
        Self::BidSize,
        Self::AskPrice,
        Self::AskSize,
    ];

    /// Returns the field's name in the schemas.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EventTime => "event_time_ns",
            Self::ReceiveTime => "receive_time_ns",
            Self::TradeId => "trade_id",
            Self::Price => "price_e9",
            Self::Size => "size_e9",
            Self::BidPrice => "bid_price_e9",
            Self::BidSize => "bid_size_e9",
            Self::AskPrice => "ask_price_e9",
            Self::AskSize => "ask_size_e9",
        }
    }

    /// Returns the field's name in the schema of ticks with scales.
    pub fn scaled_name(self) -> &'static str {
        self.name().strip_suffix("_e9").unwrap_or(self.name())
    }

    /// Returns the field with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.name() == name)
    }

    /// Returns the field with this name in the schema of ticks with scales.
    pub fn scaled_named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|field| field.scaled_name() == name)
    }

    /// True if the field is a price, which may be negative.
    pub const fn is_price(self) -> bool {
        matches!(self, Self::Price | Self::BidPrice | Self::AskPrice)
    }

    /// Returns the field's column.
    pub fn column(self, columns: &TickColumns) -> &[i64] {
        match self {
            Self::EventTime => &columns.event_time_ns,
            Self::ReceiveTime => &columns.receive_time_ns,
            Self::TradeId => &columns.trade_id,
            Self::Price => &columns.price_e9,
            Self::Size => &columns.size_e9,
            Self::BidPrice => &columns.bid_price_e9,
            Self::BidSize => &columns.bid_size_e9,
            Self::AskPrice => &columns.ask_price_e9,
            Self::AskSize => &columns.ask_size_e9,
        }
    }

    /// Returns the field's column, for writing.
    pub fn column_mut(self, columns: &mut TickColumns) -> &mut Vec<i64> {
        match self {
            Self::EventTime => &mut columns.event_time_ns,
            Self::ReceiveTime => &mut columns.receive_time_ns,
            Self::TradeId => &mut columns.trade_id,
            Self::Price => &mut columns.price_e9,
            Self::Size => &mut columns.size_e9,
            Self::BidPrice => &mut columns.bid_price_e9,
            Self::BidSize => &mut columns.bid_size_e9,
            Self::AskPrice => &mut columns.ask_price_e9,
            Self::AskSize => &mut columns.ask_size_e9,
        }
    }
}
