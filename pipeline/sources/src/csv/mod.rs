//! CSV files: Binance's public dumps, recognised by their names, and any other files through a mapping of columns.
//!
//! A record is one line. Fields may be quoted, lines may end in `\r\n`, and files may be compressed (gzip, Zstandard,
//! zip) and in UTF-16. Several files are merged by receive time if one is mapped, otherwise by event time. So the days
//! of several symbols, or the trades and quotes of one venue, are interleaved.
//!
//! A line that does not parse stops the source with file, line and column. With [`BadLines::Aside`] it is instead
//! copied byte for byte to a separate file and counted. A survey before feeding ([`CsvSource::open_to_survey`]) finds
//! rows that are not in the order of their times, and numbers beyond the range of a tick.

mod bad_lines;
mod binance_dump;
mod column;
mod csv_file;
mod fields;
mod mapping;
mod mapping_reader;
mod mapping_values;
mod number_format;
mod row_order;
mod row_plan;
mod sorted_rows;
mod survey;
mod time_rule;

use std::collections::BTreeSet;
use std::path::PathBuf;

use warptape_events::tick::Tick;

use self::csv_file::CsvFile;
use super::arrival_merge::ArrivalMerge;
use super::price_scales::PriceScales;
use super::{PassedOver, SourceError, SourceProgress, TickSource};

pub use self::bad_lines::BadLines;
pub use self::binance_dump::unpacked_name;
pub use self::mapping::CsvMapping;
pub use self::row_order::{OrderLimits, length_text};
pub use self::survey::{AsideSummary, FeedOrder, FileOrder};

/// Options for reading CSV files.
#[derive(Clone, Debug, Default)]
pub struct CsvConfig {
    /// Venue of tickers without one. For Binance dumps the default is `BINANCE`.
    pub venue: Option<String>,
    /// Mappings of columns: one for all files, or one for each file. Without a mapping, files must be named like
    /// Binance dumps.
    pub mappings: Vec<CsvMapping>,
    /// Treatment of lines that do not parse.
    pub bad_lines: BadLines,
    /// Decimals to which prices and sizes of dumps are rounded, half to even; mappings have their own setting.
    pub round: Option<u8>,
    /// Current time of the caller's clock; rows ahead of it are bad.
    pub now_ns: Option<i64>,
    /// How far rows may be out of order.
    pub limits: OrderLimits,
    /// Treatment of rows that are out of order.
    pub order: FeedOrder,
}

impl CsvConfig {
    /// Returns the mapping of a file, given by its index; `None` if there is none.
    pub fn mapping(&self, file: usize) -> Option<&CsvMapping> {
        self.mappings.get(file).or_else(|| self.mappings.first())
    }
}

/// Ticks of one or more CSV files.
pub struct CsvSource {
    merge: ArrivalMerge<CsvFile>,
    order: FeedOrder,
}

impl CsvSource {
    /// Opens the files and reads their headers.
    ///
    /// # Errors
    /// If no file is given. Also if a file cannot be opened, has neither a mapping nor the name of a dump, or lacks a
    /// mapped column.
    pub fn open(paths: &[PathBuf], config: &CsvConfig) -> Result<CsvSource, SourceError> {
        Self::open_each(paths, config, |file, _| file)
    }

    /// Opens the files for a survey, which writes no bad lines.
    ///
    /// # Errors
    /// As for [`CsvSource::open`].
    pub fn open_to_survey(paths: &[PathBuf], config: &CsvConfig) -> Result<CsvSource, SourceError> {
        Self::open_each(paths, config, |file, _| file.for_survey())
    }

    /// Opens the files with their orders. A file that needs sorting is sorted when the first tick is taken.
    ///
    /// # Errors
    /// As for [`CsvSource::open`].
    pub fn open_in_order(
        paths: &[PathBuf],
        config: &CsvConfig,
        orders: &[FileOrder],
    ) -> Result<CsvSource, SourceError> {
        Self::open_each(paths, config, |file, number| in_order(file, number, orders))
    }

