//! One request as one transaction, and what became of it when the log does not say.
//!
//! A request stays whole until it is committed. What the stages made of its ticks is a function of the log, so that a
//! transaction that was aborted is sent again as it is: no state has to be taken back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, LogError, Producer};

use super::EngineConfig;
use super::commit::CommitRequest;
use super::failpoint::{self, Failpoint};
use super::journal_tail::last_record;

/// A commit that other writers kept from the log is tried this often before it fails.
const COMMIT_ATTEMPTS_MAX: u32 = 3;
/// How long a log that does not answer is asked for the outcome of a transaction.
const OUTAGE_MAX: Duration = Duration::from_secs(300);
/// Pause between two attempts.
const RENEW_PAUSE: Duration = Duration::from_millis(500);

/// What became of a transaction.
pub(super) enum Outcome {
    /// It is durable and visible.
    Committed,
    /// Nothing of it was written, because of this.
    Aborted(LogError),
}

/// The producer, and the names it writes under.
pub(super) struct TransactionWriter {
    log: Arc<dyn EventLog>,
    /// `None` between the end of one and the start of the next.
    producer: Option<Box<dyn Producer>>,
    config: EngineConfig,
}

impl TransactionWriter {
    /// Starts the producer, which fences every earlier one of its transactional id and settles what that left open.
    pub(super) fn new(log: Arc<dyn EventLog>, config: EngineConfig) -> Result<Self, LogError> {
        let producer = Some(log.producer(&config.transactional_id())?);
        Ok(Self { log, producer, config })
    }

    /// Writes a request. An error is one that trying again does not mend.
    pub(super) fn write(&mut self, request: &CommitRequest) -> Result<Outcome, LogError> {
        let Err(error) = self.try_write(request) else { return Ok(Outcome::Committed) };
        tracing::warn!(%error, "a transaction did not commit");
        match error {
            LogError::Aborted { .. } => {
                if self.producer.as_mut().is_some_and(|producer| producer.abort().is_ok()) {
                    return Ok(Outcome::Aborted(error));
                }
                self.settle(request, error)
            }
            LogError::OutcomeUnknown { .. } | LogError::Unreachable { .. } | LogError::Broker { .. } => {
                self.settle(request, error)
            }
            error => Err(error),
        }
    }

    fn try_write(&mut self, request: &CommitRequest) -> Result<(), LogError> {
        let producer = self.producer.as_mut().expect("a producer is renewed before it is used again");
        let EngineConfig { topics, node, ordinal, group, .. } = &self.config;
        producer.begin()?;
        for record in request.records(topics, node, *ordinal) {
            let is_snapshot = record.topic == topics.snapshots;
            producer.send(record)?;
            if is_snapshot {
                failpoint::reach(Failpoint::DuringSnapshot);
            }
        }
        failpoint::reach(Failpoint::AfterProduce);
        producer.send_offsets(group, &request.offsets)?;
        failpoint::reach(Failpoint::AfterSendOffsets);
        failpoint::reach_soon(Failpoint::DuringCommit);
        for _ in 1..COMMIT_ATTEMPTS_MAX {
            match producer.commit() {
                Err(LogError::Busy { .. }) => {
                    tracing::warn!("another writer holds the log; the commit is tried again")
                }
                result => return result,
            }
        }
        producer.commit()
    }

    /// Starts a new producer, which settles the transaction of the old one, and looks which way.
    fn settle(&mut self, request: &CommitRequest, cause: LogError) -> Result<Outcome, LogError> {
        let started = Instant::now();
        loop {
            // The old one must be gone, or both would wait for each other.
            self.producer = None;
            match self.log.producer(&self.config.transactional_id()).and_then(|producer| {
                self.producer = Some(producer);
                self.is_committed(request)
            }) {
                Ok(true) => return Ok(Outcome::Committed),
                Ok(false) => return Ok(Outcome::Aborted(cause)),
                Err(error) if is_outage(&error) && started.elapsed() < OUTAGE_MAX => {
                    tracing::warn!(%error, "the outcome of a transaction is not known yet");
                    std::thread::park_timeout(RENEW_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a settled transaction committed. The journal tells, which nobody else writes; a request without entries
    /// has moved offsets.
    fn is_committed(&self, request: &CommitRequest) -> Result<bool, LogError> {
        let EngineConfig { topics, ordinal, group, .. } = &self.config;
        if let Some(entry) = request.last_entry() {
            let last = last_record(self.log.as_ref(), &topics.journal, *ordinal)?;
            return Ok(last.is_some_and(|record| record.value == entry));
        }
        match request.offsets.first() {
            Some((source, next)) => Ok(self.log.committed(group, source)? == Some(*next)),
            // Nothing was to be written.
            None => Ok(true),
        }
    }
}

/// Whether an error may pass by itself.
fn is_outage(error: &LogError) -> bool {
    matches!(
        error,
        LogError::Unreachable { .. }
            | LogError::Broker { .. }
            | LogError::OutcomeUnknown { .. }
            | LogError::Aborted { .. }
    )
}
