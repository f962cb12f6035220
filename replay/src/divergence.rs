//! The first difference between a recorded run and its replay, for people and for programs.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::difference::{Difference, shown};

/// The first difference between the recording and the replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Divergence {
    /// A journal entry differs.
    Journal(JournalDivergence),
    /// A journal ends too early.
    JournalEnd(JournalEnd),
    /// The journal contradicts the committed offsets.
    Unaccounted(Unaccounted),
    /// The ticks differ.
    Ticks(TicksDivergence),
    /// The records of a transaction contradict the journal's account of it.
    Sealed(SealedDivergence),
    /// An output topic differs.
    Output(OutputDivergence),
    /// A journal contradicts its anchors.
    Anchor(AnchorDivergence),
}

/// A journal that contradicts its anchors, or that no given key signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnchorDivergence {
    /// Topic of the journal, or of the lifecycle records of the process.
    pub topic: String,
    /// Partition of the journal.
    pub partition: i32,
    /// The problem.
    pub problem: AnchorProblem,
}

/// A problem with a journal and its anchors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnchorProblem {
    /// No given key signed the newest entries.
    Unsigned {
        /// Sequence of the first unsigned entry.
        first_sequence: i64,
        /// Sequence of the last unsigned entry.
        last_sequence: i64,
        /// The given keys.
        keys: String,
    },
    /// An entry has an anchor that does not belong to it.
    Forged {
        /// Sequence of the entry.
        sequence: i64,
        /// Description of the anchor's fault.
        what: String,
    },
    /// The journal ends before an anchored entry.
    CutOff {
        /// Sequence of the anchored entry.
        anchored_sequence: i64,
        /// Sequence that would follow the journal's last entry.
        next_sequence: i64,
    },
    /// An entry, or an earlier one, differs from the anchored one.
    Rewritten {
        /// Sequence of the entry.
        sequence: i64,
        /// Hash in the anchor.
        anchored_hash: String,
        /// Hash of the current entry.
        hash: String,
    },
    /// Two anchors give the same sequence to different entries.
    Twice {
        /// The sequence that occurs twice.
        sequence: i64,
    },
    /// Lifecycle records of a process life are missing, or were changed.
    Told {
        /// Start of the life, ns since the epoch.
        life: i64,
        /// Number of anchored records.
        expected: u64,
        /// Number of existing records.
        found: u64,
    },
}

/// A journal entry that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JournalDivergence {
    /// Topic of the journal.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Offset of the entry.
    pub offset: i64,
    /// Sequence that the entry must have, because all entries before it are identical.
    pub sequence: i64,
    /// Version of warptape that recorded the entry, according to the last process start before it.
    pub software: Option<String>,
    /// Time of the step as recorded, ns since the epoch; `None` if the entry cannot be read.
    pub at_ns: Option<i64>,
    /// The input as recorded.
    pub input: Option<Value>,
    /// The first fields that differ. `hash` is among them if the entry was changed after it was written.
    pub differences: Vec<Difference>,
}

/// A journal that ends before the committed entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JournalEnd {
    /// Topic of the journal.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The consumer group.
    pub group: String,
    /// Sequence that would follow the journal's last entry.
    pub next_sequence: i64,
    /// Sequence of the next entry according to the offset that the group committed with its last entries.
    pub committed_sequence: i64,
}

/// The journal accounts for fewer or more records than the group has committed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unaccounted {
    /// Topic of the source: ticks, or risk requests.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The consumer group.
    pub group: String,
    /// Offset before which the journal accounts for all records.
    pub accounted_offset: i64,
    /// First record that the journal accounts for after a gap; `None` if there is no gap.
    pub resumed_offset: Option<i64>,
    /// Committed offset of the group, which is the next record to read.
    pub committed_offset: i64,
    /// Outputs whose decisions are not in the journal.
    pub orphans: Vec<Orphans>,
}

/// Records of an output topic whose decisions are not in the journal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Orphans {
    /// The topic.
    pub topic: String,
    /// Offset of the first record.
    pub offset: i64,
    /// Number of records.
    pub count: u64,
    /// The first record.
    pub first: Value,
}

