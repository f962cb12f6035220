//! Figures of each policy over all seeds, and of the bounds; each policy or bound has one table row.

use crate::clairvoyant;
use crate::fleet::Fleet;
use crate::outcome::{Interval, Outcome, Ticked, interval, jain};
use crate::workload::{Process, Workload};

/// The table that a figure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum About {
    /// Completion times of tasks.
    Completion,
    /// Latencies of ticks, and the lane time that they take.
    Ticks,
    /// Tasks done and missed, and the decisions made.
    Work,
    /// Lane time by use.
    Lanes,
    /// Cost of lanes that can be started and stopped, and its effect on tasks.
    Cost,
}

impl About {
    /// All tables, in their order.
    pub const ALL: [Self; 5] = [Self::Completion, Self::Ticks, Self::Work, Self::Lanes, Self::Cost];
}

/// Figures of other tables that the table of costs repeats, because they show the service that tasks get.
pub const BESIDE_COST: [&str; 3] = ["missed_percent", "mean_s", "p99_s"];

/// A figure over all seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The figure's name, which ends in its unit.
    pub name: String,
    /// The figure's table.
    pub about: About,
    /// Mean over seeds, with its interval.
    pub values: Interval,
}

/// The figures of one policy. A schedule or bound that is not a policy has its name in brackets.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureRow {
    /// The name of the policy, schedule or bound.
    pub name: String,
    /// The row's figures; a bound has only the figures that it limits.
    pub figures: Vec<Figure>,
}

impl FigureRow {
    /// Returns the figure with a name; `None` if the row lacks it.
    pub fn figure(&self, name: &str) -> Option<Interval> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.values)
    }
}

/// Classes of tasks, in the order of [`MeasuredTasks::missed_by_class`](crate::MeasuredTasks::missed_by_class).
const CLASSES: [&str; 3] = ["critical", "interactive", "batch"];

/// Returns a value divided by a time; 0 if no time has passed.
fn by(value: f64, time_s: f64) -> f64 {
    if time_s > 0.0 { value / time_s } else { 0.0 }
}

/// Returns the row of a policy.
pub fn row(name: &str, outcomes: &[Outcome], fleet: &Fleet, workload: &Workload) -> FigureRow {
    let of = |about: About, name: &str, figure: &dyn Fn(&Outcome) -> f64| {
        let values: Vec<f64> = outcomes.iter().map(figure).collect();
        Figure { name: name.to_owned(), about, values: interval(&values) }
    };
    let mut figures = completion(&of);
    figures.extend(work(&of, fleet.capacity(&workload.mix()), outcomes));
    figures.extend(lanes(&of, fleet, outcomes));
    figures.extend(cost(&of, fleet, outcomes));
    figures.extend(ticks(&of, fleet, outcomes));
    // Times have no value in a seed without a completed task or a measured tick.
    figures.retain(|figure| !figure.values.mean.is_nan());
    FigureRow { name: name.to_owned(), figures }
}

/// Creates a figure from a function that returns its value for one seed's outcome.
type Make<'a> = dyn Fn(About, &str, &dyn Fn(&Outcome) -> f64) -> Figure + 'a;

fn completion(of: &Make<'_>) -> Vec<Figure> {
    let quantile = |outcome: &Outcome, quantile: f64| match outcome.tasks.completions_s.is_empty() {
        true => f64::NAN,
        false => outcome.quantile_s(quantile),
    };
    vec![
        of(About::Completion, "mean_s", &Outcome::mean_s),
        of(About::Completion, "p50_s", &|outcome| quantile(outcome, 0.5)),
        of(About::Completion, "p99_s", &|outcome| quantile(outcome, 0.99)),
        of(About::Completion, "jain", &|outcome| jain(&outcome.service_by_weight)),
    ]
}

fn work(of: &Make<'_>, capacity: f64, outcomes: &[Outcome]) -> Vec<Figure> {
    // The time includes the drain, because some of the work is done after the last arrival.
    let by_time = |value: f64, outcome: &Outcome| by(value, outcome.measured_s + outcome.drain_s);
    let mut figures = vec![
        of(About::Work, "done_per_s", &|outcome| by_time(outcome.tasks.completions_s.len() as f64, outcome)),
        of(About::Work, "in_time_by_capacity", &|outcome| {
            by_time(outcome.tasks.in_time_s, outcome) / capacity
        }),
        of(About::Work, "missed_percent", &|outcome| outcome.missed() * 100.0),
    ];
    for (class, name) in CLASSES.iter().enumerate() {
        if outcomes.iter().any(|outcome| outcome.tasks.ended_by_class[class] > 0) {
            let missed = |outcome: &Outcome| {
                let ended = outcome.tasks.ended_by_class[class] as f64;
                by(outcome.tasks.missed_by_class[class] as f64 * 100.0, ended)
            };
            figures.push(of(About::Work, &format!("missed_{name}_percent"), &missed));
        }
    }
    figures.extend([
        of(About::Work, "decisions", &|outcome| outcome.counts.decisions as f64),
        of(About::Work, "slices", &|outcome| outcome.counts.slices as f64),
        of(About::Work, "assigned", &|outcome| outcome.counts.assigned as f64),
        of(About::Work, "stolen", &|outcome| outcome.counts.stolen as f64),
    ]);
    if outcomes.iter().any(|outcome| outcome.counts.redone > 0) {
        figures.push(of(About::Work, "redone", &|outcome| outcome.counts.redone as f64));
    }
    figures
}

