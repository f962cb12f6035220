//! Explains a batch: its rows, the reasons for its time and its lane, and its end.

use std::collections::BTreeMap;

use serde::Serialize;
use warptape_eventlog::{EventLog, OffsetRange};
use warptape_scheduler::Explanation;
use warptape_schemas::journal::{Decision, Input, JournalEntry, Started};
use warptape_stages::StageConfig;

use super::dealt::Dealer;
use super::facts::BatchFacts;
use super::follow::follow;
use super::signal::{NO_STATE, batch_facts, config_of, explain_at};
use super::waits::{Step, Wait};
use crate::entries::{BACK_RECORDS, Entries};
use crate::history::{Attempt, Batch, BatchEnd, Item, Part, Piece};
use crate::{Phase, ReplayError, ReplayProgress, VerifyOptions};

/// Shortest leap, in entries; shorter distances are read entry by entry.
const LEAP_RECORDS_MIN: i64 = 256;

/// Greatest number of arrivals in a batch whose ticks are counted by symbol, because each is read again.
const ARRIVALS_DEALT_MAX: usize = 256;

/// The causes and the end of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct BatchChain {
    /// Partition of the journal.
    pub journal: i32,
    /// The batch.
    pub batch: BatchFacts,
    /// Rows of the batch by group, oldest group first.
    pub parts: Vec<PartFacts>,
    /// Reason for the time of the dispatch; `None` if the scheduler's state at the decision is unknown.
    pub explanation: Option<Explanation>,
    /// Waits of the batch's oldest row, from its arrival until the batch came back.
    pub waits: Vec<Wait>,
    /// The sum of the waits, in nanoseconds.
    pub total_ns: i64,
    /// Sequence of the first entry that sealed records of the batch; `None` if there is none.
    pub sealed_sequence: Option<i64>,
    /// Time of the sealing entry, ns since the epoch.
    pub sealed_ns: Option<i64>,
    /// Attempts to commit the sealing transaction.
    pub attempts: Vec<Attempt>,
    /// Descriptions of facts that are unknown.
    pub unknown: Vec<String>,
}

/// Rows of one group in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartFacts {
    /// Partition of the group.
    pub partition: i32,
    /// The group.
    pub group: i32,
    /// Epoch of the group's placement.
    pub epoch: i64,
    /// Number of rows.
    pub rows: i64,
    /// Offset of the rows' first tick record; `None` if it is unknown.
    pub first_offset: Option<i64>,
    /// Offset after the rows' last tick record; `None` if it is unknown.
    pub next_offset: Option<i64>,
    /// Time at which the first row arrived, ns since the epoch; `None` if it is unknown.
    pub came_ns: Option<i64>,
    /// Number of ticks by symbol, most first; `None` if the log no longer has them. Rows that move a watermark have no
    /// symbol.
    pub symbols: Option<Vec<SymbolRows>>,
}

/// Ticks of one symbol in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SymbolRows {
    /// The symbol.
    pub symbol: String,
    /// Number of ticks of the symbol.
    pub rows: i64,
}

