//! Why an engine ended.

use std::io;
use std::path::PathBuf;

use warptape_engine::{CoreError, RecordError};
use warptape_eventlog::LogError;
use warptape_schemas::DecodeError;
use warptape_stages::StageConfig;

use super::segment::changes;

/// Everything that ends an engine before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The log failed. What was not committed is processed again at the next start.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The engine gave up by itself.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The newest record of this process's journal cannot be read, so its chain cannot be continued.
    #[error(
        "{topic}/{ordinal} offset {offset}: the newest record of this process's journal is no entry that this version can \
         read: {error}; if a newer version of warptape wrote it, run that one. If something else did, keep it from writing \
         to {topic}, and choose an engine.ordinal whose partition of that topic is unused: the chain of this one cannot be \
         continued"
    )]
    JournalTail {
        /// Journal topic.
        topic: String,
        /// Number of the process, which is its partition.
        ordinal: i32,
        /// Offset of the record.
        offset: i64,
        /// What was found.
        error: DecodeError,
    },
    /// The partitions were processed under another stage configuration.
    #[error(
        "this log was processed with other settings so far: {changes}; set them as they were, or say `warptape run --new-segment`: \
         they are in force from here on then, as a new segment of the log, for which the {records} tick records of {partitions} \
         partitions before it are read and folded once again, without outputs"
    )]
    OtherSegment {
        /// The settings that changed, with their values before and now.
        changes: String,
        /// Partitions that it concerns.
        partitions: usize,
        /// Tick records that were processed of them.
        records: i64,
    },
    /// A topic takes less than the engine may have to write.
    #[error(
        "topic {topic:?} takes records of up to {bytes_max} bytes, and some have {needed}: raise max.message.bytes of the \
         topic, and message.max.bytes among kafka.properties if it is set"
    )]
    TopicTakesTooLittle {
        /// The topic.
        topic: String,
        /// What it takes.
        bytes_max: usize,
        /// What it has to take.
        needed: usize,
    },
    /// The journal ends before an entry whose anchor was kept elsewhere.
    #[error(
        "{place} has an anchor of sequence {anchored_sequence} of {topic}/{ordinal}, and this journal ends before sequence \
         {next_sequence}: it was cut off, or an older log is in its place; `warptape replay verify --from-anchor {place}` says what is \
         missing. Bring the log back; if it is lost for good, keep {place} under another name, and a new one is begun"
    )]
    RolledBack {
        /// Where the anchor is.
        place: String,
        /// Journal topic.
        topic: String,
        /// Number of the process, which is its partition.
        ordinal: i32,
        /// Sequence of the entry that was anchored.
        anchored_sequence: i64,
        /// Sequence that the entry behind the journal's last one would have.
        next_sequence: i64,
    },
    /// An entry of the journal is another one than was anchored elsewhere.
    #[error(
        "{place} has an anchor of sequence {sequence} of {topic}/{ordinal}, and this journal has another entry there: it, or one before it, \
         was written anew, or this is another log; `warptape replay verify --from-anchor {place}` compares all of them. Bring the log back; \
         if this one is right, keep {place} under another name, and a new one is begun"
    )]
    Rewritten {
        /// Where the anchor is.
        place: String,
        /// Journal topic.
        topic: String,
        /// Number of the process, which is its partition.
        ordinal: i32,
        /// Sequence of the entry.
        sequence: i64,
    },
    /// A file of anchors cannot be read.
    #[error("{}: cannot be read as the file of the journal's anchors (journal.anchor_file): {source}", path.display())]
    AnchorFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A thread of the engine ended unasked.
    #[error("the {thread} thread ended unexpectedly; nothing committed is lost, restart to go on")]
    ThreadGone {
        /// Name of the thread.
        thread: &'static str,
    },
}

impl From<RecordError> for EngineError {
    fn from(error: RecordError) -> Self {
        CoreError::from(error).into()
    }
}

impl EngineError {
    /// Adds to an error about the stage configuration which settings have changed; any other error comes back as it is.
    pub(super) fn with_changes(self, config: &StageConfig) -> Self {
        match self {
            Self::Core(CoreError::OtherSegment { before, partitions, records }) => {
                Self::OtherSegment { changes: changes(&before, config), partitions, records }
            }
            other => other,
        }
    }
}
