//! Follows a journal up to a transaction: finds its `Sealed` entry and passes on the items before it.

use std::sync::Arc;

use warptape_eventlog::OffsetRange;
use warptape_schemas::journal::{Input, SealedPartition};

use super::context::Context;
use crate::entries::{Begin, Entries};
use crate::history::{HistoryReader, Item, Transaction};
use crate::{Phase, ReplayError, ReplayProgress};

/// Greatest number of entries searched for a transaction, from the time of its seal on.
const SAME_TIME_ENTRIES_MAX: usize = 100_000;
/// Resolution of create times in ns: logs keep at least milliseconds.
const CREATE_TIME_NS: i64 = 1_000_000;
/// Greatest number of checkpoints by which a history may begin earlier, so that it covers a record's waits since its
/// publication.
const EARLIER_BEGINS_MAX: usize = 4;
/// Entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 4_096;

/// A `Sealed` entry found in a journal.
pub(crate) struct FoundSeal {
    /// Offset of the entry.
    pub(crate) offset: i64,
    /// Sequence of the entry, which identifies the transaction.
    pub(crate) sequence: i64,
    /// The entry's account of the requested partition.
    pub(crate) account: SealedPartition,
}

/// Finds the `Sealed` entry that contains records of a partition and has the create time of their outputs. Returns
/// `None` if there is none, for example because a broker assigns create times.
pub(crate) fn find_sealed<'j, 'l>(
    journals: &'j [Entries<'l>],
    sealed_ns: i64,
    is_it: impl Fn(&SealedPartition) -> bool,
) -> Result<Option<(&'j Entries<'l>, FoundSeal)>, ReplayError> {
    for entries in journals {
        let first = entries.lower_bound(|entry| entry.at_ns < sealed_ns)?;
        let mut reader = entries.read(OffsetRange { first, next: entries.range.next })?;
        for _ in 0..SAME_TIME_ENTRIES_MAX {
            let Some((offset, entry)) = reader.next()? else { break };
            if entry.at_ns > sealed_ns.saturating_add(CREATE_TIME_NS) {
                break;
            }
            if let Some(account) = account_of(&entry.input, &is_it) {
                return Ok(Some((entries, FoundSeal { offset, sequence: entry.sequence, account })));
            }
        }
    }
    Ok(None)
}

/// Finds, in all journals, the first `Sealed` entry that contains records of a partition, starting at a time of the
/// process's clock. Returns `None` if there is none near that time.
pub(crate) fn find_sealed_from<'j, 'l>(
    journals: &'j [Entries<'l>],
    from_ns: i64,
    is_it: impl Fn(&SealedPartition) -> bool,
) -> Result<Option<(&'j Entries<'l>, FoundSeal)>, ReplayError> {
    let mut found: Option<(i64, _)> = None;
    for entries in journals {
        let first = entries.lower_bound(|entry| entry.at_ns < from_ns)?;
        let mut reader = entries.read(OffsetRange { first, next: entries.range.next })?;
        for _ in 0..SAME_TIME_ENTRIES_MAX {
            let Some((offset, entry)) = reader.next()? else { break };
            if found.as_ref().is_some_and(|(at_ns, _)| *at_ns <= entry.at_ns) {
                break;
            }
            if let Some(account) = account_of(&entry.input, &is_it) {
                let sealed = (entries, FoundSeal { offset, sequence: entry.sequence, account });
                found = Some((entry.at_ns, sealed));
                break;
            }
        }
    }
    Ok(found.map(|(_, sealed)| sealed))
}