/// Explains a batch of the last process life in a partition of the journal.
///
/// # Errors
/// If the log cannot be read, or the life has no such batch.
pub fn why_batch(
    log: &dyn EventLog,
    options: &VerifyOptions,
    partition: i32,
    number: i64,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<BatchChain, ReplayError> {
    let entries = Entries::open(log, &options.journal, partition)?;
    let found = find_batch(&entries, number, progress)?;
    let (offset, sequence) =
        found.ok_or_else(|| ReplayError::NoBatch { url: log.url(), partition, batch: number })?;
    let begin = entries.begin_early(offset)?;
    let (mut batch, mut facts, mut transaction, mut config) = (None, None, None, None);
    follow(&entries, begin, &mut |context, item| match item {
        Item::Batch(ended) if ended.at.sequence == sequence && ended.dispatch.batch == number => {
            facts = Some(batch_facts(ended, context, (-1, -1)));
            config = config_of(context);
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
        // Another life has begun, so the batch has no further entries.
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
            "the transaction with its records: no transaction in the journal was sealed with them".to_owned(),
        );
    }
    let (waits, total_ns) = waits(&batch);
    let mut parts: Vec<PartFacts> = batch.parts.iter().map(part_facts).collect();
    if let Some(config) = config {
        tell_symbols(&mut Dealer::new(log, &options.sources), &config, &batch.parts, &mut parts)?;
    }
    Ok(BatchChain {
        journal: partition,
        parts,
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

/// Finds the offset and sequence of the entry that dispatched a batch in the last life.
///
/// The search for an old batch skips entries. A step dispatches at most as many batches as all lanes may have in
/// flight. A batch's number therefore implies a minimum number of earlier entries. Numbers rise within a life, so the
/// batch is then found by bisection of the skipped entries.
fn find_batch(
    entries: &Entries<'_>,
    number: i64,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Option<(i64, i64)>, ReplayError> {
    let most_a_step = batches_a_step(entries)?;
    let mut next = entries.range.next;
    let total = (entries.range.next - entries.range.first) as u64;
    while next > entries.range.first {
        let first = (next - BACK_RECORDS).max(entries.range.first);
        let mut reader = entries.read(OffsetRange { first, next })?;
        let (mut found, mut earliest, mut is_older) = (None, None, false);
        while let Some((offset, entry)) = reader.next()? {
            if matches!(entry.input, Input::Started(_)) {
                (found, earliest, is_older) = (None, None, true);
            }
            let mut batches = entry.decisions.iter().filter_map(batch_of).peekable();
            earliest = earliest.or(batches.peek().map(|batch| (offset, *batch)));
            if batches.any(|batch| batch == number) {
                found = Some((offset, entry.sequence));
            }
        }
        if found.is_some() || is_older {
            return Ok(found);
        }
        if earliest.is_some_and(|(_, batch)| batch <= number) {
            // Batch numbers rise, so the batch would have been here.
            return Ok(None);
        }
        progress(ReplayProgress { phase: Phase::Journal, done: (entries.range.next - first) as u64, total });
        next = first;
        // Leaps over the entries that must precede the first batch seen, while that batch is later than the wanted one.
        let (Some(most_a_step), Some(mut seen)) = (most_a_step, earliest) else { continue };
        while seen.1 > number {
            let leapt = seen.0.saturating_sub(seen.1 / most_a_step).max(entries.range.first);
            if seen.0 - leapt < LEAP_RECORDS_MIN {
                next = next.min(seen.0);
                break;
            }
            let here = first_batch(entries, OffsetRange { first: leapt, next: seen.0 })?;
            match here {
                Some((_, batch)) if batch <= number => {
                    return batch_within(entries, OffsetRange { first: leapt, next: seen.0 }, number);
                }
                Some(here) => seen = here,
                None => seen.0 = leapt,
            }
        }
    }
    Ok(None)
}

/// Returns the number of a dispatched batch; `None` for other decisions.
fn batch_of(decision: &Decision) -> Option<i64> {
    match decision {
        Decision::Dispatch(dispatch) => Some(dispatch.batch),
        _ => None,
    }
}

/// Returns the greatest number of batches that a step of the last life can dispatch; `None` if the life's beginning is
/// gone.
fn batches_a_step(entries: &Entries<'_>) -> Result<Option<i64>, ReplayError> {
    let Some(begin) = entries.begin_before(entries.range.next)? else { return Ok(None) };
    let started = match begin.checkpoint {
        Some((started, _)) => Some(started),
        None => entries.first_from(begin.offset)?.and_then(|(_, entry)| match entry.input {
            Input::Started(started) => Some(*started),
            _ => None,
        }),
    };
    let most = |started: Started| started.lanes.len() as i64 * i64::from(started.scheduler.lane_batches_max);
    Ok(started.map(most).filter(|most| *most > 0))
}

/// Returns the first batch dispatched within a range of offsets, with its offset.
fn first_batch(entries: &Entries<'_>, range: OffsetRange) -> Result<Option<(i64, i64)>, ReplayError> {
    let mut reader = entries.read(range)?;
    while let Some((offset, entry)) = reader.next()? {
        if let Some(batch) = entry.decisions.iter().find_map(batch_of) {
            return Ok(Some((offset, batch)));
        }
    }
    Ok(None)
}

/// Returns the entry that dispatched a batch, searched among offsets of one life.
fn batch_within(
    entries: &Entries<'_>,
    range: OffsetRange,
    number: i64,
) -> Result<Option<(i64, i64)>, ReplayError> {
    // Finds the last offset after which the first batch is the wanted one or an earlier one.
    let OffsetRange { first: mut low, next: mut high } = range;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match first_batch(entries, OffsetRange { first: middle, next: range.next })? {
            Some((_, batch)) if batch <= number => low = middle,
            _ => high = middle,
        }
    }
    let found = entries.first_from(low)?;
    let is_it = |entry: &JournalEntry| entry.decisions.iter().filter_map(batch_of).any(|one| one == number);
    Ok(found.filter(|(_, entry)| is_it(entry)).map(|(offset, entry)| (offset, entry.sequence)))
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
        symbols: None,
    }
}

/// Counts the ticks of each part by symbol, if the log has all of them. Each arrival is dealt once, even if several
/// parts have rows of it.
fn tell_symbols(
    dealer: &mut Dealer<'_>,
    config: &StageConfig,
    parts: &[Part],
    facts: &mut [PartFacts],
) -> Result<(), ReplayError> {
    let is_known = |part: &Part| {
        let rows = part.pieces.iter().fold(0, |sum: i64, piece| sum.saturating_add(piece.rows));
        rows >= part.rows
    };
    // The key is partition and first offset: no two arrivals with rows have the same first offset.
    let mut arrivals: BTreeMap<(i32, i64), Vec<(usize, &Piece)>> = BTreeMap::new();
    for (index, part) in parts.iter().enumerate().filter(|(_, part)| is_known(part)) {
        for piece in &part.pieces {
            let Some((first, _)) = piece.arrival.offsets else { return Ok(()) };
            arrivals.entry((part.partition, first)).or_default().push((index, piece));
        }
    }
    if arrivals.len() > ARRIVALS_DEALT_MAX {
        return Ok(());
    }
    let mut counts: Vec<Option<BTreeMap<String, i64>>> =
        parts.iter().map(|part| is_known(part).then(BTreeMap::new)).collect();
    for pieces in arrivals.into_values() {
        for (index, piece) in pieces {
            let Some(dealt) = dealer.deal(config, &piece.arrival)? else {
                counts[index] = None;
                continue;
            };
            let Some(counts) = &mut counts[index] else { continue };
            let rows = piece.from..piece.from.saturating_add(piece.rows);
            for symbol in dealt.symbols_of(parts[index].group, rows) {
                *counts.entry(symbol.to_owned()).or_default() += 1;
            }
        }
    }
    for (facts, counts) in facts.iter_mut().zip(counts) {
        facts.symbols = counts.map(|counts| {
            let mut found: Vec<SymbolRows> =
                counts.into_iter().map(|(symbol, rows)| SymbolRows { symbol, rows }).collect();
            found.sort_by_key(|symbol| std::cmp::Reverse(symbol.rows));
            found
        });
    }
    Ok(())
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
