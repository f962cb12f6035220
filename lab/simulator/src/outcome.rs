//! What a run came to, and intervals over runs.

use std::fmt;

/// Parts of the time in which tasks arrive.
pub const PARTS: usize = 10;

/// What a run came to. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What became of the tasks that are measured.
    pub tasks: MeasuredTasks,
    /// Number of tasks that were there, in the mean over time, for each of [`PARTS`] equal parts of the time from the first arrival to the last.
    pub present: Vec<f64>,
    /// Lane time by class, from the begin of the run to the last arrival, in which lanes worked.
    pub busy_s: Vec<f64>,
    /// Likewise, from the last arrival until all was done.
    pub drain_busy_s: Vec<f64>,
    /// Lane time by class, from the begin of the run to the last arrival, in which lanes were lost.
    pub lost_s: Vec<f64>,
    /// From the begin of the run to the last arrival.
    pub arrivals_s: f64,
    /// From the first arrival that is measured to the last.
    pub measured_s: f64,
    /// From the last arrival until all was done.
    pub drain_s: f64,
    /// Lane time that each tenant had while all of them had tasks, by its weight.
    pub service_by_weight: Vec<f64>,
    /// Numbers of steps, decisions and slices.
    pub counts: Counts,
    /// What lanes were paid for, and what the policy that says so knew.
    pub scaled: Scaled,
    /// What became of ticks, where some came.
    pub ticks: Option<Ticked>,
    /// What each lane did, in the order in which it ended; where [`crate::Options::records`] says so.
    pub ran: Vec<Ran>,
}

/// What became of the tasks that are measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasuredTasks {
    /// Completion times, ascending: from arrival to the end of the last slice.
    pub completions_s: Vec<f64>,
    /// Tasks that were refused.
    pub rejected: usize,
    /// Tasks that met their deadline first.
    pub expired: usize,
    /// Tasks that nothing became of, because no lane was left.
    pub unfinished: usize,
    /// Tasks by how urgent they are: critical, interactive, batch.
    pub ended_by_class: [usize; 3],
    /// Those of them that were not done in time.
    pub missed_by_class: [usize; 3],
    /// Their work, in seconds of the reference class.
    pub offered_s: f64,
    /// Work of those that were done in time, likewise.
    pub in_time_s: f64,
}

/// Numbers of steps, decisions and slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Decisions of the scheduler.
    pub decisions: u64,
    /// Steps of the scheduler.
    pub steps: u64,
    /// Slices that lanes began.
    pub slices: u64,
    /// Tasks that joined the queue of one lane as a whole.
    pub assigned: u64,
    /// Slices that a lane took of the share of another one.
    pub stolen: u64,
    /// Slices that a lane had when it was lost, so that others did them again.
    pub redone: u64,
}

/// What was on of a fleet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaled {
    /// Lane time by class, from the begin of the run to the last arrival, in which lanes started, were on, or finished what they had.
    pub paid_s: Vec<f64>,
    /// Lanes that were started.
    pub starts: u64,
    /// Windows in which it was judged how many are wanted.
    pub windows: u64,
    /// Those in which the load that they are wanted for was forecast.
    pub forecast_windows: u64,
    /// Those in which what arrived was an anomaly.
    pub anomalies: u64,
    /// Those in which the forecast's error was known, and the sum of this error in them, by the mean load.
    pub error_windows: u64,
    /// The sum of that error.
    pub error_sum: f64,
}

/// What became of ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ticked {
    /// Ticks that were done.
    pub rows: i64,
    /// Batches that lanes got.
    pub batches: u64,
    /// Groups that a lane gave back, to go to another one.
    pub moves: u64,
    /// Time in which partitions were paused, all of them together, in seconds.
    pub paused_s: f64,
    /// Mean time from a tick's arrival to the end of its batch, in milliseconds, of ticks that came after the first task that is measured; not a
    /// number where there are none.
    pub mean_ms: f64,
    /// The median, likewise.
    pub p50_ms: f64,
    /// The 99th percentile, likewise.
    pub p99_ms: f64,
    /// Lane time by class, from the begin of the run to the last arrival, that batches had.
    pub busy_s: Vec<f64>,
}

/// A slice as a lane worked on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The lane, by its number.
    pub lane: usize,
    /// The task, by its number.
    pub task: usize,
    /// Kind of the task, by its index.
    pub kind: usize,
    /// When it began, in nanoseconds from the begin of the run.
    pub from_ns: i64,
    /// When it ended, likewise.
    pub to_ns: i64,
    /// Whether it ended because the lane was lost.
    pub is_lost: bool,
}

impl Outcome {
    /// Mean completion time; not a number where nothing was done.
    pub fn mean_s(&self) -> f64 {
        self.tasks.completions_s.iter().sum::<f64>() / self.tasks.completions_s.len() as f64
    }

    /// Share of the measured tasks that were not done in time.
    pub fn missed(&self) -> f64 {
        let missed = self.tasks.rejected + self.tasks.expired + self.tasks.unfinished;
        missed as f64 / (missed + self.tasks.completions_s.len()).max(1) as f64
    }

    /// Tasks by which what is there grows in a second: the slope of the line through [`Outcome::present`] with the least squares, without the first part,
    /// in which an empty fleet fills.
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

    /// A quantile of completion times, from 0 to 1.
    pub fn quantile_s(&self, quantile: f64) -> f64 {
        let last = self.tasks.completions_s.len() - 1;
        self.tasks.completions_s[((quantile * last as f64).round() as usize).min(last)]
    }
}

/// Jain's index of fairness: 1 where all have the same, 1 by their number where one has everything.
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
    /// Half of the interval's width, by Student's t.
    pub half: f64,
}

/// What a ratio of a policy's mean completion time to a rival's says, by its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is below 1.
    Win,
    /// It has 1 in it.
    Tie,
    /// It is above 1.
    Loss,
}

impl Interval {
    /// What it says as a ratio of completion times.
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

/// Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// The mean of figures of independent runs with its 95 % interval; without width for one run.
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
