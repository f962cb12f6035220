//! Explains why a signal was late: finds its transaction, follows the journal up to it, and assembles the chain.

use warptape_eventlog::{EventLog, OffsetRange, Record, TopicPartition};
use warptape_scheduler::{Explanation, Scheduler};
use warptape_schemas::decode_signal;
use warptape_schemas::journal::{Decision, SealedPartition};
use warptape_schemas::signal::Signal;
use warptape_stages::{Lateness, StageConfig};

use super::context::{Context, part_with};
use super::dealt::Dealer;
use super::facts::{ArrivalFacts, BatchFacts, Chain, ProcessFacts, SignalFacts, TickFacts, TransactionFacts};
use super::follow::{begin_of, find_sealed, find_sealed_anywhere, follow_to};
use super::waits::Times;
use super::way::{Cause, Way, find_way};
use crate::entries::Entries;
use crate::history::{Batch, BatchEnd, SealedPart, Transaction};
use crate::partition_reader::PartitionReader;
use crate::{ReplayError, ReplayProgress, VerifyOptions};

/// Text for a commit whose time is not in the journal.
pub(crate) const NO_COMMIT: &str = "when it was committed: a journal holds only committed transactions, but \
                                    the time of a commit is in a later transaction, and this is the last one \
                                    of its process life";

