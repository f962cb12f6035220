//! One CSV file: converts its lines to ticks according to its plan.

use std::io;
use std::path::Path;

use warptape_events::tick::Tick;

use super::bad_lines::AsideFile;
use super::fields::FieldSplitter;
use super::mapping::FileHead;
use super::row_order::RowOrder;
use super::row_plan::{RowContent, RowMemory, RowPlan};
use super::sorted_rows::{RowSorter, SortedRows};
use super::survey::{FileOrder, FileSurvey, Noted};
use super::time_rule;
use super::{CsvConfig, CsvMapping, binance_dump};
use crate::arrival_merge::TickInput;
use crate::input::{FileProgress, Lines, without_end};
use crate::{DOES_NOT_FIT, FieldProblem, PassedOver, SourceError, ZERO_TRADE, warn_at};

/// Kind under which lines excluded by the mapping are counted.
const LEFT_OUT: &str = "line that `only` or `except` leaves out";
/// Greatest number of rows per file that are searched for prices in units of 1e-9.
const FIXED_POINT_ROWS: u64 = 1_000;

/// Ticks of one file, in the order of its lines or of their times.
pub(super) struct CsvFile {
    rows: Rows,
    fields: FieldSplitter,
    /// Number of columns of the header; `None` without a header.
    header_columns: Option<usize>,
    plan: RowPlan,
    memory: RowMemory,
    aside: Option<AsideFile>,
    /// True in a survey, which writes and logs nothing.
    is_survey: bool,
    /// Order for sorting the rows before the first tick, and true if no other file is sorted; `None` if the rows are
    /// not sorted.
    to_sort: Option<(FileOrder, bool)>,
    now_ns: Option<i64>,
    /// True if `open` has already read the current line, and the line is data.
    line_waits: bool,
    empty_lines: u64,
    zero_trades: u64,
    left_out: u64,
    /// Lines with numbers beyond the range of a tick, while bad lines are not written to a separate file.
    unfit: Noted,
    /// Lines whose time is before the earliest plausible one.
    early: Noted,
    fixed_point: Noted,
    order: RowOrder,
}

/// The rows of a file, in file order or sorted.
struct Rows {
    file: Lines,
    sorted: Option<SortedRows>,
}

impl Rows {
    fn advance(&mut self) -> Result<bool, SourceError> {
        match &mut self.sorted {
            None => self.file.advance(),
            Some(rows) => rows.advance().map_err(|source| sorting(self.file.path(), source)),
        }
    }

    /// Returns the row, byte for byte.
    fn raw(&self) -> &[u8] {
        self.sorted.as_ref().map_or_else(|| self.file.raw(), SortedRows::row)
    }

    fn number(&self) -> u64 {
        self.sorted.as_ref().map_or_else(|| self.file.number(), SortedRows::line)
    }

    /// Returns the row without its line end, and without the byte order mark that some programs write at the beginning.
    fn line(&self) -> &[u8] {
        let line = without_end(self.raw());
        if self.number() == 1 { without_mark(line) } else { line }
    }
}

impl CsvFile {
    /// Opens the file, reads its header if it has one, and resolves its columns.
    pub(super) fn open(
        path: &Path,
        mapping: Option<&CsvMapping>,
        config: &CsvConfig,
    ) -> Result<CsvFile, SourceError> {
        let mut rows = Rows { file: Lines::open(path)?, sorted: None };
        let delimiter = mapping.map_or(b',', |mapping| mapping.delimiter);
        let mut fields = FieldSplitter::new(delimiter);
        let has_line = rows.advance()?;
        let first_line = fields.split(rows.line());
        let venue = config.venue.as_deref();
        let (plan, has_header) = match mapping {
            Some(mapping) => {
                if mapping.header {
                    first_line.map_err(|problem| bad_line(&rows, problem))?;
                }
                let header = if mapping.header { fields.texts() } else { Vec::new() };
                (mapping.plan(&FileHead { path, header: &header, venue })?, mapping.header)
            }
            None => {
                let unknown = || SourceError::UnknownDump { path: path.to_owned() };
                let has_header = fields.get(0).is_some_and(binance_dump::is_header);
                (binance_dump::plan(path, venue, config.round).ok_or_else(unknown)?, has_header)
            }
        };
        let header_columns = has_header.then(|| fields.count());
        Ok(CsvFile {
            rows,
            fields,
            header_columns,
            plan,
            memory: RowMemory::default(),
            aside: AsideFile::of(path, &config.bad_lines),
            is_survey: false,
            to_sort: None,
            now_ns: config.now_ns,
            line_waits: has_line && !has_header,
            empty_lines: 0,
            zero_trades: 0,
            left_out: 0,
            unfit: Noted::default(),
            early: Noted::default(),
            fixed_point: Noted::default(),
            order: RowOrder::new(config.limits.clone()),
        })
    }

    /// Prepares the file for a survey.
    pub(super) fn for_survey(mut self) -> CsvFile {
        self.is_survey = true;
        self
    }

    /// Requests sorting before the first tick. The rows may stay in memory if no other file is sorted.
    pub(super) fn sorted(mut self, order: FileOrder, is_alone: bool) -> CsvFile {
        self.to_sort = Some((order, is_alone));
        self
    }

    /// Returns the file of bad lines; `None` if there are none.
    pub(super) fn aside(&self) -> Option<&AsideFile> {
        self.aside.as_ref().filter(|aside| aside.count() > 0)
    }

