//! Ticks that arrived behind the watermark of their partition.

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::shape::{Shape, Shaped};
use crate::tick::{Scales, Tick};
use crate::wire::Wire;

/// A tick that arrived too late: its event time is before the watermark of its partition. It is in no bar.
#[derive(Clone, Debug, PartialEq, Eq, Wire)]
pub struct LateTick {
    /// Topic of the tick's record.
    pub topic: String,
    /// Partition of the tick's record.
    pub partition: i32,
    /// Offset of the tick's record.
    pub offset: i64,
    /// Row of the tick in its record, from 0.
    pub index: i32,
    /// The tick. Its prices and sizes are 0 if `scaled` has them.
    #[wire(flatten)]
    numbers_e9: Tick,
    /// Watermark of the partition when the tick arrived: greatest event time minus the allowed lateness, in nanoseconds
    /// since the Unix epoch.
    pub watermark_ns: i64,
    /// Watermark minus event time, in nanoseconds; positive.
    pub lateness_ns: i64,
    /// Prices and sizes of the tick if their scale is not 1e-9; the fields that end in `_e9` are 0 then. Null for all
    /// other ticks, which are written with version 1 of this schema.
    #[wire(since = 2, default = "null")]
    scaled: Option<ScaledNumbers>,
}

/// Prices and sizes of a tick as integers with decimal scales: 1234 with scale 2 is 12.34.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Wire)]
struct ScaledNumbers {
    /// Scale of the prices: digits after the decimal point, 0 to 18.
    price_scale: Scale,
    /// Scale of the sizes: digits after the decimal point, 0 to 18.
    size_scale: Scale,
    /// Trade price, in `price_scale`; 0 for quotes.
    price: i64,
    /// Trade size, in `size_scale`; 0 for quotes.
    size: i64,
    /// Best bid, in `price_scale`; 0 if there is none, and for trades.
    bid_price: i64,
    /// Size at the best bid, in `size_scale`; 0 for trades.
    bid_size: i64,
    /// Best offer, in `price_scale`; 0 if there is none, and for trades.
    ask_price: i64,
    /// Size at the best offer, in `size_scale`; 0 for trades.
    ask_size: i64,
}

/// Digits after the decimal point, at most [`Scales::MAX`].
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
    /// Returns the record of a tick at a place in the log. `watermark_ns` is the partition's watermark when the tick
    /// arrived.
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

    /// Returns the tick as it arrived.
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

    /// True if version 1 of the schema cannot represent the tick.
    pub fn is_scaled(&self) -> bool {
        self.scaled.is_some()
    }
}

impl ScaledNumbers {
    /// Returns the numbers of a tick that does not fit fields in 1e-9; `None` if it fits.
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
