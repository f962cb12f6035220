//! Status of hot state, written by its thread and shown by displays.

use std::fmt;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use indicatif::{HumanCount, HumanDuration};

use crate::url::RedisUrl;

/// State of the connection, and counts of written signals and results.
#[derive(Debug)]
pub struct HotStatus {
    url: String,
    figures: Mutex<HotFigures>,
}

/// The connection and the counts of a [`HotStatus`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HotFigures {
    /// State of the connection.
    pub connection: Connection,
    /// Number of values written to Redis: fields of hashes, and results.
    pub written: u64,
    /// Number of signals and results in the log that were not written at the last check.
    pub behind: u64,
    /// Number of partitions rebuilt from the log's beginning, because Redis had no values or other values for them.
    pub rebuilds: u64,
    /// Number of lost connections.
    pub losses: u64,
    /// Number of records of the log that could not be decoded; they are skipped.
    pub unreadable: u64,
}

/// State of the connection to Redis.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Connection {
    /// No connection was established yet.
    #[default]
    Connecting,
    /// The connection is established.
    Up,
    /// The connection is lost, or could not be established.
    Down {
        /// Start of this state.
        since: Instant,
        /// The reason.
        reason: String,
    },
    /// The log, which is the source of hot state, cannot be read; Redis is not at fault.
    NoLog {
        /// Start of this state.
        since: Instant,
        /// The reason.
        reason: String,
    },
    /// Hot state ended with the process.
    Closed,
}

impl HotStatus {
    pub(super) fn new(url: &RedisUrl) -> Self {
        Self { url: url.to_string(), figures: Mutex::default() }
    }

    /// Returns the current figures.
    pub fn figures(&self) -> HotFigures {
        self.lock().clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut HotFigures)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, HotFigures> {
        self.figures.lock().expect("no thread panics while it holds the lock")
    }
}

impl fmt::Display for HotStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HotFigures { connection, written, behind, rebuilds: _, losses, unreadable } = self.figures();
        write!(f, "{}: ", self.url)?;
        match connection {
            Connection::Connecting => return write!(f, "connecting"),
            Connection::Up | Connection::Closed => write!(f, "{} values written", HumanCount(written))?,
            Connection::Down { since, reason } => {
                let time = HumanDuration(since.elapsed());
                let written = HumanCount(written);
                write!(f, "down for {time} ({reason}); {written} values written, the rest when it is back")?;
                return Ok(());
            }
            Connection::NoLog { since, reason } => {
                let time = HumanDuration(since.elapsed());
                let written = HumanCount(written);
                return write!(f, "waits for the log for {time} ({reason}); {written} values written");
            }
        }
        match behind {
            0 => write!(f, ", up to date")?,
            behind => write!(f, ", {} records behind", HumanCount(behind))?,
        }
        if losses > 0 {
            write!(f, ", connection lost {}×", HumanCount(losses))?;
        }
        if unreadable > 0 {
            write!(f, ", {} records not readable", HumanCount(unreadable))?;
        }
        Ok(())
    }
}
