//! Runs of several seeds, on all cores, with the progress that people see.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use crate::logging::NOTICE;

/// What has been run so far.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    tasks: u64,
}

impl Progress {
    /// Progress towards a number of runs.
    pub fn new(runs: u64) -> Self {
        let bar = ProgressBar::new(runs);
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {eta} left  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, began: Instant::now(), tasks: 0 }
    }

    /// Says what runs now.
    pub fn say(&self, what: String) {
        self.bar.set_message(what);
    }

    /// What each seed gives, in their order, on all cores; a seed runs so many tasks.
    pub fn over_seeds<T: Send>(&mut self, seeds: u64, tasks: usize, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
        self.tasks += seeds * tasks as u64;
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(seeds as usize);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed) as u64;
                if seed >= seeds {
                    return found;
                }
                found.push((seed, of(seed)));
                self.bar.inc(1);
            }
        };
        let mut found: Vec<(u64, T)> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            // A run that panics ends the command as it would here.
            let joined = handles.into_iter().map(|handle| handle.join());
            joined.flat_map(|found| found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        found.sort_by_key(|(seed, _)| *seed);
        found.into_iter().map(|(_, found)| found).collect()
    }

    /// Ends the bar and says how fast it went.
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
