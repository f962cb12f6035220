//! Reads the recorded entries of one process, for callers that step its inputs through a scheduler again.

use warptape_eventlog::{EventLog, OffsetRange};
use warptape_scheduler::Scheduler;
use warptape_schemas::journal::{JournalEntry, Started};

use crate::entries::Entries;
use crate::history::Window;
use crate::{Phase, ReplayError, ReplayProgress, outside};

/// Entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 1_024;

/// A part of the recording, passed on in order.
#[derive(Debug)]
pub enum Recorded {
    /// The checkpoint before the first entry: the start of its process, and the state.
    Checkpoint(Box<(Started, Scheduler)>),
    /// The next entry; true if it belongs to the window, false if it only leads up to it.
    Entry(Box<JournalEntry>, bool),
}

/// Reads the entries in a window of one process's journal. It begins at the last start or checkpoint before the window,
/// or at the first remaining entry if the window has no beginning.
///
/// # Errors
/// If the log cannot be read, or has no journal of this process. Also if the window has no entries, nothing precedes it
/// to begin at (a start or checkpoint), or `each` fails.
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
