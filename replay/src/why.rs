//! Why the scheduler decided something: a recorded entry, with each of its decisions explained.

use serde::Serialize;
use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_scheduler::{Explanation, Scheduler};
use warptape_schemas::decode_journal_entry;
use warptape_schemas::journal::{Checkpoint, Input, JournalEntry};

use crate::ReplayError;
use crate::partition_reader::PartitionReader;

/// Offsets that are read at once on the way back to a start or a checkpoint.
const BACK_RECORDS: i64 = 4_096;

/// A recorded entry, with each of its decisions explained.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// Partition of the journal.
    pub partition: i32,
    /// Offset of the entry.
    pub offset: i64,
    /// The entry.
    pub entry: JournalEntry,
    /// What each decision was chosen among, and what would have changed it, in their order.
    pub explanations: Vec<Explanation>,
}

/// Where the journal is, and which of its entries is meant.
#[derive(Clone, Debug)]
pub struct WhyOptions {
    /// Topic of the journal.
    pub journal: String,
    /// Its partition: the ordinal of the process.
    pub partition: i32,
    /// The entry.
    pub sequence: i64,
}

/// Explains the decisions of an entry. The scheduler is stepped from the last start or checkpoint before it.
///
/// # Errors
/// If the log cannot be read, there is no such entry, the entries that lead to it were removed, or they are not what this software decides.
pub fn why(log: &dyn EventLog, options: &WhyOptions) -> Result<Why, ReplayError> {
    let WhyOptions { journal, partition, sequence } = options;
    let source = TopicPartition { topic: journal.clone(), partition: *partition };
    let range = range(log, &source)?;
    let gone = || ReplayError::NoEntry {
        url: log.url(),
        topic: journal.clone(),
        partition: *partition,
        sequence: *sequence,
    };
    // Sequences rise with offsets, by one or, behind markers of transactions, by less.
    let (mut low, mut high) = (range.first, range.next);
    while low < high {
        let middle = low + (high - low) / 2;
        match first_entry(log, &source, OffsetRange { first: middle, next: range.next })? {
            Some((_, entry)) if entry.sequence < *sequence => low = middle + 1,
            _ => high = middle,
        }
    }
    let Some((offset, entry)) = first_entry(log, &source, OffsetRange { first: low, next: range.next })?
    else {
        return Err(gone());
    };
    if entry.sequence != *sequence {
        return Err(gone());
    }
    let trimmed = || ReplayError::JournalTrimmed {
        url: log.url(),
        topic: journal.clone(),
        partition: *partition,
        first: range.first,
    };
    let before = begin_before(log, &source, OffsetRange { first: range.first, next: offset + 1 })?;
    let scheduler = lead_up(before.ok_or_else(trimmed)?, offset, |entry, error| ReplayError::NotReplayed {
        url: log.url(),
        topic: journal.clone(),
        partition: *partition,
        sequence: entry.sequence,
        error,
    })?;
    let explain = |index| {
        scheduler.explain(entry.at_ns, &entry.input, index).map_err(|error| ReplayError::NotReplayed {
            url: log.url(),
            topic: journal.clone(),
            partition: *partition,
            sequence: entry.sequence,
            error: error.to_string(),
        })
    };
    let explanations = (0..entry.decisions.len()).map(explain).collect::<Result<_, _>>()?;
    Ok(Why { partition: *partition, offset, entry, explanations })
}

fn range(log: &dyn EventLog, source: &TopicPartition) -> Result<OffsetRange, ReplayError> {
    let topics = log.topics()?;
    let known = || topics.iter().map(|topic| topic.spec.name.clone()).collect::<Vec<_>>().join(", ");
    let Some(topic) = topics.iter().find(|topic| topic.spec.name == source.topic) else {
        return Err(ReplayError::NoTopic { url: log.url(), topic: source.topic.clone(), known: known() });
    };
    let range = usize::try_from(source.partition).ok().and_then(|partition| topic.offsets.get(partition));
    range.copied().filter(|range| range.first < range.next).ok_or_else(|| ReplayError::EmptyJournal {
        url: log.url(),
        topic: format!("{} partition {}", source.topic, source.partition),
    })
}

