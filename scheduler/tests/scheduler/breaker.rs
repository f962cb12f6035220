//! Breakers: lanes that fail or are slow get no work, are probed, and return to service.

use std::collections::BTreeMap;

use warptape_events::journal::*;
use warptape_scheduler::Scheduler;

use crate::script::{assigned, check, config, started};

#[test]
fn a_lane_that_is_lost_too_often_is_tried_before_it_gets_work_again() {
    check(
        "
        > 0 start 2 losses=2
        > 0 assign 0 4
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        place 0/2 on 1 epoch 1
        place 0/3 on 1 epoch 1
        > 10 lost 1
        fence 1: 2 groups, gone
        restore 0 for 1
        > 20 assign 0 4
        place 0/0 on 0 epoch 2
        place 0/1 on 0 epoch 2
        place 0/2 on 0 epoch 2
        place 0/3 on 0 epoch 2
        > 30 ready 1
        release 0/0 from 0 epoch 2: Rebalance
        release 0/1 from 0 epoch 2: Rebalance
        > 40 lost 1
        fence 1: 0 groups, gone
        breaker of 1: Open, Losses 2 of 2
        wake 1040
        > 41 released 0 0 0 2
        place 0/0 on 0 epoch 3
        > 42 released 0 1 0 2
        place 0/1 on 0 epoch 3
        > 50 ready 1
        > 60 arrive 0 0:3 1:3 2:3 3:3
        dispatch 0 to 0: 0/0:3 0/1:3 0/2:3 0/3:1 (10 rows, 10 bytes, Full, oldest 60, finish 60)
        > 70 complete 0 0 50
        dispatch 1 to 0: 0/3:2 (2 rows, 2 bytes, Idle, oldest 60, finish 80)
        > 90 complete 0 1 10
        > 1040 woke
        breaker of 1: HalfOpen, Probe 1000 of 1000
        release 0/2 from 0 epoch 2: Rebalance
        > 1050 released 0 2 0 2
        place 0/2 on 1 epoch 3
        > 1060 arrive 0 2:3
        dispatch 2 to 1: 0/2:3 (3 rows, 3 bytes, Idle, oldest 1060, finish 1060)
        > 1070 complete 1 2 50
        > 1080 arrive 0 2:3
        dispatch 3 to 1: 0/2:3 (3 rows, 3 bytes, Idle, oldest 1080, finish 1129)
        > 1090 complete 1 3 50
        breaker of 1: Closed, Recovered 2 of 2
        release 0/0 from 0 epoch 3: Rebalance
        > 1100 released 0 0 0 3
        place 0/0 on 1 epoch 4
        ",
    );
}

#[test]
fn a_hot_device_counts_with_less_of_its_weight_until_it_has_been_cool_for_some_time() {
    check(
        "
        > 0 start 2 headroom=10 weights=8,8
        > 0 assign 0 4
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        place 0/2 on 1 epoch 1
        place 0/3 on 1 epoch 1
        > 10 sample 1 80
        > 20 sample 1 81
        weight of 1: 50 %, 81 of 90 C
        > 30 sample 1 87
        weight of 1: 25 %, 87 of 90 C
        > 40 sample 1 82
        > 50 control weight 1 100
        Done: lane 1 weighs 100, and weighed 8; groups stay where they are until `rebalance`
        > 60 assign 1 4
        place 1/0 on 1 epoch 1
        place 1/1 on 1 epoch 1
        place 1/2 on 1 epoch 1
        place 1/3 on 1 epoch 1
        > 70 sample 1 70
        > 71 sample 1 70
        > 72 sample 1 70
        > 73 sample 1 70
        > 74 sample 1 70
        > 75 sample 1 70
        > 76 sample 1 70
        > 77 sample 1 70
        > 78 sample 1 70
        weight of 1: 100 %, 70 of 90 C
        > 79 sample 1 70
        ",
    );
}

#[test]
fn a_device_with_little_memory_left_gets_no_further_groups_while_another_lane_can_take_them() {
    check(
        "
        > 0 start 2 memory=10 load=400
        > 10 sample 0 40 0 91:9
        > 20 assign 0 2
        place 0/0 on 1 epoch 1
        place 0/1 on 1 epoch 1
        > 30 sample 0 40 0 81:19
        > 40 assign 1 1
        place 1/0 on 1 epoch 1
        > 50 sample 0 40 0 80:20
        > 60 assign 2 2
        place 2/0 on 0 epoch 1
        place 2/1 on 0 epoch 1
        > 70 sample 0 40 0 91:9
        > 80 sample 1 40 0 91:9
        > 90 assign 3 1
        place 3/0 on 0 epoch 1
        ",
    );
}

