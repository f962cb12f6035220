//! Compares the snapshots of a partition with the states of a rerun at the same places.
//!
//! ```text
//!  snapshots ──► which places, under which configurations ──┐
//!      │                                                     ├──► each record is that of the state, or differs
//!      │     ticks ──► Rerun ──► the state at these places ──┘
//!      └──► each snapshot is there from its first record to its last, in order
//! ```
//!
//! Records may be missing for two reasons. First, the topic is compacted. A record may be removed once there is a newer
//! one with its key and all older such records are removed. Second, a snapshot written in several transactions ends
//! early if its process does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use warptape_engine::SnapshotPlace;
use warptape_eventlog::{EventLog, LogError, OffsetRange, RecordClock, TopicPartition};
use warptape_schemas::{Snapshot, decode_snapshot};
use warptape_stages::{Evicted, Page};
use xxhash_rust::xxh3::xxh3_64;

use crate::difference::Difference;
use crate::ownerships::Ownerships;
use crate::partition_reader::{PartitionReader, RecordWindow};
use crate::segments::Segments;
use crate::{OutputDivergence, OutputProblem, ReplayError};

/// Compares the snapshots of one partition.
pub(crate) struct StateCheck {
    pub(crate) source: TopicPartition,
    window: RecordWindow,
    range: OffsetRange,
    /// True if the writer's clock sets the times of records.
    has_writers_times: bool,
    /// Records in the order of the log.
    records: Vec<Found>,
    /// Indexes of the records at each place that the rerun has not reached yet.
    places: BTreeMap<i64, Vec<usize>>,
    /// The parts of the complete snapshots that the rerun has reached.
    met: Vec<Whole>,
    evictions: Evictions,
}

/// The symbols that are evicted according to snapshots.
#[derive(Default)]
struct Evictions {
    /// Evicted symbols by place and configuration, from existing intakes.
    lists: BTreeMap<(i64, u64), Evicted>,
    /// The beginning of an intake that continues in its next part.
    begun: BTreeMap<(i64, u64), Vec<u8>>,
    /// The newest snapshot's intake at each place: the offset of its first part in the topic, and its key in `lists`.
    newest: BTreeMap<SnapshotPlace, (i64, (i64, u64))>,
    /// Existing pages, by the offset of their snapshot and by number.
    pages: BTreeSet<(i64, i32)>,
}

impl Evictions {
    /// Adds the record at an offset, in the order of the log.
    fn add(&mut self, offset: i64, place: SnapshotPlace, part: &Snapshot, taken: Option<Taken>) {
        if let Some(page) = part.group.checked_sub(Snapshot::PAGES).filter(|page| *page >= 0) {
            self.pages.insert((part.offset, page));
        }
        let Some(taken) = taken.filter(|_| part.group == Snapshot::INTAKE) else { return };
        let key = (part.offset, taken.fingerprint);
        let mut bytes = if part.part == 0 { Vec::new() } else { self.begun.remove(&key).unwrap_or_default() };
        if part.part == 0 {
            self.newest.insert(place, (offset, key));
        } else if bytes.is_empty() {
            return;
        }
        bytes.extend_from_slice(&part.state);
        match Evicted::of_intake(&bytes) {
            Ok(evicted) => _ = self.lists.insert(key, evicted),
            Err(_) if part.part + 1 < part.parts => _ = self.begun.insert(key, bytes),
            // The comparison later reports that such an intake differs.
            Err(_) => _ = self.lists.insert(key, Evicted::default()),
        }
    }

    /// True if the evicted symbols of a place are known. Pages are never removed, so without pages no symbol was ever
    /// evicted. The intake for the record at an offset may have been compacted away after a newer one.
    fn are_known_at(&self, at: i64, fingerprint: u64, offset: i64, place: SnapshotPlace) -> bool {
        let has_newer = || self.newest.get(&place).is_some_and(|(newest, _)| *newest > offset);
        self.pages.is_empty() || self.lists.contains_key(&(at, fingerprint)) || !has_newer()
    }

    /// Returns the evicted symbols at a place. If its intake is gone, these are the symbols of its pages that later
    /// intakes name.
    fn at(&self, at: i64, fingerprint: u64) -> Evicted {
        if let Some(evicted) = self.lists.get(&(at, fingerprint)) {
            return evicted.clone();
        }
        let later = self.lists.range((at, 0)..).filter(|((_, other), _)| *other == fingerprint);
        let pages = later.flat_map(|(_, evicted)| evicted.pages()).filter(|(_, page)| page.offset == at);
        Evicted::of_pages(pages.map(|(number, page)| (*number, page.clone())))
    }

