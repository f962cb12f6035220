//! Hot state: the latest values of each symbol and the results of risk requests in Redis, for fast queries.
//!
//! Redis is disposable: its contents are derived from the committed log, stamped with offsets, and rebuilt after a
//! loss. A thread beside the engine reads the log like any other reader. So the engine neither waits for Redis nor
//! knows of it, and only committed values are written. With hot state in memory, no thread runs, and each query
//! computes its answer from the log.

mod error;
mod follower;
mod keys;
mod latest;
mod placements;
mod request;
mod results;
mod session;
mod status;
mod store;
mod symbol;
mod url;
mod writer;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warptape_eventlog::{EventLog, LogError};
use warptape_schemas::journal::GroupIndex;
use warptape_stages::Lateness;

pub use error::HotError;
pub use keys::{
    Keys, LATEST, LAYOUT, LaneState, LaneValue, PlacementValue, PositionValue, ResultValue, SignalValue,
    encode, lane_field, placement_field, signal_field,
};
pub use request::{RequestState, UnknownRequest, result_from_log, result_from_redis};
pub use status::{Connection, HotFigures, HotStatus};
pub use store::{HashWrite, RedisStore, ResultWrite, StoredPartition};
pub use symbol::{SymbolState, UnknownSymbol, from_log, from_redis};
pub use url::{HotUrl, RedisUrl, without_password};

use writer::Writer;

/// Longest time that a stop waits until everything committed is written.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Longest time that a stop waits for the thread: the drain, and the thread's last waits for Redis and for a name
/// server.
const STOP_MAX: Duration = Duration::from_secs(15);

/// Settings of the hot state's thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotConfig {
    /// Prefix of every key.
    pub prefix: String,
    /// Name of this process in the journal.
    pub node: String,
    /// Topic of signals.
    pub signals: String,
    /// Topic of risk requests.
    pub requests: String,
    /// Topic of risk results.
    pub results: String,
    /// Time to live of a result, measured from the time of its record.
    pub result_ttl: Duration,
    /// Topic of the journal.
    pub journal: String,
    /// Number of groups per partition, used while there is no journal.
    pub groups_per_partition: u32,
    /// Allowed lateness of ticks, which determines the group of a symbol.
    pub lateness: Lateness,
}

impl HotConfig {
    /// Returns the group of a symbol within its partition of `groups` groups.
    fn group_of(&self, symbol: &str, groups: u32) -> GroupIndex {
        self.lateness.group_of(symbol, groups) as GroupIndex
    }
}

/// A function that returns the time, in nanoseconds since the epoch.
pub type NowNs = Box<dyn Fn() -> i64 + Send>;

/// The thread that keeps hot state in Redis.
pub struct HotState {
    status: Arc<HotStatus>,
    stop: Sender<()>,
    /// Disconnected once the thread has ended.
    ended: Receiver<()>,
}

impl HotState {
    /// Starts the thread. Must be called before the engine starts, because it follows the journal from now on. The
    /// thread writes this process's partitions.
    pub fn start(
        log: Arc<dyn EventLog>,
        config: HotConfig,
        url: RedisUrl,
        now_ns: NowNs,
    ) -> Result<Self, LogError> {
        let journal = log.topic(&config.journal)?;
        let journal_ends =
            journal.map_or(Vec::new(), |info| info.offsets.iter().map(|range| range.next).collect());
        let status = Arc::new(HotStatus::new(&url));
        let log_url = log.url();
        let (stop, stopped) = bounded(0);
        let (runs, ended) = bounded(0);
        let writer = Writer::new(log, config, url, status.clone(), stopped, journal_ends, now_ns);
        let run = move || {
            // Dropped when the thread ends, even by a panic.
            let _runs: Sender<()> = runs;
            writer.run();
        };
        thread::Builder::new().name("hot-state".to_owned()).spawn(run).map_err(|cause| LogError::Limit {
            url: log_url,
            doing: "starting the thread of hot state".to_owned(),
            cause: cause.to_string(),
        })?;
        Ok(Self { status, stop, ended })
    }

    /// Returns the status.
    pub fn status(&self) -> Arc<HotStatus> {
        self.status.clone()
    }

    /// Writes everything committed by now, unless Redis is too slow. Returns the last status.
    pub fn stop(self) -> Arc<HotStatus> {
        drop(self.stop);
        // A thread that hangs in a name server is abandoned; the process ends without it.
        if let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(STOP_MAX) {
            tracing::warn!("hot state did not end within {STOP_MAX:?}");
        }
        self.status
    }
}
