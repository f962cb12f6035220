//! The journal as rows: what the scheduler was told and decided, with beginnings and ends brought together.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use serde_json::Value;
use warptape_eventlog::Record;
use warptape_schemas::journal::{
    Checkpoint, CommitEnded, CommitOutcome, Completed, Decision, Dispatch, Input, JournalEntry, LaneSpec,
    Sealed, SealedPartition, Started, TaskArrived,
};

use crate::TablesError;
use crate::latency::{Arrival, Latencies, Sealing};
use crate::sink::{Cell, Sinks};
use crate::table::{BATCHES, COMMITS, DECISIONS, TASKS};

/// Transactions that wait for what became of them; one is under way at a time.
const SEALED_MAX: usize = 1_024;

/// Reads journals, one after the other.
pub(crate) struct JournalTables<'a> {
    latencies: Latencies<'a>,
    partition: i32,
    life: Life,
}

/// What is known of the process life that is read.
#[derive(Default)]
struct Life {
    /// Sequence of the entry from which on it is known.
    sequence: i64,
    lanes: Vec<LaneSpec>,
    batches: BTreeMap<i64, Batch>,
    tasks: BTreeMap<i64, Task>,
    /// Which task a slice is of.
    slices: BTreeMap<i64, i64>,
    /// Arrivals that are in no transaction yet, by partition.
    arrivals: BTreeMap<i32, VecDeque<Arrival>>,
    /// Where the next arrival of a partition begins, as far as that is known.
    reach: BTreeMap<i32, i64>,
    sealed: VecDeque<Transaction>,
}

struct Batch {
    sequence: i64,
    at_ns: i64,
    dispatch: Dispatch,
}

struct Task {
    sequence: i64,
    at_ns: i64,
    task: TaskArrived,
    first_slice_ns: Option<i64>,
    slices: i64,
    service_ns: i64,
}

struct Transaction {
    sequence: i64,
    at_ns: i64,
    record_time_ns: i64,
    partitions: Vec<(SealedPartition, VecDeque<Arrival>)>,
    ended: Option<CommitEnded>,
}

/// Sequence and time of the entry that ended something.
type End = Option<(i64, i64)>;

impl<'a> JournalTables<'a> {
    pub(crate) fn new(latencies: Latencies<'a>) -> Self {
        Self { latencies, partition: 0, life: Life::default() }
    }

    /// Goes on with another journal.
    pub(crate) fn begin(&mut self, partition: i32) {
        self.partition = partition;
    }

    /// The next entry of the journal, with its record.
    pub(crate) fn add(
        &mut self,
        record: &Record,
        entry: &JournalEntry,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        self.add_input(record, entry, sinks)?;
        // A checkpoint is large, and decides nothing.
        let input = if entry.decisions.is_empty() { Value::Null } else { to_value(&entry.input) };
        let input = kind_of(&input).0;
        for (index, decision) in (0..).zip(&entry.decisions) {
            self.push_decision(record, entry, (index, input), decision, sinks)?;
            self.add_decision(entry, decision, sinks)?;
        }
        Ok(())
    }

    fn add_input(
        &mut self,
        record: &Record,
        entry: &JournalEntry,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        match &entry.input {
            Input::Started(started) => {
                self.end_life(sinks)?;
                self.learn(entry.sequence, started);
            }
            Input::Checkpoint(Checkpoint { started: Some(started), .. }) if self.life.lanes.is_empty() => {
                self.learn(entry.sequence, started);
            }
            Input::Arrived(arrived) => {
                let first = self.life.reach.insert(arrived.partition, arrived.next_offset);
                let arrivals = self.life.arrivals.entry(arrived.partition).or_default();
                arrivals.push_back(Arrival { first, next: arrived.next_offset, at_ns: entry.at_ns });
            }
            // What was read of it and is in no transaction is read again.
            Input::PartitionAssigned(assigned) => {
                self.life.arrivals.remove(&assigned.partition);
                self.life.reach.insert(assigned.partition, assigned.snapshot_offset);
            }
            Input::PartitionRevoked(revoked) => {
                self.life.arrivals.remove(&revoked.partition);
                self.life.reach.remove(&revoked.partition);
            }
            Input::Completed(completed) => self.complete(entry, completed, sinks)?,
            Input::LaneLost(lost) => {
                let is_on_it = |batch: &Batch| batch.dispatch.lane == lost.lane;
                let gone: Vec<i64> = self
                    .life
                    .batches
                    .iter()
                    .filter(|(_, batch)| is_on_it(batch))
                    .map(|(id, _)| *id)
                    .collect();
                for id in gone {
                    let batch = self.life.batches.remove(&id).expect("it was just found");
                    self.push_batch(&batch, None, sinks)?;
                }
            }
            Input::TaskArrived(task) => {
                let (sequence, at_ns) = (entry.sequence, entry.at_ns);
                let task = Task {
                    sequence,
                    at_ns,
                    task: task.clone(),
                    first_slice_ns: None,
                    slices: 0,
                    service_ns: 0,
                };
                self.life.tasks.insert(task.task.task, task);
            }
            Input::SliceDone(done) => {
                let task =
                    self.life.slices.remove(&done.slice).and_then(|task| self.life.tasks.get_mut(&task));
                if let Some(task) = task {
                    task.service_ns += done.service_ns;
                }
            }
            Input::TaskDropped(dropped) => self.end_task(dropped.task, entry, "TaskDropped", sinks)?,
            Input::Sealed(sealed) => self.seal(record, entry, sealed, sinks)?,
            Input::CommitEnded(ended) => self.end_commit(ended, sinks)?,
            _ => {}
        }
        Ok(())
    }