    /// Finds a page of an earlier snapshot that the newest intake names, and that is missing or has other symbols.
    /// Returns the offset of the intake's record, and the problem.
    fn missing_page(&self) -> Option<(i64, OutputProblem)> {
        let (offset, (at, fingerprint)) = self.newest.values().max().copied()?;
        let pages = self.lists.get(&(at, fingerprint))?.pages();
        let earlier = pages.iter().filter(|(_, page)| page.offset < at);
        let is_wrong = |(number, page): &(&i32, &Page)| {
            let made = self.lists.get(&(page.offset, fingerprint)).and_then(|list| list.pages().get(*number));
            !self.pages.contains(&(page.offset, **number)) || made.is_some_and(|made| made != *page)
        };
        earlier.into_iter().find(is_wrong).map(|(number, page)| {
            let expected = format!("page {number} of the snapshot at {}", page.offset);
            let found = "none, or one of other symbols";
            let differences = vec![Difference::new("state", expected, found)];
            (offset, OutputProblem::Changed { differences })
        })
    }
}

/// A record of the topic.
struct Found {
    offset: i64,
    at_ns: i64,
    key: Vec<u8>,
    place: SnapshotPlace,
    what: What,
}

enum What {
    /// A part of a state.
    Part { at: i64, taken: Option<Taken>, seen: Seen },
    /// The beginning of a segment, as the journal shows it.
    Segment,
    /// A record that cannot be compared.
    Passed,
    /// A record that is wrong, whatever the states are.
    Wrong(OutputProblem),
}

/// The result of comparing a part of a state.
enum Seen {
    /// The replay has not reached the state yet.
    Unmet,
    /// The record is the part `number` of the complete snapshot `whole`.
    Same {
        whole: usize,
        number: usize,
    },
    Differs(OutputProblem),
    /// The state has another form: it comes from other software, has no evicted symbols, or is unknown.
    OtherVersion,
}

/// The configuration with which a state was taken, read from the beginning of its first part.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Taken {
    version: u32,
    fingerprint: u64,
}

/// The records of a complete snapshot in order, without their states.
struct Whole {
    parts: Vec<Snapshot>,
}

/// The consecutive records of one snapshot.
#[derive(Clone, Copy)]
struct Run {
    whole: usize,
    place: SnapshotPlace,
    /// Index of the run's first record, and of its last one so far.
    first: usize,
    last: usize,
    /// Number of the next part.
    next: usize,
}

impl StateCheck {
    /// Reads the snapshots of a partition. If the journal has lost its beginning, it may lack segments.
    pub(crate) fn open(
        log: &dyn EventLog,
        source: TopicPartition,
        range: OffsetRange,
        segments: &Segments,
        is_trimmed: bool,
    ) -> Result<Self, LogError> {
        let window = RecordWindow::open(log, source.clone(), range)?;
        let mut reader = PartitionReader::open(log, source.clone(), range)?;
        let mut records: Vec<Found> = Vec::new();
        let mut places: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        let mut taken_by_group: BTreeMap<(i64, i32), Taken> = BTreeMap::new();
        let mut evictions = Evictions::default();
        while let Some(record) = reader.next()? {
            let key = record.key.unwrap_or_default();
            let what = match decode_snapshot(&record.value) {
                Err(error) => {
                    let expected = "a snapshot".into();
                    What::Wrong(OutputProblem::Unreadable { error: error.to_string(), expected })
                }
                Ok(part) if part.group == Snapshot::SEGMENT => {
                    segment(&part, &key, source.partition, segments, is_trimmed)
                }
                Ok(part) => {
                    let group = (part.offset, part.group);
                    if let (0, Some(taken)) = (part.part, Taken::of(&part)) {
                        taken_by_group.insert(group, taken);
                    }
                    places.entry(part.offset).or_default().push(records.len());
                    let taken = taken_by_group.get(&group).copied();
                    evictions.add(record.offset, SnapshotPlace::of_key(&key), &part, taken);
                    What::Part { at: part.offset, taken, seen: Seen::Unmet }
                }
            };
            let (offset, at_ns, place) = (record.offset, record.timestamp_ns, SnapshotPlace::of_key(&key));
            records.push(Found { offset, at_ns, key, place, what });
        }
        let has_writers_times = log.record_clock(&source.topic)? == Some(RecordClock::Writer);
        Ok(Self { source, window, range, has_writers_times, records, places, met: Vec::new(), evictions })
    }

