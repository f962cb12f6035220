//! Schedules that know every task's size, and a lower bound for the mean completion time of any schedule.
//!
//! Work is fluid here: any number of lanes work on a task at once, without overhead, and may leave it at any moment.
//! These schedules can therefore do all that the scheduler can, and more. The best such schedule is not known for
//! unlike lanes, so several are tried. Each class of lanes works on the task with the greatest
//! `price × speed ÷ rest^exponent`, and chooses again whenever a task arrives or completes. An exponent of 0 wastes no
//! lane time; a large one does the shortest task first.

use crate::fleet::Fleet;
use crate::workload::{Arrival, Workload};

/// Exponents tried, in eighths.
pub const EXPONENT_EIGHTHS: [u32; 8] = [1, 2, 3, 4, 6, 8, 16, 64];

/// The remaining work of a task.
#[derive(Clone, Copy, Debug)]
struct Rest {
    kind: usize,
    at_s: f64,
    /// Remaining work, in seconds of the reference class.
    work_s: f64,
    is_measured: bool,
}

fn rests(workload: &Workload, arrivals: &[Arrival], warmup: f64) -> Vec<Rest> {
    let measured = (warmup * arrivals.len() as f64) as usize;
    let rest = |(number, arrival): (usize, &Arrival)| Rest {
        kind: arrival.kind,
        at_s: arrival.at_ns as f64 / 1e9,
        work_s: arrival.units as f64 / workload.units_per_s,
        is_measured: number >= measured,
    };
    arrivals.iter().enumerate().map(rest).collect()
}

/// Remaining work below which a task counts as done, because rounding leaves a little, in seconds.
const NOTHING_S: f64 = 1e-12;

/// Returns the mean completion time of measured tasks, in seconds. `rates` sets the rate at which each current task
/// progresses, until the next task arrives or completes.
fn mean_of(tasks: &[Rest], mut rates: impl FnMut(&[Rest], &mut [f64])) -> f64 {
    let (mut now_s, mut next, mut sum, mut measured) = (0.0, 0, 0.0, 0.0);
    let (mut there, mut rate): (Vec<Rest>, Vec<f64>) = (Vec::new(), Vec::new());
    while next < tasks.len() || !there.is_empty() {
        rate.clear();
        rate.resize(there.len(), 0.0);
        rates(&there, &mut rate);
        let done_s =
            there.iter().zip(&rate).map(|(rest, rate)| rest.work_s / rate).fold(f64::INFINITY, f64::min);
        let comes_s = tasks.get(next).map_or(f64::INFINITY, |task| task.at_s - now_s);
        let passed_s = done_s.min(comes_s);
        now_s += passed_s;
        there.iter_mut().zip(&rate).for_each(|(rest, rate)| rest.work_s -= rate * passed_s);
        for done in there.extract_if(.., |rest| rest.work_s <= NOTHING_S).filter(|done| done.is_measured) {
            sum += now_s - done.at_s;
            measured += 1.0;
        }
        if comes_s <= done_s
            && let Some(task) = tasks.get(next)
        {
            now_s = task.at_s;
            there.push(*task);
            next += 1;
        }
    }
    sum / measured
}

/// Returns the mean completion time of each schedule, in seconds, in the order of [`EXPONENT_EIGHTHS`]. Arrivals must
/// not depend on the schedule, so closed loops are excluded.
///
/// # Panics
/// If no lane can do one of the kinds.
pub fn schedules(fleet: &Fleet, workload: &Workload, warmup: f64, seed: u64) -> Vec<f64> {
    let tasks = rests(workload, &workload.arrivals(fleet, seed), warmup);
    let prices = fleet.prices(&workload.mix());
    let of = |eighths: u32| {
        mean_of(&tasks, |there, rate| {
            for class in &fleet.classes {
                let worth =
                    |rest: &Rest| prices[rest.kind] * class.speeds[rest.kind] / power(rest.work_s, eighths);
                let best = (0..there.len())
                    .max_by(|one, other| worth(&there[*one]).total_cmp(&worth(&there[*other])));
                if let Some(best) = best {
                    rate[best] += class.lanes as f64 * class.speeds[there[best].kind];
                }
            }
        })
    };
    EXPONENT_EIGHTHS.iter().map(|eighths| of(*eighths)).collect()
}

