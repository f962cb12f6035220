//! Finds entries in a journal partition without reading all of it: by sequence, by time, or the last start or
//! checkpoint before an entry.
//!
//! Only entries needed to compute a state are stepped; callers interpret the entries.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use warptape_eventlog::{EventLog, OffsetRange, TopicPartition};
use warptape_scheduler::Scheduler;
use warptape_schemas::journal::{Checkpoint, Decision, Input, JournalEntry, PartitionId, Pause, Started};

use crate::ReplayError;
use crate::error::no_topic;
use crate::moment::{JournalReach, Moment};
use crate::partition_reader::PartitionReader;

/// Offsets in one block of a backward search.
pub(crate) const BACK_RECORDS: i64 = 4_096;

/// Greatest distance searched backwards for the beginning of a pause, in whole blocks of [`BACK_RECORDS`].
const PAUSE_RECORDS_MAX: i64 = 1 << 20;

/// The entries of one journal partition, up to the end that it had when it was opened.
pub(crate) struct Entries<'a> {
    log: &'a dyn EventLog,
    source: TopicPartition,
    /// Offsets of the partition.
    pub(crate) range: OffsetRange,
    /// The last search result: a start or a checkpoint, and an offset before which there is no later one.
    last_begin: Cell<Option<(Found, i64)>>,
}

/// A start or a checkpoint: its offset, and for a checkpoint the number of its parts.
type Found = (i64, Option<i32>);

/// A place from which entries can be stepped.
pub(crate) struct Begin {
    /// Offset of the first entry to step: a start, or the first part of a checkpoint.
    pub(crate) offset: i64,
    /// The start of the process and the state before the checkpoint; `None` at a start.
    pub(crate) checkpoint: Option<(Started, Scheduler)>,
}

impl<'a> Entries<'a> {
    /// Opens a partition of a journal.
    pub(crate) fn open(log: &'a dyn EventLog, topic: &str, partition: i32) -> Result<Self, ReplayError> {
        let all = Self::open_all(log, topic)?;
        let there: Vec<String> = all.iter().map(|entries| entries.source.partition.to_string()).collect();
        let (url, topic) = (log.url(), topic.to_owned());
        if there.is_empty() {
            return Err(ReplayError::EmptyJournal { url, topic });
        }
        let found = all.into_iter().find(|entries| entries.source.partition == partition);
        found.ok_or_else(|| ReplayError::NoProcess {
            url,
            topic,
            ordinal: partition,
            there: there.join(", "),
        })
    }

    /// Opens all partitions of a journal that have offsets.
    pub(crate) fn open_all(log: &'a dyn EventLog, topic: &str) -> Result<Vec<Self>, ReplayError> {
        let Some(found) = log.topic(topic)? else {
            return Err(no_topic(log, topic)?);
        };
        let of = |(partition, range): (i32, &OffsetRange)| {
            let source = TopicPartition { topic: topic.to_owned(), partition };
            (range.first < range.next).then(|| Self {
                log,
                source,
                range: *range,
                last_begin: Cell::new(None),
            })
        };
        Ok((0..).zip(&found.offsets).filter_map(of).collect())
    }

    /// Returns the number of the partition.
    pub(crate) fn partition(&self) -> i32 {
        self.source.partition
    }

    /// Returns a reader of the entries in a range of offsets.
    pub(crate) fn read(&self, range: OffsetRange) -> Result<EntryReader, ReplayError> {
        Ok(EntryReader { reader: PartitionReader::open(self.log, self.source.clone(), range)? })
    }

    /// Returns the first entry at or after an offset, with its offset. Skips records that are not entries.
    pub(crate) fn first_from(&self, offset: i64) -> Result<Option<(i64, JournalEntry)>, ReplayError> {
        self.read(OffsetRange { first: offset, next: self.range.next })?.next()
    }

