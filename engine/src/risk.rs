//! Risk requests that this process has read: those without a task yet ([`arrivals`]), those in work, and results that
//! wait for a commit. Long work is a [`Preparation`] or a [`Conclusion`], which run in the background.
//!
//! Requests of a partition are answered in any order. The partition's committed offset is that of the first request
//! without an answer. When requests from there on are read again, the results behind that offset show which are
//! answered.

mod arrivals;
mod conclusion;
mod preparation;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use warptape_events::journal::{LaneId, RunSlice, TaskId};
use warptape_events::risk::{MarketAsOf, OptionResult, RULES, RiskError, RiskOutcome, RiskResult};
use warptape_record::TopicPartition;
use warptape_stages::risk::{Finished, KeptProfits, Partial, RiskTask, refusals};

use crate::answered::Answered;
use crate::commit::{Sealed, SealedResult};
use crate::config::Config;
pub use arrivals::Haste;
pub(crate) use arrivals::{Arrivals, Asked, Needs, Queue, Turn};
pub(crate) use conclusion::ConcludedRound;
pub use conclusion::{Concluded, Conclusion};
pub use preparation::{Preparation, Prepared};

/// Bytes of tasks in conclusion from which no further tasks are made.
const CONCLUDING_BYTES_MAX: usize = 64 << 20;
/// Sequence of a request that was answered without asking the scheduler.
pub(crate) const NO_SEQUENCE: i64 = -1;

/// All risk requests of the process.
#[derive(Default)]
pub(crate) struct RiskDesk {
    /// Partitions with open requests, by number.
    pub(crate) partitions: BTreeMap<i32, RequestPartition>,
    pub(crate) arrivals: Arrivals,
    /// Tasks that the scheduler knows.
    pub(crate) tasks: BTreeMap<TaskId, Box<OpenTask>>,
    /// Tasks with a round in conclusion, also those whose result is no longer wanted.
    concluding: BTreeMap<TaskId, Concluding>,
    /// The overdue request that is being passed to the scheduler, with its number and sequence.
    pub(crate) overdue: Option<(TaskId, i64, Asked)>,
    /// Slices that lanes are running, by number.
    slices: BTreeMap<i64, RunningSlice>,
    task_next: TaskId,
    /// Profits of portfolios, kept for later requests.
    pub(crate) kept: Arc<KeptProfits>,
}

struct Concluding {
    /// Partition of the request; `None` once the result is no longer wanted.
    partition: Option<i32>,
    request_id: String,
    bytes: usize,
    /// The request that cancels this one; `None` if there is none, or it was answered after this round.
    cancelled_by: Option<Asked>,
}

/// A concluded round whose result is still wanted.
pub(crate) struct Awaited {
    /// The request that cancels the round's request; `None` if there is none.
    pub(crate) cancelled_by: Option<Asked>,
}

struct RunningSlice {
    task: TaskId,
    lane: LaneId,
    from: i64,
}

/// A slice for a lane.
pub(crate) struct BegunSlice {
    pub(crate) task: Arc<RiskTask>,
    /// Partition and offset of the slice's request.
    pub(crate) request: (i32, i64),
    /// Time at which the scheduler received the round. `None` unless this slice is the round's first and began in the
    /// same step.
    pub(crate) begun_at_once_ns: Option<i64>,
}

/// Requests of one partition.
pub(crate) struct RequestPartition {
    source: TopicPartition,
    /// Generation of the requests; requests read under another one are stale.
    pub(crate) generation: u64,
    next_offset: i64,
    pub(crate) read_to: i64,
    sealed_offset: i64,
    /// True if the next commit must write the offset, even if it has not changed.
    pub(crate) offset_due: bool,
    /// Offsets of requests without an answer.
    open: BTreeSet<i64>,
    /// End of the topic's partition when it was assigned: requests before this offset existed then.
    found_before: i64,
    found: FoundRequests,
    pub(crate) answered: Answered,
    /// Results that wait for a commit.
    results: VecDeque<EncodedResult>,
    results_bytes: usize,
}