    /// Opens the files with their orders for a survey, which writes no bad lines.
    ///
    /// # Errors
    /// As for [`CsvSource::open`].
    pub fn open_in_order_to_survey(
        paths: &[PathBuf],
        config: &CsvConfig,
        orders: &[FileOrder],
    ) -> Result<CsvSource, SourceError> {
        Self::open_each(paths, config, |file, number| in_order(file.for_survey(), number, orders))
    }

    fn open_each(
        paths: &[PathBuf],
        config: &CsvConfig,
        prepare: impl Fn(CsvFile, usize) -> CsvFile,
    ) -> Result<CsvSource, SourceError> {
        if paths.is_empty() {
            return Err(SourceError::NoFiles);
        }
        let maps = config.mappings.len();
        if maps > 1 && maps != paths.len() {
            let found = format!(
                "{maps} maps for {} files: give one map for all files, or one per file in the same order",
                paths.len()
            );
            return Err(SourceError::BadMapping { problems: vec![found] });
        }
        let open = |(number, path): (usize, &PathBuf)| {
            Ok(prepare(CsvFile::open(path, config.mapping(number), config)?, number))
        };
        let files = paths.iter().enumerate().map(open).collect::<Result<_, SourceError>>()?;
        let merge = match config.order {
            FeedOrder::Sorted => ArrivalMerge::by_event_time(files),
            FeedOrder::Checked | FeedOrder::Kept => ArrivalMerge::new(files),
        };
        Ok(CsvSource { merge, order: config.order })
    }

    /// Returns the order of each file's rows that were read so far.
    ///
    /// # Errors
    /// If rows are out of order, or have numbers beyond the range of a tick.
    pub fn file_orders(&self) -> Result<Vec<FileOrder>, SourceError> {
        self.merge.inputs().iter().map(|file| file.survey().check(self.order)).collect()
    }

    /// Returns remarks for the user about the rows that were read so far.
    pub fn remarks(&self) -> Vec<String> {
        self.merge.inputs().iter().flat_map(|file| file.survey().remarks(self.order)).collect()
    }

    /// Returns true if some trade ids were not integers, and are kept as hashes.
    pub fn has_hashed_ids(&self) -> bool {
        self.merge.inputs().iter().any(|file| file.survey().has_hashed_ids)
    }

    /// Returns the symbols whose prices have another scale than nine decimals, among the rows read so far.
    pub fn scaled_symbols(&self) -> &BTreeSet<String> {
        self.merge.scaled_symbols()
    }

    /// Returns where the bad lines are, for each file that has some.
    pub fn asides(&self) -> Vec<AsideSummary> {
        let summary = |file: &CsvFile| {
            let aside = file.aside()?;
            let (first_line, problem) = aside.first()?.clone();
            Some(AsideSummary { path: aside.path().to_owned(), count: aside.count(), first_line, problem })
        };
        self.merge.inputs().iter().filter_map(summary).collect()
    }
}

/// Marks a file for sorting if its order requires it.
fn in_order(file: CsvFile, number: usize, orders: &[FileOrder]) -> CsvFile {
    let is_alone = orders.iter().filter(|order| order.is_sorted).count() == 1;
    match orders.get(number) {
        Some(order) if order.is_sorted => file.sorted(*order, is_alone),
        _ => file,
    }
}

impl TickSource for CsvSource {
    fn progress(&self) -> SourceProgress {
        self.merge.progress()
    }

    fn last_input(&self) -> usize {
        self.merge.last_input()
    }

    fn last_line(&self) -> u64 {
        self.merge.last_line()
    }

    fn leave(&mut self, input: usize, ticks: u64) {
        self.merge.leave(input, ticks);
    }

    fn scales(&mut self) -> Option<&mut PriceScales> {
        self.merge.scales()
    }

    fn passed_over(&self) -> PassedOver {
        self.merge.passed_over()
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
#[cfg(test)]
mod vendors;
