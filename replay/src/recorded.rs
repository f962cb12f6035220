//! The entries that one process recorded, for those who give its inputs to a scheduler once more.

use warptape_eventlog::{EventLog, OffsetRange};
use warptape_scheduler::Scheduler;
use warptape_schemas::journal::{JournalEntry, Started};

use crate::entries::Entries;
use crate::history::Window;
use crate::{Phase, ReplayError, ReplayProgress, outside};

/// Entries between two calls of what is told of progress.
const PROGRESS_ENTRIES: u64 = 1_024;

/// What was recorded, in order.
#[derive(Debug)]
pub enum Recorded {
    /// The entries begin at a checkpoint: how the process began before it, and the state there.
    Checkpoint(Box<(Started, Scheduler)>),
    /// The next entry, and whether it is of the window rather than of what leads to it.
    Entry(Box<JournalEntry>, bool),
}

/// Reads the entries of a window of one process's journal, from the last start or checkpoint before the window on, or from the first one that is
/// left where the window has no beginning.
///
/// # Errors
/// If the log cannot be read, has no journal of this process, nothing of it within the window, or nothing that the entries could begin at; and
/// where `each` fails.
pub fn read_recorded<E: From<ReplayError>>(
    log: &dyn EventLog,
    (journal, partition): (&str, i32),
    window: Window,
    each: &mut dyn FnMut(Recorded) -> Result<(), E>,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<(), E> {
    let entries = Entries::open(log, journal, partition)?;
    let within = entries.within(window)?;
    outside::refuse(&[(&entries, within)])?;
    let (from, next) = (window.from.map(|_| within.first), within.next);
    let begin = match from {
        Some(from) => entries.begin_before(from + 1)?,
        None => entries.first_begin()?,
    };
    let begin = begin.ok_or_else(|| entries.trimmed())?;
    let first = begin.offset;
    if let Some((started, scheduler)) = begin.checkpoint {
        each(Recorded::Checkpoint(Box::new((started, scheduler))))?;
    }
    let mut reader = entries.read(OffsetRange { first, next })?;
    let (mut seen, total) = (0, (next - first).max(0) as u64);
    while let Some((offset, entry)) = reader.next()? {
        each(Recorded::Entry(Box::new(entry), from.is_none_or(|from| offset >= from)))?;
        seen += 1;
        if seen % PROGRESS_ENTRIES == 0 {
            progress(ReplayProgress { phase: Phase::Journal, done: (offset + 1 - first) as u64, total });
        }
    }
    progress(ReplayProgress { phase: Phase::Journal, done: total, total });
    Ok(())
}
