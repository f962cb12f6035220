//! The folder of partitioned files: names, positions, and unfinished files.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use warptape_eventlog::OffsetRange;

use crate::file::TableFile;
use crate::table::{TABLES, Table};
use crate::{TableFormat, TablesError};

/// File that says to what the folder belongs. Readers of folders ignore names that begin with an underscore.
const ABOUT: &str = "_warptape.json";
/// End of the name of a file that has a further one of another day with the same offsets. The further one gets its name
/// last, so without it not all rows of the offsets are in files.
const PART: &str = "part";
/// Ending of a file that is not whole.
const UNFINISHED: &str = "unfinished";

/// Contents of [`ABOUT`].
#[derive(Debug, Deserialize, Serialize)]
struct About {
    log: String,
    format: String,
    /// Offset before which all rows are in files, by table and partition.
    next: BTreeMap<String, BTreeMap<i32, i64>>,
}

/// An open folder. A lock keeps other processes from writing to it.
pub(super) struct Folder {
    path: PathBuf,
    format: TableFormat,
    about: About,
    /// The lock on the folder.
    _lock: File,
}

impl Folder {
    pub(super) fn open(path: &Path, format: TableFormat, log: &str) -> Result<Self, TablesError> {
        let unwritable = |error: io::Error| unwritable(path, &error);
        fs::create_dir_all(path).map_err(unwritable)?;
        let lock = File::open(path).map_err(unwritable)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                unfit(path, "another export writes into it; end that one, or name another folder".to_owned())
            }
            TryLockError::Error(error) => unwritable(error),
        })?;
        let about = match fs::read(path.join(ABOUT)) {
            Ok(text) => known(path, &text, format, log)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::read_dir(path).map_err(unwritable)?.next().is_some() {
                    return Err(TablesError::Taken { path: path.to_path_buf() });
                }
                About { log: log.to_owned(), format: format.ending().to_owned(), next: BTreeMap::new() }
            }
            Err(error) => return Err(unwritable(error)),
        };
        let mut folder = Self { path: path.to_path_buf(), format, about, _lock: lock };
        for table in TABLES {
            folder.tidy(table).map_err(unwritable)?;
        }
        folder.save()?;
        Ok(folder)
    }

    /// Removes a table's unfinished files, and notes the offsets of the complete ones.
    fn tidy(&mut self, table: &'static Table) -> io::Result<()> {
        let days = match fs::read_dir(self.path.join(table.name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            days => days?,
        };
        let mut parts = Vec::new();
        for day in days {
            let day = day?;
            if !day.file_type()?.is_dir() {
                continue;
            }
            for file in fs::read_dir(day.path())? {
                let path = file?.path();
                let is_of = |ending: &str| path.extension().is_some_and(|found| found == ending);
                if is_of(UNFINISHED) {
                    fs::remove_file(&path)?;
                } else if is_of(self.format.ending())
                    && let Some((partition, next, is_last)) = place_of(&path)
                {
                    match is_last {
                        true => self.note(table, partition, next),
                        false => parts.push((path, partition, next)),
                    }
                }
            }
        }
        for (path, partition, next) in parts {
            if self.reached(table, partition).is_none_or(|reached| reached < next) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Returns the offset before which all rows of a table and partition are in files; `None` if there are none.
    pub(super) fn reached(&self, table: &Table, partition: i32) -> Option<i64> {
        self.about.next.get(table.name)?.get(&partition).copied()
    }

    /// Notes that all rows before an offset are in files.
    pub(super) fn note(&mut self, table: &Table, partition: i32, next: i64) {
        let of_table = self.about.next.entry(table.name.to_owned()).or_default();
        let reached = of_table.entry(partition).or_insert(next);
        *reached = next.max(*reached);
    }

    /// Writes the noted offsets.
    pub(super) fn save(&self) -> Result<(), TablesError> {
        let (path, part) = (self.path.join(ABOUT), self.path.join(format!("{ABOUT}-{UNFINISHED}")));
        let text = serde_json::to_string_pretty(&self.about).expect("texts and numbers");
        let saved = fs::write(&part, text + "\n").and_then(|()| renamed(&part, &path));
        saved.map_err(|error| unwritable(&path, &error))
    }

    /// Begins a file of a table, for rows of one partition and day.
    pub(super) fn begin(
        &self,
        table: &'static Table,
        partition: i32,
        day: &str,
    ) -> Result<Unfinished, TablesError> {
        let folder = self.path.join(table.name).join(format!("date={day}"));
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        let path = folder.join(format!("_{partition}.{UNFINISHED}"));
        let file = TableFile::create(table, &path, self.format)?;
        Ok(Unfinished { path, format: self.format, file: Some(file) })
    }

    pub(super) fn unfit(&self, cause: String) -> TablesError {
        unfit(&self.path, cause)
    }
}

/// An incomplete file, which is removed if it is dropped.
pub(super) struct Unfinished {
    path: PathBuf,
    format: TableFormat,
    file: Option<TableFile>,
}

impl Unfinished {
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), TablesError> {
        self.file.as_mut().expect("it is not finished").write(batch)
    }

    /// Returns the number of rows written.
    pub(super) fn rows(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.rows)
    }

    /// Gives the whole file the name of its offsets; returns its number of rows. The last of several files with the same
    /// offsets is the one whose name tells where to go on.
    pub(super) fn finish(
        mut self,
        offsets: OffsetRange,
        partition: i32,
        is_last: bool,
    ) -> Result<u64, TablesError> {
        let rows = self.rows();
        let file = self.file.take().expect("it is not finished");
        let name = name_of(partition, offsets, is_last, self.format);
        let path = self.path.with_file_name(name);
        let finished = file
            .finish()
            .and_then(|()| renamed(&self.path, &path).map_err(|error| unwritable(&path, &error)));
        if finished.is_err() {
            let _ = fs::remove_file(&self.path);
        }
        finished.map(|()| rows)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Name of a file; names of a partition are in the order of their rows.
fn name_of(partition: i32, offsets: OffsetRange, is_last: bool, format: TableFormat) -> String {
    let part = if is_last { String::new() } else { format!("-{PART}") };
    format!("{partition}-{:012}-{:012}{part}.{}", offsets.first, offsets.next, format.ending())
}

/// Partition of a file, the offset after its rows, and true unless it is a part; `None` for files of others.
fn place_of(path: &Path) -> Option<(i32, i64, bool)> {
    let mut words = path.file_stem()?.to_str()?.split('-');
    let (partition, _, next) = (words.next()?, words.next()?, words.next()?);
    let is_last = match words.next() {
        None => true,
        Some(PART) => false,
        Some(_) => return None,
    };
    Some((partition.parse().ok()?, next.parse().ok()?, is_last))
}

/// Checks that a folder was written from this log and in this format.
fn known(path: &Path, text: &[u8], format: TableFormat, log: &str) -> Result<About, TablesError> {
    let file = path.join(ABOUT);
    let about: About = serde_json::from_slice(text)
        .map_err(|error| unfit(&file, format!("it cannot be read ({error}); name another folder")))?;
    if about.log != log {
        let other = &about.log;
        let cause = format!(
            "the folder has tables of {other}, not of {log}: name another folder, or change `log` there if both are the same log"
        );
        return Err(unfit(&file, cause));
    }
    if about.format != format.ending() {
        let cause = format!("the folder has {} files: name another folder, or --format {0}", about.format);
        return Err(unfit(&file, cause));
    }
    Ok(about)
}

/// Renames a file so that the new name survives a loss of power.
fn renamed(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    to.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn unfit(path: &Path, cause: String) -> TablesError {
    TablesError::Unfit { path: path.to_path_buf(), cause }
}

fn unwritable(path: &Path, error: &io::Error) -> TablesError {
    TablesError::Unwritable { path: path.to_path_buf(), cause: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_where_to_go_on() {
        let offsets = OffsetRange { first: 120, next: 9_000_000_000_000 };
        for (is_last, expected) in [
            (true, "12-000000000120-9000000000000.parquet"),
            (false, "12-000000000120-9000000000000-part.parquet"),
        ] {
            let name = name_of(12, offsets, is_last, TableFormat::Parquet);
            assert_eq!(name, expected);
            assert_eq!(place_of(Path::new(&name)), Some((12, 9_000_000_000_000, is_last)));
        }
        for other in ["part-0.parquet", "0-1.parquet", "_0.unfinished", "0-1-2-x.parquet"] {
            assert_eq!(place_of(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn parts_without_their_last_file_are_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tables = folder.path().join("tables");
        let open = || Folder::open(&tables, TableFormat::Parquet, "sqlite:a.db").expect("a folder");
        drop(open());
        let day = tables.join("ticks/date=2026-11-24");
        fs::create_dir_all(&day).expect("a folder");
        let [last, part, alone] = ["0-0-3.parquet", "0-0-3-part.parquet", "0-3-9-part.parquet"];
        for name in [last, part, alone] {
            fs::write(day.join(name), "").expect("a file");
        }
        let ticks = TABLES.iter().find(|table| table.name == "ticks").expect("the table");
        assert_eq!(open().reached(ticks, 0), Some(3));
        assert_eq!([last, part, alone].map(|name| day.join(name).exists()), [true, true, false]);
    }
}
