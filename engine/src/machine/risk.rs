//! The core's side of risk: requests, results, and the work of lanes between them.

use warptape_events::LifecycleEvent;
use warptape_events::journal::{
    AsOf, Expire, Finish, Input, LaneId, Priced, Reject, RunSlice, Shed, SliceDone, TaskArrived, TaskClass,
    TaskDropped, TaskId,
};
use warptape_events::risk::RiskOutcome;
use warptape_record::TopicPartition;
use warptape_stages::risk::{MarketSnapshot, Partial, refusals};

use super::Core;
use crate::RecordError;
use crate::answered::Answered;
use crate::command::Command;
use crate::event::{Committed, ReadRequest};
use crate::lanes::Slice;
use crate::risk::{
    Asked, Awaited, BegunSlice, Concluded, ConcludedRound, Conclusion, NO_SEQUENCE, Needs, Preparation,
    Prepared, Queue, RequestPartition, Turn,
};

impl Core {
    /// Begins to read the requests of a partition at the committed offset. Requests before `found_before` existed when
    /// the partition was assigned. Does nothing if this process no longer owns the partition under the same assignment.
    pub(super) fn on_requests_opened(
        &mut self,
        partition: i32,
        assignment: u64,
        committed: Committed,
        found_before: i64,
        answered: Answered,
    ) {
        if !self.is_owned(partition, assignment) {
            return;
        }
        self.generation += 1;
        let source = TopicPartition { topic: self.config.topics.risk_requests.clone(), partition };
        let generation = self.generation;
        let Committed { offset, is_uncommitted } = committed;
        let mut requests = RequestPartition::new(source, generation, offset, found_before, answered);
        requests.offset_due = is_uncommitted;
        self.membership.requests_opened(partition);
        self.risk.partitions.insert(partition, requests);
        self.commands.push_back(Command::ReadRequests { partition, offset, generation });
    }

    /// Notes that requests of a partition were read up to an offset, behind which the log may have no more records.
    pub(super) fn on_requests_position(&mut self, partition: i32, generation: u64, position: i64) {
        if let Some(requests) = self.risk.partitions.get_mut(&partition)
            && requests.generation == generation
        {
            requests.read_to = position;
            self.tell_found(partition);
        }
    }

    /// Reports the requests that had no answer when their partition was assigned, once all of them are read.
    fn tell_found(&mut self, partition: i32) {
        let requests = self.risk.partitions.get_mut(&partition);
        if let Some(detail) = requests.and_then(RequestPartition::take_found) {
            tracing::warn!("{detail}");
            self.commands.push_back(Command::Lifecycle(LifecycleEvent::Restored, detail));
        }
    }

    /// Handles requests of a partition that were read.
    pub(super) fn on_requests(
        &mut self,
        now_ns: i64,
        partition: i32,
        generation: u64,
        requests: Vec<ReadRequest>,
    ) -> Result<(), RecordError> {
        let end = self.requests_stop_offset(partition);
        if requests.last().is_some_and(|request| request.offset >= end) {
            // Requests before the end were given, if there were any.
            self.on_requests_position(partition, generation, end);
        }
        for ReadRequest { offset, bytes, waits, request } in requests {
            let Some(requests) = self.risk.partitions.get_mut(&partition) else { return Ok(()) };
            if requests.generation != generation || offset >= end {
                return Ok(());
            }
            if !requests.begin(offset) {
                continue;
            }
            requests.note(offset, request.as_deref().map_or("", |request| &request.request_id));
            let asked = Asked::new(partition, offset, request.as_deref().ok(), waits, bytes, now_ns);
            let error = match request {
                Err(error) => refusals::unreadable(&error),
                Ok(request) if !requests.answered.ids.insert(&request.request_id) => {
                    refusals::duplicate(&request.request_id)
                }
                Ok(request) => {
                    match &request.cancels {
                        Some(request_id) => self.cancel(now_ns, asked, request_id)?,
                        None => self.risk.arrivals.push(asked, request),
                    }
                    continue;
                }
            };
            self.risk.refuse(now_ns, asked, NO_SEQUENCE, error, &self.config);
        }
        self.tell_found(partition);
        Ok(())
    }

