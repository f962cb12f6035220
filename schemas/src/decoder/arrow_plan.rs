//! Writer schemas of any other shape, through arrow-avro.
//!
//! It is slow compared with the compiled plans, but complete: it reads unions, maps, nested records, and everything
//! else that Avro resolves.

use apache_avro::Schema;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_avro::reader::{Decoder, ReaderBuilder};
use arrow_avro::schema::{AvroSchema, Fingerprint, SchemaStore};

use super::batch_plan::{check_length, finish};
use super::dictionary::{Dictionary, NO_SYMBOL, reject, unknown_symbol};
use super::enum_table::{SIDES, TICK_KINDS};
use super::tick_plan::RawTick;
use crate::check::{Prices, check_row};
use crate::error::{DecodeError, SchemaError};
use crate::frame;
use crate::known::{self, KnownSchema};
use crate::long_field::{LONG_FIELD_COUNT, LongField};
use crate::symbol_table::SymbolTable;
use crate::tick::{Side, TickColumns, TickKind};

/// An arrow-avro reader of one writer schema.
#[derive(Debug)]
pub(super) struct ArrowPlan {
    /// Reader schema to which records are resolved.
    reader: KnownSchema,
    writer: AvroSchema,
    fingerprint: u64,
    decoder: Decoder,
    /// The record with its header, as arrow-avro's decoder needs it.
    framed: Vec<u8>,
}

impl ArrowPlan {
    pub(super) fn compile(
        text: &str,
        schema: &Schema,
        fingerprint: u64,
        is_batch: bool,
    ) -> Result<Self, SchemaError> {
        let reader = if is_batch { known::TICK_BATCH } else { known::TICK };
        if !items_take_bytes(schema) {
            let detail =
                "it is recursive, or has arrays of items without bytes; leave those fields out".to_owned();
            return Err(SchemaError::Unresolvable { name: reader.name, detail });
        }
        let writer = AvroSchema::new(text.to_owned());
        let decoder = build(reader, &writer, fingerprint)
            .map_err(|detail| SchemaError::Unresolvable { name: reader.name, detail })?;
        Ok(Self { reader, writer, fingerprint, decoder, framed: Vec::new() })
    }

    pub(super) fn decode(
        &mut self,
        datum: &[u8],
        by_rows: bool,
        dictionary: &mut Dictionary,
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let record = match self.read(datum) {
            Ok(record) => record,
            Err(error) => {
                // The decoder may contain half a row, so it is replaced by a new one. Building it from the same schemas
                // succeeded before.
                self.decoder = build(self.reader, &self.writer, self.fingerprint).expect("built before");
                return Err(error);
            }
        };
        if self.reader == known::TICK {
            append_tick(&record, symbols, out)
        } else {
            let start = out.len();
            append_batch(&record, by_rows, dictionary, symbols, out)?;
            finish(start, by_rows, Prices::NotZero, dictionary, symbols, out)
        }
    }

    /// Reads the datum as one row of Arrow arrays.
    fn read(&mut self, datum: &[u8]) -> Result<RecordBatch, DecodeError> {
        self.framed.clear();
        self.framed.extend_from_slice(&frame::header(self.fingerprint));
        self.framed.extend_from_slice(datum);
        let unresolvable = |detail: String| DecodeError::Unresolvable { name: self.reader.name, detail };
        let consumed = self.decoder.decode(&self.framed).map_err(|error| unresolvable(error.to_string()))?;
        let truncated = DecodeError::Truncated { length: datum.len() };
        let record =
            self.decoder.flush().map_err(|error| unresolvable(error.to_string()))?.ok_or(truncated)?;
        match self.framed.len() - consumed {
            0 => Ok(record),
            count => Err(DecodeError::TrailingBytes { count }),
        }
    }
}

fn build(reader: KnownSchema, writer: &AvroSchema, fingerprint: u64) -> Result<Decoder, String> {
    let fingerprint = Fingerprint::Rabin(fingerprint);
    let mut store = SchemaStore::new();
    store.set(fingerprint, writer.clone()).map_err(|error| error.to_string())?;
    ReaderBuilder::new()
        .with_batch_size(1)
        .with_reader_schema(AvroSchema::new(reader.text.to_owned()))
        .with_writer_schema_store(store)
        .with_active_fingerprint(fingerprint)
        .build_decoder()
        .map_err(|error| error.to_string())
}

/// True if the items of every array take at least one byte. Otherwise a few bytes could claim 2^62 of them.
fn items_take_bytes(schema: &Schema) -> bool {
    match schema {
        Schema::Array(array) => takes_bytes(&array.items) && items_take_bytes(&array.items),
        Schema::Map(map) => items_take_bytes(&map.types),
        Schema::Union(union) => union.variants().iter().all(items_take_bytes),
        Schema::Record(record) => record.fields.iter().all(|field| items_take_bytes(&field.schema)),
        _ => true,
    }
}

