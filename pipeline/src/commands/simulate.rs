//! `warptape simulate`: reads files, runs on all cores, prints figures with their intervals. The simulator crate has
//! the model.

mod experiment;
mod pictures;
mod policies;
mod print;
mod seeds;

use std::io::Write;
use std::process::ExitCode;

use warptape_report::drawing::Series;
use warptape_scheduler::PLACEMENT_POLICIES;
use warptape_simulator::figures::{self, FigureRow};
use warptape_simulator::{Fleet, Options, Process, Scaling, Workload, run};

use crate::cli::{Experiment, SimulateArgs};
use crate::commands::fleets;
use crate::logging::NOTICE;
use crate::printable::stdout;
use crate::usage_error::UsageError;
use policies::Policy;
pub use policies::production;
use print::Printed;
use seeds::SeedsProgress;

/// Allowed loads.
const LOADS: std::ops::RangeInclusive<f64> = 0.01..=10.0;
/// Greatest number of tasks for which a run computes clairvoyant schedules: their cost grows with the number of tasks
/// present at the same time.
const CLAIRVOYANT_TASKS_MAX: usize = 20_000;

/// Runs the simulations and prints their figures.
pub fn execute(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    simulate(args, &mut stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn simulate(args: &SimulateArgs, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(Experiment::Adlro) = args.experiment {
        return experiment::run(args.seeds, out);
    }
    let (Some(fleet_file), Some(workload_file)) = (&args.fleet, &args.workload) else {
        return Err(UsageError("--fleet and --workload must both be given".to_owned()).into());
    };
    if let Some(load) = args.load.iter().find(|load| !LOADS.contains(load)) {
        return Err(UsageError(format!("--load is {load}; it must be from 0.01 to 10")).into());
    }
    let mut loads = args.load.clone();
    let (fleet, mut workload) = fleets::read(fleet_file, workload_file, loads[0])?;
    let has_load = !matches!(workload.process, Process::Recorded(_) | Process::Closed(_));
    loads.truncate(if has_load { usize::MAX } else { 1 });
    let policies = args.policy.iter().map(|given| Policy::new(given, fleet.lanes()));
    let policies: Vec<Policy> = policies.collect::<Result<_, UsageError>>()?;
    if let Some(baseline) = policies.iter().find(|policy| fleet.autoscale.is_some() && policy.is_baseline()) {
        let label = &baseline.label;
        return Err(UsageError(format!(
            "--policy {label:?} exists only in the simulator and cannot handle drains: a fleet with [autoscale] needs a production policy"
        ))
        .into());
    }
    check_beside_ticks(args, &policies, &workload)?;
    // Clairvoyant schedules add a row.
    let runs = loads.len() * (args.policy.len() * scalings(&fleet).len() + 1) * args.seeds as usize;
    let mut progress = SeedsProgress::new(runs as u64);
    let mut series: Vec<Series> = Vec::new();
    for load in loads {
        workload.load = load;
        if has_load && load >= 1.0 {
            tracing::warn!(
                target: NOTICE,
                "load {load} reaches or exceeds the capacity of the fleet: the queue grows throughout the run of {} tasks",
                workload.tasks
            );
        }
        warn_of_ticks(&fleet, &workload, has_load);
        let (rows, remarks) = rows(args, &policies, &fleet, &workload, &mut progress);
        pictures::extend(&mut series, load, &rows);
        let (load, tasks) = (has_load.then_some(load), workload.tasks);
        let ticks_per_s = workload.ticks.as_ref().map(|ticks| ticks.rate);
        let printed = Printed { load, seeds: args.seeds, tasks, ticks_per_s, rows: &rows, remarks: &remarks };
        print::print(out, args.output, &printed)?;
    }
    if let Some(folder) = &args.svg {
        progress.say("pictures".to_owned());
        pictures::write(folder, (&policies, args), &fleet, &workload, has_load.then_some(&series[..]))?;
    }
    progress.finish();
    Ok(())
}

/// Returns an error for arguments that contradict a workload with ticks.
fn check_beside_ticks(
    args: &SimulateArgs,
    policies: &[Policy],
    workload: &Workload,
) -> Result<(), UsageError> {
    let placement = &args.placement;
    if !PLACEMENT_POLICIES.contains(&placement.as_str()) {
        let known = PLACEMENT_POLICIES.join(", ");
        return Err(UsageError(format!("--placement {placement:?} is not known; give one of: {known}")));
    }
    let baseline = policies.iter().find(|policy| workload.ticks.is_some() && policy.is_baseline());
    baseline.map_or(Ok(()), |baseline| {
        let label = &baseline.label;
        Err(UsageError(format!(
            "--policy {label:?} exists only in the simulator and cannot handle ticks: a workload with [ticks] needs a production policy"
        )))
    })
}

/// Warns if ticks exceed the lanes' capacity, or leave too little of it for the tasks.
fn warn_of_ticks(fleet: &Fleet, workload: &Workload, has_load: bool) {
    let Some(ticks) = &workload.ticks else { return };
    let (left, load) = (figures::left_by_ticks(fleet, workload), workload.load);
    if left == 0.0 {
        tracing::warn!(
            target: NOTICE,
            "{} ticks/s reach or exceed the capacity of the fleet ({}): ticks gather at the source throughout the run",
            ticks.rate,
            fleet.ticks_per_s()
        );
    } else if has_load && load < 1.0 && load >= left {
        tracing::warn!(
            target: NOTICE,
            "ticks leave {left:.3} of the fleet's capacity for tasks, but the load is {load}: the queue grows throughout the run"
        );
    }
}

/// Returns the autoscaling policies to simulate, or only the first if the fleet does not scale.
fn scalings(fleet: &Fleet) -> &'static [Scaling] {
    let number = if fleet.autoscale.is_some() { Scaling::ALL.len() } else { 1 };
    &Scaling::ALL[..number]
}

/// Returns the figures of each policy at a load, the figures of schedules that no policy can beat, and remarks.
fn rows(
    args: &SimulateArgs,
    policies: &[Policy],
    fleet: &Fleet,
    workload: &Workload,
    progress: &mut SeedsProgress,
) -> (Vec<FigureRow>, Vec<String>) {
    let (mut rows, mut remarks) = (Vec::new(), Vec::new());
    for policy in policies {
        for &scaling in scalings(fleet) {
            let name = match fleet.autoscale {
                Some(_) => format!("{}, {}", policy.label, scaling.name()),
                None => policy.label.clone(),
            };
            progress.say(format!("{name} at load {}", workload.load));
            let options = policy.options(args, scaling);
            let of = |seed| run(fleet, workload, &options, seed);
            let outcomes = progress.over_seeds(args.seeds, workload.tasks, of);
            rows.push(figures::row(&name, &outcomes, fleet, workload));
        }
    }
    if fleet.autoscale.is_some() {
        let reason = "Rows with the autoscaling policy `none`, rows in brackets and pictures are for the fleet with all lanes on.";
        remarks.push(reason.to_owned());
    }
    remarks.extend(policies.iter().filter_map(|policy| policy.remark.clone()));
    let baselines = policies.iter().filter(|policy| policy.is_baseline());
    let baselines: Vec<&str> = baselines.map(|policy| policy.label.as_str()).collect();
    if !baselines.is_empty() {
        let names = baselines.join(", ");
        remarks.push(format!(
            "Only in the simulator, not for production: {names} (see docs/scheduling.md for the reasons)."
        ));
    }
    let ideals = if workload.tasks <= CLAIRVOYANT_TASKS_MAX {
        progress.say("schedules with all sizes known".to_owned());
        let warmup = Options::default().warmup;
        let of = |seed| figures::ideal(fleet, workload, warmup, seed);
        progress.over_seeds(args.seeds, 0, of).into_iter().flatten().collect()
    } else {
        let most = CLAIRVOYANT_TASKS_MAX;
        remarks.push(format!(
            "Rows of schedules with all sizes known are missing: they are computed for at most {most} tasks."
        ));
        Vec::new()
    };
    if !(fleet.failures.is_empty() && fleet.throttling.is_empty()) {
        let reason = "Rows in brackets are for the fleet without failures and throttling.";
        remarks.push(reason.to_owned());
    }
    if let Some(ticks) = &workload.ticks {
        let left = figures::left_by_ticks(fleet, workload) * 100.0;
        remarks.push(format!(
            "{} ticks/s leave {left:.1} % of the fleet's capacity for tasks, shown in the row (capacity); other rows in brackets are for the fleet without ticks.",
            ticks.rate
        ));
    }
    if matches!(workload.process, Process::Closed(_)) {
        let reason = "Rows of schedules with all sizes known are missing: in a closed loop, arrivals depend on the schedule.";
        remarks.push(reason.to_owned());
    }
    rows.extend(figures::bounds(&ideals, fleet, workload));
    (rows, remarks)
}

#[cfg(test)]
mod tests;
