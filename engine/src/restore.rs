//! Stage state of a partition, restored from its newest valid snapshot or begun from nothing.

use std::collections::BTreeMap;

use warptape_events::Snapshot;
use warptape_kernels::Isa;
use warptape_stages::{GroupOutput, GroupQueue, GroupStage, PartitionIntake, StageConfig, StageError};

use crate::segment::take_segment;
use crate::snapshots::{STATE_VERSION, SnapshotPlace};

/// State of a partition before the record at `offset`.
pub struct Restored {
    /// The first record whose effects are not in the state.
    pub offset: i64,
    /// Place of the snapshot.
    pub place: SnapshotPlace,
    /// State of the host side: symbols and event time.
    pub intake: PartitionIntake,
    /// States of the lane side, by group.
    pub stages: Vec<GroupStage>,
    /// Pages of evicted symbols, by number.
    pub pages: BTreeMap<i32, Vec<u8>>,
    /// The stage configuration of the partition's present segment, as JSON; `None` if no segment is recorded.
    pub segment: Option<String>,
    /// Offset of the oldest record that the log still has. The reader of the log sets it.
    pub first: i64,
}

impl Restored {
    /// The state at the beginning of the log.
    pub fn beginning(config: &StageConfig, isa: Isa) -> Self {
        let stages = (0..config.groups_per_partition).map(|_| GroupStage::new(config, isa));
        let (intake, place) = (PartitionIntake::new(config), SnapshotPlace::default());
        Self {
            offset: 0,
            place,
            intake,
            stages: stages.collect(),
            pages: BTreeMap::new(),
            segment: None,
            first: 0,
        }
    }

    /// Replaces the state by an empty one, at the same place.
    pub(crate) fn empty(&mut self, config: &StageConfig) {
        let isa = self.stages.first().map_or(Isa::Baseline, GroupStage::isa);
        let Self { intake, stages, pages, .. } = Self::beginning(config, isa);
        (self.intake, self.stages, self.pages) = (intake, stages, pages);
    }

    /// Takes all symbols into memory.
    pub fn take_pages_back(&mut self) {
        if self.pages.is_empty() {
            return;
        }
        let mut queues: Vec<GroupQueue> = self.stages.iter().map(|_| GroupQueue::default()).collect();
        for (page, bytes) in std::mem::take(&mut self.pages) {
            let taken = self.intake.take_back(page, &bytes, self.offset, &mut queues);
            taken.expect("the pages were checked when they were read");
        }
        // At a barrier, groups are ordered by the numbers of their symbols.
        self.intake.evict(None, self.offset + 1, self.offset + 1, &mut queues);
        self.intake.barrier(self.offset + 1, self.offset + 1, &mut queues);
        for (stage, queue) in self.stages.iter_mut().zip(&mut queues) {
            stage.run(queue.take(queue.rows.len()), &mut GroupOutput::default());
        }
    }
}

/// Restores a partition from the newest complete snapshot at or before `committed` among these records.
pub fn restore_from(
    mut parts: Vec<(SnapshotPlace, Snapshot)>,
    committed: i64,
    config: &StageConfig,
    isa: Isa,
) -> Restored {
    let segment = take_segment(&mut parts);
    // All parts of one snapshot are in the same place, even if several transactions committed them.
    let places: BTreeMap<i64, SnapshotPlace> =
        parts.iter().map(|(place, part)| (part.offset, *place)).collect();
    let states = states(parts.into_iter().map(|(_, part)| part));
    for &offset in states.keys().rev().filter(|offset| **offset <= committed) {
        // Compaction leaves only the pages of many snapshots.
        if !states[&offset].keys().any(|group| *group < Snapshot::PAGES) {
            continue;
        }
        match assemble(offset, places[&offset], &states, config, isa) {
            Ok(restored) => return Restored { segment, ..restored },
            Err(error) => tracing::warn!(offset, %error, "a snapshot cannot be used and is skipped"),
        }
    }
    Restored { segment, ..Restored::beginning(config, isa) }
}

fn assemble(
    offset: i64,
    place: SnapshotPlace,
    states: &BTreeMap<i64, BTreeMap<i32, Vec<u8>>>,
    config: &StageConfig,
    isa: Isa,
) -> Result<Restored, StageError> {
    let state_at = |offset: i64, group: i32| {
        let found = format!("the state of group {group} at {offset} is missing");
        states.get(&offset).and_then(|states| states.get(&group)).ok_or(StageError::Damaged { found })
    };
    let state = |group: i32| state_at(offset, group);
    let intake = PartitionIntake::read(config, state(Snapshot::INTAKE)?)?;
    let groups = 0..config.groups_per_partition as i32;
    let stages: Result<Vec<_>, _> =
        groups.map(|group| GroupStage::read(config, isa, state(group)?)).collect();
    let mut pages = BTreeMap::new();
    for (&number, page) in intake.evicted().pages() {
        let bytes = state_at(page.offset, Snapshot::PAGES.saturating_add(number))?;
        intake.check_page(number, bytes)?;
        pages.insert(number, bytes.clone());
    }
    let stages = stages?;
    // Two processes may have evicted different symbols at the same offset.
    if let Some((group, _)) = (0..).zip(&stages).find(|(group, stage)| !intake.has_group(*group, stage)) {
        let found = format!("the state of group {group} has other symbols than the partition has there");
        return Err(StageError::Damaged { found });
    }
    Ok(Restored { offset, place, intake, stages, pages, segment: None, first: 0 })
}

/// Complete states, by snapshot offset and group.
fn states(parts: impl Iterator<Item = Snapshot>) -> BTreeMap<i64, BTreeMap<i32, Vec<u8>>> {
    let mut by_group: BTreeMap<(i64, i32), BTreeMap<i32, Snapshot>> = BTreeMap::new();
    for part in parts {
        if part.state_version == STATE_VERSION && (0..part.parts).contains(&part.part) {
            let parts = by_group.entry((part.offset, part.group)).or_default();
            // Parts come in log order: a newer snapshot at the same offset replaces parts of an older one.
            parts.retain(|_, older: &mut Snapshot| older.parts == part.parts);
            parts.insert(part.part, part);
        }
    }
    let mut states: BTreeMap<i64, BTreeMap<i32, Vec<u8>>> = BTreeMap::new();
    for ((offset, group), parts) in by_group {
        let complete = parts.values().all(|part| part.parts as usize == parts.len());
        if complete {
            let mut state = Vec::with_capacity(parts.values().map(|part| part.state.len()).sum());
            parts.values().for_each(|part| state.extend_from_slice(&part.state));
            states.entry(offset).or_default().insert(group, state);
        }
    }
    states
}
