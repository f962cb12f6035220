//! How a [`Signal`] lies in its datum: flat, the bar's fields null where there is no bar.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::cursor::Cursor;
use crate::decimal::decimal_text;
use crate::error::DecodeError;
use crate::shape::{Content, FieldShape, Member, Named, Shape, Shaped};
use crate::signal::{Bar, ExactBar, INDICATOR_COUNT, Signal};
use crate::varint::put_long;
use crate::wire::{Wire, put_bytes};

/// Number of the bar's integer fields.
const BAR_LONG_COUNT: usize = 8;
/// A nullable field that is null.
const NULL: u8 = 0;
/// A nullable field that has a value.
const VALUE: u8 = 2;

pub fn put(signal: &Signal<'_>, out: &mut Vec<u8>) {
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

/// Digits behind the decimal point of the numbers of an [`ExactBar`], in the order of the schema.
const EXACT_SCALES: [usize; 7] = [18, 18, 18, 18, 9, 18, 18];

/// The record has texts where the type has numbers.
impl Shaped for ExactBar {
    const SHAPE: Shape = Shape::Named(&Named {
        name: "ExactBar",
        doc: "A bar with numbers that are not 64-bit numbers of 1e-9, as decimal text: an optional minus sign, digits, and behind a point up \
              to 18 more; 0.00000812.",
        content: Content::Record(&[
            text("open", "As open_e9, exactly."),
            text("high", "As high_e9, exactly."),
            text("low", "As low_e9, exactly."),
            text("close", "As close_e9, exactly."),
            text("volume", "As volume_e9, exactly."),
            text("bid_price", "As bid_price_e9, exactly."),
            text("ask_price", "As ask_price_e9, exactly."),
        ]),
    });
}

const fn text(name: &'static str, doc: &'static str) -> Member {
    Member::Field(FieldShape { name, doc, shape: Shape::String, default: None })
}

/// What version 2 has more.
pub fn put_exact(exact: Option<&ExactBar>, out: &mut Vec<u8>) {
    let Some(exact) = exact else {
        out.push(NULL);
        return;
    };
    let ExactBar {
        has_other_prices: _,
        open_e18,
        high_e18,
        low_e18,
        close_e18,
        volume_e9,
        bid_price_e18,
        ask_price_e18,
    } = *exact;
    let numbers = [open_e18, high_e18, low_e18, close_e18, volume_e9, bid_price_e18, ask_price_e18];
    out.push(VALUE);
    for (number, scale) in numbers.into_iter().zip(EXACT_SCALES) {
        put_bytes(decimal_text(number, scale).as_bytes(), out);
    }
}

/// What version 3 has more: a map, in one block, by name.
pub fn put_further(further: &BTreeMap<Cow<'static, str>, f64>, out: &mut Vec<u8>) {
    put_long(further.len() as i64, out);
    for (name, value) in further {
        put_bytes(name.as_bytes(), out);
        value.put(out);
    }
    if !further.is_empty() {
        put_long(0, out);
    }
}

fn get_further(cursor: &mut Cursor<'_>) -> Result<BTreeMap<Cow<'static, str>, f64>, DecodeError> {
    let mut further = BTreeMap::new();
    loop {
        let count = cursor.block()?;
        if count == 0 {
            return Ok(further);
        }
        for _ in 0..count {
            let name = cursor.string()?.to_owned();
            if further.insert(Cow::Owned(name), cursor.double()?).is_some() {
                return Err(cursor.malformed("an indicator that is given twice"));
            }
        }
    }
}

fn get_numbers(cursor: &mut Cursor<'_>) -> Result<[i128; 7], DecodeError> {
    let mut numbers = [0; 7];
    for (number, scale) in numbers.iter_mut().zip(EXACT_SCALES) {
        let text = cursor.string()?;
        *number =
            parse_decimal(text, scale).ok_or_else(|| cursor.malformed("a number of a bar is no decimal"))?;
    }
    Ok(numbers)
}

/// What [`decimal_text`] wrote.
fn parse_decimal(text: &str, scale: usize) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let padding = scale.checked_sub(fraction.len())?;
    let is_number = fraction.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| format!("{whole}{fraction}{}", "0".repeat(padding)).parse().ok())?
}

fn put_bar(bar: &Bar, out: &mut Vec<u8>) {
    let Bar { open_e9, high_e9, low_e9, close_e9, volume_e9, trades, bid_price_e9, ask_price_e9, .. } = bar;
    let is_null = bar.exact.is_some_and(|exact| exact.has_other_prices);
    for (value, is_price) in [
        (open_e9, true),
        (high_e9, true),
        (low_e9, true),
        (close_e9, true),
        (volume_e9, false),
        (trades, false),
        (bid_price_e9, true),
        (ask_price_e9, true),
    ] {
        if is_null && is_price {
            out.push(NULL);
        } else {
            out.push(VALUE);
            put_long(*value, out);
        }
    }
    for indicator in &bar.indicators {
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

/// Reads a signal of a version from 1 to 3: each has more at its end than the one before.
pub fn get<'a>(cursor: &mut Cursor<'a>, version: u32) -> Result<Signal<'a>, DecodeError> {
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
        bar: get_bar(cursor, version)?,
    })
}

fn get_exact(cursor: &mut Cursor<'_>) -> Result<Option<[i128; 7]>, DecodeError> {
    match cursor.long()? {
        0 => Ok(None),
        1 => get_numbers(cursor).map(Some),
        _ => Err(cursor.malformed("no such branch of a nullable field")),
    }
}

fn get_bar(cursor: &mut Cursor<'_>, version: u32) -> Result<Option<Bar>, DecodeError> {
    let mut longs = [None; BAR_LONG_COUNT];
    for long in &mut longs {
        *long = Option::<i64>::get(cursor)?;
    }
    let mut indicators = [None; INDICATOR_COUNT];
    for indicator in &mut indicators {
        *indicator = Option::<f64>::get(cursor)?;
    }
    let exact = if version >= 2 { get_exact(cursor)? } else { None };
    let further_indicators = if version >= 3 { get_further(cursor)? } else { BTreeMap::new() };
    let exact = exact.map(|numbers| {
        let [open_e18, high_e18, low_e18, close_e18, volume_e9, bid_price_e18, ask_price_e18] = numbers;
        let has_other_prices = longs[0].is_none();
        ExactBar {
            has_other_prices,
            open_e18,
            high_e18,
            low_e18,
            close_e18,
            volume_e9,
            bid_price_e18,
            ask_price_e18,
        }
    });
    if exact.is_some_and(|exact| exact.has_other_prices) {
        for price in [0, 1, 2, 3, 6, 7] {
            if longs[price].replace(0).is_some() {
                return Err(cursor.malformed("a bar with some of its prices"));
            }
        }
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
            exact,
            indicators,
            further_indicators,
        })),
        [None, None, None, None, None, None, None, None]
            if indicators == [None; INDICATOR_COUNT] && exact.is_none() && further_indicators.is_empty() =>
        {
            Ok(None)
        }
        _ => Err(cursor.malformed("a signal with a part of a bar")),
    }
}
