//! The thread that keeps hot state: reads what is committed, writes what is newest of it.
//!
//! ```text
//!  journal ──► partitions and groups of this process ─┐
//!                                                      ├──► newest per field ──► Redis, in pipelines
//!  signals of those partitions, from where Redis is ──┘
//! ```
//!
//! One session is one connection. Whatever goes wrong ends it; the next begins where Redis then says, so nothing has to
//! be remembered, and a Redis that is slow, dead or emptied costs the engine nothing.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, TryRecvError};
use warptape_eventlog::{EventLog, LogError, Record, TopicPartition};
use warptape_schemas::journal::PartitionId;
use warptape_schemas::{Describer, decode_journal_entry};

use super::HotConfig;
use super::error::HotError;
use super::follower::{Follower, Read, is_of_log, record_hash};
use super::keys::{Keys, LaneState, PositionValue, encode, lane_field, placement_field};
use super::latest::Latest;
use super::placements::{Assigned, Placements};
use super::status::{Connection, HotStatus};
use super::store::{HashWrite, RedisStore, StoredPartition};
use super::url::RedisUrl;
use crate::engine::Clock;

/// Longest wait for records; bounds how late a stop is seen.
const POLL_WAIT: Duration = Duration::from_millis(100);
/// How often a position is written though nothing new came: a sign of life, and how an emptied Redis is noticed.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time that what was read waits for more before it is written, and the same while there is much to catch up.
const HOLD_MAX: Duration = Duration::from_millis(50);
const HOLD_BEHIND_MAX: Duration = Duration::from_secs(1);
/// Signals to catch up that are much.
const BEHIND_MUCH: u64 = 50_000;
/// Fields that may wait to be written.
const FIELDS_MAX: usize = 32_768;
/// First and longest wait between two attempts to connect.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);
/// How long a stop waits for a last record of a log that does not say exactly where it ends.
const LAST_WAIT: Duration = Duration::from_millis(250);

/// What the thread needs and keeps.
pub(super) struct Writer {
    log: Arc<dyn EventLog>,
    config: HotConfig,
    url: RedisUrl,
    keys: Keys,
    status: Arc<HotStatus>,
    clock: Clock,
    /// Disconnected when the thread is to write what is committed and end.
    stop: Receiver<()>,
    /// Set when the stop is seen: no session goes on after it.
    stop_by: Option<Instant>,
    /// By partition of the journal: where to read on, and what it said so far.
    journals: Vec<(i64, Placements)>,
    describer: Describer,
}

/// A partition that is written in a session.
struct Partition {
    assigned: Assigned,
    rebuild: String,
    /// Next signal to read.
    next_offset: i64,
    record_hash: String,
    /// End of the signals as last seen.
    end: i64,
    latest: Latest,
    /// Symbols that are in the index.
    indexed: HashSet<String>,
}

/// One connection, and what was read for it.
struct Session {
    store: RedisStore,
    follower: Follower,
    partitions: BTreeMap<PartitionId, Partition>,
    /// When the oldest of what waits was read.
    waits_since: Option<Instant>,
    beat_at: Instant,
}

impl Writer {
    pub(super) fn new(
        log: Arc<dyn EventLog>,
        config: HotConfig,
        url: RedisUrl,
        status: Arc<HotStatus>,
        stop: Receiver<()>,
        journal_ends: Vec<i64>,
    ) -> Self {
        Self {
            log,
            keys: Keys::new(config.prefix.clone()),
            config,
            url,
            status,
            clock: Clock::start(),
            stop,
            stop_by: None,
            journals: journal_ends.into_iter().map(|end| (end, Placements::default())).collect(),
            describer: Describer::new(),
        }
    }

    /// Keeps hot state until the stop.
    pub(super) fn run(mut self) {
        let mut backoff = BACKOFF_MIN;
        loop {
            let written_before = self.status.figures().written;
            let error = match self.session() {
                Ok(()) => return self.status.change(|figures| figures.connection = Connection::Closed),
                Err(error) => error,
            };
            if self.status.figures().written > written_before {
                backoff = BACKOFF_MIN;
            }
            self.note(&error);
            // At the end there is one attempt, and another where Redis is there but was emptied meanwhile.
            let was_emptied = matches!(error, HotError::Emptied { .. });
            if self.stop_by.is_some_and(|stop_by| !was_emptied || stop_by <= Instant::now()) {
                return;
            }
            if let Err(RecvTimeoutError::Disconnected) = self.stop.recv_timeout(backoff) {
                self.stop_by = Some(Instant::now() + super::DRAIN_MAX);
            }
            backoff = (2 * backoff).min(BACKOFF_MAX);
        }
    }

