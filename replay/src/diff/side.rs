//! Summarizes one run: its work, its waits, and the lanes of its groups.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};
use warptape_schemas::journal::{CommitOutcome, LaneId, Started};

use super::DiffSide;
use super::moved::Groups;
use crate::chain::{Context, Seen, Slow, SlowestOptions, Step, row_waits, slowest_with};
use crate::history::{Batch, BatchEnd, Item, Life, StayEnd, Window};
use crate::{ReplayError, ReplayProgress};

/// Greatest number of software versions listed.
const VERSIONS_MAX: usize = 16;
/// Number of slowest signals whose chain is kept.
const SLOWEST: usize = 3;
/// Largest latency counted, in ns; longer ones count as an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// The summary of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// The log.
    pub url: String,
    /// The log from which the run was modelled; `None` if the run was recorded.
    pub modelled_from: Option<String>,
    /// Number of process lives.
    pub lives: u64,
    /// Versions of the software in the order of their lives.
    pub software: Vec<String>,
    /// Time from the first to the last event in the journals, ns.
    pub elapsed_ns: i64,
    /// Amounts of work and of interruptions.
    #[serde(flatten)]
    pub totals: Totals,
    /// Times from the publication of a tick record to the commit of its signals.
    pub latency: Latency,
    /// Waits of a row from its arrival to its commit, averaged over all rows.
    pub waits: Vec<MeanWait>,
    /// The work of each lane.
    pub lanes: Vec<LaneWork>,
    /// The slowest signals.
    pub slowest: Vec<Slow>,
}

/// Amounts of a run's work and of its interruptions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Number of rows in batches that lanes completed.
    pub rows: i64,
    /// Number of batches.
    pub batches: u64,
    /// Number of times that a lane released a group to another lane.
    pub moves: u64,
    /// Number of pauses of partitions.
    pub pauses: u64,
    /// Total length of the pauses, ns. A pause without an end counts until the last event of its life.
    pub paused_ns: i64,
    /// Number of pauses whose beginning was removed from the journal, or is too far back in it. They count from a
    /// checkpoint on, and were longer.
    pub pauses_begun_before: u64,
    /// Number of transactions.
    pub transactions: u64,
    /// Number of aborted attempts to commit.
    pub aborted: u64,
    /// Number of times that a lane was lost.
    pub lanes_lost: u64,
    /// Number of signals in transactions whose commit time is known.
    pub signals: u64,
}

/// Latencies of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Median, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// 99.9th percentile, ns.
    pub p999_ns: u64,
    /// Maximum, ns. It is exact; the other values have three significant digits.
    pub max_ns: u64,
}

/// The mean wait of rows in one step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanWait {
    /// The step.
    pub step: Step,
    /// Mean wait of a row, ns.
    pub ns: i64,
}

/// The work of a lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LaneWork {
    /// Partition of the journal: the ordinal of the process.
    pub journal: i32,
    /// Number of the lane.
    pub lane: LaneId,
    /// Device of the lane.
    pub device: String,
    /// Number of completed batches.
    pub batches: u64,
    /// Number of rows in these batches.
    pub rows: i64,
    /// Time for which the lane worked on these batches, ns.
    pub service_ns: i64,
}

/// The result of reading a run.
pub(super) struct Reading {
    pub(super) side: Side,
    /// Configuration of the first life.
    pub(super) configuration: Value,
    pub(super) groups: Groups,
}

/// Reads a run.
pub(super) fn read(
    side: DiffSide<'_>,
    progress: &mut dyn FnMut(ReplayProgress),
) -> Result<Reading, ReplayError> {
    let mut fold = Fold::new(side.log.url());
    let wanted = SlowestOptions { count: SLOWEST, window: Window::default(), partition: None };
    let found = slowest_with(side.log, side.options, wanted, &mut |seen| fold.see(seen), progress)?;
    let mut reading = fold.finish();
    reading.side.slowest = found.signals;
    Ok(reading)
}

struct Fold {
    context: Context,
    side: Side,
    configuration: Value,
    groups: Groups,
    lanes: BTreeMap<(i32, LaneId), LaneWork>,
    software: BTreeSet<String>,
    latency: Histogram<u64>,
    /// Exact latency of the slowest signal, because the histogram rounds.
    latency_ns_max: u64,
    /// Number of rows whose waits are known, and the sum of the waits by step.
    waits: (i128, BTreeMap<Step, i128>),
    times: Option<(i64, i64)>,
    /// Time of the life's last event so far.
    life_last_ns: i64,
}

