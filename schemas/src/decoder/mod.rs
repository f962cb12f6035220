//! Ticks from Avro straight into columns.
//!
//! ```text
//!  payload ── fingerprint or id ──► plan of that writer schema ──► values ──► checks ──► intern ──► columns
//!                               tick_plan   one flat row
//!                               batch_plan  arrays, column by column
//!                               packed_plan numbers of a fixed width, column by column
//!                               arrow_plan  any other shape, through arrow-avro
//! ```
//!
//! A plan is compiled when the writer schema is registered, and needs no schema afterwards. All plans end in the
//! same checks, so a record has the same meaning with each plan.

#[cfg(feature = "foreign-schemas")]
mod arrow_plan;
mod batch_plan;
mod dictionary;
mod enum_table;
mod ordinary_tick;
mod packed_columns;
mod packed_entries;
mod packed_plan;
mod plan;
mod rows;
#[cfg(test)]
mod tests;
mod tick_plan;
mod units;

use std::sync::{Arc, LazyLock};

use apache_avro::{Schema, rabin::Rabin};

use self::dictionary::Dictionary;
pub(crate) use self::enum_table::{SIDES, TICK_KINDS};
pub(crate) use self::packed_plan::Unpacked;
use self::plan::Plan;
use self::rows::Rows;
use crate::error::{DecodeError, SchemaError};
use crate::known::KnownSchema;
use crate::symbol_table::SymbolTable;
use crate::tick::TickColumns;
use crate::{DecodeTicks, SchemaSource, frame, known};

/// Decodes tick and tick batch records of every known writer schema.
#[derive(Debug)]
pub struct TickDecoder {
    /// Writers in the order of registration, published schemas first.
    writers: Vec<Writer>,
    /// Index of the last record's writer, which probably wrote the next record as well.
    recent: usize,
    /// Result for each id seen so far: an index of `writers`, or the reason why its schema is unusable.
    ids: Vec<(u32, Result<usize, DecodeError>)>,
    /// Id and writer of the last record in the registry's frame.
    recent_id: Option<(u32, usize)>,
    source: Option<Arc<dyn SchemaSource>>,
    /// True if an invalid row of a batch does not affect the other rows.
    by_rows: bool,
    /// Symbols of the current record; kept to reuse the memory.
    dictionary: Dictionary,
}