    /// Returns the fingerprints of the states' configurations, with the last place of each.
    pub(crate) fn fingerprints(&self) -> BTreeMap<u64, i64> {
        let mut last = BTreeMap::new();
        for found in &self.records {
            if let What::Part { at, taken: Some(taken), .. } = found.what {
                let known: &mut i64 = last.entry(taken.fingerprint).or_default();
                *known = at.max(*known);
            }
        }
        last
    }

    /// Compares only the places from an offset on.
    pub(crate) fn begin(&mut self, from: i64) {
        let later = self.places.split_off(&from);
        for index in std::mem::replace(&mut self.places, later).into_values().flatten() {
            self.records[index].what = What::Passed;
        }
    }

    /// Returns the next place if it is at or before an offset.
    pub(crate) fn next_place(&self, up_to: i64) -> Option<i64> {
        self.places.first_key_value().map(|(place, _)| *place).filter(|place| *place <= up_to)
    }

    /// True if a record at the next place may belong to a configuration.
    pub(crate) fn wants(&self, fingerprint: u64) -> bool {
        let of_next = self.places.first_key_value().map_or(&[][..], |(_, records)| records);
        of_next.iter().any(|index| self.records[*index].may_be(fingerprint))
    }

    /// Returns the evicted symbols at a place, with a configuration.
    pub(crate) fn evicted_at(&self, place: i64, fingerprint: u64) -> Evicted {
        self.evictions.at(place, fingerprint)
    }

    /// Compares the records of the next place with the state of a configuration.
    pub(crate) fn compare(&mut self, fingerprint: u64, states: Vec<Snapshot>) -> Result<(), ReplayError> {
        let indexes = self.places.first_key_value().map_or(Vec::new(), |(_, records)| records.clone());
        for index in indexes {
            if !self.records[index].may_be(fingerprint) {
                continue;
            }
            let record = self.window.at(self.records[index].offset)?;
            // The record could be read before.
            let Ok(part) = decode_snapshot(&record.value) else { continue };
            let found = &mut self.records[index];
            let What::Part { taken, seen, .. } = &mut found.what else { continue };
            *seen = compared(&part, *taken, &found.key, found.place, self.met.len(), &states);
            let (offset, place) = (found.offset, found.place);
            let is_known = || self.evictions.are_known_at(part.offset, fingerprint, offset, place);
            if matches!(seen, Seen::Differs(_)) && !is_known() {
                *seen = Seen::OtherVersion;
                // A page that no intake names is no longer needed.
                if part.group >= Snapshot::PAGES {
                    found.what = What::Passed;
                }
            }
        }
        let parts = states.into_iter().map(|part| Snapshot { state: Vec::new(), ..part }).collect();
        self.met.push(Whole { parts });
        Ok(())
    }

    /// Drops the next place after it was compared with all known configurations.
    pub(crate) fn pass(&mut self) {
        self.places.pop_first();
    }

    /// Returns the number of records found identical.
    pub(crate) fn identical(&self) -> u64 {
        let is_same =
            |found: &&Found| matches!(found.what, What::Segment | What::Part { seen: Seen::Same { .. }, .. });
        self.records.iter().filter(is_same).count() as u64
    }

    /// Returns the number of records that could not be compared although their ticks exist.
    pub(crate) fn passed(&self) -> u64 {
        let is_passed =
            |found: &&Found| matches!(found.what, What::Part { seen: Seen::Unmet | Seen::OtherVersion, .. });
        self.records.iter().filter(is_passed).count() as u64
    }

    /// Returns the first difference, after the rerun has reached all places before the committed offset.
    pub(crate) fn finish(self, committed: i64, ownerships: &Ownerships) -> Option<OutputDivergence> {
        let lacking = self.first_gap(ownerships).into_iter().chain(self.evictions.missing_page());
        let differing = self.records.into_iter().find_map(|found| {
            let problem = match found.what {
                What::Wrong(problem) | What::Part { seen: Seen::Differs(problem), .. } => problem,
                What::Part { at, .. } if at > committed => {
                    let expected = format!("an offset up to {committed}, which is committed");
                    OutputProblem::Changed { differences: vec![Difference::new("offset", expected, at)] }
                }
                _ => return None,
            };
            Some((found.offset, problem))
        });
        let first = differing.into_iter().chain(lacking).min_by_key(|(offset, _)| *offset);
        let TopicPartition { topic, partition } = self.source;
        first.map(|(offset, problem)| OutputDivergence {
            topic,
            partition,
            offset,
            symbol: None,
            request_id: None,
            problem,
        })
    }

