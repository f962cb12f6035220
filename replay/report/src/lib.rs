//! Shows a recorded run, or a window of it, as one HTML page for an overview. The page has the verification, rates,
//! latencies, lanes, placement, decisions, moves, and the slowest signals with their waits.
//!
//! ```text
//!  journal, signals, ticks ──► chain::slowest_with ──► Gathering ──► Gathered ──► page ──► Write
//!                                                        └─ Slots: what happened, by time
//! ```
//!
//! The page is self-contained: it loads no script, font, style or image. It has less than [`PAGE_BYTES_MAX`] for any
//! log. This crate does not know settings, the command line or a clock. It does not judge the run: `verify` finds
//! differences.

pub mod drawing;
mod gathered;
mod page;
mod printable;
mod slots;

use std::io;

use warptape_eventlog::EventLog;
use warptape_replay::chain::{SlowestOptions, Step, slowest_with};
use warptape_replay::{ReplayError, ReplayProgress, Report, VerifyOptions};

pub use self::gathered::{
    BatchWork, EventKind, EventPlace, Gathered, Gathering, GroupKey, LaneKey, LaneSeen, LaneSlot, Latency,
    LifeSeen, MOVES_KEPT, Move, MoveCause, Moves, ReasonKind, Reasons, Slot, TaskTotals, Totals,
    TransactionTotals,
};
pub use self::page::{PAGE_BYTES_MAX, html};
pub use self::printable::{printable, printable_line};
pub use self::slots::{Merge, SLOTS_MAX, Slots};

/// Greatest number of slowest signals on a page.
pub const SLOWEST_ON_PAGE_MAX: usize = 50;

/// The part of a log that the page covers.
pub use warptape_replay::history::{Bound, Window};

/// Gathers the contents of a page in one pass over the journals. Memory is bounded by the open items of the journal, by
/// [`SLOTS_MAX`] slots of time, and by the numbers of lanes, groups and partitions.
///
/// # Errors
/// If the log cannot be read.
pub fn gather(
    log: &dyn EventLog,
    options: &VerifyOptions,
    wanted: SlowestOptions,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Gathered, ReplayError> {
    let mut gathering = Gathering::new(wanted.window);
    let wanted = SlowestOptions { count: wanted.count.min(SLOWEST_ON_PAGE_MAX), ..wanted };
    let slowest = slowest_with(log, options, wanted, &mut |seen| gathering.see(seen), progress)?;
    Ok(gathering.finish(slowest))
}

/// The result of the verification of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// No verification was requested.
    NotAsked,
    /// The log could not be verified, for this reason.
    Failed(String),
    /// The log was verified, with this report.
    Compared(Box<Report>),
}

/// The origin of a page.
pub struct About {
    /// URL of the log.
    pub log: String,
    /// The topics, each with a description of its contents.
    pub topics: Vec<(&'static str, String)>,
    /// The requested window, in words; `None` for the whole log.
    pub asked: Option<String>,
    /// The command that made the page.
    pub command: String,
    /// Arguments with which other commands read the same log, such as `--log sqlite:market.db`.
    pub log_arguments: String,
    /// Time at which the page was made, ns since the epoch.
    pub made_ns: i64,
    /// Version of the software that made the page.
    pub software: String,
}

/// The parts of a page.
pub struct Page<'a> {
    /// Origin of the page.
    pub about: &'a About,
    /// The result of the verification.
    pub verdict: &'a Verdict,
    /// The gathered contents.
    pub gathered: &'a Gathered,
    /// The chain of causes of each of the slowest signals, in order, as printed by `replay why`.
    pub chains: &'a [String],
    /// Returns the reason of a wait, as a phrase.
    pub cause: fn(Step) -> &'static str,
}

/// Writes the page.
///
/// # Errors
/// If the page cannot be written.
pub fn write(page: &Page<'_>, to: &mut dyn io::Write) -> io::Result<()> {
    to.write_all(html(page).as_bytes())
}
