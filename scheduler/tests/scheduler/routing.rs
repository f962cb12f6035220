//! Groups stop moving under a steady load, on lanes of fixed speeds.

use warptape_events::journal::*;
use warptape_scheduler::Scheduler;

use crate::script::{assigned, config, started};

const GROUPS: i32 = 8;
const LOOK_NS: i64 = 1_000_000_000;
/// Weights of the lanes: 0 and 2 are on the processor, 1 is on a device.
const WEIGHTS: [i32; 3] = [0, 1, 0];
const HOST: ServiceModel = ServiceModel { base_ns: 1_000, row_ns: 100 };
const DEVICE: ServiceModel = ServiceModel { base_ns: 100_000, row_ns: 10 };

/// Time of a lane for a batch: fixed part, and time per row.
#[derive(Clone, Copy)]
struct ServiceModel {
    base_ns: i64,
    row_ns: i64,
}

impl ServiceModel {
    fn service_ns(self, rows: i64) -> i64 {
        self.base_ns + self.row_ns * rows
    }
}

/// A scheduler whose lanes finish their work at once.
struct World {
    scheduler: Scheduler,
    at_ns: i64,
    next_offset: i64,
    /// Service times of host lanes, as a multiple of their measured times.
    host_slowed: i64,
    /// Number of groups that were told to move, by their new kind of lanes.
    moves: [usize; 2],
}

impl World {
    fn new() -> Self {
        let config = SchedulerConfig {
            route_interval_ns: LOOK_NS,
            lane_credit_rows: 1 << 20,
            batch_rows_max: 1 << 16,
            lane_credit_bytes: 1 << 40,
            load_factor_percent: 200,
            high_water_rows: 1 << 30,
            ..config()
        };
        let mut world =
            Self { scheduler: Scheduler::new(), at_ns: 0, next_offset: 0, host_slowed: 1, moves: [0; 2] };
        world.step(started(config, &WEIGHTS));
        for lane in [0, 1] {
            let point = |rows| ServicePoint { rows, service_ns: world.service_ns(lane, rows) };
            let points = [2, 32, 512, 8_192].map(point).into();
            world.step(Input::Measured(Measured { lane, points }));
        }
        world.step(assigned(0, GROUPS));
        world
    }

    fn service_ns(&self, lane: LaneId, rows: i64) -> i64 {
        match lane {
            1 => DEVICE.service_ns(rows),
            _ => HOST.service_ns(rows) * self.host_slowed,
        }
    }

    fn step(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let mut decisions = Vec::new();
            self.scheduler.step(self.at_ns, &input, &mut decisions).expect("good input");
            self.scheduler.audit();
            for decision in decisions {
                match decision {
                    Decision::Dispatch(Dispatch { lane, batch, rows, .. }) => {
                        let service_ns = self.service_ns(lane, rows);
                        inputs.push(Input::Completed(Completed { lane, batch, service_ns, sample: None }));
                    }
                    Decision::Release(Release { partition, group, lane, epoch, route, .. }) => {
                        let route = route.expect("nothing else moves groups");
                        self.moves[route.kind as usize] += 1;
                        inputs.push(Input::Released(Released { partition, group, lane, epoch }));
                    }
                    _ => (),
                }
            }
        }
    }

    /// Runs for `looks` checks of routing, with a hundred arrivals of `rows` rows between two checks.
    fn load(&mut self, looks: i64, rows: i64) {
        for _ in 0..100 * looks {
            self.at_ns += LOOK_NS / 100;
            self.next_offset += 1;
            let arrival = |group| GroupArrival { group, rows: rows / i64::from(GROUPS), bytes: rows };
            let groups = (0..GROUPS).map(arrival).collect();
            self.step(Input::Arrived(Arrived { partition: 0, next_offset: self.next_offset, groups }));
        }
    }

    /// Groups on the processor.
    fn on_host(&self) -> usize {
        self.scheduler.placements().filter(|placement| placement.lane.is_some_and(|lane| lane != 1)).count()
    }
}

#[test]
fn groups_follow_the_load_and_rest_while_it_does() {
    let mut world = World::new();
    assert_eq!(world.on_host(), 0, "lanes that stand by have nothing at first");
    world.load(6, 64);
    assert_eq!((world.on_host(), world.moves), (8, [8, 0]), "small arrivals are the processor's");
    world.load(60, 64);
    assert_eq!(world.moves, [8, 0], "a steady load moves nothing");
    world.load(10, 32_000);
    assert_eq!((world.on_host(), world.moves), (0, [8, 8]), "large ones are the device's");
    world.load(60, 32_000);
    assert_eq!(world.moves, [8, 8]);
    // For one arrival of 2,048 rows, two lanes take 103 µs each and the device 120 µs, which is not worth a move.
    world.load(20, 2_048);
    assert_eq!(world.moves, [8, 8], "what is about as good stays");
    world.load(20, 256);
    assert_eq!((world.on_host(), world.moves), (8, [16, 8]));
}

#[test]
fn lanes_that_were_slow_for_a_while_are_tried_again() {
    let mut world = World::new();
    world.load(7, 1_600);
    assert_eq!((world.on_host(), world.moves), (8, [8, 0]));
    world.host_slowed = 20;
    world.load(7, 1_600);
    assert_eq!((world.on_host(), world.moves), (0, [8, 8]), "the processor has something else to do");
    world.host_slowed = 1;
    world.load(40, 1_600);
    assert_eq!((world.on_host(), world.moves), (8, [16, 8]));
}