fn takes_bytes(schema: &Schema) -> bool {
    match schema {
        Schema::Null => false,
        Schema::Fixed(fixed) => fixed.size > 0,
        Schema::Record(record) => record.fields.iter().any(|field| takes_bytes(&field.schema)),
        // A reference is not resolved here, so it counts as possibly empty.
        Schema::Ref { .. } => false,
        _ => true,
    }
}

fn append_tick(
    record: &RecordBatch,
    symbols: &mut SymbolTable,
    out: &mut TickColumns,
) -> Result<usize, DecodeError> {
    let reader = known::TICK;
    let mut longs = [0; LONG_FIELD_COUNT];
    for field in LongField::ALL {
        longs[field as usize] = longs_of(column(record, reader, field.name())?, reader, field.name())?[0];
    }
    let kinds = enums_of(column(record, reader, "kind")?, reader, "kind", &TICK_KINDS)?;
    let sides = enums_of(column(record, reader, "side")?, reader, "side", &SIDES)?;
    let texts = column(record, reader, "symbol")?;
    let texts = texts.as_string_opt::<i32>().ok_or_else(|| unexpected(reader, "symbol", texts))?;
    let tick = RawTick { symbol: texts.value(0).as_bytes(), kind: kinds[0], side: sides[0], longs };
    check_row(0, tick.kind, tick.side, &tick.longs, Prices::NotZero)?;
    tick.append(symbols, out)
}

fn append_batch(
    record: &RecordBatch,
    by_rows: bool,
    dictionary: &mut Dictionary,
    symbols: &SymbolTable,
    out: &mut TickColumns,
) -> Result<(), DecodeError> {
    let reader = known::TICK_BATCH;
    let start = out.len();
    dictionary.clear();
    let texts = items(record, "symbols")?;
    let texts = texts.as_string_opt::<i32>().ok_or_else(|| unexpected(reader, "symbols", &texts))?;
    texts.iter().flatten().for_each(|text| dictionary.push(text.as_bytes(), symbols));
    let indexes = items(record, "symbol")?;
    let indexes =
        indexes.as_primitive_opt::<Int32Type>().ok_or_else(|| unexpected(reader, "symbol", &indexes))?;
    for (row, &index) in indexes.values().iter().enumerate() {
        let known = u32::try_from(index);
        if known.is_err() {
            let unknown = unknown_symbol(row, i64::from(index), dictionary.len());
            reject(by_rows, &mut out.rejected, unknown)?;
        }
        out.symbol.push(known.unwrap_or(NO_SYMBOL));
    }
    out.kind.extend(enums_of::<TickKind>(&items(record, "kind")?, reader, "kind", &TICK_KINDS)?);
    out.side.extend(enums_of::<Side>(&items(record, "side")?, reader, "side", &SIDES)?);
    for field in LongField::ALL {
        let values = items(record, field.name())?;
        let column = field.column_mut(out);
        debug_assert_eq!(column.len(), start);
        column.extend_from_slice(longs_of(&values, reader, field.name())?);
    }
    Ok(())
}

fn column<'a>(
    record: &'a RecordBatch,
    reader: KnownSchema,
    field: &str,
) -> Result<&'a ArrayRef, DecodeError> {
    record.column_by_name(field).ok_or_else(|| DecodeError::Unresolvable {
        name: reader.name,
        detail: format!("arrow-avro gave no column {field}"),
    })
}

/// Returns the items of an array field, for the only row.
fn items(record: &RecordBatch, field: &'static str) -> Result<ArrayRef, DecodeError> {
    let reader = known::TICK_BATCH;
    let column = column(record, reader, field)?;
    let items = column.as_list_opt::<i32>().ok_or_else(|| unexpected(reader, field, column))?.value(0);
    check_length(field, items.len())?;
    Ok(items)
}

fn longs_of<'a>(values: &'a ArrayRef, reader: KnownSchema, field: &str) -> Result<&'a [i64], DecodeError> {
    match values.as_primitive_opt::<Int64Type>() {
        Some(longs) if longs.null_count() == 0 => Ok(longs.values()),
        _ => Err(unexpected(reader, field, values)),
    }
}

fn enums_of<T: Copy>(
    values: &ArrayRef,
    reader: KnownSchema,
    field: &str,
    known: &[(&str, T)],
) -> Result<Vec<T>, DecodeError> {
    let unexpected = || unexpected(reader, field, values);
    let dictionary = values.as_dictionary_opt::<Int32Type>().ok_or_else(unexpected)?;
    let names = dictionary.downcast_dict::<arrow_array::StringArray>().ok_or_else(unexpected)?;
    names
        .into_iter()
        .map(|name| known.iter().find(|(known, _)| Some(*known) == name).map(|(_, value)| *value))
        .map(|value| value.ok_or_else(unexpected))
        .collect()
}

fn unexpected(reader: KnownSchema, field: &str, values: &ArrayRef) -> DecodeError {
    let detail =
        format!("arrow-avro gave {} for {field}, with {} nulls", values.data_type(), values.null_count());
    DecodeError::Unresolvable { name: reader.name, detail }
}