/// Tick records that differ from those that were processed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TicksDivergence {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset after the last record.
    pub next_offset: i64,
    /// Digest of the records when they were processed, according to the journal.
    pub expected: String,
    /// Digest of the current records.
    pub found: String,
}

/// The journal's account of a transaction differs from its records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SealedDivergence {
    /// Topic of the source: ticks, or risk requests.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// First offset of the records of a transaction, or of several consecutive ones.
    pub first_offset: i64,
    /// Offset after the last record.
    pub next_offset: i64,
    /// Differences between the records and the journal's account.
    pub differences: Vec<Difference>,
}

/// A record of an output topic that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OutputDivergence {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// Offset of the first record that differs; if records are missing at the end, the end of the partition.
    pub offset: i64,
    /// Symbol of the record; `None` if the record has none.
    pub symbol: Option<String>,
    /// Id of the request; `None` if the record is not a risk result.
    pub request_id: Option<String>,
    /// The problem.
    pub problem: OutputProblem,
}

/// A problem with an output record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputProblem {
    /// The record has different contents.
    Changed {
        /// The first fields that differ.
        differences: Vec<Difference>,
    },
    /// The record cannot be decoded.
    Unreadable {
        /// The decoding error.
        error: String,
        /// The expected record.
        expected: Value,
    },
    /// Expected records are missing.
    Missing {
        /// Number of missing records.
        count: u64,
        /// The first missing record.
        first: Value,
    },
    /// The topic has more records than expected.
    Surplus {
        /// Number of surplus records.
        count: u64,
        /// The first surplus record, or the reason why it cannot be decoded.
        first: Value,
    },
}

impl fmt::Display for Divergence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Journal(divergence) => divergence.fmt(formatter),
            Self::JournalEnd(end) => end.fmt(formatter),
            Self::Unaccounted(unaccounted) => unaccounted.fmt(formatter),
            Self::Ticks(divergence) => divergence.fmt(formatter),
            Self::Sealed(divergence) => divergence.fmt(formatter),
            Self::Output(divergence) => divergence.fmt(formatter),
            Self::Anchor(divergence) => divergence.fmt(formatter),
        }
    }
}

impl fmt::Display for JournalDivergence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, offset, sequence, .. } = self;
        write!(formatter, "{topic} partition {partition} offset {offset}, sequence {sequence}: different")?;
        if let (Some(at_ns), Some(input)) = (self.at_ns, &self.input) {
            write!(formatter, "\n  step at {at_ns} ns with {}", shown(Some(input)))?;
        }
        write_all(formatter, &self.differences)?;
        let differs = |field: &str| self.differences.iter().any(|difference| difference.field == field);
        if differs("hash") {
            let note = "the entry was changed after it was written, or an earlier entry was removed or added";
            write!(formatter, "\n  its hash does not match: {note}")?;
        } else if let (Some(software), false) = (&self.software, differs("entry")) {
            let version = env!("CARGO_PKG_VERSION");
            let note = format!("written by warptape {software} like this; this is warptape {version}");
            write!(formatter, "\n  its hash matches: the entry was {note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for JournalEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, group, next_sequence, committed_sequence } = self;
        write!(
            formatter,
            "{topic} partition {partition} ends before sequence {next_sequence}, but group {group} has \
             committed all entries before sequence {committed_sequence}: {} entries are missing at the end \
             of the journal",
            committed_sequence - next_sequence
        )
    }
}