/// The first entry in a range of offsets, with its offset; what is none is passed over.
fn first_entry(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
) -> Result<Option<(i64, JournalEntry)>, ReplayError> {
    let mut reader = PartitionReader::open(log, source.clone(), range)?;
    while let Some(record) = reader.next()? {
        if let Ok(entry) = decode_journal_entry(&record.value) {
            return Ok(Some((record.offset, entry)));
        }
    }
    Ok(None)
}

/// The records from the last start or checkpoint on that a range of offsets has, read backwards.
fn begin_before(
    log: &dyn EventLog,
    source: &TopicPartition,
    range: OffsetRange,
) -> Result<Option<Vec<Record>>, ReplayError> {
    let mut found: Vec<Record> = Vec::new();
    let mut next = range.next;
    while next > range.first {
        let first = (next - BACK_RECORDS).max(range.first);
        let mut reader = PartitionReader::open(log, source.clone(), OffsetRange { first, next })?;
        let mut records = Vec::new();
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        let new = records.len();
        records.append(&mut found);
        found = records;
        // A checkpoint must be whole before the entry that is asked for: its first part is looked for from the end on.
        let begins = |record: &Record| match decode_journal_entry(&record.value).map(|entry| entry.input) {
            Ok(Input::Started(_)) => true,
            Ok(Input::Checkpoint(Checkpoint { part: 0, parts, .. })) => {
                record.offset + i64::from(parts) < range.next && can_be_read(&found, record.offset, parts)
            }
            _ => false,
        };
        if let Some(at) = found[..new].iter().rposition(begins) {
            return Ok(Some(found.split_off(at)));
        }
        next = first;
    }
    Ok(None)
}

/// Whether the checkpoint that begins at an offset is of a version that this software reads.
fn can_be_read(records: &[Record], offset: i64, parts: i32) -> bool {
    state_at(records, offset, parts).is_some()
}

fn state_at(records: &[Record], offset: i64, parts: i32) -> Option<Scheduler> {
    let at = records.iter().position(|record| record.offset == offset)?;
    let mut state = Vec::new();
    let mut entries = records[at..].iter().filter_map(|record| decode_journal_entry(&record.value).ok());
    for _ in 0..parts {
        let Input::Checkpoint(part) = entries.next()?.input else { return None };
        state.extend(part.state.0);
    }
    Scheduler::from_checkpoint(&state).ok()
}

/// The scheduler in the state before the entry at an offset; the records begin with a start or a checkpoint.
fn lead_up(
    records: Vec<Record>,
    offset: i64,
    refused: impl Fn(&JournalEntry, String) -> ReplayError,
) -> Result<Scheduler, ReplayError> {
    let first = records.first().and_then(|record| decode_journal_entry(&record.value).ok());
    let mut scheduler = match (first.map(|entry| entry.input), records.first()) {
        (Some(Input::Checkpoint(checkpoint)), Some(record)) => {
            state_at(&records, record.offset, checkpoint.parts).unwrap_or_default()
        }
        _ => Scheduler::new(),
    };
    let mut decisions = Vec::new();
    for record in records.iter().take_while(|record| record.offset < offset) {
        let Ok(entry) = decode_journal_entry(&record.value) else { continue };
        decisions.clear();
        let step = scheduler.step(entry.at_ns, &entry.input, &mut decisions);
        step.map_err(|error| refused(&entry, error.to_string()))?;
        if decisions != entry.decisions {
            let words = "this software decides otherwise; verify the log with `warptape replay verify`";
            return Err(refused(&entry, words.to_owned()));
        }
    }
    Ok(scheduler)
}
