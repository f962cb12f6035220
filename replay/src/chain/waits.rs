//! The waits between a record's publication and its visible effects: consecutive intervals, which add up to the total.

use serde::Serialize;
use warptape_schemas::journal::CommitOutcome;

use crate::history::{Attempt, Hole, HoleCause};

/// The reason for a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The process that handled the record had not started yet.
    Process,
    /// The process did not own the partition yet, or was restoring its state.
    Restore,
    /// The partition was paused, because too many of its rows waited on the host.
    Pause,
    /// The record was read from the log and decoded.
    Read,
    /// The group had no lane yet.
    Placement,
    /// The rows were in the group's queue, until they were dispatched.
    Queue,
    /// The lane had earlier batches to work on.
    Lane,
    /// The lane worked on the batch.
    Service,
    /// The batch was on its way to the lane and back: the rest of the time between dispatch and completion.
    Handover,
    /// Rows of other groups, from the same or earlier records, were not done. A transaction contains only complete
    /// records.
    OtherGroups,
    /// The previous transaction had not ended.
    PreviousCommit,
    /// The next commit was not due yet.
    CommitInterval,
    /// The commit thread had not started to write.
    Send,
    /// Attempts were aborted, and pauses followed them.
    Retry,
    /// The log was writing the transaction.
    Commit,
    /// The process recorded nothing although something was due or could be read. It was stopped, had no processor time,
    /// or got nothing from its log.
    StoodStill,
    /// The log accepted nothing from the process: its write lock was held, or its disk or broker was slow.
    LogHeld,
    /// The request was being prepared, until the scheduler got the task.
    Preparation,
    /// The request's first slice had not begun.
    TaskQueue,
    /// Slices of the request were not done.
    Slices,
    /// The answer to the request was being assembled.
    Conclusion,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// Reason for the wait.
    pub step: Step,
    /// Duration in nanoseconds. It may be negative if clocks of several machines are involved.
    pub ns: i64,
}

/// Times of a record's batch on its way to the lane and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchTimes {
    /// Time of the group's placement, if it was after the arrival of the rows.
    pub(crate) placed_ns: Option<i64>,
    pub(crate) dispatched_ns: i64,
    pub(crate) completed_ns: i64,
    pub(crate) service_ns: i64,
    /// Time at which the lane's previous batch came back.
    pub(crate) lane_free_ns: Option<i64>,
    /// Time at which all rows of the record and of earlier records were done.
    pub(crate) complete_ns: Option<i64>,
}

/// Times that divide a record's way into waits.
#[derive(Clone, Debug)]
pub(crate) struct Times<'a> {
    pub(crate) created_ns: i64,
    /// Start of the process.
    pub(crate) began_ns: Option<i64>,
    /// Time at which the process had the partition and its state.
    pub(crate) assigned_ns: Option<i64>,
    /// Intervals in which the partition was not read, as start and end.
    pub(crate) pauses: &'a [(i64, i64)],
    /// Intervals in which the process recorded nothing, in order.
    pub(crate) holes: &'a [Hole],
    /// Arrival of the record's rows; `None` if it is unknown.
    pub(crate) arrived_ns: Option<i64>,
    /// Times of the record's batch; `None` if the batch is unknown.
    pub(crate) batch: Option<BatchTimes>,
    pub(crate) sealing: Sealing<'a>,
}

/// Times of a transaction, starting with its seal.
#[derive(Clone, Debug)]
pub(crate) struct Sealing<'a> {
    pub(crate) sealed_ns: i64,
    /// Time at which the process learnt the outcome of the previous transaction.
    pub(crate) previous_known_ns: Option<i64>,
    pub(crate) attempts: &'a [Attempt],
}

/// Divides an interval into consecutive waits.
struct Cut {
    at_ns: i64,
    waits: Vec<Wait>,
}

impl Cut {
    fn new(at_ns: i64) -> Self {
        Self { at_ns, waits: Vec::new() }
    }

    /// Adds the wait until a time.
    fn until(&mut self, step: Step, until_ns: i64) {
        let ns = until_ns.saturating_sub(self.at_ns);
        if ns != 0 {
            self.waits.push(Wait { step, ns });
        }
        self.at_ns = until_ns;
    }

