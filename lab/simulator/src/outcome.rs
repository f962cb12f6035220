//! Outcomes of runs, and confidence intervals over runs.

use std::fmt;

/// Number of equal parts into which the time of arrivals is divided.
pub const PARTS: usize = 10;

/// The outcome of a run. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Results of the measured tasks.
    pub tasks: MeasuredTasks,
    /// Mean number of tasks in the system in each of [`PARTS`] equal parts of the time until the last arrival; empty in
    /// a closed loop.
    pub present: Vec<f64>,
    /// Busy lane time by class, from the start of the run to the last arrival.
    pub busy_s: Vec<f64>,
    /// Busy lane time by class, from the last arrival until all work was done.
    pub drain_busy_s: Vec<f64>,
    /// Lost lane time by class, from the start of the run to the last arrival.
    pub lost_s: Vec<f64>,
    /// Time from the start of the run to the last arrival.
    pub arrivals_s: f64,
    /// Time from the first measured arrival to the last arrival.
    pub measured_s: f64,
    /// Time from the last arrival until all work was done.
    pub drain_s: f64,
    /// Lane time of each tenant divided by its weight. It counts only slices that began while all tenants had tasks.
    pub service_by_weight: Vec<f64>,
    /// Numbers of steps, decisions and slices.
    pub counts: Counts,
    /// Paid lane time, and the autoscaling policy's windows.
    pub scaled: Scaled,
    /// Results of ticks; `None` if the workload has none.
    pub ticks: Option<Ticked>,
    /// Slices of all lanes, in the order of their ends; empty unless [`crate::Options::records`] is set.
    pub ran: Vec<Ran>,
}

/// Results of the measured tasks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredTasks {
    /// Completion times, ascending: from arrival to the end of the last slice.
    pub completions_s: Vec<f64>,
    /// Number of tasks that were refused.
    pub rejected: usize,
    /// Number of tasks whose deadline passed before they were done.
    pub expired: usize,
    /// Number of tasks that never ended because no lane was left.
    pub unfinished: usize,
    /// Number of tasks that ended, by class: critical, interactive, batch.
    pub ended_by_class: [usize; 3],
    /// Number of ended tasks that were not done in time, by class.
    pub missed_by_class: [usize; 3],
    /// Work of the measured tasks, in seconds of the reference class.
    pub offered_s: f64,
    /// Work of the tasks done in time, in seconds of the reference class.
    pub in_time_s: f64,
}

/// Numbers of steps, decisions and slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of decisions of the scheduler.
    pub decisions: u64,
    /// Number of steps of the scheduler.
    pub steps: u64,
    /// Number of slices that lanes began.
    pub slices: u64,
    /// Number of tasks that joined the queue of one lane as a whole.
    pub assigned: u64,
    /// Number of slices that a lane stole from another lane's share.
    pub stolen: u64,
    /// Number of slices that were lost with their lane and run again.
    pub redone: u64,
}

/// Results of autoscaling.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaled {
    /// Paid lane time by class, from the start of the run to the last arrival. A lane is paid while it starts, runs, or
    /// finishes its slice before it stops.
    pub paid_s: Vec<f64>,
    /// Number of starts of lanes.
    pub starts: u64,
    /// Number of windows after which the policy set the number of lanes.
    pub windows: u64,
    /// Number of windows in which the policy used a forecast of the load.
    pub forecast_windows: u64,
    /// Number of windows in which arrivals were an anomaly.
    pub anomalies: u64,
    /// Number of windows in which the forecast's error was known.
    pub error_windows: u64,
    /// Sum of the forecast's errors over these windows, as shares of the mean load.
    pub error_sum: f64,
}

/// Results of ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ticked {
    /// Number of ticks done.
    pub rows: i64,
    /// Number of batches dispatched.
    pub batches: u64,
    /// Number of groups that lanes released so that they could move to another lane.
    pub moves: u64,
    /// Total time for which partitions were paused, in seconds.
    pub paused_s: f64,
    /// Mean time from a tick's arrival to the end of its batch, in milliseconds; NaN if none was measured. Measuring
    /// begins when the first measured task arrives.
    pub mean_ms: f64,
    /// Median of the time from a tick's arrival to the end of its batch, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the time from a tick's arrival to the end of its batch, in milliseconds.
    pub p99_ms: f64,
    /// Lane time of batches by class, in seconds, from the start of the run to the last arrival.
    pub busy_s: Vec<f64>,
}

/// A slice that a lane ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Number of the lane.
    pub lane: usize,
    /// Number of the task.
    pub task: usize,
    /// Index of the task's kind.
    pub kind: usize,
    /// Start, in nanoseconds from the start of the run.
    pub from_ns: i64,
    /// End, in nanoseconds from the start of the run.
    pub to_ns: i64,
    /// True if the slice ended because the lane was lost.
    pub is_lost: bool,
}

