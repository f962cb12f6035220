//! The contents of a transaction, as data: the engine seals it, and the owner of the log writes it.

use warptape_events::journal::{SealedPartition, TaskClass};
use warptape_events::risk::RiskErrorCode;
use warptape_events::{Snapshot, encode_snapshot};
use warptape_record::TopicPartition;
use warptape_stages::MergedSignals;

use crate::control::ControlAnswers;
use crate::snapshots::SnapshotPlace;

/// Everything one transaction holds.
#[derive(Clone, Debug, Default)]
pub struct CommitRequest {
    /// Time of sealing: the create time of all records except journal entries, which have their own.
    pub sealed_at_ns: i64,
    /// Outputs of complete records, by partition.
    pub sealed: Vec<Sealed>,
    /// Journal entries, each with its time and its bytes.
    pub entries: Vec<(i64, Vec<u8>)>,
    /// Next-to-read source offsets.
    pub offsets: Vec<(TopicPartition, i64)>,
    /// Sequence of the next journal entry; `None` unless the last entries of this transaction are behind its last
    /// `Sealed`. It is committed as the group's offset of the journal's partition, so that the required end of the
    /// journal is known.
    pub journal_end: Option<i64>,
    /// Answers to operators' commands.
    pub control: ControlAnswers,
    /// Figures to count once the transaction is committed.
    pub receipt: Receipt,
}

/// Outputs of complete records of a partition.
#[derive(Clone, Debug, Default)]
pub struct Sealed {
    /// The partition.
    pub partition: i32,
    /// Number of the assignment under which the process owns the partition.
    pub assignment: u64,
    /// Digest of the records sealed in this transaction.
    pub ticks_digest: u64,
    /// Signals, in canonical order.
    pub signals: MergedSignals,
    /// Late ticks and dead letters, by offset.
    pub side_outputs: Vec<SideOutput>,
    /// Snapshots: key and encoded record.
    pub snapshots: Vec<(String, Vec<u8>)>,
    /// Risk results.
    pub risk_results: Vec<SealedResult>,
}

/// The result of a risk request.
#[derive(Clone, Debug)]
pub struct SealedResult {
    /// The record's key: the id of the request.
    pub request_id: String,
    /// The encoded record.
    pub bytes: Vec<u8>,
    /// Class of the request.
    pub class: TaskClass,
    /// The error in the answer; `None` if the request was computed.
    pub error: Option<RiskErrorCode>,
}

/// A record that is a late tick or a dead letter.
#[derive(Clone, Debug)]
pub struct SideOutput {
    /// Source offset of the record that caused it.
    pub offset: i64,
    /// Topic of the record.
    pub topic: SideTopic,
    /// The encoded record.
    pub bytes: Vec<u8>,
}

/// The topic of a side output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideTopic {
    /// Late ticks.
    Late,
    /// Dead letters.
    DeadLetter,
}

/// Times of a tick record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordTimes {
    /// Time of its publication, by the clock of its producer or of the log; 0 if it is unknown.
    pub written_ns: i64,
    /// Time at which it was read.
    pub read_at_ns: i64,
}

/// Figures that become valid with a commit.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// Numbers of signals, each with the times of the causing record.
    pub signals_by_record: Vec<(RecordTimes, u64)>,
    /// True if source offsets move; false for a commit of journal entries alone.
    pub advances: bool,
}

impl CommitRequest {
    /// The first journal entry.
    pub fn first_entry(&self) -> Option<&[u8]> {
        self.entries.first().map(|(_, bytes)| bytes.as_slice())
    }

    /// The last journal entry.
    pub fn last_entry(&self) -> Option<&[u8]> {
        self.entries.last().map(|(_, bytes)| bytes.as_slice())
    }

    /// Drops outputs of partitions that the process no longer owns, because their next owner computes them again.
    /// Returns true if any output was dropped.
    pub(crate) fn retain_owned(&mut self, is_owned: impl Fn(i32, u64) -> bool) -> bool {
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

    /// The signals of each partition in this transaction, newest first.
    pub fn newest_signals(&self) -> impl Iterator<Item = &[u8]> {
        self.sealed.iter().flat_map(|sealed| sealed.signals.iter().rev().map(|signal| signal.bytes))
    }
}

impl Sealed {
    /// Adds a record of a snapshot, with the key for its place. Returns the size of the record in bytes.
    pub(crate) fn add_snapshot(&mut self, place: SnapshotPlace, snapshot: &Snapshot) -> usize {
        let mut record = Vec::new();
        encode_snapshot(snapshot, &mut record);
        let bytes = record.len();
        self.snapshots.push((place.key(snapshot), record));
        bytes
    }

    /// The journal's account of this partition in the transaction; `None` unless the transaction commits an offset of
    /// the partition.
    pub(crate) fn account(
        &self,
        first_offset: i64,
        next_offset: i64,
        next_request: Option<i64>,
    ) -> Option<SealedPartition> {
        let side_outputs =
            |topic| self.side_outputs.iter().filter(|side_output| side_output.topic == topic).count() as i64;
        (next_offset > first_offset || next_request.is_some()).then(|| SealedPartition {
            partition: self.partition,
            first_offset,
            next_offset,
            ticks_digest: self.ticks_digest.cast_signed(),
            signals: self.signals.len() as i64,
            late: side_outputs(SideTopic::Late),
            dead_letters: side_outputs(SideTopic::DeadLetter),
            risk_results: self.risk_results.len() as i64,
            next_request,
        })
    }
}

impl Receipt {
    /// Number of signals of all partitions.
    pub fn signals(&self) -> u64 {
        self.signals_by_record.iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn count_signal(&mut self, times: RecordTimes) {
        match self.signals_by_record.last_mut() {
            Some((last, count)) if *last == times => *count += 1,
            _ => self.signals_by_record.push((times, 1)),
        }
    }
}
