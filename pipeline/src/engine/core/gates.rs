//! What the engine takes from the log now, and what it leaves there to wait.

use super::super::partition::Partition;
use super::Core;

/// Bytes that may wait for commits before the engine reads no further.
const WAITING_BYTES_MAX: usize = 16 << 20;

impl Core {
    /// Whether so much waits for commits that the engine reads no further.
    pub fn is_full(&self) -> bool {
        let partitions: usize = self.partitions.values().map(Partition::waiting_bytes).sum();
        self.recorder.waiting_bytes() + partitions + self.risk.waiting_bytes() >= WAITING_BYTES_MAX
    }

    /// Whether what the source tells may come now. Once it has ended, no commit makes room any more, and why it has ended is
    /// still to be heard.
    pub fn takes_records(&self) -> bool {
        !self.is_full() || self.ownership.has_ended()
    }

    /// Whether risk requests may come now, be it to wait for their turn.
    pub fn takes_requests(&self) -> bool {
        self.takes_records() && self.risk.arrivals.has_room()
    }

    /// Whether the market of a partition is as new as it has been.
    pub(super) fn has_market(&self, owned: &Partition) -> bool {
        !owned.is_behind(self.stop_offset(owned.source.partition))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use warptape_eventlog::Record;

    use super::super::Command;
    use super::*;
    use crate::engine::Restored;
    use crate::settings::{Sources, load};

    pub(in super::super) const PARTITION: i32 = 0;

    /// Has restored a partition from the beginning of its log, outputs existing before an offset; and the generation of its records.
    pub(in super::super) fn restored(sealed_offset: i64) -> (Core, u64) {
        let sources = Sources { cores: 1, ..Sources::default() };
        let config = load(&sources).expect("the defaults are good").0.engine_config(None);
        let beginning = Restored::beginning(&config.stages, config.isa);
        let mut core = Core::new(config, None).expect("a new journal can be begun");
        core.begin(0).expect("the journal takes it");
        core.on_restored(0, PARTITION, beginning, sealed_offset).expect("the journal takes it");
        let seek = |command| match command {
            Command::Seek { generation, .. } => Some(generation),
            _ => None,
        };
        let generation = core.take_commands().into_iter().find_map(seek).expect("it is read");
        (core, generation)
    }

    pub(in super::super) fn unreadable(offset: i64, bytes: usize) -> Record {
        Record { offset, key: None, headers: Vec::new(), timestamp_ns: 0, value: vec![0; bytes] }
    }

    #[test]
    fn what_ended_the_source_is_heard_though_nothing_makes_room_any_more() {
        let (mut core, generation) = restored(0);
        // Each is a dead letter with half of the record, which waits for a commit.
        let records: Vec<Record> = (0..34).map(|offset| unreadable(offset, 1 << 20)).collect();
        core.on_records(0, PARTITION, generation, &records, 0).expect("the journal takes it");
        assert!(core.is_full() && !core.takes_records() && !core.takes_requests());
        core.ownership().end_all();
        drop(core.seal(0).unwrap());
        assert!(core.is_full(), "it is others' to commit");
        assert!(core.takes_records() && core.takes_requests());
    }
}
