//! Values that must be sampled repeatedly: the lag of partitions, rates, lanes that are stuck, and the free space of
//! the disk.
//!
//! A separate thread queries the log. If the log does not answer, nothing else is delayed, and its last known values
//! age.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warptape_engine::PartitionStatus;
use warptape_eventlog::{EventLog, LogError, PartitionEnd, TopicPartition};

use super::view::Watched;
use crate::clock::Clock;
use crate::runtime::Progress;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for a thread's end.
const END_MAX: Duration = Duration::from_secs(1);
/// Greatest number of samples kept of a partition's end. Beyond it, every second one of the older half is dropped.
const ENDS_MAX: usize = 512;
/// Time span over which rates are measured, in ns.
const RATE_NS: i64 = 30_000_000_000;
/// Age above which a sample of the log's ends is ignored, in ns.
const SEEN_MAX_NS: i64 = 5_000_000_000;
/// A disk is nearly full if fewer bytes than this are free, and less than one byte in [`FREE_SHARE_MIN`].
const FREE_MIN: u64 = 1 << 30;
const FREE_SHARE_MIN: u64 = 10;

/// All samples so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampled {
    /// Lag of the partitions.
    pub(super) lag: SeenLag,
    /// Disk of the log; `None` if it is not on a disk of this machine.
    pub(super) disk: Option<Disk>,
    /// Time in seconds for which each lane has been at the same batch; 0 for an idle lane.
    pub(super) stalls: Vec<f64>,
    /// Work of the last half minute, or since the start if that is shorter.
    pub(super) recent: Recent,
}

/// Lag of partitions, if known.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenLag {
    /// Time at which the log last reported the ends of its partitions, or was first asked; ns since the epoch.
    pub(super) at_ns: i64,
    /// Lag of each partition of this process.
    pub(super) partitions: BTreeMap<i32, Lag>,
    /// Error of the last query for the ends of partitions; `None` if it succeeded.
    pub(super) error: Option<String>,
}

impl SeenLag {
    /// Returns the time for which the lag has been unknown, in seconds; `None` while it is known.
    pub(super) fn unknown_s(&self, now_ns: i64) -> Option<f64> {
        let age_ns = now_ns - self.at_ns;
        (age_ns >= SEEN_MAX_NS).then_some(age_ns as f64 / 1e9)
    }

    /// Returns the lag of each partition; `None` if it is unknown.
    pub(super) fn known(&self, now_ns: i64) -> Option<&BTreeMap<i32, Lag>> {
        self.unknown_s(now_ns).is_none().then_some(&self.partitions)
    }
}

/// A disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// Bytes that this process may still write.
    pub(super) free: u64,
    /// Size of the disk, in bytes.
    pub(super) size: u64,
}

impl Disk {
    fn below(folder: &std::path::Path) -> Option<Self> {
        let stat = rustix::fs::statvfs(folder).ok()?;
        Some(Self { free: stat.f_bavail * stat.f_frsize, size: stat.f_blocks * stat.f_frsize })
    }

    /// True if a log on this disk will soon have no space left.
    pub(super) fn is_scarce(&self) -> bool {
        self.free < FREE_MIN && self.free < self.size / FREE_SHARE_MIN
    }
}

/// Lag of a partition: its uncommitted records in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lag {
    /// Number of uncommitted records.
    pub(super) records: i64,
    /// Age of the first uncommitted record, in seconds, measured since a sample of the end first included it.
    pub(super) seconds: f64,
    /// Number of uncommitted records that cannot be read yet, because a producer's earlier transaction is open.
    pub(super) open_records: i64,
}

/// Work done within a time span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Recent {
    pub(super) seconds: f64,
    pub(super) records: u64,
    pub(super) ticks: u64,
    pub(super) signals: u64,
    pub(super) late: u64,
    pub(super) dead_letters: u64,
    /// Number of ticks in the dead letters.
    pub(super) dead_ticks: u64,
    pub(super) commits: u64,
}

/// Sampling threads, which end when this is dropped.
pub(super) struct Sampler {
    sampled: Arc<Mutex<Sampled>>,
    /// Handles of the threads; dropping them ends the threads.
    _threads: [EachInterval; 2],
}