    /// Adds the wait until a time, limited by `end_ns`.
    fn within(&mut self, step: Step, until_ns: Option<i64>, end_ns: i64) {
        if let Some(until_ns) = until_ns.filter(|until_ns| *until_ns > self.at_ns) {
            self.until(step, until_ns.min(end_ns.max(self.at_ns)));
        }
    }
}

/// Returns the waits, and the time at which they end: the commit, or the last known time.
pub(crate) fn waits(times: &Times<'_>) -> (Vec<Wait>, i64) {
    let mut cut = Cut::new(times.created_ns);
    let arrived_ns = times.arrived_ns.unwrap_or(times.sealing.sealed_ns);
    cut.within(Step::Process, times.began_ns, arrived_ns);
    cut.within(Step::Restore, times.assigned_ns, arrived_ns);
    let paused = times.pauses.iter().map(|&(from, until)| overlap(from, until, cut.at_ns, arrived_ns));
    let paused_until_ns = cut.at_ns.saturating_add(paused.sum());
    cut.within(Step::Pause, Some(paused_until_ns), arrived_ns);
    cut.until(Step::Read, arrived_ns);
    if let Some(batch) = &times.batch {
        cut.within(Step::Placement, batch.placed_ns, batch.dispatched_ns);
        cut.until(Step::Queue, batch.dispatched_ns);
        let BatchTimes { dispatched_ns, completed_ns, service_ns, lane_free_ns, .. } = *batch;
        let [lane_ns, service_ns, _] = flight(dispatched_ns, completed_ns, service_ns, lane_free_ns);
        cut.until(Step::Lane, dispatched_ns + lane_ns);
        cut.until(Step::Service, dispatched_ns + lane_ns + service_ns);
        cut.until(Step::Handover, completed_ns);
        cut.within(Step::OtherGroups, batch.complete_ns, times.sealing.sealed_ns);
    }
    seal(&mut cut, &times.sealing);
    (with_holes(times.created_ns, cut.waits, times.holes), cut.at_ns)
}

/// Splits the waits at holes, and renames the parts within holes, in order of time. The sum stays the same.
fn with_holes(begin_ns: i64, waits: Vec<Wait>, holes: &[Hole]) -> Vec<Wait> {
    let mut found: Vec<Wait> = Vec::with_capacity(waits.len());
    let mut push = |step: Step, ns: i64| match found.last_mut() {
        Some(last) if last.step == step => last.ns += ns,
        _ if ns != 0 => found.push(Wait { step, ns }),
        _ => {}
    };
    let mut at_ns = begin_ns;
    for Wait { step, ns } in waits {
        let end_ns = at_ns.saturating_add(ns);
        for hole in holes {
            let (from_ns, until_ns) = (hole.from.at_ns.max(at_ns), hole.until.at_ns.min(end_ns));
            if let Some(of_hole) = step_of(hole.cause, step).filter(|_| from_ns < until_ns) {
                push(step, from_ns - at_ns);
                push(of_hole, until_ns - from_ns);
                at_ns = until_ns;
            }
        }
        push(step, end_ns.saturating_sub(at_ns));
        at_ns = end_ns;
    }
    found
}

/// Returns the step that replaces a wait within a hole; `None` if the hole does not explain the wait.
fn step_of(cause: HoleCause, step: Step) -> Option<Step> {
    let is_before_the_process = matches!(step, Step::Process | Step::Restore);
    let is_of_the_log = matches!(step, Step::Commit | Step::Retry | Step::PreviousCommit);
    match cause {
        _ if is_before_the_process => None,
        HoleCause::Log => is_of_the_log.then_some(Step::LogHeld),
        HoleCause::StoodStill => Some(Step::StoodStill),
        // A readable record was due.
        HoleCause::Silence => (step == Step::Read).then_some(Step::StoodStill),
    }
}