    /// Returns the first place at which a record is missing, surplus or out of order, and the problem.
    fn first_gap(&self, ownerships: &Ownerships) -> Option<(i64, OutputProblem)> {
        let gaps = Gaps::new(self, ownerships);
        let unclear: BTreeSet<i64> = self.records.iter().filter_map(Found::unclear_place).collect();
        let mut run: Option<Run> = None;
        for (index, found) in self.records.iter().enumerate() {
            let What::Part { at, seen: Seen::Same { whole, number }, .. } = found.what else { continue };
            if unclear.contains(&at) {
                continue;
            }
            let before = run.filter(|run| (run.whole, run.place) == (whole, found.place));
            let (first, next) = match before {
                Some(run) if number >= run.next => (run.first, run.next),
                Some(run) if number > 0 && number + 1 == run.next => {
                    let first = self.met[whole].shown(number);
                    return Some((found.offset, OutputProblem::Surplus { count: 1, first }));
                }
                _ => {
                    let gap = run.and_then(|run| gaps.behind(run));
                    if gap.is_some() {
                        return gap;
                    }
                    (index, 0)
                }
            };
            let missing =
                (next..number).find(|missing| !gaps.is_excused(whole, *missing, found.place, index));
            if let Some(missing) = missing {
                return Some(match before {
                    Some(run) if number < run.next => (found.offset, out_of_order("behind")),
                    Some(run) => gaps.out_of_order(run, missing, index),
                    None => (found.offset, gaps.missing(whole, missing, number - missing)),
                });
            }
            run = Some(Run { whole, place: found.place, first, last: index, next: number + 1 });
        }
        run.and_then(|run| gaps.behind(run))
    }
}

/// Finds missing records, and decides whether they are allowed to be missing.
struct Gaps<'a> {
    check: &'a StateCheck,
    ownerships: &'a Ownerships,
    /// Indexes of the records with each key, ascending.
    by_key: BTreeMap<&'a [u8], Vec<usize>>,
    /// For each index, the least index of a record whose key occurred before it.
    repeated: Vec<usize>,
}

impl<'a> Gaps<'a> {
    fn new(check: &'a StateCheck, ownerships: &'a Ownerships) -> Self {
        let mut by_key: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (index, found) in check.records.iter().enumerate() {
            by_key.entry(&found.key).or_default().push(index);
        }
        let mut repeated = vec![usize::MAX; check.records.len() + 1];
        for indexes in by_key.values() {
            for pair in indexes.windows(2) {
                repeated[pair[0] + 1] = pair[1];
            }
        }
        for index in 1..repeated.len() {
            repeated[index] = repeated[index].min(repeated[index - 1]);
        }
        Self { check, ownerships, by_key, repeated }
    }

    /// True if a part of a snapshot may be missing before the record at `index`, because the topic is compacted or has
    /// lost its beginning.
    fn is_excused(&self, whole: usize, number: usize, place: SnapshotPlace, index: usize) -> bool {
        let OffsetRange { first, .. } = self.check.range;
        if index == 0 && first > 0 && self.check.records[0].offset == first {
            return true;
        }
        let key = place.key(&self.check.met[whole].parts[number]);
        let indexes = self.by_key.get(key.as_bytes()).map_or(&[][..], Vec::as_slice);
        let later = indexes.get(indexes.partition_point(|other| *other < index));
        later.is_some_and(|later| self.repeated[index] > *later)
    }

    /// Returns the parts that are missing at the end of a snapshot without an excuse; `None` if there are none.
    fn behind(&self, run: Run) -> Option<(i64, OutputProblem)> {
        let last = &self.check.records[run.last];
        // A broker's times cannot be compared with those of a process.
        if !self.check.has_writers_times || !self.ownerships.went_on(self.check.source.partition, last.at_ns)
        {
            return None;
        }
        let count = self.check.met[run.whole].parts.len();
        let missing =
            (run.next..count).find(|number| !self.is_excused(run.whole, *number, run.place, run.last + 1))?;
        Some((last.offset + 1, self.missing(run.whole, missing, count - missing)))
    }

    fn missing(&self, whole: usize, number: usize, count: usize) -> OutputProblem {
        OutputProblem::Missing { count: count as u64, first: self.check.met[whole].shown(number) }
    }

    /// Returns the problem of a part that is missing before the record with an index; it may be at another place.
    fn out_of_order(&self, run: Run, missing: usize, index: usize) -> (i64, OutputProblem) {
        let records = &self.check.records;
        let is_it = |found: &&Found| {
            found.place == run.place
                && matches!(found.what, What::Part { seen: Seen::Same { whole, number }, .. }
                    if (whole, number) == (run.whole, missing))
        };
        let from = run.first.saturating_sub(1);
        match records[from..index].iter().rfind(is_it) {
            Some(found) => (found.offset, out_of_order("before")),
            None => (records[index].offset, self.missing(run.whole, missing, 1)),
        }
    }
}