impl fmt::Display for Unaccounted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, group, accounted_offset, committed_offset, .. } = self;
        write!(formatter, "{topic} partition {partition}: ")?;
        match self.resumed_offset {
            Some(resumed) if resumed < *accounted_offset => write!(
                formatter,
                "the journal accounts twice for records {resumed} to {accounted_offset}: the committed \
                 offset of the group was set back"
            )?,
            Some(resumed) => write!(
                formatter,
                "the journal accounts for the records before offset {accounted_offset} and from offset \
                 {resumed} on, but for none in between: entries are missing"
            )?,
            None if accounted_offset < committed_offset => write!(
                formatter,
                "the journal accounts for the records before offset {accounted_offset}, but group {group} \
                 has committed offset {committed_offset}: entries are missing at the end of the journal"
            )?,
            None => write!(
                formatter,
                "the journal accounts for the records before offset {accounted_offset}, but group {group} \
                 has committed only offset {committed_offset}: the committed offset of the group was set \
                 back"
            )?,
        }
        self.orphans.iter().try_for_each(|Orphans { topic, offset, count, first }| {
            write!(formatter, "\n  {topic} partition {partition} offset {offset}: {count} without a decision\n    the first  {first}")
        })
    }
}

impl fmt::Display for TicksDivergence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, first_offset, next_offset, expected, found } = self;
        write!(
            formatter,
            "{topic} partition {partition} offsets {first_offset} to {}: these are not the ticks that were \
             processed: a record was changed, removed or added since\n    expected  digest {expected}\n    \
             found     digest {found}",
            next_offset - 1
        )
    }
}

impl fmt::Display for SealedDivergence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { topic, partition, first_offset, next_offset, differences } = self;
        write!(
            formatter,
            "{topic} partition {partition} offsets {first_offset} to {}: the account in the journal differs from the recomputed records",
            next_offset - 1
        )?;
        write_all(formatter, differences)
    }
}

impl fmt::Display for AnchorDivergence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} partition {}: ", self.topic, self.partition)?;
        match &self.problem {
            AnchorProblem::Unsigned { first_sequence, last_sequence, keys } => write!(
                formatter,
                "entries {first_sequence} to {last_sequence} are not signed with the key {keys}"
            ),
            AnchorProblem::Forged { sequence, what } => {
                write!(formatter, "the anchor of sequence {sequence} is forged or damaged: {what}")
            }
            AnchorProblem::CutOff { anchored_sequence, next_sequence } => write!(
                formatter,
                "sequence {anchored_sequence} was anchored, but the journal ends before sequence \
                 {next_sequence}: it was cut, or replaced by an older one"
            ),
            AnchorProblem::Rewritten { sequence, anchored_hash, hash } => write!(
                formatter,
                "the entry of sequence {sequence} differs from the anchored one: it, or an earlier entry, was rewritten\n    \
                 expected  hash {anchored_hash}\n    found     hash {hash}"
            ),
            AnchorProblem::Twice { sequence } => write!(
                formatter,
                "sequence {sequence} was anchored twice, with different hashes: the journal was replaced and \
                 then continued"
            ),
            AnchorProblem::Told { life, expected, found } => write!(
                formatter,
                "the process life that began at {life} ns wrote {expected} lifecycle records, but {found} \
                 are there: some were removed or changed"
            ),
        }
    }
}

impl fmt::Display for OutputDivergence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} partition {} offset {}", self.topic, self.partition, self.offset)?;
        if let Some(symbol) = &self.symbol {
            write!(formatter, ", symbol {symbol}")?;
        }
        if let Some(request_id) = &self.request_id {
            write!(formatter, ", request {request_id}")?;
        }
        match &self.problem {
            OutputProblem::Changed { differences } => {
                write!(formatter, ": different")?;
                write_all(formatter, differences)
            }
            OutputProblem::Unreadable { error, expected } => {
                write!(formatter, ": cannot be decoded\n    expected  {expected}\n    found     {error}")
            }
            OutputProblem::Missing { count, first } => {
                write!(formatter, ": {count} missing\n    expected  {first}\n    found     nothing")
            }
            OutputProblem::Surplus { count, first } => {
                write!(formatter, ": {count} too many\n    expected  nothing\n    found     {first}")
            }
        }
    }
}

fn write_all(formatter: &mut fmt::Formatter<'_>, differences: &[Difference]) -> fmt::Result {
    differences.iter().try_for_each(|difference| write!(formatter, "\n{difference}"))
}
