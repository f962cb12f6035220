//! Why a batch was what it was: what it was made of, why it left then and for that lane, and what became of it.

use serde::Serialize;
use warptape_eventlog::{EventLog, OffsetRange};
use warptape_scheduler::Explanation;
use warptape_schemas::journal::{Decision, Input};

use super::facts::BatchFacts;
use super::follow::follow;
use super::signal::{NO_STATE, batch_facts, explain_at};
use super::waits::{Step, Wait};
use crate::entries::Entries;
use crate::history::{Attempt, Batch, BatchEnd, Item, Part};
use crate::{Phase, Progress, ReplayError};

/// Offsets that are read at once on the way back to a batch.
const BACK_RECORDS: i64 = 4_096;

/// What led to a batch, and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct BatchChain {
    /// Partition of the journal.
    pub journal: i32,
    /// The batch.
    pub batch: BatchFacts,
    /// Its rows by group, oldest group first.
    pub parts: Vec<PartFacts>,
    /// Why it was dispatched then; `None` where the state that this was decided on is not known.
    pub explanation: Option<Explanation>,
    /// What its oldest row waited for from its arrival until the batch came back.
    pub waits: Vec<Wait>,
    /// The sum of the waits, in nanoseconds.
    pub total_ns: i64,
    /// Sequence of the first entry that sealed records of it; `None` where none did.
    pub sealed_sequence: Option<i64>,
    /// When, ns since the epoch.
    pub sealed_ns: Option<i64>,
    /// Attempts to commit that transaction.
    pub attempts: Vec<Attempt>,
    /// What is not known, in words.
    pub unknown: Vec<String>,
}

/// Rows of a group in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PartFacts {
    /// Partition of the group.
    pub partition: i32,
    /// The group.
    pub group: i32,
    /// Its epoch.
    pub epoch: i64,
    /// Rows.
    pub rows: i64,
    /// First offset of the arrivals that they are of; `None` where it is not known.
    pub first_offset: Option<i64>,
    /// Offset behind the last.
    pub next_offset: Option<i64>,
    /// When the first of them came, ns since the epoch.
    pub came_ns: Option<i64>,
}

/// Explains a batch of the process life that began last in a partition of the journal.
///
/// # Errors
/// If the log cannot be read, or the life has no such batch.
pub fn why_batch(
    log: &dyn EventLog,
    journal: &str,
    partition: i32,
    number: i64,
    progress: &mut dyn FnMut(Progress),
) -> Result<BatchChain, ReplayError> {
    let entries = Entries::open(log, journal, partition)?;
    let found = find_batch(&entries, number, progress)?;
    let (offset, sequence) =
        found.ok_or_else(|| ReplayError::NoBatch { url: log.url(), partition, batch: number })?;
    let begin = entries.begin_early(offset)?;
    let (mut batch, mut facts, mut transaction) = (None, None, None);
    follow(&entries, begin, &mut |context, item| match item {
        Item::Batch(ended) if ended.at.sequence == sequence && ended.dispatch.batch == number => {
            facts = Some(batch_facts(ended, context, (-1, -1)));
            batch = Some(ended.clone());
            !matches!(ended.end, BatchEnd::Completed { .. })
        }
        Item::Transaction(sealed) if facts.is_some() => {
            let mut batches = sealed.partitions.iter().flat_map(|part| &part.batches);
            let has = batches.any(|other| other.at.sequence == sequence && other.dispatch.batch == number);
            if has {
                transaction = Some(sealed.clone());
            }
            has
        }
        // Another life began: nothing more becomes of it.
        Item::Life(_) => facts.is_some(),
        _ => false,
    })?;
    let (batch, facts) = batch.zip(facts).expect("a history gives every batch that it was stepped with");
    let is_it = |decision: &Decision| matches!(decision, Decision::Dispatch(one) if one.batch == number);
    let explained = explain_at(&entries, sequence, &is_it)?;
    let mut unknown = Vec::new();
    if explained.is_none() {
        unknown.push(NO_STATE.to_owned());
    }
    if transaction.is_none() {
        unknown.push(
            "which transaction has its records: none that the journal tells of was sealed with them"
                .to_owned(),
        );
    }
    let (waits, total_ns) = waits(&batch);
    Ok(BatchChain {
        journal: partition,
        parts: batch.parts.iter().map(part_facts).collect(),
        explanation: explained.and_then(|(explanation, _)| explanation),
        waits,
        total_ns,
        sealed_sequence: transaction.as_ref().map(|transaction| transaction.sealed_sequence),
        sealed_ns: transaction.as_ref().and_then(|transaction| transaction.sealed_ns),
        attempts: transaction.map(|transaction| transaction.attempts.clone()).unwrap_or_default(),
        unknown,
        batch: facts,
    })
}

/// Offset and sequence of the entry that dispatched a batch in the last life, looked for from the end on.
fn find_batch(
    entries: &Entries<'_>,
    number: i64,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<(i64, i64)>, ReplayError> {
    let mut next = entries.range.next;
    let total = (entries.range.next - entries.range.first) as u64;
    while next > entries.range.first {
        let first = (next - BACK_RECORDS).max(entries.range.first);
        let mut reader = entries.read(OffsetRange { first, next })?;
        let (mut found, mut is_older) = (None, false);
        while let Some((offset, entry)) = reader.next()? {
            if matches!(entry.input, Input::Started(_)) {
                (found, is_older) = (None, true);
            }
            let is_it =
                |decision: &Decision| matches!(decision, Decision::Dispatch(one) if one.batch == number);
            if entry.decisions.iter().any(is_it) {
                found = Some((offset, entry.sequence));
            }
        }
        if found.is_some() || is_older {
            return Ok(found);
        }
        progress(Progress { phase: Phase::Journal, done: (entries.range.next - first) as u64, total });
        next = first;
    }
    Ok(None)
}

fn part_facts(part: &Part) -> PartFacts {
    let offsets = || part.pieces.iter().filter_map(|piece| piece.arrival.offsets);
    PartFacts {
        partition: part.partition,
        group: part.group,
        epoch: part.epoch,
        rows: part.rows,
        first_offset: offsets().map(|(first, _)| first).min(),
        next_offset: offsets().map(|(_, next)| next).max(),
        came_ns: part.pieces.iter().map(|piece| piece.arrival.at_ns).min(),
    }
}

fn waits(batch: &Batch) -> (Vec<Wait>, i64) {
    let (oldest_ns, dispatched_ns) = (batch.dispatch.oldest_arrival_ns, batch.at.at_ns);
    let mut waits = vec![(Step::Queue, dispatched_ns - oldest_ns)];
    if let BatchEnd::Completed { at, service_ns, lane_free_ns } = batch.end {
        let flight = super::waits::flight(dispatched_ns, at.at_ns, service_ns, lane_free_ns);
        waits.extend([Step::Lane, Step::Service, Step::Handover].into_iter().zip(flight));
    }
    let waits: Vec<Wait> =
        waits.into_iter().filter(|(_, ns)| *ns != 0).map(|(step, ns)| Wait { step, ns }).collect();
    let total_ns = waits.iter().map(|wait| wait.ns).sum();
    (waits, total_ns)
}
