//! The part of a journal's verification that needs no scheduler: entries are decoded, and each is compared with the hash of the one before it.
//!
//! ```text
//!  thread:  log ──► fetch ──► decode, hash ──┐
//!                                            │ a few fetches
//!  caller:                                   └──► step, compare
//! ```
//!
//! An entry's hash is compared with the one that the entry before it has, not with one that was computed for that: so a thread can run
//! ahead of the comparison, which stops at the first difference either way.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use warptape_eventlog::{LogError, Record};
use warptape_schemas::journal::JournalEntry;
use warptape_schemas::{ChainError, DecodeError, GENESIS_HASH, check_chain, decode_journal_entry};

use crate::partition_reader::PartitionReader;

/// Fetches that are read ahead.
const FETCHES_AHEAD_MAX: usize = 2;

/// A record of the journal, decoded.
pub(crate) struct ReadEntry {
    pub(crate) record: Record,
    pub(crate) entry: Result<JournalEntry, DecodeError>,
    /// What the chain of hashes says of it.
    pub(crate) chain: Result<(), ChainError>,
}

/// The hashes of a partition of the journal.
pub(crate) struct HashChain {
    /// Of the entry before; `None` before the first entry of a journal whose beginning was removed.
    previous: Option<String>,
}

impl HashChain {
    /// Before a partition's first entry, which is at an offset.
    pub(crate) fn begin(first_offset: i64) -> Self {
        Self { previous: (first_offset == 0).then(|| GENESIS_HASH.to_owned()) }
    }

    /// Reads the next record.
    pub(crate) fn read(&mut self, record: Record) -> ReadEntry {
        let entry = decode_journal_entry(&record.value);
        let chain = match (&self.previous, &entry) {
            (Some(previous), Ok(_)) => check_chain(previous, &record.value),
            _ => Ok(()),
        };
        if let Ok(entry) = &entry {
            let previous = self.previous.get_or_insert_default();
            previous.clone_from(&entry.hash);
        }
        ReadEntry { record, entry, chain }
    }
}

/// Reads a partition to the end of the reader's range on a thread of its own, and gives `check` the entries fetch by fetch, until it says
/// that it has a difference.
pub(crate) fn read_ahead<D>(
    reader: PartitionReader,
    chain: HashChain,
    mut check: impl FnMut(Vec<ReadEntry>) -> Option<D>,
) -> Result<Option<D>, LogError> {
    thread::scope(|scope| {
        let (sender, fetches) = sync_channel(FETCHES_AHEAD_MAX);
        scope.spawn(move || send_all(reader, chain, &sender));
        // The receiver goes before the thread is waited for, which then stops at its next fetch.
        for fetch in fetches {
            if let Some(difference) = check(fetch?) {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    })
}

fn send_all(
    mut reader: PartitionReader,
    mut chain: HashChain,
    sender: &SyncSender<Result<Vec<ReadEntry>, LogError>>,
) {
    loop {
        let fetch = reader
            .next_fetch()
            .map(|records| -> Vec<_> { records.into_iter().map(|record| chain.read(record)).collect() });
        let is_end = fetch.as_ref().is_ok_and(Vec::is_empty);
        let is_failed = fetch.is_err();
        if is_end || sender.send(fetch).is_err() || is_failed {
            return;
        }
    }
}
