//! Schedules that know every task's size, and a bound that no schedule is below.
//!
//! Here a task's work flows: any number of lanes work on it at once, for no overhead, and leave it at any moment. So these schedules can do all that
//! the scheduler can, and more. The best schedule of this kind is not known for lanes that are unlike, so several are tried:
//! each class of lanes works on the task with the greatest `price × speed ÷ rest^exponent`, decided anew whenever a task comes or is done.
//! An exponent of 0 wastes no lane time, a large one does the shortest task first.

use crate::fleet::Fleet;
use crate::workload::{Arrival, Workload};

/// Exponents that are tried, in eighths.
pub const EXPONENT_EIGHTHS: [u32; 8] = [1, 2, 3, 4, 6, 8, 16, 64];

/// What is left of a task.
#[derive(Clone, Copy, Debug)]
struct Rest {
    kind: usize,
    at_s: f64,
    /// In seconds of the reference class.
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

/// Work below which a task is done: rounding leaves some.
const NOTHING_S: f64 = 1e-12;

/// Mean completion time, in seconds, of what is measured, if work is done at the rates that `rates` gives for what is there. The rates hold
/// until a task comes or is done.
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

/// Mean completion times of schedules that know every size, in seconds, in the order of [`EXPONENT_EIGHTHS`]; of arrivals that do not depend on
/// the schedule, which those of a closed loop do.
///
/// # Panics
/// Where a kind can be done by nobody.
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

/// A power whose exponent is given in eighths, by roots and products alone, which are the same everywhere.
fn power(base: f64, eighths: u32) -> f64 {
    let root = base.sqrt().sqrt().sqrt();
    (0..eighths).fold(1.0, |product, _| product * root)
}

/// A bound below the mean completion time of every schedule, in seconds.
///
/// At prices of the capacity problem all lanes together do work worth no more than the capacity in a second, whatever they work on. So no schedule is
/// better than one machine that does the task with the least worth left first, without overhead, which is best on one machine (Schrage 1968); nor than every
/// task on all lanes at once, each alone.
///
/// # Panics
/// Where a kind can be done by nobody.
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
        // The second is done at 2, the third at 4.5, the first at 7.5; in order of arrival at 4, 5, 7.5.
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
