//! Passes record batches to and from other libraries by Arrow's PyCapsule interface, without copies.
//!
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::thread::{self, ThreadId};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use warptape_pipeline::library::Rows;

use crate::Error;

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";

/// Returns a schema in a capsule for another library.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema).map_err(|error| Error::new_err(error.to_string()))?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// Returns the rows of a table in a capsule for another library, which reads them as it needs them.
pub fn stream_capsule(py: Python<'_>, rows: Rows) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = Interruptible { rows, asked_by: thread::current().id() };
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(stream)), STREAM)
}

/// Record batches that end with an error after Ctrl-C.
struct Interruptible {
    rows: Rows,
    /// Thread that requested the stream. Any other thread must not wait for the interpreter, because the interpreter
    /// may wait for that thread.
    asked_by: ThreadId,
}

impl Iterator for Interruptible {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = &mut self.rows;
        let next = if thread::current().id() == self.asked_by {
            // Some libraries read while they hold the interpreter's lock, so it is released for other threads during
            // the read.
            let next = Python::attach(|py| (!is_interrupted(py)).then(|| py.detach(|| rows.next())));
            let Some(next) = next else {
                return Some(Err(ArrowError::ExternalError("interrupted".into())));
            };
            next
        } else {
            rows.next()
        };
        Some(next?.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Interruptible {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// True after Ctrl-C. The reading library cannot raise `KeyboardInterrupt`, so the interpreter is interrupted again.
fn is_interrupted(py: Python<'_>) -> bool {
    let is_interrupted = py.check_signals().is_err();
    if is_interrupted {
        // Without this, Python raises the library's own error.
        drop(py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main")));
    }
    is_interrupted
}

/// Returns the batches of another library's object.
pub fn batches_of(table: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = table.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast_into::<PyCapsule>().map_err(|_| {
        PyTypeError::new_err(
            "__arrow_c_stream__ gives no capsule: the library of the table is too old or too new",
        )
    })?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the interface guarantees that a capsule with that name holds a valid stream. Taking the stream leaves an
    // empty one, which the capsule's destructor accepts.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| Error::new_err(error.to_string()))
}