/// The published versions of ticks and tick batches, parsed once for all decoders.
static PUBLISHED: LazyLock<Vec<(KnownSchema, Schema)>> = LazyLock::new(|| {
    let of_ticks = [known::TICK, known::TICK_BATCH, known::SCALED_TICK_BATCH, known::PACKED_TICK_BATCH];
    let of_ticks = of_ticks.map(|schema| schema.name);
    let parse = |schema: KnownSchema| (schema, Schema::parse_str(schema.text).expect("a published schema"));
    known::all().filter(|schema| of_ticks.contains(&schema.name)).map(parse).collect()
});

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
    /// Returns a decoder for every published version of the tick and tick batch schemas.
    pub fn new() -> Self {
        Self::with_source(None)
    }

    /// Returns a decoder that also reads records in the registry's frame, if `source` has their ids.
    pub fn with_source(source: Option<Arc<dyn SchemaSource>>) -> Self {
        let mut decoder = Self {
            writers: Vec::new(),
            recent: 0,
            ids: Vec::new(),
            recent_id: None,
            source,
            by_rows: false,
            dictionary: Dictionary::default(),
        };
        for (schema, parsed) in PUBLISHED.iter() {
            // The texts are part of the program, and tests decode golden bytes of each schema.
            decoder.add(schema.text, parsed, schema.fingerprint).expect("a published schema has a plan");
        }
        decoder
    }

    /// Sets whether an invalid row of a batch is rejected alone. It is then listed in [`TickColumns::rejected`], and
    /// the other rows are valid.
    pub fn by_rows(mut self, by_rows: bool) -> Self {
        self.by_rows = by_rows;
        self
    }

    /// Makes records of another writer schema readable, and returns its fingerprint. The schema is a record named
    /// `Tick`, `TickBatch`, `ScaledTickBatch` or `PackedTickBatch` that resolves to the published one by Avro's rules. Its fields may be
    /// reordered, additional or nullable. A field may be missing if the published one has a default.
    ///
    /// # Errors
    /// The text is not a schema, or not one of ticks.
    pub fn register_writer_schema(&mut self, schema: &str) -> Result<u64, SchemaError> {
        self.writer_of(schema).map(|writer| self.writers[writer].fingerprint)
    }

    /// Appends the rows of one record to `out` and returns their number, as [`DecodeTicks::decode`] does.
    ///
    /// # Errors
    /// The record is invalid as a whole. Then no row is appended, and no symbol is numbered.
    pub fn decode(
        &mut self,
        payload: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        let datum = match frame::split_registry(payload) {
            Some((id, datum)) => {
                self.recent = self.writer_of_id(id)?;
                datum
            }
            None => {
                let (fingerprint, datum) = frame::split(payload)?;
                if self.writers.get(self.recent).is_none_or(|writer| writer.fingerprint != fingerprint) {
                    self.recent = self.position(fingerprint).ok_or_else(|| unknown(fingerprint))?;
                }
                datum
            }
        };
        out.rejected.clear();
        let (rows_before, symbols_before) = (out.len(), symbols.len());
        let plan = &mut self.writers[self.recent].plan;
        let result = plan.decode(datum, self.by_rows, &mut self.dictionary, symbols, out);
        if result.is_err() {
            out.truncate(rows_before);
            symbols.truncate(symbols_before);
        }
        result
    }

    /// Returns the index of the writer with this schema, and compiles a plan for a new one.
    fn writer_of(&mut self, schema: &str) -> Result<usize, SchemaError> {
        let parsed = Schema::parse_str(schema)
            .map_err(|error| SchemaError::NotASchema { detail: error.to_string() })?;
        let fingerprint = rabin(&parsed);
        if let Some(writer) = self.position(fingerprint) {
            return Ok(writer);
        }
        self.add(schema, &parsed, fingerprint)
    }

    fn add(&mut self, text: &str, parsed: &Schema, fingerprint: u64) -> Result<usize, SchemaError> {
        units::check(parsed)?;
        let plan = Plan::compile(text, parsed, fingerprint)?;
        self.writers.push(Writer { fingerprint, plan });
        Ok(self.writers.len() - 1)
    }

    #[inline]
    fn writer_of_id(&mut self, id: u32) -> Result<usize, DecodeError> {
        match self.recent_id {
            Some((recent, writer)) if recent == id => Ok(writer),
            _ => self.look_up_id(id),
        }
    }

    #[cold]
    fn look_up_id(&mut self, id: u32) -> Result<usize, DecodeError> {
        let found = match self.ids.iter().find(|(known, _)| *known == id) {
            Some((_, found)) => found.clone(),
            None => {
                // A missing id is not remembered, because the registry may get it later.
                let text = self.source.as_ref().and_then(|source| source.schema(id));
                let text = text.ok_or(DecodeError::UnknownSchemaId { id })?;
                let found = self
                    .writer_of(&text)
                    .map_err(|error| DecodeError::UnusableSchema { id, detail: error.to_string() });
                self.ids.push((id, found.clone()));
                found
            }
        };
        if let Ok(writer) = found {
            self.recent_id = Some((id, writer));
        }
        found
    }

    fn position(&self, fingerprint: u64) -> Option<usize> {
        self.writers.iter().position(|writer| writer.fingerprint == fingerprint)
    }
}

impl DecodeTicks for TickDecoder {
    fn decode(
        &mut self,
        payload: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError> {
        TickDecoder::decode(self, payload, symbols, out)
    }

    fn rows_alone(&mut self, payload: &[u8], selections: &[&[u32]]) -> Vec<Vec<u8>> {
        let (mut symbols, mut columns) = (SymbolTable::default(), TickColumns::default());
        let by_rows = std::mem::replace(&mut self.by_rows, true);
        let decoded = TickDecoder::decode(self, payload, &mut symbols, &mut columns);
        self.by_rows = by_rows;
        // The record's rows were rejected one by one, so the record itself was decoded.
        decoded.expect("the record was decoded a moment ago");
        let rows = Rows::new(&columns, &symbols, &self.dictionary);
        selections.iter().map(|selection| rows.encode(selection)).collect()
    }
}

#[cold]
fn unknown(fingerprint: u64) -> DecodeError {
    match known::by_fingerprint(fingerprint) {
        Some(schema) => {
            let expected = "Tick, TickBatch, ScaledTickBatch or PackedTickBatch";
            DecodeError::WrongSchema { found: schema.name, expected }
        }
        None => DecodeError::UnknownSchema { fingerprint },
    }
}

fn rabin(schema: &Schema) -> u64 {
    let bytes = schema.fingerprint::<Rabin>().bytes;
    u64::from_le_bytes(bytes.try_into().expect("a CRC-64 has 8 bytes"))
}