impl Sampler {
    pub(super) fn start(watched: &Watched, log: Arc<dyn EventLog>, clock: Clock) -> std::io::Result<Self> {
        let lag = SeenLag { at_ns: clock.now_ns(), ..SeenLag::default() };
        let sampled = Arc::new(Mutex::new(Sampled { lag, ..Sampled::default() }));
        let progress = || watched.progress.clone();
        let mut looking = Looking {
            progress: progress(),
            clock,
            disk: watched.disk.clone(),
            totals: VecDeque::new(),
            lanes: Vec::new(),
        };
        let asked = progress();
        let asking = Asking {
            log,
            topic: watched.topics.ticks.clone(),
            places: Box::new(move || committed(&asked)),
            counts_open: true,
            clock,
            ends: BTreeMap::new(),
        };
        let of_thread = sampled.clone();
        let looks = EachInterval::start("sampler", INTERVAL, move || {
            let (disk, stalls, recent) = looking.look();
            let mut sampled = lock(&of_thread);
            (sampled.disk, sampled.stalls, sampled.recent) = (disk, stalls, recent);
        })?;
        let of_thread = sampled.clone();
        let asks = asking.start(move |seen| {
            let lag = &mut lock(&of_thread).lag;
            *lag = SeenLag { at_ns: seen.at_ns.max(lag.at_ns), ..seen };
        })?;
        Ok(Self { sampled, _threads: [looks, asks] })
    }

    pub(super) fn sampled(&self) -> Sampled {
        lock(&self.sampled).clone()
    }
}

fn lock(sampled: &Mutex<Sampled>) -> MutexGuard<'_, Sampled> {
    sampled.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that acts at intervals, and ends when this is dropped.
pub(super) struct EachInterval {
    /// Dropping it ends the thread.
    stop: Option<Sender<()>>,
    /// Disconnected after the thread has ended and dropped all that it held; nothing is ever sent.
    ended: Receiver<()>,
}

impl EachInterval {
    pub(super) fn start(
        name: &str,
        interval: Duration,
        mut act: impl FnMut() + Send + 'static,
    ) -> std::io::Result<Self> {
        let ((stop, stopped), (ends, ended)) = (bounded(0), bounded::<()>(0));
        let run = move || {
            // Dropped after everything that `act` holds.
            let _ends = ends;
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                act();
            }
            drop(act);
        };
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), ended })
    }
}

impl Drop for EachInterval {
    /// Waits for the thread, unless the log does not answer. If a process ends while a thread has the embedded log
    /// open, the write-ahead log stays beside the file.
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.ended.recv_timeout(END_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!("the log does not answer: a thread of the endpoint keeps waiting for it");
        }
    }
}

/// Lag of a verifier behind the journal. A thread measures it from the journal's ends, until this is dropped.
pub(super) struct JournalLag {
    seen: Arc<Mutex<SeenLag>>,
    _thread: EachInterval,
}

