//! Breakers: a lane that fails, or is slow beside the others, gets no work until probes have shown that it is well again; one whose
//! device becomes hot gets less before that, and one whose device has little memory left gets no further groups.
//!
//! ```text
//!            losses, slowness, memory errors            the time to probe has come
//!   CLOSED ───────────────────────────────────► OPEN ───────────────────────────────► HALF_OPEN ──► CLOSED  probes succeeded
//!                                                ▲                                        │
//!                                                └────────────────────────────────────────┘  a probe failed: twice the wait
//! ```
//!
//! Slowness is the time of a lane's batches by what their class is predicted to take, smoothed, beside the median of the other lanes:
//! where all become slow together, as on a busy machine, none is. A busy machine puts off one lane after the other, each for a hundred
//! times what a batch takes. So one batch counts for twice what the lane took before at most, which has slowness follow most batches and
//! not the longest; other lanes count by what they took as lately; and where these are slow themselves, nothing is held against one lane.
//! It owns the rule and each lane's record; which lanes get work is for `service`.

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

/// A new batch moves a lane's slowness by this share: 1/8.
const SMOOTHING: i64 = 8;
/// A batch counts for at most so many times what its lane took before: the system may have put off its thread.
const OUTLIER: i64 = 2;
/// A batch counts as at most so many percent of what was predicted.
const PERCENT_MAX: i64 = 10_000;
/// Batches without a break that a lane has to be slow for.
const SLOW_BATCHES: i32 = 8;
/// Slow probes that make a probe failed: one may have been disturbed.
const SLOW_PROBES: i32 = 2;
/// A breaker that opens again within so many times its last wait waits twice as long.
const RELAPSE: i64 = 4;
/// Samples without heat after which a lane gets its whole weight again.
const COOL_SAMPLES: i32 = 10;

/// All lanes' breakers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Breakers {
    lanes: Vec<LaneBreaker>,
    /// When the first open one of a lane that is ready is to be probed; the greatest number where none is.
    next_ns: i64,
    next_contribution: u64,
}

/// The record of one lane.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LaneBreaker {
    /// Since when its state is what it is.
    since_ns: i64,
    /// How long it waits before probes; 0 before it ever opened.
    wait_ns: i64,
    /// When the lane was lost lately, the oldest first.
    losses: VecDeque<i64>,
    /// Smoothed, in percent of what is predicted; 0 where nothing is known.
    slowness_percent: i64,
    /// Since when it has been slow, and for how many batches.
    slow: Option<(i64, i32)>,
    passed: i32,
    failed: i32,
    /// Errors of the device's memory at its last sample.
    memory_errors: Option<i64>,
    heat: Heat,
    contribution: u64,
    /// When its last batch that was held against a prediction was done; 0 where there was none. Checkpoints have it
    /// behind the rest.
    #[serde(skip)]
    measured_ns: i64,
}

/// How hot a lane's device is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Heat {
    /// Percent of its weight that it does not get.
    withheld_percent: i32,
    /// Samples since the last one that would have withheld as much.
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
            // As before there were any.
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

    /// Hash of all, by walking.
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

    /// When each lane was measured last; nothing where none was, or that is not noted.
    pub(crate) fn measured_ns(&self) -> Vec<i64> {
        let all: Vec<i64> = self.lanes.iter().map(|breaker| breaker.measured_ns).collect();
        if all.iter().all(|measured_ns| *measured_ns == 0) { Vec::new() } else { all }
    }

    /// Sets that, as a checkpoint has it; false if it is of another number of lanes.
    pub(crate) fn restore_measured(&mut self, measured_ns: &[i64]) -> bool {
        for (breaker, measured_ns) in self.lanes.iter_mut().zip(measured_ns) {
            breaker.measured_ns = *measured_ns;
        }
        measured_ns.is_empty() || measured_ns.len() == self.lanes.len()
    }

    /// The median slowness of the lanes that have full service, but for one; `None` where there is none. Only lanes count that were
    /// measured as lately as a lane has to be slow for.
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

/// What a batch took.
pub(crate) struct Took {
    pub(crate) predicted_ns: Option<i64>,
    pub(crate) service_ns: i64,
    /// Whether it is the first of about its size of all lanes of the class.
    pub(crate) is_first: bool,
}

