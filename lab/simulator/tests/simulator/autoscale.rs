//! Tests of autoscaling in virtual time: paid lanes, waiting work, and the policies' response to days and nights.

use warptape_events::journal::{AutoscaleConfig, AutoscalePolicy, ControlCommand, Input, LaneId};
use warptape_simulator::figures::{self, FigureRow};
use warptape_simulator::{
    Autoscale, Class, Diurnal, Failure, Fleet, Options, Outage, Outcome, Process, Scaling, TaskKind,
    Workload, run, run_observed,
};

const S: i64 = 1_000_000_000;

/// Returns eight lanes that take a minute to start.
fn fleet(config: AutoscaleConfig) -> Fleet {
    let autoscale = Autoscale { config, price_per_hour: vec![3.6] };
    Fleet { classes: vec![Class::new("all", 8, &[1.0])], autoscale: Some(autoscale), ..Fleet::default() }
}

fn config() -> AutoscaleConfig {
    AutoscaleConfig {
        policy: AutoscalePolicy::Reactive,
        lanes_min: 1,
        lanes_max: 8,
        window_ns: 20 * S,
        utilization_percent: 75,
        hold_windows: 5,
        clear_ns: 40 * S,
        start_ns: 60 * S,
        ..AutoscaleConfig::default()
    }
}

/// Returns tasks of two seconds for one lane each, which arrive in days of twenty minutes.
fn days(number: usize, load: f64) -> Workload {
    let mut workload = Workload::three_kinds(load, (number as f64 * 1_200.0 * 8.0 * load / 2.0) as usize);
    let kind = TaskKind { share: 1.0, mean_s: 2.0, divisible: false, ..workload.kinds[0].clone() };
    workload.kinds = vec![kind];
    workload.process = Process::Diurnal(Diurnal { period_s: 1_200.0, swing: 0.8 });
    workload.deadline_factor = Some(5.0);
    workload
}

fn simulated(fleet: &Fleet, workload: &Workload, scaling: Scaling, seed: u64) -> Outcome {
    let options = Options { scaling, records: true, ..Options::default() };
    run(fleet, workload, &options, seed)
}

/// Without autoscaling all lanes are paid all the time. The same seeds give the same outcome.
#[test]
fn policies_pay_for_less_and_the_predictive_one_misses_less_than_the_reactive_one() {
    let (fleet, workload) = (fleet(config()), days(12, 0.4));
    let mut rows: Vec<FigureRow> = Vec::new();
    let mut found = Vec::new();
    for scaling in Scaling::ALL {
        let outcomes: Vec<_> = (0..3).map(|seed| simulated(&fleet, &workload, scaling, seed)).collect();
        assert_eq!(outcomes[0], simulated(&fleet, &workload, scaling, 0), "{scaling:?}");
        rows.push(figures::row(scaling.name(), &outcomes, &fleet, &workload));
        found.push(outcomes);
    }
    let all = &found[0][0];
    assert!((all.scaled.paid_s[0] - 8.0 * all.arrivals_s).abs() < 1e-3 && all.scaled.windows == 0);
    let of = |name: &str| -> Vec<f64> {
        rows.iter().filter_map(|row| row.figure(name)).map(|one| one.mean).collect()
    };
    let (cost, missed) = (of("cost"), of("missed_percent"));
    assert!(cost[1] < 0.75 * cost[0] && cost[2] < 0.75 * cost[0], "{cost:?}");
    assert_eq!(of("busy_of_on_percent").len(), 3);
    // Only policies start lanes, and only the predictive one uses forecasts.
    let (starts, by_forecast) = (of("starts"), of("by_forecast_percent"));
    assert!(starts.len() == 2 && starts.iter().all(|starts| *starts > 24.0), "{starts:?}");
    assert!(by_forecast[0] == 0.0 && by_forecast[1] > 50.0, "{by_forecast:?}");
    assert!(missed[0] < missed[2] && missed[2] < 0.6 * missed[1], "{missed:?}");
}

