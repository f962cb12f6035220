//! Records of many ticks, by columns.

use apache_avro::Schema;
use apache_avro::schema::RecordSchema;

use super::dictionary::{Dictionary, NO_SYMBOL, reject, unknown_symbol};
use super::enum_table::{EnumTable, SIDES, TICK_KINDS};
use super::plan::{Scalar, Shape, Skip, enum_table, mismatch, require, scalar};
use super::tick_plan::{unknown_kind, unknown_side};
use crate::ROWS_MAX;
use crate::check::{InvalidTick, PRICE_SCALE, Prices, SIZE_SCALE, bad_rows, check_rows};
use crate::cursor::Cursor;
use crate::error::{DecodeError, SchemaError};
use crate::known;
use crate::long_field::LongField;
use crate::symbol_table::SymbolTable;
use crate::tick::{Side, TickColumns, TickKind};

/// The writer's fields in their order.
#[derive(Debug)]
pub(super) struct BatchPlan {
    steps: Vec<BatchStep>,
    /// True if records have scales of their own.
    is_scaled: bool,
}

#[derive(Debug)]
enum BatchStep {
    Symbols,
    SymbolIndexes,
    PriceScales,
    SizeScales,
    Kinds(Box<EnumTable<TickKind>>),
    Sides(Box<EnumTable<Side>>),
    Longs(LongField),
    Skip(Skip),
    SkipArray(Skip),
}

impl BatchPlan {
    pub(super) fn compile(record: &RecordSchema, is_scaled: bool) -> Result<Shape<Self>, SchemaError> {
        let reader = if is_scaled { known::SCALED_TICK_BATCH.name } else { known::TICK_BATCH.name };
        require(reader, record, &["symbols", "symbol", "kind", "event_time_ns"])?;
        if is_scaled {
            require(reader, record, &[PRICE_SCALE, SIZE_SCALE])?;
        }
        let mut steps = Vec::new();
        for field in &record.fields {
            let name = field.name.as_str();
            let long = if is_scaled { LongField::scaled_named(name) } else { LongField::named(name) };
            let is_scale = is_scaled && [PRICE_SCALE, SIZE_SCALE].contains(&name);
            let ours = long.is_some() || is_scale || ["symbols", "symbol", "kind", "side"].contains(&name);
            let items = match &field.schema {
                Schema::Array(array) => Some(&*array.items),
                _ => None,
            };
            if !ours {
                // Arrays whose items take no bytes are refused: a few bytes could claim millions of items to skip.
                let step = match items {
                    None => Skip::of(&field.schema).map(BatchStep::Skip),
                    Some(items) => Skip::of(items)
                        .filter(|skip| !matches!(skip, Skip::Fixed(0)))
                        .map(BatchStep::SkipArray),
                };
                match step {
                    Some(step) => steps.push(step),
                    None => return Ok(Shape::Other),
                }
                continue;
            }
            let items = match (items, &field.schema) {
                (Some(items), _) => items,
                (None, Schema::Union(_)) => return Ok(Shape::Other),
                (None, _) => return Err(mismatch(reader, name)),
            };
            let Some(found) = scalar(reader, name, items)? else {
                return Ok(Shape::Other);
            };
            steps.push(match (name, long, found) {
                ("symbols", _, Scalar::Text) => BatchStep::Symbols,
                ("symbol", _, Scalar::Long) => BatchStep::SymbolIndexes,
                (PRICE_SCALE, _, Scalar::Long) => BatchStep::PriceScales,
                (SIZE_SCALE, _, Scalar::Long) => BatchStep::SizeScales,
                ("kind", _, Scalar::Enum(symbols)) => {
                    BatchStep::Kinds(Box::new(enum_table(&symbols, &TICK_KINDS)))
                }
                ("side", _, Scalar::Enum(symbols)) => {
                    BatchStep::Sides(Box::new(enum_table(&symbols, &SIDES)))
                }
                (_, Some(long), Scalar::Long) => BatchStep::Longs(long),
                _ => return Err(mismatch(reader, name)),
            });
        }
        Ok(Shape::Simple(Self { steps, is_scaled }))
    }

