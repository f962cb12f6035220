//! Breakers: a lane that fails, or is slow compared with the others, gets no work until probes succeed. A lane gets
//! less work while its device is hot, and no further groups while its device has little memory left.
//!
//! ```text
//!            losses, slowness, memory errors            the time to probe has come
//!   CLOSED ───────────────────────────────────► OPEN ───────────────────────────────► HALF_OPEN ──► CLOSED  probes succeeded
//!                                                ▲                                        │
//!                                                └────────────────────────────────────────┘  a probe failed: twice the wait
//! ```
//!
//! Slowness is the smoothed time of a lane's batches relative to the prediction for its class. It is compared with the
//! median of the other lanes. If all lanes become slow together, as on a busy machine, none counts as slow. A busy
//! machine delays one lane after the other, each for a hundred times the time of a batch. Three rules keep this from
//! opening breakers. One batch counts for at most twice the lane's slowness before, so that slowness follows most
//! batches and not the longest. Other lanes count only if they were measured lately. No lane counts as slow while the
//! others are slow themselves. The module owns the rule and each lane's record; `service` decides which lanes get work.

mod account;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use warptape_events::journal::{
    Breaker, BreakerConfig, BreakerMode, BreakerReason, BreakerState, Decision, DeviceSample, Headroom,
    LaneId,
};

use crate::lanes::Lane;
use crate::life::Life;
use crate::service::{self, Change, Serving};
use crate::state_hash::{Component, StateHash, hash_component};

pub(crate) use account::{account, headroom_account};

/// Share by which a new batch moves a lane's slowness: 1/8.
const SMOOTHING: i64 = 8;
/// Most that a batch counts for, as a multiple of its lane's slowness before: the system may have delayed the lane's
/// thread.
const OUTLIER: i64 = 2;
/// Most that a batch counts for, in percent of the prediction.
const PERCENT_MAX: i64 = 10_000;
/// Successive slow batches after which a lane counts as slow.
const SLOW_BATCHES: i32 = 8;
/// Slow probes after which probing fails; a single one may have been disturbed.
const SLOW_PROBES: i32 = 2;
/// Multiple of the last wait within which a breaker that opens again doubles the wait.
const RELAPSE: i64 = 4;
/// Cool samples after which a lane gets its full weight again.
const COOL_SAMPLES: i32 = 10;

/// Breakers of all lanes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Breakers {
    lanes: Vec<LaneBreaker>,
    /// Time at which the first open breaker of a ready lane is due for probes; `i64::MAX` if there is none.
    next_ns: i64,
    next_contribution: u64,
}

/// The record of one lane.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LaneBreaker {
    /// Time of the last change of state.
    since_ns: i64,
    /// Wait before probes; 0 until the breaker first opens.
    wait_ns: i64,
    /// Times of recent losses of the lane, the oldest first.
    losses: VecDeque<i64>,
    /// Smoothed time of batches in percent of the prediction; 0 if nothing is known.
    slowness_percent: i64,
    /// Time since which the lane has been slow, and the number of its batches since then; `None` if it is not slow.
    slow: Option<(i64, i32)>,
    passed: i32,
    failed: i32,
    /// Memory errors of the device at its last sample.
    memory_errors: Option<i64>,
    heat: Heat,
    contribution: u64,
    /// End of its last batch that was compared with a prediction; 0 if there was none. Checkpoints store it after the
    /// other fields of the state.
    #[serde(skip)]
    measured_ns: i64,
}

/// Heat of a lane's device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Heat {
    /// Percentage of the lane's weight that is withheld.
    withheld_percent: i32,
    /// Samples since the last one that would have withheld as much weight as now.
    cool_samples: i32,
}

impl LaneBreaker {
    fn hash(&self, lane: LaneId) -> u64 {
        let measured = match self.measured_ns {
            0 => 0,
            measured_ns => hash_component(Component::BreakerMeasured, [i64::from(lane), measured_ns]),
        };
        self.record_hash(lane).wrapping_add(measured)
    }

