//! Reasons why a log cannot be verified; differences found in a log are not errors.

use std::collections::BTreeSet;

use warptape_eventlog::{EventLog, LogError};

use crate::moment::JournalReach;

/// A reason why a log cannot be read or verified.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The log lacks a topic.
    #[error(
        "{url}: no topic {topic:?}; the log has {known}; name a log that `warptape run` or `demo` wrote, \
         with its topic prefix (topics.prefix)"
    )]
    NoTopic {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The existing topics, or some of them, for the message.
        known: String,
    },
    /// Nothing was recorded yet.
    #[error(
        "{url}: the journal {topic:?} has no entries: no pipeline has run on this log yet. Process it with \
         `warptape run` first"
    )]
    EmptyJournal {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
    },
    /// The partitions of an output topic do not match those of the ticks.
    #[error(
        "{url}: topic {topic:?} has {found} partitions and the ticks have {expected}; check topics.prefix"
    )]
    PartitionsDiffer {
        /// The log.
        url: String,
        /// The output topic.
        topic: String,
        /// Number of partitions of the output topic.
        found: i32,
        /// Number of partitions of the ticks.
        expected: i32,
    },
    /// The log has outputs, but the group has committed nothing.
    #[error(
        "{url}: consumer group {group:?} has committed nothing, but there are outputs; give the group of the \
         run with --group or engine.group"
    )]
    NothingCommitted {
        /// The log.
        url: String,
        /// The group.
        group: String,
    },
    /// The run's stage configuration cannot be used.
    #[error(
        "the stage configuration in journal entry {sequence} cannot be used: {mistake}; use the version of warptape \
         that wrote it (the entry's field `software`)"
    )]
    StageConfig {
        /// Sequence number of the entry.
        sequence: i64,
        /// The mistake in the configuration.
        mistake: String,
    },
    /// The ticks end before their committed offset.
    #[error(
        "{url}: topic {topic:?} partition {partition} ends at offset {end}, but group {group:?} has \
         committed offset {committed}. Processed ticks are gone: restore them from a copy, or verify without \
         --outputs"
    )]
    TicksEnd {
        /// The log.
        url: String,
        /// Topic of the ticks.
        topic: String,
        /// The partition.
        partition: i32,
        /// End of the partition.
        end: i64,
        /// The consumer group.
        group: String,
        /// Committed offset of the group.
        committed: i64,
    },
    /// The beginning of a journal was removed, and no process has started since.
    #[error(
        "{url}: the journal {topic:?} partition {partition} begins at offset {first}, and no process has \
         started since. Retention removed the older entries, which held the scheduler's state, so nothing \
         can be verified"
    )]
    JournalTrimmed {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
        /// The partition.
        partition: i32,
        /// Oldest offset of the partition.
        first: i64,
    },
    /// The entries with the stage configuration of the outputs were removed.
    #[error(
        "{url}: the journal {topic:?} has no start and no checkpoint within the window. The stage \
         configuration of the ticks of partition {partition} is unknown: end the window later, or export it \
         without --with-ticks"
    )]
    NoConfig {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
        /// Partition of the ticks.
        partition: i32,
    },
    /// The journal has no such entry.
    #[error(
        "{url}: the journal {topic:?} partition {partition} has no entry with sequence {sequence}; `warptape \
         tail journal --from-beginning --exit-at-end` lists all entries"
    )]
    NoEntry {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
        /// The partition.
        partition: i32,
        /// The sequence.
        sequence: i64,
    },
    /// The log has no such record, or the record does not belong in its topic.
    #[error(
        "{url}: topic {topic:?} partition {partition} has no usable record at offset {offset}: {mistake}"
    )]
    NoRecord {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
        /// Description of the mistake.
        mistake: String,
    },
    /// A symbol has no signal for a time.
    #[error(
        "{url}: topic {topic:?} has no signal of {symbol:?} with a bar that ends at that event time or \
         later. Its bars end from {first} to {last}; `warptape tail {topic} --from-beginning --exit-at-end \
         --symbol {symbol}` lists them"
    )]
    NoSignal {
        /// The log.
        url: String,
        /// Topic of the signals.
        topic: String,
        /// The symbol.
        symbol: String,
        /// End of the symbol's first bar.
        first: String,
        /// End of the symbol's last bar.
        last: String,
    },
    /// A symbol has no signals of a bar specification.
    #[error("{url}: no signal of {symbol:?} has the bar {bar:?}; its bars: {known}")]
    NoBar {
        /// The log, and the topic of the signals.
        url: String,
        /// The symbol.
        symbol: String,
        /// The bar specification.
        bar: String,
        /// The symbol's bar specifications, separated by commas.
        known: String,
    },
    /// The log has no signals of a symbol.
    #[error("{url}: topic {topic:?} has no signal of {symbol:?}")]
    NoSymbol {
        /// The log.
        url: String,
        /// Topic of the signals.
        topic: String,
        /// The symbol.
        symbol: String,
        /// The symbols that have signals.
        known: BTreeSet<String>,
    },
    /// A request was not answered.
    #[error(
        "{url}: there is no answer to the risk request {request_id:?}, or the journal no longer has its \
         entries; `warptape tail risk.results --from-beginning --exit-at-end` lists all answers"
    )]
    NoAnswer {
        /// The log.
        url: String,
        /// Id of the request.
        request_id: String,
    },
    /// A process life has no such batch.
    #[error(
        "{url}: the last process life in partition {partition} of the journal has no batch {batch}. For a \
         batch of an earlier life, name the entry that dispatched it: `warptape tail journal \
         --from-beginning --exit-at-end` lists all entries"
    )]
    NoBatch {
        /// The log.
        url: String,
        /// Partition of the journal.
        partition: i32,
        /// The batch.
        batch: i64,
    },
    /// No process with this ordinal has written a journal.
    #[error(
        "{url}: the journal {topic:?} has no entries of a process with the ordinal {ordinal}; ordinals with \
         entries: {there}"
    )]
    NoProcess {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
        /// The requested ordinal.
        ordinal: i32,
        /// Ordinals whose processes have written journals, separated by commas.
        there: String,
    },
    /// There is no lane with this index or device.
    #[error("there is no lane {lane}; the process has the lanes {}", .lanes.join(", "))]
    NoLane {
        /// The lane, as the user named it.
        lane: String,
        /// The existing lanes.
        lanes: Vec<String>,
    },
    /// A window, or the part after a place, has no entries of the journal.
    #[error("{url}: the journal {topic:?} has no entries there: {}. Give times, offsets or sequences of existing entries", listed(.there))]
    OutsideJournal {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
        /// Existing ranges of the journal's partitions.
        there: Vec<JournalReach>,
    },
    /// The journal begins after the requested place.
    #[error(
        "{url}: the journal {topic:?} partition {partition} has no earlier entry; `warptape tail journal \
         --from-beginning --exit-at-end` lists all entries"
    )]
    NothingBefore {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
        /// Partition of the journal.
        partition: i32,
    },
    /// The journal does not account for a tick record.
    #[error(
        "{url}: no journal entry accounts for the tick record at offset {offset} of partition {partition}; retention removed the entry, or an older version wrote none"
    )]
    NotSealed {
        /// The log.
        url: String,
        /// Partition of the ticks.
        partition: i32,
        /// Offset of the record.
        offset: i64,
    },
    /// This software decides differently from the entries before the requested one.
    #[error(
        "{url}: the journal {topic:?} partition {partition} cannot be replayed at sequence {sequence}: \
         {error}"
    )]
    NotReplayed {
        /// The log.
        url: String,
        /// The journal.
        topic: String,
        /// The partition.
        partition: i32,
        /// Sequence of the entry.
        sequence: i64,
        /// The error.
        error: String,
    },
    /// In all partitions with outputs, the first ticks were removed, and there is no later snapshot.
    #[error(
        "{url}: topic {topic:?} partition {partition} begins at offset {first}, and there is no snapshot \
         from which outputs can be compared. Verify without --outputs; in future, export with --with-ticks \
         before ticks are removed"
    )]
    RecordsGone {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Oldest offset of the partition.
        first: i64,
    },
    /// An output cannot be read, but its cause is needed.
    #[error(
        "{url}: topic {topic:?} partition {partition}: the record at offset {offset} cannot be read, so the \
         outputs of the window are unknown. Export the whole log, without --since and --until"
    )]
    OutputUnreadable {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
    },
    /// A record cannot be read.
    #[error(
        "{url}: topic {topic:?} partition {partition}: the record at offset {offset} cannot be read: {error}"
    )]
    RecordUnreadable {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
        /// The error.
        error: String,
    },
    /// A record was removed during the verification.
    #[error(
        "topic {topic:?} partition {partition}: the record at offset {offset} was removed after it was read; try again"
    )]
    RecordGone {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
    },
    /// A running pipeline keeps committing while the ends are read.
    #[error(
        "{url}: a pipeline committed during each of {attempts} attempts to read the log; try again, or stop it first"
    )]
    Moving {
        /// The log.
        url: String,
        /// Number of attempts.
        attempts: u32,
    },
    /// A transaction on an output topic stays open.
    #[error(
        "{url}: a transaction that wrote to \"{topic}/{partition}\" is still open after {waited_s} s and \
         hides later commits. Try again after the transaction timeout (kafka.transaction_timeout_ms of the \
         writer)"
    )]
    Undecided {
        /// The log.
        url: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Time waited for the end of the transaction, in seconds.
        waited_s: u64,
    },
}

