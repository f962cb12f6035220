//! The journal as rows: recorded decisions, and the items of replay's history: batches, tasks, transactions.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use warptape_eventlog::Record;
use warptape_replay::history::{Batch, BatchEnd, History, Item, Life, Round, RoundEnd, Transaction};
use warptape_schemas::journal::{CommitOutcome, Decision, Input, JournalEntry};

use crate::TablesError;
use crate::cell::Cell;
use crate::declared::{BATCHES, COMMITS, DECISIONS, TASKS};
use crate::latency::{Latencies, Sealing};
use crate::rows::Rows;

/// Reads a journal.
pub(crate) struct JournalTables<'a> {
    pub(crate) latencies: Latencies<'a>,
    partition: i32,
    history: History,
    /// Process life of the items; `None` while it is unknown.
    life: Option<Arc<Life>>,
    /// Sequences of transactions, and the times at which the log wrote them.
    written_ns: VecDeque<(i64, i64)>,
}

impl<'a> JournalTables<'a> {
    pub(crate) fn new(partition: i32, latencies: Latencies<'a>) -> Self {
        let (history, written_ns) = (History::new(partition), VecDeque::new());
        Self { latencies, partition, history, life: None, written_ns }
    }

    /// Adds the next entry of the journal, with its record.
    pub(crate) fn add(
        &mut self,
        record: &Record,
        entry: &JournalEntry,
        rows: &mut Rows,
    ) -> Result<(), TablesError> {
        // A checkpoint is large and has no decisions.
        let has_rows = !entry.decisions.is_empty() && rows.wants(&DECISIONS);
        let input = if has_rows { to_value(&entry.input) } else { Value::Null };
        let input = kind_of(&input).0;
        for (index, decision) in (0..).zip(&entry.decisions).filter(|_| has_rows) {
            self.push_decision(record, entry, (index, input), decision, rows);
        }
        if let Input::Sealed(_) = entry.input {
            self.written_ns.push_back((entry.sequence, record.timestamp_ns));
        }
        self.history.step(entry);
        self.push_items(rows)
    }

    /// Ends the journal.
    pub(crate) fn end(&mut self, rows: &mut Rows) -> Result<(), TablesError> {
        self.history.finish();
        self.push_items(rows)
    }

