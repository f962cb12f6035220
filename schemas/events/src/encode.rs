//! Ticks to Avro, for producers. What the decoder would reject is refused here, by the same checks.

use std::collections::HashMap;

use crate::check::{
    InvalidTick, PRICE_SCALE, Prices, SIZE_SCALE, TickProblem, check_row, check_symbol, longs_of,
};
use crate::error::EncodeError;
use crate::symbol_table::SymbolTable;
use crate::tick::{Scales, Side, Tick, TickKind};
use crate::varint::put_long;
use crate::wire::{Wire, put_bytes};
use crate::{ROWS_MAX, frame, known};

/// Appends one tick as a `Tick` record.
///
/// # Errors
/// If the decoder would reject it, or its prices and sizes have other scales than 1e-9, for which there is
/// [`encode_scaled_tick_batch`]; then nothing is appended.
pub fn encode_tick(tick: &Tick, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check(0, tick)?;
    out.extend_from_slice(&const { frame::header(known::TICK.fingerprint) });
    tick.put(out);
    Ok(())
}

/// Appends ticks as one `TickBatch` record, in the order given.
///
/// # Errors
/// If there are none or more than [`ROWS_MAX`], the decoder would reject one of them, or its prices and sizes have other scales
/// than 1e-9, for which there is [`encode_scaled_tick_batch`]; then nothing is appended.
pub fn encode_tick_batch(ticks: &[Tick], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_count(ticks)?;
    for (row, tick) in ticks.iter().enumerate() {
        check(row, tick)?;
    }
    out.reserve(ticks.len() * ROW_BYTES);
    out.extend_from_slice(&const { frame::header(known::TICK_BATCH.fingerprint) });
    put_symbols(ticks, out);
    put_columns(ticks, out);
    Ok(())
}

/// Appends ticks as one `ScaledTickBatch` record, in the order given: with scales of their own, and trades at a price of 0.
///
/// # Errors
/// If there are none or more than [`ROWS_MAX`], or the decoder would reject one of them; then nothing is appended.
pub fn encode_scaled_tick_batch(ticks: &[Tick], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_count(ticks)?;
    for (row, tick) in ticks.iter().enumerate() {
        check_scaled(row, tick)?;
    }
    out.reserve(ticks.len() * ROW_BYTES);
    out.extend_from_slice(&const { frame::header(known::SCALED_TICK_BATCH.fingerprint) });
    put_scaled_symbols(ticks, out);
    put_columns(ticks, out);
    Ok(())
}

fn check_count(ticks: &[Tick]) -> Result<(), EncodeError> {
    match ticks.len() {
        0 => Err(EncodeError::NoRows),
        1..=ROWS_MAX => Ok(()),
        rows => Err(EncodeError::TooManyRows { rows }),
    }
}

/// The columns from the kind on.
fn put_columns(ticks: &[Tick], out: &mut Vec<u8>) {
    put_column(ticks, out, |tick, out| tick.kind.put(out));
    put_longs(ticks, out, |tick| tick.event_time_ns);
    put_longs(ticks, out, |tick| tick.receive_time_ns);
    put_longs(ticks, out, |tick| tick.trade_id);
    if ticks.iter().all(|tick| tick.side == Side::None) {
        out.push(0);
    } else {
        put_column(ticks, out, |tick, out| tick.side.put(out));
    }
    // Nothing stands for the default in every row, which is no price: that all prices are 0 is written out.
    if ticks.iter().any(|tick| tick.kind == TickKind::Trade) {
        put_column(ticks, out, |tick, out| put_long(tick.price_e9, out));
    } else {
        out.push(0);
    }
    put_longs(ticks, out, |tick| tick.size_e9);
    put_longs(ticks, out, |tick| tick.bid_price_e9);
    put_longs(ticks, out, |tick| tick.bid_size_e9);
    put_longs(ticks, out, |tick| tick.ask_price_e9);
    put_longs(ticks, out, |tick| tick.ask_size_e9);
}

/// About the bytes of a row, to reserve them at once.
const ROW_BYTES: usize = 48;

fn check(row: usize, tick: &Tick) -> Result<(), InvalidTick> {
    check_symbol(tick.symbol.as_bytes()).map_err(|problem| InvalidTick { row, field: "symbol", problem })?;
    if tick.scales != Scales::E9 {
        let Scales { price, size } = tick.scales;
        let (field, scale) =
            if price != Scales::E9.price { (PRICE_SCALE, price) } else { (SIZE_SCALE, size) };
        return Err(InvalidTick { row, field, problem: TickProblem::NotE9(scale) });
    }
    check_row(row, tick.kind, tick.side, &longs_of(tick), Prices::NotZero)
}

fn check_scaled(row: usize, tick: &Tick) -> Result<(), InvalidTick> {
    check_symbol(tick.symbol.as_bytes()).map_err(|problem| InvalidTick { row, field: "symbol", problem })?;
    for (field, scale) in [(PRICE_SCALE, tick.scales.price), (SIZE_SCALE, tick.scales.size)] {
        if scale > Scales::MAX {
            return Err(InvalidTick { row, field, problem: TickProblem::NoScale(scale.into()) });
        }
    }
    check_row(row, tick.kind, tick.side, &longs_of(tick), Prices::Any)
}

/// The dictionary by first appearance, and each row's index into it.
fn put_symbols(ticks: &[Tick], out: &mut Vec<u8>) {
    let mut dictionary = SymbolTable::default();
    let rows: Vec<u32> = ticks.iter().map(|tick| dictionary.intern(&tick.symbol)).collect();
    put_long(dictionary.len() as i64, out);
    dictionary.iter().for_each(|symbol| put_bytes(symbol.as_bytes(), out));
    out.push(0);
    put_column(&rows, out, |index, out| put_long(i64::from(*index), out));
}

/// Likewise, of symbols with scales.
fn put_scaled_symbols(ticks: &[Tick], out: &mut Vec<u8>) {
    let (mut dictionary, mut numbers) = (Vec::new(), HashMap::new());
    let mut rows = Vec::with_capacity(ticks.len());
    for tick in ticks {
        let entry = (tick.symbol.as_str(), tick.scales);
        let number = *numbers.entry(entry).or_insert_with(|| {
            dictionary.push(entry);
            dictionary.len() - 1
        });
        rows.push(number);
    }
    put_column(&dictionary, out, |(symbol, _), out| put_bytes(symbol.as_bytes(), out));
    put_column(&dictionary, out, |(_, scales), out| put_long(scales.price.into(), out));
    put_column(&dictionary, out, |(_, scales), out| put_long(scales.size.into(), out));
    put_column(&rows, out, |index, out| put_long(*index as i64, out));
}

/// A numeric column; an empty array stands for zeros.
fn put_longs(ticks: &[Tick], out: &mut Vec<u8>, value: impl Fn(&Tick) -> i64) {
    if ticks.iter().all(|tick| value(tick) == 0) {
        out.push(0);
    } else {
        put_column(ticks, out, |tick, out| put_long(value(tick), out));
    }
}

/// An array of at least one item.
fn put_column<T>(items: &[T], out: &mut Vec<u8>, put: impl Fn(&T, &mut Vec<u8>)) {
    put_long(items.len() as i64, out);
    for item in items {
        put(item, out);
    }
    out.push(0);
}