impl Fold {
    fn new(url: String) -> Self {
        // The histogram reaches from a microsecond to an hour with three significant digits. The bounds are constants,
        // so this cannot fail.
        let latency = Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, 3).expect("bounds of a histogram");
        Self {
            context: Context::default(),
            side: Side { url, ..Side::default() },
            configuration: Value::Null,
            groups: Groups::default(),
            lanes: BTreeMap::new(),
            software: BTreeSet::new(),
            latency,
            latency_ns_max: 0,
            waits: (0, BTreeMap::new()),
            times: None,
            life_last_ns: 0,
        }
    }

    fn see(&mut self, seen: Seen<'_>) {
        match seen {
            Seen::Signal { latency_ns, .. } => {
                self.side.totals.signals += 1;
                let latency_ns = latency_ns.map(|latency_ns| latency_ns.max(0).unsigned_abs());
                latency_ns.into_iter().for_each(|latency_ns| {
                    self.latency.saturating_record(latency_ns);
                    self.latency_ns_max = self.latency_ns_max.max(latency_ns);
                });
            }
            Seen::Before(_) => {}
            Seen::Item(item) => {
                self.see_item(item);
                self.context.follow(item);
            }
        }
    }

    fn see_item(&mut self, item: &Item) {
        match item {
            Item::Life(life) => self.begin(life),
            Item::Pause(pause) => {
                self.side.totals.pauses += 1;
                self.side.totals.pauses_begun_before += u64::from(pause.pause.is_none());
                let until_ns = pause.until.map_or(self.life_last_ns, |until| until.at_ns);
                self.side.totals.paused_ns += until_ns.saturating_sub(pause.from.at_ns).max(0);
            }
            Item::Batch(batch) => self.batch(batch),
            Item::Stay(stay) => self.side.totals.moves += u64::from(stay.end == StayEnd::Released),
            Item::Lane(change) => self.side.totals.lanes_lost += u64::from(change.lost.is_some()),
            Item::Transaction(transaction) => {
                self.side.totals.transactions += 1;
                let aborted = transaction.attempts.iter();
                let aborted = aborted.filter(|attempt| attempt.outcome == CommitOutcome::Aborted);
                self.side.totals.aborted += aborted.count() as u64;
                transaction.sealed_ns.into_iter().for_each(|at_ns| self.reach(at_ns));
                row_waits(&self.context, transaction, &mut |rows, waits| {
                    self.waits.0 += i128::from(rows);
                    for wait in waits {
                        *self.waits.1.entry(wait.step).or_default() += i128::from(wait.ns) * i128::from(rows);
                    }
                });
            }
            Item::Assigned(_)
            | Item::Unassigned(_)
            | Item::Level(_)
            | Item::Hole(_)
            | Item::Breaker(_)
            | Item::Headroom(_)
            | Item::Draining(_)
            | Item::Wanted(_)
            | Item::Round(_)
            | Item::Slice(_) => {}
        }
    }

    fn begin(&mut self, life: &Life) {
        self.side.lives += 1;
        self.life_last_ns = life.since.at_ns;
        self.reach(life.since.at_ns);
        if self.configuration.is_null() {
            self.configuration = configuration(&life.started);
        }
        let software = &life.started.software;
        if self.side.software.len() < VERSIONS_MAX && self.software.insert(software.clone()) {
            self.side.software.push(software.clone());
        }
    }

    fn batch(&mut self, batch: &Batch) {
        self.side.totals.batches += 1;
        self.reach(batch.at.at_ns);
        let BatchEnd::Completed { at, service_ns, .. } = batch.end else { return };
        self.reach(at.at_ns);
        let Some(life) = self.context.life().cloned() else { return };
        let number = batch.dispatch.lane;
        let spec = life.started.lanes.iter().find(|spec| spec.lane == number);
        let device = spec.map_or("", |spec| spec.device.as_str());
        let lane = self.lanes.entry((life.journal, number)).or_insert_with(|| LaneWork {
            journal: life.journal,
            lane: number,
            device: device.to_owned(),
            batches: 0,
            rows: 0,
            service_ns: 0,
        });
        lane.batches += 1;
        lane.rows += batch.dispatch.rows;
        lane.service_ns += service_ns;
        self.side.totals.rows += batch.dispatch.rows;
        let name = match life.journal {
            0 => format!("{number} ({device})"),
            process => format!("{number} ({device}) of process {process}"),
        };
        for part in &batch.parts {
            let way = self.groups.entry((part.partition, part.group)).or_default();
            for piece in &part.pieces {
                // Without offsets, the records are unknown.
                let Some((first, _)) = piece.arrival.offsets else { continue };
                way.push(first, &name, piece.rows);
            }
        }
    }

    fn reach(&mut self, at_ns: i64) {
        let (first, last) = self.times.unwrap_or((at_ns, at_ns));
        self.times = Some((first.min(at_ns), last.max(at_ns)));
        self.life_last_ns = self.life_last_ns.max(at_ns);
    }

    fn finish(self) -> Reading {
        let Self { mut side, configuration, groups, lanes, latency, latency_ns_max, .. } = self;
        let ((rows, waits), times) = (self.waits, self.times);
        side.elapsed_ns = times.map_or(0, |(first, last)| last.saturating_sub(first));
        side.lanes = lanes.into_values().collect();
        let mean = |(step, sum): (Step, i128)| MeanWait { step, ns: (sum / rows.max(1)) as i64 };
        side.waits = waits.into_iter().map(mean).collect();
        if !latency.is_empty() {
            // The upper end of a bucket may be above the slowest signal.
            let quantile = |quantile| latency.value_at_quantile(quantile).min(latency_ns_max);
            side.latency = Latency {
                p50_ns: quantile(0.5),
                p99_ns: quantile(0.99),
                p999_ns: quantile(0.999),
                max_ns: latency_ns_max,
            };
        }
        Reading { side, configuration, groups }
    }
}

