//! The topic of snapshots, which may be compacted at any time. Compaction must never remove the newest complete
//! snapshot.

use std::collections::{BTreeMap, BTreeSet};

use warptape_engine::{Event, PageId, Restored, SnapshotPlace, restore_from};
use warptape_schemas::{Snapshot, decode_snapshot};

use super::process::Process;
use super::{Failure, World};

/// Key and value.
type KeyedRecord = (Vec<u8>, Vec<u8>);

/// Records in the order of the log, by partition.
#[derive(Default)]
pub(super) struct SnapshotTopic(BTreeMap<i32, Vec<KeyedRecord>>);

impl SnapshotTopic {
    pub(super) fn add(&mut self, partition: i32, key: &[u8], value: Vec<u8>) {
        self.0.entry(partition).or_default().push((key.to_owned(), value));
    }

    /// Returns the offset of the newest record's state; `None` if there is no record.
    pub(super) fn newest(&self, partition: i32) -> Option<i64> {
        let (_, value) = self.0.get(&partition)?.last()?;
        Some(decode_snapshot(value).expect("snapshots are written whole").offset)
    }

    /// Keeps only the newest record of each key of a partition. Returns true if it removed records.
    fn compact(&mut self, partition: i32) -> bool {
        let records = self.0.entry(partition).or_default();
        let before = records.len();
        let mut keys = BTreeSet::new();
        let mut newest: Vec<_> = std::mem::take(records);
        newest.reverse();
        newest.retain(|(key, _)| keys.insert(key.clone()));
        newest.reverse();
        *records = newest;
        records.len() < before
    }

    /// Returns the bytes of a page; `None` if the log lacks it.
    fn page(&self, partition: i32, id: PageId) -> Option<Vec<u8>> {
        let is_it = |part: &Snapshot| (part.group, part.offset) == (Snapshot::PAGES + id.page, id.offset);
        let parts = self.parts(partition).into_iter().map(|(_, part)| part).filter(is_it);
        let by_number: BTreeMap<i32, Snapshot> = parts.map(|part| (part.part, part)).collect();
        let is_whole = by_number.values().all(|part| part.parts as usize == by_number.len());
        let bytes = || by_number.values().flat_map(|part| part.state.iter().copied()).collect();
        (is_whole && !by_number.is_empty()).then(bytes)
    }

    /// Returns the parts of snapshots as a restoring process reads them.
    fn parts(&self, partition: i32) -> Vec<(SnapshotPlace, Snapshot)> {
        let records = self.0.get(&partition).into_iter().flatten();
        let part = |(key, value): &KeyedRecord| {
            (SnapshotPlace::of_key(key), decode_snapshot(value).expect("snapshots are written whole"))
        };
        records.map(part).collect()
    }
}

/// A partition to be restored.
pub(super) struct Restore {
    pub(super) number: u64,
    pub(super) partition: i32,
    pub(super) sealed_offset: i64,
}

/// A task of the restore thread about pages.
pub(super) enum PageJob {
    Read { number: u64, partition: i32, pages: Vec<PageId> },
    Find { partition: i32, pages: Vec<PageId> },
}

/// Greatest number of states that are read before the core takes one: one in the channel, and one behind it.
const RESTORED_MAX: usize = 2;

impl Process {
    /// Reads a state like the restore thread, and in most cases passes a state to the core.
    pub(super) fn restore(&mut self, world: &mut World) -> Result<(), Failure> {
        if self.around.restored.len() < RESTORED_MAX {
            self.read_state(world)?;
        }
        if world.random.one_in(4) {
            return Ok(());
        }
        match self.around.restored.pop_front() {
            Some((_, number, restored)) => {
                self.tell(Event::Restored { number, restored: Box::new(restored) }, world)
            }
            None => Ok(()),
        }
    }

    /// Reads pages like the restore thread, or finds them in the log.
    pub(super) fn do_page_job(&mut self, world: &mut World) -> Result<(), Failure> {
        match self.around.page_jobs.pop_front() {
            None => {}
            Some(PageJob::Find { partition, pages }) => {
                if world.random.one_in(2) {
                    world.coverage.snapshots_compacted += usize::from(world.snapshots.compact(partition));
                }
                let is_there = |id: &PageId| world.snapshots.page(partition, *id).is_some();
                let found: Vec<PageId> = pages.iter().copied().filter(is_there).collect();
                world.coverage.pages_found += found.len();
                self.tell(Event::PagesFound { partition, sought: pages, found }, world)?;
                if let Some(partition) = self.around.pages_missing.take() {
                    let found =
                        format!("partition {partition}: pages of a committed snapshot are not in the log");
                    return Err(Failure::Outputs(found));
                }
            }
            Some(PageJob::Read { number, partition, pages }) => {
                let read = |id: PageId| (id, world.snapshots.page(partition, id));
                let read = pages.into_iter().map(read).collect();
                world.coverage.pages_read += 1;
                self.tell(Event::PagesRead { number, pages: read }, world)?;
            }
        }
        Ok(())
    }

    fn read_state(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some(restore) = self.around.restores.pop_front() else { return Ok(()) };
        let Restore { number, partition, sealed_offset } = restore;
        let mut restored = self.restored(partition, sealed_offset, world);
        if world.random.one_in(2) && world.snapshots.compact(partition) {
            world.coverage.snapshots_compacted += 1;
            let before = restored.offset;
            restored = self.restored(partition, sealed_offset, world);
            if restored.offset != before {
                let offset = restored.offset;
                return Err(Failure::Outputs(format!(
                    "partition {partition}: the snapshot at {before} is gone with compaction, and that at {offset} is left"
                )));
            }
        }
        world.coverage.snapshots_used += usize::from(restored.offset > 0);
        world.coverage.snapshots_beside += usize::from(restored.place == SnapshotPlace::Second);
        world.coverage.tails_replayed += usize::from(restored.offset < sealed_offset);
        self.around.restored.push_back((partition, number, restored));
        Ok(())
    }

    fn restored(&self, partition: i32, sealed_offset: i64, world: &World) -> Restored {
        let first = world.first[partition as usize];
        Restored { first, ..world.restored(partition, sealed_offset) }
    }
}

impl World {
    /// Returns the newest state of a partition at or before an offset.
    pub(super) fn restored(&self, partition: i32, offset: i64) -> Restored {
        let parts = self.snapshots.parts(partition);
        restore_from(parts, offset, &self.config.core.stages, self.config.isa)
    }
}

/// Returns the key that a record would have if all snapshots used the first set of keys.
pub(super) fn in_first_place(key: &[u8]) -> &[u8] {
    match SnapshotPlace::of_key(key) {
        SnapshotPlace::First => key,
        SnapshotPlace::Second => &key[..key.len() - "/2".len()],
    }
}
