//! Figures of a running scheduler by window, and the decision that another number of lanes is wanted.
//!
//! ```text
//!   Completed ──► rows and their time ────────┐
//!   SliceDone ──► time, Finish ──► its task ──┴──► the first step at or after a window's end: figures ──► Autoscaler ──► another wish: Scale
//! ```
//!
//! Windows begin at multiples of their length since the epoch. A step that ends a window judges it before it applies
//! its input. So the window's figures contain only what happened in it. Windows without a step count as empty. The
//! first window of a life is not judged if it is not whole.
//!
//! Waiting work is estimated as lane time from the mean time of a row and of a task, so that no step walks over tasks.
//! A task counts in full while a lane has not begun some of its units. Arrived work is the finished work plus the
//! growth of the waiting work. Lanes count alike, whatever their class; a lane that works on a slice beside a batch
//! counts for both.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{AutoscaleConfig, Decision, Scale};

use super::{Autoscaler, Figures, Wish};
use crate::account::Account;
use crate::config::{ConfigMistake, DURATION_NS_MAX, mistake};
use crate::life::Life;
use crate::service::Serving;
use crate::state_hash::{Component, StateHash, hash_component};

/// Share by which a window moves the mean times of a row and of a task: 1/4.
const SMOOTHING: i64 = 4;
/// Shortest window: a second.
const WINDOW_NS_MIN: i64 = 1_000_000_000;
/// Most lanes that a process may want.
pub const LANES_WANTED_MAX: i32 = 1_000_000;
const NS_PS: i64 = 1_000;

/// Autoscaling of a running process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Live {
    scaler: Autoscaler,
    /// Number of the current window. Below: true if it was counted from its begin on.
    number: i64,
    is_whole: bool,
    /// Lane time of the work that ended in the window. The slices of lanes that were lost meanwhile count; their
    /// batches do not.
    busy_ns: i64,
    /// Finished rows and, below, finished tasks.
    rows: Done,
    tasks: Done,
    /// Smoothed time of a row in picoseconds. Below: of a task in nanoseconds; 0 while unknown.
    row_ps: i64,
    task_ns: i64,
    /// Work that waited at the end of the previous window, in nanoseconds.
    waited_ns: i64,
    /// The last wish; `None` before the first window.
    wish: Option<Wish>,
    /// Hash of the parts that only windows change.
    digest: u64,
    contribution: u64,
}

/// Finished work of one sort: rows or tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    number: i64,
    service_ns: i64,
}

/// All mistakes of a configuration; empty if it is good.
pub fn check_autoscale(config: &AutoscaleConfig) -> Vec<ConfigMistake> {
    let ranges = [
        ("lanes_min", i64::from(config.lanes_min), 1, i64::from(LANES_WANTED_MAX)),
        ("lanes_max", i64::from(config.lanes_max), 1, i64::from(LANES_WANTED_MAX)),
        ("window_ns", config.window_ns, WINDOW_NS_MIN, DURATION_NS_MAX),
        ("utilization_percent", i64::from(config.utilization_percent), 1, 100),
        ("hysteresis_percent", i64::from(config.hysteresis_percent), 0, 99),
        ("hold_windows", i64::from(config.hold_windows), 0, i64::from(super::SEASON_WINDOWS_MAX)),
        ("clear_ns", config.clear_ns, WINDOW_NS_MIN, DURATION_NS_MAX),
        ("start_ns", config.start_ns, 0, DURATION_NS_MAX),
        ("season_windows", i64::from(config.season_windows), 0, i64::from(super::SEASON_WINDOWS_MAX)),
        ("error_percent_max", i64::from(config.error_percent_max), 0, 1_000),
        ("anomaly_deviations", i64::from(config.anomaly_deviations), 0, 1_000),
    ];
    let is_wrong = |(_, found, least, most): &(&str, i64, i64, i64)| found < least || found > most;
    let range = |(field, found, least, most): (&str, i64, i64, i64)| {
        mistake(format!("autoscale.{field}"), found, format!("it must be from {least} to {most}"))
    };
    let mut mistakes: Vec<ConfigMistake> = ranges.into_iter().filter(is_wrong).map(range).collect();
    if config.lanes_min > config.lanes_max {
        let allowed = format!("it must be up to lanes_max ({})", config.lanes_max);
        let mistake = mistake("autoscale.lanes_min", config.lanes_min, allowed);
        mistakes.push(ConfigMistake { against: Some("lanes_max"), ..mistake });
    }
    if config.hysteresis_percent >= config.utilization_percent {
        let allowed = format!("it must be below utilization_percent ({})", config.utilization_percent);
        let mistake = mistake("autoscale.hysteresis_percent", config.hysteresis_percent, allowed);
        mistakes.push(ConfigMistake { against: Some("utilization_percent"), ..mistake });
    }
    mistakes
}

