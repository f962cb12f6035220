//! A window of a log, with its beginning and end in each journal.

use serde::Serialize;
use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::journal::{Checkpoint, Input, JournalEntry};

use crate::ReplayError;
use crate::cause;
use crate::partition_reader::PartitionReader;

/// Offsets in one block of a backward search.
const BACK_OFFSETS: i64 = 4_096;

/// The beginning or end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Time of an entry, ns since the epoch.
    TimeNs(i64),
    /// Offset in a journal.
    Offset(i64),
    /// Sequence of an entry in a journal.
    Sequence(i64),
}

/// Part of a log, delimited by entries of its journals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The first entry of the window; `None` for the journal's first one.
    pub since: Option<Bound>,
    /// The first entry after the window; `None` for no end.
    pub until: Option<Bound>,
    /// Journal partition of `Offset` and `Sequence` bounds. In the other partitions, the time of that entry is the
    /// bound.
    pub partition: i32,
}

impl Window {
    /// True if the window is the whole log.
    pub fn is_whole(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// True if the window ends at or before its beginning, as far as bounds of the same kind show it.
    pub fn is_backwards(&self) -> bool {
        match (self.since, self.until) {
            (Some(Bound::TimeNs(since)), Some(Bound::TimeNs(until)))
            | (Some(Bound::Offset(since)), Some(Bound::Offset(until)))
            | (Some(Bound::Sequence(since)), Some(Bound::Sequence(until))) => until <= since,
            _ => false,
        }
    }
}

/// Offsets of the window in a journal, before it is extended so that it can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) since: i64,
    pub(super) until: i64,
}

/// Returns the offsets of a window in each journal.
pub(super) fn wanted(
    log: &dyn EventLog,
    journal: &str,
    ranges: &[OffsetRange],
    window: &Window,
) -> Result<Vec<Wanted>, ReplayError> {
    let mut searches = Vec::with_capacity(ranges.len());
    for (partition, range) in (0..).zip(ranges) {
        let source = TopicPartition { topic: journal.to_owned(), partition };
        let is_empty = range.first == range.next;
        searches.push(if is_empty { None } else { Some(Search::open(log, source, *range)?) });
    }
    let own = window.partition as usize;
    if own >= ranges.len() {
        return Err(ReplayError::Log(LogError::UnknownPartition {
            url: log.url(),
            topic: journal.to_owned(),
            partition: window.partition,
            allowed: format!("0 to {}", ranges.len().saturating_sub(1)),
        }));
    }
    let mut found = Vec::with_capacity(ranges.len());
    let mut bounds = Vec::with_capacity(2);
    for bound in [window.since, window.until] {
        // In the other journals, the entry's time replaces an offset or a sequence.
        let at = match (bound, searches.get_mut(own).and_then(Option::as_mut)) {
            (None, _) => None,
            (Some(Bound::TimeNs(at_ns)), _) => Some((None, at_ns)),
            // The journal is empty, so it has no entry after the bound.
            (Some(_), None) => Some((None, i64::MAX)),
            (Some(bound), Some(search)) => {
                let offset = search.first_at(bound)?;
                Some((Some(offset), search.entry_from(offset)?.map_or(i64::MAX, |(_, entry)| entry.at_ns)))
            }
        };
        bounds.push(at);
    }
    for (partition, search) in searches.iter_mut().enumerate() {
        let Some(search) = search else {
            found.push(Wanted { since: ranges[partition].first, until: ranges[partition].next });
            continue;
        };
        let mut offset_of = |at: Option<(Option<i64>, i64)>, default: i64| match at {
            None => Ok(default),
            Some((Some(offset), _)) if partition == own => Ok(offset),
            Some((_, at_ns)) => search.first_at(Bound::TimeNs(at_ns)),
        };
        let range = ranges[partition];
        let since = offset_of(bounds[0], range.first)?;
        let until = offset_of(bounds[1], range.next)?;
        found.push(Wanted { since, until: until.max(since) });
    }
    Ok(found)
}

/// Returns the offset of the last start or checkpoint before an offset, where stepping can begin.
pub(super) fn begin_before(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
    since: i64,
) -> Result<i64, ReplayError> {
    if range.first == range.next {
        return Ok(range.first);
    }
    let begins = |entry: &JournalEntry| {
        matches!(&entry.input, Input::Started(_) | Input::Checkpoint(Checkpoint { part: 0, .. }))
    };
    // The entry at the offset itself may also begin the window.
    let next = since.saturating_add(1).min(range.next);
    let mut search = Search::open(log, source.clone(), range)?;
    let begin = search.last_before(next, range.first, begins)?.unwrap_or(range.first);
    // If there is no earlier record, the window begins at the journal's first offset.
    Ok(if search.has_before(begin)? { begin } else { range.first })
}

/// Returns the offset of the last start of a process before an offset of its journal; the journal's first offset if
/// there is none.
///
/// # Errors
/// If the log cannot be read.
pub fn last_start_before(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
    offset: i64,
) -> Result<i64, ReplayError> {
    let starts = |entry: &JournalEntry| matches!(&entry.input, Input::Started(_));
    let mut search = Search::open(log, source.clone(), range)?;
    let start = search.last_before(offset.min(range.next), range.first, starts)?;
    Ok(start.unwrap_or(range.first))
}

