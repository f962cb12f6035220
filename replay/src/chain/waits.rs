//! The waits between a record's publication and its visible effects: times cut up so that the parts add up to the whole.

use serde::Serialize;
use warptape_schemas::journal::CommitOutcome;

use crate::history::{Attempt, Hole, HoleCause};

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The record was published before the process that worked on it began.
    Process,
    /// The process did not have the partition yet, or restored its state.
    Restore,
    /// The partition was paused, because too many of its rows waited on the host.
    Pause,
    /// To be read from the log and decoded.
    Read,
    /// For the group to be on a lane.
    Placement,
    /// In the group's queue, until it was dispatched.
    Queue,
    /// For batches of the lane that were dispatched before.
    Lane,
    /// For the lane to work on the batch.
    Service,
    /// On the way to the lane and back: what is left of the time between dispatch and completion.
    Handover,
    /// For rows of other groups that came from the same records or earlier ones: a transaction has complete records alone.
    OtherGroups,
    /// For the transaction before, which had not ended.
    PreviousCommit,
    /// For the next commit to be due.
    CommitInterval,
    /// For the thread that commits to begin to write.
    Send,
    /// For attempts that were aborted, and the pauses after them.
    Retry,
    /// For the log to take the transaction.
    Commit,
    /// For a process that recorded nothing meanwhile, though something was due or a record was there to be read: one that was stopped, has no
    /// processor, or gets nothing from its log.
    StoodStill,
    /// For a log that took nothing of the process meanwhile: its write lock was held, or its disk or broker was slow.
    LogHeld,
    /// Of a request: to be prepared, until the scheduler was told of the task.
    Preparation,
    /// Of a request: for its first slice to begin.
    TaskQueue,
    /// Of a request: for its slices to be done.
    Slices,
    /// Of a request: for its answer to be put together.
    Conclusion,
}

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// What for.
    pub step: Step,
    /// How long, in nanoseconds. Where clocks of several machines are involved it may be negative.
    pub ns: i64,
}

/// What is known of a record's way to its lane and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchTimes {
    /// When its group was placed, where that was after the rows came.
    pub(crate) placed_ns: Option<i64>,
    pub(crate) dispatched_ns: i64,
    pub(crate) completed_ns: i64,
    pub(crate) service_ns: i64,
    /// When the lane's batch before it came back.
    pub(crate) lane_free_ns: Option<i64>,
    /// When all rows of the record and those before it were done.
    pub(crate) complete_ns: Option<i64>,
}

/// Times that a way is cut at.
#[derive(Clone, Debug)]
pub(crate) struct Times<'a> {
    pub(crate) created_ns: i64,
    /// When the process began.
    pub(crate) began_ns: Option<i64>,
    /// When it had the partition, and its state.
    pub(crate) assigned_ns: Option<i64>,
    /// When the partition was not read: from, until.
    pub(crate) pauses: &'a [(i64, i64)],
    /// When the process recorded nothing, in order.
    pub(crate) holes: &'a [Hole],
    /// When its rows came; `None` where that is not known.
    pub(crate) arrived_ns: Option<i64>,
    /// `None` where it is not known which batch it was.
    pub(crate) batch: Option<BatchTimes>,
    pub(crate) sealing: Sealing<'a>,
}

/// Times from the seal on.
#[derive(Clone, Debug)]
pub(crate) struct Sealing<'a> {
    pub(crate) sealed_ns: i64,
    /// When the outcome of the transaction before was known.
    pub(crate) previous_known_ns: Option<i64>,
    pub(crate) attempts: &'a [Attempt],
}

/// Cuts a stretch of time into waits, one after the other.
struct Cut {
    at_ns: i64,
    waits: Vec<Wait>,
}

impl Cut {
    fn new(at_ns: i64) -> Self {
        Self { at_ns, waits: Vec::new() }
    }

    /// The wait until a time.
    fn until(&mut self, step: Step, until_ns: i64) {
        let ns = until_ns.saturating_sub(self.at_ns);
        if ns != 0 {
            self.waits.push(Wait { step, ns });
        }
        self.at_ns = until_ns;
    }

