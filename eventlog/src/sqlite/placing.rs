//! Places the large blocks of a producer's transactions in its segments, one per topic.
//!
//! ```text
//!  commit ── place ──────── append the blocks of each topic to its segment; nobody else waits for that
//!            transaction ── note: count the rows that refer to the segment; take the next one if it is due
//!            committed ──── use the segments that were taken
//! ```
//!
//! A producer without a segment leaves the blocks in rows. So a commit needs one transaction alone, whatever it takes.

use std::collections::BTreeMap;

use super::block::Block;
use super::file::{LogFile, Writing};
use super::limits::{ROWS_FIRST_BYTES, SEGMENT_BYTES, SYNCED_BYTES_MIN};
use super::segment::SegmentFile;
use super::segment_rows::{self, SegmentRow};
use super::{failure, format};
use crate::LogError;

const APPENDING: &str = "appending to a segment";
const TAKING: &str = "creating a segment";

/// The segments of a producer, by the numbers of their topics.
#[derive(Default)]
pub(super) struct Placing(BTreeMap<i64, TopicPlacing>);

/// The state of a topic.
#[derive(Default)]
struct TopicPlacing {
    segment: Option<SegmentFile>,
    /// Bytes of blocks that were stored in rows only because there was no segment.
    row_bytes: usize,
}

/// The state of a topic after the transaction that commits it.
pub(super) struct Noted {
    topic_id: i64,
    row_bytes: usize,
    taken: Option<SegmentFile>,
}

impl Placing {
    /// Appends the large blocks of a topic to its segment, if it has one. Blocks of an earlier attempt stay in place.
    pub(super) fn place<'a>(
        &mut self,
        file: &LogFile,
        topic_id: i64,
        blocks: impl Iterator<Item = &'a mut Block>,
    ) -> Result<(), LogError> {
        let Some(segment) = self.0.get_mut(&topic_id).and_then(|topic| topic.segment.as_mut()) else {
            return Ok(());
        };
        let mut blocks: Vec<_> = blocks.filter(|block| block.is_to_be_placed()).collect();
        if blocks.iter().map(|block| block.bytes.len()).sum::<usize>() < bytes_min(file) {
            return Ok(());
        }
        if !segment.is_in_place() {
            return Err(file.segment_gone(segment.path()));
        }
        let mut position = segment.end;
        let bytes: Vec<_> = blocks.iter().map(|block| block.bytes.as_slice()).collect();
        segment
            .append(&bytes, file.is_synced())
            .map_err(|cause| failure::explain_io(&file.url, APPENDING, &cause))?;
        for block in &mut blocks {
            block.place(segment.number, position);
            position += block.bytes.len() as u64;
        }
        Ok(())
    }

    /// Counts the rows of a topic's blocks for its segment, and takes the next segment if it is due.
    pub(super) fn note<'a>(
        &self,
        file: &LogFile,
        writing: &mut Writing<'_>,
        topic_id: i64,
        blocks: impl Iterator<Item = &'a Block>,
    ) -> Result<Noted, LogError> {
        let (mut row_bytes, mut placed, mut end) = (0, 0, 0);
        for block in blocks {
            match &block.placed {
                Some(found) => (placed, end) = (placed + 1, end.max(found.reference.end())),
                None if block.is_to_be_placed() => row_bytes += block.bytes.len(),
                None => {}
            }
        }
        let topic = self.0.get(&topic_id);
        let segment = topic.and_then(|topic| topic.segment.as_ref());
        if let Some(segment) = segment.filter(|_| placed > 0) {
            let row = segment_rows::read(file, &writing.transaction, segment.number)?;
            let row = SegmentRow { rows: row.rows + placed, bytes: row.bytes.max(end.cast_signed()), ..row };
            segment_rows::write(file, &writing.transaction, &row)?;
        }
        if row_bytes < bytes_min(file) {
            row_bytes = 0;
        }
        row_bytes += topic.map_or(0, |topic| topic.row_bytes);
        let is_due = match segment {
            Some(segment) => segment.end >= SEGMENT_BYTES,
            None => row_bytes >= ROWS_FIRST_BYTES,
        };
        let taken = if is_due { Some(take(file, writing, topic_id)?) } else { None };
        Ok(Noted { topic_id, row_bytes, taken })
    }

    /// Uses what the committed transaction has taken.
    pub(super) fn committed(&mut self, noted: Vec<Noted>) {
        for Noted { topic_id, row_bytes, taken } in noted {
            let topic = self.0.entry(topic_id).or_default();
            topic.row_bytes = row_bytes;
            if taken.is_some() {
                topic.segment = taken;
            }
        }
    }
}

/// Returns the least bytes of large blocks, in a topic and a transaction, that go to a segment.
fn bytes_min(file: &LogFile) -> usize {
    if file.is_synced() { SYNCED_BYTES_MIN } else { 1 }
}

/// Creates the next segment of the log, for a topic.
fn take(file: &LogFile, writing: &mut Writing<'_>, topic_id: i64) -> Result<SegmentFile, LogError> {
    if writing.own.segment_next == 0 {
        format::begin_segments(&writing.transaction).map_err(|error| file.failure(TAKING, error))?;
        writing.own.segment_next = 1;
    }
    let number = u32::try_from(writing.own.segment_next)
        .map_err(|_| file.damaged(format!("the next segment has the number {}", writing.own.segment_next)))?;
    let segment = SegmentFile::create(&file.path, number, file.is_synced())
        .map_err(|cause| failure::explain_io(&file.url, TAKING, &cause))?;
    segment_rows::write(file, &writing.transaction, &SegmentRow { number, topic_id, rows: 0, bytes: 0 })?;
    writing.own.segment_next += 1;
    writing.own.segment_rows += 1;
    Ok(segment)
}
