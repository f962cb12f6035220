//! Compares the offsets that the group committed with those in the journals and the outputs, before this process takes
//! a partition over.
//!
//! The journals take precedence, because their entries were committed with the outputs. If the outputs contradict the
//! journals too, an operator must decide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptape_engine::{AcceptedLoss, Assigned, Claims, Committed, Odds, Topics};
use warptape_eventlog::{EventLog, LogError, OffsetRange, TopicPartition};
use warptape_schemas::{
    decode_control_result, decode_dead_letter, decode_late_tick, decode_signal, decode_snapshot,
};

use super::EngineError;
use super::journal_tail::last_record;
use super::journals::Journals;

/// Time between two reports that a partition waits for the end of a transaction.
const NEWS_INTERVAL: Duration = Duration::from_secs(60);

/// Returns the offset before which all records were processed, according to a record of an output; `None` if the record
/// is unreadable.
type ProcessedBefore = fn(&[u8]) -> Option<i64>;

/// Decides at which offsets assigned partitions continue.
pub(super) struct Holder {
    pub(super) log: Arc<dyn EventLog>,
    pub(super) topics: Topics,
    pub(super) group: String,
    pub(super) accepted_loss: AcceptedLoss,
    pub(super) journals: Journals,
    /// Ends of the journals before they were last read. Entries that this process writes later do not matter.
    pub(super) written: Vec<i64>,
    pub(super) waiting: BTreeMap<i32, Waiting>,
}

/// A partition whose journals may still get entries, from transactions that were open when its offset was read.
pub(super) struct Waiting {
    /// The group's committed offsets of ticks and of risk requests.
    group: [Option<i64>; 2],
    /// Ends of the journals when the offsets were read.
    written: Vec<i64>,
    next_news: Instant,
}

/// Decision on a partition.
pub(super) enum Held {
    /// The partition continues at these offsets.
    At(Assigned),
    /// The decision is postponed, because journals may still get entries about the partition.
    Later,
    /// The partition's offsets contradict each other.
    AtOdds(Odds),
}

/// An assigned partition, as found in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) partition: i32,
    /// The group's committed offsets of ticks and of risk requests.
    pub(super) committed: Option<i64>,
    pub(super) committed_request: Option<i64>,
    pub(super) ticks: OffsetRange,
}

impl Holder {
    /// Reads the journals' entries so far. The caller must read the offsets first, and call [`Holder::hold`]
    /// afterwards.
    pub(super) fn look(&mut self) -> Result<(), EngineError> {
        self.written = self.journals.written()?;
        self.journals.look()?;
        self.journals.check_group(&self.group)
    }

    /// Decides where a partition continues, if that is certain already.
    pub(super) fn hold(&mut self, found: Found) -> Result<Held, EngineError> {
        let Found { partition, committed, committed_request, ticks } = found;
        let claims = Claims::on_ticks(self.journals.positions(), partition, committed);
        let requests = Claims::on_requests(self.journals.positions(), partition, committed_request);
        let answered = requests.settle_requests();
        let is_uncommitted = answered != committed_request.unwrap_or(0);
        let is_agreed = claims.agreed().is_some() && !is_uncommitted;
        if !is_agreed && self.must_wait(found) {
            return Ok(Held::Later);
        }
        let settled = match claims.agreed() {
            Some(agreed) => Ok(Some(agreed)),
            None => match self.outputs(partition)? {
                Some(outputs) => claims.settle(outputs),
                None => return Ok(Held::Later),
            },
        };
        let (at, lost_from) = match settled {
            Ok(settled) => (settled, None),
            Err(odds) => match self.accepted_loss.before(partition).filter(|at| *at >= odds.outputs) {
                Some(at) => (Some(at), Some(claims.journal.unwrap_or(0))),
                None => return Ok(Held::AtOdds(odds)),
            },
        };
        self.waiting.remove(&partition);
        let settled = Assigned {
            partition,
            committed: at,
            end: ticks.next,
            is_uncommitted: at != committed,
            lost_from,
            requests: Committed { offset: answered, is_uncommitted },
        };
        self.tell(&found, &settled);
        if let Some(committed) = at.filter(|at| *at > ticks.next) {
            let (topic, end) = (self.topics.ticks.clone(), ticks.next);
            return Err(EngineError::TicksEnd { topic, partition, end, committed });
        }
        Ok(Held::At(settled))
    }