/// Splits the flight of a batch, from dispatch to completion, into three parts in nanoseconds. They are the wait for
/// earlier batches, the lane's work, and the rest. The work is limited to the flight, because lanes have a clock of
/// their own.
pub fn flight(dispatched_ns: i64, completed_ns: i64, service_ns: i64, lane_free_ns: Option<i64>) -> [i64; 3] {
    let flight_ns = completed_ns.saturating_sub(dispatched_ns);
    let service_ns = service_ns.clamp(0, flight_ns.max(0));
    let lane_ns = lane_free_ns.map_or(0, |free_ns| free_ns.saturating_sub(dispatched_ns));
    let lane_ns = lane_ns.clamp(0, (flight_ns - service_ns).max(0));
    [lane_ns, service_ns, flight_ns - lane_ns - service_ns]
}

/// Times that divide a request's way into waits.
#[derive(Clone, Debug)]
pub(crate) struct RequestTimes<'a> {
    /// Time of the request's publication, or of its arrival at the process if that is earlier.
    pub(crate) from_ns: i64,
    /// Intervals in which the process recorded nothing, in order.
    pub(crate) holes: &'a [Hole],
    pub(crate) began_ns: Option<i64>,
    pub(crate) received_ns: i64,
    /// Arrival of the request's task at the scheduler; the next fields are the start of the first slice and the end of
    /// the last. Each is `None` if it did not happen.
    pub(crate) arrived_ns: Option<i64>,
    pub(crate) first_slice_ns: Option<i64>,
    pub(crate) done_ns: Option<i64>,
    /// Time at which the answer was known.
    pub(crate) finished_ns: i64,
    pub(crate) sealing: Sealing<'a>,
}

/// Returns the waits of a request, and the time at which they end.
pub(crate) fn request_waits(times: &RequestTimes<'_>) -> (Vec<Wait>, i64) {
    let mut cut = Cut::new(times.from_ns);
    cut.within(Step::Process, times.began_ns, times.received_ns);
    cut.until(Step::Read, times.received_ns);
    cut.within(Step::Preparation, times.arrived_ns, times.finished_ns);
    cut.within(Step::TaskQueue, times.first_slice_ns, times.finished_ns);
    cut.within(Step::Slices, times.done_ns, times.finished_ns);
    cut.until(Step::Conclusion, times.finished_ns);
    seal(&mut cut, &times.sealing);
    (with_holes(times.from_ns, cut.waits, times.holes), cut.at_ns)
}

fn seal(cut: &mut Cut, sealing: &Sealing<'_>) {
    cut.within(Step::PreviousCommit, sealing.previous_known_ns, sealing.sealed_ns);
    cut.until(Step::CommitInterval, sealing.sealed_ns);
    let committed = sealing.attempts.last().filter(|last| last.outcome == CommitOutcome::Committed);
    let (Some(first), Some(last)) = (sealing.attempts.first(), committed) else { return };
    cut.until(Step::Send, first.sent_ns);
    cut.until(Step::Retry, last.sent_ns);
    cut.until(Step::Commit, last.ended_ns);
}

