//! What the engine takes from the log now, and what it leaves there to wait.

use super::Core;
use crate::partition::Partition;

/// Bytes that may wait for commits before the engine reads no further.
const WAITING_BYTES_MAX: usize = 16 << 20;

impl Core {
    /// Whether so much waits for commits that the engine reads no further.
    pub(super) fn is_full(&self) -> bool {
        let partitions: usize = self.partitions.values().map(Partition::waiting_bytes).sum();
        let answers = self.risk.waiting_bytes() + self.control.waiting_bytes();
        self.recorder.waiting_bytes() + partitions + answers >= WAITING_BYTES_MAX
    }

    /// Whether records of ticks may come now.
    pub fn takes_records(&self) -> bool {
        !self.is_full()
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
