//! Risk requests that this process has read: those being worked on, and results that wait for a commit.
//!
//! Requests of a partition are answered in any order. Its committed offset is that of the first one without an answer; of those
//! behind it the results themselves tell, when they are read again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use warptape_eventlog::TopicPartition;
use warptape_schemas::encode_risk_result;
use warptape_schemas::journal::{LaneId, RunSlice, TaskId};
use warptape_schemas::risk::{RiskError, RiskOutcome, RiskRequest, RiskResult, TaskClass};
use warptape_stages::risk::{Finished, KeptProfits, Partial, RiskTask, refusals};

use super::EngineConfig;
use super::answered::Answered;
use super::commit::Sealed;

/// Of a request that the scheduler was not asked about.
const NO_SEQUENCE: i64 = -1;

/// All of it.
#[derive(Default)]
pub(super) struct RiskDesk {
    /// By partition of the requests.
    pub(super) partitions: BTreeMap<i32, RequestPartition>,
    pub(super) tasks: BTreeMap<TaskId, OpenTask>,
    /// Slices that lanes have, by number.
    slices: BTreeMap<i64, RunningSlice>,
    task_next: TaskId,
    /// Of portfolios.
    pub(super) kept: KeptProfits,
}

struct RunningSlice {
    task: TaskId,
    lane: LaneId,
    from: i64,
}

/// Requests of one partition.
pub(super) struct RequestPartition {
    source: TopicPartition,
    /// Requests read under another one are stale.
    pub(super) generation: u64,
    next_offset: i64,
    pub(super) read_to: i64,
    sealed_offset: i64,
    /// Offsets of requests without an answer.
    open: BTreeSet<i64>,
    pub(super) answered: Answered,
    /// Results that wait for a commit.
    results: VecDeque<EncodedResult>,
    results_bytes: usize,
}

struct EncodedResult {
    /// Of the request.
    offset: i64,
    request_id: String,
    bytes: Vec<u8>,
}

impl RequestPartition {
    pub(super) fn new(source: TopicPartition, generation: u64, committed: i64, answered: Answered) -> Self {
        Self {
            source,
            generation,
            next_offset: committed,
            read_to: committed,
            sealed_offset: committed,
            open: BTreeSet::new(),
            answered,
            results: VecDeque::new(),
            results_bytes: 0,
        }
    }

    /// Takes the request at an offset; whether it wants an answer.
    pub(super) fn begin(&mut self, offset: i64) -> bool {
        self.next_offset = offset + 1;
        if self.answered.take_offset(offset) {
            return false;
        }
        self.open.insert(offset);
        true
    }

    /// Everything before this offset has its answer in the log, or in a commit.
    fn complete_before(&self) -> i64 {
        let waiting = self.results.iter().map(|result| result.offset).min();
        waiting.into_iter().chain(self.open.first().copied()).min().unwrap_or(self.next_offset)
    }

    /// Whether a commit would hold anything.
    pub(super) fn has_uncommitted(&self) -> bool {
        !self.results.is_empty() || self.complete_before() > self.sealed_offset
    }

    pub(super) fn has_results(&self) -> bool {
        !self.results.is_empty()
    }

    /// Whether everything before an offset is answered.
    pub(super) fn is_answered_to(&self, offset: i64) -> bool {
        self.open.is_empty() && self.next_offset.max(self.read_to) >= offset
    }

    /// Hands results to a commit, up to about `bytes_max` and at least one; the next-to-read offset, if it goes along.
    pub(super) fn seal(&mut self, bytes_max: usize, sealed: &mut Sealed) -> Option<(TopicPartition, i64)> {
        let mut bytes = 0;
        while let Some(first) = self.results.front()
            && (bytes == 0 || bytes + first.bytes.len() <= bytes_max)
        {
            let result = self.results.pop_front().expect("it was there a line ago");
            bytes += result.bytes.len();
            sealed.risk_results.push((result.request_id, result.bytes));
        }
        self.results_bytes -= bytes;
        let before = self.complete_before();
        // With results the offset goes along even where it stays: it is what ties them to the group's membership, and what the next
        // owner waits for before it looks what is answered.
        let moves = before > self.sealed_offset || !sealed.risk_results.is_empty();
        self.sealed_offset = before;
        moves.then(|| (self.source.clone(), before))
    }

    fn push(&mut self, result: &RiskResult) {
        self.open.remove(&result.offset);
        let mut bytes = Vec::new();
        encode_risk_result(result, &mut bytes);
        self.results_bytes += bytes.len();
        let (offset, request_id) = (result.offset, result.request_id.clone());
        self.results.push_back(EncodedResult { offset, request_id, bytes });
    }
}

/// What is still wanted of a request once there is a task of it: it may be large.
pub(super) struct Asked {
    pub(super) request_id: String,
    pub(super) tenant: String,
    pub(super) class: TaskClass,
    pub(super) deadline_ns: Option<i64>,
    pub(super) seed: i64,
    pub(super) gang: bool,
    /// Of its record, and of what its work may come to.
    pub(super) bytes: i64,
}

impl Asked {
    pub(super) fn of(request: RiskRequest, bytes: usize) -> Self {
        let RiskRequest { request_id, tenant, class, deadline_ns, seed, gang, .. } = request;
        Self { request_id, tenant, class, deadline_ns, seed, gang, bytes: bytes as i64 }
    }
}