/// Requests that had no answer when their partition was assigned.
#[derive(Default)]
struct FoundRequests {
    count: usize,
    /// Ids of the first such requests.
    ids: Vec<String>,
}

/// Most ids in the message about unanswered requests.
const FOUND_IDS_MAX: usize = 16;

pub(crate) struct EncodedResult {
    partition: i32,
    /// Offset of the request.
    offset: i64,
    record: SealedResult,
    /// True if its request cancelled another one, whose result precedes it.
    is_of_cancelling: bool,
}

impl RequestPartition {
    /// Opens a partition; requests before `found_before` existed when it was assigned.
    pub(crate) fn new(
        source: TopicPartition,
        generation: u64,
        committed: i64,
        found_before: i64,
        answered: Answered,
    ) -> Self {
        Self {
            source,
            generation,
            next_offset: committed,
            read_to: committed,
            sealed_offset: committed,
            offset_due: false,
            open: BTreeSet::new(),
            found_before,
            found: FoundRequests::default(),
            answered,
            results: VecDeque::new(),
            results_bytes: 0,
        }
    }

    /// Notes the request at an offset. Returns true if it needs an answer.
    pub(crate) fn begin(&mut self, offset: i64) -> bool {
        self.next_offset = offset + 1;
        if self.answered.take_offset(offset) {
            return false;
        }
        self.open.insert(offset);
        true
    }

    /// Notes a request that needs an answer, if it existed when the partition was assigned.
    pub(crate) fn note(&mut self, offset: i64, request_id: &str) {
        if offset < self.found_before {
            self.found.count += 1;
            if self.found.ids.len() < FOUND_IDS_MAX {
                self.found.ids.push(request_id.to_owned());
            }
        }
    }

    /// The message about requests that had no answer when the partition was assigned. `None` until all of them are
    /// read, or if there are none.
    pub(crate) fn take_found(&mut self) -> Option<String> {
        if self.next_offset.max(self.read_to) < self.found_before {
            return None;
        }
        self.found_before = 0;
        let FoundRequests { count, ids } = std::mem::take(&mut self.found);
        let more = match count - ids.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let TopicPartition { topic, partition } = &self.source;
        (count > 0).then(|| {
            format!(
                "{topic} {partition}: {count} requests had no answer when the partition came: {ids:?}{more}; what was done of them \
                 before is done again"
            )
        })
    }

    /// The offset before which all requests have an answer in the log or in a commit.
    fn complete_before(&self) -> i64 {
        let waiting = self.results.iter().map(|result| result.offset).min();
        waiting.into_iter().chain(self.open.first().copied()).min().unwrap_or(self.next_offset)
    }

    /// True if a commit would contain anything.
    pub(crate) fn has_uncommitted(&self) -> bool {
        self.offset_due || !self.results.is_empty() || self.complete_before() > self.sealed_offset
    }

    pub(crate) fn has_results(&self) -> bool {
        !self.results.is_empty()
    }

    /// True if all requests before an offset are answered.
    pub(crate) fn is_answered_to(&self, offset: i64) -> bool {
        self.open.is_empty() && self.next_offset.max(self.read_to) >= offset
    }

    /// Seals results, up to about `bytes_max` and at least one. Returns the next-to-read offset, if it belongs in the
    /// same commit.
    pub(crate) fn seal(&mut self, bytes_max: usize, sealed: &mut Sealed) -> Option<(TopicPartition, i64)> {
        let mut bytes = 0;
        while let Some(first) = self.results.front()
            // The results of a cancelled request and of the request that cancelled it go into one transaction.
            && (bytes == 0 || first.is_of_cancelling || bytes + first.record.bytes.len() <= bytes_max)
        {
            let result = self.results.pop_front().expect("it was there a line ago");
            bytes += result.record.bytes.len();
            sealed.risk_results.push(result.record);
        }
        self.results_bytes -= bytes;
        let before = self.complete_before();
        // Results are always committed with the offset, even if it stays. It ties them to the group's membership, and
        // the next owner waits for it before it looks for answers.
        let is_due = std::mem::take(&mut self.offset_due);
        let moves = is_due || before > self.sealed_offset || !sealed.risk_results.is_empty();
        self.sealed_offset = before;
        moves.then(|| (self.source.clone(), before))
    }

