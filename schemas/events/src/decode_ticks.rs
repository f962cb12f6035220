//! What a reader of ticks is to those who need one: the engine is given it, and knows no Avro schemas.

use std::fmt;
use std::sync::Arc;

use crate::error::DecodeError;
use crate::symbol_table::SymbolTable;
use crate::tick::TickColumns;

/// Writer schemas by their ids in a schema registry. It answers from memory: whoever reads the log has asked the
/// registry before the record comes here.
pub trait SchemaSource: fmt::Debug + Send + Sync {
    /// The text of the schema; `None` if the registry has none of that id.
    fn schema(&self, id: u32) -> Option<Arc<str>>;
}

/// Decodes the records of the tick topic.
pub trait DecodeTicks: fmt::Debug + Send {
    /// Appends the rows of one record to `out` and returns their number. Symbols that are new get their numbers in
    /// `symbols` by first appearance in the good rows.
    ///
    /// # Errors
    /// If the record is not good as a whole: then nothing is appended and no symbol is numbered.
    fn decode(
        &mut self,
        payload: &[u8],
        symbols: &mut SymbolTable,
        out: &mut TickColumns,
    ) -> Result<usize, DecodeError>;

    /// For each selection of rows of a batch that was decoded, a record that has them and no other, good or bad: a batch of the published
    /// schema.
    fn rows_alone(&mut self, payload: &[u8], selections: &[&[u32]]) -> Vec<Vec<u8>>;
}
