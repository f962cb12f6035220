//! Stage state of a partition from its newest good snapshot, or from nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_kernels::Isa;
use warptape_schemas::{Snapshot, decode_snapshot};
use warptape_stages::{GroupStage, PartitionIntake, StageConfig, StageError};

use super::segment::take_segment;
use super::snapshots::{STATE_VERSION, SnapshotPlace};

/// Records and bytes of one read: a snapshot record is at most half a megabyte.
const READ_RECORDS_MAX: usize = 64;
const READ_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Wait between two looks whether the end is reached.
const READ_WAIT: Duration = Duration::from_millis(100);

/// State of a partition before the record at `offset`.
pub struct Restored {
    /// The first record that is not in the state.
    pub offset: i64,
    /// Where its snapshot stands.
    pub place: SnapshotPlace,
    /// The host side.
    pub intake: PartitionIntake,
    /// The lane side, by group.
    pub stages: Vec<GroupStage>,
    /// The stage configuration of the segment that the partition is in, as JSON, where that is recorded.
    pub segment: Option<String>,
}

impl Restored {
    /// The state at the beginning of the log.
    pub fn beginning(config: &StageConfig, isa: Isa) -> Self {
        let stages = (0..config.groups_per_partition).map(|_| GroupStage::new(config, isa));
        let (intake, place) = (PartitionIntake::new(config), SnapshotPlace::default());
        Self { offset: 0, place, intake, stages: stages.collect(), segment: None }
    }
}

/// Restores a partition from the newest snapshot at or before `committed`. One that is damaged or was taken under
/// another configuration is passed over with a warning: the log itself is the truth.
pub fn restore(
    log: &dyn EventLog,
    snapshots: &TopicPartition,
    committed: i64,
    config: &StageConfig,
    isa: Isa,
) -> Result<Restored, LogError> {
    Ok(restore_from(read_parts(log, snapshots)?, committed, config, isa))
}

/// Restores a partition from the newest complete snapshot at or before `committed` among these records.
pub fn restore_from(
    mut parts: Vec<(SnapshotPlace, Snapshot)>,
    committed: i64,
    config: &StageConfig,
    isa: Isa,
) -> Restored {
    let segment = take_segment(&mut parts);
    // Of one that went out in several transactions, all parts stand in one place.
    let places: BTreeMap<i64, SnapshotPlace> =
        parts.iter().map(|(place, part)| (part.offset, *place)).collect();
    for (offset, states) in states(parts.into_iter().map(|(_, part)| part)).into_iter().rev() {
        if offset > committed {
            continue;
        }
        match assemble(offset, places[&offset], &states, config, isa) {
            Ok(restored) => return Restored { segment, ..restored },
            Err(error) => tracing::warn!(offset, %error, "snapshot passed over"),
        }
    }
    Restored { segment, ..Restored::beginning(config, isa) }
}

fn assemble(
    offset: i64,
    place: SnapshotPlace,
    states: &BTreeMap<i32, Vec<u8>>,
    config: &StageConfig,
    isa: Isa,
) -> Result<Restored, StageError> {
    let state = |group: i32| {
        let found = format!("group {group} is missing");
        states.get(&group).ok_or(StageError::Damaged { found })
    };
    let intake = PartitionIntake::read(config, state(Snapshot::INTAKE)?)?;
    let groups = 0..config.groups_per_partition as i32;
    let stages: Result<Vec<_>, _> =
        groups.map(|group| GroupStage::read(config, isa, state(group)?)).collect();
    Ok(Restored { offset, place, intake, stages: stages?, segment: None })
}

fn read_parts(
    log: &dyn EventLog,
    snapshots: &TopicPartition,
) -> Result<Vec<(SnapshotPlace, Snapshot)>, LogError> {
    let mut parts = Vec::new();
    let mut reader = log.reader(std::slice::from_ref(snapshots))?;
    let range = reader.offsets(snapshots)?;
    while reader.position(snapshots)? < range.next {
        let Fetched::Records { records, .. } = reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
        else {
            continue;
        };
        for record in records {
            match decode_snapshot(&record.value) {
                Ok(part) => {
                    parts.push((SnapshotPlace::of_key(record.key.as_deref().unwrap_or_default()), part))
                }
                Err(error) => tracing::warn!(offset = record.offset, %error, "snapshot record passed over"),
            }
        }
    }
    Ok(parts)
}

/// States by snapshot offset and group; only those with all their parts.
fn states(parts: impl Iterator<Item = Snapshot>) -> BTreeMap<i64, BTreeMap<i32, Vec<u8>>> {
    let mut by_group: BTreeMap<(i64, i32), BTreeMap<i32, Snapshot>> = BTreeMap::new();
    for part in parts {
        if part.state_version == STATE_VERSION && (0..part.parts).contains(&part.part) {
            let parts = by_group.entry((part.offset, part.group)).or_default();
            // Parts come in log order: those of an older snapshot at the same offset give way.
            parts.retain(|_, older: &mut Snapshot| older.parts == part.parts);
            parts.insert(part.part, part);
        }
    }
    let mut states: BTreeMap<i64, BTreeMap<i32, Vec<u8>>> = BTreeMap::new();
    for ((offset, group), parts) in by_group {
        let complete = parts.values().all(|part| part.parts as usize == parts.len());
        if complete {
            let state = parts.into_values().flat_map(|part| part.state).collect();
            states.entry(offset).or_default().insert(group, state);
        }
    }
    states
}
