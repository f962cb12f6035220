//! Writes a transaction until it is known to be in the log, and resolves unknown outcomes.
//!
//! The owner keeps a whole transaction until it is committed, so that an aborted one can be sent again unchanged. If
//! the outcome is unknown, a new producer with the same transactional id ends the old transaction. Then a value that
//! only this owner writes, in the same transaction, shows whether it was committed.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use warptape_engine::Outage;
use warptape_eventlog::{EventLog, LogError, Producer};

/// Number of attempts to commit while other writers block the log; after them the commit fails.
const COMMIT_ATTEMPTS_MAX: u32 = 3;
/// Pause between two attempts to start a producer.
pub const RENEW_PAUSE: Duration = Duration::from_millis(500);

/// Contents of one transaction.
pub trait Transaction {
    /// Writes all contents to a producer's open transaction.
    fn send(&self, producer: &mut dyn Producer) -> Result<(), LogError>;
    /// True if the owner still owns all partitions whose offsets it commits.
    fn is_owner(&self) -> bool {
        true
    }
    /// True if the transaction is in the log. Must be called while the owner has no open transaction there.
    fn is_committed(&self, log: &dyn EventLog) -> Result<bool, LogError>;
    /// True if another owner of the same name has written since; this owner must then end.
    fn is_superseded(&self, _log: &dyn EventLog) -> Result<bool, LogError> {
        Ok(false)
    }
}

/// Outcome of a transaction.
pub enum Outcome {
    /// The transaction is durable and visible.
    Committed,
    /// Nothing of the transaction was written, for this reason. It can be sent again.
    Aborted(LogError),
}

/// Outcome of an attempt to write a transaction, and how it became known.
pub struct Attempted {
    /// Outcome of the attempt.
    pub outcome: Outcome,
    /// True if the log did not report the outcome, and a new producer looked it up.
    pub looked_up: bool,
}

/// An outage; its clock starts when the outage does.
struct Waiting {
    began: Instant,
    outage: Outage,
}

impl Waiting {
    /// Starts an outage now.
    fn begin() -> Self {
        Self { began: Instant::now(), outage: Outage::begin(0) }
    }

    /// True if the log has been awaited long enough, given the time at which the process was asked to end.
    fn is_given_up(&self, stopping_since: Option<Instant>) -> bool {
        let since_began_ns = |at: Instant| at.saturating_duration_since(self.began).as_nanos() as i64;
        self.outage.is_given_up(since_began_ns(Instant::now()), stopping_since.map(since_began_ns))
    }

    /// Returns the pause before the next attempt. Pauses grow.
    fn next_pause(&mut self) -> Duration {
        Duration::from_nanos(self.outage.next_pause_ns().unsigned_abs())
    }
}

/// Returns the time at which the process was asked to end; `None` before.
pub type StoppingSince = Box<dyn Fn() -> Option<Instant> + Send>;

/// Writes transactions under one transactional id.
pub struct TransactionWriter {
    log: Arc<dyn EventLog>,
    transactional_id: String,
    /// Producer; `None` between the end of one and the start of the next.
    producer: Option<Box<dyn Producer>>,
    stopping_since: StoppingSince,
    /// Last reported cause of a failed commit, which is reported only once; `None` if there was none.
    told: Option<String>,
}

impl TransactionWriter {
    /// Starts a producer. It fences all earlier ones with the same transactional id, and ends their open transaction.
    pub fn new(
        log: Arc<dyn EventLog>,
        transactional_id: String,
        stopping_since: StoppingSince,
    ) -> Result<Self, LogError> {
        let producer = Some(log.producer(&transactional_id)?);
        Ok(Self { log, transactional_id, producer, stopping_since, told: None })
    }

    /// Writes a transaction once. An error means that a retry cannot help, or did not help in time.
    pub fn write(&mut self, transaction: &impl Transaction) -> Result<Attempted, LogError> {
        let Err(error) = self.try_write(transaction) else {
            self.told = None;
            return Ok(Attempted { outcome: Outcome::Committed, looked_up: false });
        };
        let text = error.to_string();
        if self.told.as_ref() != Some(&text) {
            tracing::warn!(error = text, "a transaction did not commit");
            self.told = Some(text);
        }
        match error {
            LogError::Aborted { .. } => {
                if self.producer.as_mut().is_some_and(|producer| producer.abort().is_ok()) {
                    return Ok(Attempted { outcome: Outcome::Aborted(error), looked_up: false });
                }
                self.settle(transaction, error)
            }
            error if is_outage(&error) => self.settle(transaction, error),
            error => Err(error),
        }
    }

