//! Profits of portfolios that are kept for later requests. A request that differs from an earlier one in some positions
//! or prices has only these revalued; the bits are those of a full run.
//!
//! ```text
//! first request with these scenarios and books    computed, nothing is kept: most are asked once
//! second, little has changed                      computed, and kept: profits of every position, a unit each
//! next ones                                       what differs is revalued, and what stands above it in the sums
//! ```
//!
//! Kept profits are shared by the lanes of a process, any of which may run any unit of any request.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use warptape_kernels::Isa;
use warptape_kernels::portfolio::{LiveProfits, Portfolio, Profits, Scenarios};

/// Approximate bytes that are kept at most.
const BYTES_MAX: usize = 256 << 20;
/// Most bytes of scenarios that are remembered before their profits are kept.
const REMEMBERED_BYTES_MAX: usize = BYTES_MAX / 16;
/// Most scenarios and books that are remembered.
const SETS_MAX: usize = 64;
/// Number of positions whose addition costs as much as revaluing one.
const SUM_COST: usize = 32;

/// Kept profits of all requests.
#[derive(Debug, Default)]
pub struct KeptProfits {
    /// Sets, the last used first.
    sets: Mutex<VecDeque<Arc<Set>>>,
    revalued: Arc<AtomicU64>,
}

/// Requests with the same scenarios and books.
#[derive(Debug)]
struct Set {
    scenarios: Scenarios,
    /// Bytes of the scenarios, and of the profits once they are kept.
    bytes: [usize; 2],
    /// True if profits are to be kept, or are kept.
    is_kept: AtomicBool,
    /// The portfolio of the last request.
    last: Mutex<Arc<Portfolio>>,
    /// Profits by the first scenario of a unit; `None` once there was no more room for them.
    units: Mutex<Option<BTreeMap<u64, LiveProfits>>>,
}

/// Access of a request to the kept profits.
#[derive(Debug)]
pub(super) struct Follower {
    set: Arc<Set>,
    revalued: Arc<AtomicU64>,
    /// Approximate number of positions that a unit has to revalue, plus the cost of adding up.
    pub(super) cost: usize,
}

impl KeptProfits {
    /// Positions that were revalued in units of scenarios so far, in requests with kept profits.
    pub fn revalued(&self) -> u64 {
        self.revalued.load(Ordering::Relaxed)
    }

    /// The access for a portfolio in scenarios of `units` units; `None` if profits are neither kept nor worth keeping.
    pub(super) fn follower(
        &self,
        portfolio: &Arc<Portfolio>,
        scenarios: &Scenarios,
        units: usize,
    ) -> Option<Follower> {
        // Another thread compares scenarios, and the system may have put it off. This request must not wait for it, so
        // it uses no kept profits.
        let mut sets = match self.sets.try_lock() {
            Ok(sets) => sets,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let is_alike =
            |set: &Arc<Set>| are_alike(&locked(&set.last), portfolio) && set.scenarios == *scenarios;
        let Some(at) = sets.iter().position(is_alike) else {
            remember(&mut sets, portfolio, scenarios);
            return None;
        };
        let set = sets.remove(at).expect("it was found there");
        sets.push_front(set.clone());
        let before = std::mem::replace(&mut *locked(&set.last), portfolio.clone());
        if 2 * changed(&before, portfolio) > portfolio.positions().len() {
            return None;
        }
        set.is_kept.store(true, Ordering::Relaxed);
        make_room(&mut sets);
        let cost = set.cost(portfolio, units);
        Some(Follower { set, revalued: self.revalued.clone(), cost })
    }
}

impl Set {
    fn bytes(&self) -> usize {
        let [scenarios, profits] = self.bytes;
        if self.is_kept.load(Ordering::Relaxed) { scenarios + profits } else { scenarios }
    }

    /// Estimated cost of a unit, in revalued positions. It is all positions if some units are not kept yet, because the
    /// age of the missing ones is unknown.
    fn cost(&self, portfolio: &Arc<Portfolio>, units: usize) -> usize {
        let positions = portfolio.positions().len();
        let kept = locked(&self.units);
        let Some(kept) = kept.as_ref().filter(|kept| kept.len() == units) else { return positions };
        let mut known: Vec<&Arc<Portfolio>> = Vec::new();
        for live in kept.values() {
            if !known.iter().any(|portfolio| Arc::ptr_eq(portfolio, live.portfolio())) {
                known.push(live.portfolio());
            }
        }
        let changed = known.iter().map(|before| changed(before, portfolio)).max().unwrap_or(0);
        (changed + positions / SUM_COST + 1).min(positions)
    }
}

impl Follower {
    /// Adds the profits of each book in some scenarios, in order; these are the scenarios of a unit.
    pub(super) fn run(&self, isa: Isa, portfolio: &Arc<Portfolio>, range: Range<u64>, profits: &mut Profits) {
        let first = range.start;
        // Another thread may want the unit meanwhile: it computes the unit itself.
        let mut before = locked(&self.set.units).as_mut().and_then(|units| units.remove(&first));
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
        if let Some(units) = locked(&self.set.units).as_mut() {
            units.insert(first, live);
        }
    }
}

/// True if the profits of one portfolio can be made to follow the other.
fn are_alike(one: &Portfolio, other: &Portfolio) -> bool {
    one.parents() == other.parents() && one.positions().len() == other.positions().len()
}

/// Number of positions that differ themselves or in the markets of their assets.
fn changed(before: &Portfolio, after: &Portfolio) -> usize {
    let has_moved = before.moved_assets(after);
    let positions = before.positions().iter().zip(after.positions());
    positions.filter(|(before, after)| before != after || has_moved[after.asset]).count()
}

/// Notes a request, so that the next one like it is recognised.
fn remember(sets: &mut VecDeque<Arc<Set>>, portfolio: &Arc<Portfolio>, scenarios: &Scenarios) {
    let cells = |columns: usize| (scenarios.len() as usize).saturating_mul(columns * size_of::<f64>());
    // Sums are at most as many as their terms; drawn scenarios are kept with their moves.
    let assets = portfolio.assets().len();
    let columns = 2 * (portfolio.positions().len() + portfolio.parents().len()) + assets;
    let bytes = [scenarios.bytes(), cells(columns)];
    if bytes[0] > REMEMBERED_BYTES_MAX || bytes[0].saturating_add(bytes[1]) > BYTES_MAX {
        return;
    }
    sets.push_front(Arc::new(Set {
        scenarios: scenarios.clone(),
        bytes,
        is_kept: AtomicBool::new(false),
        last: Mutex::new(portfolio.clone()),
        units: Mutex::new(Some(BTreeMap::new())),
    }));
    make_room(sets);
}

/// Forgets the sets that were least recently used, first those without kept profits.
fn make_room(sets: &mut VecDeque<Arc<Set>>) {
    while sets.len() > SETS_MAX || sets.iter().map(|set| set.bytes()).sum::<usize>() > BYTES_MAX {
        let is_spare = |set: &Arc<Set>| !set.is_kept.load(Ordering::Relaxed);
        // The first one was used just now.
        let spare = sets.iter().skip(1).rposition(is_spare).map_or(sets.len() - 1, |at| at + 1);
        let set = sets.remove(spare).expect("it was found there");
        // Requests in work keep nothing more in it.
        *locked(&set.units) = None;
    }
}

/// Locks a mutex, also one that a thread left by a panic: the value is whole, because nothing is changed in steps.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
