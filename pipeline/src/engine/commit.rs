//! The commit thread: writes what the engine hands it as one transaction, while the engine goes on.

use std::borrow::Cow;

use crossbeam_channel::{Receiver, Sender, bounded};
use warptape_eventlog::{LogError, NewRecord, TopicPartition};
use warptape_schemas::journal::SealedPartition;
use warptape_schemas::{Snapshot, encode_snapshot};
use warptape_stages::MergedSignals;

use super::dead_letter_headers::dead_letter_headers;
use super::ownership::Ownership;
use super::snapshots::SnapshotPlace;
use super::transaction::EngineTransaction;
use super::worker::Worker;
use super::{Clock, EngineConfig, Topics};
use crate::transaction::{Outcome, TransactionWriter};

/// Everything one transaction holds.
#[derive(Debug, Default)]
pub struct CommitRequest {
    /// When it was sealed: the create time of all records but journal entries, which have their own.
    pub(super) sealed_at_ns: i64,
    pub(super) sealed: Vec<Sealed>,
    /// Times and bytes of journal entries.
    pub(super) entries: Vec<(i64, Vec<u8>)>,
    /// Next-to-read source offsets.
    pub offsets: Vec<(TopicPartition, i64)>,
    /// What to count when it is committed.
    pub receipt: Receipt,
}

/// What complete records of a partition caused.
#[derive(Debug, Default)]
pub(super) struct Sealed {
    pub(super) partition: i32,
    /// Which of the times that this process was assigned the partition.
    pub(super) assignment: u64,
    /// Digest of the records that were sealed with this.
    pub(super) ticks_digest: u64,
    pub(super) signals: MergedSignals,
    pub(super) asides: Vec<Aside>,
    /// Key and encoded record.
    pub(super) snapshots: Vec<(String, Vec<u8>)>,
    /// Key and encoded record.
    pub(super) risk_results: Vec<(String, Vec<u8>)>,
}

/// A record beside the main way.
#[derive(Debug)]
pub(super) struct Aside {
    /// Source offset of its cause.
    pub(super) offset: i64,
    pub(super) topic: AsideTopic,
    pub(super) bytes: Vec<u8>,
}

/// Which topic an aside goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsideTopic {
    Late,
    DeadLetter,
}

/// What a commit makes true.
#[derive(Debug, Default)]
pub struct Receipt {
    /// Signals by the time at which the record that caused them was read.
    pub signals_by_read: Vec<(i64, u64)>,
    /// Whether source offsets move: false for a commit of journal entries alone.
    pub advances: bool,
}

impl CommitRequest {
    /// Signals, late ticks, dead letters, snapshots, risk results and the journal entries of a node, in the order they are written.
    /// The journal's partition is that of the process's number.
    pub fn records<'a>(
        &'a self,
        topics: &'a Topics,
        node: &'a str,
        ordinal: i32,
    ) -> impl Iterator<Item = NewRecord<'a>> {
        let record =
            |topic: &'a str, partition, timestamp_ns, key: Option<&'a [u8]>, value: &'a [u8]| NewRecord {
                topic: topic.into(),
                partition,
                key: key.map(Into::into),
                headers: Cow::default(),
                timestamp_ns,
                value: value.into(),
            };
        let at_ns = self.sealed_at_ns;
        let sealed = self.sealed.iter().flat_map(move |sealed| {
            let partition = sealed.partition;
            let signals = sealed.signals.iter().map(move |signal| {
                record(&topics.signals, partition, at_ns, Some(signal.symbol), signal.bytes)
            });
            let asides = sealed.asides.iter().map(move |aside| match aside.topic {
                AsideTopic::Late => record(&topics.late, partition, at_ns, None, &aside.bytes),
                AsideTopic::DeadLetter => NewRecord {
                    headers: dead_letter_headers(&aside.bytes).into(),
                    ..record(&topics.dead_letter, partition, at_ns, None, &aside.bytes)
                },
            });
            let snapshots = sealed.snapshots.iter().map(move |(key, bytes)| {
                record(&topics.snapshots, partition, at_ns, Some(key.as_bytes()), bytes)
            });
            let risk_results = sealed.risk_results.iter().map(move |(key, bytes)| {
                record(&topics.risk_results, partition, at_ns, Some(key.as_bytes()), bytes)
            });
            signals.chain(asides).chain(snapshots).chain(risk_results)
        });
        let entry = move |(at_ns, bytes): &'a (i64, Vec<u8>)| {
            record(&topics.journal, ordinal, *at_ns, Some(node.as_bytes()), bytes)
        };
        sealed.chain(self.entries.iter().map(entry))
    }

    /// The first journal entry.
    pub(super) fn first_entry(&self) -> Option<&[u8]> {
        self.entries.first().map(|(_, bytes)| bytes.as_slice())
    }

    /// The last journal entry.
    pub(super) fn last_entry(&self) -> Option<&[u8]> {
        self.entries.last().map(|(_, bytes)| bytes.as_slice())
    }

    /// Drops what partitions caused that are no longer this process's: who owns them now does it again. Whether there was
    /// something to drop.
    pub(super) fn retain_owned(&mut self, is_owned: impl Fn(i32, u64) -> bool) -> bool {
        let before = self.sealed.len();
        self.sealed.retain(|sealed| {
            let stays = is_owned(sealed.partition, sealed.assignment);
            if !stays {
                self.offsets.retain(|(source, _)| source.partition != sealed.partition);
            }
            stays
        });
        self.sealed.len() < before
    }

    /// The newest signals of each partition, newest first.
    pub(super) fn newest_signals(&self) -> impl Iterator<Item = &[u8]> {
        self.sealed.iter().flat_map(|sealed| sealed.signals.iter().rev().map(|signal| signal.bytes))
    }
}

