//! Profits of portfolios that were asked about before. A request that differs from an earlier one in some positions or prices has
//! only these revalued; the bits are those of a full run.
//!
//! ```text
//! first request with these scenarios and books    computed, nothing is kept: most are asked once
//! second, little has changed                      computed, and kept: profits of every position, a unit each
//! next ones                                       what differs is revalued, and what stands above it in the sums
//! ```
//!
//! It is shared by the lanes of a process, which may do any unit of any request.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warptape_kernels::Isa;
use warptape_kernels::portfolio::{LiveProfits, Portfolio, Profits, Scenarios};

/// Bytes that are kept at most, about.
const BYTES_MAX: usize = 256 << 20;
/// Scenarios and books that are known at most.
const SETS_MAX: usize = 64;
/// What adding up costs, in parts of what revaluing does.
const SUM_COST: usize = 32;

/// What is kept of all requests.
#[derive(Debug, Default)]
pub struct KeptProfits {
    /// The last used first.
    sets: Mutex<VecDeque<Arc<Set>>>,
    revalued: Arc<AtomicU64>,
}

/// Requests with the same scenarios and books.
#[derive(Debug)]
struct Set {
    scenarios: Scenarios,
    bytes: usize,
    last: Mutex<Last>,
    /// By the first scenario of a unit.
    units: Mutex<BTreeMap<u64, LiveProfits>>,
}

#[derive(Debug)]
struct Last {
    portfolio: Arc<Portfolio>,
    /// Whether units are kept.
    is_kept: bool,
}

/// A request's way to what is kept.
#[derive(Debug)]
pub(super) struct Follower {
    set: Arc<Set>,
    revalued: Arc<AtomicU64>,
    /// Positions that are to be revalued, about.
    pub(super) cost: usize,
}

impl KeptProfits {
    /// Positions that were revalued in units of scenarios so far, where anything was kept.
    pub fn revalued(&self) -> u64 {
        self.revalued.load(Ordering::Relaxed)
    }

    /// The way for a portfolio in some scenarios, if something is kept, or worth to be.
    pub(super) fn follower(&self, portfolio: &Arc<Portfolio>, scenarios: &Scenarios) -> Option<Follower> {
        let mut sets = locked(&self.sets);
        let is_alike = |set: &Arc<Set>| {
            are_alike(&locked(&set.last).portfolio, portfolio) && set.scenarios == *scenarios
        };
        let Some(at) = sets.iter().position(is_alike) else {
            remember(&mut sets, portfolio, scenarios);
            return None;
        };
        let set = sets.remove(at).expect("it was found there");
        sets.push_front(set.clone());
        let positions = portfolio.positions().len();
        let mut last = locked(&set.last);
        let changed = changed(&last.portfolio, portfolio);
        last.portfolio = portfolio.clone();
        if 2 * changed > positions {
            return None;
        }
        let was_kept = std::mem::replace(&mut last.is_kept, true);
        let cost = if was_kept { changed + positions / SUM_COST + 1 } else { positions };
        drop(last);
        Some(Follower { set, revalued: self.revalued.clone(), cost })
    }
}

impl Follower {
    /// Adds the profits of each book in some scenarios, in order: those of a unit.
    pub(super) fn run(&self, isa: Isa, portfolio: &Arc<Portfolio>, range: Range<u64>, profits: &mut Profits) {
        let first = range.start;
        // Others may want the unit meanwhile: they compute it.
        let mut before = locked(&self.set.units).remove(&first);
        let followed = before.as_mut().and_then(|live| live.follow(isa, portfolio));
        let (live, revalued) = match (before, followed) {
            (Some(live), Some(recomputed)) => (live, recomputed.positions),
            _ => {
                let live = LiveProfits::new(isa, portfolio.clone(), &self.set.scenarios, range);
                (live.expect("a unit fits"), portfolio.positions().len())
            }
        };
        self.revalued.fetch_add(revalued as u64, Ordering::Relaxed);
        profits.append(&live.profits());
        locked(&self.set.units).insert(first, live);
    }
}

/// Whether one can follow the other.
fn are_alike(one: &Portfolio, other: &Portfolio) -> bool {
    one.parents() == other.parents() && one.positions().len() == other.positions().len()
}

/// How many positions differ, or the markets of their assets.
fn changed(before: &Portfolio, after: &Portfolio) -> usize {
    let assets = before.assets().iter().zip(after.assets());
    let has_moved: Vec<bool> = assets.map(|(before, after)| before != after).collect();
    let positions = before.positions().iter().zip(after.positions());
    positions.filter(|(before, after)| before != after || has_moved[after.asset]).count()
}

/// Knows the next one like it.
fn remember(sets: &mut VecDeque<Arc<Set>>, portfolio: &Arc<Portfolio>, scenarios: &Scenarios) {
    // Sums are as many as their terms at most.
    let columns = 2 * (portfolio.positions().len() + portfolio.parents().len()) + portfolio.assets().len();
    let bytes = (scenarios.len() as usize).saturating_mul(columns * size_of::<f64>());
    if bytes > BYTES_MAX {
        return;
    }
    let last = Mutex::new(Last { portfolio: portfolio.clone(), is_kept: false });
    sets.push_front(Arc::new(Set { scenarios: scenarios.clone(), bytes, last, units: Mutex::default() }));
    while sets.len() > SETS_MAX || sets.iter().map(|set| set.bytes).sum::<usize>() > BYTES_MAX {
        sets.pop_back();
    }
}

/// What a thread that panicked left is whole: nothing is changed in steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
