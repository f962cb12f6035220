//! A recorded run, or a window of it, as one HTML page that is read at a glance: whether it is verified, rates, latencies, lanes, placement,
//! decisions, moves, and the slowest signals with what each waited for.
//!
//! ```text
//!  journal, signals, ticks ──► chain::slowest_with ──► Gathering ──► Gathered ──► page ──► Write
//!                                                        └─ Slots: what happened, by time
//! ```
//!
//! The page needs nothing but itself: no script, font, style or image comes from elsewhere. Whatever the log, it has less than
//! [`PAGE_BYTES_MAX`]. It must not know settings, the command line or a clock, and it judges nothing: what differs in a log is for `verify`
//! to find.

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

/// Slowest signals on a page at most.
pub const SLOWEST_ON_PAGE_MAX: usize = 50;

/// What of a log is looked at.
pub use warptape_replay::history::{Bound, Window};

/// Gathers what a page shows, in one pass over the journals. Memory is bounded by what is open in the journal, by [`SLOTS_MAX`] slots of
/// time, and by the numbers of lanes, groups and partitions.
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

/// Whether a run was verified.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// That was not asked for.
    NotAsked,
    /// Nothing can be said of the log, and why.
    Failed(String),
    /// What was found.
    Compared(Box<Report>),
}

/// What a page says beside what was gathered.
pub struct About {
    /// The log, as its URL.
    pub log: String,
    /// The topics, each with what it holds.
    pub topics: Vec<(&'static str, String)>,
    /// The window that was asked for, in words; `None`: all of the log.
    pub asked: Option<String>,
    /// The command that made the page.
    pub command: String,
    /// What other commands are given to read the same log, such as `--log sqlite:market.db`.
    pub log_arguments: String,
    /// When the page was made, ns since the epoch.
    pub made_ns: i64,
    /// The software that made it.
    pub software: String,
}

/// What a page is made of.
pub struct Page<'a> {
    /// Where it comes from.
    pub about: &'a About,
    /// Whether the run was verified.
    pub verdict: &'a Verdict,
    /// What was gathered.
    pub gathered: &'a Gathered,
    /// The chain of causes of each of the slowest signals, in their order, as `replay why` prints it.
    pub chains: &'a [String],
    /// What a wait was, in a few words.
    pub cause: fn(Step) -> &'static str,
}

/// Writes the page.
///
/// # Errors
/// If it cannot be written.
pub fn write(page: &Page<'_>, to: &mut dyn io::Write) -> io::Result<()> {
    to.write_all(html(page).as_bytes())
}