    fn record_hash(&self, lane: LaneId) -> u64 {
        let losses = self.losses.iter().fold(0_i64, |hash, at_ns| hash.rotate_left(7) ^ at_ns);
        let (slow_since_ns, slow_batches) = self.slow.unwrap_or((-1, 0));
        let counts =
            [self.passed, self.failed, slow_batches, self.heat.withheld_percent, self.heat.cool_samples];
        let fields = [
            self.since_ns,
            self.wait_ns,
            losses,
            self.slowness_percent,
            slow_since_ns,
            self.memory_errors.unwrap_or(-1),
        ];
        if fields == [0, 0, 0, 0, -1, -1] && counts == [0; 5] {
            // A lane without a record has the same hash as before breakers existed.
            return 0;
        }
        let [since_ns, wait_ns, losses, slowness, slow_since_ns, memory_errors] = fields;
        let [passed, failed, slow_batches, withheld, cool] = counts.map(i64::from);
        hash_component(
            Component::Breaker,
            [
                i64::from(lane),
                since_ns,
                wait_ns,
                losses,
                slowness,
                slow_since_ns,
                memory_errors,
                passed,
                failed,
                slow_batches,
                withheld,
                cool,
            ],
        )
    }
}

impl Breakers {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { lanes: vec![LaneBreaker::default(); lanes], next_ns: i64::MAX, next_contribution: 0 }
    }

    fn next_hash(&self) -> u64 {
        match self.next_ns {
            i64::MAX => 0,
            next_ns => hash_component(Component::Breaker, [next_ns]),
        }
    }

    fn set_next(&mut self, next_ns: i64, hash: &mut StateHash) {
        self.next_ns = next_ns;
        let now = self.next_hash();
        hash.replace(&mut self.next_contribution, now);
    }

    /// Hash of all breakers, computed by walking over them.
    pub(crate) fn walked_hash(&self) -> u64 {
        let next = self.next_hash();
        next.wrapping_add(
            (0..).zip(&self.lanes).fold(0, |sum: u64, (lane, breaker)| sum.wrapping_add(breaker.hash(lane))),
        )
    }

    /// Changes the record of a lane.
    fn change(&mut self, lane: LaneId, hash: &mut StateHash, change: impl FnOnce(&mut LaneBreaker)) {
        let breaker = &mut self.lanes[lane as usize];
        change(breaker);
        let now = breaker.hash(lane);
        hash.replace(&mut breaker.contribution, now);
    }

    /// Time of each lane's last measurement; empty if there was none.
    pub(crate) fn measured_ns(&self) -> Vec<i64> {
        let all: Vec<i64> = self.lanes.iter().map(|breaker| breaker.measured_ns).collect();
        if all.iter().all(|measured_ns| *measured_ns == 0) { Vec::new() } else { all }
    }

    /// Restores the times of the last measurements from a checkpoint. Returns false if the checkpoint has another
    /// number of lanes.
    pub(crate) fn restore_measured(&mut self, measured_ns: &[i64]) -> bool {
        for (breaker, measured_ns) in self.lanes.iter_mut().zip(measured_ns) {
            breaker.measured_ns = *measured_ns;
        }
        measured_ns.is_empty() || measured_ns.len() == self.lanes.len()
    }

    /// Median slowness of the other lanes in full service, in percent; `None` if there is none. A lane counts only if
    /// its last measurement is no older than `slow_ns`, the time for which a lane must be slow.
    fn others_percent(&self, life: &Life, at_ns: i64, lane: LaneId) -> Option<i64> {
        let slow_ns = life.config.breakers.map_or(0, |config| config.slow_ns);
        let is_fresh = |breaker: &LaneBreaker| at_ns - breaker.measured_ns <= slow_ns;
        let known = life.lanes.iter().zip(&self.lanes).filter(|(other, breaker)| {
            let serves = other.id != lane && other.ready && other.service.is_full();
            serves && breaker.slowness_percent > 0 && is_fresh(breaker)
        });
        let mut percents: Vec<i64> = known.map(|(_, breaker)| breaker.slowness_percent).collect();
        let middle = percents.len() / 2;
        if percents.is_empty() {
            return None;
        }
        Some(*percents.select_nth_unstable(middle).1)
    }
}