    fn learn(&mut self, sequence: i64, started: &Started) {
        (self.life.sequence, self.life.lanes) = (sequence, started.lanes.clone());
    }

    fn add_decision(
        &mut self,
        entry: &JournalEntry,
        decision: &Decision,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        match decision {
            Decision::Dispatch(dispatch) => {
                let batch =
                    Batch { sequence: entry.sequence, at_ns: entry.at_ns, dispatch: dispatch.clone() };
                self.life.batches.insert(dispatch.batch, batch);
                Ok(())
            }
            Decision::RunSlice(slice) => {
                if let Some(task) = self.life.tasks.get_mut(&slice.task) {
                    task.first_slice_ns.get_or_insert(entry.at_ns);
                    task.slices += 1;
                    self.life.slices.insert(slice.slice, slice.task);
                }
                Ok(())
            }
            Decision::Finish(finish) => self.end_task(finish.task, entry, "Finish", sinks),
            Decision::Expire(expire) => self.end_task(expire.task, entry, "Expire", sinks),
            Decision::Reject(reject) => self.end_task(reject.task, entry, "Reject", sinks),
            Decision::Shed(shed) => self.end_task(shed.task, entry, "Shed", sinks),
            _ => Ok(()),
        }
    }

    fn push_decision(
        &self,
        record: &Record,
        entry: &JournalEntry,
        (index, input): (i64, &str),
        decision: &Decision,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        let value = to_value(decision);
        let (kind, fields) = kind_of(&value);
        let number = |name: &str| Cell::from(fields.get(name).and_then(Value::as_i64));
        let reason = ["reason", "cause"].into_iter().find_map(|name| fields.get(name)?.as_str());
        let detail = fields.to_string();
        let row = [
            self.partition.into(),
            record.offset.into(),
            entry.sequence.into(),
            index.into(),
            entry.at_ns.into(),
            record.timestamp_ns.into(),
            input.into(),
            kind.into(),
            reason.into(),
            number("lane"),
            number("partition"),
            number("group"),
            number("batch"),
            number("task"),
            number("rows"),
            detail.as_str().into(),
        ];
        sinks.push(&DECISIONS, &row)
    }

    fn complete(
        &mut self,
        entry: &JournalEntry,
        completed: &Completed,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        // One that was dispatched before the window is not known.
        match self.life.batches.remove(&completed.batch) {
            Some(batch) => self.push_batch(&batch, Some((entry, completed)), sinks),
            None => Ok(()),
        }
    }

    fn push_batch(
        &self,
        batch: &Batch,
        end: Option<(&JournalEntry, &Completed)>,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        let Batch { sequence, at_ns, dispatch } = batch;
        let reason = to_value(&dispatch.reason);
        let device = self.life.lanes.iter().find(|lane| lane.lane == dispatch.lane);
        let completed_ns = end.map(|(entry, _)| entry.at_ns);
        let row = [
            self.partition.into(),
            self.life.sequence.into(),
            dispatch.batch.into(),
            dispatch.lane.into(),
            device.map(|lane| lane.device.as_str()).into(),
            (*sequence).into(),
            (*at_ns).into(),
            dispatch.rows.into(),
            dispatch.bytes.into(),
            (dispatch.takes.len() as i64).into(),
            reason.as_str().expect("a reason is a word").into(),
            dispatch.oldest_arrival_ns.into(),
            dispatch.predicted_finish_ns.into(),
            end.map(|(entry, _)| entry.sequence).into(),
            completed_ns.into(),
            end.map(|(_, completed)| completed.service_ns).into(),
            (at_ns - dispatch.oldest_arrival_ns).into(),
            completed_ns.map(|completed_ns| completed_ns - at_ns).into(),
        ];
        sinks.push(&BATCHES, &row)
    }

    fn end_task(
        &mut self,
        task: i64,
        entry: &JournalEntry,
        outcome: &str,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        match self.life.tasks.remove(&task) {
            Some(task) => self.push_task(&task, Some(outcome), Some((entry.sequence, entry.at_ns)), sinks),
            None => Ok(()),
        }
    }