fn lanes(of: &Make<'_>, fleet: &Fleet, outcomes: &[Outcome]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (index, class) in fleet.classes.iter().enumerate() {
        let name = |what: &str| format!("{what}_{}", class.name);
        let lanes = class.lanes as f64;
        let idle_s =
            |outcome: &Outcome| outcome.scaled.paid_s[index] - outcome.busy_s[index] - outcome.lost_s[index];
        figures.push(of(About::Lanes, &name("busy_share"), &|outcome| {
            by(outcome.busy_s[index], lanes * outcome.arrivals_s)
        }));
        // This share covers the same time as `done_per_s` and `in_time_by_capacity`.
        figures.push(of(About::Lanes, &name("busy_until_done_share"), &|outcome| {
            let busy_s = outcome.busy_s[index] + outcome.drain_busy_s[index];
            by(busy_s, lanes * (outcome.arrivals_s + outcome.drain_s))
        }));
        figures.push(of(About::Lanes, &name("busy_s"), &|outcome| outcome.busy_s[index]));
        figures.push(of(About::Lanes, &name("idle_s"), &|outcome| idle_s(outcome).max(0.0)));
        if outcomes.iter().any(|outcome| outcome.lost_s[index] > 0.0) {
            figures.push(of(About::Lanes, &name("lost_s"), &|outcome| outcome.lost_s[index]));
        }
    }
    figures
}

/// Returns the figures of cost; none if all lanes are always on.
fn cost(of: &Make<'_>, fleet: &Fleet, outcomes: &[Outcome]) -> Vec<Figure> {
    let Some(autoscale) = &fleet.autoscale else { return Vec::new() };
    let hours = |outcome: &Outcome| outcome.scaled.paid_s.iter().sum::<f64>() / 3_600.0;
    let price = |outcome: &Outcome| {
        let paid = outcome.scaled.paid_s.iter().zip(&autoscale.price_per_hour);
        paid.map(|(paid_s, price_per_hour)| paid_s / 3_600.0 * price_per_hour).sum::<f64>()
    };
    let lanes = fleet.lanes() as f64;
    let mut figures = vec![
        of(About::Cost, "lane_hours", &hours),
        of(About::Cost, "cost", &price),
        of(About::Cost, "on_percent", &|outcome| {
            by(hours(outcome) * 3_600.0 * 100.0, lanes * outcome.arrivals_s)
        }),
        of(About::Cost, "busy_of_on_percent", &|outcome| {
            by(outcome.busy_s.iter().sum::<f64>() * 100.0, hours(outcome) * 3_600.0)
        }),
    ];
    if outcomes.iter().any(|outcome| outcome.scaled.windows > 0) {
        let share =
            |windows: u64, outcome: &Outcome| by(windows as f64 * 100.0, outcome.scaled.windows as f64);
        figures.push(of(About::Cost, "starts", &|outcome| outcome.scaled.starts as f64));
        figures.push(of(About::Cost, "forecast_error_percent", &|outcome| {
            by(outcome.scaled.error_sum * 100.0, outcome.scaled.error_windows as f64)
        }));
        figures.push(of(About::Cost, "by_forecast_percent", &|outcome| {
            share(outcome.scaled.forecast_windows, outcome)
        }));
        figures
            .push(of(About::Cost, "anomalies_percent", &|outcome| share(outcome.scaled.anomalies, outcome)));
    }
    figures
}

