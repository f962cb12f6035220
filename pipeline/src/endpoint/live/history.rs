//! Rates of the last two minutes, sampled once a second, and the lanes' work in the last second.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::snapshot::History;
use crate::runtime::Progress;

/// Number of samples kept.
const SAMPLES_MAX: usize = 120;
/// Time between two samples, in ns.
const STEP_NS: i64 = 1_000_000_000;

/// Samples of counters, and the rates between them.
#[derive(Default)]
pub(super) struct Rates {
    last: Option<Counted>,
    seconds: VecDeque<Second>,
    /// Work of each lane in the last second.
    pub(super) lanes: Vec<LaneRate>,
}

/// Work of a lane within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LaneRate {
    pub(super) busy_percent: f64,
    pub(super) rows_per_s: f64,
}

/// Counters at one moment.
#[derive(Clone)]
struct Counted {
    at_ns: i64,
    ticks: u64,
    signals: u64,
    commits: u64,
    /// Busy time in ns, and number of finished rows, of each lane.
    lanes: Vec<(u64, u64)>,
}

struct Second {
    ticks: f64,
    signals: f64,
    commits: f64,
    lag_s: Option<f64>,
    waiting_rows: u64,
}

impl Rates {
    /// Samples the counters if a sample is due.
    pub(super) fn sample(&mut self, now_ns: i64, progress: &Progress, lag_s: Option<f64>) {
        if self.last.as_ref().is_some_and(|last| now_ns < last.at_ns + STEP_NS) {
            return;
        }
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let now = Counted {
            at_ns: now_ns,
            ticks: read(&progress.ticks),
            signals: read(&progress.signals),
            commits: read(&progress.commits),
            lanes: progress.lanes.iter().map(|lane| (read(&lane.busy_ns), read(&lane.rows))).collect(),
        };
        let waiting_rows = progress.waiting_rows.load(Ordering::Relaxed).max(0).unsigned_abs();
        if let Some(last) = self.last.replace(now.clone()) {
            self.see(&last, &now, lag_s, waiting_rows);
        }
    }

    fn see(&mut self, last: &Counted, now: &Counted, lag_s: Option<f64>, waiting_rows: u64) {
        let seconds = (now.at_ns - last.at_ns) as f64 / 1e9;
        let per_s = |now: u64, last: u64| now.saturating_sub(last) as f64 / seconds;
        self.seconds.push_back(Second {
            ticks: per_s(now.ticks, last.ticks),
            signals: per_s(now.signals, last.signals),
            commits: per_s(now.commits, last.commits),
            lag_s,
            waiting_rows,
        });
        self.seconds.drain(..self.seconds.len().saturating_sub(SAMPLES_MAX));
        let lanes = now.lanes.iter().zip(&last.lanes);
        self.lanes = lanes
            .map(|((busy, rows), (busy_before, rows_before))| LaneRate {
                // Slices may run beside batches, so their times may add up to more than 100 %.
                busy_percent: (per_s(*busy, *busy_before) / 1e7).min(100.0),
                rows_per_s: per_s(*rows, *rows_before),
            })
            .collect();
    }

    pub(super) fn history(&self) -> History {
        let of = |value: fn(&Second) -> f64| self.seconds.iter().map(value).collect();
        History {
            ticks_per_s: of(|second| second.ticks),
            signals_per_s: of(|second| second.signals),
            commits_per_s: of(|second| second.commits),
            lag_s: self.seconds.iter().map(|second| second.lag_s).collect(),
            waiting_rows: self.seconds.iter().map(|second| second.waiting_rows).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn rates_are_between_samples_a_second_apart() {
        let progress = Progress::new(2);
        let mut rates = Rates::default();
        let add = |counter: &AtomicU64, value| counter.fetch_add(value, Ordering::Relaxed);
        rates.sample(10 * S, &progress, None);
        assert!(rates.history().ticks_per_s.is_empty(), "one sample has no rate");
        add(&progress.ticks, 500);
        add(&progress.lanes[1].busy_ns, 500_000_000);
        add(&progress.lanes[1].rows, 80);
        rates.sample(10 * S + S / 2, &progress, Some(1.0));
        assert!(rates.history().ticks_per_s.is_empty(), "half a second later none is due");
        rates.sample(12 * S, &progress, Some(1.5));
        assert_eq!(rates.history().ticks_per_s, [250.0]);
        assert_eq!(rates.history().lag_s, [Some(1.5)]);
        assert_eq!(rates.lanes[1], LaneRate { busy_percent: 25.0, rows_per_s: 40.0 });
        assert_eq!(rates.lanes[0], LaneRate::default());
    }

    #[test]
    fn two_minutes_are_kept() {
        let progress = Progress::new(0);
        let mut rates = Rates::default();
        (0..500).for_each(|second| rates.sample(second * S, &progress, None));
        assert_eq!(rates.history().ticks_per_s.len(), SAMPLES_MAX);
    }
}
