//! Collects rows in record batches of limited size.

use std::collections::VecDeque;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Decimal128Builder, Float64Builder, Int32Builder,
    Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder, TimestampNanosecondBuilder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;

use crate::cell::Cell;
use crate::table::{ColumnKind, Table};

/// Greatest number of rows in a row group or a record batch.
pub const ROWS_MAX: usize = 65_536;
/// Bytes of text at which a row group ends before it is full.
pub const TEXT_BYTES_DUE: usize = 16 << 20;

/// Rows of a table.
#[derive(Clone, Debug)]
pub struct TableBatch {
    /// The table.
    pub table: &'static Table,
    /// The rows.
    pub batch: RecordBatch,
}

/// Rows of some tables that are being collected in batches.
pub(crate) struct Rows {
    tables: Vec<TableRows>,
    /// Offset of the record that causes the next rows.
    place: i64,
    ready: VecDeque<TableBatch>,
    /// Number of bad ticks and unreadable records, which have no rows.
    pub(crate) left_out: u64,
}

impl Rows {
    /// Creates a collection of rows of these tables. Rows of other tables are dropped.
    pub(crate) fn new(tables: &[&'static Table]) -> Self {
        let tables = tables.iter().map(|table| TableRows::new(table)).collect();
        Self { tables, place: 0, ready: VecDeque::new(), left_out: 0 }
    }

    /// Drops rows of a table that records before an offset cause.
    pub(crate) fn begin_at(&mut self, table: &Table, offset: i64) {
        if let Some(rows) = self.tables.iter_mut().find(|rows| rows.table.name == table.name) {
            rows.from = offset;
        }
    }

    /// Sets the offset of the record that causes the next rows.
    pub(crate) fn at(&mut self, offset: i64) {
        self.place = offset;
    }

    /// True if rows of the table are collected at the current offset.
    pub(crate) fn wants(&self, table: &Table) -> bool {
        self.tables.iter().any(|rows| rows.table.name == table.name && self.place >= rows.from)
    }

    /// Adds a row to a table. The row must have as many cells as the table has columns.
    pub(crate) fn push(&mut self, table: &Table, row: &[Cell<'_>]) {
        let place = self.place;
        let rows = self.tables.iter_mut().find(|rows| rows.table.name == table.name);
        if let Some(rows) = rows.filter(|rows| place >= rows.from) {
            rows.push(row);
            if rows.is_full() {
                self.ready.extend(rows.finish());
            }
        }
    }

    /// Returns the next full batch; `None` if there is none.
    pub(crate) fn take_ready(&mut self) -> Option<TableBatch> {
        self.ready.pop_front()
    }

    /// Ends all batches, full or not.
    pub(crate) fn finish(&mut self) {
        self.ready.extend(self.tables.iter_mut().filter_map(TableRows::finish));
    }
}

enum Values {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Ints(ListBuilder<Int32Builder>),
    Float(Float64Builder),
    Text(StringBuilder),
    Word(StringDictionaryBuilder<Int32Type>),
    Bytes(BinaryBuilder),
    Time(TimestampNanosecondBuilder),
    Decimal(Decimal128Builder),
}

impl Values {
    fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Bool => Self::Bool(BooleanBuilder::new()),
            ColumnKind::Int => Self::Int(Int64Builder::new()),
            ColumnKind::Ints => Self::Ints(ListBuilder::new(Int32Builder::new())),
            ColumnKind::Float => Self::Float(Float64Builder::new()),
            ColumnKind::Text => Self::Text(StringBuilder::new()),
            ColumnKind::Word => Self::Word(StringDictionaryBuilder::new()),
            ColumnKind::Bytes => Self::Bytes(BinaryBuilder::new()),
            ColumnKind::Time => {
                Self::Time(TimestampNanosecondBuilder::new().with_data_type(kind.data_type()))
            }
            ColumnKind::Price | ColumnKind::Size => {
                Self::Decimal(Decimal128Builder::new().with_data_type(kind.data_type()))
            }
        }
    }

