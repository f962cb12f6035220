//! A recorded run as tables of Parquet or Arrow files, for polars, DuckDB and others: signals, decisions, batches,
//! tasks, commits and latencies.
//!
//! ```text
//!  journal ──► decisions, batches, tasks, commits ──┐
//!     └─ what is sealed ─┐                          ├──► FOLDER/NAME.parquet
//!  signals ──► signals ──┴─ ticks ──► latencies ────┘
//! ```
//!
//! The tables are declared in `table.rs` and documented in docs/export.md. This crate does not know settings or the
//! command line. It judges nothing: differences in a log are found by `verify`.

mod journal;
mod latency;
mod signals;
mod sink;
mod table;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use warptape_eventlog::{EventLog, LogError, TopicPartition};
use warptape_replay::{ExportOptions, ExportProgress, PartitionReader, ReplayError, planned};

pub use self::sink::{ROWS_MAX, TEXT_BYTES_DUE, TableFormat};
pub use self::table::{Column, ColumnKind, TABLES, Table, documented};

use self::journal::JournalTables;
use self::latency::Latencies;
use self::sink::Sinks;

/// A reason why there are no tables.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The log cannot be read, or has nothing to write.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The target exists already.
    #[error("{}: it exists, and existing files are never overwritten; name a new or an empty folder", .path.display())]
    Taken {
        /// The existing path.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("{}: cannot be written ({cause}); check the permissions of the folder and the free space on the disk", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the system or of the format's writer.
        cause: String,
    },
}

impl From<LogError> for TablesError {
    fn from(error: LogError) -> Self {
        Self::Replay(error.into())
    }
}

/// The tables that were written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Written {
    /// Each table with its number of rows.
    pub tables: Vec<WrittenTable>,
    /// Remarks for users.
    pub notes: Vec<String>,
}

/// A table that was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WrittenTable {
    /// Its name.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
}

/// Writes the tables of a log, or of a window of it, into a folder that must not exist yet or must be empty. The log
/// may be written meanwhile: the tables are of one moment between two transactions. Memory is bounded by [`ROWS_MAX`]
/// rows or about [`TEXT_BYTES_DUE`] of each table, by the scheduler's state, and by one transaction.
///
/// # Errors
/// If the log cannot be read, with the place in the error, or a file cannot be written. No folder is left then.
pub fn write_tables(
    log: &dyn EventLog,
    to: &Path,
    format: TableFormat,
    options: &ExportOptions,
    progress: &mut dyn FnMut(ExportProgress),
) -> Result<Written, TablesError> {
    let unfinished = Unfinished::make(to)?;
    let options = ExportOptions { with_ticks: true, ..options.clone() };
    let plan = planned(log, &options)?;
    let sources = &options.sources;
    let [journals, signals, ticks] =
        [&options.journal, &sources.signals, &sources.ticks].map(|topic| plan.of(topic));
    let length = |ranges: &[warptape_eventlog::OffsetRange]| {
        ranges.iter().map(|range| (range.next - range.first).unsigned_abs()).sum::<u64>()
    };
    let mut done = ExportProgress { done: 0, total: length(journals) + length(signals) };
    let mut sinks = Sinks::create(&unfinished.path, format)?;
    let mut advance = |offsets: i64| {
        done.done += offsets.unsigned_abs();
        progress(done);
    };
    for (partition, range) in (0..).zip(signals) {
        let source = TopicPartition { topic: sources.signals.clone(), partition };
        signals::write(log, source, *range, &mut sinks, &mut advance)?;
    }
    let latencies = Latencies::new(log, (&sources.signals, signals), (&sources.ticks, ticks));
    let mut tables = JournalTables::new(latencies);
    for (partition, range) in (0..).zip(journals) {
        let source = TopicPartition { topic: options.journal.clone(), partition };
        let mut reader = PartitionReader::open(log, source, *range)?;
        tables.begin(partition);
        let mut last = range.first;
        while let Some(record) = reader.next()? {
            if let Some(entry) = reader.entry_of(&record)? {
                tables.add(&record, &entry, &mut sinks)?;
            }
            advance(record.offset + 1 - last);
            last = record.offset + 1;
        }
        tables.end(&mut sinks)?;
        advance(range.next - last);
    }
    let tables = sinks.finish()?;
    unfinished.finish(to)?;
    Ok(Written { tables, notes: plan.notes })
}

/// The folder under its temporary name. Dropping it before it is complete removes the folder.
struct Unfinished {
    path: PathBuf,
    is_finished: bool,
}

impl Unfinished {
    fn make(to: &Path) -> Result<Self, TablesError> {
        refuse_taken(to)?;
        let unwritable = |path: &Path, cause: &str| TablesError::Unwritable {
            path: path.to_path_buf(),
            cause: cause.to_owned(),
        };
        let Some(name) = to.file_name() else {
            return Err(unwritable(to, "the path has no last name; name a folder that does not exist yet"));
        };
        let mut name = name.to_owned();
        name.push("-unfinished");
        let path = to.with_file_name(name);
        fs::create_dir(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => unwritable(
                &path,
                "it exists: another export is writing it, or an export was killed; remove it if no export runs",
            ),
            _ => unwritable(&path, &error.to_string()),
        })?;
        Ok(Self { path, is_finished: false })
    }

    fn finish(mut self, to: &Path) -> Result<(), TablesError> {
        refuse_taken(to)?;
        // The files are on the disk before the folder gets its name; an empty folder with that name is replaced.
        let finished = synced(&self.path).and_then(|()| fs::rename(&self.path, to));
        finished
            .map_err(|cause| TablesError::Unwritable { path: to.to_path_buf(), cause: cause.to_string() })?;
        self.is_finished = true;
        Ok(())
    }
}

/// Syncs the files of a folder, and their names, to the disk.
fn synced(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        fs::File::open(entry?.path())?.sync_all()?;
    }
    fs::File::open(folder)?.sync_all()
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn refuse_taken(to: &Path) -> Result<(), TablesError> {
    let is_free = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if is_free { Ok(()) } else { Err(TablesError::Taken { path: to.to_path_buf() }) }
}