#[test]
fn memory_errors_that_come_in_addition_open_a_breaker_and_an_operator_closes_it() {
    check(
        "
        > 0 start 2 losses=1
        > 0 assign 0 4
        place 0/0 on 0 epoch 1
        place 0/1 on 0 epoch 1
        place 0/2 on 1 epoch 1
        place 0/3 on 1 epoch 1
        > 10 sample 1 40 7
        > 20 sample 1 40 7
        > 30 sample 1 40 8
        breaker of 1: Open, Memory 1 of 0
        release 0/2 from 1 epoch 1: Breaker
        release 0/3 from 1 epoch 1: Breaker
        wake 1030
        > 40 released 0 2 1 1
        place 0/2 on 0 epoch 2
        > 50 control breaker 1 closed
        Done: the breaker of lane 1 is held closed: groups that are best there move to it
        release 0/0 from 0 epoch 1: Rebalance
        release 0/2 from 0 epoch 2: Rebalance
        > 60 sample 1 40 9
        ",
    );
}

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const LANES: usize = 4;
const GROUPS: i32 = 64;

/// Lanes in virtual time. By default each group gets rows once a millisecond. A batch takes 20 µs plus 5 µs for each
/// row, and more on a slow lane.
struct Fleet {
    scheduler: Scheduler,
    at_ns: i64,
    /// Time between arrivals.
    every_ns: i64,
    wake_ns: Option<i64>,
    /// Future events, in order.
    events: BTreeMap<(i64, u64), Input>,
    events_known: u64,
    lane_free_ns: [i64; LANES],
    /// Factor of a lane's service times at a time.
    factor: fn(LaneId, i64) -> i64,
    /// Owning lane of each group.
    placed: BTreeMap<GroupIndex, LaneId>,
    /// Arrival of each batch's oldest row, and the end of the batch.
    batches: Vec<(i64, i64)>,
    breakers: Vec<(i64, Breaker)>,
    moves: usize,
}

impl Fleet {
    fn start(factor: fn(LaneId, i64) -> i64) -> Self {
        let breakers = BreakerConfig {
            losses_max: 3,
            window_ns: 60 * SECOND,
            slow_percent: 500,
            slow_ns: 250 * MS,
            probe_ns: 2 * SECOND,
            probe_ns_max: 300 * SECOND,
            probes: 8,
            headroom_c: 5,
            memory_free_percent: 5,
        };
        let config = SchedulerConfig {
            lane_credit_rows: 1 << 20,
            lane_credit_bytes: 1 << 30,
            lane_batches_max: 2,
            batch_rows_max: 1 << 16,
            row_deadline_ns: 5 * MS,
            high_water_rows: 1 << 20,
            low_water_rows: 1 << 19,
            breakers: Some(breakers),
            ..config()
        };
        let mut fleet = Self {
            scheduler: Scheduler::new(),
            at_ns: 0,
            every_ns: MS,
            wake_ns: None,
            events: BTreeMap::new(),
            events_known: 0,
            lane_free_ns: [0; LANES],
            factor,
            placed: BTreeMap::new(),
            batches: Vec::new(),
            breakers: Vec::new(),
            moves: 0,
        };
        fleet.step(&started(config, &[1; LANES]));
        fleet.step(&assigned(0, GROUPS));
        fleet
    }

    fn at(&mut self, at_ns: i64, input: Input) {
        self.events_known += 1;
        self.events.insert((at_ns, self.events_known), input);
    }

    fn run_to(&mut self, end_ns: i64) {
        for number in self.at_ns / self.every_ns + 1..end_ns / self.every_ns {
            let groups = (0..GROUPS).map(|group| GroupArrival { group, rows: 1, bytes: 40 }).collect();
            self.at(
                number * self.every_ns,
                Input::Arrived(Arrived { partition: 0, next_offset: 2 * number, groups }),
            );
        }
        loop {
            let next_ns = self.events.first_key_value().map(|((at_ns, _), _)| *at_ns);
            let (at_ns, input) = match (self.wake_ns, next_ns) {
                (Some(wake_ns), next) if next.is_none_or(|next_ns| wake_ns <= next_ns) => {
                    (wake_ns, Input::Woke(Woke {}))
                }
                (_, None) => return,
                (_, Some(_)) => {
                    let ((at_ns, _), input) = self.events.pop_first().unwrap();
                    (at_ns, input)
                }
            };
            if at_ns >= end_ns {
                // The next probes may be due at any later time.
                return;
            }
            self.at_ns = at_ns;
            self.step(&input);
        }
    }