    /// Returns the offset of the first entry for which `is_before` is false, by bisection. `is_before` must stay false
    /// once it is false.
    pub(crate) fn lower_bound(&self, is_before: impl Fn(&JournalEntry) -> bool) -> Result<i64, ReplayError> {
        let (mut low, mut high) = (self.range.first, self.range.next);
        // All reads share one reader, because each reader on Kafka opens its own connections.
        let mut reader = self.read(self.range)?;
        while low < high {
            let middle = low + (high - low) / 2;
            reader.reader.seek(middle)?;
            match reader.next()? {
                Some((_, entry)) if is_before(&entry) => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the entry with a sequence, and its offset. From one offset to the next, the sequence rises by one, or
    /// not at all at a transaction marker.
    pub(crate) fn with_sequence(&self, sequence: i64) -> Result<(i64, JournalEntry), ReplayError> {
        let offset = self.lower_bound(|entry| entry.sequence < sequence)?;
        let found = self.first_from(offset)?.filter(|(_, entry)| entry.sequence == sequence);
        found.ok_or_else(|| ReplayError::NoEntry {
            url: self.log.url(),
            topic: self.source.topic.clone(),
            partition: self.source.partition,
            sequence,
        })
    }

    /// Returns the last start or complete checkpoint before an offset; `None` if none remains.
    pub(crate) fn begin_before(&self, before: i64) -> Result<Option<Begin>, ReplayError> {
        // A window may begin after the last entry, and waiting there for an entry might never end.
        let before = before.min(self.range.next);
        if let Some((found, behind)) = self.last_begin.get()
            && (found.0 + 1..=behind).contains(&before)
            && let Some(begin) = self.begin_at(found, before)?
        {
            return Ok(Some(begin));
        }
        self.begin_within(OffsetRange { first: self.range.first, next: before })
    }

    /// Returns the last start or complete checkpoint within a range of offsets; `None` if there is none.
    pub(crate) fn begin_within(&self, range: OffsetRange) -> Result<Option<Begin>, ReplayError> {
        let before = range.next;
        let mut next = before;
        while next > range.first {
            let first = (next - BACK_RECORDS).max(range.first);
            let mut reader = self.read(OffsetRange { first, next })?;
            let mut begins: Vec<Found> = Vec::new();
            while let Some((offset, entry)) = reader.next()? {
                match entry.input {
                    Input::Started(_) => begins.push((offset, None)),
                    Input::Checkpoint(Checkpoint { part: 0, parts, .. }) => {
                        begins.push((offset, Some(parts)));
                    }
                    _ => {}
                }
            }
            for found in begins.into_iter().rev() {
                if let Some(begin) = self.begin_at(found, before)? {
                    self.last_begin.set(Some((found, before)));
                    return Ok(Some(begin));
                }
            }
            next = first;
        }
        Ok(None)
    }

    /// Returns the first start or complete checkpoint; `None` if there is neither.
    pub(crate) fn first_begin(&self) -> Result<Option<Begin>, ReplayError> {
        let mut reader = self.read(self.range)?;
        while let Some((offset, entry)) = reader.next()? {
            let found = match entry.input {
                Input::Started(_) => (offset, None),
                Input::Checkpoint(Checkpoint { part: 0, parts, .. }) => (offset, Some(parts)),
                _ => continue,
            };
            if let Some(begin) = self.begin_at(found, self.range.next)? {
                return Ok(Some(begin));
            }
        }
        Ok(None)
    }

    /// Returns the times and reasons of the pauses of partitions that are paused in the scheduler's state before an
    /// offset. Only considers remaining entries of the same life that are not too far back.
    pub(crate) fn pauses_before(
        &self,
        offset: i64,
        scheduler: &Scheduler,
    ) -> Result<BTreeMap<PartitionId, (Moment, Pause)>, ReplayError> {
        let paused = scheduler.partition_loads().filter(|load| load.paused).map(|load| load.partition);
        let (mut wanted, mut begun): (BTreeSet<_>, _) = (paused.collect(), BTreeMap::new());
        let earliest = self.range.first.max(offset - PAUSE_RECORDS_MAX);
        let (mut next, mut is_of_life) = (offset, true);
        while next > earliest && is_of_life && !wanted.is_empty() {
            let first = (next - BACK_RECORDS).max(self.range.first);
            let mut reader = self.read(OffsetRange { first, next })?;
            let mut last = BTreeMap::new();
            while let Some((_, entry)) = reader.next()? {
                if let Input::Started(_) = entry.input {
                    last.clear();
                    is_of_life = false;
                }
                let at = Moment { sequence: entry.sequence, at_ns: entry.at_ns };
                for decision in entry.decisions {
                    if let Decision::Pause(pause) = decision {
                        last.insert(pause.partition, (at, pause));
                    }
                }
            }
            last.retain(|partition, _| wanted.remove(partition));
            begun.append(&mut last);
            next = first;
        }
        Ok(begun)
    }

    /// Returns the offset of the last entry before an offset; `None` if there is none.
    pub(crate) fn last_before(&self, offset: i64) -> Result<Option<i64>, ReplayError> {
        let mut next = offset;
        while next > self.range.first {
            let first = (next - BACK_RECORDS).max(self.range.first);
            let mut reader = self.read(OffsetRange { first, next })?;
            let mut last = None;
            while let Some((found, _)) = reader.next()? {
                last = Some(found);
            }
            if last.is_some() {
                return Ok(last);
            }
            next = first;
        }
        Ok(None)
    }

    /// Returns the place of a start or a checkpoint; `None` if the checkpoint is not complete before an offset.
    fn begin_at(&self, (offset, parts): Found, before: i64) -> Result<Option<Begin>, ReplayError> {
        let Some(parts) = parts else { return Ok(Some(Begin { offset, checkpoint: None })) };
        let checkpoint = self.checkpoint_at(OffsetRange { first: offset, next: before }, parts)?;
        Ok(checkpoint.map(|checkpoint| Begin { offset, checkpoint: Some(checkpoint) }))
    }

    /// Returns the state in the checkpoint at the beginning of a range. `None` if the checkpoint's end is not in the
    /// range, or this software cannot read its version.
    fn checkpoint_at(
        &self,
        range: OffsetRange,
        parts: i32,
    ) -> Result<Option<(Started, Scheduler)>, ReplayError> {
        let mut reader = self.read(range)?;
        let (mut state, mut began) = (Vec::new(), None);
        for number in 0..parts {
            let Some((_, JournalEntry { input: Input::Checkpoint(checkpoint), .. })) = reader.next()? else {
                return Ok(None);
            };
            if checkpoint.part != number {
                return Ok(None);
            }
            began = began.or(checkpoint.started.map(|started| *started));
            state.extend(checkpoint.state.0);
        }
        Ok(began.zip(Scheduler::from_checkpoint(&state).ok()))
    }

    /// Returns the error for removed entries that contained the state of a decision.
    pub(crate) fn trimmed(&self) -> ReplayError {
        ReplayError::JournalTrimmed {
            url: self.log.url(),
            topic: self.source.topic.clone(),
            partition: self.source.partition,
            first: self.range.first,
        }
    }

    /// Returns the error for a window without entries of the journal; `there` is the existing range of each partition.
    pub(crate) fn outside(&self, there: Vec<JournalReach>) -> ReplayError {
        ReplayError::OutsideJournal { url: self.log.url(), topic: self.source.topic.clone(), there }
    }

    /// Returns the error for a record that was removed after it was read.
    pub(crate) fn gone(&self, offset: i64) -> ReplayError {
        let TopicPartition { topic, partition } = self.source.clone();
        ReplayError::RecordGone { topic, partition, offset }
    }

    /// Returns the error for an entry that cannot be stepped again.
    pub(crate) fn not_replayed(&self, sequence: i64, error: String) -> ReplayError {
        ReplayError::NotReplayed {
            url: self.log.url(),
            topic: self.source.topic.clone(),
            partition: self.source.partition,
            sequence,
            error,
        }
    }

    /// Returns the start of the process that wrote the last entry before an offset; `None` if neither its start nor a
    /// checkpoint remains.
    pub(crate) fn started_before(&self, next: i64) -> Result<Option<Started>, ReplayError> {
        let Some(begin) = self.begin_before(next)? else { return Ok(None) };
        if let Some((started, _)) = begin.checkpoint {
            return Ok(Some(started));
        }
        Ok(self.first_from(begin.offset)?.and_then(|(_, entry)| match entry.input {
            Input::Started(started) => Some(*started),
            _ => None,
        }))
    }

    /// Returns the scheduler in the state before the entry at an offset.
    pub(crate) fn scheduler_before(&self, offset: i64) -> Result<Scheduler, ReplayError> {
        let begin = self.begin_before(offset + 1)?.ok_or_else(|| self.trimmed())?;
        Ok(self.step_until(begin, offset)?.0)
    }

    /// Returns the scheduler in the state after the last entry before an offset, and that entry; `None` if there is no
    /// such entry.
    pub(crate) fn scheduler_behind(&self, next: i64) -> Result<Option<(Scheduler, Moment)>, ReplayError> {
        if next <= self.range.first {
            return Ok(None);
        }
        let begin = self.begin_before(next)?.ok_or_else(|| self.trimmed())?;
        let (scheduler, last) = self.step_until(begin, next)?;
        Ok(last.map(|last| (scheduler, last)))
    }

    fn step_until(&self, begin: Begin, next: i64) -> Result<(Scheduler, Option<Moment>), ReplayError> {
        let mut scheduler = begin.checkpoint.map_or_else(Scheduler::new, |(_, scheduler)| scheduler);
        let mut reader = self.read(OffsetRange { first: begin.offset, next })?;
        let (mut decisions, mut last) = (Vec::new(), None);
        while let Some((_, entry)) = reader.next()? {
            decisions.clear();
            let step = scheduler.step(entry.at_ns, &entry.input, &mut decisions);
            step.map_err(|error| self.not_replayed(entry.sequence, error.to_string()))?;
            if decisions != entry.decisions {
                let words = "this software decides differently; verify the log with `warptape replay verify`";
                return Err(self.not_replayed(entry.sequence, words.to_owned()));
            }
            last = Some(Moment { sequence: entry.sequence, at_ns: entry.at_ns });
        }
        Ok((scheduler, last))
    }
}

/// Reads entries in order.
pub(crate) struct EntryReader {
    reader: PartitionReader,
}

impl EntryReader {
    /// Continues with the first entry at or after an offset.
    pub(crate) fn seek(&mut self, offset: i64) -> Result<(), ReplayError> {
        Ok(self.reader.seek(offset)?)
    }

    /// Returns the next entry with its offset. Skips records that are not entries.
    pub(crate) fn next(&mut self) -> Result<Option<(i64, JournalEntry)>, ReplayError> {
        self.reader.next_entry()
    }
}
