//! Snapshots at the beginning of a window's ticks. Each is the fold of all earlier ticks, so that the file does not
//! need those ticks.

use warptape_engine::SnapshotPlace;
use warptape_eventlog::sqlite::PortableFile;
use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_schemas::encode_snapshot;
use warptape_stages::{Evicted, StageConfig};

use crate::partition_reader::PartitionReader;
use crate::rerun::Rerun;
use crate::{OutputOptions, ReplayError, snapshot};

/// A partition whose state before an offset is needed.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) partition: i32,
    /// Offset before which the state includes all ticks.
    pub(super) to: i64,
    /// First offset of the partition.
    pub(super) first: i64,
    /// The configuration of the ticks from `to` on.
    pub(super) config: StageConfig,
}

impl Fold {
    /// Writes the state, computed from the newest earlier snapshot and the ticks after it. `progress` gets the number
    /// of offsets folded so far. Returns the number of records written.
    ///
    /// # Errors
    /// If the ticks cannot be read, or the first of them were removed and there is no later snapshot.
    pub(super) fn write(
        &self,
        log: &dyn EventLog,
        file: &mut PortableFile,
        options: &OutputOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64, ReplayError> {
        let &Self { partition, to, first, ref config } = self;
        let ticks = TopicPartition { topic: options.ticks.clone(), partition };
        let snapshots = TopicPartition { topic: options.snapshots.clone(), partition };
        let restored = snapshot::newest_before(log, snapshots.clone(), to, config, options.isa)?;
        let from = restored.offset;
        if from < first {
            let (url, topic) = (log.url(), ticks.topic);
            return Err(ReplayError::RecordsGone { url, topic, partition, first });
        }
        let mut rerun = Rerun::from_snapshot(ticks.clone(), config, options, restored);
        let mut reader = PartitionReader::open(log, ticks, OffsetRange { first: from, next: to })?;
        loop {
            let records = reader.next_fetch()?;
            let Some(last) = records.last() else { break };
            rerun.process(&records, None)?;
            progress((last.offset + 1 - from).unsigned_abs());
        }
        let mut written = 0;
        for state in rerun.state(to, &Evicted::default()) {
            let mut value = Vec::new();
            encode_snapshot(&state, &mut value);
            let key = Some(SnapshotPlace::First.key(&state).into_bytes());
            let record = Record { offset: written, timestamp_ns: 0, key, headers: Vec::new(), value };
            file.append(&snapshots, &[record])?;
            written += 1;
        }
        Ok(written.unsigned_abs())
    }
}