impl ReplayError {
    /// Returns true if the log was read, but does not have what was asked for, or no longer has it.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::NoTopic { .. }
            | Self::EmptyJournal { .. }
            | Self::JournalTrimmed { .. }
            | Self::NoConfig { .. }
            | Self::NoEntry { .. }
            | Self::NoRecord { .. }
            | Self::NoSignal { .. }
            | Self::NoBar { .. }
            | Self::NoSymbol { .. }
            | Self::NoAnswer { .. }
            | Self::NoBatch { .. }
            | Self::NoProcess { .. }
            | Self::NoLane { .. }
            | Self::OutsideJournal { .. }
            | Self::NothingBefore { .. }
            | Self::NotSealed { .. }
            | Self::RecordsGone { .. }
            | Self::RecordGone { .. } => true,
            Self::Log(_)
            | Self::PartitionsDiffer { .. }
            | Self::NothingCommitted { .. }
            | Self::StageConfig { .. }
            | Self::TicksEnd { .. }
            | Self::NotReplayed { .. }
            | Self::OutputUnreadable { .. }
            | Self::RecordUnreadable { .. }
            | Self::Moving { .. }
            | Self::Undecided { .. } => false,
        }
    }
}

fn listed(there: &[JournalReach]) -> String {
    there.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Greatest number of topic names in a message.
const KNOWN_MAX: usize = 20;

/// Returns the error for a log without a topic. It lists only some of the log's topics, because there may be thousands.
pub(crate) fn no_topic(log: &dyn EventLog, topic: &str) -> Result<ReplayError, LogError> {
    let names = log.topic_names()?;
    let shown = names.iter().take(KNOWN_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    let known = match names.len() {
        0 => "no topics".to_owned(),
        count if count > KNOWN_MAX => format!("{shown} and {} more", count - KNOWN_MAX),
        _ => shown,
    };
    Ok(ReplayError::NoTopic { url: log.url(), topic: topic.to_owned(), known })
}