/// Returns the figures of ticks; none if a run had no ticks.
fn ticks(of: &Make<'_>, fleet: &Fleet, outcomes: &[Outcome]) -> Vec<Figure> {
    if outcomes.iter().any(|outcome| outcome.ticks.is_none()) {
        return Vec::new();
    }
    let nothing = Ticked::default();
    let figure = |name: &str, figure: &dyn Fn(&Ticked) -> f64| {
        of(About::Ticks, name, &|outcome| figure(outcome.ticks.as_ref().unwrap_or(&nothing)))
    };
    let lanes = fleet.lanes() as f64;
    let taken = |outcome: &Outcome| {
        let busy_s: f64 = outcome.ticks.iter().flat_map(|ticks| &ticks.busy_s).sum();
        by(busy_s * 100.0, lanes * outcome.arrivals_s)
    };
    let per_s = |outcome: &Outcome| {
        let rows = outcome.ticks.as_ref().map_or(0, |ticks| ticks.rows);
        by(rows as f64, outcome.arrivals_s + outcome.drain_s)
    };
    vec![
        figure("signal_mean_ms", &|ticks| ticks.mean_ms),
        figure("signal_p50_ms", &|ticks| ticks.p50_ms),
        figure("signal_p99_ms", &|ticks| ticks.p99_ms),
        figure("rows", &|ticks| ticks.rows as f64),
        of(About::Ticks, "rows_per_s", &per_s),
        figure("batches", &|ticks| ticks.batches as f64),
        figure("moves", &|ticks| ticks.moves as f64),
        figure("paused_s", &|ticks| ticks.paused_s),
        of(About::Ticks, "ticks_percent", &taken),
    ]
}

/// Returns the best mean completion time among schedules that know all sizes, and the lower bound, in seconds, for the
/// arrivals of one seed. `None` in a closed loop, where arrivals depend on the schedule.
pub fn ideal(fleet: &Fleet, workload: &Workload, warmup: f64, seed: u64) -> Option<(f64, f64)> {
    if matches!(workload.process, Process::Closed(_)) {
        return None;
    }
    let found = clairvoyant::schedules(fleet, workload, warmup, seed);
    let best = found.into_iter().fold(f64::INFINITY, f64::min);
    Some((best, clairvoyant::bound(fleet, workload, warmup, seed)))
}

/// Returns the rows below the policies: the schedules of [`ideal`], the bound, and the capacity.
pub fn bounds(ideals: &[(f64, f64)], fleet: &Fleet, workload: &Workload) -> Vec<FigureRow> {
    let row = |name: &str, about, figures: &[(&str, Interval)]| {
        let figure =
            |(name, values): &(&str, Interval)| Figure { name: (*name).to_owned(), about, values: *values };
        FigureRow { name: name.to_owned(), figures: figures.iter().map(figure).collect() }
    };
    let (best, least): (Vec<f64>, Vec<f64>) = ideals.iter().copied().unzip();
    let mut rows = Vec::new();
    if !ideals.is_empty() {
        let mean = |means: &[f64]| [("mean_s", interval(means))];
        rows.push(row("(best that knows all sizes)", About::Completion, &mean(&best)));
        rows.push(row("(bound)", About::Completion, &mean(&least)));
    }
    let exactly = |mean| Interval { mean, half: 0.0 };
    let left = left_by_ticks(fleet, workload);
    let tasks_per_s = fleet.capacity(&workload.mix()) * left * workload.tasks_by_work();
    let capacity = [("done_per_s", exactly(tasks_per_s)), ("in_time_by_capacity", exactly(left))];
    let mut capacity = row("(capacity)", About::Work, &capacity);
    if workload.ticks.is_some() {
        let ticks = [("rows_per_s", exactly(fleet.ticks_per_s()))];
        capacity.figures.extend(row("", About::Ticks, &ticks).figures);
    }
    rows.push(capacity);
    rows
}

