//! CSV files: Binance's public dumps, known by their names, and any other through a mapping of columns.
//!
//! A record is one line; fields may be quoted, lines may end in `\r\n`, files may be gzipped. Several files are merged
//! by receive time where one is mapped, else by event time, so that the days of several symbols go side by side.
//!
//! A line that does not parse stops the source with file, line and column, or is written aside byte for byte and
//! counted, as [`BadLines`] says.

mod bad_lines;
mod binance_dump;
mod csv_file;
mod fields;
mod mapping;
mod mapping_reader;
mod row_plan;

use std::path::{Path, PathBuf};

use warptape_events::tick::Tick;

use self::csv_file::CsvFile;
use super::arrival_merge::ArrivalMerge;
use super::input::FileProgress;
use super::{PassedOver, Progress, SourceError};

pub use self::bad_lines::BadLines;
pub use self::mapping::CsvMapping;

/// How CSV files are read.
#[derive(Clone, Debug, Default)]
pub struct CsvConfig {
    /// Venue put before tickers that name none. Binance dumps without one are of venue `BINANCE`.
    pub venue: Option<String>,
    /// What the columns mean; without one, files must be named like Binance dumps.
    pub mapping: Option<CsvMapping>,
    /// What happens to lines that do not parse.
    pub bad_lines: BadLines,
}

/// Ticks of one or more CSV files.
pub struct CsvSource {
    merge: ArrivalMerge<CsvFile>,
}

impl CsvSource {
    /// Opens the files and reads their headers.
    ///
    /// # Errors
    /// If there is none, one cannot be opened, is not named like a dump and has no mapping, or lacks a mapped column.
    pub fn open(paths: &[PathBuf], config: &CsvConfig) -> Result<CsvSource, SourceError> {
        if paths.is_empty() {
            return Err(SourceError::NoFiles);
        }
        let files: Result<Vec<CsvFile>, SourceError> =
            paths.iter().map(|path: &PathBuf| CsvFile::open(path, config)).collect();
        Ok(CsvSource { merge: ArrivalMerge::new(files?) })
    }

    /// Bytes read of all files.
    pub fn progress(&self) -> Progress {
        FileProgress::sum(self.merge.inputs().iter().map(CsvFile::progress))
    }

    /// The file that gave the last tick, by its place among those that were opened.
    pub fn last_input(&self) -> usize {
        self.merge.last_input()
    }

    /// Leaves out the first ticks of a file. To be called before the first tick is taken.
    pub fn leave(&mut self, input: usize, ticks: u64) {
        self.merge.leave(input, ticks);
    }

    /// Empty lines and bad ones.
    pub fn passed_over(&self) -> PassedOver {
        self.merge.inputs().iter().map(CsvFile::passed_over).sum()
    }

    /// Where bad lines were written, for each file that has some.
    pub fn aside_paths(&self) -> Vec<&Path> {
        self.merge.inputs().iter().filter_map(CsvFile::aside_path).collect()
    }
}

impl Iterator for CsvSource {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.merge.next()
    }
}

#[cfg(test)]
mod tests;
