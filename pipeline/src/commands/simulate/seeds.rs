//! The progress of runs of several seeds.

use std::time::Instant;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::commands::seeds::over_seeds;
use crate::logging::NOTICE;

/// Progress of the runs.
pub struct SeedsProgress {
    bar: ProgressBar,
    began: Instant,
    tasks: u64,
}

impl SeedsProgress {
    /// Creates a progress display for this number of runs.
    pub fn new(runs: u64) -> Self {
        let bar = ProgressBar::new(runs);
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, began: Instant::now(), tasks: 0 }
    }

    /// Shows the name of the current run.
    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// Runs each seed with this number of tasks, on all cores, and returns the results in the order of the seeds.
    pub fn over_seeds<T: Send>(&mut self, seeds: u64, tasks: usize, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
        self.tasks += seeds * tasks as u64;
        over_seeds(seeds, &self.bar, of)
    }

    /// Ends the bar and shows the rate.
    pub fn finish(self) {
        self.bar.finish_and_clear();
        let seconds = self.began.elapsed().as_secs_f64();
        let rate = (self.tasks as f64 / seconds.max(1e-3)) as u64;
        tracing::info!(
            target: NOTICE,
            "simulated {} tasks in {seconds:.1} s: {} tasks/s",
            HumanCount(self.tasks),
            HumanCount(rate)
        );
    }
}