impl JournalLag {
    /// Starts the thread. `places` returns the verified offset of each partition of the journal.
    pub(super) fn start(
        log: Arc<dyn EventLog>,
        topic: String,
        places: impl FnMut() -> BTreeMap<i32, i64> + Send + 'static,
        clock: Clock,
    ) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(SeenLag { at_ns: clock.now_ns(), ..SeenLag::default() }));
        // Records in open transactions cannot be read, so they do not count as lag of a verifier.
        let (places, counts_open) = (Box::new(places), false);
        let asking = Asking { log, topic, places, counts_open, clock, ends: BTreeMap::new() };
        let of_thread = seen.clone();
        let thread = asking.start(move |asked| {
            let mut seen = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
            // The last state is kept if the log does not answer.
            if asked.error.is_none() {
                *seen = asked;
            }
        })?;
        Ok(Self { seen, _thread: thread })
    }

    pub(super) fn seen(&self) -> SeenLag {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns, for each partition of a pipeline, the offset before which all records are committed.
fn committed(progress: &Progress) -> BTreeMap<i32, i64> {
    let engine = progress.engine();
    let restored = engine.status.partitions.iter().filter(|partition| partition.is_restored);
    restored
        .map(|partition| {
            let committed = engine.committed.offsets.get(&partition.partition);
            (partition.partition, committed_to(partition, committed.copied()))
        })
        .collect()
}

/// Returns the partition's committed offset. `committed` is the last one that this process committed; `None` before its
/// first commit.
fn committed_to(partition: &PartitionStatus, committed: Option<i64>) -> i64 {
    let committed = committed.unwrap_or(partition.sealed_offset);
    // Offsets after the last record need no commit.
    let is_all = committed >= partition.next_offset;
    if is_all { committed.max(partition.read_to) } else { committed }
}

/// State of the thread that queries the log for the ends of its partitions.
struct Asking {
    log: Arc<dyn EventLog>,
    topic: String,
    /// Returns the committed or verified offset of each partition.
    places: Box<dyn FnMut() -> BTreeMap<i32, i64> + Send>,
    /// True if records in open transactions count as lag.
    counts_open: bool,
    clock: Clock,
    ends: BTreeMap<i32, Ends>,
}

impl Asking {
    /// Starts a thread that queries the log at intervals.
    fn start(mut self, mut tell: impl FnMut(SeenLag) + Send + 'static) -> std::io::Result<EachInterval> {
        EachInterval::start("lag", INTERVAL, move || tell(self.ask()))
    }

    /// Queries the log once. The result's time is 0 if the log does not answer.
    fn ask(&mut self) -> SeenLag {
        // Offsets are read before the ends, so the lag may be slightly too high, but never too low.
        let committed = (self.places)();
        let asked = self.ask_ends(&committed);
        let now_ns = self.clock.now_ns();
        self.ends.retain(|partition, _| committed.contains_key(partition));
        let lags = committed.iter().filter_map(|(partition, &offset)| {
            self.ends.get(partition).map(|ends| (*partition, ends.lag(offset, now_ns)))
        });
        SeenLag {
            at_ns: if asked.is_ok() { now_ns } else { 0 },
            partitions: lags.collect(),
            error: asked.err().map(|error| error.to_string()),
        }
    }

    fn ask_ends(&mut self, partitions: &BTreeMap<i32, i64>) -> Result<(), LogError> {
        let place = |&partition: &i32| TopicPartition { topic: self.topic.clone(), partition };
        let places: Vec<_> = partitions.keys().map(place).collect();
        if places.is_empty() {
            return Ok(());
        }
        let ends = self.log.ends(&places)?;
        let now_ns = self.clock.now_ns();
        for (&partition, mut end) in partitions.keys().zip(ends) {
            if !self.counts_open {
                end.written = end.readable;
            }
            self.ends.entry(partition).or_default().see(now_ns, end);
        }
        Ok(())
    }
}

/// State of the thread that samples everything except the log.
struct Looking {
    progress: Arc<Progress>,
    clock: Clock,
    /// A folder on the disk of the log; `None` if the log is not on this machine.
    disk: Option<PathBuf>,
    totals: VecDeque<(i64, Recent)>,
    lanes: Vec<Stall>,
}

impl Looking {
    fn look(&mut self) -> (Option<Disk>, Vec<f64>, Recent) {
        let now_ns = self.clock.now_ns();
        (self.disk.as_deref().and_then(Disk::below), self.stalls(now_ns), self.recent(now_ns))
    }

    fn stalls(&mut self, now_ns: i64) -> Vec<f64> {
        let engine = self.progress.engine();
        let in_flight: Vec<bool> =
            engine.status.lanes.iter().map(|lane| lane.load.in_flight_batches > 0).collect();
        self.lanes.resize(in_flight.len(), Stall::default());
        let rows =
            |lane: usize| self.progress.lanes.get(lane).map_or(0, |of| of.rows.load(Ordering::Relaxed));
        let lanes = self.lanes.iter_mut().zip(in_flight).enumerate();
        lanes.map(|(lane, (stall, is_at_work))| stall.see(now_ns, is_at_work, rows(lane))).collect()
    }

    fn recent(&mut self, now_ns: i64) -> Recent {
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let total = Recent {
            seconds: 0.0,
            records: read(&self.progress.records_read),
            ticks: read(&self.progress.ticks),
            signals: read(&self.progress.signals),
            late: read(&self.progress.late),
            dead_letters: read(&self.progress.dead_letters),
            dead_ticks: read(&self.progress.dead_ticks),
            commits: read(&self.progress.commits),
        };
        self.totals.push_back((now_ns, total));
        while self.totals.len() > 2 && self.totals[1].0 <= now_ns - RATE_NS {
            self.totals.pop_front();
        }
        let (since_ns, before) = self.totals[0];
        Recent {
            seconds: (now_ns - since_ns) as f64 / 1e9,
            records: total.records - before.records,
            ticks: total.ticks - before.ticks,
            signals: total.signals - before.signals,
            late: total.late - before.late,
            dead_letters: total.dead_letters - before.dead_letters,
            dead_ticks: total.dead_ticks - before.dead_ticks,
            commits: total.commits - before.commits,
        }
    }
}

/// Time since which a busy lane's number of finished rows has not changed.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    rows: u64,
    since_ns: Option<i64>,
}