    /// Adds a cell. Returns false if the column has another type.
    fn push(&mut self, cell: &Cell<'_>) -> bool {
        match (self, cell) {
            (Self::Bool(values), Cell::Bool(value)) => values.append_value(*value),
            (Self::Int(values), Cell::Int(value)) => values.append_value(*value),
            (Self::Ints(values), Cell::Ints(list)) => values.append_value(list.iter().copied().map(Some)),
            (Self::Float(values), Cell::Float(value)) => values.append_value(*value),
            (Self::Text(values), Cell::Text(value)) => values.append_value(value),
            (Self::Word(values), Cell::Text(value)) => values.append_value(value),
            (Self::Bytes(values), Cell::Bytes(value)) => values.append_value(value),
            (Self::Time(values), Cell::Int(value)) => values.append_value(*value),
            (Self::Decimal(values), Cell::Decimal(value)) => values.append_value(*value),
            (Self::Bool(values), Cell::Null) => values.append_null(),
            (Self::Int(values), Cell::Null) => values.append_null(),
            (Self::Ints(values), Cell::Null) => values.append_null(),
            (Self::Float(values), Cell::Null) => values.append_null(),
            (Self::Text(values), Cell::Null) => values.append_null(),
            (Self::Word(values), Cell::Null) => values.append_null(),
            (Self::Bytes(values), Cell::Null) => values.append_null(),
            (Self::Time(values), Cell::Null) => values.append_null(),
            (Self::Decimal(values), Cell::Null) => values.append_null(),
            _ => return false,
        }
        true
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Bool(values) => ArrayBuilder::finish(values),
            Self::Int(values) => ArrayBuilder::finish(values),
            Self::Ints(values) => ArrayBuilder::finish(values),
            Self::Float(values) => ArrayBuilder::finish(values),
            Self::Text(values) => ArrayBuilder::finish(values),
            Self::Word(values) => ArrayBuilder::finish(values),
            Self::Bytes(values) => ArrayBuilder::finish(values),
            Self::Time(values) => ArrayBuilder::finish(values),
            Self::Decimal(values) => ArrayBuilder::finish(values),
        }
    }
}

/// Rows of one table.
struct TableRows {
    table: &'static Table,
    schema: SchemaRef,
    values: Vec<Values>,
    /// Offset of the first record whose rows are kept.
    from: i64,
    /// Number of rows, and bytes of text, that are not in a batch yet.
    rows: usize,
    text_bytes: usize,
}

impl TableRows {
    fn new(table: &'static Table) -> Self {
        let values = table.columns.iter().map(|column| Values::new(column.kind)).collect();
        Self { table, schema: table.schema(), values, from: i64::MIN, rows: 0, text_bytes: 0 }
    }

    fn push(&mut self, row: &[Cell<'_>]) {
        let Self { table, values, .. } = self;
        assert_eq!(row.len(), values.len(), "a row of {} has as many cells as columns", table.name);
        for ((values, cell), column) in values.iter_mut().zip(row).zip(table.columns) {
            let (name, table) = (column.name, table.name);
            assert!(column.is_nullable || *cell != Cell::Null, "{name} of {table} is there");
            assert!(values.push(cell), "{name} of {table} is no {cell:?}: the table's declaration says so");
            self.text_bytes += match cell {
                Cell::Text(text) => text.len(),
                Cell::Bytes(bytes) => bytes.len(),
                Cell::Ints(list) => size_of_val(*list),
                _ => 0,
            };
        }
        self.rows += 1;
    }

    fn is_full(&self) -> bool {
        self.rows >= ROWS_MAX || self.text_bytes >= TEXT_BYTES_DUE
    }

    fn finish(&mut self) -> Option<TableBatch> {
        if self.rows == 0 {
            return None;
        }
        let columns = self.values.iter_mut().map(Values::finish).collect();
        let batch =
            RecordBatch::try_new(self.schema.clone(), columns).expect("columns are as the schema says");
        (self.rows, self.text_bytes) = (0, 0);
        Some(TableBatch { table: self.table, batch })
    }
}
