//! Runs of several seeds, spread over all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::ProgressBar;

/// Runs each seed, on all cores, and returns the results in the order of the seeds.
pub fn over_seeds<T: Send>(seeds: u64, bar: &ProgressBar, of: impl Fn(u64) -> T + Sync) -> Vec<T> {
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
            bar.inc(1);
        }
    };
    let mut found: Vec<(u64, T)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // A run's panic ends the command, as in a single thread.
        let joined = handles.into_iter().map(|handle| handle.join());
        joined.flat_map(|found| found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    });
    found.sort_by_key(|(seed, _)| *seed);
    found.into_iter().map(|(_, found)| found).collect()
}
