//! The comparison of measured and modelled figures: the model's noise floor, differences with their intervals, and the
//! claims that these support.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use warptape_simulator::interval;

use crate::changes::Changes;
use crate::error::WhatIfError;
use crate::figures::{Figures, Order};
use crate::model::Modelled;
use crate::recording::Recording;

/// The result of what-if.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Number of process lives modelled.
    pub lives: usize,
    /// Length of the recorded window, in seconds.
    pub window_s: f64,
    /// Number of seeds for drawing residuals; each gives one modelled run as recorded, and one with the changes.
    pub seeds: u64,
    /// Changed fields of the first life's configuration.
    pub changed: Vec<Changed>,
    /// Descriptions of the lanes that are slowed or lost.
    pub faults: Vec<String>,
    /// The figures.
    pub figures: Vec<FigureRow>,
    /// Evidence about the order of rows: in the measured run, in the run modelled as recorded, and with the changes.
    /// Modelled runs are combined over all seeds.
    pub order: [OrderOf; 3],
    /// Notes for the user about the comparison.
    pub notes: Vec<String>,
}

/// A changed field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changed {
    /// The field's path.
    pub field: String,
    /// The recorded value.
    pub recorded: Value,
    /// The modelled value.
    pub modelled: Value,
}

/// Evidence about the order of rows in one kind of run.
#[derive(Clone, Debug, Serialize)]
pub struct OrderOf {
    /// The kind of run.
    pub run: &'static str,
    /// True if every row was processed once and in the order of its group.
    pub is_kept: bool,
    /// The account of the first run of this kind that broke the order, or of the first run if none did.
    #[serde(flatten)]
    pub order: Order,
}

/// A mean over seeds with half of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half of the interval's width.
    pub half_95: f64,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureRow {
    /// The figure's name, which ends in its unit.
    pub name: String,
    /// The measured value; `None` if the journal has none.
    pub measured: Option<f64>,
    /// The figure of the run modelled as recorded; `None` if it lacks the figure.
    pub recorded: Option<Mean>,
    /// The figure of the run modelled with the changes; `None` if it lacks the figure.
    pub changed: Option<Mean>,
    /// Greatest error of the model of the recorded run: the gap of the means plus half of the model's interval. The
    /// interval guards against gaps that are small by chance. The error measures the fit to this run, not how well the
    /// run repeats. No smaller difference supports a claim.
    pub noise_floor: Option<f64>,
    /// Spread of the figure within the recorded run: half of the 95 % interval over blocks of its time; `None` for
    /// figures without blocks. No smaller difference supports a claim, because the run itself does not repeat the
    /// figure so closely.
    pub varies_by: Option<f64>,
    /// Figure with the changes minus figure as recorded, paired by seed.
    pub difference: Option<Mean>,
    /// The claim about the difference.
    pub claim: Claim,
}

/// The claim that a difference supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim {
    /// The figures are exactly equal.
    Same,
    /// The difference is no larger than the model's error.
    WithinTheNoiseFloor,
    /// The difference is no larger than the spread within the recorded run, or that run did not keep up with its load.
    NotRepeated,
    /// The interval of the difference contains 0.
    NotShown,
    /// The figure is lower with the changes.
    Lower,
    /// The figure is higher with the changes.
    Higher,
    /// A run lacks the figure, or it was not measured.
    NotComparable,
}

impl Claim {
    /// Returns the claim in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Same => "the same",
            Self::WithinTheNoiseFloor => "within the noise floor",
            Self::NotRepeated => "not claimed: parts of the recorded run differ by more",
            Self::NotShown => "not shown: the interval contains 0",
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::NotComparable => "not comparable",
        }
    }
}

/// Note on a run whose load grew beyond its lanes' capacity.
const OVERLOADED: &str = "rows in the second half of the recorded run took more than twice as long as those \
     in the first: the run was overloaded, so its figures depend on the end of the recording, another run of \
     the same load gives other figures, and nothing is claimed";

/// A figure of a run.
type Figure = Box<dyn Fn(&Figures) -> Option<f64>>;

