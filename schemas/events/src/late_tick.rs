//! Ticks that came after their partition had moved on.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Shape, Shaped};
use crate::tick::{Scales, Tick};
use crate::wire::Wire;

/// A tick that came after its partition had moved on: its event time lies before the watermark. It went here and into no bar.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct LateTick {
    /// Source topic.
    pub topic: String,
    /// Partition of the source topic.
    pub partition: i32,
    /// Offset of its record.
    pub offset: i64,
    /// Row within that record, from 0.
    pub index: i32,
    /// The tick. Its prices and sizes are 0 if `scaled` has them.
    #[wire(flatten)]
    numbers_e9: Tick,
    /// Watermark of the partition when the tick came, in nanoseconds since the epoch.
    pub watermark_ns: i64,
    /// Watermark minus event time, in nanoseconds; positive.
    pub lateness_ns: i64,
    /// The tick's prices and sizes where they are no 64-bit numbers of 1e-9: then the fields that end in `_e9` are 0. Null for all others,
    /// which are written with version 1 of this schema.
    #[wire(since = 2, default = "null")]
    scaled: Option<ScaledNumbers>,
}

/// Prices and sizes with their scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
struct ScaledNumbers {
    /// Digits of the prices behind the decimal point.
    price_scale: Scale,
    /// Digits of the sizes behind the decimal point.
    size_scale: Scale,
    /// As `price_e9`, with its own scale.
    price: i64,
    /// As `size_e9`, with its own scale.
    size: i64,
    /// As `bid_price_e9`, with its own scale.
    bid_price: i64,
    /// As `bid_size_e9`, with its own scale.
    bid_size: i64,
    /// As `ask_price_e9`, with its own scale.
    ask_price: i64,
    /// As `ask_size_e9`, with its own scale.
    ask_size: i64,
}

/// Digits behind the decimal point, at most [`Scales::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale(u8);

impl Shaped for Scale {
    const SHAPE: Shape = Shape::Int;
}

impl Wire<'_> for Scale {
    fn put(&self, out: &mut Vec<u8>) {
        i32::from(self.0).put(out);
    }

    fn get(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        match u8::try_from(cursor.int()?) {
            Ok(scale) if scale <= Scales::MAX => Ok(Self(scale)),
            _ => Err(cursor.malformed("a scale of no price or size")),
        }
    }
}

impl LateTick {
    /// Returns the record of a tick at a place in the log that came when the partition's watermark was `watermark_ns`.
    pub fn new(
        topic: String,
        partition: i32,
        offset: i64,
        index: i32,
        tick: Tick,
        watermark_ns: i64,
    ) -> Self {
        let lateness_ns = watermark_ns.saturating_sub(tick.event_time_ns);
        let scaled = ScaledNumbers::of(&tick);
        let numbers_e9 = match scaled {
            None => tick,
            Some(_) => Tick {
                price_e9: 0,
                size_e9: 0,
                bid_price_e9: 0,
                bid_size_e9: 0,
                ask_price_e9: 0,
                ask_size_e9: 0,
                scales: Scales::E9,
                ..tick
            },
        };
        Self { topic, partition, offset, index, numbers_e9, watermark_ns, lateness_ns, scaled }
    }

    /// Returns the tick as it came.
    pub fn tick(&self) -> Tick {
        let tick = self.numbers_e9.clone();
        match self.scaled {
            None => tick,
            Some(numbers) => Tick {
                price_e9: numbers.price,
                size_e9: numbers.size,
                bid_price_e9: numbers.bid_price,
                bid_size_e9: numbers.bid_size,
                ask_price_e9: numbers.ask_price,
                ask_size_e9: numbers.ask_size,
                scales: Scales { price: numbers.price_scale.0, size: numbers.size_scale.0 },
                ..tick
            },
        }
    }

    /// True if version 1 of the schema cannot hold it.
    pub fn is_scaled(&self) -> bool {
        self.scaled.is_some()
    }
}

impl ScaledNumbers {
    /// Returns the numbers of a tick that do not fit fields in 1e-9; `None` if they fit.
    fn of(tick: &Tick) -> Option<Self> {
        let &Tick { price_e9, size_e9, bid_price_e9, bid_size_e9, ask_price_e9, ask_size_e9, scales, .. } =
            tick;
        (scales != Scales::E9).then_some(Self {
            price_scale: Scale(scales.price),
            size_scale: Scale(scales.size),
            price: price_e9,
            size: size_e9,
            bid_price: bid_price_e9,
            bid_size: bid_size_e9,
            ask_price: ask_price_e9,
            ask_size: ask_size_e9,
        })
    }
}