    pub(super) fn decode(
        &self,
        datum: &[u8],
        by_rows: bool,
        dictionary: &mut Dictionary,
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let start = out.len();
        let mut cursor = Cursor::new(datum);
        dictionary.clear();
        for step in &self.steps {
            match step {
                BatchStep::Symbols => read_symbols(&mut cursor, dictionary, symbols)?,
                BatchStep::PriceScales => {
                    read_of_entries(&mut cursor, PRICE_SCALE, dictionary.price_scales_mut())?
                }
                BatchStep::SizeScales => {
                    read_of_entries(&mut cursor, SIZE_SCALE, dictionary.size_scales_mut())?
                }
                BatchStep::SymbolIndexes => {
                    let unknown = |row, index| {
                        let unknown = unknown_symbol(row, index, dictionary.len());
                        reject(by_rows, &mut out.rejected, unknown)
                    };
                    read_indexes(&mut cursor, start, &mut out.symbol, unknown)?;
                }
                BatchStep::Kinds(table) => {
                    let unknown = |row, index| reject(by_rows, &mut out.rejected, unknown_kind(row, index));
                    read_enums(&mut cursor, "kind", table, TickKind::Trade, start, &mut out.kind, unknown)?;
                }
                BatchStep::Sides(table) => {
                    let unknown = |row, index| reject(by_rows, &mut out.rejected, unknown_side(row, index));
                    read_enums(&mut cursor, "side", table, Side::None, start, &mut out.side, unknown)?;
                }
                BatchStep::Longs(field) => read_longs(&mut cursor, *field, start, field.column_mut(out))?,
                BatchStep::Skip(skip) => skip.pass(&mut cursor)?,
                BatchStep::SkipArray(skip) => skip_array(&mut cursor, *skip)?,
            }
        }
        cursor.finish()?;
        if self.is_scaled {
            let finished = finish_scaled(start, by_rows, dictionary, symbols, out);
            out.rejected.iter_mut().for_each(with_scaled_name);
            finished.map_err(with_scaled_names)
        } else {
            finish(start, by_rows, Prices::NotZero, dictionary, symbols, out)
        }
    }
}

/// Finishes a record with scales, as [`finish`] does for one without.
fn finish_scaled(
    start: usize,
    by_rows: bool,
    dictionary: &mut Dictionary,
    symbols: &mut SymbolTable,
    out: &mut TickColumns,
) -> Result<usize, DecodeError> {
    dictionary.scale_rows(start, by_rows, out)?;
    let has_prices = out.price_e9.len() > start;
    let prices = if has_prices { Prices::Any } else { Prices::NotZero };
    finish(start, by_rows, prices, dictionary, symbols, out)
}

pub(super) fn with_scaled_name(invalid: &mut InvalidTick) {
    invalid.field = LongField::named(invalid.field).map_or(invalid.field, LongField::scaled_name);
}

/// Renames the fields in an error, because records with scales have different names.
pub(super) fn with_scaled_names(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::Invalid(mut invalid) => {
            with_scaled_name(&mut invalid);
            DecodeError::Invalid(invalid)
        }
        DecodeError::LengthsDiffer { field, found, expected } => {
            let field = LongField::named(field).map_or(field, LongField::scaled_name);
            DecodeError::LengthsDiffer { field, found, expected }
        }
        other => other,
    }
}

/// Finishes a record after its bytes are read: checks lengths, values and symbols. The rows from `start` on contain
/// dictionary indexes, which it replaces by symbol numbers.
pub(super) fn finish(
    start: usize,
    by_rows: bool,
    prices: Prices,
    dictionary: &mut Dictionary,
    symbols: &mut SymbolTable,
    out: &mut TickColumns,
) -> Result<usize, DecodeError> {
    let rows = out.event_time_ns.len() - start;
    if rows == 0 {
        return Err(DecodeError::NoRows);
    }
    let differs = |field, found| DecodeError::LengthsDiffer { field, found, expected: rows };
    for (field, length) in [("symbol", out.symbol.len()), ("kind", out.kind.len())] {
        if length - start != rows {
            return Err(differs(field, length - start));
        }
    }
    match out.side.len() - start {
        0 => out.side.resize(start + rows, Side::None),
        found if found != rows => return Err(differs("side", found)),
        _ => {}
    }
    for field in LongField::ALL {
        let column = field.column_mut(out);
        match column.len() - start {
            0 => column.resize(start + rows, 0),
            found if found != rows => return Err(differs(field.name(), found)),
            _ => {}
        }
    }
    judge(start, by_rows, Some(prices), dictionary, symbols, out)?;
    Ok(rows)
}