impl Done {
    fn add(&mut self, number: i64, service_ns: i64) {
        self.number += number;
        self.service_ns = self.service_ns.saturating_add(service_ns.clamp(0, DURATION_NS_MAX));
    }

    /// Smoothed time of one row or task, times a factor; the known value if none was finished.
    fn each(self, known: i64, factor: i64) -> i64 {
        if self.number == 0 {
            return known;
        }
        let sample = i128::from(self.service_ns) * i128::from(factor) / i128::from(self.number);
        let sample = sample.clamp(1, i128::from(DURATION_NS_MAX)) as i64;
        if known == 0 { sample } else { known + (sample - known) / SMOOTHING }
    }
}

impl Live {
    /// Autoscaling from a time on; as many lanes are wanted as exist.
    pub(crate) fn new(config: &AutoscaleConfig, at_ns: i64, lanes: usize, hash: &mut StateHash) -> Self {
        let mut live = Self {
            scaler: Autoscaler::new(*config, lanes as i32),
            number: at_ns / config.window_ns,
            is_whole: at_ns % config.window_ns == 0,
            busy_ns: 0,
            rows: Done::default(),
            tasks: Done::default(),
            row_ps: 0,
            task_ns: 0,
            waited_ns: 0,
            wish: None,
            digest: 0,
            contribution: 0,
        };
        live.digest = live.digest_now();
        live.refresh(hash);
        live
    }

    /// The last wish; `None` before the first window.
    pub(crate) fn wish(&self) -> Option<&Wish> {
        self.wish.as_ref()
    }

    /// End of the current window.
    fn ends_ns(&self) -> i64 {
        (self.number + 1).saturating_mul(self.scaler.config().window_ns)
    }

    fn digest_now(&self) -> u64 {
        let scaler = self.scaler.hash() as i64;
        // A wish follows from the window's figures, which are in the scaler's hash, except for these two fields.
        let (waiting_ns, lanes) = self.wish.map_or((-1, -1), |wish| (wish.waiting_ns, wish.lanes_in_service));
        let fields = [scaler, self.row_ps, self.task_ns, self.waited_ns, waiting_ns, i64::from(lanes)];
        hash_component(Component::Scaling, fields)
    }

    fn hash(&self) -> u64 {
        let Done { number: rows, service_ns: rows_ns } = self.rows;
        let Done { number: tasks, service_ns: tasks_ns } = self.tasks;
        let digest = self.digest as i64;
        let done = hash_component(Component::Scaling, [rows, rows_ns, tasks, tasks_ns]) as i64;
        let is_whole = i64::from(self.is_whole);
        hash_component(Component::Scaling, [self.number, is_whole, self.busy_ns, done, digest])
    }

    /// Hash of this state, computed by walking over it.
    pub(crate) fn walked_hash(&self) -> u64 {
        Self { digest: self.digest_now(), ..self.clone() }.hash()
    }

    /// Counts a batch that a lane has finished.
    pub(crate) fn batch_done(&mut self, rows: i64, service_ns: i64, hash: &mut StateHash) {
        self.rows.add(rows, service_ns);
        self.worked(service_ns, hash);
    }

    /// Counts a finished task and its lane time.
    pub(crate) fn task_done(&mut self, service_ns: i64, hash: &mut StateHash) {
        self.tasks.add(1, service_ns);
        self.refresh(hash);
    }

    /// Counts lane time of finished work.
    pub(crate) fn worked(&mut self, service_ns: i64, hash: &mut StateHash) {
        self.busy_ns = self.busy_ns.saturating_add(service_ns.clamp(0, DURATION_NS_MAX));
        self.refresh(hash);
    }

