//! The thread that keeps hot state. It runs one session after another until the stop.
//!
//! ```text
//!  journal ──► partitions and groups of this process ─┐
//!                                                     ├──► newest of each field ──► Redis, in pipelines
//!  signals of those partitions, from where Redis is ──┘
//!
//!  results of those partitions, from a bounded distance back ──► what is not there yet ──► Redis, in pipelines
//! ```
//!
//! One [`Session`] is one connection. Any error ends it, and the next session begins at the positions stored in Redis.
//! So no state has to be kept, and a slow, dead or emptied Redis costs the engine nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use warptape_eventlog::{EventLog, Record};
use warptape_schemas::journal::PartitionId;
use warptape_schemas::{Describer, decode_journal_entry};

use crate::error::HotError;
use crate::follower::{Followed, Read};
use crate::keys::{Keys, LaneState};
use crate::placements::{Assigned, Placements};
use crate::session::{Session, Tools};
use crate::status::{Connection, HotStatus};
use crate::url::RedisUrl;
use crate::{DRAIN_MAX, HotConfig, NowNs};

/// Longest wait for records, which limits the delay of a stop.
const POLL_WAIT: Duration = Duration::from_millis(100);
/// First wait between two attempts to connect; each further wait is twice as long.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// Longest wait between two attempts to connect.
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// Longest time that a stop waits for a last record, if the log's end is after the last one read.
const LAST_WAIT: Duration = Duration::from_millis(250);

/// The thread's state: its dependencies, and the contents of the journal so far.
pub(super) struct Writer {
    tools: Tools,
    url: RedisUrl,
    /// Next offset and placements so far, by partition of the journal.
    journals: Vec<(i64, Placements)>,
    /// Disconnected when the thread must write everything committed and then end.
    stop: Receiver<()>,
    /// Deadline of the thread's end; `None` until the stop is noticed.
    stop_by: Option<Instant>,
}

impl Writer {
    pub(super) fn new(
        log: Arc<dyn EventLog>,
        config: HotConfig,
        url: RedisUrl,
        status: Arc<HotStatus>,
        stop: Receiver<()>,
        journal_ends: Vec<i64>,
        now_ns: NowNs,
    ) -> Self {
        let keys = Keys::new(config.prefix.clone());
        Self {
            tools: Tools { log, config, keys, status, now_ns, describer: Describer::new() },
            url,
            journals: journal_ends.into_iter().map(|end| (end, Placements::default())).collect(),
            stop,
            stop_by: None,
        }
    }

    /// Keeps hot state until the stop.
    pub(super) fn run(mut self) {
        let mut backoff = BACKOFF_MIN;
        loop {
            let written_before = self.tools.status.figures().written;
            let error = match self.hold_session() {
                Ok(()) => return self.tools.status.change(|figures| figures.connection = Connection::Closed),
                Err(error) => error,
            };
            if self.tools.status.figures().written > written_before {
                backoff = BACKOFF_MIN;
            }
            self.note(&error);
            // After the stop, an emptied Redis gets a second attempt; one that is down does not.
            let was_emptied = matches!(error, HotError::Emptied { .. });
            if self.stop_by.is_some_and(|stop_by| !was_emptied || stop_by <= Instant::now()) {
                return;
            }
            if self.stop.recv_timeout(backoff) == Err(RecvTimeoutError::Disconnected) {
                self.see_stop();
            }
            backoff = (2 * backoff).min(BACKOFF_MAX);
        }
    }

    fn see_stop(&mut self) {
        self.stop_by.get_or_insert_with(|| Instant::now() + DRAIN_MAX);
    }

    /// Records the error that ended a session in the status and the process's log.
    fn note(&self, error: &HotError) {
        let reason = match error {
            HotError::Emptied { .. } => return tracing::warn!("{error}"),
            HotError::Redis { cause, .. } => cause.to_string(),
            other => other.to_string(),
        };
        let is_log = matches!(error, HotError::Log(_));
        self.tools.status.change(|figures| match &mut figures.connection {
            Connection::Down { reason: shown, .. } if !is_log => {
                tracing::debug!("hot state still down: {error}");
                *shown = reason;
            }
            Connection::NoLog { reason: shown, .. } if is_log => {
                tracing::debug!("hot state still waits for the log: {error}");
                *shown = reason;
            }
            _ if is_log => {
                tracing::warn!("hot state waits for the log: {error}");
                figures.connection = Connection::NoLog { since: Instant::now(), reason };
            }
            before => {
                tracing::warn!("hot state down, the pipeline goes on: {error}");
                figures.losses += u64::from(*before == Connection::Up);
                *before = Connection::Down { since: Instant::now(), reason };
            }
        });
    }

