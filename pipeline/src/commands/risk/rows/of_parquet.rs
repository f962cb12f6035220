//! Rows of a Parquet file.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{BYTES_MAX, COLUMNS_MAX, Cell, Places, Rows, check_rows, mistake};
use crate::usage_error::UsageError;

/// Reads a file of numbers, texts and flags.
pub(super) fn read(path: &Path, file: File) -> Result<Rows, UsageError> {
    let wrong = |error: &dyn std::fmt::Display| mistake(path, &format!("not read as Parquet: {error}"));
    if file.metadata().is_ok_and(|metadata| metadata.len() > BYTES_MAX) {
        return Err(mistake(path, &format!("it has more than {BYTES_MAX} bytes")));
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(&error))?;
    let fields = builder.schema().fields().clone();
    if fields.len() > COLUMNS_MAX {
        return Err(mistake(
            path,
            &format!("it has {} columns; at most {COLUMNS_MAX} are allowed", fields.len()),
        ));
    }
    let columns = fields.iter().map(|field| field.name().to_ascii_lowercase()).collect();
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for batch in builder.build().map_err(|error| wrong(&error))? {
        let batch = batch.map_err(|error| {
            wrong(&format!(
                "{error} (write the file uncompressed or with snappy: other compression is not read)"
            ))
        })?;
        let first = rows.len();
        rows.resize_with(first + batch.num_rows(), Vec::new);
        check_rows(path, rows.len())?;
        for (field, column) in fields.iter().zip(batch.columns()) {
            for (row, cells) in rows[first..].iter_mut().enumerate() {
                let cell = cell_of(column, row).ok_or_else(|| {
                    let kind = column.data_type();
                    let said =
                        "only text, booleans, and floating or integer numbers of 32 or 64 bits are read";
                    mistake(path, &format!("column `{}` is of {kind}: {said}", field.name()))
                })?;
                cells.push(cell);
            }
        }
    }
    Ok(Rows { path: path.to_owned(), columns, rows, places: Places::Numbers })
}

/// Returns the cell of a column; `None` if its type is not supported.
fn cell_of(column: &ArrayRef, row: usize) -> Option<Cell> {
    if column.is_null(row) {
        return Some(Cell::Empty);
    }
    let text = |text: &str| match text.trim() {
        "" => Cell::Empty,
        text => Cell::Text(text.to_owned()),
    };
    Some(match column.data_type() {
        DataType::Utf8 => text(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => text(column.as_string::<i64>().value(row)),
        DataType::Utf8View => text(column.as_string_view().value(row)),
        DataType::Boolean => Cell::Flag(column.as_boolean().value(row)),
        DataType::Float64 => Cell::Number(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Cell::Number(f64::from(column.as_primitive::<Float32Type>().value(row))),
        DataType::Int64 => Cell::Number(column.as_primitive::<Int64Type>().value(row) as f64),
        DataType::Int32 => Cell::Number(f64::from(column.as_primitive::<Int32Type>().value(row))),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// A column of numbers may hold NaN, which is an error of that cell.
    #[test]
    fn rows_of_parquet_are_numbered() {
        let file = tempfile::Builder::new().suffix(".parquet").tempfile().expect("a file");
        let ids: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
        let strikes: ArrayRef = Arc::new(Float64Array::from(vec![100.5, f64::NAN]));
        let batch = RecordBatch::try_from_iter([("ID", ids), ("strike", strikes)]).expect("a batch");
        let mut writer = ArrowWriter::try_new(&file, batch.schema(), None).expect("a writer");
        writer.write(&batch).expect("written");
        writer.close().expect("closed");
        let rows = Rows::read(file.path(), &["id", "strike"]).unwrap_or_else(|error| panic!("{}", error.0));
        let found: Vec<_> = rows.iter().map(|row| (row.text("id"), row.number("strike"))).collect();
        let [(Some(id), Ok(Some(100.5))), (None, Err(error))] = &found[..] else { panic!("two rows") };
        assert_eq!(id, "a");
        assert!(error.0.ends_with(": row 2, column `strike`: `NaN` is not a number"), "{}", error.0);
    }
}
