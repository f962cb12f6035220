//! Counts waiting rows and rows in flight, at each entry that changes them.

use super::queues::Partition;
use super::{History, Item, Level, LevelOf, Moment};

impl History {
    /// Reports the counts that the entry has changed, with their values after it.
    pub(super) fn tell_levels(&mut self, at: Moment) {
        for of in std::mem::take(&mut self.changed) {
            let rows = match of {
                LevelOf::Waiting(partition) => {
                    self.partitions.get(&partition).map_or(0, Partition::waiting_rows)
                }
                LevelOf::InFlight(lane) => self.lanes.get(&lane).map_or(0, |lane| lane.rows),
            };
            self.items.push(Item::Level(Level { at, of, rows }));
        }
    }
}