    /// Writes a transaction, and repeats it after each abort until it is committed.
    pub fn write_surely(&mut self, transaction: &impl Transaction) -> Result<(), LogError> {
        let mut outage = Waiting::begin();
        loop {
            match self.write(transaction)?.outcome {
                Outcome::Committed => return Ok(()),
                Outcome::Aborted(error) if outage.is_given_up((self.stopping_since)()) => return Err(error),
                Outcome::Aborted(_) => thread::park_timeout(outage.next_pause()),
            }
        }
    }

    fn try_write(&mut self, transaction: &impl Transaction) -> Result<(), LogError> {
        let producer = self.producer.as_mut().expect("a producer is renewed before it is used again");
        producer.begin()?;
        transaction.send(producer.as_mut())?;
        for _ in 1..COMMIT_ATTEMPTS_MAX {
            match producer.commit_as_owner(&|| transaction.is_owner()) {
                Err(LogError::Busy { .. }) => {
                    tracing::warn!("another writer holds the log; the commit is tried again")
                }
                result => return result,
            }
        }
        producer.commit_as_owner(&|| transaction.is_owner())
    }

    /// Starts a new producer, which ends the old one's transaction, and finds out the outcome.
    fn settle(&mut self, transaction: &impl Transaction, cause: LogError) -> Result<Attempted, LogError> {
        let outage = Waiting::begin();
        loop {
            // The old producer must be gone; otherwise both would wait for each other (SQLite).
            self.producer = None;
            match self.settle_once(transaction) {
                Ok(true) => return Ok(Attempted { outcome: Outcome::Committed, looked_up: true }),
                Ok(false) => {
                    let error = LogError::Aborted {
                        url: self.log.url(),
                        transactional_id: self.transactional_id.clone(),
                        cause: cause.to_string(),
                    };
                    return Ok(Attempted { outcome: Outcome::Aborted(error), looked_up: true });
                }
                Err(error) if is_outage(&error) && !outage.is_given_up((self.stopping_since)()) => {
                    tracing::warn!(%error, "the outcome of a transaction is unknown so far");
                    thread::park_timeout(RENEW_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn settle_once(&mut self, transaction: &impl Transaction) -> Result<bool, LogError> {
        // If another process has taken this one's place, that process must not be fenced.
        if transaction.is_superseded(self.log.as_ref())? {
            let (url, transactional_id) = (self.log.url(), self.transactional_id.clone());
            return Err(LogError::Fenced { url, transactional_id });
        }
        self.producer = Some(self.log.producer(&self.transactional_id)?);
        transaction.is_committed(self.log.as_ref())
    }
}

/// True if the error may disappear by itself.
pub fn is_outage(error: &LogError) -> bool {
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
    use std::sync::Mutex;

    use warptape_eventlog::{Durability, SqliteLog};

    use super::*;

    /// A transaction with an unknown outcome, whose producer another one replaces.
    struct Doubtful {
        log: SqliteLog,
        other: Mutex<Option<Box<dyn Producer>>>,
        is_superseded: bool,
    }

    impl Transaction for Doubtful {
        fn send(&self, _: &mut dyn Producer) -> Result<(), LogError> {
            *self.other.lock().expect("nobody panics") = Some(self.log.producer("a")?);
            let [url, transactional_id, doing, cause] =
                ["sqlite:x", "a", "asking", "no answer"].map(str::to_owned);
            Err(LogError::OutcomeUnknown { url, transactional_id, doing, cause })
        }

        fn is_committed(&self, _: &dyn EventLog) -> Result<bool, LogError> {
            Ok(false)
        }

        fn is_superseded(&self, _: &dyn EventLog) -> Result<bool, LogError> {
            Ok(self.is_superseded)
        }
    }

    #[test]
    fn who_was_replaced_ends_and_does_not_replace_in_turn() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("w.db");
        let open = || SqliteLog::open(&path, Durability::Process).expect("a log");
        for is_superseded in [true, false] {
            let mut writer = TransactionWriter::new(Arc::new(open()), "a".to_owned(), Box::new(|| None))
                .expect("a producer");
            let doubtful = Doubtful { log: open(), other: Mutex::default(), is_superseded };
            let outcome = writer.write(&doubtful);
            let mut other = doubtful.other.lock().expect("nobody panics").take().expect("it was made");
            let other = other.begin().and_then(|()| other.commit());
            if is_superseded {
                assert!(matches!(outcome, Err(LogError::Fenced { .. })));
                other.expect("it is still the newest");
            } else {
                assert!(matches!(outcome, Ok(Attempted { outcome: Outcome::Aborted(_), looked_up: true })));
                assert!(matches!(other, Err(LogError::Fenced { .. })));
            }
        }
    }
}