    /// Ends a request of the same partition, in whatever state it is, because another request cancels it. The result of
    /// the cancelled one is put before that of the other. A transaction with only the second would let the first begin
    /// again.
    fn cancel(&mut self, now_ns: i64, by: Asked, request_id: &str) -> Result<(), RecordError> {
        let error = refusals::cancelled(&by.request_id, &by.tenant, by.offset);
        if let Some(asked) = self.risk.arrivals.cancel(by.partition, request_id) {
            self.risk.refuse(now_ns, asked, NO_SEQUENCE, error, &self.config);
        } else if let Some(task) = self.risk.task_of(by.partition, request_id) {
            self.answer(now_ns, task, RiskOutcome::Error(error));
            self.step(now_ns, Input::TaskDropped(TaskDropped { task }))?;
        } else {
            let Some(by) = self.risk.cancel_concluding(by, request_id) else { return Ok(()) };
            self.refuse_to_cancel(now_ns, by, request_id);
            return Ok(());
        }
        self.risk.confirm(now_ns, by, &self.config);
        Ok(())
    }

    fn refuse_to_cancel(&mut self, now_ns: i64, by: Asked, request_id: &str) {
        let requests = self.risk.partitions.get(&by.partition);
        let is_known = requests.is_some_and(|requests| requests.answered.ids.contains(request_id));
        let error = refusals::not_cancelled(request_id, is_known);
        self.risk.refuse(now_ns, by, NO_SEQUENCE, error, &self.config);
    }

    /// Passes requests without a task to the scheduler once their deadlines have passed. It refuses them, so their
    /// costs are not estimated.
    pub(super) fn give_up_overdue(&mut self, now_ns: i64) -> Result<(), RecordError> {
        while let Some(asked) = self.risk.arrivals.take_overdue(now_ns) {
            let task = self.risk.take_number();
            let sequence = self.recorder.next_sequence();
            let input = asked.overdue(task);
            self.risk.overdue = Some((task, sequence, asked));
            self.step(now_ns, input)?;
        }
        Ok(())
    }

    /// Takes a market snapshot for each request whose turn has come, and starts its preparation. A request that needs
    /// the market waits while the market of a partition with open requests is older than it was. Such a partition reads
    /// its ticks again. While ticks are being caught up with, the market is that of the offset reached, unless the
    /// request asks to wait.
    pub(crate) fn prepare_requests(&mut self) {
        if !self.has_room_for_answers() || !self.risk.arrivals.is_waiting() {
            return;
        }
        self.membership.note_markets(|partition, end| {
            self.partitions.get(&partition).is_some_and(|owned| owned.is_read_to(end))
        });
        let follows = !self.config.has_devices();
        let is_newest =
            |partition: &i32| self.partitions.get(partition).is_some_and(|owned| self.has_market(owned));
        let of_requests =
            self.risk.partitions.keys().filter(|partition| !self.membership.awaits_market(**partition));
        let have_markets = of_requests.clone().all(is_newest);
        let is_caught_up = have_markets && self.membership.is_caught_up();
        let symbols: usize = self.partitions.values().map(|owned| owned.symbol_count()).sum();
        let is_met = |queue: &Queue| match queue.needs {
            Needs::Nothing => true,
            Needs::Market => have_markets && !self.membership.awaits_market(queue.partition),
            Needs::Symbols(known) => have_markets && (symbols > known || is_caught_up),
            Needs::CaughtUp => is_caught_up,
        };
        while self.risk.has_room()
            && let Some(Turn { number, partition, offset, haste, request }) =
                self.risk.arrivals.prepare(is_met)
        {
            // A newly assigned partition has no market yet; its own requests wait until it has.
            let with_market = self.partitions.values().filter(|owned| self.has_market(owned));
            let market_of = |symbol: &str| with_market.clone().find_map(|owned| owned.market_of(symbol));
            let markets = with_market.clone().map(|owned| owned.as_of());
            let market = MarketSnapshot::of(&request, &market_of, markets);
            if market.lacks_a_symbol() && !is_caught_up {
                // The symbol's first tick may be among those that are not read yet.
                self.risk.arrivals.wait_for_symbols(number, request, symbols);
                continue;
            }
            // Devices revalue everything, and the cost of that must not count as the cost of following changes.
            let kept = follows.then(|| self.risk.kept.clone());
            let preparation = Preparation { partition, offset, haste, number, request, market, kept };
            self.commands.push_back(Command::Prepare(preparation));
        }
    }