fn overlap(from: i64, until: i64, low: i64, high: i64) -> i64 {
    (until.min(high) - from.max(low)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Moment;

    fn attempt(sent_ns: i64, ended_ns: i64, outcome: CommitOutcome) -> Attempt {
        Attempt { sent_ns, ended_ns, known_ns: ended_ns, outcome, looked_up: false }
    }

    fn times(attempts: &[Attempt]) -> Times<'_> {
        let batch = BatchTimes {
            placed_ns: Some(210),
            dispatched_ns: 230,
            completed_ns: 300,
            service_ns: 25,
            lane_free_ns: Some(260),
            complete_ns: Some(320),
        };
        let sealing = Sealing { sealed_ns: 400, previous_known_ns: Some(350), attempts };
        Times {
            created_ns: 10,
            began_ns: Some(30),
            assigned_ns: Some(45),
            pauses: &[(0, 50), (100, 120), (190, 500)],
            holes: &[],
            arrived_ns: Some(200),
            batch: Some(batch),
            sealing,
        }
    }

    #[track_caller]
    fn check(times: &Times<'_>, expected: &[(Step, i64)], end_ns: i64) {
        let (waits, until_ns) = waits(times);
        let found: Vec<_> = waits.iter().map(|wait| (wait.step, wait.ns)).collect();
        assert_eq!((found.as_slice(), until_ns), (expected, end_ns));
        assert_eq!(waits.iter().map(|wait| wait.ns).sum::<i64>(), end_ns - times.created_ns);
    }

    #[test]
    fn every_wait_is_told_and_they_add_up() {
        use Step::*;
        let attempts =
            [attempt(404, 410, CommitOutcome::Aborted), attempt(440, 447, CommitOutcome::Committed)];
        let before_seal = [
            (Process, 20),
            (Restore, 15),
            (Pause, 35),
            (Read, 120),
            (Placement, 10),
            (Queue, 20),
            (Lane, 30),
            (Service, 25),
            (Handover, 15),
            (OtherGroups, 20),
            (PreviousCommit, 30),
            (CommitInterval, 50),
        ];
        let all = [&before_seal[..], &[(Send, 4), (Retry, 36), (Commit, 7)]].concat();
        check(&times(&attempts), &all, 447);
        // Without an outcome, the waits end at the seal.
        check(&times(&attempts[..1]), &before_seal, 400);
        check(&times(&[]), &before_seal, 400);
    }

    #[test]
    fn what_fell_into_holes_is_told_apart() {
        use Step::*;
        let hole = |from: i64, until: i64, cause| {
            let moment = |at_ns| Moment { sequence: 0, at_ns };
            Hole { from: moment(from), until: moment(until), cause }
        };
        let attempts = [attempt(404, 470, CommitOutcome::Committed)];
        let of = |holes: &[Hole]| {
            let (found, end_ns) = waits(&Times { pauses: &[], holes, ..times(&attempts) });
            assert_eq!(found.iter().map(|wait| wait.ns).sum::<i64>(), end_ns - 10, "they add up");
            found.iter().map(|wait| (wait.step, wait.ns)).collect::<Vec<_>>()
        };
        let before = [(Process, 20), (Restore, 15), (Read, 155)];
        let lane =
            [(Placement, 10), (Queue, 20), (Lane, 30), (Service, 25), (Handover, 15), (OtherGroups, 20)];
        let seal = [(PreviousCommit, 30), (CommitInterval, 50), (Send, 4), (Commit, 66)];
        assert_eq!(of(&[]), [&before[..], &lane, &seal].concat());
        // A silence explains only waits to read; a held log explains only waits that the log caused.
        let read = [(Process, 20), (Restore, 15), (Read, 55), (StoodStill, 60), (Read, 40)];
        let held = [(PreviousCommit, 30), (CommitInterval, 50), (Send, 4), (Commit, 6), (LogHeld, 60)];
        let holes = [hole(100, 160, HoleCause::Silence), hole(410, 480, HoleCause::Log)];
        assert_eq!(of(&holes), [&read[..], &lane, &held].concat());
        // A process that stands still makes no progress at all.
        let still = [&before[..], &[(Placement, 5), (StoodStill, 245), (Commit, 20)]].concat();
        assert_eq!(of(&[hole(205, 450, HoleCause::StoodStill)]), still);
        // Two consecutive holes make one wait.
        let two = [hole(50, 100, HoleCause::Silence), hole(100, 160, HoleCause::StoodStill)];
        assert_eq!(of(&two)[2..5], [(Read, 5), (StoodStill, 110), (Read, 40)]);
    }

    #[test]
    fn clocks_that_differ_change_no_sum() {
        use Step::*;
        let of = times(&[]);
        let batch = of.batch.map(|batch| BatchTimes {
            service_ns: 90,
            lane_free_ns: None,
            placed_ns: None,
            complete_ns: None,
            ..batch
        });
        // The publisher's clock is ahead of the process's clock, and the lane's clock is faster.
        let ahead = Times { created_ns: 205, pauses: &[], batch, ..of.clone() };
        let sealed = [(PreviousCommit, 50), (CommitInterval, 50)];
        let expected = [&[(Read, -5), (Queue, 30), (Service, 70)][..], &sealed].concat();
        check(&ahead, &expected, 400);
        let unknown = Times { batch: None, ..ahead };
        check(&unknown, &[(Read, -5), (PreviousCommit, 150), (CommitInterval, 50)], 400);
    }
}