impl Sealed {
    /// Adds a record of the snapshots, in its place; its bytes.
    pub(super) fn add_snapshot(&mut self, place: SnapshotPlace, snapshot: &Snapshot) -> usize {
        let mut record = Vec::new();
        encode_snapshot(snapshot, &mut record);
        let bytes = record.len();
        self.snapshots.push((place.key(snapshot), record));
        bytes
    }

    /// What the journal says of it, if the transaction commits an offset of the partition.
    pub(super) fn account(
        &self,
        first_offset: i64,
        next_offset: i64,
        next_request: Option<i64>,
    ) -> Option<SealedPartition> {
        let asides = |topic| self.asides.iter().filter(|aside| aside.topic == topic).count() as i64;
        (next_offset > first_offset || next_request.is_some()).then(|| SealedPartition {
            partition: self.partition,
            first_offset,
            next_offset,
            ticks_digest: self.ticks_digest.cast_signed(),
            signals: self.signals.len() as i64,
            late: asides(AsideTopic::Late),
            dead_letters: asides(AsideTopic::DeadLetter),
            risk_results: self.risk_results.len() as i64,
            next_request,
        })
    }
}

impl Receipt {
    /// Signals in all.
    pub(super) fn signals(&self) -> u64 {
        self.signals_by_read.iter().map(|(_, count)| count).sum()
    }

    pub(super) fn count_signal(&mut self, read_at_ns: i64) {
        match self.signals_by_read.last_mut() {
            Some((at_ns, count)) if *at_ns == read_at_ns => *count += 1,
            _ => self.signals_by_read.push((read_at_ns, 1)),
        }
    }
}

/// What became of a request.
pub(super) enum CommitEvent {
    /// It is durable and visible.
    Done { receipt: Receipt, committed_at_ns: i64 },
    /// Nothing of it was written; it can be sent again.
    Aborted { request: CommitRequest, error: LogError },
    /// The log does not take it; the thread ended.
    Failed(LogError),
}

/// Handle of the commit thread.
pub(super) struct Committer {
    pub(super) requests: Sender<CommitRequest>,
    pub(super) events: Receiver<CommitEvent>,
    worker: Worker,
}

impl Committer {
    /// Starts the thread. One request may be under way and none waits: the engine gathers instead.
    pub(super) fn start(
        mut writer: TransactionWriter,
        config: EngineConfig,
        ownership: Ownership,
        clock: Clock,
    ) -> Self {
        let (requests, received) = bounded(1);
        let (sent, events) = bounded(1);
        let worker = Worker::start("commit", move || {
            run(&mut writer, &config, &ownership, clock, &received, &sent);
        });
        Self { requests, events, worker }
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(self) {
        drop(self.requests);
        drop(self.events);
        self.worker.join();
    }
}

fn run(
    writer: &mut TransactionWriter,
    config: &EngineConfig,
    ownership: &Ownership,
    clock: Clock,
    requests: &Receiver<CommitRequest>,
    events: &Sender<CommitEvent>,
) {
    for request in requests {
        let event = match writer.write(&EngineTransaction { request: &request, config, ownership }) {
            Ok(Outcome::Committed) => {
                CommitEvent::Done { receipt: request.receipt, committed_at_ns: clock.now_ns() }
            }
            Ok(Outcome::Aborted(error)) => CommitEvent::Aborted { request, error },
            Err(error) => CommitEvent::Failed(error),
        };
        let failed = matches!(event, CommitEvent::Failed(_));
        if events.send(event).is_err() || failed {
            return;
        }
    }
}