    /// Returns the findings about the file so far.
    pub(super) fn survey(&self) -> FileSurvey<'_> {
        FileSurvey {
            path: self.rows.file.path(),
            order: &self.order,
            unfit: &self.unfit,
            early: &self.early,
            fixed_point: &self.fixed_point,
            has_hashed_ids: self.memory.has_hashed_ids,
        }
    }

    /// Returns the next tick. Skips empty lines, and bad ones that are written to a separate file.
    fn pull(&mut self) -> Result<Option<Tick>, SourceError> {
        loop {
            if !std::mem::take(&mut self.line_waits) && !self.rows.advance()? {
                self.aside.as_mut().map_or(Ok(()), AsideFile::finish)?;
                return Ok(None);
            }
            match self.read_row() {
                Ok(Some(tick)) => return Ok(Some(tick)),
                Ok(None) => {}
                Err(problem) => self.leave_out_row(problem)?,
            }
        }
    }

    /// Returns the tick of the current row; `None` if the row counts as something else.
    fn read_row(&mut self) -> Result<Option<Tick>, FieldProblem> {
        let line = self.rows.line();
        if line.is_empty() {
            self.empty_lines += 1;
            return Ok(None);
        }
        self.fields.split(line)?;
        if let Some(columns) = self.header_columns.filter(|&columns| self.fields.has_more_than(columns)) {
            let found =
                format!("{columns} columns, like the header; quote a field that contains the delimiter");
            return Err(FieldProblem::new("line", line, found));
        }
        let tick = match self.plan.read(&self.fields, &mut self.memory)? {
            RowContent::Tick(tick) => tick,
            RowContent::ZeroTrade => {
                self.zero_trades += 1;
                return Ok(None);
            }
            RowContent::LeftOut => {
                self.left_out += 1;
                return Ok(None);
            }
        };
        if self.plan.check_times(&tick, &self.fields, self.now_ns)? {
            self.early.add(self.rows.number(), || time_rule::shown(tick.event_time_ns));
        }
        if self.order.rows < FIXED_POINT_ROWS
            && let Some((price, column)) = self.plan.fixed_point_price(&self.fields)
        {
            let text = || format!("{} in column `{column}`", String::from_utf8_lossy(price));
            self.fixed_point.add(self.rows.number(), text);
        }
        self.order.add(self.rows.number(), &tick.symbol, tick.event_time_ns);
        Ok(Some(tick))
    }

    /// Writes the bad row to its file, counts it, or stops at it.
    fn leave_out_row(&mut self, problem: FieldProblem) -> Result<(), SourceError> {
        match &mut self.aside {
            Some(aside) if self.is_survey => aside.count_only(self.rows.number(), &problem),
            Some(aside) => return aside.write(self.rows.raw(), self.rows.number(), &problem),
            None if problem.does_not_fit => {
                if !self.is_survey {
                    warn_at(self.rows.file.path(), self.rows.number(), &problem, self.unfit.count);
                }
                self.unfit.add(self.rows.number(), || problem.to_string());
            }
            None => return Err(bad_line(&self.rows, problem)),
        }
        Ok(())
    }

    /// Sorts all rows that become ticks by their times.
    fn sort(&mut self, order: FileOrder, is_alone: bool) -> Result<(), SourceError> {
        let mut sorter = RowSorter::new(order.is_newest_first);
        while let Some(tick) = self.pull()? {
            let pushed = sorter.push(tick.event_time_ns, self.rows.number(), self.rows.raw());
            pushed.map_err(|source| sorting(self.rows.file.path(), source))?;
        }
        let sorted = sorter.finish(is_alone).map_err(|source| sorting(self.rows.file.path(), source))?;
        self.rows.sorted = Some(sorted);
        self.order = self.order.again();
        self.memory.forget_books();
        (self.early, self.fixed_point) = (Noted::default(), Noted::default());
        Ok(())
    }

    fn next_tick(&mut self) -> Result<Option<Tick>, SourceError> {
        if let Some((order, is_alone)) = self.to_sort.take() {
            self.sort(order, is_alone)?;
        }
        self.pull()
    }
}

impl Iterator for CsvFile {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_tick().transpose()
    }
}

impl TickInput for CsvFile {
    fn leave_out(&mut self, problem: FieldProblem) -> Result<(), SourceError> {
        self.leave_out_row(problem)
    }

    fn progress(&self) -> &FileProgress {
        self.rows.file.progress()
    }

    fn place(&self) -> u64 {
        self.rows.number()
    }

    fn passed_over(&self) -> PassedOver {
        let bad = self.aside.as_ref().map_or(0, AsideFile::count);
        let mut passed_over = PassedOver { bad, ..PassedOver::default() };
        let counts = [
            ("empty line", self.empty_lines),
            (DOES_NOT_FIT, self.unfit.count),
            (ZERO_TRADE, self.zero_trades),
            (LEFT_OUT, self.left_out),
        ];
        for (kind, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            passed_over.ignore_all(kind, count);
        }
        passed_over
    }
}

fn bad_line(rows: &Rows, problem: FieldProblem) -> SourceError {
    SourceError::BadLine { path: rows.file.path().to_owned(), line: rows.number(), problem }
}

fn sorting(path: &Path, source: io::Error) -> SourceError {
    SourceError::Sort { path: path.to_owned(), source }
}

/// Returns a first line without the byte order mark that some programs write.
fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
