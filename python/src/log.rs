//! A log and its tables.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::Value;
use warptape_pipeline::cli::Interrupt;
use warptape_pipeline::library::{GivenTick, RowFilter, Session, Table, TickPublisher, table_of};

use crate::records::NativeRecords;
use crate::ticks::{Row, tick_of_row, ticks_of_batch};
use crate::wait::{end_if, interruptible};
use crate::{Error, arrow, exception};

/// A log, identified by its URL. Each call opens it.
#[pyclass(frozen)]
pub struct NativeLog {
    session: Arc<Session>,
    /// The publisher with its name, kept between calls; `None` before the first call, and after a failed one.
    publisher: Arc<Mutex<Option<(String, TickPublisher)>>>,
    /// Interrupts the publisher. It is replaced by a new one after it was set.
    interrupt: Mutex<Interrupt>,
}

#[pymethods]
impl NativeLog {
    #[new]
    #[pyo3(signature = (url=None, config=None))]
    fn new(url: Option<&str>, config: Option<PathBuf>) -> PyResult<Self> {
        let session = Session::new(url, config).map_err(|error| exception(&error))?;
        Ok(Self { session: Arc::new(session), publisher: Arc::default(), interrupt: Mutex::default() })
    }

    #[getter]
    fn url(&self) -> &str {
        self.session.url()
    }

    /// Returns the table with a name.
    #[pyo3(signature = (name, symbol=None, kind=None, since_ns=None, until_ns=None))]
    fn table(
        &self,
        name: &str,
        symbol: Option<String>,
        kind: Option<String>,
        since_ns: Option<i64>,
        until_ns: Option<i64>,
    ) -> PyResult<NativeTable> {
        let table = table_of(name, kind.as_deref()).map_err(|error| exception(&error))?;
        let filter = RowFilter { symbol, kind, since_ns, until_ns };
        Ok(NativeTable { session: self.session.clone(), table, filter })
    }

    /// Returns the records of a topic as lines of JSON.
    #[pyo3(signature = (topic, symbol=None, from_beginning=false, exit_at_end=false))]
    fn records(
        &self,
        py: Python<'_>,
        topic: String,
        symbol: Option<String>,
        from_beginning: bool,
        exit_at_end: bool,
    ) -> PyResult<NativeRecords> {
        let session = self.session.clone();
        let open = move || session.lines(&topic, symbol, (from_beginning, exit_at_end));
        interruptible(py, &Interrupt::default(), open).map(NativeRecords::new)
    }

    /// Returns the JSON of a `replay` command.
    fn replay(&self, py: Python<'_>, arguments: Vec<String>) -> PyResult<String> {
        let (session, interrupt) = (self.session.clone(), Interrupt::default());
        let ended = interrupt.clone();
        interruptible(py, &interrupt, move || session.replay(&arguments, &mut |_| end_if(&ended)))
    }

    /// Sends a risk request, given as JSON, and returns the record of its result as JSON.
    fn risk(&self, py: Python<'_>, request: &str, timeout_s: f64, waits: bool) -> PyResult<String> {
        let request = serde_json::from_str(request).map_err(|error| Error::new_err(error.to_string()))?;
        let Value::Object(request) = request else {
            return Err(Error::new_err("a request must be an object"));
        };
        let timeout =
            Duration::try_from_secs_f64(timeout_s).map_err(|error| Error::new_err(error.to_string()))?;
        let (session, interrupt) = (self.session.clone(), Interrupt::default());
        let asking = interrupt.clone();
        interruptible(py, &interrupt, move || {
            let result = session.risk(request, timeout, waits, &asking)?;
            Ok(serde_json::to_string(&result)?)
        })
    }

    /// Publishes the ticks of an Arrow table. `name` is the transactional id. Returns the numbers of ticks and records.
    fn publish_table(&self, py: Python<'_>, name: String, table: &Bound<'_, PyAny>) -> PyResult<(u64, u64)> {
        let batches = arrow::batches_of(table)?;
        self.publishing(py, name, move |push| {
            for batch in batches {
                push(ticks_of_batch(&batch?)?)?;
            }
            Ok(())
        })
    }

    /// Publishes ticks given as rows, like `publish_table`.
    fn publish_rows(&self, py: Python<'_>, name: String, rows: Vec<Row>) -> PyResult<(u64, u64)> {
        self.publishing(py, name, move |push| push(rows.into_iter().map(tick_of_row).collect()))
    }
}

impl NativeLog {
    /// Publishes the ticks that `ticks` pushes. A publisher that failed or was interrupted is dropped with its ticks.
    fn publishing(
        &self,
        py: Python<'_>,
        name: String,
        ticks: impl FnOnce(&mut dyn FnMut(Vec<GivenTick>) -> anyhow::Result<()>) -> anyhow::Result<()>
        + Send
        + 'static,
    ) -> PyResult<(u64, u64)> {
        let interrupt = self.interrupt.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (session, kept, ending) = (self.session.clone(), self.publisher.clone(), interrupt.clone());
        let published = interruptible(py, &interrupt, move || {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            // A publisher with another name ends before the new one begins.
            let mut publisher = match kept.take().filter(|(known, _)| *known == name) {
                Some((_, publisher)) => publisher,
                None => session.publisher(&name, &ending)?,
            };
            let before = publisher.published();
            let pushed = ticks(&mut |given| {
                ensure!(!ending.is_set(), "interrupted");
                let ticks = given.iter().map(GivenTick::tick).collect::<Result<Vec<_>, _>>()?;
                publisher.push(ticks)
            });
            pushed.and_then(|()| publisher.flush()).with_context(|| publisher.stopped(before))?;
            let after = publisher.published();
            // After the interrupt the publisher is dropped, and then waits less for the log.
            if !ending.is_set() {
                *kept = Some((name, publisher));
            }
            Ok((after.ticks - before.ticks, after.records - before.records))
        });
        if interrupt.is_set() {
            *self.interrupt.lock().unwrap_or_else(PoisonError::into_inner) = Interrupt::default();
        }
        published
    }
}

/// The rows of a topic. Each stream reads them anew, up to the current end of the topic.
#[pyclass(frozen)]
pub struct NativeTable {
    session: Arc<Session>,
    table: &'static Table,
    filter: RowFilter,
}

#[pymethods]
impl NativeTable {
    /// Returns the names of the columns with their meanings.
    #[getter]
    fn columns(&self) -> Vec<(&'static str, &'static str)> {
        self.table.columns.iter().map(|column| (column.name, column.words)).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema_capsule(py, &self.table.schema())
    }

    /// Returns the rows as a stream. It ignores the requested schema, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let (session, table, filter) = (self.session.clone(), self.table, self.filter.clone());
        let open = move || session.rows(table, filter);
        arrow::stream_capsule(py, interruptible(py, &Interrupt::default(), open)?)
    }
}