/// Returns the configuration, without the process and the version of its software.
pub(super) fn configuration(started: &Started) -> Value {
    let stages: Value =
        serde_json::from_str(&started.stage_config).unwrap_or_else(|_| json!(started.stage_config));
    let Started { node: _, software: _, stage_config: _, scheduler, lanes, autoscale, shadow, rules } =
        started;
    json!({
        "scheduler": scheduler, "lanes": lanes, "stages": stages, "autoscale": autoscale, "shadow": shadow,
        "rules": rules
    })
}

#[cfg(test)]
mod tests {
    use warptape_schemas::journal::{Pause, RiskConfig};

    use super::*;
    use crate::history::{Moment, Paused};

    fn at(at_ns: i64) -> Moment {
        Moment { sequence: 0, at_ns }
    }

    fn life(journal: i32, began_ns: i64) -> Item {
        let started = json!({
            "node": "n", "software": "s", "stage_config": "{}", "lanes": [], "autoscale": null, "shadow": null,
            "rules": 1,
            "scheduler": {
                "placement_policy": "rendezvous", "placement_seed": 0, "load_factor_percent": 125,
                "lane_credit_rows": 1, "lane_credit_bytes": 1, "lane_batches_max": 1, "batch_rows_max": 1,
                "row_deadline_ns": 1, "high_water_rows": 2, "low_water_rows": 1, "route_interval_ns": 0,
                "risk": RiskConfig::default(), "balance_interval_ns": 0
            }
        });
        let started = serde_json::from_value(started).expect("a beginning");
        Item::Life(Life { journal, began: Some(at(began_ns)), since: at(began_ns), started }.into())
    }

    #[test]
    fn a_pause_that_did_not_end_counts_until_what_its_life_tells_last() {
        let mut fold = Fold::new("sqlite:a".to_owned());
        let pause = Some(Pause { partition: 3, waiting_rows: 9, high_water_rows: 8 });
        let open = Item::Pause(Paused { from: at(2_100), pause, partition: 3, until: None });
        // The previous process has written for longer.
        fold.see_item(&life(0, 1_000));
        fold.reach(9_000);
        fold.see_item(&life(1, 2_000));
        fold.reach(2_500);
        fold.see_item(&open);
        assert_eq!(fold.side.totals.paused_ns, 400);
    }

    /// Programs read the JSON, so it must not change with the division into structs.
    #[test]
    fn the_json_of_a_side_is_flat() {
        let totals = Totals { rows: 7, ..Totals::default() };
        let side = Side { url: "sqlite:a".to_owned(), totals, elapsed_ns: 5, ..Side::default() };
        assert_eq!(
            serde_json::to_string(&side).expect("numbers and texts"),
            r#"{"url":"sqlite:a","modelled_from":null,"lives":0,"software":[],"elapsed_ns":5,"rows":7,"batches":0,"moves":0,"pauses":0,"paused_ns":0,"pauses_begun_before":0,"transactions":0,"aborted":0,"lanes_lost":0,"signals":0,"latency":{"p50_ns":0,"p99_ns":0,"p999_ns":0,"max_ns":0},"waits":[],"lanes":[],"slowest":[]}"#
        );
    }
}
