//! The interface of a decoder of ticks. The engine gets one, and does not know Avro schemas.

use std::fmt;
use std::sync::Arc;

use crate::error::DecodeError;
use crate::symbol_table::SymbolTable;
use crate::tick::TickColumns;

/// Writer schemas by their ids in a schema registry. It answers from memory, because the reader of the log has already
/// queried the registry.
pub trait SchemaSource: fmt::Debug + Send + Sync {
    /// Returns the text of the schema; `None` if the registry does not have the id.
    fn schema(&self, id: u32) -> Option<Arc<str>>;
}

/// Decodes the records of the tick topic.
pub trait DecodeTicks: fmt::Debug + Send {
    /// Appends the rows of one record to `out` and returns their number. New symbols are numbered in `symbols` by first
    /// appearance in the valid rows.
    ///
    /// # Errors
    /// The record is invalid as a whole. Then no row is appended, and no symbol is numbered.
    fn decode(
        &mut self,
        payload: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError>;

    /// Returns a record for each selection of rows of a decoded batch, valid or not. It is a batch of the published
    /// schema with only these rows.
    fn rows_alone(&mut self, payload: &[u8], selections: &[&[u32]]) -> Vec<Vec<u8>>;
}