    /// Handles a prepared request. Prepared requests of one process come in the order of their commands.
    pub(super) fn on_prepared(&mut self, now_ns: i64, prepared: Prepared) -> Result<(), RecordError> {
        let asked = self.risk.arrivals.take_prepared(prepared.number);
        let (Some(mut asked), Some(task)) = (asked, prepared.task) else { return Ok(()) };
        match task {
            Err(error) => {
                asked.judged_on = prepared.judged_on;
                self.risk.refuse(now_ns, asked, NO_SEQUENCE, error, &self.config);
                Ok(())
            }
            Ok(task) => {
                asked.bytes += task.bytes();
                asked.cost_ns = task.cost_ns();
                if asked.cost_ns > self.config.limits.risk_cost_max_ns {
                    asked.judged_on = prepared.judged_on;
                    let error = refusals::too_costly(asked.cost_ns, self.config.limits.risk_cost_max_ns);
                    self.risk.refuse(now_ns, asked, NO_SEQUENCE, error, &self.config);
                    return Ok(());
                }
                let number = self.risk.open(asked, task, self.recorder.next_sequence());
                self.submit(now_ns, number)
            }
        }
    }

    /// Passes the round of a task to the scheduler.
    fn submit(&mut self, now_ns: i64, number: TaskId) -> Result<(), RecordError> {
        let open = self.risk.tasks.get_mut(&number).expect("the caller has opened it");
        open.submitted_ns = now_ns;
        let units = open.task.units();
        let count = units.end - units.start;
        let mut as_of: Vec<AsOf> = Vec::new();
        for taken in open.task.as_of() {
            if as_of.iter().all(|known| known.partition != taken.partition) {
                as_of.push(AsOf { partition: taken.partition, next_offset: taken.next_offset });
            }
        }
        let input = Input::TaskArrived(TaskArrived {
            task: number,
            partition: open.asked.partition,
            offset: open.asked.offset,
            request_id: open.asked.request_id.clone(),
            tenant: open.asked.tenant.clone(),
            class: open.asked.class,
            deadline_ns: open.asked.deadline_ns,
            rate_key: open.task.rate_key(),
            first_unit: units.start,
            units: count,
            unit_cost: open.task.unit_cost(),
            slice_units_max: count,
            gang: open.asked.gang && count > 1,
            as_of,
            bytes: open.asked.bytes as i64,
            unit_width: open.task.unit_width(),
        });
        self.step(now_ns, input)
    }

    /// Handles a finished slice of a lane.
    pub(super) fn on_slice_done(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        slice: i64,
        service_ns: i64,
        partial: Partial,
    ) -> Result<(), RecordError> {
        self.risk.keep(lane, slice, service_ns, partial);
        self.step(now_ns, Input::SliceDone(SliceDone { lane, slice, service_ns }))
    }

    /// Withdraws the tasks of a partition, or all tasks if `None`: the next owner computes them from the requests
    /// again.
    pub(super) fn withdraw_tasks(&mut self, now_ns: i64, partition: Option<i32>) -> Result<(), RecordError> {
        for task in self.risk.withdraw(partition) {
            // The steps above may have ended the task.
            if self.risk.tasks.remove(&task).is_some() {
                self.step(now_ns, Input::TaskDropped(TaskDropped { task }))?;
            }
        }
        Ok(())
    }

    /// Stops reading requests of a partition; unanswered ones are left to its next owner.
    pub(super) fn close_requests(&mut self, now_ns: i64, partition: i32) -> Result<(), RecordError> {
        self.commands.push_back(Command::ForgetRequests { partition });
        self.withdraw_tasks(now_ns, Some(partition))
    }

