//! What is seen only by looking again and again: how far partitions are behind, how fast things go, and lanes that do not move.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use warptape_eventlog::{Consumer, EventLog, LogError, TopicPartition};

use super::view::Watched;
use crate::clock::Clock;
use crate::engine::Progress;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Looks at the end of a partition that are kept; where there are more, every other one of the older half goes.
const ENDS_MAX: usize = 512;
/// Time over which rates are told.
const RATE_NS: i64 = 30_000_000_000;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampled {
    /// By partition that is this process's.
    pub(super) lags: BTreeMap<i32, Lag>,
    /// Why the ends of partitions could not be asked for, the last time.
    pub(super) error: Option<String>,
    /// By lane, for how long it has been at the same batch, in seconds; 0 without one.
    pub(super) stalls: Vec<f64>,
    /// What was done in the last half minute, or since the start.
    pub(super) recent: Recent,
}

/// How far a partition is behind: what is in the log and not committed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lag {
    /// Records.
    pub(super) records: i64,
    /// For how long the first of them has been there, by when the end of the partition was seen to be behind it.
    pub(super) seconds: f64,
}

/// What was done within a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Recent {
    pub(super) seconds: f64,
    pub(super) records: u64,
    pub(super) ticks: u64,
    pub(super) signals: u64,
    pub(super) dead_letters: u64,
    pub(super) commits: u64,
}

/// A thread that looks, until this is dropped.
pub(super) struct Sampler {
    sampled: Arc<Mutex<Sampled>>,
    /// Held: the thread ends when it is gone.
    _stop: Sender<()>,
}

impl Sampler {
    pub(super) fn start(watched: &Watched, log: Arc<dyn EventLog>, clock: Clock) -> std::io::Result<Self> {
        let sampled = Arc::new(Mutex::new(Sampled::default()));
        let (stop, stopped) = bounded(0);
        let mut looking = Looking {
            log,
            topic: watched.topics.ticks.clone(),
            progress: watched.progress.clone(),
            clock,
            reader: None,
            ends: BTreeMap::new(),
            totals: VecDeque::new(),
            lanes: Vec::new(),
        };
        let of_thread = sampled.clone();
        thread::Builder::new().name("sampler".to_owned()).spawn(move || {
            looking.look_until(&stopped, &of_thread);
        })?;
        Ok(Self { sampled, _stop: stop })
    }

