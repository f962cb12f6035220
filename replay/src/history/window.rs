//! A window of the journals, and the histories of all journal partitions within it.

use std::collections::BTreeMap;

use warptape_eventlog::{EventLog, OffsetRange};
use warptape_scheduler::Scheduler;
use warptape_schemas::journal::{PartitionId, Pause, Started};

use super::{History, Item, Wanted};
use crate::entries::{Begin, Entries, EntryReader};
use crate::moment::{Bound, Moment, Window};
use crate::{Phase, ReplayError, ReplayProgress, outside};

/// Entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 4_096;

/// The journals and the window to read.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// Topic of the journal.
    pub journal: String,
    /// Partition of the journal; `None` for all.
    pub partition: Option<i32>,
    /// The part of the journal to read.
    pub window: Window,
}

/// Position of an item's end relative to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Before the window. The item is not part of the window, but the window's items may have begun or waited during
    /// it.
    Before,
    /// Within the window; or before it, with an effect that is still in force.
    Within,
}

/// Passes on every item that ends within the window, one partition of the journal after the other. Then it passes on
/// the items that are still open at the window's end.
///
/// Lives, assignments and wanted numbers of lanes from before the window count as within it, because the last of them
/// are still in force. Earlier decisions do not.
///
/// A history begins at the last start before the window, or otherwise at the last checkpoint but one. So all rows that
/// waited at the last checkpoint are known. If these are gone, it begins where the journal does. Items that ended after
/// that but before the window are passed on as [`Ended::Before`].
///
/// # Errors
/// If the log cannot be read, the journal does not exist, the window has no entries of it, or `each` fails.
pub fn read_history(
    log: &dyn EventLog,
    options: &HistoryOptions,
    each: &mut dyn FnMut(Ended, Item) -> Result<(), ReplayError>,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<(), ReplayError> {
    let journals = match options.partition {
        Some(partition) => vec![Entries::open(log, &options.journal, partition)?],
        None => Entries::open_all(log, &options.journal)?,
    };
    if journals.is_empty() {
        return Err(ReplayError::EmptyJournal { url: log.url(), topic: options.journal.clone() });
    }
    let mut windows = Vec::with_capacity(journals.len());
    for entries in &journals {
        windows.push((entries, entries.within(options.window)?));
    }
    outside::refuse(&windows)?;
    let mut parts = Vec::with_capacity(journals.len());
    for (entries, range) in windows {
        parts.push((entries, entries.begin_early(range.first)?, range));
    }
    let begin_of = |begin: &Option<Begin>, entries: &Entries<'_>| {
        begin.as_ref().map_or(entries.range.first, |begin| begin.offset)
    };
    let length =
        |(entries, begin, range): &(&Entries<'_>, _, OffsetRange)| range.next - begin_of(begin, entries);
    let total = parts.iter().map(|part| length(part).max(0) as u64).sum();
    let mut done = 0;
    for (entries, begin, range) in parts {
        let first = begin_of(&begin, entries);
        let mut reader = HistoryReader::open(entries, begin, range.next)?;
        let mut seen = 0;
        while let Some((offset, items)) = reader.next()? {
            let placed = |item: Item| match item {
                _ if offset >= range.first => (Ended::Within, item),
                Item::Wanted(wanted) => (Ended::Within, Item::Wanted(Wanted { scale: None, ..wanted })),
                Item::Life(_) | Item::Assigned(_) | Item::Unassigned(_) => (Ended::Within, item),
                _ => (Ended::Before, item),
            };
            items.into_iter().map(placed).try_for_each(|(ended, item)| each(ended, item))?;
            seen += 1;
            if seen % PROGRESS_ENTRIES == 0 {
                let done = done + (offset + 1 - first).max(0) as u64;
                progress(ReplayProgress { phase: Phase::Journal, done, total });
            }
        }
        done += (range.next - first).max(0) as u64;
        progress(ReplayProgress { phase: Phase::Journal, done, total });
    }
    Ok(())
}

/// Reads the history of a journal partition from a beginning on, entry by entry.
pub(crate) struct HistoryReader {
    reader: EntryReader,
    history: History,
    /// Checkpoint at the first entry; `None` if the history begins at a start, or after the checkpoint was used.
    checkpoint: Option<(Started, Scheduler)>,
    /// Times and reasons of the pauses that the checkpoint contains, as far as the journal shows them.
    pauses: BTreeMap<PartitionId, (Moment, Pause)>,
    journal: i32,
    next: i64,
    /// True if the journal ends at `next`.
    is_to_end: bool,
    is_finished: bool,
}

impl HistoryReader {
    /// Opens a history from a beginning, or from the first existing entry if no beginning is given, up to an offset.
    pub(crate) fn open(entries: &Entries<'_>, begin: Option<Begin>, next: i64) -> Result<Self, ReplayError> {
        let first = begin.as_ref().map_or(entries.range.first, |begin| begin.offset);
        let journal = entries.partition();
        let checkpoint = begin.and_then(|begin| begin.checkpoint);
        let pauses = match &checkpoint {
            Some((_, scheduler)) => entries.pauses_before(first, scheduler)?,
            None => BTreeMap::new(),
        };
        Ok(Self {
            reader: entries.read(OffsetRange { first, next })?,
            history: History::new(journal),
            checkpoint,
            pauses,
            journal,
            next,
            is_to_end: next >= entries.range.next,
            is_finished: false,
        })
    }

    /// Returns the items that end with the next entry, and its offset. After the last entry, returns the open items and
    /// the end offset; then `None`.
    pub(crate) fn next(&mut self) -> Result<Option<(i64, Vec<Item>)>, ReplayError> {
        if self.is_finished {
            return Ok(None);
        }
        let offset = match self.reader.next()? {
            Some((offset, entry)) => {
                if let Some((started, scheduler)) = self.checkpoint.take() {
                    let at = Moment { sequence: entry.sequence, at_ns: entry.at_ns };
                    self.history = History::at_checkpoint(self.journal, at, started, &scheduler);
                    self.history.tell_pauses(&self.pauses);
                }
                self.history.step(&entry);
                offset
            }
            None => {
                match self.is_to_end {
                    true => self.history.finish_journal(),
                    false => self.history.finish(),
                }
                self.is_finished = true;
                self.next
            }
        };
        Ok(Some((offset, self.history.take_items())))
    }
}

impl Entries<'_> {
    /// Returns the beginning of a history that must know all rows waiting at an offset.
    pub(crate) fn begin_early(&self, offset: i64) -> Result<Option<Begin>, ReplayError> {
        let Some(last) = self.begin_before(offset + 1)? else { return Ok(None) };
        if last.checkpoint.is_none() {
            return Ok(Some(last));
        }
        Ok(self.begin_before(last.offset)?.or(Some(last)))
    }

    /// Returns the offsets of a window.
    pub(crate) fn within(&self, window: Window) -> Result<OffsetRange, ReplayError> {
        let first = self.bound(window.from)?.unwrap_or(self.range.first);
        let next = self.bound(window.to)?.unwrap_or(self.range.next);
        Ok(OffsetRange { first, next })
    }

    /// Returns the offset of the first entry at or after a bound; `None` if there is no bound.
    pub(crate) fn bound(&self, bound: Option<Bound>) -> Result<Option<i64>, ReplayError> {
        Ok(match bound {
            None => None,
            Some(Bound::Offset(offset)) => Some(offset.clamp(self.range.first, self.range.next)),
            Some(Bound::Sequence(sequence)) => Some(self.lower_bound(|entry| entry.sequence < sequence)?),
            Some(Bound::Time(at_ns)) => Some(self.lower_bound(|entry| entry.at_ns < at_ns)?),
        })
    }
}
