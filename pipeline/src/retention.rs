//! Retention on the embedded log: a thread removes the oldest records beyond the configured ages and sizes. Kafka's
//! brokers do this themselves.
//!
//! Records that a restart needs stay, whatever the limits. These are ticks from the last committed snapshot on, risk
//! requests without an answer, and the journal from its newest start or checkpoint on. Snapshots are compacted, and
//! operators' commands are few, so both are kept. The engine's thread writes removals to the lifecycle topic.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use indicatif::BinaryBytes;
use warptape_eventlog::sqlite::{Keep, Trimmed, Trimmer};
use warptape_eventlog::{EventLog, LogError, SqliteLog, TopicPartition};
use warptape_replay::iso;

use crate::clock::Clock;
use crate::logging::NOTICE;
use crate::runtime::{EngineView, Progress, needed_from};
use crate::settings::Settings;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(2);
/// Pause between two removals, in which others may commit.
const PAUSE: Duration = Duration::from_millis(1);
/// Time span over which the growth of the log is measured, in ns, and the least one.
const GROWTH_NS_MAX: i64 = 600_000_000_000;
const GROWTH_NS_MIN: i64 = 60_000_000_000;
/// A disk that will be full within this time is reported, in seconds: a week.
const FULL_S_MAX: f64 = 7.0 * 86_400.0;
/// Time between two reports of such a disk, in ns: six hours.
const FULL_REPORT_NS: i64 = 6 * 3_600_000_000_000;

/// Records of a topic that have to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// Ticks that the last snapshot does not contain.
    Ticks,
    /// Requests without an answer.
    Requests,
    /// Entries that a restart and a replay begin with.
    Journal,
    /// The newest records.
    Outputs,
}

/// The thread that removes old records, until this is dropped.
pub struct Retention {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Retention {
    /// Starts the thread. A process that processes the log reports its progress to `progress`.
    ///
    /// # Errors
    /// The log cannot be read, or the system cannot start a thread.
    pub fn start(
        log: SqliteLog,
        settings: &Settings,
        progress: Arc<Progress>,
        clock: Clock,
    ) -> Result<Self, RetentionError> {
        let (stop, stopped) = bounded(0);
        let keeper = Keeper::new(log, settings, progress, clock, stopped)?;
        let thread = thread::Builder::new().name("retention".to_owned()).spawn(move || keeper.run())?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Retention {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic was reported when it happened.
            drop(thread.join());
        }
    }
}

/// Error at the start of the thread that removes old records.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The system cannot start a thread.
    #[error(
        "the system cannot start a thread: raise the limits on memory (ulimit -v) and on processes (ulimit -u)"
    )]
    Thread(#[from] io::Error),
}

/// A topic with its limits.
struct Kept {
    /// Key of its limits in the configuration.
    key: &'static str,
    topic: String,
    age_max: Option<Duration>,
    bytes_max: Option<u64>,
    needs: Needs,
    trimmer: Trimmer,
    /// True once its first removal was reported to the operator.
    is_told: bool,
    growth: Growth,
}

struct Keeper {
    log: SqliteLog,
    group: String,
    folder: Option<PathBuf>,
    topics: Vec<Kept>,
    progress: Arc<Progress>,
    clock: Clock,
    stopped: Receiver<()>,
    snapshots: Snapshots,
    full_told_ns: Option<i64>,
    /// The last reported failure.
    failure: Option<String>,
}