/// Checks the values and symbols of the rows from `start` on, and replaces their dictionary indexes by symbol numbers.
/// `prices` is `None` if the values are known to be valid.
pub(super) fn judge(
    start: usize,
    by_rows: bool,
    prices: Option<Prices>,
    dictionary: &mut Dictionary,
    symbols: &mut SymbolTable,
    out: &mut TickColumns,
) -> Result<(), DecodeError> {
    if by_rows {
        if let Some(prices) = prices {
            out.rejected.append(&mut bad_rows(out, start, prices));
        }
        // Only the first problem of each row is kept.
        out.rejected.sort_by_key(|invalid| invalid.row);
        out.rejected.dedup_by_key(|invalid| invalid.row);
        dictionary.number_good_rows(symbols, &mut out.symbol[start..], &mut out.rejected);
        return Ok(());
    }
    if let Some(prices) = prices {
        check_rows(out, start, prices)?;
    }
    dictionary.number_rows(symbols, &mut out.symbol[start..])
}

/// Returns the number of items in the next block of an array with `length` items so far; 0 at its end.
#[inline]
fn block(cursor: &mut Cursor<'_>, field: &'static str, length: usize) -> Result<usize, DecodeError> {
    let count = cursor.block()?;
    check_length(field, length + count)?;
    Ok(count)
}

pub(super) fn check_length(field: &'static str, length: usize) -> Result<(), DecodeError> {
    if length > ROWS_MAX { Err(DecodeError::TooManyRows { field }) } else { Ok(()) }
}

pub(super) fn read_symbols(
    cursor: &mut Cursor<'_>,
    dictionary: &mut Dictionary,
    symbols: &SymbolTable,
) -> Result<(), DecodeError> {
    loop {
        let count = block(cursor, "symbols", dictionary.len())?;
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            dictionary.push(cursor.bytes()?, symbols);
        }
    }
}

/// Reads dictionary indexes, and calls `unknown` for rows whose index is not a `u32`.
fn read_indexes(
    cursor: &mut Cursor<'_>,
    start: usize,
    column: &mut Vec<u32>,
    mut unknown: impl FnMut(usize, i64) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    loop {
        let length = column.len() - start;
        let count = block(cursor, "symbol", length)?;
        if count == 0 {
            return Ok(());
        }
        let bytes = cursor.peek(count)?;
        if bytes.iter().fold(0, |any, byte| any | byte) & 0x81 == 0 {
            // All indexes take one byte and are not negative: fewer than 64 symbols.
            column.extend(bytes.iter().map(|byte| u32::from(byte >> 1)));
            cursor.take(count)?;
            continue;
        }
        column.resize(start + length + count, 0);
        let items = &mut column[start + length..];
        let mut item = 0;
        while item < count {
            item += cursor.small(&mut items[item..]);
            // The item is the next of four that are not all small, or one of the last items.
            if let Some(slot) = items.get_mut(item) {
                let index = cursor.long()?;
                *slot = match u32::try_from(index) {
                    Ok(known) => known,
                    Err(_) => {
                        unknown(length + item, index)?;
                        NO_SYMBOL
                    }
                };
                item += 1;
            }
        }
    }
}

fn read_enums<T: Copy>(
    cursor: &mut Cursor<'_>,
    field: &'static str,
    table: &EnumTable<T>,
    default: T,
    start: usize,
    column: &mut Vec<T>,
    mut unknown: impl FnMut(usize, i64) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    loop {
        let length = column.len() - start;
        let count = block(cursor, field, length)?;
        if count == 0 {
            return Ok(());
        }
        table.read_items(cursor, count, default, column, |item, index| unknown(length + item, index))?;
    }
}

/// Reads a number for each entry of the dictionary.
pub(super) fn read_of_entries(
    cursor: &mut Cursor<'_>,
    field: &'static str,
    numbers: &mut Vec<i64>,
) -> Result<(), DecodeError> {
    loop {
        let count = block(cursor, field, numbers.len())?;
        if count == 0 {
            return Ok(());
        }
        let before = numbers.len();
        numbers.resize(before + count, 0);
        cursor.longs(&mut numbers[before..])?;
    }
}

fn read_longs(
    cursor: &mut Cursor<'_>,
    field: LongField,
    start: usize,
    column: &mut Vec<i64>,
) -> Result<(), DecodeError> {
    loop {
        let before = column.len();
        let count = block(cursor, field.name(), before - start)?;
        if count == 0 {
            return Ok(());
        }
        column.resize(before + count, 0);
        cursor.longs(&mut column[before..])?;
    }
}

pub(super) fn skip_array(cursor: &mut Cursor<'_>, skip: Skip) -> Result<(), DecodeError> {
    loop {
        let count = cursor.block()?;
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            skip.pass(cursor)?;
        }
    }
}