impl Stall {
    /// Returns the time in seconds for which the lane has been at the same batch.
    fn see(&mut self, now_ns: i64, is_at_work: bool, rows: u64) -> f64 {
        if !is_at_work || rows != self.rows {
            self.since_ns = None;
        }
        self.rows = rows;
        if !is_at_work {
            return 0.0;
        }
        (now_ns - *self.since_ns.get_or_insert(now_ns)) as f64 / 1e9
    }
}

/// Samples of a partition's end, with their times. The written end is sampled, because a hanging transaction hides
/// later records from readers.
#[derive(Clone, Debug, Default)]
struct Ends {
    written: VecDeque<(i64, i64)>,
    readable: i64,
}

impl Ends {
    fn see(&mut self, at_ns: i64, end: PartitionEnd) {
        self.readable = end.readable;
        let (end, seen) = (end.written.max(end.readable), &mut self.written);
        if seen.back().is_some_and(|&(_, last)| last > end) {
            // The partition was deleted and created again.
            seen.clear();
        }
        // While the end does not move, its first and last samples are enough.
        let is_still = seen.iter().rev().take(2).filter(|&&(_, last)| last == end).count() == 2;
        if is_still {
            seen.pop_back();
        }
        seen.push_back((at_ns, end));
        if seen.len() > ENDS_MAX {
            let mut number = 0;
            seen.retain(|_| {
                number += 1;
                number > ENDS_MAX / 2 || number % 2 == 1
            });
        }
    }

