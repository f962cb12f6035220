//! One connection to Redis, and the readers of the log for it. Each partition is read from the position stored in
//! Redis, and written to Redis as it grows.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, LogError, Record, TopicPartition};
use warptape_schemas::Describer;
use warptape_schemas::journal::{GroupIndex, LaneId, PartitionId};

use crate::error::HotError;
use crate::follower::{Followed, Follower, is_of_log, record_hash};
use crate::keys::{Keys, LaneValue, PlacementValue, PositionValue, encode, lane_field, placement_field};
use crate::latest::Latest;
use crate::placements::Assigned;
use crate::results::{NS_PER_MS, Results, answer, expires_in_ms};
use crate::status::HotStatus;
use crate::store::{HashWrite, RedisStore, ResultWrite, StoredPartition};
use crate::url::RedisUrl;
use crate::{HotConfig, NowNs};

/// Interval at which positions and lanes are written even if nothing changed: a heartbeat, which also detects an
/// emptied Redis.
const BEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time for which read values wait for others before they are written.
const HOLD_MAX: Duration = Duration::from_millis(50);
/// Longest such wait while many records are still unread: newer values will replace most of the waiting ones.
const HOLD_BEHIND_MAX: Duration = Duration::from_secs(1);
/// Number of unread records from which values may wait longer.
const BEHIND_MUCH: u64 = 50_000;
/// Greatest number of fields and results waiting to be written.
const VALUES_MAX: usize = 32_768;
/// Greatest size of results waiting to be written, in bytes.
const RESULT_BYTES_MAX: usize = 8 << 20;

/// Dependencies that all sessions share.
pub(super) struct Tools {
    pub(super) log: Arc<dyn EventLog>,
    pub(super) config: HotConfig,
    pub(super) keys: Keys,
    pub(super) status: Arc<HotStatus>,
    /// Returns the time, in nanoseconds since the epoch.
    pub(super) now_ns: NowNs,
    pub(super) describer: Describer,
}

/// A session with Redis, as the module's page describes.
pub(super) struct Session {
    pub(super) follower: Follower,
    store: RedisStore,
    partitions: BTreeMap<PartitionId, Partition>,
    /// Time at which the oldest waiting value was read; `None` if no value waits.
    holds_since: Option<Instant>,
    beat_at: Instant,
    began_at: Instant,
    /// True if the session has written everything at least once.
    has_caught_up: bool,
}

/// A partition that this process writes.
struct Partition {
    assigned: Assigned,
    /// Name of the rebuild in Redis to which its values belong.
    rebuild: String,
    /// Next signal to read.
    next_offset: i64,
    /// Hash of the record before `next_offset`.
    record_hash: String,
    /// End of the signals when they were last checked.
    end: i64,
    latest: Latest,
    /// Symbols already in the partition's index.
    indexed: HashSet<String>,
    results: Results,
}

impl Session {
    /// Connects, and starts to read the journal at these offsets.
    pub(super) fn begin(
        tools: &Tools,
        url: &RedisUrl,
        journal_next: impl Iterator<Item = i64>,
    ) -> Result<Self, HotError> {
        let mut store = RedisStore::connect(url, tools.keys.clone())?;
        store.claim_layout()?;
        let follower = Follower::open(&*tools.log, &tools.config, journal_next)?;
        let now = Instant::now();
        Ok(Self {
            follower,
            store,
            partitions: BTreeMap::new(),
            holds_since: None,
            beat_at: now,
            began_at: now,
            has_caught_up: false,
        })
    }

    /// Sets the partitions that are written from now on.
    pub(super) fn adopt(
        &mut self,
        tools: &Tools,
        owned: &BTreeMap<PartitionId, Assigned>,
    ) -> Result<(), HotError> {
        let left: Vec<PartitionId> =
            self.partitions.keys().filter(|partition| !owned.contains_key(partition)).copied().collect();
        for partition in left {
            self.follower.leave(partition)?;
            self.partitions.remove(&partition);
        }
        for (&partition, &assigned) in owned {
            match self.partitions.get_mut(&partition) {
                Some(known) => known.assigned = assigned,
                None => self.begin_partition(tools, partition, assigned)?,
            }
        }
        Ok(())
    }

