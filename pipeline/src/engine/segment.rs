//! The segment that a partition is in: the stage configuration under which its newest ticks were processed.
//!
//! It lies beside the snapshots, in the transaction of the first ticks that were processed under it, so that who takes the
//! partition next learns whether he would go on with it or begin another one.

use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_replay::{StageConfigChange, stage_config_changes};
use warptape_schemas::journal::Input;
use warptape_schemas::{Snapshot, decode_journal_entry};
use warptape_stages::StageConfig;

use super::EngineError;
use super::journal_tail::last_record;
use super::snapshots::SnapshotPlace;

/// Version of the layout of a segment's record: the configuration as JSON.
const STATE_VERSION: i32 = 1;
/// Offsets at the end of a journal in which the newest configuration is looked for first.
const LOOK_BACK: i64 = 4_096;
/// Records and bytes of one read.
const READ_RECORDS_MAX: usize = 1_024;
const READ_BYTES_MAX: usize = 16 << 20;
/// Wait between two looks whether the end is reached.
const READ_WAIT: Duration = Duration::from_millis(100);

/// The record of a segment that begins at an offset. All of a partition have one key, so that the newest stays.
pub(super) fn segment_record(partition: i32, offset: i64, config: &StageConfig) -> Snapshot {
    Snapshot {
        partition,
        group: Snapshot::SEGMENT,
        offset,
        part: 0,
        parts: 1,
        state_version: STATE_VERSION,
        state: config.to_json().into_bytes(),
    }
}

/// Takes the segments out of a partition's snapshots; gives the newest one's configuration.
pub(super) fn take_segment(parts: &mut Vec<(SnapshotPlace, Snapshot)>) -> Option<String> {
    let segments = parts.extract_if(.., |(_, part)| part.group == Snapshot::SEGMENT);
    segments.last().and_then(|(_, segment)| String::from_utf8(segment.state).ok())
}

/// Whether a configuration is another one than that of a segment.
pub(super) fn is_other(segment: &str, config: &StageConfig) -> bool {
    StageConfig::from_json(segment).map_or(true, |segment| segment != *config)
}

/// Partitions that would begin another segment.
#[derive(Default)]
pub(super) struct OtherSegments {
    /// A configuration under which one was processed.
    config: Option<String>,
    partitions: usize,
    /// Tick records before the new segments.
    records: i64,
}

impl OtherSegments {
    /// A partition was processed under a configuration, up to an offset.
    pub(super) fn add(&mut self, config: &str, committed: i64) {
        self.config.get_or_insert_with(|| config.to_owned());
        self.partitions += 1;
        self.records += committed;
    }

    /// Nothing, if the segments may begin or there are none.
    pub(super) fn allow(self, config: &StageConfig, is_allowed: bool) -> Result<(), EngineError> {
        let Self { config: Some(before), partitions, records } = self else { return Ok(()) };
        let changes: Vec<String> =
            stage_config_changes(&before, &config.to_json()).iter().map(setting).collect();
        let changes = changes.join(", ");
        if !is_allowed {
            return Err(EngineError::OtherSegment { changes, partitions, records });
        }
        tracing::warn!(
            changes,
            partitions,
            records,
            "a new segment begins: the records before it are folded again"
        );
        Ok(())
    }
}

/// A change of the configuration as one of the settings, whose times are milliseconds.
fn setting(change: &StageConfigChange) -> String {
    let StageConfigChange { field, before, after } = change;
    // One that was not there yet is `nothing`.
    let milliseconds = |text: &str| match text.parse::<i64>() {
        Ok(time_ns) => (time_ns / 1_000_000).to_string(),
        Err(_) => text.to_owned(),
    };
    if field == "numbers" {
        return format!("prices and sizes, by the rules of this version: {before} to {after}");
    }
    match field.strip_suffix("_ns") {
        Some(field) => format!("stages.{field}_ms: {} to {}", milliseconds(before), milliseconds(after)),
        None => format!("stages.{field}: {before} to {after}"),
    }
}

/// The stage configuration under which the newest ticks were processed according to a journal: that of the last process that
/// did anything. For logs of before there were records of segments.
pub(super) fn config_in_journal(
    log: &dyn EventLog,
    journal: &str,
    ordinal: i32,
) -> Result<Option<String>, LogError> {
    let source = TopicPartition { topic: journal.to_owned(), partition: ordinal };
    let Some(last) = last_record(log, journal, ordinal)? else { return Ok(None) };
    let mut reader = log.reader(std::slice::from_ref(&source))?;
    let first = reader.offsets(&source)?.first;
    let mut back = LOOK_BACK;
    loop {
        let from = last.offset.saturating_sub(back).max(first);
        reader.seek(&source, from)?;
        let (mut started, mut found) = (None, None);
        while reader.position(&source)? <= last.offset {
            let Fetched::Records { records, .. } =
                reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
            else {
                continue;
            };
            for entry in records.iter().filter_map(|record| decode_journal_entry(&record.value).ok()) {
                match entry.input {
                    Input::Started(process) => started = Some(process.stage_config),
                    Input::Completed(_) if started.is_some() => found = started.take(),
                    _ => {}
                }
            }
        }
        if found.is_some() || from == first {
            return Ok(found);
        }
        back = back.saturating_mul(16);
    }
}
