//! How a [`Signal`] lies in its datum: flat, the bar's fields null where there is no bar.

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::error::DecodeError;
use crate::signal::{Bar, INDICATOR_COUNT, Signal, SignalKind};
use crate::varint::put_long;
use crate::wire::{Wire, put_bytes, wire_enum};

wire_enum!(SignalKind {
    0 => Bar,
    1 => EmaCrossUp,
    2 => EmaCrossDown,
    3 => RsiOverbought,
    4 => RsiOversold,
    5 => BandBreakUp,
    6 => BandBreakDown,
    7 => ZScoreHigh,
    8 => ZScoreLow,
});

/// Number of the bar's integer fields.
const BAR_LONG_COUNT: usize = 8;
/// A nullable field that is null.
const NULL: u8 = 0;
/// A nullable field that has a value.
const VALUE: u8 = 2;

pub(crate) fn put(signal: &Signal<'_>, out: &mut Vec<u8>) {
    let Signal {
        symbol,
        kind,
        bar_spec,
        bar_start_ns,
        bar_end_ns,
        source_offset,
        source_index,
        value,
        threshold,
        bar,
    } = signal;
    put_bytes(symbol.as_bytes(), out);
    kind.put(out);
    put_bytes(bar_spec.as_bytes(), out);
    put_long(*bar_start_ns, out);
    put_long(*bar_end_ns, out);
    put_long(*source_offset, out);
    source_index.put(out);
    value.put(out);
    threshold.put(out);
    match bar {
        None => out.extend_from_slice(&[NULL; BAR_LONG_COUNT + INDICATOR_COUNT]),
        Some(bar) => put_bar(bar, out),
    }
}

fn put_bar(bar: &Bar, out: &mut Vec<u8>) {
    let Bar { open_e9, high_e9, low_e9, close_e9, volume_e9, trades, bid_price_e9, ask_price_e9, indicators } =
        bar;
    for value in [open_e9, high_e9, low_e9, close_e9, volume_e9, trades, bid_price_e9, ask_price_e9] {
        out.push(VALUE);
        put_long(*value, out);
    }
    for indicator in indicators {
        match indicator {
            None => out.push(NULL),
            Some(value) => {
                let mut field = [VALUE; 9];
                field[1..].copy_from_slice(&value.to_le_bytes());
                out.extend_from_slice(&field);
            }
        }
    }
}

pub(crate) fn get<'a>(cursor: &mut Cursor<'a>) -> Result<Signal<'a>, DecodeError> {
    Ok(Signal {
        symbol: Cow::Borrowed(cursor.string()?),
        kind: Wire::get(cursor)?,
        bar_spec: Cow::Borrowed(cursor.string()?),
        bar_start_ns: cursor.long()?,
        bar_end_ns: cursor.long()?,
        source_offset: cursor.long()?,
        source_index: cursor.int()?,
        value: cursor.double()?,
        threshold: cursor.double()?,
        bar: get_bar(cursor)?,
    })
}

fn get_bar(cursor: &mut Cursor<'_>) -> Result<Option<Bar>, DecodeError> {
    let mut longs = [None; BAR_LONG_COUNT];
    for long in &mut longs {
        *long = Option::<i64>::get(cursor)?;
    }
    let mut indicators = [None; INDICATOR_COUNT];
    for indicator in &mut indicators {
        *indicator = Option::<f64>::get(cursor)?;
    }
    match longs {
        [
            Some(open_e9),
            Some(high_e9),
            Some(low_e9),
            Some(close_e9),
            Some(volume_e9),
            Some(trades),
            Some(bid_price_e9),
            Some(ask_price_e9),
        ] => Ok(Some(Bar {
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            volume_e9,
            trades,
            bid_price_e9,
            ask_price_e9,
            indicators,
        })),
        [None, None, None, None, None, None, None, None] if indicators == [None; INDICATOR_COUNT] => Ok(None),
        _ => Err(cursor.malformed("a signal with a part of a bar")),
    }
}
