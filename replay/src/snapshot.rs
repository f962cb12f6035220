//! Snapshots of a partition, from which a rerun may begin.
//!
//! The topic is compacted, but at unknown times: it may contain every snapshot ever taken. So it is first read once for
//! the places of the states, and then state by state until one can be restored. Memory holds one state at a time, and
//! up to [`STATES_MAX`] places.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use warptape_engine::{Restored, SnapshotPlace, restore_from};
use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_schemas::{Snapshot, decode_snapshot};
use warptape_stages::{Evicted, Isa, StageConfig};

use crate::partition_reader::PartitionReader;

/// Greatest number of states searched: one every ten seconds for a week.
const STATES_MAX: usize = 1 << 16;

/// The matching state that is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Earliest,
    Newest,
}

/// Returns the earliest complete state within a range of offsets that was taken with a configuration.
pub(crate) fn earliest(
    log: &dyn EventLog,
    source: TopicPartition,
    within: RangeInclusive<i64>,
    config: &StageConfig,
    isa: Isa,
) -> Result<Option<Restored>, LogError> {
    find(log, &source, within, Wanted::Earliest, config, isa)
}

/// Returns the newest complete state at or before an offset that was taken with a configuration; the empty state if
/// there is none.
pub(crate) fn newest_before(
    log: &dyn EventLog,
    source: TopicPartition,
    offset: i64,
    config: &StageConfig,
    isa: Isa,
) -> Result<Restored, LogError> {
    let found = find(log, &source, i64::MIN..=offset, Wanted::Newest, config, isa)?;
    Ok(found.unwrap_or_else(|| Restored::beginning(config, isa)))
}

fn find(
    log: &dyn EventLog,
    source: &TopicPartition,
    within: RangeInclusive<i64>,
    wanted: Wanted,
    config: &StageConfig,
    isa: Isa,
) -> Result<Option<Restored>, LogError> {
    let topic = log.topic(&source.topic)?;
    let range = topic.and_then(|topic| topic.offsets.get(source.partition as usize).copied());
    let Some(range) = range.filter(|range| range.first < range.next) else { return Ok(None) };
    let mut reader = PartitionReader::open(log, source.clone(), range)?;
    let Places { mut states, pages } = places(&mut reader, &within, wanted)?;
    let mut next = || match wanted {
        Wanted::Earliest => states.pop_first(),
        Wanted::Newest => states.pop_last(),
    };
    while let Some((offset, records)) = next() {
        let mut parts = parts(&mut reader, offset, records)?;
        add_pages(&mut reader, &pages, &mut parts)?;
        let mut restored = restore_from(parts, offset, config, isa);
        if restored.offset == offset {
            restored.take_pages_back();
            return Ok(Some(restored));
        }
    }
    Ok(None)
}

/// The places of states' parts in the topic.
#[derive(Default)]
struct Places {
    /// Range of the topic that contains a state's parts, by the state's offset.
    states: BTreeMap<i64, OffsetRange>,
    /// Topic offsets of each page's parts, by the offset of its snapshot and its group number.
    pages: BTreeMap<(i64, i32), Vec<i64>>,
}

/// Returns the places of the parts of all pages, and of each state whose offset is within a range.
fn places(
    reader: &mut PartitionReader,
    within: &RangeInclusive<i64>,
    wanted: Wanted,
) -> Result<Places, LogError> {
    let Places { mut states, mut pages } = Places::default();
    while let Some(record) = reader.next()? {
        let part = match decode_snapshot(&record.value) {
            Ok(part) => part,
            Err(error) => {
                tracing::warn!(offset = record.offset, %error, "snapshot record cannot be read and is skipped");
                continue;
            }
        };
        if part.group >= Snapshot::PAGES {
            pages.entry((part.offset, part.group)).or_default().push(record.offset);
            continue;
        }
        if part.offset <= 0 || !within.contains(&part.offset) || part.group == Snapshot::SEGMENT {
            continue;
        }
        let next = record.offset + 1;
        let records = states.entry(part.offset).or_insert(OffsetRange { first: record.offset, next });
        records.next = next;
        if states.len() > STATES_MAX {
            match wanted {
                Wanted::Earliest => states.pop_last(),
                Wanted::Newest => states.pop_first(),
            };
        }
    }
    Ok(Places { states, pages })
}

/// Adds the existing pages that a state needs.
fn add_pages(
    reader: &mut PartitionReader,
    pages: &BTreeMap<(i64, i32), Vec<i64>>,
    parts: &mut Vec<(SnapshotPlace, Snapshot)>,
) -> Result<(), LogError> {
    let of_intake = parts.iter().filter(|(_, part)| part.group == Snapshot::INTAKE);
    let intake: Vec<u8> = of_intake.flat_map(|(_, part)| part.state.iter().copied()).collect();
    // A damaged state fails later, when it is restored.
    let evicted = Evicted::of_intake(&intake).unwrap_or_default();
    for (&number, page) in evicted.pages() {
        let records = pages.get(&(page.offset, Snapshot::PAGES.saturating_add(number)));
        for &offset in records.into_iter().flatten() {
            reader.seek(offset)?;
            let Some(record) = reader.next_before(offset + 1)? else { continue };
            let Ok(part) = decode_snapshot(&record.value) else { continue };
            parts.push((SnapshotPlace::of_key(record.key.as_deref().unwrap_or_default()), part));
        }
    }
    Ok(())
}

/// Returns the parts of a state among some records, in order. If a part exists several times, the last one counts.
fn parts(
    reader: &mut PartitionReader,
    offset: i64,
    records: OffsetRange,
) -> Result<Vec<(SnapshotPlace, Snapshot)>, LogError> {
    reader.seek(records.first)?;
    let mut parts: BTreeMap<(i32, i32), (i64, SnapshotPlace, Snapshot)> = BTreeMap::new();
    while let Some(record) = reader.next_before(records.next)? {
        let Ok(part) = decode_snapshot(&record.value) else { continue };
        if part.offset == offset && part.group != Snapshot::SEGMENT && part.group < Snapshot::PAGES {
            let place = SnapshotPlace::of_key(record.key.as_deref().unwrap_or_default());
            parts.insert((part.group, part.part), (record.offset, place, part));
        }
    }
    let mut parts: Vec<_> = parts.into_values().collect();
    parts.sort_by_key(|(offset, ..)| *offset);
    Ok(parts.into_iter().map(|(_, place, part)| (place, part)).collect())
}