    /// The wait until a time, as far as that is within what is left until `end_ns`.
    fn within(&mut self, step: Step, until_ns: Option<i64>, end_ns: i64) {
        if let Some(until_ns) = until_ns.filter(|until_ns| *until_ns > self.at_ns) {
            self.until(step, until_ns.min(end_ns.max(self.at_ns)));
        }
    }
}

/// The waits, and the time at which they end: that of the commit, or of the last thing that is known.
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

/// The waits with what of them fell into holes told apart, in order of time: they add up to the same.
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

/// What a wait counts as where it falls into a hole; `None` where the hole does not explain it.
fn step_of(cause: HoleCause, step: Step) -> Option<Step> {
    let is_before_the_process = matches!(step, Step::Process | Step::Restore);
    let is_of_the_log = matches!(step, Step::Commit | Step::Retry | Step::PreviousCommit);
    match cause {
        _ if is_before_the_process => None,
        HoleCause::Log => is_of_the_log.then_some(Step::LogHeld),
        HoleCause::StoodStill => Some(Step::StoodStill),
        // A record that was there to be read was due.
        HoleCause::Silence => (step == Step::Read).then_some(Step::StoodStill),
    }
}

/// What a batch waited for on its way to its lane and back, which adds up to that: for batches before it, for the lane to work on it, and
/// the rest. Lanes have a clock of their own, by which they may have worked longer.
pub fn flight(dispatched_ns: i64, completed_ns: i64, service_ns: i64, lane_free_ns: Option<i64>) -> [i64; 3] {
    let flight_ns = completed_ns.saturating_sub(dispatched_ns);
    let service_ns = service_ns.clamp(0, flight_ns.max(0));
    let lane_ns = lane_free_ns.map_or(0, |free_ns| free_ns.saturating_sub(dispatched_ns));
    let lane_ns = lane_ns.clamp(0, (flight_ns - service_ns).max(0));
    [lane_ns, service_ns, flight_ns - lane_ns - service_ns]
}

/// What is known of a request's way.
#[derive(Clone, Debug)]
pub(crate) struct RequestTimes<'a> {
    /// When it was published, or the process had it, where that is earlier.
    pub(crate) from_ns: i64,
    /// When the process recorded nothing, in order.
    pub(crate) holes: &'a [Hole],
    pub(crate) began_ns: Option<i64>,
    pub(crate) received_ns: i64,
    /// When the scheduler was told of it, when its first slice began, and when the last one was done, as far as it came.
    pub(crate) arrived_ns: Option<i64>,
    pub(crate) first_slice_ns: Option<i64>,
    pub(crate) done_ns: Option<i64>,
    /// When the answer was known.
    pub(crate) finished_ns: i64,
    pub(crate) sealing: Sealing<'a>,
}

/// The waits of a request, and the time at which they end.
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
        // Without an outcome the way is known to the seal alone.
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
        // A silence explains what was not read, and nothing else; a log that is held what it did not take.
        let read = [(Process, 20), (Restore, 15), (Read, 55), (StoodStill, 60), (Read, 40)];
        let held = [(PreviousCommit, 30), (CommitInterval, 50), (Send, 4), (Commit, 6), (LogHeld, 60)];
        let holes = [hole(100, 160, HoleCause::Silence), hole(410, 480, HoleCause::Log)];
        assert_eq!(of(&holes), [&read[..], &lane, &held].concat());
        // Who stands still does nothing at all.
        let still = [&before[..], &[(Placement, 5), (StoodStill, 245), (Commit, 20)]].concat();
        assert_eq!(of(&[hole(205, 450, HoleCause::StoodStill)]), still);
        // Two in a row are one wait.
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
        // The publisher's clock is ahead of the process's, and the lane's ran faster.
        let ahead = Times { created_ns: 205, pauses: &[], batch, ..of.clone() };
        let sealed = [(PreviousCommit, 50), (CommitInterval, 50)];
        let expected = [&[(Read, -5), (Queue, 30), (Service, 70)][..], &sealed].concat();
        check(&ahead, &expected, 400);
        let unknown = Times { batch: None, ..ahead };
        check(&unknown, &[(Read, -5), (PreviousCommit, 150), (CommitInterval, 50)], 400);
    }
}