/// Actual and predicted time of a batch.
pub(crate) struct Took {
    pub(crate) predicted_ns: Option<i64>,
    pub(crate) service_ns: i64,
    /// True if no lane of the class has done a batch of about this size before.
    pub(crate) is_first: bool,
}

/// Judges a finished batch. Returns true if the prediction should learn from it; a batch of a possibly slow lane would
/// mislead it.
pub(crate) fn batch_done(life: &mut Life, lane: LaneId, took: Took, decisions: &mut Vec<Decision>) -> bool {
    let Took { predicted_ns, service_ns, is_first } = took;
    let Some(config) = life.config.breakers else { return true };
    let Some(predicted_ns) = predicted_ns.filter(|_| config.slow_percent > 0) else {
        // Without a prediction, only the fact that the batch ended counts.
        work_done(life, lane, decisions);
        return true;
    };
    let limit = i64::from(config.slow_percent);
    let percent = (service_ns.saturating_mul(100) / predicted_ns.max(1)).clamp(1, PERCENT_MAX);
    let known = life.breakers.lanes[lane as usize].slowness_percent;
    let counted = percent.min(known.max(100) * OUTLIER);
    let smoothed = if known == 0 { counted } else { known + (counted - known) / SMOOTHING };
    let state = life.lanes[lane as usize].service.breaker();
    // The first batch of a size counts in full. Otherwise the time of a lane that has just become slow would become the
    // prediction for that size.
    let teaching = if is_first { smoothed.max(percent) } else { smoothed };
    // A lane that is as fast as predicted cannot be slow compared with others; most batches end here.
    let is_suspect = state == BreakerState::HalfOpen || teaching * 2 >= limit;
    let at_ns = life.clock.at_ns;
    let others = if is_suspect { life.breakers.others_percent(life, at_ns, lane) } else { None };
    let beside = |percent: i64, others: Option<i64>| others.map_or(0, |others| percent * 100 / others);
    // If the others are slow as well, the cause is the machine and not the lane.
    let judges = others.filter(|others| others * 2 < limit);
    let slow_percent = if smoothed * 2 >= limit { beside(smoothed, judges) } else { 0 };
    let is_slow = slow_percent >= limit;
    life.breakers.change(lane, &mut life.hash, |breaker| {
        breaker.slowness_percent = smoothed;
        breaker.measured_ns = at_ns;
        breaker.slow = match (is_slow && state == BreakerState::Closed, breaker.slow) {
            (false, _) => None,
            (true, slow) => {
                let more = |(since_ns, batches): (i64, i32)| (since_ns, (batches + 1).min(SLOW_BATCHES));
                slow.map(more).or(Some((at_ns, 1)))
            }
        };
    });
    match state {
        BreakerState::Closed => {
            let is_over = |(since_ns, batches)| at_ns - since_ns >= config.slow_ns && batches >= SLOW_BATCHES;
            if life.breakers.lanes[lane as usize].slow.is_some_and(is_over) {
                open(life, config, lane, BreakerReason::Slow, (slow_percent, limit), decisions);
            }
            beside(teaching, others) * 2 < limit
        }
        BreakerState::HalfOpen => {
            probed(life, config, lane, beside(percent, judges), decisions);
            false
        }
        BreakerState::Open => false,
    }
}

/// Counts a finished slice, or a batch without a prediction, as a good probe if the breaker is half open.
pub(crate) fn work_done(life: &mut Life, lane: LaneId, decisions: &mut Vec<Decision>) {
    let Some(config) = life.config.breakers else { return };
    if life.lanes[lane as usize].service.breaker() == BreakerState::HalfOpen {
        probed(life, config, lane, 0, decisions);
    }
}

