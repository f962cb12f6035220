//! Ticks to Avro, for producers. What the decoder would reject is refused here, by the same checks.

use crate::check::{InvalidTick, check_row, check_symbol, longs_of};
use crate::error::EncodeError;
use crate::symbol_table::SymbolTable;
use crate::tick::{Side, Tick};
use crate::varint::put_long;
use crate::wire::{Wire, put_bytes};
use crate::{ROWS_MAX, frame, known};

/// Appends one tick as a `Tick` record.
///
/// # Errors
/// If the decoder would reject it; then nothing is appended.
pub fn encode_tick(tick: &Tick, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check(0, tick)?;
    out.extend_from_slice(&const { frame::header(known::TICK.fingerprint) });
    tick.put(out);
    Ok(())
}

/// Appends ticks as one `TickBatch` record, in the order given.
///
/// # Errors
/// If there are none or more than [`ROWS_MAX`], or the decoder would reject one of them; then nothing is appended.
pub fn encode_tick_batch(ticks: &[Tick], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if ticks.is_empty() {
        return Err(EncodeError::NoRows);
    }
    if ticks.len() > ROWS_MAX {
        return Err(EncodeError::TooManyRows { rows: ticks.len() });
    }
    for (row, tick) in ticks.iter().enumerate() {
        check(row, tick)?;
    }
    out.reserve(ticks.len() * ROW_BYTES);
    out.extend_from_slice(&const { frame::header(known::TICK_BATCH.fingerprint) });
    put_symbols(ticks, out);
    put_column(ticks, out, |tick, out| tick.kind.put(out));
    put_longs(ticks, out, |tick| tick.event_time_ns);
    put_longs(ticks, out, |tick| tick.receive_time_ns);
    put_longs(ticks, out, |tick| tick.trade_id);
    if ticks.iter().all(|tick| tick.side == Side::None) {
        out.push(0);
    } else {
        put_column(ticks, out, |tick, out| tick.side.put(out));
    }
    put_longs(ticks, out, |tick| tick.price_e9);
    put_longs(ticks, out, |tick| tick.size_e9);
    put_longs(ticks, out, |tick| tick.bid_price_e9);
    put_longs(ticks, out, |tick| tick.bid_size_e9);
    put_longs(ticks, out, |tick| tick.ask_price_e9);
    put_longs(ticks, out, |tick| tick.ask_size_e9);
    Ok(())
}

/// About the bytes of a row, to reserve them at once.
const ROW_BYTES: usize = 48;

fn check(row: usize, tick: &Tick) -> Result<(), InvalidTick> {
    check_symbol(tick.symbol.as_bytes()).map_err(|problem| InvalidTick { row, field: "symbol", problem })?;
    check_row(row, tick.kind, tick.side, &longs_of(tick))
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
