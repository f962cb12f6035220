//! The way of one record's rows of a group through a transaction: their arrival, their batch, and the completion of all
//! records up to theirs.

use std::sync::Arc;

use warptape_schemas::journal::GroupIndex;
use warptape_stages::StageConfig;

use super::dealt::{Dealer, Dealt};
use super::waits::BatchTimes;
use crate::ReplayError;
use crate::history::{Arrival, Batch, BatchEnd, Part, Piece, SealedPart};

/// The cause of a signal, which is a tick or the watermark that it moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Group of the tick's symbol.
    pub(crate) group: GroupIndex,
    /// Offset of the tick record, and index of the tick within it.
    pub(crate) tick: (i64, u32),
    /// True if the watermark that the tick moved is the cause, as with time bars.
    pub(crate) is_watermark: bool,
}

/// The way of a cause.
pub(crate) struct Way {
    pub(crate) arrival: Arc<Arrival>,
    /// Batch of the cause; `None` if it may be one of several.
    pub(crate) batch: Option<Arc<Batch>>,
    /// Numbers of the batches that may contain the cause.
    pub(crate) candidates: Vec<i64>,
    /// Time at which all rows of the record and of earlier records were done, and the last batch among them; `None` if
    /// it is unknown.
    pub(crate) complete: Option<(i64, Arc<Batch>)>,
}

/// Returns the way of a cause through its partition's part of a transaction; `None` if the arrival is not in the
/// history.
pub(crate) fn find_way(
    part: &SealedPart,
    cause: Cause,
    config: Option<&StageConfig>,
    dealer: &mut Dealer<'_>,
) -> Result<Option<Way>, ReplayError> {
    let (offset, _) = cause.tick;
    let mut arrivals = part.arrivals.iter().filter(|arrival| arrival.has(offset));
    let Some(arrival) = arrivals.next_back() else { return Ok(None) };
    let with_cause = batches_with(part, arrival, Some(cause.group));
    let certain = certain_end(part, arrival, &with_cause);
    let dealt = match (certain, config) {
        (None, Some(config)) => dealer.deal(config, arrival)?,
        _ => None,
    };
    let row = dealt.as_ref().and_then(|dealt| dealt.row_of(cause.group, cause.tick, cause.is_watermark));
    let batch = match (&with_cause[..], row) {
        ([only], _) => Some((*only).clone()),
        (several, Some(row)) => {
            several.iter().find(|batch| has_row(batch, arrival, cause, row)).copied().cloned()
        }
        _ => None,
    };
    let complete = certain.or_else(|| dealt.as_ref().and_then(|dealt| end_of(part, arrival, offset, dealt)));
    let candidates = with_cause.iter().map(|batch| batch.dispatch.batch).collect();
    Ok(Some(Way {
        arrival: arrival.clone(),
        batch,
        candidates,
        complete: complete.filter(|_| part.is_whole).map(|(at_ns, batch)| (at_ns, batch.clone())),
    }))
}

/// Returns the batches with rows of an arrival, of one group or of all groups.
fn batches_with<'a>(
    part: &'a SealedPart,
    arrival: &Arc<Arrival>,
    group: Option<GroupIndex>,
) -> Vec<&'a Arc<Batch>> {
    let has = |batch: &&Arc<Batch>| {
        parts_of(batch, arrival.partition)
            .filter(|part| group.is_none_or(|group| part.group == group))
            .flat_map(|part| &part.pieces)
            .any(|piece| is_of(piece, arrival))
    };
    part.batches.iter().filter(has).collect()
}

fn parts_of(batch: &Batch, partition: i32) -> impl Iterator<Item = &Part> {
    batch.parts.iter().filter(move |part| part.partition == partition)
}

fn is_of(piece: &Piece, arrival: &Arc<Arrival>) -> bool {
    Arc::ptr_eq(&piece.arrival, arrival)
}

fn has_row(batch: &Batch, arrival: &Arc<Arrival>, cause: Cause, row: i64) -> bool {
    let parts = parts_of(batch, arrival.partition).filter(|part| part.group == cause.group);
    parts
        .flat_map(|part| &part.pieces)
        .any(|piece| is_of(piece, arrival) && (piece.from..piece.from + piece.rows).contains(&row))
}

/// Returns the time at which all records up to the cause's were done, if it is the same for every record of the
/// arrival. This holds if the batch with the cause is the last one with rows of this or an earlier arrival.
fn certain_end<'a>(
    part: &SealedPart,
    arrival: &Arc<Arrival>,
    with_cause: &[&'a Arc<Batch>],
) -> Option<(i64, &'a Arc<Batch>)> {
    let [only] = with_cause else { return None };
    let own_ns = completed_ns(only)?;
    let others = part.batches.iter().filter(|batch| {
        parts_of(batch, arrival.partition)
            .flat_map(|part| &part.pieces)
            .any(|piece| is_of(piece, arrival) || is_before(&piece.arrival, arrival))
    });
    let last_ns = others.filter_map(|batch| completed_ns(batch)).max()?;
    (last_ns <= own_ns).then_some((own_ns, *only))
}

/// Returns the time at which the last row of the records up to one was done, and its batch.
fn end_of<'a>(
    part: &'a SealedPart,
    arrival: &Arc<Arrival>,
    offset: i64,
    dealt: &Dealt,
) -> Option<(i64, &'a Arc<Batch>)> {
    let counts = |part: &Part, piece: &Piece| match is_of(piece, arrival) {
        true => piece.from < dealt.rows_through(part.group, offset),
        false => is_before(&piece.arrival, arrival),
    };
    let has = |batch: &&Arc<Batch>| {
        let mut parts = parts_of(batch, arrival.partition);
        parts.any(|part| part.pieces.iter().any(|piece| counts(part, piece)))
    };
    let ends = part.batches.iter().filter(has).filter_map(|batch| Some((completed_ns(batch)?, batch)));
    ends.max_by_key(|(at_ns, _)| *at_ns)
}

fn is_before(other: &Arrival, arrival: &Arrival) -> bool {
    let first = |of: &Arrival| of.offsets.map_or(i64::MIN, |(first, _)| first);
    first(other) < first(arrival)
}

fn completed_ns(batch: &Batch) -> Option<i64> {
    match batch.end {
        BatchEnd::Completed { at, .. } => Some(at.at_ns),
        BatchEnd::Lost(_) | BatchEnd::Open => None,
    }
}

impl Way {
    /// Returns the times of the batch; `None` if the batch is unknown or did not come back.
    pub(crate) fn batch_times(&self, cause: Cause) -> Option<BatchTimes> {
        let batch = self.batch.as_ref()?;
        let BatchEnd::Completed { at, service_ns, lane_free_ns } = batch.end else { return None };
        let is_part = |part: &&Part| (part.partition, part.group) == (self.arrival.partition, cause.group);
        let placed = batch.parts.iter().find(is_part).and_then(|part| part.placed);
        Some(BatchTimes {
            placed_ns: placed.map(|placed| placed.at_ns),
            dispatched_ns: batch.at.at_ns,
            completed_ns: at.at_ns,
            service_ns,
            lane_free_ns,
            complete_ns: self.complete.as_ref().map(|(at_ns, _)| *at_ns),
        })
    }
}