/// Judges the loss of a lane.
pub(crate) fn lane_lost(life: &mut Life, lane: LaneId, decisions: &mut Vec<Decision>) {
    let Some(config) = life.config.breakers else { return };
    let at_ns = life.clock.at_ns;
    life.breakers.change(lane, &mut life.hash, |breaker| {
        // Times before the loss say nothing about the lane after its return.
        (breaker.slowness_percent, breaker.slow) = (0, None);
        while breaker.losses.front().is_some_and(|lost_ns| at_ns - lost_ns >= config.window_ns) {
            breaker.losses.pop_front();
        }
        if config.losses_max > 0 {
            breaker.losses.push_back(at_ns);
            if breaker.losses.len() > config.losses_max as usize {
                breaker.losses.pop_front();
            }
        }
    });
    let losses = life.breakers.lanes[lane as usize].losses.len() as i64;
    let limit = i64::from(config.losses_max);
    match life.lanes[lane as usize].service.breaker() {
        BreakerState::HalfOpen => {
            open(life, config, lane, BreakerReason::ProbeFailed, (0, 0), decisions);
        }
        BreakerState::Closed if limit > 0 && losses >= limit => {
            open(life, config, lane, BreakerReason::Losses, (losses, limit), decisions);
        }
        BreakerState::Closed | BreakerState::Open => {}
    }
}

/// Judges a sample of a lane's device: its memory errors, its temperature and its free memory.
pub(crate) fn sampled(life: &mut Life, lane: LaneId, sample: &DeviceSample, decisions: &mut Vec<Decision>) {
    let Some(config) = life.config.breakers else { return };
    if let Some(errors) = sample.ecc_errors_uncorrected {
        let before = life.breakers.lanes[lane as usize].memory_errors;
        let more = before.map_or(0, |before| errors.saturating_sub(before));
        let is_open = life.lanes[lane as usize].service.breaker() == BreakerState::Open;
        // Errors that could not open the breaker, for lack of another lane, count again with the next sample.
        let is_told =
            more <= 0 || is_open || open(life, config, lane, BreakerReason::Memory, (more, 0), decisions);
        if is_told {
            life.breakers.change(lane, &mut life.hash, |breaker| breaker.memory_errors = Some(errors));
        }
    }
    if let (Some(temperature_c), Some(limit_c)) = (sample.temperature_c, sample.slowdown_c)
        && config.headroom_c > 0
    {
        let withheld = withheld_percent(limit_c.saturating_sub(temperature_c), i64::from(config.headroom_c));
        let mut heat = life.breakers.lanes[lane as usize].heat.clone();
        let before = heat.withheld_percent;
        heat.feel(withheld);
        let now = heat.withheld_percent;
        life.breakers.change(lane, &mut life.hash, |breaker| breaker.heat = heat);
        if now != before {
            service::withhold(life, lane, now);
            let weight_percent = 100 - now;
            decisions.push(Decision::Headroom(Headroom { lane, weight_percent, temperature_c, limit_c }));
        }
    }
    if let (Some(used), Some(free)) = (sample.memory_used_bytes, sample.memory_free_bytes) {
        let was_short = life.lanes[lane as usize].service.is_short_of_memory();
        let is_short = is_short_of_memory(used, free, i64::from(config.memory_free_percent), was_short);
        if is_short != was_short {
            service::change(life, lane, Change::Memory(is_short));
        }
    }
}

/// True if a device has less than `free_percent` of its memory left, or less than twice that if it was short of memory
/// before.
fn is_short_of_memory(used_bytes: i64, free_bytes: i64, free_percent: i64, was_short: bool) -> bool {
    let [used, free] = [used_bytes, free_bytes].map(|bytes| i128::from(bytes.max(0)));
    let wanted_percent = i128::from(if was_short { 2 * free_percent } else { free_percent });
    free * 100 < (used + free) * wanted_percent
}

