//! Gates: conditions under which the engine reads more of the log.

use super::Core;
use crate::partition::Partition;

/// Bytes that may wait for commits before the engine reads no further ticks.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// Bytes of results that may wait for commits before the engine stops reading requests and making tasks of them.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Bytes of journal entries that may wait for commits. The entries that ticks cause stop growing at about
/// [`WAITING_BYTES_MAX`].
const ENTRIES_BYTES_MAX: usize = 2 * WAITING_BYTES_MAX;

impl Core {
    /// True if so many bytes wait for commits that the engine reads no further.
    pub(super) fn is_full(&self) -> bool {
        let partitions: usize = self.partitions.values().map(Partition::waiting_bytes).sum();
        let answers = self.risk.waiting_bytes() + self.control.waiting_bytes();
        self.recorder.waiting_bytes() + partitions + answers >= WAITING_BYTES_MAX
    }

    /// True if the engine may read records of ticks now.
    pub(super) fn takes_records(&self) -> bool {
        !self.is_full()
    }

    /// True if the engine may read risk requests now, even if only to queue them. Uncommitted outputs of ticks do not
    /// stop them: requests have a bound of their own.
    pub(crate) fn takes_requests(&self) -> bool {
        self.has_room_for_answers() && self.risk.arrivals.has_room()
    }

    /// True if the engine may answer requests now.
    pub(super) fn has_room_for_answers(&self) -> bool {
        let entries_bytes = self.recorder.waiting_bytes();
        self.risk.waiting_bytes() < RESULTS_BYTES_MAX && entries_bytes < ENTRIES_BYTES_MAX
    }

    /// True if the market of a partition is as new as it was before its state was lost.
    pub(super) fn has_market(&self, owned: &Partition) -> bool {
        !owned.is_behind(self.stop_offset(owned.source.partition))
    }
}
