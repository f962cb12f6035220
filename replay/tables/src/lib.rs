//! A recorded run as tables of Parquet and Arrow files, or as record batches, for polars, DuckDB and others.
//!
//! ```text
//!  signals, ticks, late ticks, dead letters ──► their tables ────────┐
//!  journal ──► decisions, batches, tasks, commits ───────────────────┼──► Rows ──► Batches ──► FOLDER/NAME.parquet
//!     └─ what is sealed ──► signals, ticks along it ──► latencies ───┘       └──► Follow ──► FOLDER/NAME/date=…/….parquet
//! ```
//!
//! The tables are declared in `declared` and documented in docs/export.md. This crate does not know settings, clocks or
//! the command line. It does not judge the run: `verify` finds differences.

mod batches;
mod cell;
mod declared;
mod entries;
mod file;
mod follow;
mod journal;
mod latency;
mod reader;
mod reading;
mod results;
mod rows;
mod signals;
mod table;
mod ticks;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use warptape_eventlog::{EventLog, LogError};
use warptape_replay::{ExportOptions, ExportProgress, ReplayError};

pub use self::batches::Batches;
pub use self::file::TableFormat;
pub use self::follow::Follow;
pub use self::reader::{RowFilter, RowTopic, TopicReader};
pub use self::rows::{ROWS_MAX, TEXT_BYTES_DUE, TableBatch};
pub use self::table::{
    Column, ColumnKind, DECIMAL_DIGITS, PRICE_SCALE, SIZE_SCALE, TABLES, Table, documented,
};

use self::file::TableFile;

/// Reasons why tables cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    /// The log cannot be read, or has nothing to export.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The target exists already.
    #[error("{}: it exists, and existing files are never overwritten; name a new or an empty folder", .path.display())]
    Taken {
        /// The existing path.
        path: PathBuf,
    },
    /// The reading thread has failed.
    #[error("the rows end early, because their reader failed with the message above; please report it")]
    CutShort,
    /// This export cannot continue the folder.
    #[error("{}: {cause}", .path.display())]
    Unfit {
        /// The folder or file.
        path: PathBuf,
        /// The reason and the remedy.
        cause: String,
    },
    /// A file cannot be written.
    #[error("{}: cannot be written ({cause}); check the permissions of the folder and the free space on the disk", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Error of the system or of the format's writer.
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
    /// Each table, with its number of rows.
    pub tables: Vec<WrittenTable>,
    /// Remarks for users.
    pub notes: Vec<String>,
}

/// A table that was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WrittenTable {
    /// Name of the table.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
}

/// Writes some tables of a log, or of a window of it, to a folder that must not exist yet or must be empty. [`Batches`]
/// bounds the memory.
///
/// # Errors
/// If the log cannot be read, with the place in the error, or a file cannot be written. An incomplete folder is
/// removed.
pub fn write_tables(
    log: &dyn EventLog,
    to: &Path,
    format: TableFormat,
    options: &ExportOptions,
    tables: &[&'static Table],
    progress: &mut dyn FnMut(ExportProgress),
) -> Result<Written, TablesError> {
    let unfinished = Unfinished::make(to)?;
    let mut batches = Batches::open(log, options, tables)?;
    let mut files = Vec::with_capacity(tables.len());
    for table in tables {
        let path = unfinished.path.join(format!("{}.{}", table.name, format.ending()));
        files.push((*table, TableFile::create(table, &path, format)?));
    }
    while batches.advance()? {
        progress(batches.progress());
        while let Some(TableBatch { table, batch }) = batches.take_ready() {
            let file = files.iter_mut().find(|(of, _)| of.name == table.name);
            file.expect("there is a file for each table").1.write(&batch)?;
        }
    }
    let mut written = Written { tables: Vec::new(), notes: batches.notes() };
    for (table, file) in files {
        written.tables.push(WrittenTable { name: table.name.to_owned(), rows: file.rows });
        file.finish()?;
    }
    unfinished.finish(to)?;
    Ok(written)
}

/// The folder with its temporary name. Dropping it before it is complete removes the folder.
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
        // The files are on the disk before the folder gets its name. An empty folder of that name is replaced.
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