    pub(super) fn run_slice(&mut self, now_ns: i64, run: &RunSlice) {
        let BegunSlice { task, request, begun_at_once_ns } = self.risk.begin_slice(now_ns, run);
        let critical = run.class == TaskClass::Critical;
        let slice = Slice { slice: run.slice, task, units: run.from..run.to, critical };
        self.commands.push_back(Command::Slice { lane: run.lane, slice, request, begun_at_once_ns });
    }

    pub(super) fn reject(&mut self, now_ns: i64, reject: &Reject) {
        let error = refusals::rejected(reject);
        match self.risk.overdue.take_if(|(task, ..)| *task == reject.task) {
            Some((_, sequence, asked)) => self.risk.refuse(now_ns, asked, sequence, error, &self.config),
            None => self.answer(now_ns, reject.task, RiskOutcome::Error(error)),
        }
    }

    pub(super) fn expire(&mut self, now_ns: i64, expire: &Expire) {
        self.answer(now_ns, expire.task, RiskOutcome::Error(refusals::expired(expire)));
    }

    pub(super) fn shed(&mut self, now_ns: i64, shed: &Shed) {
        self.answer(now_ns, shed.task, RiskOutcome::Error(refusals::shed(shed)));
    }

    /// Concludes a round whose units are all done, at once or in the background.
    pub(super) fn finish_round(&mut self, now_ns: i64, finish: &Finish) {
        let (number, config) = (finish.task, self.config.clone());
        let open = self.risk.conclude(number);
        let conclusion = Conclusion { number, open, config };
        match conclusion.is_long() {
            true => self.commands.push_back(Command::Conclude(conclusion)),
            false => self.concluded.push(conclusion.run(|| now_ns)),
        }
    }

    /// Continues with the rounds that were concluded at once.
    pub(super) fn go_on(&mut self, now_ns: i64) -> Result<(), RecordError> {
        while let Some(concluded) = self.concluded.pop() {
            self.on_concluded(now_ns, concluded)?;
        }
        Ok(())
    }

    /// Passes the computed prices of kinds of tasks to the scheduler.
    pub(super) fn on_priced(&mut self, now_ns: i64, priced: Priced) -> Result<(), RecordError> {
        self.step(now_ns, Input::Priced(priced))
    }

    /// Handles a concluded round: either the answer is known, or another round follows.
    pub(super) fn on_concluded(&mut self, now_ns: i64, concluded: Concluded) -> Result<(), RecordError> {
        let Concluded { number, outcome } = concluded;
        let Some(Awaited { cancelled_by }) = self.risk.take_concluded(number) else { return Ok(()) };
        match (outcome, cancelled_by) {
            (ConcludedRound::Answer(result), cancelled_by) => {
                self.risk.push(result);
                if let Some(by) = cancelled_by {
                    let request_id = by.cancels.clone().unwrap_or_default();
                    self.refuse_to_cancel(now_ns, by, &request_id);
                }
                Ok(())
            }
            (ConcludedRound::More(open), Some(by)) => {
                let error = refusals::cancelled(&by.request_id, &by.tenant, by.offset);
                self.risk.end(now_ns, *open, error, &self.config);
                self.risk.confirm(now_ns, by, &self.config);
                Ok(())
            }
            (ConcludedRound::More(open), None) => {
                self.risk.tasks.insert(number, open);
                self.submit(now_ns, number)
            }
        }
    }

    fn answer(&mut self, now_ns: i64, task: TaskId, outcome: RiskOutcome) {
        self.risk.answer(now_ns, task, outcome, &self.config);
    }

    /// True if every request before the stop is answered, or left to the next life.
    pub(super) fn are_requests_drained(&self) -> bool {
        let is_answered = |(partition, &end): (&i32, &i64)| {
            let requests = self.risk.partitions.get(partition);
            (end == 0 && !self.membership.has_uncommitted_requests(*partition))
                || requests.is_some_and(|requests| requests.is_answered_to(end))
        };
        self.stopping.at.as_ref().is_none_or(|stop| stop.requests.iter().all(is_answered))
    }

    /// The offset at which reading of a partition's requests ends; `i64::MAX` unless a stop was requested.
    fn requests_stop_offset(&self, partition: i32) -> i64 {
        self.stopping.at.as_ref().map_or(i64::MAX, |stop| stop.requests.get(&partition).copied().unwrap_or(0))
    }
}
