//! The model's rules for breakers: allowed changes of state, and their times.

use warptape_events::journal::*;

use super::Model;

/// A lane's breaker in the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelBreaker {
    /// The mode that an operator has set.
    pub mode: BreakerMode,
    pub state: BreakerState,
    since_ns: i64,
    /// Finished work since the breaker became half open.
    probes: i32,
    /// Finished work during probing that continued because there was no other lane.
    probes_for_want: i32,
    /// Percentage of the lane's weight in effect; `None` if it was never changed.
    weight_percent: Option<i32>,
}

impl ModelBreaker {
    pub fn is_open(&self) -> bool {
        self.mode == BreakerMode::Open || (self.mode == BreakerMode::Auto && self.state == BreakerState::Open)
    }

    pub fn is_half_open(&self) -> bool {
        self.mode == BreakerMode::Auto && self.state == BreakerState::HalfOpen
    }

    /// Sets the mode, like an operator's command.
    pub fn set(&mut self, mode: BreakerMode) {
        if self.mode == mode {
            return;
        }
        *self = Self { mode, weight_percent: self.weight_percent, ..Self::default() };
    }

    /// The part of a weight that is in effect.
    pub fn weight_of(&self, weight: i32) -> i32 {
        self.weight_percent
            .map_or(weight, |percent| (i64::from(weight) * i64::from(percent) / 100) as i32)
            .max(weight.min(1))
    }
}

impl Model {
    /// Counts finished work of a probed lane.
    pub(super) fn count_probe(&mut self, input: &Input) {
        let (lane, is_current) = match input {
            Input::Completed(completed) => {
                let current = self.lanes[completed.lane as usize].in_flight.front().map(|batch| batch.batch);
                (completed.lane, current == Some(completed.batch))
            }
            Input::SliceDone(done) => {
                let is_current =
                    self.lanes[done.lane as usize].slices().any(|slice| slice.slice == done.slice);
                (done.lane, is_current)
            }
            _ => return,
        };
        let has_other = self.has_another_in_full_service(lane);
        let breaker = &mut self.lanes[lane as usize].breaker;
        // If there is no other lane, probing continues, whatever the probes show.
        breaker.probes += i32::from(is_current);
        breaker.probes_for_want += i32::from(is_current && !has_other);
    }

    /// Notes the memory of a lane's device: it is short below the least share, and until it has twice that share again.
    pub(super) fn sampled(&mut self, sampled: &Sampled) {
        let Sampled { lane, sample } = sampled;
        let (Some(used), Some(free)) = (sample.memory_used_bytes, sample.memory_free_bytes) else { return };
        let Some(config) = self.config.breakers else { return };
        let hundredths = i128::from(free) * 100;
        let percents = |percent: i32| (i128::from(used) + i128::from(free)) * i128::from(percent);
        let lane = &mut self.lanes[*lane as usize];
        if hundredths < percents(config.memory_free_percent) {
            lane.is_short = true;
        } else if hundredths >= percents(2 * config.memory_free_percent) {
            lane.is_short = false;
        }
    }

    fn has_another_in_full_service(&self, lane: LaneId) -> bool {
        let mut others = (0..).zip(&self.lanes).filter(|(other, _)| *other != lane);
        others.any(|(_, other)| other.ready && other.is_in_full_service())
    }

    pub(super) fn execute_breaker(&mut self, change: &Breaker) -> String {
        let &Breaker { lane, state, reason, measured, limit } = change;
        let config = self.config.breakers.expect("there are breakers");
        let at_ns = self.at_ns;
        let has_other = self.has_another_in_full_service(lane);
        let breaker = &mut self.lanes[lane as usize].breaker;
        match (breaker.state, state, reason) {
            (BreakerState::Closed, BreakerState::Open, BreakerReason::Losses) => {
                assert!(measured >= limit && limit == i64::from(config.losses_max), "{change:?}");
            }
            (BreakerState::Closed, BreakerState::Open, BreakerReason::Slow) => {
                assert!(measured >= limit && limit == i64::from(config.slow_percent), "{change:?}");
            }
            (BreakerState::Closed | BreakerState::HalfOpen, BreakerState::Open, BreakerReason::Memory) => {
                assert!(measured > 0, "{change:?}")
            }
            (BreakerState::Open, BreakerState::HalfOpen, BreakerReason::Probe) => {
                assert_eq!(measured, at_ns - breaker.since_ns);
                assert!(measured >= limit && limit <= config.probe_ns_max, "{change:?}");
            }
            (BreakerState::HalfOpen, BreakerState::Open, BreakerReason::ProbeFailed) => (),
            (BreakerState::HalfOpen, BreakerState::Closed, BreakerReason::Recovered) => {
                assert!(breaker.probes >= config.probes && measured >= limit, "{change:?}");
            }
            other => panic!("no such change: {other:?}"),
        }
        if state == BreakerState::Open {
            assert!(breaker.mode == BreakerMode::Auto, "an operator holds it");
            assert!(has_other, "nobody is left for the work");
        }
        (breaker.state, breaker.since_ns) = (state, at_ns);
        (breaker.probes, breaker.probes_for_want) = (0, 0);
        format!("breaker {reason:?}")
    }

    pub(super) fn execute_headroom(&mut self, headroom: &Headroom) -> String {
        let least = self.config.breakers.expect("there are breakers").headroom_c;
        assert!((1..=100).contains(&headroom.weight_percent), "{headroom:?}");
        let is_hot = headroom.limit_c - headroom.temperature_c < i64::from(least);
        assert!(is_hot || headroom.weight_percent == 100, "{headroom:?}");
        self.lanes[headroom.lane as usize].breaker.weight_percent = Some(headroom.weight_percent);
        format!("headroom {}", headroom.weight_percent)
    }

    /// Checks that open breakers are probed in time, and that probing ends.
    pub(super) fn check_breakers(&self) {
        let Some(config) = self.config.breakers else { return };
        for (index, lane) in self.lanes.iter().enumerate() {
            let breaker = &lane.breaker;
            if breaker.state == BreakerState::Open && lane.ready && !self.life.draining {
                let due_ns = breaker.since_ns + config.probe_ns_max;
                let will_wake =
                    self.life.timer_ns.is_some_and(|timer_ns| timer_ns <= due_ns.max(self.at_ns + 1));
                assert!(will_wake, "lane {index} stays out of service for ever");
            }
            // If there was no other lane, the count of slow probes began anew once.
            let most = 2 * (config.probes + 1) + breaker.probes_for_want;
            let is_over = breaker.state != BreakerState::HalfOpen || breaker.probes <= most;
            assert!(is_over, "lane {index} is probed for ever");
        }
    }
}
