//! Reads a partition of the journal ahead of what is made of it, on a thread that compares the hashes of its entries as well.
//!
//! ```text
//!  thread:  log ──► fetch ──► hash ──┐        ┌──► freed
//!                                    │ a few  │
//!  caller:                           └──► decode, step, compare
//! ```
//!
//! The thread compares an entry's hash with the one recorded in the entry before, so it needs no result of the caller. Records go back to the thread, because memory is freed quickest where it was taken.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::{GENESIS_HASH, check_chain, recorded_hash};

use crate::partition_reader::PartitionReader;

/// Fetches that the thread is ahead at most.
const FETCHES_AHEAD: usize = 4;

/// Records of a journal that follow each other.
pub(crate) struct Fetch {
    pub(crate) records: Vec<Record>,
    /// The first so many follow from the record before them by their hash. The caller checks the others.
    pub(crate) chained: usize,
}

/// Gives all records of a partition of the journal, fetch by fetch, until `take` breaks that off. It returns once the thread has read what it is at.
pub(crate) fn for_each_fetch<B>(
    log: &dyn EventLog,
    source: TopicPartition,
    range: OffsetRange,
    mut take: impl FnMut(&Fetch) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, LogError> {
    thread::scope(|scope| {
        let (fetches, taken) = sync_channel(FETCHES_AHEAD);
        let (used, freed) = channel();
        scope.spawn(move || read(log, source, range, &fetches, &freed));
        for fetch in taken {
            let fetch = fetch?;
            if let flow @ ControlFlow::Break(_) = take(&fetch) {
                return Ok(flow);
            }
            // The thread may have read all there is, and be gone.
            _ = used.send(fetch.records);
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Reads until the end, an error, or until nobody wants more.
fn read(
    log: &dyn EventLog,
    source: TopicPartition,
    range: OffsetRange,
    fetches: &SyncSender<Result<Fetch, LogError>>,
    freed: &Receiver<Vec<Record>>,
) {
    // Not known where entries before the first were removed.
    let mut previous_hash = (range.first == 0).then_some(GENESIS_HASH);
    let mut reader = match PartitionReader::open(log, source, range) {
        Ok(reader) => reader,
        Err(error) => {
            _ = fetches.send(Err(error));
            return;
        }
    };
    loop {
        freed.try_iter().for_each(drop);
        let fetch = reader.next_fetch().map(|records| {
            let is_chained = |record: &&Record| {
                let before = std::mem::replace(&mut previous_hash, recorded_hash(&record.value));
                before.is_some_and(|before| check_chain(before, &record.value).is_ok())
            };
            let chained = records.iter().take_while(is_chained).count();
            previous_hash = records.last().and_then(|last| recorded_hash(&last.value));
            Fetch { records, chained }
        });
        let is_last = fetch.as_ref().is_ok_and(|fetch| fetch.records.is_empty());
        let is_failed = fetch.is_err();
        if is_last || fetches.send(fetch).is_err() || is_failed {
            return;
        }
    }
}