impl Outcome {
    /// Returns the mean completion time, in seconds; NaN if no task was done.
    pub fn mean_s(&self) -> f64 {
        self.tasks.completions_s.iter().sum::<f64>() / self.tasks.completions_s.len() as f64
    }

    /// Returns the share of measured tasks that were not done in time.
    pub fn missed(&self) -> f64 {
        let missed = self.tasks.rejected + self.tasks.expired + self.tasks.unfinished;
        missed as f64 / (missed + self.tasks.completions_s.len()).max(1) as f64
    }

    /// Returns the growth of the number of tasks in the system, per second: the slope of the least-squares line through
    /// [`Outcome::present`]. The first part is excluded, because the empty fleet fills in it.
    pub fn growth_per_s(&self) -> f64 {
        let parts: Vec<(f64, f64)> =
            (0..).zip(&self.present).skip(1).map(|(part, tasks)| (f64::from(part), *tasks)).collect();
        let number = parts.len() as f64;
        let middle = |of: fn(&(f64, f64)) -> f64| parts.iter().map(of).sum::<f64>() / number;
        let (at, mean) = (middle(|part| part.0), middle(|part| part.1));
        let with: f64 = parts.iter().map(|part| (part.0 - at) * (part.1 - mean)).sum();
        let squares: f64 = parts.iter().map(|part| (part.0 - at) * (part.0 - at)).sum();
        with / squares / (self.arrivals_s / PARTS as f64)
    }

    /// Returns a quantile of completion times, in seconds. `quantile` is from 0 to 1.
    pub fn quantile_s(&self, quantile: f64) -> f64 {
        let last = self.tasks.completions_s.len() - 1;
        self.tasks.completions_s[((quantile * last as f64).round() as usize).min(last)]
    }
}

/// Returns Jain's fairness index of shares: 1 if all are equal, and 1 ÷ their number if one share is everything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares > 0.0 { sum * sum / (shares.len() as f64 * squares) } else { 1.0 }
}

/// A mean over runs with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval, from Student's t-distribution.
    pub half: f64,
}

/// The verdict on a policy, from the interval of the ratio of its mean completion time to a rival's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The policy is faster: the interval is below 1.
    Win,
    /// No policy is shown to be faster: the interval contains 1.
    Tie,
    /// The policy is slower: the interval is above 1.
    Loss,
}

impl Interval {
    /// Returns the verdict on a ratio of completion times.
    pub fn verdict(self) -> Verdict {
        match self {
            Self { mean, half } if mean + half < 1.0 => Verdict::Win,
            Self { mean, half } if mean - half > 1.0 => Verdict::Loss,
            _ => Verdict::Tie,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Win => "win",
            Self::Tie => "tie",
            Self::Loss => "loss",
        })
    }
}

/// Two-sided 95 % quantiles of Student's t-distribution for 1, 2, 3, … degrees of freedom.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Returns the mean over independent runs with its 95 % interval. One run gives an interval of width 0.
pub fn interval(figures: &[f64]) -> Interval {
    let runs = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / runs;
    if figures.len() < 2 {
        return Interval { mean, half: 0.0 };
    }
    let variance = figures.iter().map(|figure| (figure - mean) * (figure - mean)).sum::<f64>() / (runs - 1.0);
    let t = T_95.get(figures.len() - 2).copied().unwrap_or(1.96);
    Interval { mean, half: t * (variance / runs).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_by_the_interval() {
        let of = |mean, half| Interval { mean, half }.verdict();
        assert_eq!([of(0.9, 0.05), of(0.9, 0.1), of(1.1, 0.05)], [Verdict::Win, Verdict::Tie, Verdict::Loss]);
    }

    #[test]
    fn intervals_are_students() {
        let found = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(found.mean, 3.0);
        assert!((found.half - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(interval(&[7.0]), Interval { mean: 7.0, half: 0.0 });
    }

    #[test]
    fn growth_is_a_slope() {
        let present = (0..PARTS).map(|part| if part == 0 { 99.0 } else { 7.0 + 3.0 * part as f64 }).collect();
        let outcome = Outcome { present, arrivals_s: 20.0, ..Outcome::default() };
        assert!((outcome.growth_per_s() - 1.5).abs() < 1e-12);
    }

    #[test]
    fn jains_index_tells_who_has_what() {
        assert_eq!(jain(&[1.0, 1.0]), 1.0);
        assert_eq!(jain(&[1.0, 0.0]), 0.5);
    }
}
