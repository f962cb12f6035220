//! Pages of evicted symbols: when they are read, taken back into memory, and let go.

use super::Core;
use crate::command::Command;
use crate::error::CoreError;
use crate::partition::{Need, PageId, ReadPage};

impl Core {
    /// Requests the pages that a partition's next record waits for, or continues with the record if they are here.
    pub(super) fn see_to_pages(&mut self, partition: i32) -> Result<(), CoreError> {
        // A partition that is being handed over is read no further.
        if self.membership.is_handed_over(partition) {
            return Ok(());
        }
        let Some(owned) = self.partitions.get_mut(&partition) else { return Ok(()) };
        match owned.need() {
            Need::Nothing => {}
            Need::Read(pages) => {
                let number = self.membership.next_restore();
                owned.begin_reading(number);
                self.commands.push_back(Command::ReadPages { number, partition, pages });
            }
            Need::Here(pages) => {
                owned.take_pages_back(&pages).map_err(|(page, error)| CoreError::Page {
                    topic: self.config.topics.snapshots.clone(),
                    partition,
                    page: page.page,
                    offset: page.offset,
                    reason: error.to_string(),
                })?;
                let (offset, generation) = (owned.next_offset, owned.generation);
                self.commands.push_back(Command::Seek { partition, offset, generation });
                let mut loads = self.recorder.scheduler().partition_loads();
                if loads.any(|load| load.partition == partition && load.paused) {
                    self.commands.push_back(Command::Pause(partition));
                }
            }
        }
        Ok(())
    }

    /// Handles pages that were read; a page missing from the log has no bytes. Ignores a read that is no longer
    /// awaited.
    pub(super) fn on_pages_read(&mut self, number: u64, pages: Vec<ReadPage>) -> Result<(), CoreError> {
        let awaiting = self.partitions.iter_mut().find(|(_, owned)| owned.awaits_pages(number));
        let Some((&partition, owned)) = awaiting else { return Ok(()) };
        let read = pages.into_iter().map(|(id, bytes)| bytes.map(|bytes| (id, bytes)).ok_or(id));
        let read = read.collect::<Result<Vec<_>, PageId>>().map_err(|id| CoreError::Page {
            topic: self.config.topics.snapshots.clone(),
            partition,
            page: id.page,
            offset: id.offset,
            reason: "it is gone".to_owned(),
        })?;
        owned.end_reading(read);
        self.see_to_pages(partition)
    }

    /// Frees the pages that a search found in the log; the others stay in memory.
    pub(super) fn on_pages_found(&mut self, partition: i32, sought: &[PageId], found: &[PageId]) {
        let Some(owned) = self.partitions.get_mut(&partition) else { return };
        owned.let_pages_go(sought, found);
        let missing = sought.iter().filter(|id| !found.contains(id) && owned.has_page(**id)).count();
        if missing > 0 {
            self.commands.push_back(Command::PagesMissing { partition, missing });
        }
    }

    /// Requests a search of the log for pages of committed snapshots, after a commit.
    pub(super) fn find_pages(&mut self) {
        for (&partition, owned) in &mut self.partitions {
            let pages = owned.begin_to_seek_pages();
            if !pages.is_empty() {
                self.commands.push_back(Command::FindPages { partition, pages });
            }
        }
    }
}
