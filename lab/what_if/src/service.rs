//! The service model, fitted from a journal: times of batches and slices by class of lanes, and times of the shell's
//! answers.
//!
//! ```text
//!   Dispatch ──► Completed     by class:            time by rows;  the lane is occupied from the later of dispatch and the batch before
//!   RunSlice ──► SliceDone     by class and kind:   time by cost
//!   Release ───► Released      by what passes once the lane has done what it had in flight
//!   Restore ───► PartitionAssigned,   AskPrices ──► Priced     by what passed
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warptape_schemas::journal::{Decision, Input, LaneId, LaneKind, LaneSpec, PartitionId, TaskId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::curve::{Curve, Sample, Times};
use crate::error::WhatIfError;

/// Times of the shell's answers that are assumed if the journal has none, in nanoseconds.
const RELEASE_NS: i64 = 1_000_000;
const RESTORE_NS: i64 = 1_000_000_000;
const PRICING_NS: i64 = 1_000_000;

/// Returns the name of a lane's class: its kind, and its class name if it has one. The scheduler also distinguishes
/// lanes by both.
pub(crate) fn class_of(lane: &LaneSpec) -> String {
    let kind = match lane.kind() {
        LaneKind::Host => "host",
        LaneKind::Device => "device",
    };
    if lane.class.is_empty() { kind.to_owned() } else { format!("{kind}/{}", lane.class) }
}

/// Class of a lane, and kind of its tasks.
type LaneAndTask = (String, String);

/// Collects measurements, entry by entry.
#[derive(Default)]
pub(crate) struct Fitting {
    batches: BTreeMap<String, Vec<Sample>>,
    measured: BTreeMap<String, Vec<Sample>>,
    slices: BTreeMap<LaneAndTask, Vec<Sample>>,
    weights: BTreeMap<String, i32>,
    release_ns: Vec<i64>,
    restore_ns: Vec<i64>,
    pricing_ns: Vec<i64>,
    life: Open,
}

/// The unfinished work of a process life.
#[derive(Default)]
struct Open {
    lanes: Vec<Lane>,
    slices: BTreeMap<i64, (LaneId, i64, i64, String)>,
    tasks: BTreeMap<TaskId, (String, i64)>,
    releases: BTreeMap<(PartitionId, i32, i64), i64>,
    restores: BTreeMap<PartitionId, i64>,
    questions: BTreeMap<i64, i64>,
}

#[derive(Default)]
struct Lane {
    class: String,
    /// Number, rows and dispatch time of each batch in flight.
    flights: VecDeque<(i64, i64, i64)>,
    done_ns: i64,
}

impl Fitting {
    /// Begins a life with its lanes.
    pub(crate) fn begin(&mut self, lanes: &[LaneSpec]) {
        let lane = |spec: &LaneSpec| Lane { class: class_of(spec), ..Lane::default() };
        self.life = Open { lanes: lanes.iter().map(lane).collect(), ..Open::default() };
        for lane in lanes {
            let weight = self.weights.entry(class_of(lane)).or_default();
            *weight = (*weight).max(lane.weight);
        }
    }

    /// Records an input. If it answers a decision, its time is measured.
    pub(crate) fn see(&mut self, at_ns: i64, input: &Input) {
        match input {
            Input::Completed(done) => {
                let Some(lane) = self.life.lanes.get_mut(done.lane as usize) else { return };
                let Some((_, rows, since_ns)) = lane.flights.pop_front_if(|one| one.0 == done.batch) else {
                    return;
                };
                let occupied_ns = at_ns - since_ns.max(lane.done_ns);
                lane.done_ns = at_ns;
                let sample = Sample { size: rows, occupied_ns, service_ns: done.service_ns };
                self.batches.entry(lane.class.clone()).or_default().push(sample);
            }
            Input::SliceDone(done) => {
                let Some((lane, since_ns, cost, key)) = self.life.slices.remove(&done.slice) else { return };
                let Some(lane) = self.life.lanes.get(lane as usize) else { return };
                let sample =
                    Sample { size: cost, occupied_ns: at_ns - since_ns, service_ns: done.service_ns };
                self.slices.entry((lane.class.clone(), key)).or_default().push(sample);
            }
            Input::Measured(measured) => {
                let Some(lane) = self.life.lanes.get(measured.lane as usize) else { return };
                let sample = |point: &warptape_schemas::journal::ServicePoint| Sample {
                    size: point.rows,
                    occupied_ns: point.service_ns,
                    service_ns: point.service_ns,
                };
                self.measured
                    .entry(lane.class.clone())
                    .or_default()
                    .extend(measured.points.iter().map(sample));
            }
            Input::LaneLost(lost) => {
                let Some(lane) = self.life.lanes.get_mut(lost.lane as usize) else { return };
                lane.flights.clear();
                lane.done_ns = at_ns;
                self.life.slices.retain(|_, slice| slice.0 != lost.lane);
            }
            Input::TaskArrived(arrived) => {
                self.life.tasks.insert(arrived.task, (arrived.rate_key.clone(), arrived.unit_cost));
            }
            Input::Released(released) => {
                let key = (released.partition, released.group, released.epoch);
                let lane = self.life.lanes.get(released.lane as usize);
                if let Some((since_ns, lane)) = self.life.releases.remove(&key).zip(lane) {
                    self.release_ns.push(at_ns - since_ns.max(lane.done_ns));
                }
            }
            Input::PartitionAssigned(assigned) => {
                let since_ns = self.life.restores.remove(&assigned.partition);
                self.restore_ns.extend(since_ns.map(|since_ns| at_ns - since_ns));
            }
            Input::Priced(priced) => {
                let since_ns = self.life.questions.remove(&priced.question);
                self.pricing_ns.extend(since_ns.map(|since_ns| at_ns - since_ns));
            }
            _ => {}
        }
    }

    /// Records decisions that await an answer.
    pub(crate) fn decided(&mut self, at_ns: i64, decisions: &[Decision]) {
        for decision in decisions {
            match decision {
                Decision::Dispatch(dispatch) => {
                    if let Some(lane) = self.life.lanes.get_mut(dispatch.lane as usize) {
                        lane.flights.push_back((dispatch.batch, dispatch.rows, at_ns));
                    }
                }
                Decision::RunSlice(run) => {
                    if let Some((key, unit_cost)) = self.life.tasks.get(&run.task) {
                        let cost = (run.to - run.from).saturating_mul(*unit_cost);
                        self.life.slices.insert(run.slice, (run.lane, at_ns, cost, key.clone()));
                    }
                }
                Decision::Release(release) => {
                    self.life.releases.insert((release.partition, release.group, release.epoch), at_ns);
                }
                Decision::Restore(restore) => {
                    self.life.restores.insert(restore.partition, at_ns);
                }
                Decision::AskPrices(question) => {
                    self.life.questions.insert(question.question, at_ns);
                }
                _ => {}
            }
        }
    }

    /// Returns the service model.
    pub(crate) fn finish(mut self) -> Service {
        for (class, points) in self.measured {
            // Measurements from the start of a lane are used only for classes without a recorded batch.
            self.batches.entry(class).or_insert(points);
        }
        let fitted = |(name, samples)| Some((name, Curve::fit(samples)?));
        let batches: BTreeMap<_, _> = self.batches.into_iter().filter_map(fitted).collect();
        let fitted = |(name, samples)| Some((name, Curve::fit(samples)?));
        let slices: BTreeMap<_, _> = self.slices.into_iter().filter_map(fitted).collect();
        let Self { weights, release_ns, restore_ns, pricing_ns, .. } = self;
        Service { batches, slices, weights, release_ns, restore_ns, pricing_ns }
    }
}

/// Service times of lanes and shell.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    batches: BTreeMap<String, Curve>,
    slices: BTreeMap<LaneAndTask, Curve>,
    weights: BTreeMap<String, i32>,
    release_ns: Vec<i64>,
    restore_ns: Vec<i64>,
    pricing_ns: Vec<i64>,
}