/// Returns the share of the fleet's capacity that ticks leave for tasks; 1 without ticks. Each lane does the kind of
/// work at which it is comparatively fast.
pub fn left_by_ticks(fleet: &Fleet, workload: &Workload) -> f64 {
    let mix = workload.mix();
    match &workload.ticks {
        Some(ticks) => fleet.capacity_beside(&mix, ticks.rate) / fleet.capacity(&mix),
        None => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Class;
    use crate::{Burst, Closed, Options, run};

    fn rows(workload: &Workload) -> Vec<FigureRow> {
        let fleet = Fleet::volta_turing_radeon();
        let outcomes = [1, 2].map(|seed| run(&fleet, workload, &Options::default(), seed));
        let ideals: Vec<_> = [1, 2].iter().filter_map(|seed| ideal(&fleet, workload, 0.1, *seed)).collect();
        let mut rows = vec![row("fair", &outcomes, &fleet, workload)];
        rows.extend(bounds(&ideals, &fleet, workload));
        rows
    }

    #[test]
    fn of_what_was_not_done_there_is_no_time() {
        let (fleet, workload) = (Fleet::volta_turing_radeon(), Workload::three_kinds(0.8, 600));
        let mut outcomes = [1, 2].map(|seed| run(&fleet, &workload, &Options::default(), seed));
        for expected in [true, false] {
            let row = row("fair", &outcomes, &fleet, &workload);
            let has = ["mean_s", "p50_s", "p99_s"].map(|name| row.figure(name).is_some());
            assert_eq!(has, [expected; 3]);
            assert!(row.figure("done_per_s").is_some());
            outcomes[1].tasks.completions_s.clear();
        }
    }

    #[test]
    fn lane_time_adds_up_and_what_is_done_is_what_was_busy() {
        let bursts = Process::Bursty(Burst { probability: 0.8, spacing: 0.1 });
        let closed = Process::Closed(Closed { senders: 30, think_s: 0.0 });
        for (process, name) in [(Process::Poisson, "poisson"), (bursts, "bursty"), (closed, "closed")] {
            let fleet = Fleet::volta_turing_radeon();
            let workload = Workload { process, ..Workload::three_kinds(0.8, 600) };
            let outcome = run(&fleet, &workload, &Options { warmup: 0.0, ..Options::default() }, 3);
            for (class, busy_s) in fleet.classes.iter().zip(&outcome.busy_s) {
                let all_s = class.lanes as f64 * outcome.arrivals_s;
                assert!((0.0..=all_s * (1.0 + 1e-9)).contains(busy_s), "{name}: {busy_s} of {all_s}");
            }
            // Turing works at three speeds, so lanes are busy for about as long as the offered work, and no longer than
            // at the lowest speed.
            let (busy_s, done_s): (f64, f64) = (outcome.busy_s.iter().sum(), outcome.tasks.offered_s);
            assert!(busy_s > 0.9 * done_s && busy_s < done_s / 0.447, "{name}: {busy_s} for {done_s}");
        }
    }

    /// The recorded tasks all arrive within a short time, compared with the time until all are done. Equal lanes
    /// without overhead do as much work as they are busy for.
    #[test]
    fn what_is_done_is_what_lanes_are_busy_for() {
        let alike = Class::new("alike", 4, &[1.0; 3]);
        let fleet = Fleet { classes: vec![alike], slice_overhead_ns: 0, ..Fleet::volta_turing_radeon() };
        let mut workload = Workload::three_kinds(0.8, 400);
        let mut arrivals = workload.arrivals(&fleet, 1);
        arrivals.iter_mut().zip(0..).for_each(|(arrival, number)| arrival.at_ns = number * 5_000_000);
        workload.process = Process::Recorded(arrivals);
        for policy in ["fair", "round-robin"] {
            let options = Options { policy: policy.to_owned(), warmup: 0.0, ..Options::default() };
            let row = row(policy, &[run(&fleet, &workload, &options, 3)], &fleet, &workload);
            let figure = |name: &str| row.figure(name).unwrap().mean;
            let (busy, done) = (figure("busy_until_done_share_alike"), figure("in_time_by_capacity"));
            assert!((busy - done).abs() < 1e-6, "{policy}: {done} of capacity, busy {busy}");
            // Round-robin gives some lanes more work than others.
            assert_eq!(figure("busy_share_alike") > 1.05 * busy, policy == "round-robin", "{policy}: {busy}");
        }
    }

    /// In a full closed loop without think time, every lane always has work.
    #[test]
    fn lanes_of_a_full_closed_loop_are_busy() {
        let closed = Process::Closed(Closed { senders: 64, think_s: 0.0 });
        let mut workload = Workload { process: closed, ..Workload::three_kinds(0.8, 2_000) };
        workload.kinds.iter_mut().for_each(|kind| kind.divisible = false);
        let rows = rows(&workload);
        for class in ["Volta", "Turing", "Radeon"] {
            let busy = rows[0].figure(&format!("busy_share_{class}")).unwrap().mean;
            assert!(busy > 0.99 && busy <= 1.0 + 1e-9, "{class}: {busy}");
        }
        let names: Vec<_> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["fair", "(capacity)"], "what arrives depends on the schedule");
        let [done, most] = [0, 1].map(|row| rows[row].figure("done_per_s").unwrap().mean);
        assert!(done < most * 1.05, "{done} a second of {most}");
    }

    #[test]
    fn misses_are_told_by_class_of_tasks() {
        let mut workload = Workload { deadline_factor: Some(0.1), ..Workload::three_kinds(1.6, 1_500) };
        workload.kinds[1].class = warptape_events::journal::TaskClass::Batch;
        let rows = rows(&workload);
        let [all, interactive, batch] =
            ["missed_percent", "missed_interactive_percent", "missed_batch_percent"]
                .map(|name| rows[0].figure(name).unwrap().mean);
        assert!(interactive < all && all < batch, "{interactive} {all} {batch}");
        assert_eq!(rows[0].figure("missed_critical_percent"), None);
    }
}
