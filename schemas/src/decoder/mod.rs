//! Ticks from Avro straight into columns.
//!
//! ```text
//!  payload ── fingerprint ──► plan of that writer schema ──► values ──► checks ──► intern ──► columns
//!                               tick_plan   one flat row
//!                               batch_plan  arrays, column by column
//!                               arrow_plan  any other shape, through arrow-avro
//! ```
//!
//! A plan is compiled from the writer schema when it is registered and walks no schema afterwards. All three plans end
//! in the same checks, so what a record means does not depend on the way it took.

mod arrow_plan;
mod batch_plan;
mod enum_table;
mod ordinary_tick;
mod plan;
#[cfg(test)]
mod tests;
mod tick_plan;

use apache_avro::{Schema, rabin::Rabin};

use self::batch_plan::Dictionary;
use self::plan::Plan;
use crate::error::{DecodeError, SchemaError};
use crate::symbol_table::SymbolTable;
use crate::tick::TickColumns;
use crate::{frame, known};

/// Decodes tick and tick batch records of every known writer schema.
#[derive(Debug)]
pub struct TickDecoder {
    /// By registration; the published schemas first.
    writers: Vec<Writer>,
    /// Index of the writer that wrote the last record: the next one is likely by the same.
    recent: usize,
    /// Symbols of the record at hand; kept for its memory.
    dictionary: Dictionary,
}

#[derive(Debug)]
struct Writer {
    fingerprint: u64,
    plan: Plan,
}

impl Default for TickDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl TickDecoder {
    /// A decoder that knows every published version of the tick and tick batch schemas.
    pub fn new() -> Self {
        let mut decoder = Self { writers: Vec::new(), recent: 0, dictionary: Dictionary::default() };
        for schema in known::all() {
            if schema.name == known::TICK.name || schema.name == known::TICK_BATCH.name {
                // The texts are compiled in, and tests decode golden bytes of each of them.
                decoder.register_writer_schema(schema.text).expect("a published schema has a plan");
            }
        }
        decoder
    }

    /// Makes records of another writer schema readable: a record named `Tick` or `TickBatch` that resolves to ours by
    /// Avro's rules (fields in another order, fields more, fields with a default less, nullable fields). Returns its
    /// fingerprint.
    ///
    /// # Errors
    /// If the text is no schema, or not one whose records could be ticks.
    pub fn register_writer_schema(&mut self, schema: &str) -> Result<u64, SchemaError> {
        let parsed = Schema::parse_str(schema)
            .map_err(|error| SchemaError::NotASchema { detail: error.to_string() })?;
        let fingerprint = rabin(&parsed);
        if self.position(fingerprint).is_none() {
            let plan = Plan::compile(schema, &parsed, fingerprint)?;
            self.writers.push(Writer { fingerprint, plan });
        }
        Ok(fingerprint)
    }

    /// Appends the rows of one record to `out` and returns their number. Symbols that are new get their numbers in
    /// `symbols` by first appearance in the rows.
    ///
    /// # Errors
    /// If the record is not good as a whole: then nothing is appended and no symbol is numbered.
    pub fn decode(
        &mut self,
        payload: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let (fingerprint, datum) = frame::split(payload)?;
        if self.writers.get(self.recent).is_none_or(|writer| writer.fingerprint != fingerprint) {
            self.recent = self.position(fingerprint).ok_or_else(|| unknown(fingerprint))?;
        }
        let (rows_before, symbols_before) = (out.len(), symbols.len());
        let plan = &mut self.writers[self.recent].plan;
        let result = plan.decode(datum, &mut self.dictionary, symbols, out);
        if result.is_err() {
            out.truncate(rows_before);
            symbols.truncate(symbols_before);
        }
        result
    }

    fn position(&self, fingerprint: u64) -> Option<usize> {
        self.writers.iter().position(|writer| writer.fingerprint == fingerprint)
    }
}

#[cold]
fn unknown(fingerprint: u64) -> DecodeError {
    match known::by_fingerprint(fingerprint) {
        Some(schema) => DecodeError::WrongSchema { found: schema.name, expected: "Tick or TickBatch" },
        None => DecodeError::UnknownSchema { fingerprint },
    }
}

fn rabin(schema: &Schema) -> u64 {
    let bytes = schema.fingerprint::<Rabin>().bytes;
    u64::from_le_bytes(bytes.try_into().expect("a CRC-64 has 8 bytes"))
}
