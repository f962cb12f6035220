//! Reasons for the end of an engine.

use std::io;
use std::path::PathBuf;

use warptape_engine::{CoreError, Odds, RecordError};
use warptape_eventlog::LogError;
use warptape_schemas::DecodeError;
use warptape_stages::StageConfig;

use super::segment::changes;

/// Errors that end an engine before it is asked to stop.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The log failed. Uncommitted records are processed again at the next start.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The core gave up by itself.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The newest record of this process's journal cannot be read, so its chain cannot be continued.
    #[error(
        "{topic}/{ordinal} offset {offset}: this version cannot read the newest record of this process's \
         journal: {error}. If a newer version of warptape wrote it, run that version. If another program \
         wrote it, this chain cannot be continued. Keep that program from writing to {topic}, and choose an \
         engine.ordinal whose partition of the topic is unused"
    )]
    JournalTail {
        /// Journal topic.
        topic: String,
        /// Ordinal of the process, which is its partition.
        ordinal: i32,
        /// Offset of the record.
        offset: i64,
        /// The decoding error.
        error: DecodeError,
    },
    /// The partitions were processed with another stage configuration.
    #[error(
        "this log was processed with other settings so far: {changes}. Restore these settings, or start once \
         with `warptape run --new-segment`. It begins a new segment of the log with the new settings, and \
         folds the {records} earlier tick records of {partitions} partitions again, without outputs"
    )]
    OtherSegment {
        /// The changed settings, with their values before and now.
        changes: String,
        /// Number of affected partitions.
        partitions: usize,
        /// Number of tick records processed in them.
        records: i64,
    },
    /// Another consumer group has written the journals.
    #[error(
        "{topic}/{ordinal}: group {other:?} has written this journal, but this process belongs to group \
         {group:?}. A log has only one group: set engine.group = {other:?} to continue, or give {group:?} \
         its own topics (topics.prefix)"
    )]
    OtherGroup {
        /// Journal topic.
        topic: String,
        /// Partition of the journal.
        ordinal: i32,
        /// The group of the journal's last process.
        other: String,
        /// The group of this process.
        group: String,
    },
    /// The committed offsets contradict the journals and the outputs, so that no starting point is certain.
    #[error("{}", odds_words(topic, group, odds))]
    Odds {
        /// Topic of the ticks.
        topic: String,
        /// The consumer group.
        group: String,
        /// The contradiction in each affected partition.
        odds: Vec<(i32, Odds)>,
    },
    /// The ticks end before the committed offset.
    #[error(
        "{topic}/{partition} ends at offset {end}, but records up to {committed} were processed. The \
         partition has lost its end, or the topic was recreated: restore the records, or use other topics \
         for new data (topics.prefix)"
    )]
    TicksEnd {
        /// Topic of the ticks.
        topic: String,
        /// The partition.
        partition: i32,
        /// End offset of the partition.
        end: i64,
        /// Offset of the next record to process.
        committed: i64,
    },
    /// A topic accepts only smaller records than the engine may have to write.
    #[error(
        "topic {topic:?} accepts records of up to {bytes_max} bytes, but some need {needed}. Raise \
         max.message.bytes of the topic, and message.max.bytes in kafka.properties if it is set"
    )]
    TopicTakesTooLittle {
        /// The topic.
        topic: String,
        /// Greatest record that the topic accepts, in bytes.
        bytes_max: usize,
        /// Greatest record that the topic must accept, in bytes.
        needed: usize,
    },
    /// The journal ends before an entry that has an anchor in a second place.
    #[error(
        "{place} has an anchor of sequence {anchored_sequence} of {topic}/{ordinal}, but this journal ends \
         before sequence {next_sequence}. It was cut, or an older log is in its place; `warptape replay \
         verify --from-anchor {place}` shows what is missing. Restore the log. If it is lost for good, move \
         {place} away, and the process begins a new one"
    )]
    RolledBack {
        /// The place of the anchor.
        place: String,
        /// Journal topic.
        topic: String,
        /// Ordinal of the process, which is its partition.
        ordinal: i32,
        /// Sequence of the anchored entry.
        anchored_sequence: i64,
        /// Sequence of the entry that would follow the journal's last one.
        next_sequence: i64,
    },
    /// An entry of the journal differs from the one anchored in a second place.
    #[error(
        "{place} has an anchor of sequence {sequence} of {topic}/{ordinal}, but this journal has another \
         entry there. An entry was rewritten, or this is another log; `warptape replay verify --from-anchor \
         {place}` compares all anchors. Restore the log. If this log is right, move {place} away, and the \
         process begins a new one"
    )]
    Rewritten {
        /// The place of the anchor.
        place: String,
        /// Journal topic.
        topic: String,
        /// Ordinal of the process, which is its partition.
        ordinal: i32,
        /// Sequence of the entry.
        sequence: i64,
    },
    /// A file of anchors cannot be read.
    #[error("{}: cannot be read as the file of the journal's anchors (journal.anchor_file): {source}", path.display())]
    AnchorFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A thread of the engine ended without a request.
    #[error(
        "the {thread} thread ended unexpectedly; nothing that was committed is lost: restart the process"
    )]
    ThreadGone {
        /// Name of the thread.
        thread: &'static str,
    },
}

fn odds_words(topic: &str, group: &str, odds: &[(i32, Odds)]) -> String {
    let words = |(partition, Odds { claims, outputs }): &(i32, Odds)| {
        let journal = match claims.journal {
            Some(journal) => format!("the journals account for the records before offset {journal}"),
            None => "the journals account for no records".to_owned(),
        };
        let committed = claims.group.map_or_else(|| "nothing".to_owned(), |group| format!("offset {group}"));
        format!(
            "{topic}/{partition}: {journal}, but there are outputs of records before offset {outputs}, and group {group} has committed {committed}"
        )
    };
    let all: Vec<String> = odds.iter().map(words).collect();
    let offsets: Vec<String> =
        odds.iter().map(|(partition, odds)| format!("{partition}:{}", odds.outputs)).collect();
    format!(
        "{}. Journal entries are lost, or another program has written outputs: restore the entries, or \
         continue after the last output with `warptape run --accept-loss {}`. The decisions in between then \
         stay missing from the journal",
        all.join("; "),
        offsets.join(",")
    )
}

impl From<RecordError> for EngineError {
    fn from(error: RecordError) -> Self {
        CoreError::from(error).into()
    }
}

impl EngineError {
    /// Adds the changed settings to an error about the stage configuration; returns other errors unchanged.
    pub(super) fn with_changes(self, config: &StageConfig) -> Self {
        match self {
            Self::Core(CoreError::OtherSegment { before, partitions, records }) => {
                Self::OtherSegment { changes: changes(&before, config), partitions, records }
            }
            other => other,
        }
    }
}
