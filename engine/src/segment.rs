//! The segment of a partition: the stage configuration under which its newest ticks were processed.
//!
//! Its record is written with the snapshots, in the transaction of the first ticks processed under it. It tells the
//! next owner of the partition whether it continues the segment or begins another one.

use warptape_events::{Checksum, Snapshot};
use warptape_stages::StageConfig;

use crate::snapshots::SnapshotPlace;

/// Version of the layout of a segment's record: the configuration as JSON.
const STATE_VERSION: i32 = 1;
/// The record of a segment that begins at an offset. All records of a partition have one key, so that the newest stays.
pub(crate) fn segment_record(partition: i32, offset: i64, config: &StageConfig) -> Snapshot {
    Snapshot {
        partition,
        group: Snapshot::SEGMENT,
        offset,
        part: 0,
        parts: 1,
        state_version: STATE_VERSION,
        state: config.to_json().into_bytes(),
        checksum: Checksum,
    }
}

/// Removes the records of segments from a partition's snapshots. Returns the newest configuration among them.
pub(crate) fn take_segment(parts: &mut Vec<(SnapshotPlace, Snapshot)>) -> Option<String> {
    let segments = parts.extract_if(.., |(_, part)| part.group == Snapshot::SEGMENT);
    segments.last().and_then(|(_, segment)| String::from_utf8(segment.state).ok())
}

/// True if a configuration differs from that of a segment.
pub(crate) fn is_other(segment: &str, config: &StageConfig) -> bool {
    StageConfig::from_json(segment).map_or(true, |segment| segment != *config)
}
