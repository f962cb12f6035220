//! The capacity problem of [`AskPrices`], and its prices.
//!
//! Work of several kinds comes in a mix, and lanes of several classes differ in how fast they are at each kind. A
//! linear program finds the greatest multiple λ of the mix that the lanes can keep up with. Class `c`, of `n_c` lanes,
//! gives time `x_ck` to kind `k`:
//!
//! ```text
//!   maximise λ    with   Σ_c s_ck x_ck ≥ λ m_k  for each kind,    Σ_k x_ck ≤ n_c  for each class,    x ≥ 0
//! ```
//!
//! Here `m_k` is the kind's share of the work, in lane time of the class that is fastest at it. The speed of class `c`
//! relative to that class is `s_ck`. The dual gives the price `p_k` of a unit of work of each kind. The worth of a
//! moment of class `c` on kind `k` is `s_ck p_k`. It is the same for all kinds that the class should work on, and less
//! for all others.
//!
//! The problem is solved outside of the scheduler, which gets the prices as an input. So a replay need not repeat the
//! solver's floating-point iterations.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, ZeroConeT};
use warptape_events::journal::{AskPrices, KindDemand};

/// Iterations after which the solver gives up; such problems take some twenty.
const ITERATIONS_MAX: u32 = 200;

/// The solution of the capacity problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Capacity {
    /// Most work that the lanes can do in a second, in seconds of the class that is fastest at each kind.
    pub work_per_s: f64,
    /// Price of each kind's work, in the order of the question. The prices are normalised: a unit of the mix costs 1.
    pub prices: Vec<f64>,
    /// Time that each class gives to each kind, in lanes: the `x_ck` of the problem, by class and kind. It is one of
    /// the best allocations if there are several.
    pub allocation: Vec<Vec<f64>>,
}

/// Solves the capacity problem. `mix` is the share of each kind in the work, and `lanes` the number of lanes of each
/// class. `speeds[class][kind]` is the speed relative to the class that is fastest at the kind; 0 if the class cannot
/// do it. Returns `None` if no class can do some kind, or if the solver does not converge.
pub fn capacity(mix: &[f64], lanes: &[f64], speeds: &[Vec<f64>]) -> Option<Capacity> {
    let (kinds, classes) = (mix.len(), lanes.len());
    let is_done =
        |kind: usize| speeds.iter().zip(lanes).any(|(speeds, lanes)| speeds[kind] > 0.0 && *lanes > 0.0);
    if (0..kinds).any(|kind| mix[kind] > 0.0 && !is_done(kind)) {
        return None;
    }
    // The dual is: minimise Σ n_c w_c with w_c ≥ s_ck p_k, Σ m_k p_k = 1, p ≥ 0. Its variables are the prices and then
    // the w_c.
    let mut linear = vec![0.0; kinds];
    linear.extend(lanes);
    let (mut rows, mut columns, mut values, mut limits) = (Vec::new(), Vec::new(), Vec::new(), vec![1.0]);
    let mut set = |row: usize, column: usize, value: f64| {
        rows.push(row);
        columns.push(column);
        values.push(value);
    };
    mix.iter().enumerate().for_each(|(kind, share)| set(0, kind, *share));
    for (class, speeds) in speeds.iter().enumerate() {
        for (kind, speed) in speeds.iter().enumerate().filter(|(_, speed)| **speed > 0.0) {
            set(limits.len(), kind, *speed);
            set(limits.len(), kinds + class, -1.0);
            limits.push(0.0);
        }
    }
    for kind in 0..kinds {
        set(limits.len(), kind, -1.0);
        limits.push(0.0);
    }
    let constraints = CscMatrix::new_from_triplets(limits.len(), kinds + classes, rows, columns, values);
    let quadratic = CscMatrix::zeros((kinds + classes, kinds + classes));
    let cones = [ZeroConeT(1), NonnegativeConeT(limits.len() - 1)];
    let settings = DefaultSettings {
        verbose: false,
        max_threads: 1,
        direct_solve_method: "qdldl".to_owned(),
        max_iter: ITERATIONS_MAX,
        ..DefaultSettings::default()
    };
    let mut solver = DefaultSolver::new(&quadratic, &linear, &constraints, &limits, &cones, settings).ok()?;
    solver.solve();
    match solver.solution.status {
        SolverStatus::Solved | SolverStatus::AlmostSolved => {
            let prices = solver.solution.x[..kinds].iter().map(|price| price.max(0.0)).collect();
            // The time that a class gives to a kind is the dual of the price's limit there. Limits are in the order of
            // their creation.
            let mut duals = solver.solution.z[1..].iter();
            let mut time = |speed: &f64| match *speed > 0.0 {
                true => duals.next().map_or(0.0, |time| time.max(0.0)),
                false => 0.0,
            };
            let allocation = speeds.iter().map(|speeds| speeds.iter().map(&mut time).collect()).collect();
            Some(Capacity { work_per_s: solver.solution.obj_val, prices, allocation })
        }
        _ => None,
    }
}