/// Returns the problem of a record that does not follow the earlier ones of its snapshot.
fn out_of_order(found: &str) -> OutputProblem {
    let place = |word: &str| format!("{word} the other records of its snapshot");
    OutputProblem::Changed { differences: vec![Difference::new("order", place("among"), place(found))] }
}

impl Taken {
    fn of(part: &Snapshot) -> Option<Self> {
        let (version, rest) = part.state.split_first_chunk()?;
        let fingerprint = rest.first_chunk()?;
        Some(Self { version: u32::from_le_bytes(*version), fingerprint: u64::from_le_bytes(*fingerprint) })
    }
}

impl Found {
    /// True if the record must be compared with a state of a configuration.
    fn may_be(&self, fingerprint: u64) -> bool {
        match &self.what {
            What::Part { seen: Seen::Same { .. }, .. } => false,
            What::Part { taken, .. } => taken.is_none_or(|taken| taken.fingerprint == fingerprint),
            What::Segment | What::Passed | What::Wrong(_) => false,
        }
    }

    /// Returns the place of a state if this record of it could not be compared, so that the state's records are
    /// unknown.
    fn unclear_place(&self) -> Option<i64> {
        match self.what {
            What::Part { at, seen: Seen::OtherVersion, .. } => Some(at),
            _ => None,
        }
    }
}

impl Whole {
    /// Returns one of the snapshot's records, for messages.
    fn shown(&self, number: usize) -> Value {
        shown(&self.parts[number])
    }
}

fn shown(part: &Snapshot) -> Value {
    let Snapshot { partition, group, offset, part, parts, .. } = part;
    json!({"partition": partition, "group": group, "offset": offset, "part": part, "parts": parts})
}

/// Compares a record with the records of a state; `whole` is the state's index.
fn compared(
    found: &Snapshot,
    taken: Option<Taken>,
    key: &[u8],
    place: SnapshotPlace,
    whole: usize,
    states: &[Snapshot],
) -> Seen {
    let same = |state: &&Snapshot| (state.group, state.part) == (found.group, found.part);
    let first = states.iter().find(|state| state.group == found.group);
    let version = first.and_then(Taken::of).map(|taken| taken.version);
    let is_other = |taken: Taken| version.is_some_and(|version| version != taken.version);
    if taken.is_some_and(is_other) || first.is_some_and(|first| first.state_version != found.state_version) {
        return Seen::OtherVersion;
    }
    let Some(number) = states.iter().position(|state| same(&state)) else {
        return Seen::Differs(OutputProblem::Surplus { count: 1, first: shown(found) });
    };
    let expected = &states[number];
    let expected_key = place.key(expected);
    if expected == found && expected_key.as_bytes() == key {
        return Seen::Same { whole, number };
    }
    if taken.is_none() && found.part > 0 {
        // The first part, which names the configuration of the state, is gone.
        return Seen::OtherVersion;
    }
    let words = |state: &[u8]| format!("{} bytes with the digest {:016x}", state.len(), xxh3_64(state));
    let texts = |part: &Snapshot, key: String| {
        [
            ("key", key.into()),
            ("partition", part.partition.into()),
            ("parts", part.parts.into()),
            ("state", Value::from(words(&part.state))),
        ]
    };
    let found_key = String::from_utf8_lossy(key).into_owned();
    let pairs = texts(expected, expected_key).into_iter().zip(texts(found, found_key));
    let differences = pairs.filter(|((_, expected), (_, found))| expected != found);
    let difference = |((field, expected), (_, found))| Difference::new(field, expected, found);
    Seen::Differs(OutputProblem::Changed { differences: differences.map(difference).collect() })
}

/// Compares a record about a segment with the configurations in the journal.
fn segment(part: &Snapshot, key: &[u8], partition: i32, segments: &Segments, is_trimmed: bool) -> What {
    let text = String::from_utf8_lossy(&part.state);
    let mut differences = Vec::new();
    if part.partition != partition {
        differences.push(Difference::new("partition", partition, part.partition));
    }
    let expected_key = SnapshotPlace::default().key(part);
    if expected_key.as_bytes() != key {
        differences.push(Difference::new("key", expected_key, String::from_utf8_lossy(key)));
    }
    if !segments.knows(&text) {
        if is_trimmed {
            return What::Passed;
        }
        differences.push(Difference::new("state", "a stage configuration of the journal", text));
    }
    match differences.is_empty() {
        true => What::Segment,
        false => What::Wrong(OutputProblem::Changed { differences }),
    }
}
