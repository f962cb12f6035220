//! `warptape simulate`: files in, runs on all cores, figures with their intervals out. What is simulated, and how, is the simulator's.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use figment::Figment;
use figment::providers::{Format, Toml};
use indicatif::ProgressBar;
use serde::de::DeserializeOwned;
use serde_json::json;
use warptape_scheduler::TASK_POLICIES;
use warptape_simulator::files::{FleetFile, WorkloadFile, trace};
use warptape_simulator::{
    Fleet, Interval, Options, Outcome, Process, Workload, clairvoyant, interval, jain, run,
};

use super::columns::{Align, aligned};
use super::seeds::over_seeds;
use crate::cli::{SimulateArgs, SimulateFormat, UsageError};
use crate::logging::NOTICE;
use crate::printable::stdout;

/// Loads that may be asked for.
const LOADS: std::ops::RangeInclusive<f64> = 0.01..=10.0;
/// Longest recording, and longest fleet or workload.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// A figure of all seeds.
struct Figure {
    name: String,
    values: Interval,
}

/// What one policy, or a schedule that no policy makes, comes to.
struct PolicyRow {
    name: String,
    figures: Vec<Figure>,
}

/// Runs and prints.
pub fn execute(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    simulate(args, &mut stdout())?;
    Ok(ExitCode::SUCCESS)
}

fn simulate(args: &SimulateArgs, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(unknown) = args.policy.iter().find(|policy| !TASK_POLICIES.contains(&policy.as_str())) {
        let known = TASK_POLICIES.join(", ");
        return Err(UsageError(format!("--policy {unknown:?} is not known; there are: {known}")).into());
    }
    if let Some(load) = args.load.iter().find(|load| !LOADS.contains(load)) {
        return Err(UsageError(format!("--load is {load}; it must be from 0.01 to 10")).into());
    }
    let mut loads = args.load.clone();
    let mut workload = read_workload(&args.workload, loads[0])?;
    let has_load = !matches!(workload.process, Process::Recorded(_) | Process::Closed(_));
    loads.truncate(if has_load { usize::MAX } else { 1 });
    let fleet =
        read_toml::<FleetFile>(&args.fleet)?.fleet(workload.kinds.iter().map(|kind| kind.name.as_str()));
    let fleet = fleet.map_err(|error| UsageError(format!("{}: {error}", args.fleet.display())))?;
    let runs = loads.len() * args.policy.len() * args.seeds as usize;
    let bar = ProgressBar::new(runs as u64);
    for load in loads {
        workload.load = load;
        if has_load && load >= 1.0 {
            tracing::warn!(
                target: NOTICE,
                "load {load} is as much as the fleet can do, or more: tasks gather as long as they come, and a run ends with its {} tasks",
                workload.tasks
            );
        }
        let rows = rows(args, &fleet, &workload, &bar);
        print(out, args, &workload, has_load.then_some(load), &rows)?;
    }
    bar.finish_and_clear();
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<String> {
    let unusable = |error: String| UsageError(format!("{}: {error}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|error| unusable(error.to_string()))?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(unusable(format!(
            "it has {} bytes; there may be up to {FILE_BYTES_MAX}",
            metadata.len()
        ))
        .into());
    }
    Ok(std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?)
}

fn read_toml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = read(path)?;
    let read = Figment::from(Toml::string(&text)).extract();
    Ok(read.map_err(|error| UsageError(format!("{}: {error}", path.display())))?)
}

fn read_workload(path: &Path, load: f64) -> anyhow::Result<Workload> {
    let workload = match path.extension().is_some_and(|extension| extension == "csv") {
        true => trace(&read(path)?),
        false => read_toml::<WorkloadFile>(path)?.workload(load),
    };
    Ok(workload.map_err(|error| UsageError(format!("{}: {error}", path.display())))?)
}