    /// Connects and writes until the stop.
    fn hold_session(&mut self) -> Result<(), HotError> {
        let journal_next = self.journals.iter().map(|(next, _)| *next);
        let mut session = Session::begin(&self.tools, &self.url, journal_next)?;
        self.journals.iter_mut().for_each(|(_, placements)| placements.touch_all());
        self.adopt(&mut session)?;
        self.tools.status.change(|figures| {
            if let Connection::Down { since, .. } | Connection::NoLog { since, .. } = figures.connection {
                tracing::warn!(seconds = since.elapsed().as_secs(), "hot state up again");
            } else {
                tracing::info!(url = %self.url, "hot state connected");
            }
            figures.connection = Connection::Up;
        });
        loop {
            if self.stop.try_recv() == Err(TryRecvError::Disconnected) {
                self.see_stop();
            }
            let waits = session.holds_something() || self.has_placements();
            let is_idle = !self.read(&mut session, if waits { Duration::ZERO } else { POLL_WAIT })?;
            if session.is_due(is_idle) || (is_idle && self.has_placements()) {
                self.flush(&mut session)?;
            }
            if session.is_beat_due() {
                self.beat(&mut session, None)?;
            }
            if let Some(stop_by) = self.stop_by
                && ((is_idle && self.is_at_end(&mut session)?) || stop_by <= Instant::now())
            {
                self.flush(&mut session)?;
                return self.beat(&mut session, Some(LaneState::Stopped));
            }
        }
    }

    /// Reads available records. Returns false if none came in time.
    fn read(&mut self, session: &mut Session, timeout: Duration) -> Result<bool, HotError> {
        match session.follower.poll(timeout)? {
            Read::Followed(Followed::Signals, partition, records) => {
                session.take(&self.tools, partition, records);
            }
            Read::Followed(Followed::Results, partition, records) => {
                session.take_results(&self.tools, partition, records);
            }
            Read::Journal(partition, records) => {
                self.take_journal(partition, records);
                self.adopt(session)?;
            }
            Read::Nothing => return Ok(false),
        }
        Ok(true)
    }

    fn take_journal(&mut self, partition: usize, records: Vec<Record>) {
        let (next, placements) = &mut self.journals[partition];
        for record in records {
            *next = record.offset + 1;
            match decode_journal_entry(&record.value) {
                Ok(entry) => placements.push(&entry),
                Err(error) => {
                    let (topic, offset) = (&self.tools.config.journal, record.offset);
                    tracing::warn!(partition, offset, "{topic}: no journal entry: {error}");
                    self.tools.status.change(|figures| figures.unreadable += 1);
                }
            }
        }
    }

    /// Returns the placements of this process. Several journals have some if the process's name moved between journals.
    fn own(&self) -> impl Iterator<Item = &Placements> {
        let node = self.tools.config.node.as_str();
        self.journals.iter().map(|(_, placements)| placements).filter(move |own| own.node() == Some(node))
    }

    fn has_placements(&self) -> bool {
        self.own().any(Placements::has_changed)
    }

    /// Makes the session write this process's partitions.
    fn adopt(&self, session: &mut Session) -> Result<(), HotError> {
        let owned: BTreeMap<PartitionId, Assigned> =
            self.own().flat_map(|placements| placements.assigned().clone()).collect();
        session.adopt(&self.tools, &owned)
    }

    fn flush(&mut self, session: &mut Session) -> Result<(), HotError> {
        let node = self.tools.config.node.as_str();
        let own = self.journals.iter_mut().filter(|(_, placements)| placements.node() == Some(node));
        let changed = own.flat_map(|(_, placements)| placements.take_changed()).collect();
        session.flush(&self.tools, changed)
    }

    /// Writes a heartbeat. `state`, if given, replaces the state of all lanes.
    fn beat(&self, session: &mut Session, state: Option<LaneState>) -> Result<(), HotError> {
        let written_ns = (self.tools.now_ns)();
        let mut lanes: Vec<_> = self.own().flat_map(|placements| placements.lanes(written_ns)).collect();
        lanes.iter_mut().for_each(|(_, lane)| lane.state = state.unwrap_or(lane.state));
        session.beat(&self.tools, lanes)
    }

    /// Returns true if everything committed is read.
    fn is_at_end(&mut self, session: &mut Session) -> Result<bool, HotError> {
        for (partition, (next, _)) in self.journals.iter().enumerate() {
            if *next < session.follower.journal_end(partition)? {
                // The end of a log may be after its last record.
                return Ok(!self.read(session, LAST_WAIT)?);
            }
        }
        Ok(session.is_at_end()? || !self.read(session, LAST_WAIT)?)
    }
}