/// Explains a signal.
///
/// # Errors
/// If the log cannot be read, there is no such signal, or the journal lacks the signal's transaction.
pub fn why_signal(
    log: &dyn EventLog,
    options: &VerifyOptions,
    partition: i32,
    offset: i64,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Chain, ReplayError> {
    let sources = &options.sources;
    let record = read_record(log, &sources.signals, partition, offset)?;
    let signal = decode_signal(&record.value).map_err(|error| ReplayError::NoRecord {
        url: log.url(),
        topic: sources.signals.clone(),
        partition,
        offset,
        mistake: error.to_string(),
    })?;
    let journals = Entries::open_all(log, &options.journal)?;
    let source_offset = signal.source_offset;
    let is_it = |account: &SealedPartition| {
        account.partition == partition && (account.first_offset..account.next_offset).contains(&source_offset)
    };
    let not_sealed = || ReplayError::NotSealed { url: log.url(), partition, offset: source_offset };
    let sealed = match find_sealed(&journals, record.timestamp_ns, is_it)? {
        Some(sealed) => Some(sealed),
        None => find_sealed_anywhere(&journals, is_it, progress)?,
    };
    let (entries, sealed) = sealed.ok_or_else(not_sealed)?;
    let tick = read_record(log, &sources.ticks, partition, signal.source_offset)?;
    let begin = begin_of(entries, &sealed, tick.timestamp_ns)?;
    let (context, transaction) = follow_to(entries, begin, sealed.sequence, &mut |_| {})?;
    let part = part_with(&transaction, partition, source_offset).ok_or_else(not_sealed)?;
    let mut dealer = Dealer::new(log, sources);
    let of = Signalled {
        facts: SignalFacts::new(partition, offset, &signal),
        tick: TickFacts {
            partition,
            offset: signal.source_offset,
            index: signal.source_index,
            created_ns: tick.timestamp_ns,
        },
    };
    let mut chain = of.chain(&context, &transaction, part, &mut dealer)?;
    if let Some(batch) = chain.batch.clone() {
        explain(entries, &batch, partition, signal_group(&context, &signal), &mut chain)?;
    }
    Ok(chain)
}

/// A signal, with the tick that caused it.
pub(crate) struct Signalled {
    pub(crate) facts: SignalFacts,
    pub(crate) tick: TickFacts,
}

impl Signalled {
    /// Returns the chain of the signal's causes, without the scheduler's explanation.
    pub(crate) fn chain(
        self,
        context: &Context,
        transaction: &Transaction,
        part: &SealedPart,
        dealer: &mut Dealer<'_>,
    ) -> Result<Chain, ReplayError> {
        let Self { facts, tick } = self;
        let config = config_of(context);
        let group = config.as_ref().map_or(-1, |config| group_in(config, &facts.symbol));
        let is_watermark = !["tick:", "volume:"].iter().any(|filled| facts.bar_spec.starts_with(filled));
        let cause = Cause { group, tick: (tick.offset, tick.index.unsigned_abs()), is_watermark };
        let way = find_way(part, cause, config.as_ref(), dealer)?;
        let batch = way.as_ref().and_then(|way| way.batch.as_ref());
        let (waits, total_ns) = self::waits(context, transaction, tick, way.as_ref(), cause);
        Ok(Chain {
            process: process_facts(context, tick.partition),
            arrival: way.as_ref().and_then(|way| arrival_facts(way, group)),
            batch: batch.map(|batch| batch_facts(batch, context, (tick.partition, group))),
            last_batch: way.as_ref().and_then(|way| last_batch(way, context, tick.partition)),
            explanation: None,
            lanes: Vec::new(),
            transaction: transaction_facts(transaction, part),
            waits,
            total_ns,
            is_to_commit: transaction.committed_ns().is_some(),
            unknown: unknown(context, transaction, way.as_ref(), tick),
            signal: facts,
            tick,
        })
    }
}

fn waits(
    context: &Context,
    transaction: &Transaction,
    tick: TickFacts,
    way: Option<&Way>,
    cause: Cause,
) -> (Vec<super::Wait>, i64) {
    let sealing = context.sealing(transaction).expect("only transactions with a seal have parts");
    let pauses = context.pauses(tick.partition);
    let holes = context.holes(tick.created_ns);
    let times = Times {
        created_ns: tick.created_ns,
        began_ns: context.began_ns(),
        assigned_ns: context.assigned_ns(tick.partition),
        pauses: &pauses,
        holes: &holes,
        arrived_ns: way.map(|way| way.arrival.at_ns),
        batch: way.and_then(|way| way.batch_times(cause)),
        sealing,
    };
    let (waits, end_ns) = super::waits::waits(&times);
    (waits, end_ns - tick.created_ns)
}

/// Describes the facts about a way that are not in the journal.
fn unknown(context: &Context, transaction: &Transaction, way: Option<&Way>, tick: TickFacts) -> Vec<String> {
    let mut unknown = Vec::new();
    if context.is_older(tick.created_ns) {
        unknown.push(
            "when the process got the partition and when earlier pauses ended: the journal was read from a \
             checkpoint later than the record, so the time before it counts as reading, except a pause that \
             lasted until then"
                .to_owned(),
        );
    }
    match way {
        None => unknown.push(
            "when the record arrived and in which batch it was: the journal entries were removed; the time until the seal counts as reading"
                .to_owned(),
        ),
        Some(way) if way.batch.is_none() => {
            let candidates = way.candidates.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let which = match candidates.is_empty() {
                true => "in which batch it was".to_owned(),
                false => format!("in which of the batches {candidates} it was"),
            };
            unknown.push(format!(
                "{which}: rows of several records arrived together, and their order is no longer in the log; the \
                 time from their arrival to the seal counts as waiting for commits"
            ));
        }
        Some(way) if way.complete.is_none() => unknown.push(
            "when rows of other groups from the same records were done: this time counts as waiting for commits".to_owned(),
        ),
        Some(_) => {}
    }
    if transaction.committed_ns().is_none() {
        unknown.push(NO_COMMIT.to_owned());
    }
    unknown
}

/// Returns the stage configuration of a life; `None` if it is unknown or this software cannot read it.
pub(crate) fn config_of(context: &Context) -> Option<StageConfig> {
    StageConfig::from_json(&context.life()?.started.stage_config).ok()
}

fn group_in(config: &StageConfig, symbol: &str) -> i32 {
    Lateness::of(config).group_of(symbol, config.groups_per_partition) as i32
}

fn signal_group(context: &Context, signal: &Signal<'_>) -> i32 {
    config_of(context).map_or(-1, |config| group_in(&config, &signal.symbol))
}

pub(crate) fn process_facts(context: &Context, partition: i32) -> ProcessFacts {
    let life = context.life();
    ProcessFacts {
        journal: life.map(|life| life.journal),
        node: life.map(|life| life.started.node.clone()).unwrap_or_default(),
        began: life.and_then(|life| life.began),
        assigned_ns: context.assigned_ns(partition),
    }
}

fn arrival_facts(way: &Way, group: i32) -> Option<ArrivalFacts> {
    let arrival = &way.arrival;
    let (first_offset, next_offset) = arrival.offsets?;
    Some(ArrivalFacts {
        sequence: arrival.sequence,
        at_ns: arrival.at_ns,
        first_offset,
        next_offset,
        group,
        group_rows: arrival.rows_of(group),
        rows: arrival.groups.iter().map(|(_, rows)| rows).sum(),
    })
}

pub(crate) fn batch_facts(batch: &Batch, context: &Context, (partition, group): (i32, i32)) -> BatchFacts {
    let part = batch.parts.iter().find(|part| (part.partition, part.group) == (partition, group));
    let dispatch = &batch.dispatch;
    let specs = context.life().map(|life| life.started.lanes.as_slice()).unwrap_or_default();
    let spec = specs.iter().find(|spec| spec.lane == dispatch.lane);
    let (completed, service_ns) = match batch.end {
        BatchEnd::Completed { at, service_ns, .. } => (Some(at), Some(service_ns)),
        BatchEnd::Lost(_) | BatchEnd::Open => (None, None),
    };
    BatchFacts {
        batch: dispatch.batch,
        at: batch.at,
        reason: dispatch.reason,
        trigger: batch.trigger,
        lane: dispatch.lane,
        device: spec.map(|spec| spec.device.clone()).unwrap_or_default(),
        rows: dispatch.rows,
        groups: dispatch.takes.len(),
        oldest_arrival_ns: dispatch.oldest_arrival_ns,
        in_flight_batches: dispatch.telemetry.in_flight_batches,
        epoch: part.map_or(0, |part| part.epoch),
        placed: part.and_then(|part| part.placed),
        predicted_finish_ns: (dispatch.telemetry.service_ps_per_row > 0)
            .then_some(dispatch.predicted_finish_ns),
        completed,
        service_ns,
    }
}

/// Returns the batch for which a signal waited in addition to its own; `None` if there is none.
fn last_batch(way: &Way, context: &Context, partition: i32) -> Option<BatchFacts> {
    let (own, (_, last)) = (way.batch.as_ref(), way.complete.as_ref()?);
    let is_other = own.is_some_and(|own| own.dispatch.batch != last.dispatch.batch);
    let part = last.parts.iter().find(|part| part.partition == partition)?;
    is_other.then(|| batch_facts(last, context, (partition, part.group)))
}

pub(crate) fn transaction_facts(transaction: &Transaction, part: &SealedPart) -> TransactionFacts {
    TransactionFacts {
        sealed_sequence: transaction.sealed_sequence,
        sealed_ns: transaction.sealed_ns,
        first_offset: part.account.first_offset,
        next_offset: part.account.next_offset,
        signals: part.account.signals,
        attempts: transaction.attempts.clone(),
        committed_ns: transaction.committed_ns(),
    }
}

/// Asks the scheduler why the batch was dispatched at that time, and for the state of the lanes.
fn explain(
    entries: &Entries<'_>,
    batch: &BatchFacts,
    partition: i32,
    group: i32,
    chain: &mut Chain,
) -> Result<(), ReplayError> {
    let is_it = |decision: &Decision| matches!(decision, Decision::Dispatch(dispatch) if dispatch.batch == batch.batch);
    match explain_at(entries, batch.at.sequence, &is_it)? {
        Some((explanation, scheduler)) => {
            chain.explanation = explanation;
            chain.lanes = scheduler.lanes_for(partition, group);
        }
        None => chain.unknown.push(NO_STATE.to_owned()),
    }
    Ok(())
}

/// Text for decisions whose state is not available.
pub(crate) const NO_STATE: &str = "the alternatives of the choice: the entries with the state were removed, or this software decides differently";

/// Returns the explanation of an entry's decision, and the scheduler before it. `None` if that state is gone, or if
/// this software decides differently.
pub(crate) fn explain_at(
    entries: &Entries<'_>,
    sequence: i64,
    is_it: &dyn Fn(&Decision) -> bool,
) -> Result<Option<(Option<Explanation>, Scheduler)>, ReplayError> {
    let (offset, entry) = entries.with_sequence(sequence)?;
    let scheduler = match entries.scheduler_before(offset) {
        Ok(scheduler) => scheduler,
        Err(ReplayError::JournalTrimmed { .. } | ReplayError::NotReplayed { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let index = entry.decisions.iter().position(is_it);
    match index.map(|index| scheduler.explain(entry.at_ns, &entry.input, index)).transpose() {
        Ok(explanation) => Ok(Some((explanation, scheduler))),
        Err(_) => Ok(None),
    }
}

/// Returns the record at an offset.
pub(crate) fn read_record(
    log: &dyn EventLog,
    topic: &str,
    partition: i32,
    offset: i64,
) -> Result<Record, ReplayError> {
    let mistake = |mistake: &str| ReplayError::NoRecord {
        url: log.url(),
        topic: topic.to_owned(),
        partition,
        offset,
        mistake: mistake.to_owned(),
    };
    let found = log.topic(topic)?;
    let range = found.and_then(|info| info.offsets.get(usize::try_from(partition).ok()?).copied());
    let range = range.ok_or_else(|| mistake("the partition does not exist"))?;
    if range.first >= range.next {
        return Err(mistake(
            "the partition has no records; an export has ticks and signals only if it was written with --with-ticks",
        ));
    }
    if offset < range.first || offset >= range.next {
        return Err(mistake(&format!("the partition has offsets {} to {}", range.first, range.next - 1)));
    }
    let source = TopicPartition { topic: topic.to_owned(), partition };
    let next = OffsetRange { first: offset, next: offset + 1 };
    let record = PartitionReader::open(log, source, next)?.next()?;
    record.ok_or_else(|| mistake("there is no record at this offset"))
}