    /// Shows what ended a session.
    fn note(&self, error: &HotError) {
        if let HotError::Emptied { .. } = error {
            tracing::warn!("{error}");
            return;
        }
        let reason = match error {
            HotError::Redis { cause, .. } => cause.to_string(),
            other => other.to_string(),
        };
        self.status.change(|figures| {
            if let Connection::Down { reason: shown, .. } = &mut figures.connection {
                tracing::debug!("hot state still down: {error}");
                *shown = reason;
            } else {
                tracing::warn!("hot state down, the pipeline goes on: {error}");
                figures.losses += u64::from(figures.connection == Connection::Up);
                figures.connection = Connection::Down { since: Instant::now(), reason };
            }
        });
    }

    /// Connects and writes until the stop.
    fn session(&mut self) -> Result<(), HotError> {
        let mut store = RedisStore::connect(&self.url, self.keys.clone())?;
        store.claim_layout()?;
        let journal_next = self.journals.iter().map(|(next, _)| *next);
        let follower = Follower::open(&*self.log, &self.config.signals, &self.config.journal, journal_next)?;
        let mut session = Session {
            store,
            follower,
            partitions: BTreeMap::new(),
            waits_since: None,
            beat_at: Instant::now(),
        };
        self.journals.iter_mut().for_each(|(_, placements)| placements.touch_all());
        self.adopt(&mut session)?;
        self.status.change(|figures| {
            if let Connection::Down { since, .. } = figures.connection {
                tracing::warn!(seconds = since.elapsed().as_secs(), "hot state up again");
            } else {
                tracing::info!(url = %self.url, "hot state connected");
            }
            figures.connection = Connection::Up;
        });
        loop {
            self.look_for_stop();
            let waits = session.waits_since.is_some() || self.has_placements();
            let wait = if waits { Duration::ZERO } else { POLL_WAIT };
            let is_idle = match session.follower.poll(wait)? {
                Read::Signals(partition, records) => {
                    self.take_signals(&mut session, partition, records);
                    false
                }
                Read::Journal(partition, records) => {
                    self.take_journal(&mut session, partition, records)?;
                    false
                }
                Read::Nothing => true,
            };
            if session.is_due(is_idle) || (is_idle && self.has_placements()) {
                self.flush(&mut session)?;
            }
            if session.beat_at <= Instant::now() {
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

    fn look_for_stop(&mut self) {
        if self.stop_by.is_none() && self.stop.try_recv() == Err(TryRecvError::Disconnected) {
            self.stop_by = Some(Instant::now() + super::DRAIN_MAX);
        }
    }

    /// The journals of this process: one, but for a name that moved from one to another.
    fn own(&self) -> impl Iterator<Item = &Placements> {
        let own = |placements: &&Placements| placements.node() == Some(self.config.node.as_str());
        self.journals.iter().map(|(_, placements)| placements).filter(own)
    }

    fn has_placements(&self) -> bool {
        self.own().any(Placements::has_changed)
    }

    /// Writes the partitions of this process from now on, and no others.
    fn adopt(&mut self, session: &mut Session) -> Result<(), HotError> {
        let owned: BTreeMap<PartitionId, Assigned> =
            self.own().flat_map(|placements| placements.assigned().clone()).collect();
        for partition in session.partitions.keys().copied().collect::<Vec<_>>() {
            if !owned.contains_key(&partition) {
                session.follower.leave(partition)?;
                session.partitions.remove(&partition);
            }
        }
        for (partition, assigned) in owned {
            match session.partitions.get_mut(&partition) {
                Some(known) => known.assigned = assigned,
                None => self.begin(session, partition, assigned)?,
            }
        }
        Ok(())
    }

    /// Begins with a partition where Redis is with it, if what it has comes from this log.
    fn begin(
        &mut self,
        session: &mut Session,
        partition: PartitionId,
        assigned: Assigned,
    ) -> Result<(), HotError> {
        let source = TopicPartition { topic: self.config.signals.clone(), partition };
        let range = session.follower.range(partition)?;
        let stored = session.store.partition(partition)?;
        let (rebuild, next_offset, record_hash) = match stored {
            Some(StoredPartition { rebuild, position: Some(position) })
                if is_of_log(&*self.log, &source, range, &position)? =>
            {
                tracing::info!(
                    partition,
                    next_offset = position.next_offset,
                    end = range.next,
                    "hot state goes on"
                );
                (rebuild, position.next_offset.max(range.first), position.record_hash)
            }
            stored => {
                let other_log = stored.is_some_and(|stored| stored.position.is_some());
                tracing::info!(
                    partition,
                    other_log,
                    signals = range.next - range.first,
                    "hot state is rebuilt"
                );
                let rebuild = format!("{:016x}", RandomState::new().hash_one(self.clock.now_ns()));
                let position = self.position(range.first, range.next, String::new());
                session.store.renew(partition, &rebuild, &position)?;
                self.status.change(|figures| figures.rebuilds += 1);
                (rebuild, range.first, String::new())
            }
        };
        session.follower.follow(partition, next_offset)?;
        let known = Partition {
            assigned,
            rebuild,
            next_offset,
            record_hash,
            end: range.next,
            latest: Latest::default(),
            indexed: HashSet::new(),
        };
        session.partitions.insert(partition, known);
        Ok(())
    }

    fn position(&self, next_offset: i64, end: i64, record_hash: String) -> PositionValue {
        PositionValue {
            next_offset,
            written_ns: self.clock.now_ns(),
            behind: (end - next_offset).max(0),
            node: self.config.node.clone(),
            record_hash,
        }
    }

    fn take_signals(&self, session: &mut Session, partition: PartitionId, records: Vec<Record>) {
        // Records of a partition that was left may still be on their way.
        let Some(known) = session.partitions.get_mut(&partition) else { return };
        let Some(last) = records.last() else { return };
        known.next_offset = last.offset + 1;
        known.end = known.end.max(known.next_offset);
        known.record_hash = record_hash(last);
        for record in records {
            let offset = record.offset;
            if let Err(error) = known.latest.push(record) {
                tracing::warn!(partition, offset, "{}: no signal: {error}", self.config.signals);
                self.status.change(|figures| figures.unreadable += 1);
            }
        }
        session.waits_since.get_or_insert_with(Instant::now);
    }

    fn take_journal(
        &mut self,
        session: &mut Session,
        partition: usize,
        records: Vec<Record>,
    ) -> Result<(), HotError> {
        let (next, placements) = &mut self.journals[partition];
        for record in records {
            *next = record.offset + 1;
            match decode_journal_entry(&record.value) {
                Ok(entry) => placements.push(&entry),
                Err(error) => {
                    tracing::warn!(
                        partition,
                        offset = record.offset,
                        "{}: no journal entry: {error}",
                        self.config.journal
                    );
                    self.status.change(|figures| figures.unreadable += 1);
                }
            }
        }
        self.adopt(session)
    }

    /// Writes what waits, then how far that is.
    fn flush(&mut self, session: &mut Session) -> Result<(), HotError> {
        session.waits_since = None;
        let mut written = self.flush_placements(session)?;
        let Session { store, partitions, .. } = session;
        for (&partition, known) in partitions.iter_mut().filter(|(_, known)| known.latest.len() > 0) {
            let symbols = known.latest.take(&self.describer, partition, known.assigned.groups);
            let new: Vec<&str> = symbols
                .iter()
                .map(|(symbol, _)| symbol.as_str())
                .filter(|symbol| !known.indexed.contains(*symbol))
                .collect();
            store.add_symbols(partition, &new)?;
            known.indexed.extend(new.into_iter().map(str::to_owned));
            let writes: Vec<HashWrite> = symbols
                .into_iter()
                .map(|(symbol, fields)| HashWrite {
                    key: self.keys.symbol(&symbol),
                    rebuild: Some((partition, known.rebuild.clone())),
                    fields: fields.into_iter().map(|(field, value)| (field, encode(&value))).collect(),
                })
                .collect();
            written += store.write(&writes)?;
            let position = self.position(known.next_offset, known.end, known.record_hash.clone());
            store.write(&[self.position_write(partition, known, &position)])?;
        }
        let behind = session.behind();
        self.status.change(|figures| {
            figures.written += written;
            figures.behind = behind;
        });
        Ok(())
    }

    fn flush_placements(&mut self, session: &mut Session) -> Result<u64, HotError> {
        let node = self.config.node.as_str();
        let own = self.journals.iter_mut().filter(|(_, placements)| placements.node() == Some(node));
        let changed: Vec<_> = own.flat_map(|(_, placements)| placements.take_changed()).collect();
        if changed.is_empty() {
            return Ok(0);
        }
        let field = |(partition, group, value)| (placement_field(partition, group), encode(&value));
        let fields = changed.into_iter().map(field).collect();
        session.store.write(&[HashWrite { key: self.keys.placements(), rebuild: None, fields }])
    }

    fn position_write(
        &self,
        partition: PartitionId,
        known: &Partition,
        position: &PositionValue,
    ) -> HashWrite {
        HashWrite {
            key: self.keys.partition(partition),
            rebuild: Some((partition, known.rebuild.clone())),
            fields: vec![("position".to_owned(), encode(position))],
        }
    }

    /// A sign of life: positions and lanes as they are now.
    fn beat(&mut self, session: &mut Session, state: Option<LaneState>) -> Result<(), HotError> {
        session.beat_at = Instant::now() + BEAT_INTERVAL;
        let mut writes = Vec::new();
        let Session { follower, partitions, .. } = &mut *session;
        for (&partition, known) in partitions.iter_mut() {
            known.end = follower.range(partition)?.next.max(known.next_offset);
            // What waits is not written, so the position is only told when nothing does.
            if known.latest.len() == 0 {
                let position = self.position(known.next_offset, known.end, known.record_hash.clone());
                writes.push(self.position_write(partition, known, &position));
            }
        }
        let written_ns = self.clock.now_ns();
        let node = &self.config.node;
        let lanes: Vec<_> = self.own().flat_map(|placements| placements.lanes(written_ns)).collect();
        let fields: Vec<_> = lanes
            .into_iter()
            .map(|(lane, mut value)| {
                value.state = state.unwrap_or(value.state);
                (lane_field(node, lane), encode(&value))
            })
            .collect();
        if !fields.is_empty() {
            writes.push(HashWrite { key: self.keys.lanes(), rebuild: None, fields });
        }
        session.store.write(&writes)?;
        let behind = session.behind();
        self.status.change(|figures| figures.behind = behind);
        Ok(())
    }

    /// Is everything read that is committed?
    fn is_at_end(&mut self, session: &mut Session) -> Result<bool, LogError> {
        let mut is_at_end = true;
        for (partition, (next, _)) in self.journals.iter().enumerate() {
            is_at_end &= *next >= session.follower.journal_end(partition)?;
        }
        for partition in session.partitions.keys().copied().collect::<Vec<_>>() {
            let end = session.follower.range(partition)?.next;
            is_at_end &= session.partitions[&partition].next_offset >= end;
        }
        if is_at_end {
            return Ok(true);
        }
        // A log's end may lie behind its last record.
        match session.follower.poll(LAST_WAIT)? {
            Read::Nothing => Ok(true),
            Read::Signals(partition, records) => {
                self.take_signals(session, partition, records);
                Ok(false)
            }
            Read::Journal(partition, records) => {
                self.take_journal(session, partition, records).map(|()| false).or(Ok(false))
            }
        }
    }
}

impl Session {
    /// Is it time to write what waits?
    fn is_due(&self, is_idle: bool) -> bool {
        let Some(since) = self.waits_since else { return false };
        let fields: usize = self.partitions.values().map(|known| known.latest.len()).sum();
        let hold = if self.behind() > BEHIND_MUCH { HOLD_BEHIND_MAX } else { HOLD_MAX };
        is_idle || fields >= FIELDS_MAX || since.elapsed() >= hold
    }

    /// Signals that are committed and not read, as last seen.
    fn behind(&self) -> u64 {
        self.partitions.values().map(|known| (known.end - known.next_offset).max(0) as u64).sum()
    }
}