impl Keeper {
    fn new(
        log: SqliteLog,
        settings: &Settings,
        progress: Arc<Progress>,
        clock: Clock,
        stopped: Receiver<()>,
    ) -> Result<Self, LogError> {
        let (ages, sizes, names) = (&settings.log.kept_for, &settings.log.kept_bytes, &settings.topics.names);
        let limits = [
            ("ticks", &names.ticks, ages.ticks, sizes.ticks, Needs::Ticks),
            ("signals", &names.signals, ages.signals, sizes.signals, Needs::Outputs),
            ("journal", &names.journal, ages.journal, sizes.journal, Needs::Journal),
            ("late", &names.late, ages.late, sizes.late, Needs::Outputs),
            ("dead_letter", &names.dead_letter, ages.dead_letter, sizes.dead_letter, Needs::Outputs),
            ("lifecycle", &names.lifecycle, ages.lifecycle, sizes.lifecycle, Needs::Outputs),
            ("risk_requests", &names.risk_requests, ages.risk_requests, sizes.risk_requests, Needs::Requests),
            ("risk_results", &names.risk_results, ages.risk_results, sizes.risk_results, Needs::Outputs),
        ];
        let kept = |(key, topic, age_max, bytes_max, needs): (_, &String, _, _, _)| {
            let (topic, trimmer) = (topic.clone(), log.trimmer(topic)?);
            Ok(Kept {
                key,
                topic,
                age_max,
                bytes_max,
                needs,
                trimmer,
                is_told: false,
                growth: Growth::default(),
            })
        };
        let topics = limits.into_iter().map(kept).collect::<Result<_, LogError>>()?;
        Ok(Self {
            log,
            group: settings.engine.group.clone(),
            folder: settings.log_folder(),
            topics,
            progress,
            clock,
            stopped,
            snapshots: Snapshots::default(),
            full_told_ns: None,
            failure: None,
        })
    }

    fn run(mut self) {
        while !self.is_stopped(INTERVAL) {
            self.snapshots.see(&self.progress.engine());
            let failure = self.round().err().map(|error| error.to_string());
            if failure.is_some() && failure != self.failure {
                tracing::warn!(error = failure, "old records are not removed");
            }
            self.failure = failure;
        }
    }

    /// Waits; returns true if the thread is to end.
    fn is_stopped(&self, wait: Duration) -> bool {
        self.stopped.recv_timeout(wait).is_err_and(|error| error.is_disconnected())
    }

    fn round(&mut self) -> Result<(), LogError> {
        let now_ns = self.clock.now_ns();
        for index in 0..self.topics.len() {
            while !self.topics[index].trimmer.count()? {
                if self.is_stopped(Duration::ZERO) {
                    return Ok(());
                }
            }
            let kept = &mut self.topics[index];
            kept.growth.add(now_ns, kept.trimmer.bytes());
            let age_ns = |age: Duration| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
            let keep = Keep {
                since_ns: kept.age_max.map(|age_max| now_ns.saturating_sub(age_ns(age_max))),
                bytes_max: kept.bytes_max,
            };
            if kept.trimmer.is_due(&keep)? {
                let keep_from = self.keep_from(index)?;
                self.trim(index, &keep, &keep_from)?;
            }
        }
        self.look_at_disk(now_ns);
        Ok(())
    }

    fn trim(&mut self, index: usize, keep: &Keep, keep_from: &[i64]) -> Result<(), LogError> {
        loop {
            let kept = &mut self.topics[index];
            let removed = self.progress.removing(|removals| {
                let removed = kept.trimmer.trim(keep, keep_from)?;
                if removed.records > 0 {
                    let begins = begins(&self.log, &kept.topic, kept.trimmer.partitions());
                    let begins = begins.unwrap_or_else(|error| format!("(not known: {error})"));
                    removals.add(&kept.topic, removed.records, removed.bytes, begins);
                }
                Ok::<_, LogError>(removed)
            });
            let Trimmed { records, bytes } = removed.transpose()?.unwrap_or_default();
            if records == 0 {
                return Ok(());
            }
            kept.growth.remove(bytes);
            tracing::debug!(topic = kept.topic, records, bytes, "the oldest records were removed");
            if !kept.is_told {
                kept.is_told = true;
                tracing::info!(
                    target: NOTICE,
                    "{}: the oldest records are removed from now on, as log.retention_hours.{} and log.retention_mib.{} say",
                    kept.topic,
                    kept.key,
                    kept.key,
                );
            }
            if self.is_stopped(PAUSE) {
                return Ok(());
            }
        }
    }

    /// Returns the offset in each partition of a topic from which on records have to stay.
    fn keep_from(&self, index: usize) -> Result<Vec<i64>, LogError> {
        let Kept { topic, needs, trimmer, .. } = &self.topics[index];
        let of_partition = |partition: i32| {
            Ok(match needs {
                Needs::Ticks => self.snapshots.of(partition),
                Needs::Requests => {
                    let place = TopicPartition { topic: topic.clone(), partition };
                    self.log.committed(&self.group, &place)?.unwrap_or(0)
                }
                Needs::Journal => needed_from(&self.log, topic, partition)?.unwrap_or(0),
                Needs::Outputs => i64::MAX,
            })
        };
        (0..trimmer.partitions()).map(of_partition).collect()
    }

