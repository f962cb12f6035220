//! The waits of a transaction's rows, starting at their arrival.

use std::collections::BTreeMap;

use super::context::Context;
use super::waits::{BatchTimes, Times, Wait, waits};
use crate::history::{Arrival, BatchEnd, SealedPart, Transaction};

/// Passes on the number and the waits of rows that arrived together and were in the same batch. Rows of an arrival
/// count in the transaction that seals the arrival's last record, so each counts once.
pub(crate) fn row_waits(context: &Context, transaction: &Transaction, each: &mut dyn FnMut(i64, &[Wait])) {
    let Some(sealing) = context.sealing(transaction) else { return };
    let holes = context.holes(i64::MIN);
    for part in transaction.partitions.iter().filter(|part| !part.may_be_void) {
        let complete = complete(part);
        for batch in &part.batches {
            let BatchEnd::Completed { at, service_ns, lane_free_ns } = batch.end else { continue };
            for one in batch.parts.iter().filter(|one| one.partition == part.account.partition) {
                for piece in one.pieces.iter().filter(|piece| is_sealed_by(&piece.arrival, part)) {
                    let arrived_ns = piece.arrival.at_ns;
                    let times = BatchTimes {
                        placed_ns: one.placed.map(|placed| placed.at_ns),
                        dispatched_ns: batch.at.at_ns,
                        completed_ns: at.at_ns,
                        service_ns,
                        lane_free_ns,
                        complete_ns: first(&piece.arrival).and_then(|first| complete.get(&first).copied()),
                    };
                    let times = Times {
                        created_ns: arrived_ns,
                        began_ns: None,
                        assigned_ns: None,
                        pauses: &[],
                        holes: &holes,
                        arrived_ns: Some(arrived_ns),
                        batch: Some(times),
                        sealing: sealing.clone(),
                    };
                    each(piece.rows, &waits(&times).0);
                }
            }
        }
    }
}

fn first(arrival: &Arrival) -> Option<i64> {
    arrival.offsets.map(|(first, _)| first)
}

fn is_sealed_by(arrival: &Arrival, part: &SealedPart) -> bool {
    let (account, next) = (&part.account, arrival.offsets.map(|(_, next)| next));
    next.is_some_and(|next| account.first_offset < next && next <= account.next_offset)
}

/// Returns, by the first offset of each arrival, the time at which all rows of this and earlier arrivals were done.
fn complete(part: &SealedPart) -> BTreeMap<i64, i64> {
    let mut complete: BTreeMap<i64, i64> = BTreeMap::new();
    for batch in &part.batches {
        let BatchEnd::Completed { at, .. } = batch.end else { continue };
        for one in batch.parts.iter().filter(|one| one.partition == part.account.partition) {
            for first in one.pieces.iter().filter_map(|piece| first(&piece.arrival)) {
                let last_ns = complete.entry(first).or_insert(at.at_ns);
                *last_ns = (*last_ns).max(at.at_ns);
            }
        }
    }
    let mut last_ns = i64::MIN;
    for at_ns in complete.values_mut() {
        last_ns = last_ns.max(*at_ns);
        *at_ns = last_ns;
    }
    complete
}