/// The figures of each policy at a load, and of what no policy is better than.
fn rows(args: &SimulateArgs, fleet: &Fleet, workload: &Workload, bar: &ProgressBar) -> Vec<PolicyRow> {
    let of_policy = |policy: &String| {
        let options =
            Options { policy: policy.clone(), slice_ns: args.slice_us * 1_000, ..Options::default() };
        let outcomes = over_seeds(args.seeds, bar, |seed| run(fleet, workload, &options, seed));
        PolicyRow { name: policy.clone(), figures: figures(&outcomes, fleet, workload) }
    };
    let mut rows: Vec<PolicyRow> = args.policy.iter().map(of_policy).collect();
    // What arrives in a closed loop depends on the schedule.
    if !matches!(workload.process, Process::Closed(_)) {
        let warmup = Options::default().warmup;
        let quiet = ProgressBar::hidden();
        let best = over_seeds(args.seeds, &quiet, |seed| {
            let found = clairvoyant::schedules(fleet, workload, warmup, seed);
            (
                found.into_iter().fold(f64::INFINITY, f64::min),
                clairvoyant::bound(fleet, workload, warmup, seed),
            )
        });
        let (best, bound): (Vec<f64>, Vec<f64>) = best.into_iter().unzip();
        let row = |name: &str, means: &[f64]| {
            let figures = vec![Figure { name: "mean_s".to_owned(), values: interval(means) }];
            PolicyRow { name: name.to_owned(), figures }
        };
        rows.push(row("(best that knows all sizes)", &best));
        rows.push(row("(bound)", &bound));
    }
    rows
}

fn figures(outcomes: &[Outcome], fleet: &Fleet, workload: &Workload) -> Vec<Figure> {
    let of = |name: &str, figure: &dyn Fn(&Outcome) -> f64| {
        let values: Vec<f64> = outcomes.iter().map(figure).collect();
        Figure { name: name.to_owned(), values: interval(&values) }
    };
    let capacity = fleet.capacity(&workload.mix());
    let done = |outcome: &Outcome, quantile| match outcome.completions_s.is_empty() {
        true => 0.0,
        false => outcome.quantile_s(quantile),
    };
    let mean = |outcome: &Outcome| if outcome.completions_s.is_empty() { 0.0 } else { outcome.mean_s() };
    // Until all is done: what is done after the last arrival was not done before it.
    let by_time = |value: f64, outcome: &Outcome| match outcome.measured_s + outcome.drain_s {
        time_s if time_s > 0.0 => value / time_s,
        _ => 0.0,
    };
    let mut figures = vec![
        of("mean_s", &mean),
        of("p50_s", &|outcome| done(outcome, 0.5)),
        of("p99_s", &|outcome| done(outcome, 0.99)),
        of("done_per_s", &|outcome| by_time(outcome.completions_s.len() as f64, outcome)),
        of("in_time_by_capacity", &|outcome| by_time(outcome.in_time_s, outcome) / capacity),
        of("missed_percent", &|outcome| outcome.missed() * 100.0),
        of("jain", &|outcome| jain(&outcome.service_by_weight)),
        of("decisions", &|outcome| outcome.decisions as f64),
    ];
    for (index, class) in fleet.classes.iter().enumerate() {
        let busy = |outcome: &Outcome| match outcome.arrivals_s > 0.0 {
            true => outcome.busy_s[index] / class.lanes as f64 / outcome.arrivals_s,
            false => 0.0,
        };
        figures.push(of(&format!("busy_share_{}", class.name), &busy));
    }
    figures
}

fn print(
    out: &mut impl Write,
    args: &SimulateArgs,
    workload: &Workload,
    load: Option<f64>,
    rows: &[PolicyRow],
) -> anyhow::Result<()> {
    let given = load.map_or("as it comes".to_owned(), |load| load.to_string());
    match args.output {
        SimulateFormat::Table => {
            let names: Vec<&str> = rows[0].figures.iter().map(|figure| figure.name.as_str()).collect();
            let header: Vec<_> = std::iter::once(("policy", Align::Left))
                .chain(names.iter().map(|name| (*name, Align::Right)))
                .collect();
            let cells: Vec<Vec<String>> = rows
                .iter()
                .map(|row| {
                    let cell = |name: &&str| {
                        let figure = row.figures.iter().find(|figure| figure.name == *name);
                        figure.map_or(String::new(), |figure| shown(figure.values))
                    };
                    std::iter::once(row.name.clone()).chain(names.iter().map(cell)).collect()
                })
                .collect();
            writeln!(out, "load {given}, {} seeds of {} tasks", args.seeds, workload.tasks)?;
            writeln!(out, "{}", aligned(&header, &cells))?;
        }
        SimulateFormat::Json => {
            for row in rows {
                let figure = |figure: &Figure| {
                    let Interval { mean, half } = figure.values;
                    (figure.name.clone(), json!({"mean": mean, "half_95": half}))
                };
                let figures: serde_json::Map<_, _> = row.figures.iter().map(figure).collect();
                let line = json!({"policy": row.name, "load": load, "seeds": args.seeds, "tasks": workload.tasks, "figures": figures});
                writeln!(out, "{line}")?;
            }
        }
        SimulateFormat::Csv => {
            for row in rows {
                for Figure { name, values: Interval { mean, half } } in &row.figures {
                    let load = load.map_or(String::new(), |load| load.to_string());
                    writeln!(out, "{},{load},{},{name},{mean},{half}", row.name, args.seeds)
                        .context("cannot print")?;
                }
            }
        }
    }
    Ok(())
}