    /// Returns the error that ends a process because of contradictory offsets.
    pub(super) fn at_odds(&self, odds: Vec<(i32, Odds)>) -> EngineError {
        EngineError::Odds { topic: self.topics.ticks.clone(), group: self.group.clone(), odds }
    }

    /// Forgets a partition that this process no longer owns.
    pub(super) fn forget(&mut self, partition: i32) {
        self.waiting.remove(&partition);
    }

    /// True while some journal is not read up to the end that it had when the offsets were read.
    fn must_wait(&mut self, found: Found) -> bool {
        let Found { partition, committed, committed_request, .. } = found;
        let group = [committed, committed_request];
        let waiting = match self.waiting.remove(&partition).filter(|waiting| waiting.group == group) {
            Some(waiting) => waiting,
            None => {
                let next_news = Instant::now() + NEWS_INTERVAL;
                Waiting { group, written: self.written.clone(), next_news }
            }
        };
        if self.journals.has_come_to(&waiting.written) {
            return false;
        }
        let now = Instant::now();
        let is_quiet = now < waiting.next_news;
        if !is_quiet {
            tracing::warn!(
                partition,
                "the committed offsets differ from the journals, and a transaction in the journals is open: waiting for its end"
            );
        }
        let next_news = if is_quiet { waiting.next_news } else { now + NEWS_INTERVAL };
        self.waiting.insert(partition, Waiting { next_news, ..waiting });
        true
    }

    /// Returns the offset before which all records of a partition were processed, according to its newest outputs and
    /// its newest snapshot. Returns 0 if there are none, and `None` while one of their transactions is open.
    fn outputs(&self, partition: i32) -> Result<Option<i64>, LogError> {
        let readers: [(&str, ProcessedBefore); 4] = [
            (&self.topics.signals, |value| Some(decode_signal(value).ok()?.source_offset + 1)),
            (&self.topics.late, |value| Some(decode_late_tick(value).ok()?.offset + 1)),
            (&self.topics.dead_letter, |value| Some(decode_dead_letter(value).ok()?.offset + 1)),
            (&self.topics.snapshots, |value| Some(decode_snapshot(value).ok()?.offset)),
        ];
        let sources = readers.map(|(topic, _)| TopicPartition { topic: topic.to_owned(), partition });
        let ends = self.log.ends(&sources)?;
        if ends.iter().any(|end| end.readable < end.written) {
            return Ok(None);
        }
        let mut processed = 0;
        for ((topic, processed_before), _) in
            readers.into_iter().zip(ends).filter(|(_, end)| end.readable > 0)
        {
            let newest = last_record(self.log.as_ref(), topic, partition)?;
            processed = newest.and_then(|record| processed_before(&record.value)).unwrap_or(0).max(processed);
        }
        Ok(Some(processed))
    }

    /// Reports a partition that does not continue at the offset committed by the group.
    fn tell(&self, found: &Found, settled: &Assigned) {
        let (ticks, requests) = (&self.topics.ticks, &self.topics.risk_requests);
        if settled.is_uncommitted {
            self.tell_of(ticks, found.partition, found.committed, settled.committed);
        }
        if settled.requests.is_uncommitted {
            self.tell_of(requests, found.partition, found.committed_request, Some(settled.requests.offset));
        }
    }

    fn tell_of(&self, topic: &str, partition: i32, committed: Option<i64>, at: Option<i64>) {
        let group = &self.group;
        let committed = committed
            .map_or_else(|| "no offset (never or no longer)".to_owned(), |at| format!("offset {at}"));
        let at = at.map_or_else(|| "that no record was processed".to_owned(), |at| format!("offset {at}"));
        tracing::warn!(
            "{topic}/{partition}: group {group} has committed {committed}, but the journal says {at}: the process follows the journal"
        );
    }
}

/// Returns the offset of the next operator's command: after the newest answered one.
pub(super) fn next_control(
    log: &dyn EventLog,
    topics: &Topics,
    ordinal: i32,
    committed: Option<i64>,
) -> Result<i64, LogError> {
    let results = TopicPartition { topic: topics.control_results.clone(), partition: ordinal };
    let newest = last_record(log, &results.topic, ordinal)?;
    let answered = newest.and_then(|record| decode_control_result(&record.value).ok());
    Ok(match answered {
        Some(answered) => answered.offset + 1,
        // Answers are kept for a limited time, so none may be left.
        None if log.offsets(&results)?.next > 0 => committed.unwrap_or(0),
        None => 0,
    })
}
