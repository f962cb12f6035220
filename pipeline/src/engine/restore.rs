//! Reads the snapshots of a partition, of which the engine takes the newest good one.

use std::time::Duration;

use warptape_engine::{Command, Restored, SnapshotPlace, restore_from};
use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_kernels::Isa;
use warptape_schemas::{Snapshot, decode_snapshot};
use warptape_stages::StageConfig;

/// Records and bytes of one read: a snapshot record is at most half a megabyte.
const READ_RECORDS_MAX: usize = 64;
const READ_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Wait between two looks whether the end is reached.
const READ_WAIT: Duration = Duration::from_millis(100);

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

/// Says that the log has lost records that a partition's state lacks, or that nobody has processed.
pub(super) fn tell_removed(removed: &Command, topic: &str) {
    let &Command::TicksRemoved { partition, first, snapshot_offset, is_emptied, lost_from } = removed else {
        return;
    };
    if let Some(from) = lost_from.filter(|from| *from < first) {
        tracing::warn!(
            "{topic}/{partition}: the records {from} to {} were removed before they were processed: nothing of them is in any output",
            first - 1
        );
    }
    if is_emptied {
        tracing::warn!(
            "{topic}/{partition} begins at offset {first}, and no snapshot stands for the records before: the state is the fold of what is \
             left, so that the first bar of each symbol may lack trades, indicators begin anew, and numbers of symbols and late ticks may \
             be others than before"
        );
    } else {
        tracing::warn!(
            "{topic}/{partition} goes on at offset {first} with the state as of offset {snapshot_offset}"
        );
    }
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