    /// Warns if the disk will be full before the limits end the growth of the log.
    fn look_at_disk(&mut self, now_ns: i64) {
        let is_told = self.full_told_ns.is_some_and(|told_ns| now_ns - told_ns < FULL_REPORT_NS);
        let Some(folder) = self.folder.as_deref().filter(|_| !is_told) else { return };
        let Ok(stat) = rustix::fs::statvfs(folder) else { return };
        let free = stat.f_bavail * stat.f_frsize;
        let growing: Option<Vec<_>> = self.topics.iter().map(Kept::growing).collect();
        let Some(full_s) = growing.and_then(|growing| full_after_s(free, &growing)) else { return };
        if full_s > FULL_S_MAX {
            return;
        }
        self.full_told_ns = Some(now_ns);
        let at = iso(now_ns.saturating_add((full_s * 1e9) as i64));
        let largest = self.topics.iter().max_by_key(|kept| kept.trimmer.bytes());
        tracing::warn!(
            target: NOTICE,
            "the disk of the log will be full about {at} at the present rate: {} are free, and {} has {}. Free some space, or \
             lower log.retention_mib",
            BinaryBytes(free),
            largest.map_or("no topic", |kept| &kept.topic),
            BinaryBytes(largest.map_or(0, |kept| kept.trimmer.bytes())),
        );
    }
}

/// Says where the partitions of a topic begin.
fn begins(log: &SqliteLog, topic: &str, partitions: i32) -> Result<String, LogError> {
    let begin = |partition: i32| {
        let place = TopicPartition { topic: topic.to_owned(), partition };
        Ok(format!("{partition} at {}", log.offsets(&place)?.first))
    };
    Ok((0..partitions).map(begin).collect::<Result<Vec<_>, LogError>>()?.join(", "))
}

impl Kept {
    /// Returns the growth of the topic; `None` if it is not known yet.
    fn growing(&self) -> Option<Growing> {
        let room = self.bytes_max.map(|bytes_max| bytes_max.saturating_sub(self.trimmer.bytes()));
        Some(Growing { bytes_per_s: self.growth.bytes_per_s()?, room })
    }
}

/// The growth of a topic.
#[derive(Clone, Copy, Debug)]
struct Growing {
    bytes_per_s: f64,
    /// Bytes by which it may still grow; `None` without a limit.
    room: Option<u64>,
}

/// Returns the time until a disk is full, in seconds; `None` if the topics end to grow before that.
fn full_after_s(free: u64, growing: &[Growing]) -> Option<f64> {
    // Topics reach their limits one after the other; between two of these times, the disk fills at an even rate.
    let mut ends: Vec<(f64, f64)> = growing
        .iter()
        .filter(|of| of.bytes_per_s > 0.0)
        .map(|of| (of.room.map_or(f64::INFINITY, |room| room as f64 / of.bytes_per_s), of.bytes_per_s))
        .collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut rate: f64 = ends.iter().map(|(_, rate)| rate).sum();
    let (mut at_s, mut left) = (0.0, free as f64);
    for (end_s, own_rate) in ends {
        if left <= rate * (end_s - at_s) {
            return Some(at_s + left / rate);
        }
        left -= rate * (end_s - at_s);
        (at_s, rate) = (end_s, rate - own_rate);
    }
    None
}

/// Bytes that were appended to a topic within the last minutes.
#[derive(Default)]
struct Growth {
    removed: u64,
    /// Time, and all bytes appended by then, oldest first.
    seen: VecDeque<(i64, u64)>,
}

impl Growth {
    fn add(&mut self, now_ns: i64, bytes: u64) {
        while self.seen.front().is_some_and(|(at_ns, _)| now_ns - at_ns > GROWTH_NS_MAX) {
            self.seen.pop_front();
        }
        self.seen.push_back((now_ns, bytes + self.removed));
    }

    fn remove(&mut self, bytes: u64) {
        self.removed += bytes;
    }

    /// Returns the growth in bytes per second; `None` if it was not seen for long enough.
    fn bytes_per_s(&self) -> Option<f64> {
        let ((from_ns, from), (to_ns, to)) = (self.seen.front()?, self.seen.back()?);
        let ns = to_ns - from_ns;
        (ns >= GROWTH_NS_MIN).then(|| to.saturating_sub(*from) as f64 / (ns as f64 / 1e9))
    }
}