/// Returns a power with an exponent in eighths. It uses only roots and products, which give the same bits on every
/// machine.
fn power(base: f64, eighths: u32) -> f64 {
    let root = base.sqrt().sqrt().sqrt();
    (0..eighths).fold(1.0, |product, _| product * root)
}

/// Returns a lower bound for the mean completion time of every schedule, in seconds.
///
/// At the prices of the capacity problem, all lanes together do at most the capacity's worth of work per second. So no
/// schedule beats a single machine without overhead that always runs the task with the least remaining worth. This
/// order is optimal for one machine (Schrage 1968). A second bound is the time of each task alone on all lanes.
///
/// # Panics
/// If no lane can do one of the kinds.
pub fn bound(fleet: &Fleet, workload: &Workload, warmup: f64, seed: u64) -> f64 {
    let mix = workload.mix();
    let (capacity, prices) = (fleet.capacity(&mix), fleet.prices(&mix));
    let tasks = rests(workload, &workload.arrivals(fleet, seed), warmup);
    let worth: Vec<_> =
        tasks.iter().map(|rest| Rest { work_s: rest.work_s * prices[rest.kind], ..*rest }).collect();
    let pooled_s = mean_of(&worth, |there, rate| {
        let least = (0..there.len()).min_by(|one, other| there[*one].work_s.total_cmp(&there[*other].work_s));
        if let Some(least) = least {
            rate[least] = capacity;
        }
    });
    let measured: Vec<_> = tasks.iter().filter(|rest| rest.is_measured).collect();
    let alone = |rest: &&Rest| {
        let speed: f64 = fleet.classes.iter().map(|class| class.lanes as f64 * class.speeds[rest.kind]).sum();
        rest.work_s / speed
    };
    pooled_s.max(measured.iter().map(alone).sum::<f64>() / measured.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(at_s: f64, work_s: f64) -> Rest {
        Rest { kind: 0, at_s, work_s, is_measured: true }
    }

    #[test]
    fn the_shortest_rest_goes_first_and_is_best() {
        let tasks = [rest(0.0, 4.0), rest(1.0, 1.0), rest(1.5, 2.5)];
        let first = |of: fn(&Rest) -> f64| {
            mean_of(&tasks, |there, rate| {
                let least =
                    (0..there.len()).min_by(|one, other| of(&there[*one]).total_cmp(&of(&there[*other])));
                rate.iter_mut().enumerate().for_each(|(index, rate)| *rate = f64::from(Some(index) == least));
            })
        };
        // Shortest remaining work first: the second task completes at 2, the third at 4.5, the first at 7.5. In order
        // of arrival: at 4, 5 and 7.5.
        assert!((first(|rest| rest.work_s) - (1.0 + 3.0 + 7.5) / 3.0).abs() < 1e-9);
        assert!((first(|rest| rest.at_s) - (4.0 + 4.0 + 6.0) / 3.0).abs() < 1e-9);
    }

    #[test]
    fn no_schedule_is_below_the_bound_and_one_kind_meets_it() {
        let fleet = Fleet::volta_turing_radeon();
        for (load, seed) in [(0.5, 1), (0.85, 2), (0.95, 3)] {
            let workload = Workload::three_kinds(load, 300);
            let least = bound(&fleet, &workload, 0.1, seed);
            let found = schedules(&fleet, &workload, 0.1, seed);
            assert!(found.iter().all(|mean| *mean >= least), "load {load}: {found:?}, bound {least}");
            let mut of_one = fleet.clone();
            of_one.classes.iter_mut().for_each(|class| class.speeds.truncate(1));
            let one = Workload {
                kinds: vec![crate::TaskKind { share: 1.0, ..workload.kinds[0].clone() }],
                ..workload
            };
            let (least, found) = (bound(&of_one, &one, 0.1, seed), schedules(&of_one, &one, 0.1, seed));
            assert!((found[7] / least - 1.0).abs() < 1e-6, "load {load}: {found:?}, bound {least}");
        }
    }
}