impl Heat {
    /// Withholds more weight at once, and less only after the device has been cool for some time.
    fn feel(&mut self, withheld_percent: i32) {
        if withheld_percent >= self.withheld_percent {
            *self = Self { withheld_percent, cool_samples: 0 };
            return;
        }
        self.cool_samples += 1;
        if self.cool_samples >= COOL_SAMPLES {
            *self = Self { withheld_percent, cool_samples: 0 };
        }
    }
}

/// Percentage of a lane's weight to withhold while its device has `left_c` degrees left before it throttles.
fn withheld_percent(left_c: i64, headroom_c: i64) -> i32 {
    match left_c {
        left_c if left_c >= headroom_c => 0,
        left_c if left_c.saturating_mul(2) >= headroom_c => 50,
        _ => 75,
    }
}

/// Handles the return of a lost lane: its groups come back or, if its breaker is open, probes are scheduled.
pub(crate) fn lane_ready(life: &mut Life, lane: LaneId) {
    if life.config.breakers.is_none() {
        // Without breakers, as in older journals, the lane only gets groups that no lane owns.
        return;
    }
    if life.lanes[lane as usize].service.breaker() != BreakerState::Open {
        life.rebalancing.begin(Some(lane), &mut life.hash);
    } else {
        let LaneBreaker { since_ns, wait_ns, .. } = life.breakers.lanes[lane as usize];
        let next_ns = life.breakers.next_ns.min(since_ns.saturating_add(wait_ns));
        life.breakers.set_next(next_ns, &mut life.hash);
    }
}

/// Begins the probes that are due. Returns the time at which to check again.
pub(crate) fn probe(life: &mut Life, decisions: &mut Vec<Decision>) -> i64 {
    if life.clock.draining {
        return i64::MAX;
    }
    if life.clock.at_ns < life.breakers.next_ns {
        return life.breakers.next_ns;
    }
    let mut next_ns = i64::MAX;
    for lane in 0..life.lanes.len() as LaneId {
        let Lane { ready, service, .. } = &life.lanes[lane as usize];
        if !ready || service.breaker() != BreakerState::Open {
            continue;
        }
        let LaneBreaker { since_ns, wait_ns, .. } = life.breakers.lanes[lane as usize];
        if life.clock.at_ns < since_ns.saturating_add(wait_ns) {
            next_ns = next_ns.min(since_ns.saturating_add(wait_ns));
            continue;
        }
        let waited_ns = life.clock.at_ns - since_ns;
        turn(life, lane, BreakerState::HalfOpen, BreakerReason::Probe, (waited_ns, wait_ns), decisions);
        life.rebalancing.begin(Some(lane), &mut life.hash);
    }
    life.breakers.set_next(next_ns, &mut life.hash);
    next_ns
}

/// Judges a finished probe, given its slowness in percent.
fn probed(life: &mut Life, config: BreakerConfig, lane: LaneId, percent: i64, decisions: &mut Vec<Decision>) {
    let limit = i64::from(config.slow_percent);
    let is_slow = limit > 0 && percent >= limit;
    let (mut passed, mut failed) = (0, 0);
    life.breakers.change(lane, &mut life.hash, |breaker| {
        breaker.passed += i32::from(!is_slow);
        breaker.failed += i32::from(is_slow);
        (passed, failed) = (breaker.passed, breaker.failed);
    });
    if failed >= SLOW_PROBES {
        if !open(life, config, lane, BreakerReason::ProbeFailed, (percent, limit), decisions) {
            // The lane stays in use because there is no other one; the probes begin anew.
            let begin = |breaker: &mut LaneBreaker| (breaker.passed, breaker.failed) = (0, 0);
            life.breakers.change(lane, &mut life.hash, begin);
        }
    } else if passed >= config.probes {
        let measured = (i64::from(passed), i64::from(config.probes));
        turn(life, lane, BreakerState::Closed, BreakerReason::Recovered, measured, decisions);
        life.rebalancing.begin(Some(lane), &mut life.hash);
    }
}

