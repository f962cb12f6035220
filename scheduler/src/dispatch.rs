//! Dispatch: when waiting rows become a batch, and which rows.
//!
//! ```text
//!   lane may take nothing (lost, batches or credit used up) ......... wait for a completion
//!   lane idle ....................................................... Idle, or Full when the batch is full
//!   lane busy, a whole batch waits .................................. Full
//!   lane busy, waiting longer would miss the oldest row's deadline .. Deadline
//!   lane busy otherwise ............................................. WakeAt when that becomes true
//!   draining ........................................................ Drain, whatever the lane may take
//! ```
//!
//! The module owns the release rule; it must not know why a group is on its lane. Rows of a group leave in order, and a
//! lane works in order of dispatch. So a group may have rows in several batches in flight.
//!
//! An idle lane takes at least one row, however many bytes the row has. Otherwise a row larger than the credit of bytes
//! would wait for ever.

use serde::Serialize;
use warptape_events::journal::{Decision, Dispatch, ReleaseReason, Take};

use crate::lanes::{InFlight, Lane, QueueHead};
use crate::life::{Clock, Life, Step};
use crate::partitions::Partition;
use crate::routing;

/// Verdict on a lane.
enum Verdict {
    /// The lane has no waiting rows, or accepts no more for now.
    Leave,
    /// The lane gets its waiting rows at this time at the latest.
    WaitUntil(i64),
    /// The lane gets a batch now.
    Release(ReleaseReason),
}

/// When a lane gets its next batch, as of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NextBatch {
    /// No rows wait for the lane.
    NothingWaits,
    /// The lane has as many batches in flight as it may have.
    BatchesInFlight,
    /// The lane's credit of rows is used up.
    Rows,
    /// The lane's credit of bytes does not allow the next row.
    Bytes,
    /// The batch is due for this reason; the next step dispatches it.
    Due(ReleaseReason),
    /// The lane is busy, and gets the batch at this time at the latest, in ns since the epoch, if no more rows come.
    AtLatest(i64),
}

/// Time of a lane's next batch.
pub(crate) fn next_batch(life: &Life, lane: &Lane) -> NextBatch {
    match judge(life, lane) {
        Verdict::Release(reason) => NextBatch::Due(reason),
        Verdict::WaitUntil(at_ns) => NextBatch::AtLatest(at_ns),
        Verdict::Leave if lane.waiting.queues.is_empty() => NextBatch::NothingWaits,
        Verdict::Leave if lane.rows_left(&life.config) > 0 => NextBatch::Bytes,
        Verdict::Leave if lane.in_flight.batches.len() as i64 >= i64::from(life.config.lane_batches_max) => {
            NextBatch::BatchesInFlight
        }
        Verdict::Leave => NextBatch::Rows,
    }
}

/// Releases every batch that is due, as far as the step has room. Returns the time at which the next one is due.
///
/// Most steps concern at most one lane. So lanes that have not changed since their last verdict are not judged again
/// before the time that it named.
pub(crate) fn release(life: &mut Life, decisions: &mut Vec<Decision>) -> i64 {
    let mut wake_ns = i64::MAX;
    for index in 0..life.lanes.len() {
        if let Some(until_ns) = quiet_until_ns(life, index) {
            wake_ns = wake_ns.min(until_ns);
            continue;
        }
        // Every iteration uses one of the lane's `lane_batches_max` batches in flight.
        loop {
            match judge(life, &life.lanes[index]) {
                Verdict::Leave => {
                    life.lanes.rest(index, i64::MAX);
                    break;
                }
                Verdict::WaitUntil(at_ns) => {
                    life.lanes.rest(index, at_ns);
                    wake_ns = wake_ns.min(at_ns);
                    break;
                }
                Verdict::Release(_) if !life.step.room.is_there() => break,
                Verdict::Release(reason) => {
                    let dispatch = fill(life, index, reason);
                    routing::learn_batch(life, &dispatch);
                    let decision = Decision::Dispatch(dispatch);
                    life.step.room.take(&decision);
                    decisions.push(decision);
                }
            }
        }
    }
    wake_ns
}

/// Time until which an unchanged lane need not be judged; [`i64::MAX`] if only a change can give it a batch. `None` if
/// it must be judged now.
fn quiet_until_ns(life: &Life, index: usize) -> Option<i64> {
    let Clock { at_ns, draining, .. } = life.clock;
    life.lanes.quiet_until_ns(index).filter(|until_ns| !draining && *until_ns > at_ns)
}

/// Panics unless lanes that are not judged again would get the same verdict.
pub(crate) fn audit(life: &Life) {
    for (index, lane) in life.lanes.iter().enumerate() {
        let Some(until_ns) = quiet_until_ns(life, index) else { continue };
        let judged_ns = match judge(life, lane) {
            Verdict::Leave => i64::MAX,
            Verdict::WaitUntil(at_ns) => at_ns,
            Verdict::Release(reason) => panic!("lane {} gets no batch, which is due: {reason:?}", lane.id),
        };
        assert_eq!(judged_ns, until_ns, "lane {}", lane.id);
    }
}

