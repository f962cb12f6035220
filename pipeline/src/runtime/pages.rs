//! Reads pages, which are states of symbols that left memory, from the topic of snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use warptape_engine::{PageId, ReadPage};
use warptape_eventlog::{EventLog, Fetched, LogError, OffsetRange, Record, TopicPartition};
use warptape_schemas::{Snapshot, decode_snapshot};

/// Greatest number of records and bytes of one read.
const READ_RECORDS_MAX: usize = 64;
const READ_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Wait before the reader checks again whether it reached the end.
const READ_WAIT: Duration = Duration::from_millis(100);
/// Number of last offsets that the first search covers. Each further search goes back this many times farther.
const FIRST_SEARCH: i64 = 64;
const FARTHER: i64 = 32;
/// Number of last offsets within which a recently committed page must be.
const NEWEST: i64 = 65_536;

/// Reads pages, and remembers their offsets.
pub(super) struct PageReader {
    log: Arc<dyn EventLog>,
    topic: String,
    /// Offsets of the records of each page found so far.
    places: BTreeMap<(i32, PageId), Vec<i64>>,
}

impl PageReader {
    pub(super) fn new(log: Arc<dyn EventLog>, topic: String) -> Self {
        Self { log, topic, places: BTreeMap::new() }
    }

    /// Returns those of a partition's pages that are complete among the newest records, where recently committed ones
    /// are.
    pub(super) fn find(&mut self, partition: i32, pages: &[PageId]) -> Result<Vec<PageId>, LogError> {
        pages.iter().for_each(|page| _ = self.places.remove(&(partition, *page)));
        self.search(partition, pages, NEWEST)?;
        let is_found = |page: &&PageId| self.places.contains_key(&(partition, **page));
        Ok(pages.iter().filter(is_found).copied().collect())
    }

    /// Returns the bytes of those pages that are in the log.
    pub(super) fn read(&mut self, partition: i32, pages: &[PageId]) -> Result<Vec<ReadPage>, LogError> {
        self.search(partition, pages, i64::MAX)?;
        let mut read = Vec::new();
        for &page in pages {
            let mut bytes = self.read_one(partition, page)?;
            // The page may have been rewritten, and its known records compacted away.
            if bytes.is_none() && self.places.remove(&(partition, page)).is_some() {
                self.search(partition, &[page], i64::MAX)?;
                bytes = self.read_one(partition, page)?;
            }
            read.push((page, bytes));
        }
        Ok(read)
    }

    /// Searches backwards from the end for pages whose offsets are unknown, over at most `distance_max` offsets. So the
    /// newest commits are found first.
    fn search(&mut self, partition: i32, pages: &[PageId], distance_max: i64) -> Result<(), LogError> {
        let source = TopicPartition { topic: self.topic.clone(), partition };
        let OffsetRange { first, next } = self.log.offsets(&source)?;
        let first = first.max(next.saturating_sub(distance_max));
        let (mut distance, mut end) = (FIRST_SEARCH, next);
        while end > first && !pages.iter().all(|page| self.places.contains_key(&(partition, *page))) {
            // The parts of a page may lie on both sides of the beginning of a search.
            let begin = next.saturating_sub(distance).max(first);
            let mut parts: BTreeMap<PageId, BTreeMap<i32, (i32, i64)>> = BTreeMap::new();
            self.records(&source, OffsetRange { first: begin, next }, |record| {
                if let Some((id, part)) = page_of(record) {
                    let known = parts.entry(id).or_default();
                    // Newer parts replace parts of an older attempt.
                    known.retain(|_, (count, _)| *count == part.parts);
                    known.insert(part.part, (part.parts, record.offset));
                }
            })?;
            for (id, parts) in parts {
                if parts.values().all(|(count, _)| *count as usize == parts.len()) {
                    let offsets = parts.into_values().map(|(_, offset)| offset).collect();
                    self.places.insert((partition, id), offsets);
                }
            }
            (distance, end) = (distance.saturating_mul(FARTHER), begin);
        }
        Ok(())
    }

    fn read_one(&mut self, partition: i32, page: PageId) -> Result<Option<Vec<u8>>, LogError> {
        let Some(offsets) = self.places.get(&(partition, page)) else { return Ok(None) };
        let (Some(&first), Some(&last)) = (offsets.iter().min(), offsets.iter().max()) else {
            return Ok(None);
        };
        let source = TopicPartition { topic: self.topic.clone(), partition };
        let mut parts: BTreeMap<i32, Snapshot> = BTreeMap::new();
        self.records(&source, OffsetRange { first, next: last + 1 }, |record| {
            parts.extend(page_of(record).filter(|(id, _)| *id == page).map(|(_, part)| (part.part, part)));
        })?;
        let is_whole = parts.values().all(|part| part.parts as usize == parts.len()) && !parts.is_empty();
        Ok(is_whole.then(|| parts.into_values().flat_map(|part| part.state).collect()))
    }

    /// Passes on records of a partition.
    fn records(
        &self,
        source: &TopicPartition,
        range: OffsetRange,
        mut show: impl FnMut(&Record),
    ) -> Result<(), LogError> {
        let mut reader = self.log.reader(std::slice::from_ref(source))?;
        reader.seek(source, range.first)?;
        while reader.position(source)? < range.next {
            let Fetched::Records { records, .. } =
                reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
            else {
                continue;
            };
            records.iter().filter(|record| record.offset < range.next).for_each(&mut show);
        }
        Ok(())
    }
}

/// Returns the page to which a record belongs; `None` if it belongs to no page.
fn page_of(record: &Record) -> Option<(PageId, Snapshot)> {
    let part = decode_snapshot(&record.value).ok()?;
    let page = part.group.checked_sub(Snapshot::PAGES).filter(|page| *page >= 0)?;
    Some((PageId { page, offset: part.offset }, part))
}