    fn step(&mut self, input: &Input) {
        self.wake_ns = self.wake_ns.filter(|wake_ns| *wake_ns > self.at_ns);
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, input, &mut decisions).expect("good input");
        for decision in decisions {
            match decision {
                Decision::WakeAt(wake) => self.wake_ns = Some(wake.at_ns),
                Decision::Place(place) => {
                    self.placed.insert(place.group, place.lane);
                    self.moves += 1;
                }
                Decision::Dispatch(dispatch) => self.run_batch(&dispatch),
                Decision::Release(Release { partition, group, lane, epoch, .. }) => {
                    let free_ns = self.lane_free_ns[lane as usize].max(self.at_ns);
                    self.at(free_ns + MS, Input::Released(Released { partition, group, lane, epoch }));
                }
                Decision::Breaker(breaker) => self.breakers.push((self.at_ns, breaker)),
                other => panic!("nothing of the kind is asked for: {other:?}"),
            }
        }
    }

    fn run_batch(&mut self, dispatch: &Dispatch) {
        let lane = dispatch.lane;
        let begin_ns = self.lane_free_ns[lane as usize].max(self.at_ns);
        let service_ns = (20_000 + 5_000 * dispatch.rows) * (self.factor)(lane, begin_ns);
        let end_ns = begin_ns + service_ns;
        self.lane_free_ns[lane as usize] = end_ns;
        self.batches.push((dispatch.oldest_arrival_ns, end_ns));
        let completed = Completed { lane, batch: dispatch.batch, service_ns, sample: None };
        self.at(end_ns, Input::Completed(completed));
    }

    /// 99th percentile of the time from a batch's oldest row to its end, over batches that ended in this range of
    /// times.
    fn p99_ns(&self, from_ns: i64, to_ns: i64) -> i64 {
        let within = self.batches.iter().filter(|(_, end_ns)| (from_ns..to_ns).contains(end_ns));
        let mut waits: Vec<i64> = within.map(|(arrived_ns, end_ns)| end_ns - arrived_ns).collect();
        waits.sort_unstable();
        waits[waits.len() * 99 / 100]
    }

    fn reasons(&self) -> Vec<BreakerReason> {
        self.breakers.iter().map(|(_, breaker)| breaker.reason).collect()
    }
}

#[test]
fn a_lane_that_is_slow_for_ten_seconds_gets_no_work_meanwhile_and_its_groups_come_home() {
    let factor =
        |lane, at_ns: i64| if lane == 2 && (5 * SECOND..15 * SECOND).contains(&at_ns) { 10 } else { 1 };
    let mut fleet = Fleet::start(factor);
    fleet.run_to(5 * SECOND);
    let (home, moves) = (fleet.placed.clone(), fleet.moves);
    let p99_ns = fleet.p99_ns(SECOND, 5 * SECOND);
    assert!(fleet.breakers.is_empty(), "{:?}", fleet.breakers);

    fleet.run_to(30 * SECOND);
    use BreakerReason::{Probe, ProbeFailed, Recovered, Slow};
    assert_eq!(fleet.reasons(), [Slow, Probe, ProbeFailed, Probe, ProbeFailed, Probe, Recovered]);
    assert!(fleet.breakers.iter().all(|(_, breaker)| breaker.lane == 2));
    let [opened_ns, .., closed_ns] = fleet.breakers.iter().map(|(at_ns, _)| *at_ns).collect::<Vec<_>>()[..]
    else {
        panic!("checked above");
    };
    assert!(opened_ns < 6 * SECOND, "{opened_ns}");
    assert!((15 * SECOND..20 * SECOND).contains(&closed_ns), "{closed_ns}");
    // Latency is normal again two seconds after the lane became slow, except while a probe of one group shows that the
    // lane is still slow.
    assert!(fleet.p99_ns(7 * SECOND - 100 * MS, 7 * SECOND) <= 2 * p99_ns);
    assert!(fleet.p99_ns(6 * SECOND + 500 * MS, 30 * SECOND) <= 2 * p99_ns);
    // Each group of the lane left and returned; half of the groups moved with each failed probe.
    let of_lane = |placed: &BTreeMap<GroupIndex, LaneId>| placed.values().filter(|lane| **lane == 2).count();
    let at_home = of_lane(&home);
    assert!(of_lane(&fleet.placed) >= at_home);
    assert!(fleet.moves - moves <= 6 * at_home, "{} moves of {at_home} groups", fleet.moves - moves);
}