    fn push_task(
        &self,
        of: &Task,
        outcome: Option<&str>,
        end: End,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        let Task { sequence, at_ns, task, first_slice_ns, slices, service_ns } = of;
        let class = to_value(&task.class);
        let (ended_sequence, ended_ns) = end.unzip();
        let row = [
            self.partition.into(),
            self.life.sequence.into(),
            task.task.into(),
            task.first_unit.into(),
            task.request_id.as_str().into(),
            task.partition.into(),
            task.offset.into(),
            task.tenant.as_str().into(),
            class.as_str().expect("a class is a word").into(),
            task.rate_key.as_str().into(),
            task.units.into(),
            (*sequence).into(),
            (*at_ns).into(),
            task.deadline_ns.into(),
            (*first_slice_ns).into(),
            (*slices).into(),
            (*service_ns).into(),
            outcome.into(),
            ended_sequence.into(),
            ended_ns.into(),
        ];
        sinks.push(&TASKS, &row)
    }

    fn seal(
        &mut self,
        record: &Record,
        entry: &JournalEntry,
        sealed: &Sealed,
        sinks: &mut Sinks,
    ) -> Result<(), TablesError> {
        let mut partitions = Vec::with_capacity(sealed.partitions.len());
        for account in &sealed.partitions {
            let arrivals = self.life.arrivals.entry(account.partition).or_default();
            let within = arrivals.partition_point(|arrival| arrival.next <= account.next_offset);
            let mut of_account: VecDeque<Arrival> = arrivals.drain(..within).collect();
            // One that the transaction cuts is of the next one, too.
            of_account.extend(arrivals.front().copied());
            partitions.push((*account, of_account));
        }
        if self.life.sealed.len() >= SEALED_MAX {
            let oldest = self.life.sealed.pop_front().expect("there are some");
            self.push_commit(oldest, sinks)?;
        }
        let (sequence, at_ns, record_time_ns) = (entry.sequence, entry.at_ns, record.timestamp_ns);
        let transaction = Transaction { sequence, at_ns, record_time_ns, partitions, ended: None };
        self.life.sealed.push_back(transaction);
        Ok(())
    }

    /// An attempt ended; those of the transactions before had ended before.
    fn end_commit(&mut self, ended: &CommitEnded, sinks: &mut Sinks) -> Result<(), TablesError> {
        let Some(at) = self.life.sealed.iter().position(|one| one.sequence == ended.sealed) else {
            return Ok(());
        };
        self.life.sealed[at].ended = Some(*ended);
        if ended.outcome == CommitOutcome::Committed {
            for _ in 0..=at {
                let transaction = self.life.sealed.pop_front().expect("it was just found");
                self.push_commit(transaction, sinks)?;
            }
        }
        Ok(())
    }

    fn push_commit(&mut self, transaction: Transaction, sinks: &mut Sinks) -> Result<(), TablesError> {
        let Transaction { sequence, at_ns, record_time_ns, partitions, ended } = transaction;
        // What is in the log was committed; of attempts that were aborted nothing is but what later transactions say.
        let outcome = to_value(&CommitOutcome::Committed);
        let committed = ended.filter(|ended| ended.outcome == CommitOutcome::Committed);
        for (account, arrivals) in partitions {
            let row = [
                self.partition.into(),
                sequence.into(),
                at_ns.into(),
                record_time_ns.into(),
                account.partition.into(),
                account.first_offset.into(),
                account.next_offset.into(),
                account.signals.into(),
                account.late.into(),
                account.dead_letters.into(),
                account.risk_results.into(),
                ended.map(|ended| ended.attempt).into(),
                outcome.as_str().into(),
                committed.map(|ended| ended.sent_ns).into(),
                committed.map(|ended| ended.ended_ns).into(),
            ];
            sinks.push(&COMMITS, &row)?;
            let sealing = Sealing {
                journal_partition: self.partition,
                sealed_sequence: sequence,
                sealed_ns: at_ns,
                partition: account.partition,
                first: account.first_offset,
                next: account.next_offset,
                arrivals,
                commit: committed.map(|ended| (ended.sent_ns, ended.ended_ns)),
            };
            self.latencies.push(sealing, sinks)?;
        }
        Ok(())
    }

    /// The process life ends here, or the journal.
    pub(crate) fn end_life(&mut self, sinks: &mut Sinks) -> Result<(), TablesError> {
        for transaction in std::mem::take(&mut self.life.sealed) {
            self.push_commit(transaction, sinks)?;
        }
        for batch in std::mem::take(&mut self.life.batches).into_values() {
            self.push_batch(&batch, None, sinks)?;
        }
        for task in std::mem::take(&mut self.life.tasks).into_values() {
            self.push_task(&task, None, None, sinks)?;
        }
        self.life = Life::default();
        Ok(())
    }
}

fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("journal types are structs of numbers and texts")
}

/// The name of a variant, and its fields.
fn kind_of(value: &Value) -> (&str, &Value) {
    let fields = value.as_object().and_then(|variant| variant.iter().next());
    fields.map_or(("", value), |(kind, fields)| (kind.as_str(), fields))
}