    /// Begins a partition at the position in Redis if the values there come from this log; otherwise rebuilds it.
    fn begin_partition(
        &mut self,
        tools: &Tools,
        partition: PartitionId,
        assigned: Assigned,
    ) -> Result<(), HotError> {
        let source = TopicPartition { topic: tools.config.signals.clone(), partition };
        let range = self.follower.range(Followed::Signals, partition)?;
        let (rebuild, next_offset, record_hash) = match self.store.partition(partition)? {
            Some(StoredPartition { rebuild, position: Some(position) })
                if is_of_log(&*tools.log, &source, range, &position)? =>
            {
                let next_offset = position.next_offset.max(range.first);
                tracing::info!(partition, next_offset, end = range.next, "hot state goes on");
                (rebuild, next_offset, position.record_hash)
            }
            stored => {
                let other_log = stored.is_some_and(|stored| stored.position.is_some());
                tracing::info!(
                    partition,
                    other_log,
                    signals = range.next - range.first,
                    "hot state is rebuilt"
                );
                let rebuild = format!("{:016x}", RandomState::new().hash_one((tools.now_ns)()));
                let position = tools.position(range.first, range.next, "");
                self.store.renew(partition, &rebuild, &position)?;
                tools.status.change(|figures| figures.rebuilds += 1);
                (rebuild, range.first, String::new())
            }
        };
        self.follower.follow(Followed::Signals, partition, next_offset)?;
        let results = Results::new(self.follower.range(Followed::Results, partition)?);
        self.follower.follow(Followed::Results, partition, results.next_offset)?;
        let known = Partition {
            assigned,
            rebuild,
            next_offset,
            record_hash,
            end: range.next,
            latest: Latest::default(),
            indexed: HashSet::new(),
            results,
        };
        self.partitions.insert(partition, known);
        Ok(())
    }

    /// Adds signals read from the log.
    pub(super) fn take(&mut self, tools: &Tools, partition: PartitionId, records: Vec<Record>) {
        // Records of a released partition may still arrive.
        let Some(known) = self.partitions.get_mut(&partition) else { return };
        let Some(last) = records.last() else { return };
        known.next_offset = last.offset + 1;
        known.record_hash = record_hash(last);
        known.end = known.end.max(known.next_offset);
        for record in records {
            let offset = record.offset;
            if let Err(error) = known.latest.push(record) {
                tracing::warn!(partition, offset, "{}: no signal: {error}", tools.config.signals);
                tools.status.change(|figures| figures.unreadable += 1);
            }
        }
        self.holds_since.get_or_insert_with(Instant::now);
    }

    /// Adds results read from the log.
    pub(super) fn take_results(&mut self, tools: &Tools, partition: PartitionId, records: Vec<Record>) {
        let Some(known) = self.partitions.get_mut(&partition) else { return };
        known.results.push(records, (tools.now_ns)(), tools.config.result_ttl);
        if known.results.len() > 0 {
            self.holds_since.get_or_insert_with(Instant::now);
        }
    }

    /// Returns true if values wait to be written.
    pub(super) fn holds_something(&self) -> bool {
        self.holds_since.is_some()
    }

    /// Returns true if waiting values are due.
    pub(super) fn is_due(&self, is_idle: bool) -> bool {
        let Some(since) = self.holds_since else { return false };
        let partitions = self.partitions.values();
        let values: usize = partitions.clone().map(|known| known.latest.len() + known.results.len()).sum();
        let result_bytes: usize = partitions.map(|known| known.results.bytes()).sum();
        let is_full = values >= VALUES_MAX || result_bytes >= RESULT_BYTES_MAX;
        let hold = if self.behind() > BEHIND_MUCH { HOLD_BEHIND_MAX } else { HOLD_MAX };
        is_idle || is_full || since.elapsed() >= hold
    }

    /// Writes placements and waiting values, followed by the positions.
    pub(super) fn flush(
        &mut self,
        tools: &Tools,
        placements: Vec<(PartitionId, GroupIndex, PlacementValue)>,
    ) -> Result<(), HotError> {
        self.holds_since = None;
        let mut written = self.write_placements(tools, placements)?;
        let Self { store, partitions, .. } = self;
        for (&partition, known) in partitions.iter_mut().filter(|(_, known)| known.latest.len() > 0) {
            let group_of = |symbol: &str| tools.config.group_of(symbol, known.assigned.groups);
            let symbols = known.latest.take(&tools.describer, partition, group_of);
            let names = symbols.iter().map(|(symbol, _)| symbol.as_str());
            let new: Vec<&str> = names.filter(|symbol| !known.indexed.contains(*symbol)).collect();
            store.add_symbols(partition, &new)?;
            known.indexed.extend(new.into_iter().map(str::to_owned));
            let writes: Vec<HashWrite> = symbols
                .into_iter()
                .map(|(symbol, fields)| HashWrite {
                    key: tools.keys.symbol(&symbol),
                    rebuild: Some((partition, known.rebuild.clone())),
                    fields: fields.into_iter().map(|(field, value)| (field, encode(&value))).collect(),
                })
                .collect();
            written += store.write(&writes)?;
            // The position is written last, because its readers rely on everything before it.
            store.write(&[known.position_write(tools, partition)])?;
        }
        for (&partition, known) in partitions.iter_mut().filter(|(_, known)| known.results.len() > 0) {
            let now_ns = (tools.now_ns)();
            let writes = result_writes(tools, partition, now_ns, known.results.take());
            written += store.write_results(partition, now_ns / NS_PER_MS, &writes)?;
        }
        tools.status.change(|figures| figures.written += written);
        self.tell_behind(tools);
        Ok(())
    }

