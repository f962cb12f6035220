//! Records of a topic, one by one.

use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use warptape_pipeline::commands::tail::{Lines, Polled};

use crate::{Error, exception};

/// Longest wait between two checks for signals.
const LOOK: Duration = Duration::from_millis(100);

/// Iterator over the records of a topic, each as a line of JSON.
#[pyclass(frozen)]
pub struct NativeRecords(Mutex<Lines>);

impl NativeRecords {
    /// Creates the iterator of an open topic.
    pub fn new(lines: Lines) -> Self {
        Self(Mutex::new(lines))
    }
}

#[pymethods]
impl NativeRecords {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        loop {
            let polled = py.detach(|| {
                let mut lines = self
                    .0
                    .lock()
                    .map_err(|_| Error::new_err("an earlier call failed because of a defect"))?;
                lines.poll(LOOK).map_err(|error| exception(&error))
            })?;
            match polled {
                Polled::Line(line) => return Ok(Some(line)),
                Polled::Idle => py.check_signals()?,
                Polled::End => return Ok(None),
            }
        }
    }
}
