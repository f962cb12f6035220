//! What is seen only by looking again and again: how far partitions are behind, how fast things go, lanes that do not move, and how much
//! of the disk is left.
//!
//! The log is asked by a thread of its own: one that does not answer holds up nothing else, and what was last known of it ages.

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

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time that a thread has to end.
const END_MAX: Duration = Duration::from_secs(1);
/// Looks at the end of a partition that are kept; where there are more, every other one of the older half goes.
const ENDS_MAX: usize = 512;
/// Time over which rates are told.
const RATE_NS: i64 = 30_000_000_000;
/// From this age on, what was seen of the log's ends says nothing any more.
const SEEN_MAX_NS: i64 = 5_000_000_000;
/// A disk is scarce of which less than so many bytes and less than one in so many are left.
const FREE_MIN: u64 = 1 << 30;
const FREE_SHARE_MIN: u64 = 10;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampled {
    /// How far partitions are behind.
    pub(super) lag: SeenLag,
    /// The disk below the log, where the log is on one of this machine's.
    pub(super) disk: Option<Disk>,
    /// By lane, for how long it has been at the same batch, in seconds; 0 without one.
    pub(super) stalls: Vec<f64>,
    /// What was done in the last half minute, or since the start.
    pub(super) recent: Recent,
}

/// How far partitions are behind, as far as that is known.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenLag {
    /// When the log last told where its partitions end, or was first asked; ns since the epoch.
    pub(super) at_ns: i64,
    /// By partition that is this process's.
    pub(super) partitions: BTreeMap<i32, Lag>,
    /// Why the ends of partitions could not be asked for, the last time.
    pub(super) error: Option<String>,
}

impl SeenLag {
    /// For how long it has not been known how far partitions are behind, in seconds; `None` while it is.
    pub(super) fn unknown_s(&self, now_ns: i64) -> Option<f64> {
        let age_ns = now_ns - self.at_ns;
        (age_ns >= SEEN_MAX_NS).then_some(age_ns as f64 / 1e9)
    }

    /// How far each partition is behind; nothing where that is not known.
    pub(super) fn known(&self, now_ns: i64) -> Option<&BTreeMap<i32, Lag>> {
        self.unknown_s(now_ns).is_none().then_some(&self.partitions)
    }
}

/// A disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// What this process may still write.
    pub(super) free: u64,
    /// All of it.
    pub(super) size: u64,
}

impl Disk {
    fn below(folder: &std::path::Path) -> Option<Self> {
        let stat = rustix::fs::statvfs(folder).ok()?;
        Some(Self { free: stat.f_bavail * stat.f_frsize, size: stat.f_blocks * stat.f_frsize })
    }

    /// Whether a log that is written to will soon have none left.
    pub(super) fn is_scarce(&self) -> bool {
        self.free < FREE_MIN && self.free < self.size / FREE_SHARE_MIN
    }
}

/// How far a partition is behind: what is in the log and not committed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lag {
    /// Records.
    pub(super) records: i64,
    /// For how long the first of them has been there, by when the end of the partition was seen to be behind it.
    pub(super) seconds: f64,
    /// Those of the records that nobody can read yet, because a producer's transaction before them has not ended.
    pub(super) open_records: i64,
}

/// What was done within a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Recent {
    pub(super) seconds: f64,
    pub(super) records: u64,
    pub(super) ticks: u64,
    pub(super) signals: u64,
    pub(super) late: u64,
    pub(super) dead_letters: u64,
    /// Ticks that the dead letters are of.
    pub(super) dead_ticks: u64,
    pub(super) commits: u64,
}

/// Threads that look, until this is dropped.
pub(super) struct Sampler {
    sampled: Arc<Mutex<Sampled>>,
    /// Held: the threads end with them.
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
        let looks = EachInterval::start("sampler", move || {
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

/// A thread that does something now and then, until this is dropped.
struct EachInterval {
    /// The thread ends when it is gone.
    stop: Option<Sender<()>>,
    /// Nothing is sent: it ends with the thread, and with all that the thread held.
    ended: Receiver<()>,
}

impl EachInterval {
    fn start(name: &str, mut act: impl FnMut() + Send + 'static) -> std::io::Result<Self> {
        let ((stop, stopped), (ends, ended)) = (bounded(0), bounded::<()>(0));
        let run = move || {
            // Dropped behind what `act` holds.
            let _ends = ends;
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                act();
            }
            drop(act);
        };
        thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), ended })
    }
}