/// The lane's first batch while it is slow is larger than all earlier ones, so no lane has shown the time of such a
/// batch.
#[test]
fn a_lane_whose_first_large_batch_is_slow_does_not_become_the_measure_of_its_class() {
    let factor = |lane, at_ns: i64| if lane == 2 && at_ns >= 5 * SECOND - 1 { 12 } else { 1 };
    let mut fleet = Fleet::start(factor);
    fleet.run_to(5 * SECOND);
    let of_lane = fleet.placed.iter().filter(|(_, lane)| **lane == 2);
    let groups = of_lane.map(|(group, _)| GroupArrival { group: *group, rows: 20, bytes: 800 }).collect();
    let next_offset = 2 * 5 * SECOND / MS - 1;
    fleet.at(5 * SECOND - 1, Input::Arrived(Arrived { partition: 0, next_offset, groups }));
    fleet.run_to(7 * SECOND);
    assert_eq!(fleet.reasons(), [BreakerReason::Slow]);
}

#[test]
fn where_all_lanes_become_slow_together_none_is_slow() {
    let mut fleet = Fleet::start(|_, at_ns| if at_ns > 5 * SECOND { 10 } else { 1 });
    fleet.run_to(20 * SECOND);
    assert!(fleet.breakers.is_empty(), "{:?}", fleet.breakers);
}

/// A busy machine delays one lane after the other: in each second, each lane for 600 times the time of a batch.
#[test]
fn where_the_whole_machine_is_slow_no_breaker_opens() {
    let put_off = |lane: LaneId, at_ns: i64| {
        let begin_ns = i64::from(lane) * 250 * MS;
        if (begin_ns..begin_ns + 50 * MS).contains(&(at_ns % SECOND)) { 600 } else { 1 }
    };
    let mut fleet = Fleet::start(put_off);
    fleet.every_ns = 50 * MS;
    fleet.run_to(47 * SECOND);
    assert!(!fleet.reasons().contains(&BreakerReason::Slow));
}

#[test]
fn a_lane_that_is_slow_for_a_moment_stays() {
    let factor = |lane, at_ns: i64| if lane == 1 && at_ns % SECOND < 150 * MS { 10 } else { 1 };
    let mut fleet = Fleet::start(factor);
    fleet.run_to(20 * SECOND);
    assert!(fleet.breakers.is_empty(), "{:?}", fleet.breakers);
}

#[test]
fn a_heavy_lane_that_is_tried_gets_half_of_its_share() {
    const HEAVY: i32 = 1_000_000;
    let mut scheduler = Scheduler::new();
    let breakers = BreakerConfig {
        losses_max: 1,
        window_ns: SECOND,
        slow_percent: 0,
        slow_ns: 0,
        probe_ns: 1_000,
        probe_ns_max: 1_000,
        probes: 1,
        headroom_c: 0,
        memory_free_percent: 0,
    };
    let config = SchedulerConfig { breakers: Some(breakers), load_factor_percent: 10_000, ..config() };
    let lost = Input::LaneLost(LaneLost { lane: 1, reason: "gone".into(), kept: true });
    let ready = Input::LaneReady(LaneReady { lane: 1 });
    let inputs = [(0, started(config, &[1, HEAVY])), (1, assigned(0, 2_000)), (2, lost), (3, ready)];
    let mut decisions = Vec::new();
    for (at_ns, input) in inputs {
        scheduler.step(at_ns, &input, &mut decisions).expect("good input");
    }
    decisions.clear();
    let mut at_ns = 2_000;
    scheduler.step(at_ns, &Input::Woke(Woke {}), &mut decisions).expect("good input");
    assert!(matches!(&decisions[0], Decision::Breaker(breaker) if breaker.state == BreakerState::HalfOpen));
    while decisions
        .iter()
        .any(|decision| matches!(decision, Decision::WakeAt(wake) if wake.at_ns == at_ns + 1))
    {
        at_ns += 1;
        decisions.retain(|decision| matches!(decision, Decision::Release(_)));
        scheduler.step(at_ns, &Input::Woke(Woke {}), &mut decisions).expect("good input");
    }
    let released: Vec<Release> = decisions
        .drain(..)
        .filter_map(|decision| match decision {
            Decision::Release(release) => Some(release),
            _ => None,
        })
        .collect();
    for Release { partition, group, lane, epoch, .. } in released {
        let released = Input::Released(Released { partition, group, lane, epoch });
        scheduler.step(at_ns, &released, &mut decisions).expect("good input");
    }
    let on_it =
        decisions.iter().filter(|decision| matches!(decision, Decision::Place(place) if place.lane == 1));
    let groups = on_it.count();
    assert!((900..=1_000).contains(&groups), "{groups} of 2,000 groups");
}
