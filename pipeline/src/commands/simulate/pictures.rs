//! Pictures of a simulation, in files of a folder.

mod lanes;

use std::path::Path;

use anyhow::Context;
use warptape_report::drawing::{Point, Series, Words, curves};
use warptape_simulator::figures::FigureRow;
use warptape_simulator::{Fleet, Interval, Options, Scaling, Workload, run};

use super::policies::Policy;
use crate::cli::SimulateArgs;
use lanes::{timeline, utilisation};

/// Number of tasks in the run whose lanes are drawn over time: with more tasks, slices could not be distinguished.
const TIMELINE_TASKS: usize = 100;

const COMPLETION: Words<'_> = Words {
    title: "Mean completion time against load, with 95 % intervals",
    below: "load: arriving work divided by the capacity of the fleet",
    beside: "mean completion time, s",
    at: "load ",
    unit: " s",
};

/// Adds the mean completion times of these rows at a load to their series.
pub fn extend(series: &mut Vec<Series>, load: f64, rows: &[FigureRow]) {
    for row in rows {
        let Some(Interval { mean, half }) = row.figure("mean_s") else { continue };
        let point = Point { at: load, value: mean, half };
        match series.iter_mut().find(|one| one.name == row.name) {
            Some(one) => one.points.push(point),
            None => series.push(Series { name: row.name.clone(), points: vec![point] }),
        }
    }
    series.iter_mut().for_each(|one| one.points.sort_by(|one, other| one.at.total_cmp(&other.at)));
}

/// Writes the pictures. If loads are given, one shows completion time against load. For each policy, others show the
/// lanes in the first seed's run at the last load.
pub fn write(
    folder: &Path,
    (policies, args): (&[Policy], &SimulateArgs),
    fleet: &Fleet,
    workload: &Workload,
    series: Option<&[Series]>,
) -> anyhow::Result<()> {
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    if let Some(series) = series {
        write("completion.svg", curves(series, COMPLETION))?;
    }
    let short = Workload { tasks: workload.tasks.min(TIMELINE_TASKS), ..workload.clone() };
    for policy in policies {
        let options = Options { records: true, ..policy.options(args, Scaling::None) };
        let (label, name) = (&policy.label, policy.file_name());
        let outcome = run(fleet, workload, &options, 0);
        write(&format!("utilisation-{name}.svg"), utilisation(label, fleet, &outcome))?;
        let outcome = run(fleet, &short, &options, 0);
        write(&format!("timeline-{name}.svg"), timeline(label, fleet, &short, &outcome))?;
    }
    Ok(())
}
