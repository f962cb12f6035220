//! The group's offsets, which are set from outside while no process runs, and how a process compares them with the
//! journals.

use warptape_engine::{Assigned, Claims, Committed, JournalPositions};
use warptape_schemas::{decode_dead_letter, decode_journal_entry, decode_late_tick, decode_signal};

use super::source::end_of;
use super::{Failure, Plant, Simulation, World};
use crate::random::Random;

/// The positions in the journals of all processes, as far as they have been read.
#[derive(Default)]
pub(super) struct Journals {
    positions: Vec<JournalPositions>,
    /// Number of entries read from each journal.
    read: Vec<usize>,
}

/// Draws an offset before, at or after the right one; `None` for no offset.
fn any_offset(random: &mut Random, end: i64) -> Option<i64> {
    (!random.one_in(3)).then(|| random.between(0, end + 3))
}

impl World {
    /// Returns the positions that the journal of a process contains.
    pub(super) fn positions(&mut self, ordinal: i32) -> JournalPositions {
        self.read_journals();
        self.journals.positions[ordinal as usize].clone()
    }

    fn read_journals(&mut self) {
        let Self { journals, committed, .. } = self;
        let all = committed.records.get("journal");
        for ordinal in 0..super::PROCESSES_MAX {
            let records = all.and_then(|all| all.get(&ordinal)).map_or(&[][..], Vec::as_slice);
            let ordinal = ordinal as usize;
            if journals.positions.len() == ordinal {
                journals.positions.push(JournalPositions::beginning());
                journals.read.push(0);
            }
            for record in &records[journals.read[ordinal]..] {
                let entry = decode_journal_entry(record).expect("entries are written whole");
                journals.positions[ordinal].add(&entry.input);
            }
            journals.read[ordinal] = records.len();
        }
    }

    /// Decides at which offset a process continues with a partition.
    pub(super) fn hold(&mut self, partition: i32) -> Assigned {
        let records = self.source[partition as usize].len();
        let end = end_of(records, self.published(records), self);
        let group = self.committed_offset(partition);
        let group_request = self.requests.offsets.get(&partition).copied();
        if matches!(self.plant, Plant::OffsetsFirst | Plant::OffsetsBelieved) {
            let requests = Committed { offset: group_request.unwrap_or(0), is_uncommitted: false };
            return Assigned { partition, committed: group, end, requests, ..Assigned::default() };
        }
        self.read_journals();
        let claims = Claims::on_ticks(&self.journals.positions, partition, group);
        let settled = claims.settle(self.outputs(partition)).unwrap_or_else(|odds| {
            self.impossible.get_or_insert(format!("at odds: {odds:?}"));
            group
        });
        self.coverage.offsets_overruled += usize::from(settled != group);
        let offset =
            Claims::on_requests(&self.journals.positions, partition, group_request).settle_requests();
        let requests = Committed { offset, is_uncommitted: group_request != Some(offset) };
        let is_uncommitted = settled != group;
        Assigned { partition, committed: settled, end, is_uncommitted, lost_from: None, requests }
    }

    /// Returns the offset before which all records were processed, according to the newest outputs and the newest
    /// snapshot.
    fn outputs(&self, partition: i32) -> i64 {
        let newest = |topic: &str| self.topic(topic, partition).last();
        let signal = newest("signals").map(|record| decode_signal(record).expect("whole").source_offset);
        let late = newest("late").map(|record| decode_late_tick(record).expect("whole").offset);
        let dead = newest("dead-letter").map(|record| decode_dead_letter(record).expect("whole").offset);
        let behind = [signal, late, dead].into_iter().flatten().max().map_or(0, |cause| cause + 1);
        behind.max(self.snapshots.newest(partition).unwrap_or(0))
    }

    /// Removes from the log some records that snapshots cover.
    fn remove_ticks(&mut self) {
        self.read_journals();
        for partition in 0..self.source.len() {
            let claims = Claims::on_ticks(&self.journals.positions, partition as i32, None);
            let Some(sealed) = claims.journal.filter(|_| self.random.one_in(2)) else { continue };
            let covered = self.restored(partition as i32, sealed).offset;
            if covered > self.first[partition] {
                self.first[partition] = self.random.between(self.first[partition], covered);
                self.coverage.ticks_removed += 1;
            }
        }
    }

    fn reset_offsets(&mut self) {
        self.coverage.offsets_reset += 1;
        for partition in 0..self.source.len() {
            let ends = [self.source[partition].len(), self.requests.len(partition)];
            let [ticks, requests] = ends.map(|end| any_offset(&mut self.random, end as i64));
            let partition = partition as i32;
            if self.random.one_in(2) {
                set(&mut self.committed.offsets, partition, ticks);
            }
            if self.random.one_in(2) {
                set(&mut self.requests.offsets, partition, requests);
            }
        }
    }
}

fn set(offsets: &mut std::collections::BTreeMap<i32, i64>, partition: i32, offset: Option<i64>) {
    match offset {
        Some(offset) => _ = offsets.insert(partition, offset),
        None => _ = offsets.remove(&partition),
    }
}

impl Simulation {
    /// Ends all processes for a while. Meanwhile the group's offsets are set from outside, and old ticks are removed.
    pub(super) fn rest(&mut self) -> Result<(), Failure> {
        let there: Vec<usize> =
            (0..self.processes.len()).filter(|&index| self.processes[index].is_some()).collect();
        for &index in &there {
            self.processes[index].as_mut().expect("it is there").crash(&mut self.world);
            self.world.group.leave(index);
        }
        self.world.reset_offsets();
        self.world.remove_ticks();
        there.into_iter().try_for_each(|index| self.restart(index))
    }
}
