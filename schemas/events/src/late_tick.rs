//! Ticks that came after their partition had moved on.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::tick::{Scales, Tick};
use crate::wire::Wire;

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

/// Prices and sizes that are no 64-bit numbers of 1e-9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
pub struct ScaledNumbers {
    price_scale: i32,
    size_scale: i32,
    price: i64,
    size: i64,
    bid_price: i64,
    bid_size: i64,
    ask_price: i64,
    ask_size: i64,
}

impl LateTick {
    /// The numbers of a tick that fields in 1e-9 cannot hold.
    pub fn scaled_numbers(&self) -> Option<ScaledNumbers> {
        let Tick { price_e9, size_e9, bid_price_e9, bid_size_e9, ask_price_e9, ask_size_e9, scales, .. } =
            self.tick;
        (scales != Scales::E9).then(|| ScaledNumbers {
            price_scale: scales.price.into(),
            size_scale: scales.size.into(),
            price: price_e9,
            size: size_e9,
            bid_price: bid_price_e9,
            bid_size: bid_size_e9,
            ask_price: ask_price_e9,
            ask_size: ask_size_e9,
        })
    }

    /// Appends the fields of version 1; prices and sizes of another scale than 1e-9 are 0.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.topic.put(out);
        self.partition.put(out);
        self.offset.put(out);
        self.index.put(out);
        match self.tick.scales {
            Scales::E9 => self.tick.put(out),
            _ => Tick {
                price_e9: 0,
                size_e9: 0,
                bid_price_e9: 0,
                bid_size_e9: 0,
                ask_price_e9: 0,
                ask_size_e9: 0,
                ..self.tick.clone()
            }
            .put(out),
        }
        self.watermark_ns.put(out);
        self.lateness_ns.put(out);
    }

    /// Reads the fields of version 1, and of version 2 the numbers behind them.
    pub fn get(cursor: &mut Cursor<'_>, has_scaled_numbers: bool) -> Result<Self, DecodeError> {
        let mut late_tick = Self {
            topic: Wire::get(cursor)?,
            partition: Wire::get(cursor)?,
            offset: Wire::get(cursor)?,
            index: Wire::get(cursor)?,
            tick: Tick::get(cursor)?,
            watermark_ns: Wire::get(cursor)?,
            lateness_ns: Wire::get(cursor)?,
        };
        let scaled = if has_scaled_numbers { Option::<ScaledNumbers>::get(cursor)? } else { None };
        if let Some(numbers) = scaled {
            let scale = |scale: i32| u8::try_from(scale).ok().filter(|scale| *scale <= Scales::MAX);
            let (Some(price), Some(size)) = (scale(numbers.price_scale), scale(numbers.size_scale)) else {
                return Err(cursor.malformed("a scale of no price or size"));
            };
            late_tick.tick = Tick {
                price_e9: numbers.price,
                size_e9: numbers.size,
                bid_price_e9: numbers.bid_price,
                bid_size_e9: numbers.bid_size,
                ask_price_e9: numbers.ask_price,
                ask_size_e9: numbers.ask_size,
                scales: Scales { price, size },
                ..late_tick.tick
            };
        }
        Ok(late_tick)
    }
}
