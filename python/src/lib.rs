//! The native part of the Python package `warptape`. Users see python/warptape, which passes work to this module.
//!
//! Rows enter and leave through Arrow's C stream interface; other answers are JSON. Long work runs without the
//! interpreter's lock, and ends early on Ctrl-C.

mod arrow;
mod log;
mod records;
mod ticks;
mod wait;

use std::ffi::OsString;
use std::process::ExitCode;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use warptape_pipeline::library::text_of;

create_exception!(warptape, Error, PyException, "A call that failed. The message says where and what to do.");

/// The module `warptape._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Error, log::NativeLog, log::NativeTable, main, records::NativeRecords};
}

/// Runs the `warptape` command with these arguments, the first of which is its name, and returns its exit status.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| warptape_pipeline::cli::main(arguments));
    // An `ExitCode` can only be compared, so all values are tried.
    (0..u8::MAX).find(|status| ExitCode::from(*status) == code).unwrap_or(u8::MAX)
}

/// Returns the exception for an error.
fn exception(error: &anyhow::Error) -> PyErr {
    Error::new_err(text_of(error))
}