    fn push(&mut self, result: EncodedResult) {
        self.open.remove(&result.offset);
        self.results_bytes += result.record.bytes.len();
        self.results.push_back(result);
    }
}

/// A request in work.
pub(crate) struct OpenTask {
    pub(crate) asked: Asked,
    /// The task of the present round.
    pub(crate) task: Arc<RiskTask>,
    /// Time at which the scheduler received the round; 0 before.
    pub(crate) submitted_ns: i64,
    /// Time at which the round's first slice began; 0 before.
    started_ns: i64,
    compute_ns: i64,
    lanes: BTreeSet<LaneId>,
    /// Results of the round's slices, by the number of their first units.
    partials: BTreeMap<i64, Partial>,
    /// Sequence of the journal entry that admitted the task.
    sequence: i64,
}

impl OpenTask {
    /// The outcome of all units of the round.
    fn finish(&self) -> Finished {
        self.task.finish(self.partials.values())
    }

    fn is_long_to_finish(&self) -> bool {
        self.task.is_long_to_finish(self.partials.values())
    }

    /// Begins the next round.
    fn go_on(&mut self, next: RiskTask) {
        self.task = Arc::new(next);
        self.partials.clear();
    }

    fn into_result(self, now_ns: i64, outcome: RiskOutcome, config: &Config) -> EncodedResult {
        let device = |lane: &LaneId| config.lanes[*lane as usize].device.clone();
        let work = WorkDone {
            as_of: self.task.as_of().to_vec(),
            started_ns: self.started_ns,
            compute_ns: self.compute_ns,
            devices: self.lanes.iter().map(device).collect(),
        };
        encoded(now_ns, self.asked, self.sequence, outcome, work, config)
    }
}

/// The computing work behind a result.
#[derive(Default)]
struct WorkDone {
    as_of: Vec<MarketAsOf>,
    started_ns: i64,
    compute_ns: i64,
    devices: Vec<String>,
}

fn encoded(
    now_ns: i64,
    asked: Asked,
    sequence: i64,
    outcome: RiskOutcome,
    work: WorkDone,
    config: &Config,
) -> EncodedResult {
    let Asked {
        partition,
        offset,
        request_id,
        tenant,
        class,
        seed,
        received_ns,
        cost_ns,
        cancels,
        judged_on,
        ..
    } = asked;
    let WorkDone { as_of, started_ns, compute_ns, devices } = work;
    let mut result = RiskResult {
        request_id,
        tenant,
        class,
        topic: config.topics.risk_requests.clone(),
        partition,
        offset,
        outcome,
        as_of,
        seed,
        received_ns,
        started_ns,
        finished_ns: now_ns,
        compute_ns,
        devices,
        node: config.node.clone(),
        decision_sequence: sequence,
        cost_ns,
        cost_max_ns: if cost_ns > 0 { config.limits.risk_cost_max_ns } else { 0 },
        cancels,
        judged_on,
        rules: RULES,
    };
    let bytes = refusals::encode_bounded(&mut result, config.limits.risk_result_bytes_max);
    let is_of_cancelling = result.cancels.is_some();
    let error = match &result.outcome {
        RiskOutcome::Error(error) => Some(error.code),
        _ => None,
    };
    let record = SealedResult { request_id: result.request_id, bytes, class, error };
    EncodedResult { partition, offset, record, is_of_cancelling }
}