/// Finds, in all journals, the latest `Sealed` entry that contains records of a partition. If records were sealed
/// twice, the first transaction was not committed.
pub(crate) fn find_sealed_anywhere<'j, 'l>(
    journals: &'j [Entries<'l>],
    is_it: impl Fn(&SealedPartition) -> bool,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Option<(&'j Entries<'l>, FoundSeal)>, ReplayError> {
    let length = |entries: &Entries<'_>| (entries.range.next - entries.range.first) as u64;
    let total = journals.iter().map(length).sum();
    let mut done = 0;
    let mut found: Option<(i64, _)> = None;
    for entries in journals {
        let mut reader = entries.read(entries.range)?;
        while let Some((offset, entry)) = reader.next()? {
            done += 1;
            if done % PROGRESS_ENTRIES == 0 {
                progress(ReplayProgress { phase: Phase::Journal, done, total });
            }
            if let Some(account) = account_of(&entry.input, &is_it) {
                let sealed = (entries, FoundSeal { offset, sequence: entry.sequence, account });
                found = found.filter(|(at_ns, _)| *at_ns > entry.at_ns).or(Some((entry.at_ns, sealed)));
            }
        }
    }
    Ok(found.map(|(_, sealed)| sealed))
}

fn account_of(input: &Input, is_it: impl Fn(&SealedPartition) -> bool) -> Option<SealedPartition> {
    let Input::Sealed(sealed) = input else { return None };
    sealed.partitions.iter().find(|account| is_it(account)).copied()
}

/// Returns the beginning of a history that covers a whole transaction. It may be some checkpoints earlier if the
/// transaction's record was published before. `None` if that beginning is not in the journal.
pub(crate) fn begin_of(
    entries: &Entries<'_>,
    sealed: &FoundSeal,
    created_ns: i64,
) -> Result<Option<Begin>, ReplayError> {
    let mut before = sealed.offset + 1;
    let mut begin = loop {
        match entries.begin_before(before)? {
            Some(begin) if !is_early(&begin, &sealed.account) => before = begin.offset,
            Some(begin) => break begin,
            None => return Ok(None),
        }
    };
    for _ in 0..EARLIER_BEGINS_MAX {
        let first = entries.first_from(begin.offset)?;
        let is_behind = first.is_some_and(|(_, entry)| entry.at_ns > created_ns);
        if !is_behind || begin.checkpoint.is_none() {
            break;
        }
        let Some(earlier) = entries.begin_before(begin.offset)? else { break };
        begin = earlier;
    }
    Ok(Some(begin))
}

/// True if none of a transaction's records had arrived at this beginning.
fn is_early(begin: &Begin, account: &SealedPartition) -> bool {
    let Some((_, scheduler)) = &begin.checkpoint else { return true };
    let mut loads = scheduler.partition_loads();
    let load = loads.find(|load| load.partition == account.partition && load.groups > 0);
    load.is_none_or(|load| load.position <= account.first_offset)
}

/// Passes on the items from a beginning on, each with its context, until `is_enough` returns true.
pub(crate) fn follow(
    entries: &Entries<'_>,
    begin: Option<Begin>,
    is_enough: &mut dyn FnMut(&Context, &Item) -> bool,
) -> Result<(), ReplayError> {
    let mut reader = HistoryReader::open(entries, begin, entries.range.next)?;
    let mut context = Context::default();
    while let Some((_, items)) = reader.next()? {
        for item in items {
            if is_enough(&context, &item) {
                return Ok(());
            }
            context.follow(&item);
        }
    }
    Ok(())
}

/// Returns the transaction of a `Sealed` entry, with its context. `each` gets the items before it.
pub(crate) fn follow_to(
    entries: &Entries<'_>,
    begin: Option<Begin>,
    sealed_sequence: i64,
    each: &mut dyn FnMut(&Item),
) -> Result<(Context, Arc<Transaction>), ReplayError> {
    let mut found = None;
    follow(entries, begin, &mut |context, item| {
        if let Item::Transaction(transaction) = item
            && transaction.sealed_sequence == sealed_sequence
        {
            found = Some((context.clone(), transaction.clone()));
            return true;
        }
        each(item);
        false
    })?;
    Ok(found.expect("a history gives every transaction whose seal it was stepped with"))
}