    pub(super) fn sampled(&self) -> Sampled {
        self.sampled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Looking {
    log: Arc<dyn EventLog>,
    topic: String,
    progress: Arc<Progress>,
    clock: Clock,
    /// A reader of these partitions.
    reader: Option<(Vec<TopicPartition>, Box<dyn Consumer>)>,
    ends: BTreeMap<i32, Ends>,
    totals: VecDeque<(i64, Recent)>,
    lanes: Vec<Stall>,
}

impl Looking {
    fn look_until(&mut self, stopped: &Receiver<()>, sampled: &Mutex<Sampled>) {
        while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let seen = self.look();
            *sampled.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        }
    }

    fn look(&mut self) -> Sampled {
        // Before the ends: what is committed meanwhile is not behind.
        let committed = self.committed();
        let asked = self.ask_ends(&committed);
        if asked.is_err() {
            // The next look begins with a new reader.
            self.reader = None;
        }
        let now_ns = self.clock.now_ns();
        self.ends.retain(|partition, _| committed.contains_key(partition));
        let lags = committed.iter().filter_map(|(partition, &offset)| {
            self.ends.get(partition).map(|ends| (*partition, ends.lag(offset, now_ns)))
        });
        Sampled {
            lags: lags.collect(),
            error: asked.err().map(|error| error.to_string()),
            stalls: self.stalls(now_ns),
            recent: self.recent(now_ns),
        }
    }

    /// By partition that is this process's, the next record to read as it is committed.
    fn committed(&self) -> BTreeMap<i32, i64> {
        let engine = self.progress.engine();
        let restored = engine.status.partitions.iter().filter(|partition| partition.is_restored);
        restored
            .map(|partition| {
                let committed = engine.committed.offsets.get(&partition.partition);
                (partition.partition, committed.copied().unwrap_or(partition.sealed_offset))
            })
            .collect()
    }

    fn ask_ends(&mut self, partitions: &BTreeMap<i32, i64>) -> Result<(), LogError> {
        let place = |&partition: &i32| TopicPartition { topic: self.topic.clone(), partition };
        let places: Vec<_> = partitions.keys().map(place).collect();
        if places.is_empty() {
            return Ok(());
        }
        let reader = match self.reader.take() {
            Some((of, reader)) if of == places => reader,
            _ => self.log.reader(&places)?,
        };
        let (places, reader) = self.reader.insert((places, reader));
        for place in places.iter() {
            let end = reader.offsets(place)?.next;
            self.ends.entry(place.partition).or_default().see(self.clock.now_ns(), end);
        }
        Ok(())
    }

    fn stalls(&mut self, now_ns: i64) -> Vec<f64> {
        let in_flight: Vec<bool> = {
            let lanes = self.progress.engine().status.lanes;
            lanes.iter().map(|lane| lane.load.in_flight_batches > 0).collect()
        };
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
            dead_letters: read(&self.progress.dead_letters),
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
            dead_letters: total.dead_letters - before.dead_letters,
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

/// When a partition's end was seen where.
#[derive(Clone, Debug, Default)]
struct Ends(VecDeque<(i64, i64)>);

impl Ends {
    fn see(&mut self, at_ns: i64, end: i64) {
        if self.0.back().is_some_and(|&(_, last)| last > end) {
            // The partition was made anew.
            self.0.clear();
        }
        // Where it stands still, the first and the last time that it was seen there are enough.
        let is_still = self.0.iter().rev().take(2).filter(|&&(_, last)| last == end).count() == 2;
        if is_still {
            self.0.pop_back();
        }
        self.0.push_back((at_ns, end));
        if self.0.len() > ENDS_MAX {
            let mut number = 0;
            self.0.retain(|_| {
                number += 1;
                number > ENDS_MAX / 2 || number % 2 == 1
            });
        }
    }

    /// How far behind is who has committed up to an offset. Between two looks the partition is taken to have grown evenly.
    fn lag(&self, committed: i64, now_ns: i64) -> Lag {
        let Some(&(_, end)) = self.0.back() else { return Lag::default() };
        if committed >= end {
            return Lag::default();
        }
        let after = self.0.partition_point(|&(_, end)| end <= committed);
        let (after_ns, after_end) = self.0[after];
        let appeared_ns = match after.checked_sub(1).map(|before| self.0[before]) {
            Some((before_ns, before_end)) => {
                let share = (committed - before_end) as f64 / (after_end - before_end) as f64;
                before_ns + ((after_ns - before_ns) as f64 * share) as i64
            }
            // It was there when the first look was taken: it is as old at least.
            None => after_ns,
        };
        Lag { records: end - committed, seconds: (now_ns - appeared_ns).max(0) as f64 / 1e9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_partition_is_behind_since_the_first_record_that_is_not_committed_came() {
        let mut ends = Ends::default();
        ends.see(10 * S, 100);
        ends.see(11 * S, 100);
        ends.see(12 * S, 300);
        ends.see(13 * S, 400);
        let lag = |committed, now_s: i64| ends.lag(committed, now_s * S);
        assert_eq!(lag(400, 20), Lag::default());
        assert_eq!(lag(401, 20), Lag::default());
        assert_eq!(lag(300, 20), Lag { records: 100, seconds: 8.0 });
        // Half of what came between 11 s and 12 s.
        assert_eq!(lag(200, 20), Lag { records: 200, seconds: 8.5 });
        assert_eq!(lag(0, 20), Lag { records: 400, seconds: 10.0 });
    }

    #[test]
    fn many_looks_are_thinned_and_the_oldest_stays() {
        let mut ends = Ends::default();
        (0..5_000).for_each(|second| ends.see(second * S, second + 1));
        assert!(ends.0.len() <= ENDS_MAX);
        assert_eq!(ends.lag(0, 6_000 * S), Lag { records: 5_000, seconds: 6_000.0 });
        let lag = ends.lag(2_500, 6_000 * S);
        assert_eq!((lag.records, lag.seconds.round() as i64), (2_500, 3_501));
        // A partition that was deleted and made again.
        ends.see(6_000 * S, 10);
        assert_eq!(ends.lag(0, 6_001 * S), Lag { records: 10, seconds: 1.0 });
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
