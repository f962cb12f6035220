//! Explains why the answer to a risk request was late.

use std::sync::Arc;

use serde::Serialize;
use warptape_eventlog::{EventLog, RecordClock, TopicPartition};
use warptape_scheduler::Explanation;
use warptape_schemas::decode_risk_result;
use warptape_schemas::journal::{Decision, Input, SealedPartition, TaskClass};
use warptape_schemas::risk::RiskResult;

use super::context::Context;
use super::facts::{ProcessFacts, TransactionFacts};
use super::follow::{FoundSeal, find_sealed, find_sealed_from, follow_to};
use super::signal::{explain_at, process_facts, read_record, transaction_facts};
use super::waits::{RequestTimes, Wait, request_waits};
use crate::entries::Entries;
use crate::history::{Item, Moment, Round, RoundEnd, Transaction};
use crate::partition_reader::PartitionReader;
use crate::{Phase, ReplayError, ReplayProgress, VerifyOptions};

/// Results between two progress reports.
const PROGRESS_RESULTS: u64 = 1_024;

/// The causes of the answer to a request.
#[derive(Clone, Debug, Serialize)]
pub struct RequestChain {
    /// The request.
    #[serde(flatten)]
    pub request: RequestFacts,
    /// Start of the waits: the publication of the request, or its arrival at the engine if the clocks show that as
    /// earlier.
    pub from_ns: i64,
    /// Partition of the result.
    pub result_partition: i32,
    /// Offset of the result.
    pub result_offset: i64,
    /// The process that answered.
    pub process: ProcessFacts,
    /// The scheduler's account of the request's task; `None` if the scheduler was not asked.
    pub task: Option<TaskFacts>,
    /// Reason why the task's first slice was next on its lane; `None` if the state is unknown.
    pub explanation: Option<Explanation>,
    /// The transaction.
    pub transaction: TransactionFacts,
    /// The waits of the request, in order of time.
    pub waits: Vec<Wait>,
    /// The sum of the waits, in nanoseconds.
    pub total_ns: i64,
    /// True if the waits end at the commit; false if the commit time is unknown, and the waits end at the seal.
    pub is_to_commit: bool,
    /// Descriptions of facts that are unknown.
    pub unknown: Vec<String>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestFacts {
    /// Id of the request.
    pub request_id: String,
    /// The tenant that asked.
    pub tenant: String,
    /// Class of urgency of the request.
    pub class: TaskClass,
    /// Partition of the request.
    pub partition: i32,
    /// Offset of the request.
    pub offset: i64,
    /// Time of publication according to the request's record, ns since the epoch; if the record is gone, time of
    /// arrival at the engine.
    pub created_ns: i64,
    /// Clock of that time; `None` if the log does not show it. All other times of the chain are from the process's
    /// clock.
    pub created_clock: Option<Clock>,
}

/// The clock from which a time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Clock of the record's publisher.
    Publisher,
    /// Clock of the log, which assigns times to records.
    Log,
    /// Clock of the process that handled the request.
    Process,
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskFacts {
    /// Number of the task within the process life.
    pub task: i64,
    /// Arrival of the task at the scheduler.
    pub arrived: Moment,
    /// Number of the task's rounds.
    pub rounds: i64,
    /// Number of units in all rounds.
    pub units: i64,
    /// Number of slices that lanes completed.
    pub slices: i64,
    /// Start of the first slice; `None` if none started.
    pub first_slice: Option<Moment>,
    /// Outcome of the last round; `None` if it has not ended.
    pub end: Option<RoundEnd>,
    /// End of the last round; `None` if it has not ended.
    pub ended: Option<Moment>,
    /// Time for which lanes worked on the task, ns.
    pub compute_ns: i64,
    /// Devices of the lanes that worked on the task.
    pub devices: Vec<String>,
}

/// A result and its place in the log.
struct Found {
    partition: i32,
    offset: i64,
    sealed_ns: i64,
    result: RiskResult,
}

/// Explains the answer to a request.
///
/// # Errors
/// If the log cannot be read or has no result with this id, or the journal lacks the result's transaction.
pub fn why_request(
    log: &dyn EventLog,
    options: &VerifyOptions,
    request_id: &str,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<RequestChain, ReplayError> {
    let found = find_result(log, options, request_id, progress)?;
    let journals = Entries::open_all(log, &options.journal)?;
    let partition = found.result.partition;
    let is_it = |account: &SealedPartition| account.partition == partition && account.risk_results > 0;
    let no_journal = || ReplayError::NoAnswer { url: log.url(), request_id: request_id.to_owned() };
    // If the log assigns the results' times, these do not show the time of the seal. The search then starts at the time
    // at which the answer was known.
    let sealed = match log.record_clock(&options.sources.risk_results)? {
        Some(RecordClock::Writer) => find_sealed(&journals, found.sealed_ns, is_it)?,
        Some(RecordClock::Log) | None => None,
    };
    let sealed = match sealed {
        Some(sealed) => Some(sealed),
        None => find_sealed_from(&journals, found.result.finished_ns, is_it)?,
    };
    let (entries, sealed) = sealed.ok_or_else(no_journal)?;
    let (context, transaction, rounds) = follow_rounds(entries, &sealed, &found.result)?;
    let part = transaction.partitions.iter().find(|part| part.account.partition == partition);
    let part = part.ok_or_else(no_journal)?;
    let mut unknown = Vec::new();
    let (created_ns, created_clock) = created(log, options, &found.result, &mut unknown)?;
    let received_ns = found.result.received_ns;
    let from_ns = begin(created_ns, created_clock, received_ns, &mut unknown);
    let task = task_facts(&rounds, &found.result);
    if task.is_none() && found.result.decision_sequence >= 0 {
        unknown.push("its task in the scheduler: the journal entries were removed".to_owned());
    }
    if transaction.committed_ns().is_none() {
        unknown.push(super::signal::NO_COMMIT.to_owned());
    }
    let sealing = context.sealing(&transaction).ok_or_else(no_journal)?;
    let holes = context.holes(from_ns);
    let times = RequestTimes {
        from_ns,
        holes: &holes,
        began_ns: context.began_ns(),
        received_ns,
        arrived_ns: task.as_ref().map(|task| task.arrived.at_ns),
        first_slice_ns: task.as_ref().and_then(|task| task.first_slice).map(|at| at.at_ns),
        done_ns: task.as_ref().and_then(|task| task.ended).map(|at| at.at_ns),
        finished_ns: found.result.finished_ns,
        sealing,
    };
    let (waits, end_ns) = request_waits(&times);
    let explanation = explain_first_slice(entries, task.as_ref())?;
    let Found { partition: result_partition, offset: result_offset, result, .. } = found;
    Ok(RequestChain {
        request: RequestFacts {
            request_id: result.request_id,
            tenant: result.tenant,
            class: result.class,
            partition,
            offset: result.offset,
            created_ns,
            created_clock,
        },
        from_ns,
        result_partition,
        result_offset,
        process: process_facts(&context, partition),
        task,
        explanation,
        transaction: transaction_facts(&transaction, part),
        waits,
        total_ns: end_ns - from_ns,
        is_to_commit: transaction.committed_ns().is_some(),
        unknown,
    })
}

/// Returns the start of a request's waits, given its publication time by `clock`, and its arrival time by the process's
/// clock.
fn begin(created_ns: i64, clock: Option<Clock>, received_ns: i64, unknown: &mut Vec<String>) -> i64 {
    if created_ns > received_ns {
        unknown.push(format!(
            "how long it waited to be read: {} is ahead of the clock of the process by at least {} ns, so the waits begin with its arrival at the process",
            words_of(clock),
            created_ns.saturating_sub(received_ns)
        ));
    }
    created_ns.min(received_ns)
}

/// Describes a clock.
fn words_of(clock: Option<Clock>) -> &'static str {
    match clock {
        Some(Clock::Publisher) => "the publisher's clock",
        Some(Clock::Log) => "the log's clock",
        Some(Clock::Process) => "the process's clock",
        None => "the clock of the publisher or of the log",
    }
}

/// Returns the time and clock of a request's publication; if the record is gone, the time at which the engine got it.
fn created(
    log: &dyn EventLog,
    options: &VerifyOptions,
    result: &RiskResult,
    unknown: &mut Vec<String>,
) -> Result<(i64, Option<Clock>), ReplayError> {
    let topic = &options.sources.risk_requests;
    match read_record(log, topic, result.partition, result.offset) {
        Ok(record) => {
            let clock = log.record_clock(topic)?.map(|clock| match clock {
                RecordClock::Writer => Clock::Publisher,
                RecordClock::Log => Clock::Log,
            });
            Ok((record.timestamp_ns, clock))
        }
        Err(ReplayError::NoRecord { .. }) => {
            unknown.push("when the request was published: its record was removed".to_owned());
            Ok((result.received_ns, Some(Clock::Process)))
        }
        Err(error) => Err(error),
    }
}

/// Explains why the first slice of a task was next on its lane.
fn explain_first_slice(
    entries: &Entries<'_>,
    task: Option<&TaskFacts>,
) -> Result<Option<Explanation>, ReplayError> {
    let first = task.and_then(|task| Some((task.task, task.first_slice?)));
    let Some((task, at)) = first else { return Ok(None) };
    let is_it = |decision: &Decision| matches!(decision, Decision::RunSlice(run) if run.task == task);
    Ok(explain_at(entries, at.sequence, &is_it)?.and_then(|(explanation, _)| explanation))
}

fn find_result(
    log: &dyn EventLog,
    options: &VerifyOptions,
    request_id: &str,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Found, ReplayError> {
    let topic = &options.sources.risk_results;
    let ranges = log.topic(topic)?.map(|info| info.offsets).unwrap_or_default();
    let total = ranges.iter().map(|range| (range.next - range.first) as u64).sum();
    let mut done = 0;
    for (partition, range) in (0..).zip(ranges) {
        let source = TopicPartition { topic: topic.clone(), partition };
        let mut reader = PartitionReader::open(log, source, range)?;
        while let Some(record) = reader.next()? {
            done += 1;
            if done % PROGRESS_RESULTS == 0 {
                progress(ReplayProgress { phase: Phase::Risk, done, total });
            }
            if record.key.as_deref() != Some(request_id.as_bytes()) {
                continue;
            }
            if let Ok(result) = decode_risk_result(&record.value)
                && result.request_id == request_id
            {
                let (offset, sealed_ns) = (record.offset, record.timestamp_ns);
                return Ok(Found { partition, offset, sealed_ns, result });
            }
        }
    }
    Err(ReplayError::NoAnswer { url: log.url(), request_id: request_id.to_owned() })
}

/// Returns the transaction, and the rounds of the task before it.
fn follow_rounds(
    entries: &Entries<'_>,
    sealed: &FoundSeal,
    result: &RiskResult,
) -> Result<(Context, Arc<Transaction>, Vec<Round>), ReplayError> {
    let arrived = match result.decision_sequence {
        sequence @ 0.. => entries.with_sequence(sequence).ok(),
        _ => None,
    };
    let is_it = |input: &Input| matches!(input, Input::TaskArrived(arrived) if arrived.request_id == result.request_id);
    let arrived = arrived.filter(|(_, entry)| is_it(&entry.input)).map(|(offset, _)| offset);
    // A request that is answered without a task waits for the previous transaction, too.
    let received = entries.lower_bound(|entry| entry.at_ns < result.received_ns)?;
    let before = arrived.unwrap_or(sealed.offset).min(sealed.offset).min(received) + 1;
    let begin = entries.begin_before(before)?;
    let mut rounds = Vec::new();
    let mut each = |item: &Item| {
        if let Item::Round(round) = item
            && round.arrived.request_id == result.request_id
        {
            rounds.push(round.clone());
        }
    };
    let (context, transaction) = follow_to(entries, begin, sealed.sequence, &mut each)?;
    Ok((context, transaction, rounds))
}

fn task_facts(rounds: &[Round], result: &RiskResult) -> Option<TaskFacts> {
    let (first, last) = rounds.first().zip(rounds.last())?;
    Some(TaskFacts {
        task: first.arrived.task,
        arrived: first.at,
        rounds: rounds.len() as i64,
        units: rounds.iter().map(|round| round.arrived.units).sum(),
        slices: rounds.iter().map(|round| round.slices).sum(),
        first_slice: rounds.iter().find_map(|round| round.first_slice),
        end: last.end.map(|(_, end)| end),
        ended: last.end.map(|(at, _)| at),
        compute_ns: result.compute_ns,
        devices: result.devices.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs read the JSON, so it must not change with the division into structs.
    #[test]
    fn the_json_of_a_chain_has_the_request_beside_the_result() {
        let request = RequestFacts {
            request_id: "one".to_owned(),
            tenant: "desk".to_owned(),
            class: TaskClass::Batch,
            partition: 3,
            offset: 4,
            created_ns: 5,
            created_clock: Some(Clock::Log),
        };
        let chain = RequestChain {
            request,
            from_ns: 6,
            result_partition: 7,
            result_offset: 8,
            process: ProcessFacts {
                journal: Some(0),
                node: "node-0".to_owned(),
                began: None,
                assigned_ns: None,
            },
            task: None,
            explanation: None,
            transaction: TransactionFacts {
                sealed_sequence: 9,
                sealed_ns: None,
                first_offset: 10,
                next_offset: 11,
                signals: 12,
                attempts: Vec::new(),
                committed_ns: None,
            },
            waits: Vec::new(),
            total_ns: 13,
            is_to_commit: false,
            unknown: Vec::new(),
        };
        assert_eq!(
            serde_json::to_string(&chain).expect("numbers and texts"),
            r#"{"request_id":"one","tenant":"desk","class":"BATCH","partition":3,"offset":4,"created_ns":5,"created_clock":"log","from_ns":6,"result_partition":7,"result_offset":8,"process":{"journal":0,"node":"node-0","began":null,"assigned_ns":null},"task":null,"explanation":null,"transaction":{"sealed_sequence":9,"sealed_ns":null,"first_offset":10,"next_offset":11,"signals":12,"attempts":[],"committed_ns":null},"waits":[],"total_ns":13,"is_to_commit":false,"unknown":[]}"#
        );
    }

    /// If the first clock is ahead, the difference of two clocks is not a wait.
    #[test]
    fn a_clock_that_is_ahead_makes_no_negative_wait() {
        let mut unknown = Vec::new();
        assert_eq!(begin(100, Some(Clock::Log), 130, &mut unknown), 100);
        assert!(unknown.is_empty());
        assert_eq!(begin(150, Some(Clock::Log), 130, &mut unknown), 130);
        assert_eq!(
            unknown,
            ["how long it waited to be read: the log's clock is ahead of the clock of the process by at \
                 least 20 ns, so the waits begin with its arrival at the process"]
        );
    }
}