    fn refresh(&mut self, hash: &mut StateHash) {
        let now = self.hash();
        hash.replace(&mut self.contribution, now);
    }
}

/// Waiting work, as lane time in nanoseconds.
fn waiting_ns(life: &Life, row_ps: i64, task_ns: i64) -> i64 {
    let rows: i64 = life.partitions.values().map(|partition| partition.waiting_rows).sum();
    let of_rows = i128::from(rows) * i128::from(row_ps) / i128::from(NS_PS);
    let of_tasks = i128::from(life.risk.tasks_waiting()) * i128::from(task_ns);
    (of_rows + of_tasks).min(i128::from(i64::MAX / 4)) as i64
}

/// A window that has ended.
struct Ended {
    figures: Figures,
    row_ps: i64,
    task_ns: i64,
}

/// The current window if it has ended by a time, with the state after its last step.
fn ended(life: &Life, at_ns: i64) -> Option<Ended> {
    let live = life.learnt.later.autoscale.as_ref().filter(|_| !life.clock.draining)?;
    if at_ns < live.ends_ns() {
        return None;
    }
    let (row_ps, task_ns) = (live.rows.each(live.row_ps, NS_PS), live.tasks.each(live.task_ns, 1));
    let waiting_ns = waiting_ns(life, row_ps, task_ns);
    let serving = Serving::of(&life.lanes);
    let lanes = life.lanes.iter().filter(|lane| serving.has(lane)).count() as i32;
    let arrived_ns = live.busy_ns.saturating_add(waiting_ns - live.waited_ns).max(0);
    let figures = Figures { number: live.number, busy_ns: live.busy_ns, arrived_ns, waiting_ns, lanes };
    Some(Ended { figures, row_ps, task_ns })
}

/// Judges the current window if it has ended by a time.
pub(crate) fn end_window(life: &mut Life, at_ns: i64, decisions: &mut Vec<Decision>) {
    let Some(Ended { figures, row_ps, task_ns }) = ended(life, at_ns) else { return };
    let Life { learnt, hash, .. } = life;
    let Some(live) = &mut learnt.later.autoscale else { return };
    if live.is_whole {
        let before = live.scaler.lanes();
        let wish = live.scaler.window(&figures);
        live.wish = Some(wish);
        if wish.lanes != before {
            decisions.push(Decision::Scale(wish.decision(before)));
        }
    }
    (live.row_ps, live.task_ns, live.waited_ns) = (row_ps, task_ns, figures.waiting_ns);
    (live.busy_ns, live.rows, live.tasks) = (0, Done::default(), Done::default());
    live.number = at_ns / live.scaler.config().window_ns;
    live.is_whole = true;
    live.digest = live.digest_now();
    live.refresh(hash);
}

/// Explains why another number of lanes is wanted at the end of the current window.
pub(crate) fn account(life: &Life, at_ns: i64) -> Account {
    let (Some(live), Some(ended)) = (&life.learnt.later.autoscale, ended(life, at_ns)) else {
        return Account::default();
    };
    let mut account = live.scaler.account(&ended.figures);
    account.figure("row_takes_ps", ended.row_ps);
    account.figure("task_takes_ns", ended.task_ns);
    account
}

/// End of the current window, at which a wake is needed; `i64::MAX` without autoscaling.
pub(crate) fn wake_ns(life: &Life) -> i64 {
    let live = life.learnt.later.autoscale.as_ref().filter(|_| !life.clock.draining);
    live.map_or(i64::MAX, Live::ends_ns)
}

impl Wish {
    fn decision(&self, lanes_before: i32) -> Scale {
        Scale {
            lanes: self.lanes,
            lanes_before,
            lanes_in_service: self.lanes_in_service,
            reason: self.reason,
            utilization_percent: self.utilization_percent,
            waiting_ns: self.waiting_ns,
            arrived_e6: self.arrived_e6,
            load_e6: self.load_e6,
            forecast_e6: self.forecast_e6,
            error_ppm: self.error_ppm,
            deviations_e3: self.deviations_e3,
            season_windows: self.season_windows,
        }
    }
}