/// A mean with half of its interval, to about four digits.
fn shown(Interval { mean, half }: Interval) -> String {
    let digits = match mean.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 4,
    };
    format!("{mean:.digits$} ± {half:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLES: &str = "../examples/simulate";

    fn simulated(change: impl FnOnce(&mut SimulateArgs)) -> anyhow::Result<String> {
        let mut args = SimulateArgs {
            fleet: format!("{EXAMPLES}/unequal-cpu-lanes.toml").into(),
            workload: format!("{EXAMPLES}/three-kinds.toml").into(),
            policy: vec!["fair".to_owned(), "lp-price".to_owned()],
            seeds: 2,
            load: vec![0.5],
            slice_us: 20_000,
            output: SimulateFormat::Json,
        };
        change(&mut args);
        let mut out = Vec::new();
        simulate(&args, &mut out)?;
        Ok(String::from_utf8(out)?)
    }

    #[test]
    fn the_same_seeds_give_the_same_bytes_in_every_form() {
        for output in [SimulateFormat::Json, SimulateFormat::Csv, SimulateFormat::Table] {
            let [one, same] = [(); 2].map(|()| simulated(|args| args.output = output).unwrap());
            assert_eq!(one, same);
            assert!(["fair", "lp-price", "(bound)"].iter().all(|name| one.contains(name)), "{one}");
        }
        let [one, other] = [2, 3].map(|seeds| simulated(|args| args.seeds = seeds).unwrap());
        assert_ne!(one, other);
    }

    #[test]
    fn no_policy_is_better_than_the_bound() {
        let out = simulated(|_| ()).unwrap();
        let rows: Vec<serde_json::Value> =
            out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let means: Vec<f64> =
            rows.iter().map(|row| row["figures"]["mean_s"]["mean"].as_f64().unwrap()).collect();
        assert_eq!(means.len(), 4);
        assert!(means.iter().all(|mean| *mean >= means[3]), "{out}");
    }

    /// Above capacity a run ends with its tasks, and no more than capacity is done meanwhile.
    #[test]
    fn a_load_above_capacity_is_run_to_its_end() {
        let out = simulated(|args| args.load = vec![1.5]).unwrap();
        let row: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
        let done = row["figures"]["in_time_by_capacity"]["mean"].as_f64().unwrap();
        assert!((0.8..1.1).contains(&done), "{row}");
    }

    #[test]
    fn bad_input_is_said_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let check = |change: &dyn Fn(&mut SimulateArgs), expected: &str| {
            let error = simulated(change).unwrap_err();
            assert_eq!(crate::cli::exit_code(&error), crate::cli::UNUSABLE);
            assert!(error.to_string().contains(expected), "{error}");
        };
        check(
            &|args| args.policy = vec!["dice".to_owned()],
            "--policy \"dice\" is not known; there are: fair, ",
        );
        check(&|args| args.load = vec![0.0], "--load is 0; it must be from 0.01 to 10");
        check(&|args| args.fleet = "nowhere.toml".into(), "nowhere.toml: ");
        let fleet = file("fleet.toml", "slice_overhead_us = 1");
        check(&|args| args.fleet = fleet.clone(), "fleet.toml: missing field `classes`");
        let other = file("other.toml", "tasks = 1\nkinds = [{name = \"gpu\", share = 1, mean_s = 1}]");
        check(
            &|args| args.workload = other.clone(),
            "no class of the fleet has a speed for tasks of the kind \"gpu\"",
        );
        let unknown = file("unknown.toml", "tasks = 1\nkinds = []\nsize = 3");
        check(&|args| args.workload = unknown.clone(), "unknown field");
        let trace = file("trace.csv", "time_s,kind,size_s,class,tenant,deadline_s\n1,a,-1,batch,x,\n");
        check(&|args| args.workload = trace.clone(), "trace.csv: line 2: size_s is -1");
    }
}