impl RiskDesk {
    /// Bytes of results that wait for a commit.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.partitions.values().map(|requests| requests.results_bytes).sum()
    }

    /// Takes the number for the next request that is passed to the scheduler.
    pub(crate) fn take_number(&mut self) -> TaskId {
        self.task_next += 1;
        self.task_next - 1
    }

    /// Adds a task, which the journal entry with this sequence is to admit.
    pub(crate) fn open(&mut self, asked: Asked, task: Box<RiskTask>, sequence: i64) -> TaskId {
        let number = self.take_number();
        let open = OpenTask {
            asked,
            task: Arc::from(task),
            submitted_ns: 0,
            started_ns: 0,
            compute_ns: 0,
            lanes: BTreeSet::new(),
            partials: BTreeMap::new(),
            sequence,
        };
        self.tasks.insert(number, Box::new(open));
        number
    }

    /// Notes that a lane begins a slice.
    pub(crate) fn begin_slice(&mut self, now_ns: i64, run: &RunSlice) -> BegunSlice {
        let open = self.tasks.get_mut(&run.task).expect("slices are of tasks that were submitted");
        if open.started_ns == 0 {
            open.started_ns = now_ns;
        }
        self.slices.insert(run.slice, RunningSlice { task: run.task, lane: run.lane, from: run.from });
        let is_first = run.from == open.task.units().start;
        BegunSlice {
            task: open.task.clone(),
            request: (open.asked.partition, open.asked.offset),
            begun_at_once_ns: (is_first && now_ns == open.submitted_ns).then_some(now_ns),
        }
    }

    /// Keeps the result of a slice, unless its task has ended.
    pub(crate) fn keep(&mut self, lane: LaneId, slice: i64, service_ns: i64, partial: Partial) {
        let Some(running) = self.slices.remove(&slice) else { return };
        if let Some(open) = self.tasks.get_mut(&running.task) {
            open.compute_ns += service_ns;
            open.lanes.insert(lane);
            open.partials.insert(running.from, partial);
        }
    }

    /// Forgets the slices of a lost lane.
    pub(crate) fn forget_lane(&mut self, lane: LaneId) {
        self.slices.retain(|_, running| running.lane != lane);
    }

    /// Removes a task whose round is done, to conclude the round.
    pub(crate) fn conclude(&mut self, task: TaskId) -> Box<OpenTask> {
        let open = self.tasks.remove(&task).expect("rounds of known tasks are finished");
        let Asked { partition, bytes, ref request_id, .. } = open.asked;
        let request_id = request_id.clone();
        let concluding = Concluding { partition: Some(partition), request_id, bytes, cancelled_by: None };
        self.concluding.insert(task, concluding);
        open
    }

    /// True if further tasks may be made. The scheduler does not know of tasks in conclusion, so their bytes are
    /// counted here.
    pub(crate) fn has_room(&self) -> bool {
        self.concluding.values().map(|concluding| concluding.bytes).sum::<usize>() < CONCLUDING_BYTES_MAX
    }

    /// Removes a concluded round; `None` if its result is no longer wanted.
    pub(crate) fn take_concluded(&mut self, task: TaskId) -> Option<Awaited> {
        let concluding = self.concluding.remove(&task).filter(|concluding| concluding.partition.is_some())?;
        Some(Awaited { cancelled_by: concluding.cancelled_by })
    }

    /// The task of a request in a partition; `None` if the scheduler knows none.
    pub(crate) fn task_of(&self, partition: i32, request_id: &str) -> Option<TaskId> {
        let is_it =
            |open: &OpenTask| open.asked.partition == partition && open.asked.request_id == request_id;
        self.tasks.iter().find(|(_, open)| is_it(open)).map(|(&number, _)| number)
    }

    /// Notes that `by` cancels a request of a partition whose round is in conclusion. Returns `by` if there is no such
    /// request, or another one cancels it already.
    pub(crate) fn cancel_concluding(&mut self, by: Asked, request_id: &str) -> Option<Asked> {
        let is_it = |concluding: &&mut Concluding| {
            concluding.partition == Some(by.partition) && concluding.request_id == request_id
        };
        match self.concluding.values_mut().find(is_it).filter(|found| found.cancelled_by.is_none()) {
            Some(found) => {
                found.cancelled_by = Some(by);
                None
            }
            None => Some(by),
        }
    }

    /// Answers a request that has cancelled another one.
    pub(crate) fn confirm(&mut self, now_ns: i64, by: Asked, config: &Config) {
        let nothing = RiskOutcome::Options(OptionResult { values: Vec::new() });
        self.push(encoded(now_ns, by, NO_SEQUENCE, nothing, WorkDone::default(), config));
    }

    /// Ends a task with an error as its answer.
    pub(crate) fn end(&mut self, now_ns: i64, open: OpenTask, error: RiskError, config: &Config) {
        self.push(open.into_result(now_ns, RiskOutcome::Error(error), config));
    }

    /// Forgets the requests of a partition, or all if `None`, that the scheduler does not know. Returns the tasks that
    /// it knows.
    pub(crate) fn withdraw(&mut self, partition: Option<i32>) -> Vec<TaskId> {
        let is_of = |of: i32| partition.is_none_or(|partition| partition == of);
        self.arrivals.withdraw(partition);
        for concluding in self.concluding.values_mut() {
            concluding.partition = concluding.partition.filter(|&of| !is_of(of));
        }
        let known = self.tasks.iter().filter(|(_, open)| is_of(open.asked.partition));
        known.map(|(&number, _)| number).collect()
    }

    /// Ends a task with an answer.
    pub(crate) fn answer(&mut self, now_ns: i64, task: TaskId, outcome: RiskOutcome, config: &Config) {
        if let Some(open) = self.tasks.remove(&task) {
            self.push(open.into_result(now_ns, outcome, config));
        }
    }

    /// Answers a request without a task. `sequence` is that of its journal entry, or [`NO_SEQUENCE`].
    pub(crate) fn refuse(
        &mut self,
        now_ns: i64,
        asked: Asked,
        sequence: i64,
        error: RiskError,
        config: &Config,
    ) {
        self.push(encoded(now_ns, asked, sequence, RiskOutcome::Error(error), WorkDone::default(), config));
    }

    /// Adds a result, unless its partition has gone.
    pub(crate) fn push(&mut self, result: EncodedResult) {
        if let Some(requests) = self.partitions.get_mut(&result.partition) {
            requests.push(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::TaskClass;

    use super::*;

    /// Seals all results, at most `bytes_max` at once; returns the request ids of each commit.
    fn commits(of_cancelling: &[bool], bytes_max: usize) -> Vec<Vec<String>> {
        let source = TopicPartition { topic: "risk.requests".to_owned(), partition: 0 };
        let count = of_cancelling.len();
        let mut partition = RequestPartition::new(source, 0, 0, 0, Answered::default());
        for (number, &is_of_cancelling) in of_cancelling.iter().enumerate() {
            partition.begin(number as i64);
            partition.results.push_back(EncodedResult {
                partition: 0,
                offset: number as i64,
                record: SealedResult {
                    request_id: number.to_string(),
                    bytes: vec![0; 100],
                    class: TaskClass::default(),
                    error: None,
                },
                is_of_cancelling,
            });
        }
        partition.results_bytes = 100 * count;
        let mut commits = Vec::new();
        while partition.has_results() {
            let mut sealed = Sealed::default();
            partition.seal(bytes_max, &mut sealed).expect("the offset goes along with results");
            commits.push(sealed.risk_results.into_iter().map(|result| result.request_id).collect());
        }
        assert_eq!(partition.results_bytes, 0);
        commits
    }

    #[test]
    fn who_was_cancelled_and_who_cancelled_are_answered_in_one_commit() {
        assert_eq!(commits(&[false; 4], 200), [["0", "1"], ["2", "3"]]);
        assert_eq!(commits(&[false, false, true, false], 200), [vec!["0", "1", "2"], vec!["3"]]);
        assert_eq!(commits(&[false, true, false, true], 1), [["0", "1"], ["2", "3"]]);
    }
}
