//! The core's side of risk: requests in, results out, and what lanes do in between.

use warptape_eventlog::{Record, TopicPartition};
use warptape_schemas::decode_risk_request;
use warptape_schemas::journal::{
    AsOf, Expire, Finish, Input, LaneId, Reject, RunSlice, SliceDone, TaskArrived, TaskDropped, TaskId,
};
use warptape_schemas::risk::{RiskError, RiskOutcome, RiskRequest};
use warptape_stages::risk::{Finished, Partial, RiskTask, Round, refusals};

use super::super::RecordError;
use super::super::answered::Answered;
use super::super::lanes::{LaneCommand, Slice};
use super::super::risk::{Asked, OpenTask, RequestPartition};
use super::{Command, Core};

impl Core {
    /// The requests of an owned partition are to be read, from the committed offset on.
    pub fn on_requests_opened(&mut self, partition: i32, committed: i64, answered: Answered) {
        self.generation += 1;
        let source = TopicPartition { topic: self.config.topics.risk_requests.clone(), partition };
        let generation = self.generation;
        let requests = RequestPartition::new(source, generation, committed, answered);
        self.risk.partitions.insert(partition, requests);
        self.commands.push(Command::ReadRequests { partition, offset: committed, generation });
    }

    /// Requests of a partition were read up to an offset, after which the log may have no more records.
    pub fn on_requests_position(&mut self, partition: i32, generation: u64, position: i64) {
        if let Some(requests) = self.risk.partitions.get_mut(&partition)
            && requests.generation == generation
        {
            requests.read_to = position;
        }
    }

    /// Requests of a partition were read.
    pub fn on_requests(
        &mut self,
        now_ns: i64,
        partition: i32,
        generation: u64,
        records: &[Record],
    ) -> Result<(), RecordError> {
        let end = self.requests_stop_offset(partition);
        if records.last().is_some_and(|record| record.offset >= end) {
            // What lies before the end was given, if there was anything.
            self.on_requests_position(partition, generation, end);
        }
        for record in records.iter().filter(|record| record.offset < end) {
            let Some(requests) = self.risk.partitions.get_mut(&partition) else { return Ok(()) };
            if requests.generation != generation {
                return Ok(());
            }
            if requests.begin(record.offset) {
                self.on_request(now_ns, partition, record)?;
            }
        }
        Ok(())
    }

    fn on_request(&mut self, now_ns: i64, partition: i32, record: &Record) -> Result<(), RecordError> {
        let (request, task) = match self.task_of(partition, record) {
            Ok(found) => found,
            Err((request, error)) => {
                let request = request.as_deref();
                self.risk.refuse(now_ns, partition, record.offset, request, error, &self.config);
                return Ok(());
            }
        };
        let request = Asked::of(request, record.value.len() + task.bytes());
        let open = OpenTask::new(partition, record.offset, request, task, now_ns);
        let round = open.task.first_round();
        let number = self.risk.open(open, self.recorder.next_sequence());
        self.submit(now_ns, number, round)
    }

    /// The request and its work, or why there is none.
    #[expect(clippy::type_complexity, reason = "an error has the request where it could be read")]
    fn task_of(
        &mut self,
        partition: i32,
        record: &Record,
    ) -> Result<(RiskRequest, RiskTask), (Option<Box<RiskRequest>>, RiskError)> {
        let request =
            decode_risk_request(&record.value).map_err(|error| (None, refusals::unreadable(&error)))?;
        let requests = self.risk.partitions.get_mut(&partition).expect("requests are of open partitions");
        if !requests.answered.ids.insert(&request.request_id) {
            let error = refusals::duplicate(&request.request_id);
            return Err((Some(Box::new(request)), error));
        }
        // A partition that has just come has no market yet; requests of its own wait until it has.
        let with_market = self.partitions.values().filter(|owned| self.has_market(owned));
        let market_of = |symbol: &str| with_market.clone().find_map(|owned| owned.market_of(symbol));
        match RiskTask::new(&request, &market_of) {
            // Devices revalue everything, and what that costs must not be taken for what it costs to follow.
            Ok(task) if self.config.device_names().is_empty() => {
                Ok((request, task.following(&self.risk.kept)))
            }
            Ok(task) => Ok((request, task)),
            Err(error) => Err((Some(Box::new(request)), error)),
        }
    }