/// Assumptions made where the journal has no data.
pub(crate) type Assumed = BTreeSet<String>;

impl Service {
    /// Draws the time of a batch on a lane of a class.
    pub(crate) fn batch(
        &self,
        class: &str,
        rows: i64,
        (seed, address): (u64, &[u8]),
        assumed: &mut Assumed,
    ) -> Result<Times, WhatIfError> {
        if let Some(curve) = self.batches.get(class) {
            return Ok(curve.draw(rows, seed, address));
        }
        let (other, curve) = self.batches.iter().next().ok_or_else(|| nothing(class))?;
        let times = curve.draw(rows, seed, address);
        assumed.insert(format!(
            "no batch of class {class} was recorded: its batches are assumed to take the time of those of \
             {other}, scaled by the weights of lanes"
        ));
        Ok(self.by_weights(times, other, class))
    }

    /// Draws the time of a slice of a kind of tasks on a lane of a class.
    pub(crate) fn slice(
        &self,
        class: &str,
        key: &str,
        cost: i64,
        (seed, address): (u64, &[u8]),
        assumed: &mut Assumed,
    ) -> Result<Times, WhatIfError> {
        if let Some(curve) = self.slices.get(&(class.to_owned(), key.to_owned())) {
            return Ok(curve.draw(cost, seed, address));
        }
        let of_key = self.slices.iter().find(|((_, of), _)| of == key);
        let Some(((other, _), curve)) = of_key.or_else(|| self.slices.iter().next()) else {
            return Err(nothing(class));
        };
        let times = curve.draw(cost, seed, address);
        let basis = if of_key.is_some() { other.clone() } else { format!("other kinds on {other}") };
        assumed.insert(format!(
            "no slice of {key} on class {class} was recorded: it is assumed to take the time on {basis}, \
             scaled by the weights of lanes"
        ));
        Ok(self.by_weights(times, other, class))
    }

