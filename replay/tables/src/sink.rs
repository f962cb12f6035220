//! Writes rows into files, in bounded groups.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

use crate::table::{ColumnKind, TABLES, Table};
use crate::{TablesError, WrittenTable};

/// Most rows of a row group or a record batch.
pub const ROWS_MAX: usize = 65_536;
/// Bytes of text at which a row group ends before it is full.
pub const TEXT_BYTES_DUE: usize = 16 << 20;

/// The file format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Parquet, compressed by Snappy.
    Parquet,
    /// Arrow IPC files, uncompressed, so that they can be memory-mapped.
    Arrow,
}

impl TableFormat {
    /// Extension of the files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'a str),
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<i32> for Cell<'_> {
    fn from(value: i32) -> Self {
        Self::Int(value.into())
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// All tables, open for writing.
pub(crate) struct Sinks(Vec<Sink>);

impl Sinks {
    pub(crate) fn create(folder: &Path, format: TableFormat) -> Result<Self, TablesError> {
        let create = |table: &&'static Table| Sink::create(table, folder, format);
        TABLES.iter().map(create).collect::<Result<_, _>>().map(Self)
    }

    /// Adds a row to a table; the row must have as many cells as the table has columns.
    pub(crate) fn push(&mut self, table: &Table, row: &[Cell<'_>]) -> Result<(), TablesError> {
        let sink = self.0.iter_mut().find(|sink| sink.table.name == table.name);
        sink.expect("there is a sink for each table").push(row)
    }

    /// Finishes all files.
    pub(crate) fn finish(self) -> Result<Vec<WrittenTable>, TablesError> {
        self.0.into_iter().map(Sink::finish).collect()
    }
}

enum Writer {
    Parquet(Box<ArrowWriter<File>>),
    Arrow(Box<FileWriter<File>>),
}

enum Values {
    Bool(BooleanBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
}

/// A table, open for writing.
struct Sink {
    table: &'static Table,
    path: PathBuf,
    schema: SchemaRef,
    writer: Writer,
    values: Vec<Values>,
    /// Number of rows, and bytes of text, that are not written yet.
    rows: usize,
    text_bytes: usize,
    written: u64,
}

impl Sink {
    fn create(table: &'static Table, folder: &Path, format: TableFormat) -> Result<Self, TablesError> {
        let path = folder.join(format!("{}.{}", table.name, format.ending()));
        let data_type = |kind: ColumnKind| match kind {
            ColumnKind::Bool => DataType::Boolean,
            ColumnKind::Int => DataType::Int64,
            ColumnKind::Float => DataType::Float64,
            ColumnKind::Text => DataType::Utf8,
        };
        let fields = table
            .columns
            .iter()
            .map(|column| Field::new(column.name, data_type(column.kind), column.is_nullable));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let failed = |cause: String| TablesError::Unwritable { path: path.clone(), cause };
        let file = File::create_new(&path).map_err(|error| failed(error.to_string()))?;
        let writer = match format {
            TableFormat::Parquet => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties));
                Writer::Parquet(Box::new(writer.map_err(|error| failed(error.to_string()))?))
            }
            TableFormat::Arrow => {
                let writer = FileWriter::try_new(file, &schema);
                Writer::Arrow(Box::new(writer.map_err(|error| failed(error.to_string()))?))
            }
        };
        let values = table.columns.iter().map(|column| match column.kind {
            ColumnKind::Bool => Values::Bool(BooleanBuilder::new()),
            ColumnKind::Int => Values::Int(Int64Builder::new()),
            ColumnKind::Float => Values::Float(Float64Builder::new()),
            ColumnKind::Text => Values::Text(StringBuilder::new()),
        });
        let values = values.collect();
        Ok(Self { table, path, schema, writer, values, rows: 0, text_bytes: 0, written: 0 })
    }

    fn push(&mut self, row: &[Cell<'_>]) -> Result<(), TablesError> {
        assert_eq!(row.len(), self.values.len(), "a row of {} has as many cells as columns", self.table.name);
        for ((values, cell), column) in self.values.iter_mut().zip(row).zip(self.table.columns) {
            assert!(
                column.is_nullable || *cell != Cell::Null,
                "{} of {} is there",
                column.name,
                self.table.name
            );
            match (values, cell) {
                (Values::Bool(values), Cell::Bool(value)) => values.append_value(*value),
                (Values::Int(values), Cell::Int(value)) => values.append_value(*value),
                (Values::Float(values), Cell::Float(value)) => values.append_value(*value),
                (Values::Text(values), Cell::Text(value)) => {
                    self.text_bytes += value.len();
                    values.append_value(value);
                }
                (Values::Bool(values), Cell::Null) => values.append_null(),
                (Values::Int(values), Cell::Null) => values.append_null(),
                (Values::Float(values), Cell::Null) => values.append_null(),
                (Values::Text(values), Cell::Null) => values.append_null(),
                (_, other) => panic!(
                    "{} of {} is no {other:?}: the table's declaration says so",
                    column.name, self.table.name
                ),
            }
        }
        self.rows += 1;
        if self.rows >= ROWS_MAX || self.text_bytes >= TEXT_BYTES_DUE { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TablesError> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns: Vec<ArrayRef> = self
            .values
            .iter_mut()
            .map(|values| match values {
                Values::Bool(values) => ArrayBuilder::finish(values),
                Values::Int(values) => ArrayBuilder::finish(values),
                Values::Float(values) => ArrayBuilder::finish(values),
                Values::Text(values) => ArrayBuilder::finish(values),
            })
            .collect();
        let batch =
            RecordBatch::try_new(self.schema.clone(), columns).expect("columns are as the schema says");
        let done = match &mut self.writer {
            // A row group per batch, so that only these rows are ever in memory.
            Writer::Parquet(writer) => {
                writer.write(&batch).and_then(|()| writer.flush()).map_err(|error| error.to_string())
            }
            Writer::Arrow(writer) => writer.write(&batch).map_err(|error| error.to_string()),
        };
        done.map_err(|cause| TablesError::Unwritable { path: self.path.clone(), cause })?;
        self.written += self.rows as u64;
        (self.rows, self.text_bytes) = (0, 0);
        Ok(())
    }

    fn finish(mut self) -> Result<WrittenTable, TablesError> {
        self.flush()?;
        let done = match self.writer {
            Writer::Parquet(writer) => writer.close().map(drop).map_err(|error| error.to_string()),
            Writer::Arrow(mut writer) => writer.finish().map_err(|error| error.to_string()),
        };
        done.map_err(|cause| TablesError::Unwritable { path: self.path, cause })?;
        Ok(WrittenTable { name: self.table.name.to_owned(), rows: self.written })
    }
}
