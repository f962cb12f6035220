//! Snapshots of a partition, as places where a rerun may begin.

use std::ops::RangeInclusive;

use warptape_engine::{Restored, SnapshotPlace, restore_from};
use warptape_eventlog::{EventLog, LogError, TopicPartition};
use warptape_schemas::{Snapshot, decode_snapshot};
use warptape_stages::{Isa, StageConfig};

use crate::partition_reader::PartitionReader;

/// The earliest state within a range of offsets that was taken under a configuration and is whole.
pub(crate) fn earliest(
    log: &dyn EventLog,
    source: TopicPartition,
    within: RangeInclusive<i64>,
    config: &StageConfig,
    isa: Isa,
) -> Result<Option<Restored>, LogError> {
    let parts = read(log, source)?;
    let mut offsets: Vec<i64> = parts.iter().map(|(_, part)| part.offset).collect();
    offsets.sort_unstable();
    offsets.dedup();
    let restore = |offset: i64| {
        let of_offset = parts.iter().filter(|(_, part)| part.offset == offset).cloned().collect();
        Some(restore_from(of_offset, offset, config, isa)).filter(|restored| restored.offset == offset)
    };
    Ok(offsets.into_iter().filter(|offset| *offset > 0 && within.contains(offset)).find_map(restore))
}

/// The newest state at or before an offset that was taken under a configuration and is whole; that of the beginning if there is none.
pub(crate) fn newest_before(
    log: &dyn EventLog,
    source: TopicPartition,
    offset: i64,
    config: &StageConfig,
    isa: Isa,
) -> Result<Restored, LogError> {
    Ok(restore_from(read(log, source)?, offset, config, isa))
}

/// The parts of states that can be read. The topic is compacted: they are those of the newest few.
fn read(log: &dyn EventLog, source: TopicPartition) -> Result<Vec<(SnapshotPlace, Snapshot)>, LogError> {
    let topics = log.topics()?;
    let Some(topic) = topics.iter().find(|topic| topic.spec.name == source.topic) else {
        return Ok(Vec::new());
    };
    let Some(range) = topic.offsets.get(source.partition as usize) else { return Ok(Vec::new()) };
    let mut reader = PartitionReader::open(log, source, *range)?;
    let mut parts = Vec::new();
    while let Some(record) = reader.next()? {
        match decode_snapshot(&record.value) {
            Ok(part) => parts.push((SnapshotPlace::of_key(record.key.as_deref().unwrap_or_default()), part)),
            Err(error) => tracing::warn!(offset = record.offset, %error, "snapshot record passed over"),
        }
    }
    Ok(parts)
}