/// A stopped lane is drained, finishes its slice, and does nothing while it is off. It is paid while it starts, but not
/// while it is off.
#[test]
fn a_stopped_lane_finishes_what_it_has_and_is_not_paid_while_it_is_off() {
    let (fleet, workload) = (fleet(config()), days(3, 0.4));
    let options = Options { scaling: Scaling::Reactive, records: true, ..Options::default() };
    let mut off: Vec<(LaneId, i64, Option<i64>)> = Vec::new();
    let (mut drained, mut drains) = ([None; 8], 0);
    let outcome = run_observed(&fleet, &workload, &options, 1, &mut |at_ns, input, _| match input {
        Input::LaneLost(lost) => {
            assert!(drained[lost.lane as usize].take().is_some_and(|drained_ns| drained_ns <= at_ns));
            off.push((lost.lane, at_ns, None));
        }
        Input::LaneReady(ready) => {
            let open = off.iter_mut().rev().find(|(lane, ..)| *lane == ready.lane);
            open.expect("the lane was off").2 = Some(at_ns);
        }
        Input::Control(control) => match control.command {
            ControlCommand::DrainLane(drain) => {
                drains += 1;
                drained[drain.lane as usize] = Some(at_ns);
            }
            ControlCommand::UndrainLane(undrain) => drained[undrain.lane as usize] = None,
            _ => panic!("{control:?}"),
        },
        _ => {}
    });
    assert!(off.len() > 6 && drains >= off.len(), "{off:?}");
    let finished = outcome.ran.iter().filter(|ran| {
        off.iter().any(|(lane, from_ns, _)| *lane as usize == ran.lane && ran.to_ns + 1 == *from_ns)
    });
    assert!(finished.count() > 0, "some lane had something to finish");
    let mut unpaid_s = 0.0;
    let end_ns = (outcome.arrivals_s * 1e9) as i64 + 1;
    for (lane, from_ns, until_ns) in &off {
        let until_ns = until_ns.unwrap_or(i64::MAX);
        let is_other = |ran: &&warptape_simulator::Ran| {
            ran.lane != *lane as usize || ran.to_ns < *from_ns || ran.from_ns + 1 >= until_ns
        };
        assert!(outcome.ran.iter().all(|ran| is_other(&ran)), "lane {lane} worked while it was off");
        let started_ns = until_ns.saturating_sub(60 * S).min(end_ns);
        unpaid_s += (started_ns - from_ns).max(0) as f64 / 1e9;
    }
    let paid_s = outcome.scaled.paid_s[0] + unpaid_s;
    assert!((paid_s - 8.0 * outcome.arrivals_s).abs() < 1.0, "{paid_s} of {}", 8.0 * outcome.arrivals_s);
    assert_eq!((outcome.counts.redone, outcome.tasks.rejected, outcome.tasks.unfinished), (0, 0, 0));
}

/// Lanes that fail under autoscaling are replaced, and every task ends.
#[test]
fn lanes_that_fail_are_replaced_by_others() {
    let mut fleet = fleet(config());
    let mut workload = days(3, 0.4);
    workload.deadline_factor = None;
    let whole = simulated(&fleet, &workload, Scaling::Reactive, 2);
    fleet.failures = vec![Failure { lanes: 0..8, outage: Outage::Drawn { mtbf_s: 400.0, mttr_s: 200.0 } }];
    for scaling in Scaling::ALL {
        for seed in 0..4 {
            let outcome = simulated(&fleet, &workload, scaling, seed);
            assert_eq!(
                outcome.tasks.completions_s.len() + outcome.tasks.unfinished,
                workload.tasks - workload.tasks / 10
            );
            assert_eq!(outcome.tasks.unfinished, 0, "{scaling:?}, seed {seed}");
            let idle_s = outcome.scaled.paid_s[0] - outcome.busy_s[0] - outcome.lost_s[0];
            assert!(outcome.lost_s[0] > 0.0 && idle_s > -1e-3, "{scaling:?}, seed {seed}: {idle_s}");
        }
    }
    let failing = simulated(&fleet, &workload, Scaling::Reactive, 2);
    assert!(failing.scaled.paid_s[0] > whole.scaled.paid_s[0]);
}

/// Lanes with the cheapest work start first.
#[test]
fn lanes_are_started_in_the_order_of_what_their_work_costs() {
    let mut fleet = fleet(AutoscaleConfig { lanes_max: 12, ..config() });
    // The lanes of one class are half as fast at a third of the price; the other class is equally fast at twice the
    // price.
    fleet.classes.push(Class::new("slow", 2, &[0.5]));
    fleet.classes.push(Class::new("dear", 2, &[1.0]));
    fleet.autoscale.as_mut().unwrap().price_per_hour = vec![3.6, 1.2, 7.2];
    let workload = days(3, 0.3);
    let paid_s = simulated(&fleet, &workload, Scaling::Reactive, 1).scaled.paid_s;
    let share = |class: usize, lanes: f64| paid_s[class] / lanes;
    assert!(share(1, 2.0) > share(0, 8.0) && share(0, 8.0) > 1.5 * share(2, 2.0), "{paid_s:?}");
}
