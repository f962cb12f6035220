//! A transaction that is written until it is known to be in the log, and what became of it when the log does not say.
//!
//! A transaction stays whole with its owner until it is committed, so that one that was aborted can be sent again as it
//! is. One of unknown outcome is settled by a new producer with the same transactional id; whether it committed tells
//! something that only this owner writes, in the same transaction.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, LogError, Producer};

/// How long a log that does not answer is asked again, or a transaction that is aborted is sent again.
const OUTAGE_MAX: Duration = Duration::from_secs(300);
/// The same, once the process was asked to end.
const OUTAGE_STOPPING_MAX: Duration = Duration::from_secs(10);
/// Pause before a transaction that was aborted is sent again: a group in the middle of a rebalance needs a moment.
pub const ABORT_PAUSE: Duration = Duration::from_millis(100);

/// A commit that other writers kept from the log is tried this often before it fails.
const COMMIT_ATTEMPTS_MAX: u32 = 3;
/// Pause between two attempts to start a producer.
const RENEW_PAUSE: Duration = Duration::from_millis(500);

/// What is written as one transaction.
pub trait Transaction {
    /// Puts everything into the open transaction of a producer.
    fn send(&self, producer: &mut dyn Producer) -> Result<(), LogError>;
    /// Whether it is in the log, when nothing of its owner's is open there.
    fn is_committed(&self, log: &dyn EventLog) -> Result<bool, LogError>;
}

/// What became of a transaction.
pub enum Outcome {
    /// It is durable and visible.
    Committed,
    /// Nothing of it was written, because of this; it can be sent again.
    Aborted(LogError),
}

/// A time in which nothing can be written.
pub struct Outage {
    began: Instant,
    /// When it was first seen that the process shall end.
    stopping_since: Option<Instant>,
}

impl Outage {
    /// One that begins now.
    pub fn begin() -> Self {
        Self { began: Instant::now(), stopping_since: None }
    }

    /// Whether it is not waited for any longer.
    pub fn is_given_up(&mut self, is_stopping: bool) -> bool {
        let now = Instant::now();
        if is_stopping {
            self.stopping_since.get_or_insert(now);
        }
        now - self.began >= OUTAGE_MAX
            || self.stopping_since.is_some_and(|since| now - since >= OUTAGE_STOPPING_MAX)
    }
}

/// Whether the process was asked to end.
pub type IsStopping = Box<dyn Fn() -> bool + Send>;

/// Writes transactions under one transactional id.
pub struct TransactionWriter {
    log: Arc<dyn EventLog>,
    transactional_id: String,
    /// `None` between the end of one and the start of the next.
    producer: Option<Box<dyn Producer>>,
    is_stopping: IsStopping,
}

impl TransactionWriter {
    /// Starts the producer, which fences every earlier one of its transactional id and settles what that left open.
    pub fn new(
        log: Arc<dyn EventLog>,
        transactional_id: String,
        is_stopping: IsStopping,
    ) -> Result<Self, LogError> {
        let producer = Some(log.producer(&transactional_id)?);
        Ok(Self { log, transactional_id, producer, is_stopping })
    }

    /// Writes a transaction once. An error is one that trying again does not mend, or not within the time for it.
    pub fn write(&mut self, transaction: &impl Transaction) -> Result<Outcome, LogError> {
        let Err(error) = self.try_write(transaction) else { return Ok(Outcome::Committed) };
        tracing::warn!(%error, "a transaction did not commit");
        match error {
            LogError::Aborted { .. } => {
                if self.producer.as_mut().is_some_and(|producer| producer.abort().is_ok()) {
                    return Ok(Outcome::Aborted(error));
                }
                self.settle(transaction, error)
            }
            error if is_outage(&error) => self.settle(transaction, error),
            error => Err(error),
        }
    }

    /// Writes a transaction until it is committed.
    pub fn write_surely(&mut self, transaction: &impl Transaction) -> Result<(), LogError> {
        let mut outage = Outage::begin();
        loop {
            match self.write(transaction)? {
                Outcome::Committed => return Ok(()),
                Outcome::Aborted(error) if outage.is_given_up((self.is_stopping)()) => return Err(error),
                Outcome::Aborted(_) => thread::park_timeout(ABORT_PAUSE),
            }
        }
    }

    fn try_write(&mut self, transaction: &impl Transaction) -> Result<(), LogError> {
        let producer = self.producer.as_mut().expect("a producer is renewed before it is used again");
        producer.begin()?;
        transaction.send(producer.as_mut())?;
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
    fn settle(&mut self, transaction: &impl Transaction, cause: LogError) -> Result<Outcome, LogError> {
        let mut outage = Outage::begin();
        loop {
            // The old one must be gone, or both would wait for each other.
            self.producer = None;
            match self.log.producer(&self.transactional_id).and_then(|producer| {
                self.producer = Some(producer);
                transaction.is_committed(self.log.as_ref())
            }) {
                Ok(true) => return Ok(Outcome::Committed),
                Ok(false) => return Ok(Outcome::Aborted(cause)),
                Err(error) if is_outage(&error) && !outage.is_given_up((self.is_stopping)()) => {
                    tracing::warn!(%error, "the outcome of a transaction is not known yet");
                    thread::park_timeout(RENEW_PAUSE);
                }
                Err(error) => return Err(error),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_shall_end_waits_from_when_it_was_told() {
        let long_ago = Instant::now() - OUTAGE_MAX / 2;
        let mut outage = Outage { began: long_ago, stopping_since: None };
        assert!(!outage.is_given_up(false));
        assert!(!outage.is_given_up(true), "it was told just now");
        outage.stopping_since = Some(Instant::now() - OUTAGE_STOPPING_MAX);
        assert!(outage.is_given_up(true));
    }

    #[test]
    fn no_outage_is_waited_for_without_end() {
        let mut outage = Outage { began: Instant::now() - OUTAGE_MAX, stopping_since: None };
        assert!(outage.is_given_up(false));
    }
}