/// Opens a breaker, unless an operator holds it or no other lane could take over. Returns true if it opened.
fn open(
    life: &mut Life,
    config: BreakerConfig,
    lane: LaneId,
    reason: BreakerReason,
    measured: (i64, i64),
    decisions: &mut Vec<Decision>,
) -> bool {
    let serves = |other: &Lane| other.id != lane && other.ready && other.service.is_full();
    if life.lanes[lane as usize].service.mode() != BreakerMode::Auto || !life.lanes.iter().any(serves) {
        return false;
    }
    let LaneBreaker { since_ns, wait_ns, .. } = life.breakers.lanes[lane as usize];
    let was_half_open = life.lanes[lane as usize].service.breaker() == BreakerState::HalfOpen;
    let is_relapse =
        was_half_open || (wait_ns > 0 && life.clock.at_ns - since_ns < wait_ns.saturating_mul(RELAPSE));
    let wait_ns =
        if is_relapse { wait_ns.saturating_mul(2).min(config.probe_ns_max) } else { config.probe_ns };
    turn(life, lane, BreakerState::Open, reason, measured, decisions);
    life.breakers.change(lane, &mut life.hash, |breaker| breaker.wait_ns = wait_ns);
    let next_ns = life.breakers.next_ns.min(life.clock.at_ns.saturating_add(wait_ns));
    life.breakers.set_next(next_ns, &mut life.hash);
    true
}

/// Changes the state of a breaker.
fn turn(
    life: &mut Life,
    lane: LaneId,
    state: BreakerState,
    reason: BreakerReason,
    (measured, limit): (i64, i64),
    decisions: &mut Vec<Decision>,
) {
    let at_ns = life.clock.at_ns;
    life.breakers.change(lane, &mut life.hash, |breaker| {
        (breaker.since_ns, breaker.passed, breaker.failed) = (at_ns, 0, 0);
        (breaker.slowness_percent, breaker.slow) = (0, None);
        if state == BreakerState::Closed {
            breaker.losses.clear();
        }
    });
    service::change(life, lane, Change::Breaker(state));
    decisions.push(Decision::Breaker(Breaker { lane, state, reason, measured, limit }));
}

/// Forgets the breaker's measurements, because an operator has taken control of it or given it back.
pub(crate) fn forget(life: &mut Life, lane: LaneId) {
    service::change(life, lane, Change::Breaker(BreakerState::Closed));
    life.breakers.change(lane, &mut life.hash, |breaker| {
        let (heat, contribution) = (std::mem::take(&mut breaker.heat), breaker.contribution);
        *breaker = LaneBreaker {
            measured_ns: breaker.measured_ns,
            heat,
            contribution,
            memory_errors: breaker.memory_errors,
            ..LaneBreaker::default()
        };
    });
}

/// Checks the kept state.
///
/// # Panics
/// An open breaker has no scheduled probe, a lane's weight does not match its heat, or a probed lane is in full
/// service.
pub(crate) fn audit(life: &Life) {
    for (lane, breaker) in life.lanes.iter().zip(&life.breakers.lanes) {
        if lane.ready && lane.service.breaker() == BreakerState::Open {
            assert!(life.breakers.next_ns < i64::MAX, "lane {} stays open for ever", lane.id);
        }
        let withheld = i64::from(breaker.heat.withheld_percent);
        assert_eq!(
            lane.weight.current,
            service::weight_of(lane.weight.full, withheld as i32),
            "weight of lane {}",
            lane.id
        );
    }
    let serving = Serving::of(&life.lanes);
    let probing = life.lanes.iter().filter(|lane| serving.probes(lane));
    probing.for_each(|lane| assert!(!serving.has(lane), "lane {} is probed and has full service", lane.id));
}