/// Returns an end that cuts no transaction. It is after the window's last entry that seals one, or else after the first
/// such entry behind the window. `None` at the end of the journal.
pub(super) fn end_behind(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
    wanted: Wanted,
) -> Result<Option<i64>, ReplayError> {
    let Wanted { since, until } = wanted;
    if until >= range.next {
        return Ok(None);
    }
    let seals = |entry: &JournalEntry| matches!(&entry.input, Input::Sealed(_));
    let mut search = Search::open(log, source.clone(), range)?;
    if search.entry_from(until)?.is_none() {
        return Ok(None);
    }
    if let Some(offset) = search.last_before(until, since, seals)? {
        return Ok(Some(offset + 1));
    }
    let mut offset = until;
    while let Some((found, entry)) = search.entry_from(offset)? {
        if seals(&entry) {
            return Ok(Some(found + 1));
        }
        offset = found + 1;
    }
    Ok(None)
}

/// Searches for entries in a journal.
struct Search {
    reader: PartitionReader,
    range: OffsetRange,
}

impl Search {
    fn open(log: &dyn EventLog, source: TopicPartition, range: OffsetRange) -> Result<Self, LogError> {
        Ok(Self { reader: PartitionReader::open(log, source, range)?, range })
    }

    /// Returns the first offset whose entry, or the next entry, is at or after a bound.
    fn first_at(&mut self, bound: Bound) -> Result<i64, ReplayError> {
        let is_before = |entry: &JournalEntry| match bound {
            Bound::TimeNs(at_ns) => entry.at_ns < at_ns,
            Bound::Sequence(sequence) => entry.sequence < sequence,
            Bound::Offset(_) => unreachable!("an offset is not looked for"),
        };
        if let Bound::Offset(offset) = bound {
            return Ok(offset.clamp(self.range.first, self.range.next));
        }
        let (mut low, mut high) = (self.range.first, self.range.next);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry_from(middle)? {
                Some((offset, entry)) if is_before(&entry) => low = offset + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the first entry at or after an offset, with its own offset. Skips records that are not entries.
    fn entry_from(&mut self, offset: i64) -> Result<Option<(i64, JournalEntry)>, ReplayError> {
        if offset >= self.range.next {
            return Ok(None);
        }
        if !self.reader.is_next(offset) {
            self.reader.seek(offset)?;
        }
        self.reader.next_entry()
    }

    /// Returns the offset of the last entry in `first..next` for which `is_such` is true.
    fn last_before(
        &mut self,
        next: i64,
        first: i64,
        is_such: impl Fn(&JournalEntry) -> bool,
    ) -> Result<Option<i64>, ReplayError> {
        let mut end = next;
        while end > first {
            let begin = (end - BACK_OFFSETS).max(first);
            self.reader.seek(begin)?;
            let mut last = None;
            while let Some(record) = self.reader.next_before(end)? {
                if self.reader.entry_of(&record)?.is_some_and(|entry| is_such(&entry)) {
                    last = Some(record.offset);
                }
            }
            if last.is_some() {
                return Ok(last);
            }
            end = begin;
        }
        Ok(None)
    }

    /// True if there is a record before an offset.
    fn has_before(&mut self, offset: i64) -> Result<bool, LogError> {
        self.reader.seek(self.range.first)?;
        Ok(self.reader.next_before(offset)?.is_some())
    }
}

/// Returns the offset of the first signal of a partition that a tick record at or after an offset caused.
///
/// # Errors
/// If the log or a signal in it cannot be read.
pub fn first_signal_from(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
    cause: i64,
) -> Result<i64, ReplayError> {
    let is_before = |record: &Record| match cause::of_signal(&record.value) {
        Some(of) => Ok(of < cause),
        None => Err(ReplayError::OutputUnreadable {
            url: log.url(),
            topic: source.topic.clone(),
            partition: source.partition,
            offset: record.offset,
        }),
    };
    Ok(partition_point(log, source.clone(), range, is_before)?.0)
}

/// Returns the first offset after the records for which `is_before` holds, and the offset of the last of them. The
/// records must be ordered so that these come first.
pub(super) fn partition_point(
    log: &dyn EventLog,
    source: TopicPartition,
    range: OffsetRange,
    is_before: impl Fn(&Record) -> Result<bool, ReplayError>,
) -> Result<(i64, Option<i64>), ReplayError> {
    let mut reader = PartitionReader::open(log, source, range)?;
    let (mut low, mut high, mut last) = (range.first, range.next, None);
    while low < high {
        let middle = low + (high - low) / 2;
        reader.seek(middle)?;
        match reader.next()? {
            Some(record) if is_before(&record)? => (low, last) = (record.offset + 1, Some(record.offset)),
            _ => high = middle,
        }
    }
    Ok((low, last))
}