    /// Gives a round of a task to the scheduler.
    fn submit(&mut self, now_ns: i64, number: TaskId, round: Round) -> Result<(), RecordError> {
        let open = &self.risk.tasks[&number];
        let mut as_of: Vec<AsOf> = Vec::new();
        for taken in open.task.as_of() {
            if as_of.iter().all(|known| known.partition != taken.partition) {
                as_of.push(AsOf { partition: taken.partition, next_offset: taken.next_offset });
            }
        }
        let input = Input::TaskArrived(TaskArrived {
            task: number,
            partition: open.partition,
            offset: open.offset,
            request_id: open.request.request_id.clone(),
            tenant: open.request.tenant.clone(),
            class: open.request.class,
            deadline_ns: open.request.deadline_ns,
            rate_key: open.task.rate_key(),
            first_unit: round.first_unit,
            units: round.units,
            unit_cost: open.task.unit_cost(),
            slice_units_max: round.units,
            gang: open.request.gang && round.units > 1,
            as_of,
            bytes: open.request.bytes,
        });
        self.step(now_ns, &input)
    }

    /// Positions of portfolios that lanes on the processor revalued so far, where anything was kept of earlier requests.
    pub fn positions_revalued(&self) -> u64 {
        self.risk.kept.revalued()
    }

    /// A lane has done a slice.
    pub fn on_slice_done(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        slice: i64,
        service_ns: i64,
        partial: Partial,
    ) -> Result<(), RecordError> {
        self.risk.keep(lane, slice, service_ns, partial);
        self.step(now_ns, &Input::SliceDone(SliceDone { lane, slice, service_ns }))
    }

    /// Withdraws the tasks of a partition, or all: they are asked again by who owns it next.
    pub(super) fn withdraw_tasks(&mut self, now_ns: i64, partition: Option<i32>) -> Result<(), RecordError> {
        for task in self.risk.numbers_of(partition) {
            // The steps before may have ended it.
            if self.risk.tasks.remove(&task).is_some() {
                self.step(now_ns, &Input::TaskDropped(TaskDropped { task }))?;
            }
        }
        Ok(())
    }

    /// No more requests of a partition are read, and what is not answered yet is left to who owns it next.
    pub(super) fn close_requests(&mut self, now_ns: i64, partition: i32) -> Result<(), RecordError> {
        self.commands.push(Command::ForgetRequests { partition });
        self.withdraw_tasks(now_ns, Some(partition))
    }

    pub(super) fn run_slice(&mut self, now_ns: i64, run: &RunSlice) {
        let task = self.risk.begin_slice(now_ns, run);
        let slice = Slice { slice: run.slice, task, units: run.from..run.to };
        self.commands.push(Command::Lane(run.lane, LaneCommand::RunSlice(slice)));
    }

    pub(super) fn reject(&mut self, now_ns: i64, reject: &Reject) {
        self.answer(now_ns, reject.task, RiskOutcome::Error(refusals::rejected(reject)));
    }

    pub(super) fn expire(&mut self, now_ns: i64, expire: &Expire) {
        self.answer(now_ns, expire.task, RiskOutcome::Error(refusals::expired(expire)));
    }

    /// All units of a round are done: either that is the answer, or another round follows.
    pub(super) fn finish_round(&mut self, now_ns: i64, finish: &Finish) {
        match self.risk.finish(finish.task) {
            Finished::Outcome(outcome) => self.answer(now_ns, finish.task, outcome),
            Finished::More(round) => self.rounds.push((finish.task, round)),
        }
    }

    /// Submits the rounds that follow rounds that were finished.
    pub(super) fn submit_rounds(&mut self, now_ns: i64) -> Result<(), RecordError> {
        while let Some((task, round)) = self.rounds.pop() {
            self.submit(now_ns, task, round)?;
        }
        Ok(())
    }

    fn answer(&mut self, now_ns: i64, task: TaskId, outcome: RiskOutcome) {
        self.risk.answer(now_ns, task, outcome, &self.config);
    }

    /// Whether every request before the stop has its answer, or is left to the next life.
    pub(super) fn are_requests_drained(&self) -> bool {
        let is_answered = |(partition, &end): (&i32, &i64)| {
            let requests = self.risk.partitions.get(partition);
            end == 0 || requests.is_some_and(|requests| requests.is_answered_to(end))
        };
        self.stop.as_ref().is_none_or(|stop| stop.requests.iter().all(is_answered))
    }

    /// Where reading of a partition's requests ends: never, unless a stop was asked for.
    fn requests_stop_offset(&self, partition: i32) -> i64 {
        self.stop.as_ref().map_or(i64::MAX, |stop| stop.requests.get(&partition).copied().unwrap_or(0))
    }
}
