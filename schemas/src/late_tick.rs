//! Ticks that came after their partition had moved on.

use crate::tick::{Side, Tick, TickKind};
use crate::wire::{wire_enum, wire_record};

/// A tick whose event time lies before its partition's watermark: it went to the late topic and into no bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateTick {
    /// Source topic.
    pub topic: String,
    /// Partition of the source topic.
    pub partition: i32,
    /// Offset of its record.
    pub offset: i64,
    /// Row within that record, from 0.
    pub index: i32,
    /// The tick.
    pub tick: Tick,
    /// Watermark of the partition when the tick came, ns since the epoch.
    pub watermark_ns: i64,
    /// Watermark minus event time; positive.
    pub lateness_ns: i64,
}

wire_enum!(TickKind { 0 => Trade, 1 => Quote });
wire_enum!(Side { 0 => None, 1 => Buy, 2 => Sell });
wire_record!(Tick {
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
});
wire_record!(LateTick { topic, partition, offset, index, tick, watermark_ns, lateness_ns });