impl Recording {
    /// Creates the report from the runs of all seeds, as recorded and with the changes. Both are in the order of the
    /// seeds.
    ///
    /// # Errors
    /// If the changes do not fit the recording.
    pub fn report(
        &self,
        changes: &Changes,
        recorded: &[Modelled],
        changed: &[Modelled],
    ) -> Result<Report, WhatIfError> {
        let (fields, faults) = self.otherwise(changes)?;
        let planned = changes.notes(self.started(), &changes.apply(self.started(), self.networks())?);
        let runs = || recorded.iter().chain(changed);
        let assumed: BTreeSet<String> = runs().flat_map(|run| run.assumed.iter().cloned()).collect();
        let figures = figures(runs().map(|run| &run.figures).chain([&self.measured]));
        let row = |(name, figure): (String, Figure)| self.row(name, &figure, recorded, changed);
        Ok(Report {
            lives: self.lives(),
            window_s: self.window_length_ns() as f64 / 1e9,
            seeds: recorded.len() as u64,
            changed: fields,
            faults,
            figures: figures.into_iter().map(row).collect(),
            order: [
                order_of("measured", std::iter::once(&self.measured)),
                order_of("modelled, as recorded", recorded.iter().map(|run| &run.figures)),
                order_of("modelled, changed", changed.iter().map(|run| &run.figures)),
            ],
            notes: planned
                .into_iter()
                .chain(self.blocks.is_overloaded().then(|| OVERLOADED.to_owned()))
                .chain(self.notes.iter().cloned())
                .chain(assumed)
                .collect(),
        })
    }

    /// Returns the differences from the recording: changed fields, and descriptions of lanes that are slowed or lost.
    pub(crate) fn otherwise(&self, changes: &Changes) -> Result<(Vec<Changed>, Vec<String>), WhatIfError> {
        let plan = changes.apply(self.started(), &self.networks)?;
        let mut fields = Vec::new();
        let value = |started: &warptape_schemas::journal::Started| serde_json::json!({ "scheduler": started.scheduler, "lanes": started.lanes });
        unlike("", &value(self.started()), &value(&plan.started), &mut fields);
        let slow = changes.slow.iter();
        let slow =
            slow.map(|(lane, slow)| format!("lane {lane}: work takes {} times as long", *slow as f64 / 1e3));
        let lose =
            changes.lose.iter().map(|(lane, _)| format!("lane {lane} is lost, and does not come back"));
        Ok((fields, slow.chain(lose).collect()))
    }

    fn row(&self, name: String, figure: &Figure, recorded: &[Modelled], changed: &[Modelled]) -> FigureRow {
        let of =
            |runs: &[Modelled]| -> Option<Vec<f64>> { runs.iter().map(|run| figure(&run.figures)).collect() };
        let measured = figure(&self.measured);
        let (recorded, changed) = (of(recorded), of(changed));
        let differences = recorded.as_ref().zip(changed.as_ref()).map(|(recorded, changed)| {
            changed.iter().zip(recorded).map(|(changed, recorded)| changed - recorded).collect::<Vec<_>>()
        });
        let [recorded, changed, difference] =
            [recorded, changed, differences].map(|values| values.map(|values| mean(&values)));
        let floor = |(Mean { mean, half_95 }, measured): (Mean, f64)| (mean - measured).abs() + half_95;
        let noise_floor = recorded.zip(measured).map(floor);
        let varies_by = self.varies_by(&name);
        let claim = match self.blocks.is_overloaded() {
            true => claim(difference, noise_floor, Some(f64::INFINITY)),
            false => claim(difference, noise_floor, varies_by),
        };
        FigureRow { name, measured, recorded, changed, noise_floor, varies_by, difference, claim }
    }

    /// Returns the spread of a figure within the recorded run; `None` for figures without blocks.
    fn varies_by(&self, name: &str) -> Option<f64> {
        let quantile = |quantile: f64| {
            move |block: &hdrhistogram::Histogram<u64>| block.value_at_quantile(quantile) as f64 / 1e6
        };
        match name {
            "row_latency_mean_ms" => self.blocks.half_95(|block| block.mean() / 1e6),
            "row_latency_p50_ms" => self.blocks.half_95(quantile(0.5)),
            "row_latency_p99_ms" => self.blocks.half_95(quantile(0.99)),
            "row_latency_p999_ms" => self.blocks.half_95(quantile(0.999)),
            _ => None,
        }
    }
}

fn mean(values: &[f64]) -> Mean {
    let found = interval(values);
    Mean { mean: found.mean, half_95: found.half }
}

fn claim(difference: Option<Mean>, noise_floor: Option<f64>, varies_by: Option<f64>) -> Claim {
    let Some((Mean { mean, half_95 }, floor)) = difference.zip(noise_floor) else {
        return Claim::NotComparable;
    };
    match mean.abs() {
        size if size == 0.0 && half_95 == 0.0 => Claim::Same,
        size if size <= floor => Claim::WithinTheNoiseFloor,
        size if varies_by.is_some_and(|varies_by| size <= varies_by) => Claim::NotRepeated,
        size if size <= half_95 => Claim::NotShown,
        _ if mean < 0.0 => Claim::Lower,
        _ => Claim::Higher,
    }
}

fn order_of<'a>(run: &'static str, all: impl Iterator<Item = &'a Figures>) -> OrderOf {
    let mut all = all.peekable();
    let first = all.peek().map(|figures| figures.order.clone()).unwrap_or_default();
    let order = all.find(|figures| !figures.order.is_kept()).map_or(first, |figures| figures.order.clone());
    OrderOf { run, is_kept: order.is_kept(), order }
}