    /// Draws the time that a lane without work of a group takes to release the group, in nanoseconds.
    pub(crate) fn release_ns(&self, seed: u64, address: &[u8], assumed: &mut Assumed) -> i64 {
        chosen(&self.release_ns, seed, address, (RELEASE_NS, "a group was given back"), assumed)
    }

    /// Draws the time to restore a partition, in nanoseconds.
    pub(crate) fn restore_ns(&self, seed: u64, address: &[u8], assumed: &mut Assumed) -> i64 {
        chosen(&self.restore_ns, seed, address, (RESTORE_NS, "a partition was restored"), assumed)
    }

    /// Draws the time to solve for prices, in nanoseconds.
    pub(crate) fn pricing_ns(&self, seed: u64, address: &[u8], assumed: &mut Assumed) -> i64 {
        chosen(&self.pricing_ns, seed, address, (PRICING_NS, "prices were found"), assumed)
    }

    fn by_weights(&self, times: Times, of: &str, class: &str) -> Times {
        let weight = |class: &str| i128::from(self.weights.get(class).copied().unwrap_or(0).max(0));
        let (from, to) = (weight(of), weight(class));
        let scaled = |ns: i64| match from > 0 && to > 0 {
            true => (i128::from(ns) * from / to).min(i128::from(i64::MAX / 4)) as i64,
            false => ns,
        };
        Times { occupied_ns: scaled(times.occupied_ns), service_ns: scaled(times.service_ns) }
    }
}

fn nothing(class: &str) -> WhatIfError {
    WhatIfError::NothingMeasured { class: class.to_owned() }
}

fn chosen(
    samples: &[i64],
    seed: u64,
    address: &[u8],
    (default_ns, what): (i64, &str),
    assumed: &mut Assumed,
) -> i64 {
    if samples.is_empty() {
        assumed.insert(format!("no recorded time in which {what}: {} ms is assumed", default_ns / 1_000_000));
        return default_ns;
    }
    let index = (u128::from(xxh3_64_with_seed(address, seed)) * samples.len() as u128) >> 64;
    samples[index as usize].max(0)
}
