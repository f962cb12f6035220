//! One CSV file: its lines to ticks, by its plan.

use std::path::Path;

use warptape_events::tick::Tick;

use super::bad_lines::AsideFile;
use super::fields::FieldSplitter;
use super::mapping::FileHead;
use super::row_plan::RowPlan;
use super::{CsvConfig, binance_dump};
use crate::input::{FileProgress, Lines};
use crate::{DOES_NOT_FIT, FieldProblem, PassedOver, SourceError, warn_of};

/// Ticks of one file, in the order of its lines.
pub(super) struct CsvFile {
    lines: Lines,
    fields: FieldSplitter,
    plan: RowPlan,
    aside: Option<AsideFile>,
    /// Whether the current line was read by `open` and is data.
    line_waits: bool,
    empty_lines: u64,
    /// Lines with numbers that no tick can hold, where bad lines are not written aside.
    does_not_fit: u64,
}

impl CsvFile {
    /// Opens the file, reads its header where it has one, and finds what its columns mean.
    pub(super) fn open(path: &Path, config: &CsvConfig) -> Result<CsvFile, SourceError> {
        let mut lines = Lines::open(path)?;
        let delimiter = config.mapping.as_ref().map_or(b',', |mapping| mapping.delimiter);
        let mut fields = FieldSplitter::new(delimiter);
        let has_line = lines.advance()?;
        let first_line = fields.split(without_mark(lines.line()));
        let venue = config.venue.as_deref();
        let (plan, has_header) = match &config.mapping {
            Some(mapping) => {
                if mapping.header {
                    first_line.map_err(|problem| bad_line(&lines, problem))?;
                }
                let header = if mapping.header { fields.texts() } else { Vec::new() };
                (mapping.plan(&FileHead { path, header: &header, venue })?, mapping.header)
            }
            None => {
                let unknown = || SourceError::UnknownDump { path: path.to_owned() };
                let has_header = fields.get(0).is_some_and(binance_dump::is_header);
                (binance_dump::plan(path, venue).ok_or_else(unknown)?, has_header)
            }
        };
        let line_waits = has_line && !has_header;
        let aside = AsideFile::of(path, &config.bad_lines);
        Ok(CsvFile { lines, fields, plan, aside, line_waits, empty_lines: 0, does_not_fit: 0 })
    }

    pub(super) fn progress(&self) -> &FileProgress {
        self.lines.progress()
    }

    pub(super) fn passed_over(&self) -> PassedOver {
        let bad = self.aside.as_ref().map_or(0, AsideFile::count);
        let mut passed_over = PassedOver { bad, ..PassedOver::default() };
        if self.empty_lines > 0 {
            passed_over.ignore_all("empty line", self.empty_lines);
        }
        if self.does_not_fit > 0 {
            passed_over.ignore_all(DOES_NOT_FIT, self.does_not_fit);
        }
        passed_over
    }

    pub(super) fn aside_path(&self) -> Option<&Path> {
        self.aside.as_ref().filter(|aside| aside.count() > 0).map(AsideFile::path)
    }

    /// The next tick, past empty lines and those written aside.
    fn pull(&mut self) -> Result<Option<Tick>, SourceError> {
        loop {
            if !std::mem::take(&mut self.line_waits) && !self.lines.advance()? {
                self.aside.as_mut().map_or(Ok(()), AsideFile::finish)?;
                return Ok(None);
            }
            let mut line = self.lines.line();
            if self.lines.number() == 1 {
                line = without_mark(line);
            }
            if line.is_empty() {
                self.empty_lines += 1;
                continue;
            }
            let tick = self.fields.split(line).and_then(|()| self.plan.tick(&self.fields));
            match (tick, &mut self.aside) {
                (Ok(tick), _) => return Ok(Some(tick)),
                (Err(_), Some(aside)) => aside.write(self.lines.raw())?,
                (Err(problem), None) if problem.does_not_fit => {
                    warn_of(&self.lines, &problem, self.does_not_fit);
                    self.does_not_fit += 1;
                }
                (Err(problem), None) => return Err(bad_line(&self.lines, problem)),
            }
        }
    }
}

impl Iterator for CsvFile {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.pull().transpose()
    }
}

fn bad_line(lines: &Lines, problem: FieldProblem) -> SourceError {
    SourceError::BadLine { path: lines.path().to_owned(), line: lines.number(), problem }
}

/// A first line without the byte order mark that some programs write.
fn without_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
}
