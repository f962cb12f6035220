//! Reads the last entry of a journal, after which the chain continues.

use std::time::Duration;

use warptape_eventlog::{Consumer, EventLog, Fetched, LogError, Record, TopicPartition};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Checkpoint, Input, JournalEntry};

use super::EngineError;

/// Bytes of one read, more than any entry has.
const ENTRY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Records of one read.
const RECORDS_MAX: usize = 256;
/// Number of last offsets that are read first; the very last ones may be transaction markers.
const LOOK_BACK: i64 = 16;
/// Wait before the reader checks again whether it reached the end.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Reads the last entry of a process's journal; `None` for an empty one.
pub(super) fn last_entry(
    log: &dyn EventLog,
    journal: &str,
    ordinal: i32,
) -> Result<Option<JournalEntry>, EngineError> {
    let Some(record) = last_record(log, journal, ordinal)? else { return Ok(None) };
    let entry = decode_journal_entry(&record.value).map_err(|error| EngineError::JournalTail {
        topic: journal.to_owned(),
        ordinal,
        offset: record.offset,
        error,
    })?;
    Ok(Some(entry))
}

/// Warns if a journal ends before entries that the group has committed. The process continues without them, and nothing
/// shows the loss later.
pub(super) fn warn_of_missing(
    log: &dyn EventLog,
    group: &str,
    journal: &str,
    ordinal: i32,
    last: &JournalEntry,
) -> Result<(), LogError> {
    let partition = TopicPartition { topic: journal.to_owned(), partition: ordinal };
    let next_sequence = last.sequence.saturating_add(1);
    if let Some(committed_sequence) = log.committed(group, &partition)?
        && next_sequence < committed_sequence
    {
        tracing::warn!(
            journal,
            ordinal,
            next_sequence,
            committed_sequence,
            "entries are missing at the end of the journal, which continues without them; `replay verify` reports them until more is committed"
        );
    }
    Ok(())
}

/// Reads the first entry with this sequence or a greater one; `None` if there is none, or it is unreadable.
pub(super) fn entry_at(
    log: &dyn EventLog,
    journal: &str,
    ordinal: i32,
    sequence: i64,
) -> Result<Option<JournalEntry>, LogError> {
    let partition = TopicPartition { topic: journal.to_owned(), partition: ordinal };
    let mut reader = log.reader(std::slice::from_ref(&partition))?;
    let range = reader.offsets(&partition)?;
    let (mut low, mut high, mut found) = (range.first, range.next, None);
    while low < high {
        let middle = low + (high - low) / 2;
        match first_in(reader.as_mut(), &partition, middle, high)? {
            None => high = middle,
            Some(record) => match decode_journal_entry(&record.value) {
                Ok(entry) if entry.sequence < sequence => low = record.offset + 1,
                Ok(entry) => (high, found) = (middle, Some(entry)),
                Err(_) => return Ok(None),
            },
        }
    }
    Ok(found)
}

/// Returns the offset from which on a journal suffices for a restart and for a replay. It is that of the newest start or
/// checkpoint, or of the newest positions before it. `None` if the journal has none.
pub(crate) fn needed_from(log: &dyn EventLog, journal: &str, ordinal: i32) -> Result<Option<i64>, LogError> {
    let partition = TopicPartition { topic: journal.to_owned(), partition: ordinal };
    let mut reader = log.reader(std::slice::from_ref(&partition))?;
    let range = reader.offsets(&partition)?;
    let (mut back, mut end) = (LOOK_BACK, range.next);
    let (mut state, mut positions) = (None, None);
    while end > range.first {
        let from = range.next.saturating_sub(back).max(range.first);
        reader.seek(&partition, from)?;
        let (mut state_here, mut positions_here) = (None, None);
        while reader.position(&partition)? < end {
            let Fetched::Records { records, .. } = reader.poll(READ_WAIT, RECORDS_MAX, ENTRY_BYTES_MAX)?
            else {
                continue;
            };
            for record in records.iter().filter(|record| record.offset < end) {
                match decode_journal_entry(&record.value).map(|entry| entry.input) {
                    Ok(Input::Started(_) | Input::Checkpoint(Checkpoint { part: 0, .. })) => {
                        state_here = Some(record.offset);
                    }
                    Ok(Input::Positions(_)) => positions_here = Some(record.offset),
                    _ => {}
                }
            }
        }
        (state, positions) = (state.or(state_here), positions.or(positions_here));
        if let (Some(state), Some(positions)) = (state, positions) {
            return Ok(Some(positions.min(state)));
        }
        (end, back) = (from, back.saturating_mul(16));
    }
    Ok(None)
}

/// Returns the first record with an offset in `from..end`.
fn first_in(
    reader: &mut dyn Consumer,
    partition: &TopicPartition,
    from: i64,
    end: i64,
) -> Result<Option<Record>, LogError> {
    reader.seek(partition, from)?;
    while reader.position(partition)? < end {
        if let Fetched::Records { records, .. } = reader.poll(READ_WAIT, 1, ENTRY_BYTES_MAX)? {
            return Ok(records.into_iter().find(|record| record.offset < end));
        }
    }
    Ok(None)
}

/// Reads the last record of a partition; `None` if there is none.
pub(super) fn last_record(
    log: &dyn EventLog,
    topic: &str,
    partition: i32,
) -> Result<Option<Record>, LogError> {
    let partition = TopicPartition { topic: topic.to_owned(), partition };
    let mut reader = log.reader(std::slice::from_ref(&partition))?;
    let range = reader.offsets(&partition)?;
    let mut back = LOOK_BACK;
    loop {
        let from = range.next.saturating_sub(back).max(range.first);
        let last = last_in(reader.as_mut(), &partition, from, range.next)?;
        if last.is_some() || from == range.first {
            return Ok(last);
        }
        back = back.saturating_mul(16);
    }
}

/// Returns the last record with an offset in `from..end`.
fn last_in(
    reader: &mut dyn Consumer,
    partition: &TopicPartition,
    from: i64,
    end: i64,
) -> Result<Option<Record>, LogError> {
    let mut last = None;
    reader.seek(partition, from)?;
    while reader.position(partition)? < end {
        if let Fetched::Records { records, .. } = reader.poll(READ_WAIT, RECORDS_MAX, ENTRY_BYTES_MAX)? {
            last = records.into_iter().rfind(|record| record.offset < end).or(last);
        }
    }
    Ok(last)
}
