//! Encoders of ticks for producers. They use the decoder's checks, and refuse ticks that it would reject.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::check::{
    InvalidTick, PRICE_SCALE, Prices, SIZE_SCALE, TickProblem, check_row, check_symbol, longs_of,
};
use crate::error::EncodeError;
use crate::packed_tick_batch::PackedTickBatch;
use crate::symbol_table::SymbolTable;
use crate::tick::{Scales, Tick};
use crate::tick_batch::{ScaledTickBatch, TickBatch};
use crate::wire::Wire;
use crate::{ROWS_MAX, frame, known};

/// Appends one tick as a `Tick` record.
///
/// # Errors
/// The decoder would reject the tick, or its prices and sizes have other scales than 1e-9, which need
/// [`encode_scaled_tick_batch`]. Then no bytes are appended.
pub fn encode_tick(tick: &Tick, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check(0, tick)?;
    out.extend_from_slice(&const { frame::header(known::TICK.fingerprint) });
    tick.put(out);
    Ok(())
}

/// Appends ticks as one `TickBatch` record, in the given order.
///
/// # Errors
/// There are no ticks, there are more than [`ROWS_MAX`], or the decoder would reject one of them. Prices and sizes with
/// other scales than 1e-9 need [`encode_scaled_tick_batch`]. No bytes are appended on an error.
pub fn encode_tick_batch(ticks: &[Tick], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_count(ticks)?;
    for (row, tick) in ticks.iter().enumerate() {
        check(row, tick)?;
    }
    out.reserve(ticks.len() * ROW_BYTES);
    out.extend_from_slice(&const { frame::header(known::TICK_BATCH.fingerprint) });
    let mut dictionary = SymbolTable::default();
    let rows = ticks.iter().map(|tick| dictionary.intern(&tick.symbol) as i32).collect();
    TickBatch::new(dictionary.iter().map(Cow::Borrowed).collect(), rows, ticks).put(out);
    Ok(())
}

/// Appends ticks as one `ScaledTickBatch` record, in the given order. The ticks may have different scales, and trades
/// may have a price of 0.
///
/// # Errors
/// There are no ticks, there are more than [`ROWS_MAX`], or the decoder would reject one of them. Then no bytes are
/// appended.
pub fn encode_scaled_tick_batch(ticks: &[Tick], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_all_scaled(ticks)?;
    out.reserve(ticks.len() * ROW_BYTES);
    out.extend_from_slice(&const { frame::header(known::SCALED_TICK_BATCH.fingerprint) });
    let (dictionary, rows) = entries_of(ticks);
    ScaledTickBatch::new(&dictionary, rows.iter().map(|row| *row as i32).collect(), ticks).put(out);
    Ok(())
}

/// Appends ticks as one `PackedTickBatch` record, in the given order. It holds the ticks of a `ScaledTickBatch` in less
/// space, and is decoded faster.
///
/// # Errors
/// There are no ticks, there are more than [`ROWS_MAX`], or the decoder would reject one of them. Then no bytes are
/// appended.
pub fn encode_packed_tick_batch(ticks: &[Tick], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check_all_scaled(ticks)?;
    out.extend_from_slice(&const { frame::header(known::PACKED_TICK_BATCH.fingerprint) });
    let (dictionary, rows) = entries_of(ticks);
    PackedTickBatch::new(&dictionary, &rows, ticks).put(out);
    Ok(())
}

/// Returns the dictionary of symbols with scales, and the index in it for each tick.
fn entries_of(ticks: &[Tick]) -> (Vec<(&str, Scales)>, Vec<u32>) {
    let (mut symbols, mut dictionary) = (SymbolTable::default(), Vec::new());
    // Most symbols have one entry; the further ones are looked up apart.
    let (mut first_entries, mut further) = (Vec::new(), HashMap::new());
    let rows = ticks.iter().map(|tick| {
        let number = symbols.intern(&tick.symbol) as usize;
        let mut add = || {
            dictionary.push((tick.symbol.as_str(), tick.scales));
            (dictionary.len() as u32 - 1, tick.scales)
        };
        if number == first_entries.len() {
            first_entries.push(add());
        }
        match first_entries[number] {
            (entry, scales) if scales == tick.scales => entry,
            _ => further.entry((number, tick.scales)).or_insert_with(add).0,
        }
    });
    let rows = rows.collect();
    (dictionary, rows)
}

fn check_all_scaled(ticks: &[Tick]) -> Result<(), EncodeError> {
    check_count(ticks)?;
    ticks.iter().enumerate().try_for_each(|(row, tick)| check_scaled(row, tick)).map_err(EncodeError::from)
}

fn check_count(ticks: &[Tick]) -> Result<(), EncodeError> {
    match ticks.len() {
        0 => Err(EncodeError::NoRows),
        1..=ROWS_MAX => Ok(()),
        rows => Err(EncodeError::TooManyRows { rows }),
    }
}

/// Approximate bytes of a row, used to reserve memory.
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