/// A lane has finished a batch. Whether the prediction should learn from it: what a lane takes that may be slow says nothing about its
/// class.
pub(crate) fn batch_done(life: &mut Life, lane: LaneId, took: Took, decisions: &mut Vec<Decision>) -> bool {
    let Took { predicted_ns, service_ns, is_first } = took;
    let Some(config) = life.config.breakers else { return true };
    let Some(predicted_ns) = predicted_ns.filter(|_| config.slow_percent > 0) else {
        // That it came to an end is all that is known of it.
        work_done(life, lane, decisions);
        return true;
    };
    let limit = i64::from(config.slow_percent);
    let percent = (service_ns.saturating_mul(100) / predicted_ns.max(1)).clamp(1, PERCENT_MAX);
    let known = life.breakers.lanes[lane as usize].slowness_percent;
    let counted = percent.min(known.max(100) * OUTLIER);
    let smoothed = if known == 0 { counted } else { known + (counted - known) / SMOOTHING };
    let state = life.lanes[lane as usize].service.breaker();
    // Nothing tempers the first batch of a size: were it one of a lane that has just become slow, it would be what such a batch takes.
    let teaching = if is_first { smoothed.max(percent) } else { smoothed };
    // A lane that is as fast as predicted is not slow beside others: most batches end here.
    let is_suspect = state == BreakerState::HalfOpen || teaching * 2 >= limit;
    let at_ns = life.clock.at_ns;
    let others = if is_suspect { life.breakers.others_percent(life, at_ns, lane) } else { None };
    let beside = |percent: i64, others: Option<i64>| others.map_or(0, |others| percent * 100 / others);
    // Where others are slow as well, it is the machine.
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

/// A lane has finished a slice, or a batch of which nothing is predicted.
pub(crate) fn work_done(life: &mut Life, lane: LaneId, decisions: &mut Vec<Decision>) {
    let Some(config) = life.config.breakers else { return };
    if life.lanes[lane as usize].service.breaker() == BreakerState::HalfOpen {
        probed(life, config, lane, 0, decisions);
    }
}

/// A lane is lost.
pub(crate) fn lane_lost(life: &mut Life, lane: LaneId, decisions: &mut Vec<Decision>) {
    let Some(config) = life.config.breakers else { return };
    let at_ns = life.clock.at_ns;
    life.breakers.change(lane, &mut life.hash, |breaker| {
        // What it took before says nothing about it once it is back.
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

/// How a lane's device fares.
pub(crate) fn sampled(life: &mut Life, lane: LaneId, sample: &DeviceSample, decisions: &mut Vec<Decision>) {
    let Some(config) = life.config.breakers else { return };
    if let Some(errors) = sample.ecc_errors_uncorrected {
        let before = life.breakers.lanes[lane as usize].memory_errors;
        let more = before.map_or(0, |before| errors.saturating_sub(before));
        let is_open = life.lanes[lane as usize].service.breaker() == BreakerState::Open;
        // Errors for which there is no other lane count once there is one.
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

/// Whether a device has little of its memory left: less than `free_percent` of it, or less than twice that where it had little before.
fn is_short_of_memory(used_bytes: i64, free_bytes: i64, free_percent: i64, was_short: bool) -> bool {
    let [used, free] = [used_bytes, free_bytes].map(|bytes| i128::from(bytes.max(0)));
    let wanted_percent = i128::from(if was_short { 2 * free_percent } else { free_percent });
    free * 100 < (used + free) * wanted_percent
}

impl Heat {
    /// More is withheld at once, and less only when it has been cool for some time.
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

/// Percent of its weight that a lane does not get whose device has so much left before it throttles.
fn withheld_percent(left_c: i64, headroom_c: i64) -> i32 {
    match left_c {
        left_c if left_c >= headroom_c => 0,
        left_c if left_c.saturating_mul(2) >= headroom_c => 50,
        _ => 75,
    }
}

/// A lane that was lost is back: its groups come home, or where its breaker is open, it is probed in time.
pub(crate) fn lane_ready(life: &mut Life, lane: LaneId) {
    if life.config.breakers.is_none() {
        // As before there were breakers: it gets what nobody owns.
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

/// Begins probes whose time has come. Returns when to look again.
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

/// A lane has done what it was probed with, in so many percent of the time.
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
            // It is used for want of another one, and probed on.
            let begin = |breaker: &mut LaneBreaker| (breaker.passed, breaker.failed) = (0, 0);
            life.breakers.change(lane, &mut life.hash, begin);
        }
    } else if passed >= config.probes {
        let measured = (i64::from(passed), i64::from(config.probes));
        turn(life, lane, BreakerState::Closed, BreakerReason::Recovered, measured, decisions);
        life.rebalancing.begin(Some(lane), &mut life.hash);
    }
}

/// Opens a breaker, unless an operator holds it or there is no other lane for the work. Whether it did.
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

/// A breaker gets a state.
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

/// An operator has taken a breaker into their hands, or out of them: what it had found counts no more.
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

/// Checks what is kept of it.
///
/// # Panics
/// If an open breaker is not to be probed.
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