/// Prices of a unit of cost of each kind, in the order of the question; empty if the problem cannot be solved. They are
/// in the unit of the question's times, so that a price divided by a time is the worth of a moment. Only their ratios
/// mean something.
pub fn solve(question: &AskPrices) -> Vec<i64> {
    let fastest: Vec<f64> = question.kinds.iter().map(fastest_fs).collect();
    let work: Vec<f64> =
        question.kinds.iter().zip(&fastest).map(|(kind, fs)| kind.cost as f64 * fs).collect();
    let total: f64 = work.iter().sum();
    if total <= 0.0 {
        return Vec::new();
    }
    let mix: Vec<f64> = work.iter().map(|work| work / total).collect();
    let lanes: Vec<f64> = question.lanes.iter().map(|lanes| f64::from(*lanes)).collect();
    let speed = |class: usize, kind: usize| match question.kinds[kind].fs_per_cost[class] {
        0 => 0.0,
        fs => fastest[kind] / fs as f64,
    };
    let speeds: Vec<Vec<f64>> =
        (0..lanes.len()).map(|class| (0..mix.len()).map(|kind| speed(class, kind)).collect()).collect();
    let Some(Capacity { prices, .. }) = capacity(&mix, &lanes, &speeds) else { return Vec::new() };
    // A kind that all classes do equally fast has a price of 1: its unit of cost is worth the time that it takes.
    prices.iter().zip(&fastest).map(|(price, fs)| (price * fs).max(1.0) as i64).collect()
}

/// Time of a unit of cost on the fastest class, in femtoseconds.
fn fastest_fs(kind: &KindDemand) -> f64 {
    kind.fs_per_cost.iter().filter(|fs| **fs > 0).min().map_or(0.0, |fs| *fs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-6 * other.abs().max(1.0), "{one} {other}");
    }

    #[test]
    fn the_capacity_of_unlike_lanes_is_that_of_the_best_assignment() {
        // Each class is twice as fast at its own kind. If the mix is 3 to 1, each does its own kind: 3 + 1 units of
        // work.
        let own = capacity(&[0.75, 0.25], &[3.0, 1.0], &[vec![1.0, 0.5], vec![0.5, 1.0]]).unwrap();
        close(own.work_per_s, 4.0);
        // All work is of one kind: 3 + 0.5.
        close(capacity(&[1.0, 0.0], &[3.0, 1.0], &[vec![1.0, 0.5], vec![0.5, 1.0]]).unwrap().work_per_s, 3.5);
        // 8 Volta, 4 Turing and 4 Radeon lanes, and three kinds in equal parts: Turing and Radeon do one kind each,
        // Volta does the rest.
        let speeds = [vec![1.0, 1.0, 1.0], vec![0.447, 0.662, 0.743], vec![0.841, 0.970, 0.80]];
        let mixed = capacity(&[1.0 / 3.0; 3], &[8.0, 4.0, 4.0], &speeds).unwrap();
        close(mixed.work_per_s, 8.0 + 4.0 * 0.743 + 4.0 * 0.970);
        // So all kinds are worth the same on Volta, and no kind is worth more to a class than its own.
        mixed.prices.iter().for_each(|price| close(*price, 1.0));
        // Each class gives all of its time, and each kind gets its third of the work.
        for (lanes, times) in [8.0, 4.0, 4.0].iter().zip(&mixed.allocation) {
            assert!((times.iter().sum::<f64>() - lanes).abs() < 1e-4, "{times:?}");
        }
        for kind in 0..3 {
            let of_classes = speeds.iter().zip(&mixed.allocation);
            let work: f64 = of_classes.map(|(speeds, times)| speeds[kind] * times[kind]).sum();
            assert!((work / mixed.work_per_s - 1.0 / 3.0).abs() < 1e-4, "kind {kind}: {work}");
        }
    }

    #[test]
    fn a_kind_that_nobody_can_do_has_no_solution() {
        assert_eq!(capacity(&[0.5, 0.5], &[1.0], &[vec![1.0, 0.0]]), None);
    }

    #[test]
    fn prices_follow_the_units_of_cost() {
        let kind = |rate_key: &str, cost, fs_per_cost: &[i64]| KindDemand {
            rate_key: rate_key.into(),
            cost,
            fs_per_cost: fs_per_cost.to_vec(),
        };
        let question = |kinds| AskPrices { question: 0, lanes: vec![2, 1], kinds };
        let prices = solve(&question(vec![
            kind("a", 1_000, &[1_000_000_000, 2_000_000_000]),
            kind("b", 1, &[1_000_000_000_000, 1_000_000_000_000]),
        ]));
        let ratio = prices[1] as f64 / prices[0] as f64;
        // Both kinds are worth the same to the first class. The second class is better off with the kind at which it is
        // as fast as the first.
        assert!((ratio - 1_000.0).abs() < 0.1, "{prices:?}");
        assert!(solve(&question(vec![kind("a", 0, &[1, 1])])).is_empty());
        assert!(solve(&question(vec![kind("a", 1, &[0, 0])])).is_empty());
    }
}