/// Offsets of the last committed snapshots, by partition.
#[derive(Default)]
struct Snapshots {
    committed: BTreeMap<i32, i64>,
    /// Offsets that may be in the commit sealed at this time.
    in_commit: Option<(i64, BTreeMap<i32, i64>)>,
}

impl Snapshots {
    fn see(&mut self, view: &EngineView) {
        let status = &view.status;
        // A commit that is repeated may hold more than is committed.
        if status.aborting_since_ns.is_some() {
            self.in_commit = None;
            return;
        }
        if let Some((_, offsets)) =
            self.in_commit.take_if(|(sealed_ns, _)| Some(*sealed_ns) != status.committing_since_ns)
        {
            self.committed = offsets;
        }
        let offsets = || status.partitions.iter().map(|of| (of.partition, of.snapshot_offset)).collect();
        match status.committing_since_ns {
            None => self.committed = offsets(),
            Some(_) if self.in_commit.is_some() => {}
            Some(sealed_ns) => self.in_commit = Some((sealed_ns, offsets())),
        }
    }

    /// Returns the offset of a partition's last committed snapshot; 0 if there is none, or if it is not known.
    fn of(&self, partition: i32) -> i64 {
        self.committed.get(&partition).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use warptape_engine::{PartitionStatus, Status};

    use super::*;

    #[test]
    fn a_disk_is_full_at_the_time_when_all_growth_adds_up_to_its_free_space() {
        let of = |bytes_per_s: f64, room: Option<u64>| Growing { bytes_per_s, room };
        assert_eq!(full_after_s(1_000, &[of(10.0, None)]), Some(100.0));
        assert_eq!(full_after_s(1_000, &[of(10.0, Some(999))]), None);
        assert_eq!(full_after_s(1_000, &[of(0.0, None)]), None);
        // The first grows to its limit within 10 s, and the second fills the other 900 bytes.
        assert_eq!(full_after_s(1_000, &[of(10.0, Some(100)), of(10.0, None)]), Some(90.0));
        assert_eq!(full_after_s(0, &[of(1.0, None)]), Some(0.0));
        assert_eq!(full_after_s(5, &[]), None);
    }

    #[test]
    fn growth_counts_what_was_removed() {
        let mut growth = Growth::default();
        growth.add(0, 5_000);
        growth.add(30_000_000_000, 6_000);
        assert_eq!(growth.bytes_per_s(), None);
        growth.remove(2_000);
        growth.add(60_000_000_000, 4_600);
        assert_eq!(growth.bytes_per_s(), Some(1_600.0 / 60.0));
        growth.add(700_000_000_000, 4_600);
        growth.add(770_000_000_000, 4_670);
        assert_eq!(growth.bytes_per_s(), Some(1.0));
    }

    #[test]
    fn a_snapshot_counts_once_its_commit_has_ended() {
        let view = |offset: i64, committing_since_ns: Option<i64>, aborting_since_ns: Option<i64>| {
            let partition = PartitionStatus {
                partition: 3,
                is_restored: true,
                is_paused: false,
                next_offset: offset,
                read_to: offset,
                sealed_offset: offset,
                snapshot_offset: offset,
                watermark_ns: None,
                symbols: 0,
                waiting_rows: 0,
                waiting_bytes: 0,
            };
            let partitions = vec![partition];
            let status = Status { partitions, committing_since_ns, aborting_since_ns, ..Status::default() };
            EngineView { status, ..EngineView::default() }
        };
        let mut snapshots = Snapshots::default();
        let mut see = |view: EngineView| {
            snapshots.see(&view);
            snapshots.of(3)
        };
        assert_eq!(see(view(10, None, None)), 10);
        // The commit of the snapshot at 20 is under way, then the next one.
        assert_eq!(see(view(20, Some(1), None)), 10);
        assert_eq!(see(view(20, Some(1), None)), 10);
        assert_eq!(see(view(30, Some(2), None)), 20);
        // An aborted commit is repeated, and its snapshot counts after it.
        assert_eq!(see(view(30, Some(2), Some(5))), 20);
        assert_eq!(see(view(40, Some(2), None)), 20);
        assert_eq!(see(view(40, None, None)), 40);
        assert_eq!(Snapshots::default().of(3), 0);
    }
}
