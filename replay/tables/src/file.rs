//! Files of tables.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::SchemaRef;
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

use crate::TablesError;
use crate::table::{ColumnKind, Table};

/// The file format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    /// Parquet, compressed by Snappy.
    Parquet,
    /// Arrow IPC files, uncompressed, so that they can be memory-mapped.
    Arrow,
}

impl TableFormat {
    /// Returns the extension of the files.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

enum Writer {
    Parquet(Box<ArrowWriter<File>>),
    Arrow(Box<FileWriter<File>>, SchemaRef),
}

/// A file of a table, open for writing.
pub(crate) struct TableFile {
    path: PathBuf,
    writer: Writer,
    pub(crate) rows: u64,
}

impl TableFile {
    pub(crate) fn create(table: &Table, path: &Path, format: TableFormat) -> Result<Self, TablesError> {
        let failed = |cause: String| TablesError::Unwritable { path: path.to_path_buf(), cause };
        let file = File::create_new(path).map_err(|error| failed(error.to_string()))?;
        let writer = match format {
            TableFormat::Parquet => {
                let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(file, table.schema(), Some(properties));
                Writer::Parquet(Box::new(writer.map_err(|error| failed(error.to_string()))?))
            }
            TableFormat::Arrow => {
                let schema = table.schema_of(|kind| match kind {
                    ColumnKind::Word => ColumnKind::Text.data_type(),
                    kind => kind.data_type(),
                });
                let writer = FileWriter::try_new(file, &schema);
                Writer::Arrow(Box::new(writer.map_err(|error| failed(error.to_string()))?), schema)
            }
        };
        Ok(Self { path: path.to_path_buf(), writer, rows: 0 })
    }

    /// Writes a batch as a row group or a record batch.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), TablesError> {
        let done = match &mut self.writer {
            // Each batch becomes a row group, so that only its rows are in memory.
            Writer::Parquet(writer) => {
                writer.write(batch).and_then(|()| writer.flush()).map_err(|error| error.to_string())
            }
            Writer::Arrow(writer, schema) => {
                writer.write(&plain(batch, schema)).map_err(|error| error.to_string())
            }
        };
        done.map_err(|cause| self.unwritable(cause))?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Writes the end of the file, and syncs the file to the disk.
    pub(crate) fn finish(self) -> Result<(), TablesError> {
        let Self { path, writer, .. } = self;
        let file = match writer {
            Writer::Parquet(writer) => writer.into_inner().map_err(|error| error.to_string()),
            Writer::Arrow(mut writer, _) => {
                writer.finish().and_then(|()| writer.into_inner()).map_err(|error| error.to_string())
            }
        };
        let synced = file.and_then(|file| file.sync_all().map_err(|error| error.to_string()));
        synced.map_err(|cause| TablesError::Unwritable { path, cause })
    }

    fn unwritable(&self, cause: String) -> TablesError {
        TablesError::Unwritable { path: self.path.clone(), cause }
    }
}

/// Converts words to texts: an Arrow file has one dictionary for all of its batches, and not every reader accepts a
/// dictionary that grows.
fn plain(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    let text = |column: &ArrayRef| match column.as_dictionary_opt::<Int32Type>() {
        None => column.clone(),
        Some(words) => {
            let words = words.downcast_dict::<StringArray>().expect("words are texts");
            Arc::new(words.into_iter().collect::<StringArray>()) as ArrayRef
        }
    };
    let columns = batch.columns().iter().map(text).collect();
    RecordBatch::try_new(schema.clone(), columns).expect("only words have other types")
}