impl Drop for EachInterval {
    /// Waits for the thread, but for no log that does not answer. A process that ends while one of its threads has the embedded log
    /// open leaves the write-ahead log beside the file.
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.ended.recv_timeout(END_MAX) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!("a thread of the endpoint is left behind: the log does not answer");
        }
    }
}

/// How far a verifier is behind the journal, as a thread sees it that asks the log where the journal ends, until this is dropped.
pub(super) struct JournalLag {
    seen: Arc<Mutex<SeenLag>>,
    _thread: EachInterval,
}

impl JournalLag {
    /// `places` says up to where each partition of the journal was verified.
    pub(super) fn start(
        log: Arc<dyn EventLog>,
        topic: String,
        places: impl FnMut() -> BTreeMap<i32, i64> + Send + 'static,
        clock: Clock,
    ) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(SeenLag { at_ns: clock.now_ns(), ..SeenLag::default() }));
        // What nobody can read yet is nothing that a verifier could have verified.
        let (places, counts_open) = (Box::new(places), false);
        let asking = Asking { log, topic, places, counts_open, clock, ends: BTreeMap::new() };
        let of_thread = seen.clone();
        let thread = asking.start(move |asked| {
            let mut seen = of_thread.lock().unwrap_or_else(PoisonError::into_inner);
            // What the log did not say is as it was.
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

/// By partition that is a pipeline's, the offset before which all records are committed.
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

/// `committed` is the offset that this process committed last; `None` if it has committed nothing yet.
fn committed_to(partition: &PartitionStatus, committed: Option<i64>) -> i64 {
    let committed = committed.unwrap_or(partition.sealed_offset);
    // Offsets after the last record have nothing to commit.
    let is_all = committed >= partition.next_offset;
    if is_all { committed.max(partition.read_to) } else { committed }
}

/// Who asks the log where its partitions end.
struct Asking {
    log: Arc<dyn EventLog>,
    topic: String,
    /// Says how far each partition is done.
    places: Box<dyn FnMut() -> BTreeMap<i32, i64> + Send>,
    /// Whether what a transaction hides that has not ended is behind as well.
    counts_open: bool,
    clock: Clock,
    ends: BTreeMap<i32, Ends>,
}

impl Asking {
    /// Asks again and again, on a thread of its own.
    fn start(mut self, mut tell: impl FnMut(SeenLag) + Send + 'static) -> std::io::Result<EachInterval> {
        EachInterval::start("lag", move || tell(self.ask()))
    }

    /// Its time is 0 where the log has not answered.
    fn ask(&mut self) -> SeenLag {
        // Before the ends: what is committed meanwhile is not behind.
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

/// Who looks at everything but the log.
struct Looking {
    progress: Arc<Progress>,
    clock: Clock,
    /// A folder on the disk below the log.
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

/// A lane, and since when its count of finished rows has not changed while it had a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    rows: u64,
    since_ns: Option<i64>,
}

impl Stall {
    /// For how long it has been at the same batch, in seconds.
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

/// When a partition's end was seen where: the end of what is written, since a producer that hangs in a transaction hides from its
/// readers what comes behind it.
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
            // The partition was made anew.
            seen.clear();
        }
        // Where it stands still, the first and the last time that it was seen there are enough.
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

    /// How far behind is who has committed up to an offset. Between two looks the partition is taken to have grown evenly.
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
            // It was there when the first look was taken: it is as old at least.
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

    /// Where all that is written can be read.
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
        // Half of what came between 11 s and 12 s.
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
        // A partition that was deleted and made again.
        ends.see(6_000 * S, at(10));
        assert_eq!(ends.lag(0, 6_001 * S), behind(10, 1.0));
    }

    /// Such as the marker of a feed's last transaction: the log ends behind it, and nobody ever commits it.
    #[test]
    fn offsets_without_a_record_are_not_behind_once_they_were_read() {
        let partition = |next_offset, read_to, sealed_offset| PartitionStatus {
            partition: 0,
            is_restored: true,
            is_paused: false,
            next_offset,
            read_to,
            sealed_offset,
            watermark_ns: None,
            symbols: 0,
            waiting_rows: 0,
            waiting_bytes: 0,
        };
        let mut ends = Ends::default();
        ends.see(10 * S, at(101));
        let lag = |partition, committed| ends.lag(committed_to(&partition, committed), 20 * S);
        assert_eq!(lag(partition(100, 101, 100), Some(100)), Lag::default());
        // Nothing new since the start.
        assert_eq!(lag(partition(100, 101, 100), None), Lag::default());
        // Not read yet, or not committed.
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
        let thread = EachInterval::start("test", move || drop(of_thread.clone())).expect("a thread");
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