    /// Returns the lag of a reader that has committed up to an offset. Assumes that the partition grows evenly between
    /// two samples.
    fn lag(&self, committed: i64, now_ns: i64) -> Lag {
        let seen = &self.written;
        let Some(&(_, end)) = seen.back() else { return Lag::default() };
        if committed >= end {
            return Lag::default();
        }
        let after = seen.partition_point(|&(_, end)| end <= committed);
        let (after_ns, after_end) = seen[after];
        let appeared_ns = match after.checked_sub(1).map(|before| seen[before]) {
            Some((before_ns, before_end)) => {
                let share = (committed - before_end) as f64 / (after_end - before_end) as f64;
                before_ns + ((after_ns - before_ns) as f64 * share) as i64
            }
            // The first sample already includes the record, so the record is at least that old.
            None => after_ns,
        };
        Lag {
            records: end - committed,
            seconds: (now_ns - appeared_ns).max(0) as f64 / 1e9,
            open_records: end - self.readable.max(committed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn behind(records: i64, seconds: f64) -> Lag {
        Lag { records, seconds, open_records: 0 }
    }

    /// Returns a partition end before which all written records are readable.
    fn at(end: i64) -> PartitionEnd {
        PartitionEnd { readable: end, written: end }
    }

    #[test]
    fn a_partition_is_behind_since_the_first_record_that_is_not_committed_came() {
        let mut ends = Ends::default();
        ends.see(10 * S, at(100));
        ends.see(11 * S, at(100));
        ends.see(12 * S, at(300));
        ends.see(13 * S, at(400));
        let lag = |committed, now_s: i64| ends.lag(committed, now_s * S);
        assert_eq!(lag(400, 20), Lag::default());
        assert_eq!(lag(401, 20), Lag::default());
        assert_eq!(lag(300, 20), behind(100, 8.0));
        // Half of the records that came between 11 s and 12 s.
        assert_eq!(lag(200, 20), behind(200, 8.5));
        assert_eq!(lag(0, 20), behind(400, 10.0));
    }

    #[test]
    fn what_a_transaction_hides_that_has_not_ended_is_behind_as_well() {
        let mut ends = Ends::default();
        ends.see(10 * S, at(100));
        (11..=60).for_each(|second| {
            ends.see(second * S, PartitionEnd { readable: 100, written: 50 + 10 * second });
        });
        let hidden = |records, seconds| Lag { records, seconds, open_records: records };
        assert_eq!(ends.lag(100, 60 * S), hidden(550, 50.0));
        assert_eq!(ends.lag(90, 60 * S), Lag { records: 560, seconds: 50.0, open_records: 550 });
        ends.see(61 * S, at(650));
        assert_eq!(ends.lag(650, 61 * S), Lag::default());
    }

    #[test]
    fn many_looks_are_thinned_and_the_oldest_stays() {
        let mut ends = Ends::default();
        (0..5_000).for_each(|second| ends.see(second * S, at(second + 1)));
        assert!(ends.written.len() <= ENDS_MAX);
        assert_eq!(ends.lag(0, 6_000 * S), behind(5_000, 6_000.0));
        let lag = ends.lag(2_500, 6_000 * S);
        assert_eq!((lag.records, lag.seconds.round() as i64), (2_500, 3_501));
        // The partition was deleted and created again.
        ends.see(6_000 * S, at(10));
        assert_eq!(ends.lag(0, 6_001 * S), behind(10, 1.0));
    }

    /// Such an offset is the marker of a feed's last transaction: it is the last one in the log, and is never
    /// committed.
    #[test]
    fn offsets_without_a_record_are_not_behind_once_they_were_read() {
        let partition = |next_offset, read_to, sealed_offset| PartitionStatus {
            partition: 0,
            is_restored: true,
            is_paused: false,
            next_offset,
            read_to,
            sealed_offset,
            snapshot_offset: 0,
            watermark_ns: None,
            symbols: 0,
            waiting_rows: 0,
            waiting_bytes: 0,
        };
        let mut ends = Ends::default();
        ends.see(10 * S, at(101));
        let lag = |partition, committed| ends.lag(committed_to(&partition, committed), 20 * S);
        assert_eq!(lag(partition(100, 101, 100), Some(100)), Lag::default());
        // There is nothing new since the start.
        assert_eq!(lag(partition(100, 101, 100), None), Lag::default());
        // The record is not read yet, or is not committed.
        assert_eq!(lag(partition(100, 100, 100), Some(100)), behind(1, 10.0));
        assert_eq!(lag(partition(100, 101, 100), Some(90)), behind(11, 10.0));
        assert_eq!(lag(partition(100, 101, 90), None), behind(11, 10.0));
    }

    #[test]
    fn lag_that_was_seen_long_ago_is_not_known() {
        let lag = SeenLag { at_ns: 10 * S, ..SeenLag::default() };
        assert!(lag.known(14 * S).is_some() && lag.unknown_s(14 * S).is_none());
        assert!(lag.known(15 * S).is_none());
        assert_eq!(lag.unknown_s(17 * S), Some(7.0));
    }

    #[test]
    fn a_disk_is_scarce_by_its_size_and_by_what_a_log_needs() {
        let is_scarce = |free: u64, size: u64| Disk { free, size }.is_scarce();
        assert!(is_scarce(6 << 20, 64 << 20) && !is_scarce(7 << 20, 64 << 20));
        assert!(is_scarce((1 << 30) - 1, 1 << 40) && !is_scarce(1 << 30, 1 << 40));
        let here = Disk::below(std::path::Path::new(".")).expect("the disk of the repository");
        assert!(here.size > here.free && here.size > 1 << 20, "{here:?}");
        assert_eq!(Disk::below(std::path::Path::new("/nowhere")), None);
    }

    #[test]
    fn what_a_thread_holds_is_gone_once_it_is_dropped() {
        let held = Arc::new(());
        let of_thread = held.clone();
        let thread =
            EachInterval::start("test", INTERVAL, move || drop(of_thread.clone())).expect("a thread");
        drop(thread);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[test]
    fn a_lane_stalls_while_it_finishes_nothing() {
        let mut stall = Stall::default();
        assert_eq!(stall.see(S, true, 5), 0.0);
        assert_eq!(stall.see(3 * S, true, 5), 2.0);
        assert_eq!(stall.see(4 * S, true, 6), 0.0);
        assert_eq!(stall.see(9 * S, false, 6), 0.0);
        assert_eq!(stall.see(10 * S, true, 6), 0.0);
    }
}