    fn write_placements(
        &mut self,
        tools: &Tools,
        placements: Vec<(PartitionId, GroupIndex, PlacementValue)>,
    ) -> Result<u64, HotError> {
        if placements.is_empty() {
            return Ok(0);
        }
        let field = |(partition, group, value)| (placement_field(partition, group), encode(&value));
        let fields = placements.into_iter().map(field).collect();
        self.store.write(&[HashWrite { key: tools.keys.placements(), rebuild: None, fields }])
    }

    /// Returns true if a heartbeat is due.
    pub(super) fn is_beat_due(&self) -> bool {
        self.beat_at <= Instant::now()
    }

    /// Writes a heartbeat: positions, and the current state of lanes.
    pub(super) fn beat(&mut self, tools: &Tools, lanes: Vec<(LaneId, LaneValue)>) -> Result<(), HotError> {
        self.beat_at = Instant::now() + BEAT_INTERVAL;
        self.store.check_types(&self.partitions.keys().copied().collect::<Vec<_>>())?;
        let mut writes = Vec::new();
        let Self { follower, partitions, .. } = &mut *self;
        for (&partition, known) in partitions.iter_mut() {
            known.end = end_seen(follower, Followed::Signals, partition, known.next_offset)?;
            let results = &mut known.results;
            results.end = end_seen(follower, Followed::Results, partition, results.next_offset)?;
            // A partition with waiting values is not yet written up to its position.
            if known.latest.len() == 0 {
                writes.push(known.position_write(tools, partition));
            }
        }
        if !lanes.is_empty() {
            let node = &tools.config.node;
            let fields =
                lanes.into_iter().map(|(lane, value)| (lane_field(node, lane), encode(&value))).collect();
            writes.push(HashWrite { key: tools.keys.lanes(), rebuild: None, fields });
        }
        self.store.write(&writes)?;
        self.tell_behind(tools);
        Ok(())
    }

    fn tell_behind(&mut self, tools: &Tools) {
        let behind = self.behind();
        tools.status.change(|figures| figures.behind = behind);
        if behind == 0 && !self.partitions.is_empty() && !self.has_caught_up {
            self.has_caught_up = true;
            tracing::info!(milliseconds = self.began_at.elapsed().as_millis(), "hot state is up to date");
        }
    }

    /// Returns true if all committed signals and results are read.
    pub(super) fn is_at_end(&mut self) -> Result<bool, HotError> {
        for &partition in self.partitions.keys() {
            for topic in [Followed::Signals, Followed::Results] {
                let end = self.follower.range(topic, partition)?.next;
                if !self.follower.has_reached(topic, partition, end)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the number of committed signals and results that were unread at the last check.
    fn behind(&self) -> u64 {
        let between = |next_offset: i64, end: i64| (end - next_offset).max(0) as u64;
        let behind = |known: &Partition| {
            between(known.next_offset, known.end) + between(known.results.next_offset, known.results.end)
        };
        self.partitions.values().map(behind).sum()
    }
}

/// Returns the end of a partition. If it is read to its end, this is the offset after its last record.
fn end_seen(
    follower: &mut Follower,
    topic: Followed,
    partition: PartitionId,
    next_offset: i64,
) -> Result<i64, LogError> {
    let end = follower.range(topic, partition)?.next;
    let is_at_end = follower.has_reached(topic, partition, end)?;
    Ok(if is_at_end { next_offset } else { end.max(next_offset) })
}

/// Returns the writes for these results.
fn result_writes(
    tools: &Tools,
    partition: PartitionId,
    now_ns: i64,
    records: Vec<Record>,
) -> Vec<ResultWrite> {
    let mut writes = Vec::with_capacity(records.len());
    for record in records {
        let Some(expires_in_ms) = expires_in_ms(&record, now_ns, tools.config.result_ttl) else { continue };
        match answer(&tools.describer, partition, &record) {
            Ok(Some((request_id, value))) => {
                writes.push(ResultWrite { request_id, value: encode(&value), expires_in_ms });
            }
            Ok(None) => {}
            Err(error) => {
                let (topic, offset) = (&tools.config.results, record.offset);
                tracing::warn!(partition, offset, "{topic}: no result: {error}");
                tools.status.change(|figures| figures.unreadable += 1);
            }
        }
    }
    writes
}

impl Partition {
    fn position_write(&self, tools: &Tools, partition: PartitionId) -> HashWrite {
        let position = tools.position(self.next_offset, self.end, &self.record_hash);
        HashWrite {
            key: tools.keys.partition(partition),
            rebuild: Some((partition, self.rebuild.clone())),
            fields: vec![("position".to_owned(), encode(&position))],
        }
    }
}

impl Tools {
    fn position(&self, next_offset: i64, end: i64, record_hash: &str) -> PositionValue {
        PositionValue {
            next_offset,
            written_ns: (self.now_ns)(),
            behind: (end - next_offset).max(0),
            node: self.config.node.clone(),
            record_hash: record_hash.to_owned(),
        }
    }
}
