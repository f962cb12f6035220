//! A fast reader of ordinary ticks in the published schema, without a loop over fields.
//!
//! It reports no errors. It leaves any unusual record, invalid or only encoded in an uncommon way, to
//! [`super::tick_plan::TickPlan`]. The plan starts again and finds the error, if there is one.

use super::tick_plan::RawTick;
use crate::tick::{Side, TickKind};
use crate::varint::read_long_in_small;

/// A position in the datum.
struct Reader<'a> {
    datum: &'a [u8],
    at: usize,
}

/// Returns the tick if it is an ordinary one; its symbol is not checked.
#[inline(always)]
pub(super) fn read(datum: &[u8]) -> Option<RawTick<'_>> {
    let mut reader = Reader { datum, at: 0 };
    let symbol = reader.short_text()?;
    let kind = reader.byte()?;
    let event_time = reader.positive()?;
    let receive_time = reader.amount()?;
    let tick = if kind == 0 {
        let trade_id = reader.long()?;
        let side = match reader.byte()? {
            0 => Side::None,
            2 => Side::Buy,
            4 => Side::Sell,
            _ => return None,
        };
        let price = reader.price().filter(|price| *price != 0)?;
        let size = reader.amount()?;
        reader.four_zeros()?;
        let longs = [event_time, receive_time, trade_id, price, size, 0, 0, 0, 0];
        RawTick { symbol, kind: TickKind::Trade, side, longs }
    } else if kind == 2 {
        reader.four_zeros()?;
        let [bid_price, bid_size] = [reader.price()?, reader.amount()?];
        let [ask_price, ask_size] = [reader.price()?, reader.amount()?];
        let longs = [event_time, receive_time, 0, 0, 0, bid_price, bid_size, ask_price, ask_size];
        RawTick { symbol, kind: TickKind::Quote, side: Side::None, longs }
    } else {
        return None;
    };
    (reader.at == datum.len()).then_some(tick)
}

impl<'a> Reader<'a> {
    #[inline(always)]
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.datum.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads a text of fewer than 64 bytes.
    #[inline(always)]
    fn short_text(&mut self) -> Option<&'a [u8]> {
        let length = self.byte().filter(|length| length & 0x81 == 0)?;
        let text = self.datum.get(self.at..)?.get(..usize::from(length >> 1))?;
        self.at += text.len();
        Some(text)
    }

    #[inline(always)]
    fn long(&mut self) -> Option<i64> {
        let (value, end) = read_long_in_small(self.datum, self.at).ok()?;
        self.at = end;
        Some(value)
    }

    /// Reads a number that is neither the smallest nor the largest.
    #[inline(always)]
    fn price(&mut self) -> Option<i64> {
        self.long().filter(|value| *value != i64::MIN && *value != i64::MAX)
    }

    /// Reads a number of 0 or more, but not the largest.
    #[inline(always)]
    fn amount(&mut self) -> Option<i64> {
        self.long().filter(|value| (0..i64::MAX).contains(value))
    }

    /// Reads a number of 1 or more, but not the largest.
    #[inline(always)]
    fn positive(&mut self) -> Option<i64> {
        self.long().filter(|value| (1..i64::MAX).contains(value))
    }

    #[inline(always)]
    fn four_zeros(&mut self) -> Option<()> {
        let next = self.datum.get(self.at..)?.first_chunk::<4>()?;
        self.at += 4;
        (*next == [0; 4]).then_some(())
    }
}