fn judge(life: &Life, lane: &Lane) -> Verdict {
    let Some(head) = lane.waiting.queues.front() else { return Verdict::Leave };
    let rows_left = lane.rows_left(&life.config);
    if rows_left == 0 {
        return Verdict::Leave;
    }
    if lane.is_idle() {
        return Verdict::Release(if life.clock.draining {
            ReleaseReason::Drain
        } else {
            ReleaseReason::Idle
        });
    }
    if !head_fits(life, lane, *head) {
        return Verdict::Leave;
    }
    if life.clock.draining {
        return Verdict::Release(ReleaseReason::Drain);
    }
    let batch_rows_max = life.config.batch_rows_max;
    if lane.waiting.rows >= batch_rows_max {
        return Verdict::Release(ReleaseReason::Full);
    }
    // The batch finishes in time if it starts by then. Waiting is pointless if the lane is predicted to be free later
    // than that, or if that time has come.
    let start_by_ns = start_by_ns(life, lane).unwrap_or(life.clock.at_ns);
    if lane.free_ns.max(life.clock.at_ns) >= start_by_ns {
        Verdict::Release(ReleaseReason::Deadline)
    } else {
        Verdict::WaitUntil(start_by_ns)
    }
}

/// Latest time at which a busy lane gets its waiting rows, so that the oldest is done by its deadline; `None` if no
/// rows wait.
pub(crate) fn start_by_ns(life: &Life, lane: &Lane) -> Option<i64> {
    let head = lane.waiting.queues.front()?;
    let own_ns = lane.predicted_ns(lane.waiting.rows.min(lane.rows_left(&life.config)));
    Some(head.oldest_ns + life.config.row_deadline_ns - own_ns)
}

/// True if the lane's remaining credit of bytes allows the first row of the queue.
fn head_fits(life: &Life, lane: &Lane, head: QueueHead) -> bool {
    let group = &life.partitions[&head.key.partition].groups[head.key.group as usize];
    let chunk = group.chunks.front().expect("a group in a lane's order has waiting rows");
    chunk.rows_within(lane.bytes_left(&life.config)) > 0
}

/// Takes rows for one batch, oldest group first, and books the batch as in flight.
fn fill(life: &mut Life, lane_index: usize, reason: ReleaseReason) -> Dispatch {
    let Life {
        config,
        lanes,
        partitions,
        hash,
        clock: Clock { at_ns, batch_next, .. },
        step: Step { touched, room, .. },
        ..
    } = life;
    let lane = &mut lanes[lane_index];
    let telemetry = lane.telemetry();
    let idle = lane.is_idle();
    let rows_max = config.batch_rows_max.min(lane.rows_left(config));
    let bytes_max = lane.bytes_left(config);
    let oldest_arrival_ns = lane.waiting.queues.front().expect("released lanes have waiting rows").oldest_ns;

    let takes_max = room.takes();
    let mut takes = Vec::with_capacity(lane.waiting.queues.len().min(rows_max as usize).min(takes_max));
    let (mut rows, mut bytes) = (0, 0);
    // Rows that arrived together belong to one partition, so it is looked up once for all of their groups.
    let mut last: Option<&mut Partition> = None;
    while rows < rows_max
        && takes.len() < takes_max
        && let Some(head) = lane.waiting.queues.front().copied()
    {
        if last.as_ref().is_none_or(|partition| partition.id != head.key.partition) {
            last = partitions.get_mut(&head.key.partition);
        }
        let partition = last.as_mut().expect("queued groups are of known partitions");
        let group = partition.group_mut(head.key.group);
        let mut taken = group.take(head.key, rows_max - rows, bytes_max - bytes, hash);
        let too_heavy = taken.0 == 0 && rows == 0 && idle;
        if too_heavy {
            taken = group.take(head.key, 1, i64::MAX, hash);
        } else if taken.0 == 0 {
            break;
        }
        lane.waiting.queues.pop_front();
        let rest_ns = group.oldest_ns();
        if let Some(oldest_ns) = rest_ns {
            lane.enqueue(QueueHead { oldest_ns, key: head.key });
        }
        takes.push(Take {
            partition: head.key.partition,
            group: head.key.group,
            epoch: group.epoch,
            rows: taken.0,
        });
        rows += taken.0;
        bytes += taken.1;
        partition.waiting_rows -= taken.0;
        partition.waiting_bytes -= taken.1;
        if touched.last() != Some(&partition.id) {
            touched.push(partition.id);
        }
        if rest_ns.is_some() || too_heavy {
            // A limit cut this group's queue, or the batch exceeds its limit: the batch is full.
            break;
        }
    }
    lane.waiting.rows -= rows;
    let batch = *batch_next;
    *batch_next += 1;
    let predicted_finish_ns = lane.dispatch(*at_ns, InFlight { batch, rows, bytes }, hash);
    let full = reason == ReleaseReason::Idle && rows == config.batch_rows_max;
    Dispatch {
        batch,
        lane: lane.id,
        takes,
        rows,
        bytes,
        reason: if full { ReleaseReason::Full } else { reason },
        telemetry,
        oldest_arrival_ns,
        predicted_finish_ns,
    }
}
