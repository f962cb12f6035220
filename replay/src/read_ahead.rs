//! Reads a journal partition ahead of its comparison, on a thread that also checks the hashes of its entries.
//!
//! ```text
//!  thread:  log ──► fetch ──► hash ──┐        ┌──► freed
//!                                    │ a few  │
//!  caller:                           └──► decode, step, compare
//! ```
//!
//! The thread compares an entry's hash with the hash recorded in the previous entry, so it needs no result from the
//! caller. The caller returns used records, because memory is freed fastest on the thread that allocated it.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use warptape_eventlog::{EventLog, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::{GENESIS_HASH, check_chain, recorded_hash};

use crate::partition_reader::PartitionReader;

/// Greatest number of fetches by which the thread may be ahead.
const FETCHES_AHEAD: usize = 4;

/// Consecutive records of a journal.
pub(crate) struct Fetch {
    pub(crate) records: Vec<Record>,
    /// Number of leading records whose hashes were checked and follow from the previous records. The caller checks the
    /// others.
    pub(crate) chained: usize,
}

/// Passes all records of a journal partition to `take`, fetch by fetch, until `take` breaks. Returns after the thread
/// has finished its current read.
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
            // The thread may have read everything and ended.
            _ = used.send(fetch.records);
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Reads until the end, an error, or until the caller stops.
fn read(
    log: &dyn EventLog,
    source: TopicPartition,
    range: OffsetRange,
    fetches: &SyncSender<Result<Fetch, LogError>>,
    freed: &Receiver<Vec<Record>>,
) {
    // The previous hash is unknown if earlier entries were removed.
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