    fn push_items(&mut self, rows: &mut Rows) -> Result<(), TablesError> {
        for item in self.history.take_items() {
            match item {
                Item::Life(life) => self.life = Some(life),
                Item::Batch(batch) => self.push_batch(&batch, rows),
                Item::Round(round) => self.push_task(&round, rows),
                Item::Transaction(transaction) => self.push_commit(&transaction, rows)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the sequence of the entry from which the process life is known.
    fn life_sequence(&self) -> i64 {
        self.life.as_ref().map_or(0, |life| life.since.sequence)
    }

    fn push_decision(
        &self,
        record: &Record,
        entry: &JournalEntry,
        (index, input): (i64, &str),
        decision: &Decision,
        rows: &mut Rows,
    ) {
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
        rows.push(&DECISIONS, &row);
    }

    fn push_batch(&self, batch: &Batch, rows: &mut Rows) {
        let Batch { at, dispatch, end, .. } = batch;
        let reason = to_value(&dispatch.reason);
        let mut lanes = self.life.iter().flat_map(|life| &life.started.lanes);
        let device = lanes.find(|lane| lane.lane == dispatch.lane);
        let completed = match end {
            BatchEnd::Completed { at, service_ns, .. } => Some((at, *service_ns)),
            BatchEnd::Lost(_) | BatchEnd::Open => None,
        };
        let completed_ns = completed.map(|(at, _)| at.at_ns);
        let row = [
            self.partition.into(),
            self.life_sequence().into(),
            dispatch.batch.into(),
            dispatch.lane.into(),
            device.map(|lane| lane.device.as_str()).into(),
            at.sequence.into(),
            at.at_ns.into(),
            dispatch.rows.into(),
            dispatch.bytes.into(),
            (dispatch.takes.len() as i64).into(),
            reason.as_str().expect("a reason is a word").into(),
            dispatch.oldest_arrival_ns.into(),
            dispatch.predicted_finish_ns.into(),
            completed.map(|(at, _)| at.sequence).into(),
            completed_ns.into(),
            completed.map(|(_, service_ns)| service_ns).into(),
            (at.at_ns - dispatch.oldest_arrival_ns).into(),
            completed_ns.map(|completed_ns| completed_ns - at.at_ns).into(),
        ];
        rows.push(&BATCHES, &row);
    }

    fn push_task(&self, round: &Round, rows: &mut Rows) {
        let Round { at, arrived: task, first_slice, slices, service_ns, end, .. } = round;
        let class = to_value(&task.class);
        let outcome = end.map(|(_, end)| match end {
            RoundEnd::Finished => "Finish",
            RoundEnd::Rejected => "Reject",
            RoundEnd::Expired => "Expire",
            RoundEnd::Shed => "Shed",
            RoundEnd::Dropped => "TaskDropped",
        });
        let row = [
            self.partition.into(),
            self.life_sequence().into(),
            task.task.into(),
            task.first_unit.into(),
            task.request_id.as_str().into(),
            task.partition.into(),
            task.offset.into(),
            task.tenant.as_str().into(),
            class.as_str().expect("a class is a word").into(),
            task.rate_key.as_str().into(),
            task.units.into(),
            at.sequence.into(),
            at.at_ns.into(),
            task.deadline_ns.into(),
            first_slice.map(|at| at.at_ns).into(),
            (*slices).into(),
            (*service_ns).into(),
            outcome.into(),
            end.map(|(at, _)| at.sequence).into(),
            end.map(|(at, _)| at.at_ns).into(),
        ];
        rows.push(&TASKS, &row);
    }

    fn push_commit(&mut self, transaction: &Transaction, rows: &mut Rows) -> Result<(), TablesError> {
        // Transactions with only journal entries have no row.
        let (sequence, Some(sealed_ns)) = (transaction.sealed_sequence, transaction.sealed_ns) else {
            return Ok(());
        };
        while self.written_ns.pop_front_if(|(of, _)| *of < sequence).is_some() {}
        let written = self.written_ns.pop_front_if(|(of, _)| *of == sequence);
        let (_, record_time_ns) = written.expect("a sealed transaction has its entry");
        // Everything in the log was committed; aborted attempts are only known from later transactions.
        let outcome = to_value(&CommitOutcome::Committed);
        let attempts = i64::try_from(transaction.attempts.len()).ok().filter(|attempts| *attempts > 0);
        let last = transaction.attempts.last();
        let committed = last.filter(|attempt| attempt.outcome == CommitOutcome::Committed);
        let commit = committed.map(|attempt| (attempt.sent_ns, attempt.ended_ns));
        for part in &transaction.partitions {
            let account = &part.account;
            let row = [
                self.partition.into(),
                sequence.into(),
                sealed_ns.into(),
                record_time_ns.into(),
                account.partition.into(),
                account.first_offset.into(),
                account.next_offset.into(),
                account.signals.into(),
                account.late.into(),
                account.dead_letters.into(),
                account.risk_results.into(),
                attempts.into(),
                outcome.as_str().into(),
                commit.map(|(sent_ns, _)| sent_ns).into(),
                commit.map(|(_, ended_ns)| ended_ns).into(),
            ];
            rows.push(&COMMITS, &row);
            let journal_partition = self.partition;
            let sealing = Sealing { journal_partition, sealed_sequence: sequence, sealed_ns, part, commit };
            self.latencies.push(&sealing, rows)?;
        }
        Ok(())
    }
}

pub(crate) fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("journal types are structs of numbers and texts")
}

/// Returns the name of a variant, and its fields.
pub(crate) fn kind_of(value: &Value) -> (&str, &Value) {
    let fields = value.as_object().and_then(|variant| variant.iter().next());
    fields.map_or(("", value), |(kind, fields)| (kind.as_str(), fields))
}