/// Returns the figures that at least one of the runs has.
fn figures<'a>(runs: impl Iterator<Item = &'a Figures>) -> Vec<(String, Figure)> {
    let (mut devices, mut has_rows, mut has_tasks) = (BTreeSet::new(), false, false);
    for run in runs {
        devices.extend(run.busy_ns.keys().cloned());
        has_rows |= run.rows > 0;
        has_tasks |= !run.completions_ns.is_empty() || run.missed > 0;
    }
    let mut figures: Vec<(String, Figure)> = Vec::new();
    let mut add = |name: &str, figure: Figure| figures.push((name.to_owned(), figure));
    if has_rows {
        add("row_latency_mean_ms", Box::new(Figures::row_latency_mean_ms));
        add("row_latency_p50_ms", Box::new(|run| run.row_latency_ms(0.5)));
        add("row_latency_p99_ms", Box::new(|run| run.row_latency_ms(0.99)));
        add("row_latency_p999_ms", Box::new(|run| run.row_latency_ms(0.999)));
        add("rows", Box::new(|run| Some(run.rows as f64)));
        add("batches", Box::new(|run| Some(run.batches as f64)));
        add("moves", Box::new(|run| Some(run.moves as f64)));
    }
    if has_tasks {
        add("task_completion_mean_ms", Box::new(Figures::completion_mean_ms));
        add("task_completion_p50_ms", Box::new(|run| run.completion_ms(0.5)));
        add("task_completion_p99_ms", Box::new(|run| run.completion_ms(0.99)));
        add("tasks_done", Box::new(|run| Some(run.completions_ns.len() as f64)));
        add("tasks_missed", Box::new(|run| Some(run.missed as f64)));
    }
    add("elapsed_s", Box::new(|run| Some(run.elapsed_ns as f64 / 1e9)));
    for device in devices {
        let name = format!("utilization_{device}_percent");
        // A lane that is missing from a run counts as idle in it.
        add(&name, Box::new(move |run| Some(run.utilization_percent(&device).unwrap_or(0.0))));
    }
    figures
}

/// Collects the fields in which two values differ.
fn unlike(path: &str, recorded: &Value, modelled: &Value, found: &mut Vec<Changed>) {
    if recorded == modelled {
        return;
    }
    let joined = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (recorded, modelled) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            one.iter().for_each(|(name, value)| unlike(&joined(name), value, &other[name], found));
        }
        (Value::Array(one), Value::Array(other)) if path == "lanes" => {
            let devices =
                |lanes: &[Value]| lanes.iter().map(|lane| lane["device"].clone()).collect::<Value>();
            if devices(one) == devices(other) {
                let pairs = one.iter().zip(other).enumerate();
                pairs.for_each(|(lane, (one, other))| unlike(&format!("lanes[{lane}]"), one, other, found));
                return;
            }
            let (recorded, modelled) = (devices(one), devices(other));
            found.push(Changed { field: path.to_owned(), recorded, modelled });
        }
        _ => found.push(Changed {
            field: path.to_owned(),
            recorded: recorded.clone(),
            modelled: modelled.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_claimed_is_above_the_floor_and_outside_of_the_interval() {
        let check = |mean: f64, half_95: f64, floor: Option<f64>, expected: Claim| {
            assert_eq!(
                claim(Some(Mean { mean, half_95 }), floor, Some(4.0)),
                expected,
                "{mean} ± {half_95}, {floor:?}"
            );
        };
        check(-5.0, 1.0, Some(2.0), Claim::Lower);
        check(5.0, 1.0, Some(2.0), Claim::Higher);
        check(5.0, 1.0, Some(5.0), Claim::WithinTheNoiseFloor);
        check(5.0, 6.0, Some(2.0), Claim::NotShown);
        check(0.0, 0.0, Some(0.0), Claim::Same);
        check(4.0, 1.0, Some(2.0), Claim::NotRepeated);
        check(-3.0, 5.0, Some(2.0), Claim::NotRepeated);
        check(3.0, 1.0, Some(3.0), Claim::WithinTheNoiseFloor);
        check(5.0, 1.0, None, Claim::NotComparable);
        assert_eq!(claim(None, Some(1.0), None), Claim::NotComparable);
        assert_eq!(claim(Some(Mean { mean: 3.0, half_95: 1.0 }), Some(2.0), None), Claim::Higher);
        let nothing = claim(Some(Mean { mean: 1e9, half_95: 1.0 }), Some(2.0), Some(f64::INFINITY));
        assert_eq!(nothing, Claim::NotRepeated, "of an overloaded run");
    }
}