/// A request that is being worked on.
pub(super) struct OpenTask {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) request: Asked,
    pub(super) task: Arc<RiskTask>,
    received_ns: i64,
    /// When its first slice was begun; 0 before.
    started_ns: i64,
    compute_ns: i64,
    lanes: BTreeSet<LaneId>,
    /// By their first units.
    partials: BTreeMap<i64, Partial>,
    /// Of the journal entry that admitted it.
    sequence: i64,
}

impl OpenTask {
    pub(super) fn new(partition: i32, offset: i64, request: Asked, task: RiskTask, now_ns: i64) -> Self {
        Self {
            partition,
            offset,
            request,
            task: Arc::new(task),
            received_ns: now_ns,
            started_ns: 0,
            compute_ns: 0,
            lanes: BTreeSet::new(),
            partials: BTreeMap::new(),
            sequence: NO_SEQUENCE,
        }
    }
}

impl RiskDesk {
    /// Bytes of results that wait for a commit.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.partitions.values().map(|requests| requests.results_bytes).sum()
    }

    /// Takes a task that the journal entry of this sequence is to admit.
    pub(super) fn open(&mut self, mut task: OpenTask, sequence: i64) -> TaskId {
        let number = self.task_next;
        self.task_next += 1;
        task.sequence = sequence;
        self.tasks.insert(number, task);
        number
    }

    /// A lane is to do a slice.
    pub(super) fn begin_slice(&mut self, now_ns: i64, run: &RunSlice) -> Arc<RiskTask> {
        let open = self.tasks.get_mut(&run.task).expect("slices are of tasks that were submitted");
        if open.started_ns == 0 {
            open.started_ns = now_ns;
        }
        self.slices.insert(run.slice, RunningSlice { task: run.task, lane: run.lane, from: run.from });
        open.task.clone()
    }

    /// Keeps what came of a slice, unless nobody waits for it any more.
    pub(super) fn keep(&mut self, lane: LaneId, slice: i64, service_ns: i64, partial: Partial) {
        let Some(running) = self.slices.remove(&slice) else { return };
        if let Some(open) = self.tasks.get_mut(&running.task) {
            open.compute_ns += service_ns;
            open.lanes.insert(lane);
            open.partials.insert(running.from, partial);
        }
    }

    /// A lane is lost, with what it was doing.
    pub(super) fn forget_lane(&mut self, lane: LaneId) {
        self.slices.retain(|_, running| running.lane != lane);
    }

    /// What comes of all units so far.
    pub(super) fn finish(&mut self, task: TaskId) -> Finished {
        let open = self.tasks.get_mut(&task).expect("tasks are finished once");
        open.task.finish(open.partials.values())
    }

    /// The tasks of a partition, or all.
    pub(super) fn numbers_of(&self, partition: Option<i32>) -> Vec<TaskId> {
        let is_of = |open: &OpenTask| partition.is_none_or(|partition| partition == open.partition);
        self.tasks.iter().filter(|(_, open)| is_of(open)).map(|(&number, _)| number).collect()
    }

    /// Answers a task, which is done by that.
    pub(super) fn answer(&mut self, now_ns: i64, task: TaskId, outcome: RiskOutcome, config: &EngineConfig) {
        let Some(open) = self.tasks.remove(&task) else { return };
        let Some(requests) = self.partitions.get_mut(&open.partition) else { return };
        let device = |lane: &LaneId| config.lanes[*lane as usize].device.clone();
        requests.push(&RiskResult {
            request_id: open.request.request_id,
            tenant: open.request.tenant,
            class: open.request.class,
            topic: config.topics.risk_requests.clone(),
            partition: open.partition,
            offset: open.offset,
            outcome,
            as_of: open.task.as_of().to_vec(),
            seed: open.request.seed,
            received_ns: open.received_ns,
            started_ns: open.started_ns,
            finished_ns: now_ns,
            compute_ns: open.compute_ns,
            devices: open.lanes.iter().map(device).collect(),
            node: config.node.clone(),
            decision_sequence: open.sequence,
        });
    }

    /// Answers a request that no task can be made of.
    pub(super) fn refuse(
        &mut self,
        now_ns: i64,
        partition: i32,
        offset: i64,
        request: Option<&RiskRequest>,
        error: RiskError,
        config: &EngineConfig,
    ) {
        let Some(requests) = self.partitions.get_mut(&partition) else { return };
        requests.push(&RiskResult {
            request_id: request.map_or(String::new(), |request| refusals::repeated(&request.request_id)),
            tenant: request.map_or(String::new(), |request| refusals::repeated(&request.tenant)),
            class: request.map_or(TaskClass::Interactive, |request| request.class),
            topic: config.topics.risk_requests.clone(),
            partition,
            offset,
            outcome: RiskOutcome::Error(error),
            as_of: Vec::new(),
            seed: request.map_or(0, |request| request.seed),
            received_ns: now_ns,
            started_ns: 0,
            finished_ns: now_ns,
            compute_ns: 0,
            devices: Vec::new(),
            node: config.node.clone(),
            decision_sequence: NO_SEQUENCE,
        });
    }
}
