//! The interface of a reader of ticks. The engine is given one, and knows no Avro schemas.

use std::fmt;
use std::sync::Arc;

use crate::error::DecodeError;
use crate::symbol_table::SymbolTable;
use crate::tick::TickColumns;

/// Writer schemas by their ids in a schema registry. It answers from memory, because the log's reader has asked the
/// registry before.
pub trait SchemaSource: fmt::Debug + Send + Sync {
    /// Returns the text of the schema; `None` if the registry lacks the id.
    fn schema(&self, id: u32) -> Option<Arc<str>>;
}

/// Decodes the records of the tick topic.
pub trait DecodeTicks: fmt::Debug + Send {
    /// Appends the rows of one record to `out` and returns their number. New symbols are numbered in `symbols` by first
    /// appearance in the good rows.
    ///
    /// # Errors
    /// If the record is bad as a whole: nothing is appended then, and no symbol is numbered.
    fn decode(
        &mut self,
        payload: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError>;

    /// Returns a record for each selection of rows of a decoded batch, good or bad. It is a batch of the published
    /// schema with these rows alone.
    fn rows_alone(&mut self, payload: &[u8], selections: &[&[u32]]) -> Vec<Vec<u8>>;
}
