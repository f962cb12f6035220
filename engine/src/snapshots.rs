//! Snapshots of a partition: gathered from its groups, cut into records, and assembled again.

use std::collections::{BTreeMap, VecDeque};

use warptape_events::{Checksum, Snapshot};
use warptape_stages::PageState;

/// Largest state in one snapshot record, in bytes.
pub const PART_BYTES_MAX: usize = 512 * 1024;
/// Version of the layout of a snapshot's records.
pub(crate) const STATE_VERSION: i32 = 1;

/// A snapshot for which some groups have not yet reported their states.
pub struct PendingSnapshot {
    /// The state is that before the record at this offset, which also identifies the barrier.
    pub(crate) offset: i64,
    intake: Vec<u8>,
    groups: Vec<Option<Vec<u8>>>,
    missing: usize,
    /// Pages of symbols evicted at this offset, by number.
    pages: BTreeMap<i32, Vec<u8>>,
}

impl PendingSnapshot {
    /// A snapshot of `groups` groups at an offset, with the intake's state before that offset.
    pub fn new(offset: i64, intake: Vec<u8>, groups: usize) -> Self {
        Self { offset, intake, groups: vec![None; groups], missing: groups, pages: BTreeMap::new() }
    }

    /// Adds a page of a group whose state is still missing.
    pub fn add_page(&mut self, page: PageState) {
        if page.barrier == self.offset {
            self.pages.insert(page.page, page.bytes);
        }
    }

    /// Adds a group's state. Returns true if it was the last one missing.
    pub fn add(&mut self, barrier: i64, group: i32, bytes: Vec<u8>) -> bool {
        if barrier != self.offset {
            return false;
        }
        let before = self.groups[group as usize].replace(bytes);
        assert!(before.is_none(), "a group meets a barrier once");
        self.missing -= 1;
        self.missing == 0
    }
}

/// The keys of a snapshot's records. An incomplete snapshot must not overwrite records of the last complete one, so a
/// snapshot in several transactions takes the other place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SnapshotPlace {
    /// `PARTITION/GROUP/PART`.
    #[default]
    First,
    /// `PARTITION/GROUP/PART/2`.
    Second,
}

impl SnapshotPlace {
    const SUFFIX: &str = "/2";

    /// The place of a record with this key.
    pub fn of_key(key: &[u8]) -> Self {
        let slashes = key.iter().filter(|byte| **byte == b'/').count();
        if slashes == 3 && key.ends_with(Self::SUFFIX.as_bytes()) { Self::Second } else { Self::First }
    }

    pub(crate) fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }

    /// The key of a record in this place.
    pub fn key(self, record: &Snapshot) -> String {
        let suffix = match self {
            Self::First => "",
            Self::Second => Self::SUFFIX,
        };
        format!("{}/{}/{}{suffix}", record.partition, record.group, record.part)
    }
}

/// A complete snapshot, or the part of it that is not committed yet.
pub(crate) struct ReadySnapshot {
    pub(crate) offset: i64,
    pub(crate) records: VecDeque<Snapshot>,
    /// Bytes of all states together.
    pub(crate) bytes: usize,
    /// Place of the snapshot; `None` until its first record is sealed.
    pub(crate) place: Option<SnapshotPlace>,
}

impl ReadySnapshot {
    pub(crate) fn new(partition: i32, pending: PendingSnapshot) -> Self {
        let offset = pending.offset;
        let records: VecDeque<Snapshot> = snapshot_records(partition, pending).into();
        let bytes = records.iter().map(|record| record.state.len()).sum();
        Self { offset, records, bytes, place: None }
    }
}

/// The records of a complete snapshot: the intake's parts, then those of each group, then those of new pages.
pub fn snapshot_records(partition: i32, pending: PendingSnapshot) -> Vec<Snapshot> {
    let groups = pending.groups.into_iter().map(|state| state.expect("no group is missing"));
    let states = std::iter::once(pending.intake).chain(groups);
    let pages = pending.pages.into_iter().map(|(page, state)| (Snapshot::PAGES + page, state));
    let numbered = (Snapshot::INTAKE..).zip(states).chain(pages);
    numbered.flat_map(|(group, state)| parts(partition, group, pending.offset, &state)).collect()
}

fn parts(partition: i32, group: i32, offset: i64, state: &[u8]) -> Vec<Snapshot> {
    let count = state.len().div_ceil(PART_BYTES_MAX).max(1);
    let part = |part: usize| {
        let start = part * PART_BYTES_MAX;
        let bytes = &state[start..state.len().min(start + PART_BYTES_MAX)];
        Snapshot {
            partition,
            group,
            offset,
            part: part as i32,
            parts: count as i32,
            state_version: STATE_VERSION,
            state: bytes.to_vec(),
            checksum: Checksum,
        }
    };
    (0..count).map(part).collect()
}
