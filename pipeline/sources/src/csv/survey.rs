//! Findings of a survey that reads files before they are fed: reasons to reject a file, and remarks.

use std::path::{Path, PathBuf};

use super::row_order::{Apart, RowOrder, length_text};
use crate::SourceError;

/// Treatment of rows that are not in the order of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeedOrder {
    /// The file is rejected if `run` would not accept its rows.
    #[default]
    Checked,
    /// The rows are sorted.
    Sorted,
    /// The rows are fed in file order.
    Kept,
}

/// Lines of one kind: their number, and the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) count: u64,
    line: u64,
    text: String,
}

impl Noted {
    pub(super) fn add(&mut self, line: u64, text: impl FnOnce() -> String) {
        if self.count == 0 {
            (self.line, self.text) = (line, text());
        }
        self.count += 1;
    }
}

/// The findings about one file.
pub(super) struct FileSurvey<'a> {
    pub(super) path: &'a Path,
    pub(super) order: &'a RowOrder,
    pub(super) unfit: &'a Noted,
    pub(super) early: &'a Noted,
    pub(super) fixed_point: &'a Noted,
    pub(super) has_hashed_ids: bool,
}

/// The order in which a file's rows are fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOrder {
    /// True if the rows are sorted, because some are earlier than the ones before them.
    pub is_sorted: bool,
    /// True if the newest row is the first one.
    pub is_newest_first: bool,
}

impl FileSurvey<'_> {
    /// Returns the order of the rows.
    ///
    /// # Errors
    /// If they are out of order, or have numbers beyond the range of a tick.
    pub(super) fn check(&self, order: FeedOrder) -> Result<FileOrder, SourceError> {
        if self.unfit.count > 0 {
            let Noted { count, line, text } = self.unfit.clone();
            return Err(SourceError::Unfit { path: self.path.to_owned(), count, line, problem: text });
        }
        if order == FeedOrder::Checked && self.order.is_refused() {
            return Err(SourceError::OutOfOrder { path: self.path.to_owned(), found: self.disorder() });
        }
        Ok(FileOrder {
            is_sorted: order == FeedOrder::Sorted && !self.order.is_sorted(),
            is_newest_first: self.order.is_backwards(),
        })
    }

    fn disorder(&self) -> String {
        let (late, ahead, rows) = (self.order.late, self.order.ahead(), self.order.rows);
        if self.order.is_backwards() {
            return format!("the newest of its {rows} rows comes first");
        }
        let tell = |apart: &Apart, where_to: &str| {
            format!(
                "{} of {rows} rows lie {where_to} earlier rows, the first in line {}, the farthest by {} in line {}",
                apart.rows,
                apart.first_line,
                length_text(apart.greatest_ns),
                apart.greatest_line
            )
        };
        let limits = &self.order.limits;
        let late_text = || tell(&late, &format!("{} behind", self.too_far()));
        let ahead_ns = limits.ahead_ns_max;
        let ahead_text = || tell(&ahead, &format!("more than {} ahead of", length_text(ahead_ns)));
        match (late.rows, ahead.rows) {
            (0, _) => ahead_text(),
            (_, 0) => late_text(),
            _ => format!("{}; {}", late_text(), ahead_text()),
        }
    }

    /// Describes the largest allowed lateness.
    fn too_far(&self) -> String {
        let limits = &self.order.limits;
        if limits.lateness_by_venue_ns.is_empty() {
            format!("more than {}", length_text(limits.lateness_ns))
        } else {
            "more than their venue's lateness".to_owned()
        }
    }

    /// Returns remarks about the file that do not prevent it from being fed.
    pub(super) fn remarks(&self, order: FeedOrder) -> Vec<String> {
        let path = self.path.display();
        let mut remarks = Vec::new();
        let Noted { count, line, text } = self.early;
        if *count > 0 {
            remarks.push(format!(
                "{path}: {count} times lie before 1990, the first in line {line} ({text}): is the unit in the mapping right?"
            ));
        }
        let Noted { count, line, text } = self.fixed_point;
        if *count > 0 {
            remarks.push(format!(
                "{path}: prices look like multiples of 1e-9, the first in line {line} ({text}): if so, write \
                 price=COLUMN:e9 in the mapping"
            ));
        }
        if order == FeedOrder::Sorted {
            return remarks;
        }
        let kept = order == FeedOrder::Kept && self.order.is_refused();
        if kept || self.order.ahead().rows > 0 {
            remarks.push(format!(
                "{path}: {}: `run` treats such ticks as late or rejects them",
                self.disorder()
            ));
        }
        let behind = self.order.behind_others;
        if behind.rows > 0 {
            remarks.push(format!(
                "{path}: {} rows lie {} behind rows of other venues, the farthest by {} in line {}. `run` \
                 treats them as late unless `stages.lateness_by_venue` allows it",
                behind.rows,
                self.too_far(),
                length_text(behind.greatest_ns),
                behind.greatest_line
            ));
        }
        remarks
    }
}

/// The first bad line of a file, and the file that collects its bad lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsideSummary {
    /// Path of the file with the bad lines.
    pub path: PathBuf,
    /// Number of bad lines.
    pub count: u64,
    /// Number of the first bad line.
    pub first_line: u64,
    /// Fault of the first bad line.
    pub problem: String,
}
