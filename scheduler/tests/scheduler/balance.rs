//! Balancing by measured load, with lanes that work at fixed speeds.

use std::collections::VecDeque;

use warptape_events::journal::*;
use warptape_scheduler::{RULES, Scheduler};

use crate::draws::Draws;
use crate::script::{assigned, config};

const WINDOW_NS: i64 = 250_000_000;
const TICK_NS: i64 = 1_000_000;
const S: i64 = 1_000_000_000;
const GROUPS: i32 = 32;

/// Speed of a lane: its time for a batch, plus its time for each row.
#[derive(Clone, Copy)]
struct Speed {
    base_ns: i64,
    row_ns: i64,
}

/// Work item of a lane.
#[derive(Clone, Copy)]
enum Job {
    Batch { batch: i64, rows: i64 },
    Release(Released),
}

/// Time of a lane for giving back a group.
const RELEASE_NS: i64 = 200_000;

/// A scheduler in virtual time, with arrivals every millisecond.
struct World {
    scheduler: Scheduler,
    at_ns: i64,
    next_offset: i64,
    speeds: Vec<Speed>,
    /// Present factor of each lane's service times.
    slowed: Vec<i64>,
    /// Variation of the service times of batches, in percent.
    noise_percent: i64,
    draws: Draws,
    /// Work of each lane in order. Below: begin and end of the first item.
    work: Vec<VecDeque<Job>>,
    begun_ns: Vec<i64>,
    done_ns: Vec<i64>,
    moves: Vec<Release>,
    /// Rows of each group per second.
    rates: Vec<i64>,
}

impl World {
    fn new(policy: &str, speeds: &[Speed], lanes: Vec<LaneSpec>) -> Self {
        let config = SchedulerConfig {
            placement_policy: policy.into(),
            balance_interval_ns: WINDOW_NS,
            lane_credit_rows: 1 << 20,
            batch_rows_max: 1 << 16,
            lane_credit_bytes: 1 << 40,
            load_factor_percent: 125,
            high_water_rows: 1 << 30,
            ..config()
        };
        let mut world = Self {
            scheduler: Scheduler::new(),
            at_ns: 0,
            next_offset: 0,
            speeds: speeds.into(),
            slowed: vec![1; speeds.len()],
            noise_percent: 0,
            draws: Draws::new(5),
            work: vec![VecDeque::new(); speeds.len()],
            begun_ns: vec![0; speeds.len()],
            done_ns: vec![0; speeds.len()],
            moves: Vec::new(),
            rates: vec![100_000; GROUPS as usize],
        };
        world.step(Input::Started(Box::new(Started {
            node: "node".into(),
            software: "test".into(),
            stage_config: "{}".into(),
            scheduler: config,
            lanes,
            autoscale: None,
            shadow: None,
            rules: RULES,
        })));
        world.step(assigned(0, GROUPS));
        world
    }

    fn alike(policy: &str, lanes: i32) -> Self {
        let speeds = vec![Speed { base_ns: 20_000, row_ns: 500 }; lanes as usize];
        Self::new(policy, &speeds, (0..lanes).map(|lane| LaneSpec::new(lane, "cpu:0", 1)).collect())
    }

    fn step(&mut self, input: Input) {
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, &input, &mut decisions).expect("good input");
        for decision in decisions {
            match decision {
                Decision::Dispatch(Dispatch { lane, batch, rows, .. }) => {
                    self.give(lane, Job::Batch { batch, rows });
                }
                Decision::Release(release) => {
                    let Release { partition, group, lane, epoch, .. } = release;
                    let released = Released { partition, group, lane, epoch };
                    self.give(lane, Job::Release(released));
                    self.moves.push(release);
                }
                _ => (),
            }
        }
    }

    fn give(&mut self, lane: LaneId, job: Job) {
        self.work[lane as usize].push_back(job);
        if self.work[lane as usize].len() == 1 {
            self.begin(lane);
        }
    }

    /// Present time of a lane for a batch.
    fn service_ns(&mut self, lane: LaneId, rows: i64) -> i64 {
        let Speed { base_ns, row_ns } = self.speeds[lane as usize];
        let noise = 100 + self.draws.range(-self.noise_percent, self.noise_percent);
        (base_ns + row_ns * rows) * self.slowed[lane as usize] * noise / 100
    }

    /// Begins the first work item of a lane.
    fn begin(&mut self, lane: LaneId) {
        let index = lane as usize;
        let took_ns = match self.work[index].front() {
            None => return,
            Some(&Job::Batch { rows, .. }) => self.service_ns(lane, rows),
            Some(Job::Release(_)) => RELEASE_NS,
        };
        (self.begun_ns[index], self.done_ns[index]) = (self.at_ns, self.at_ns + took_ns);
    }

    /// Simulates all events until a time, in order.
    fn until(&mut self, end_ns: i64) {
        loop {
            let lanes = (0..self.work.len()).filter(|&lane| !self.work[lane].is_empty());
            let first = lanes.map(|lane| (self.done_ns[lane], lane)).min();
            let Some((done_ns, index)) = first.filter(|(done_ns, _)| *done_ns <= end_ns) else { break };
            self.at_ns = done_ns;
            let (lane, service_ns) = (index as LaneId, done_ns - self.begun_ns[index]);
            let job = self.work[index].pop_front().expect("it has work");
            self.begin(lane);
            self.step(match job {
                Job::Batch { batch, .. } => {
                    Input::Completed(Completed { lane, batch, service_ns, sample: None })
                }
                Job::Release(released) => Input::Released(released),
            });
        }
        self.at_ns = end_ns;
    }

    /// Runs for some seconds, with arrivals that vary by a percentage.
    fn run(&mut self, seconds: i64, arrivals_vary_percent: i64) {
        for _ in 0..seconds * (S / TICK_NS) {
            self.until(self.at_ns + TICK_NS);
            let mut groups = Vec::new();
            for (group, rate) in (0..).zip(self.rates.clone()) {
                let vary = 100 + self.draws.range(-arrivals_vary_percent, arrivals_vary_percent);
                let rows = rate * vary / 100 * TICK_NS / S;
                if rows > 0 {
                    groups.push(GroupArrival { group, rows, bytes: rows });
                }
            }
            self.next_offset += 1;
            self.step(Input::Arrived(Arrived { partition: 0, next_offset: self.next_offset, groups }));
        }
        self.scheduler.audit();
    }

    fn groups(&self) -> Vec<usize> {
        let mut groups = vec![0; self.work.len()];
        // Groups that are moving have no lane.
        self.scheduler
            .placements()
            .filter_map(|placement| placement.lane)
            .for_each(|lane| groups[lane as usize] += 1);
        groups
    }

    /// Rows per second by lane.
    fn loads(&self) -> Vec<i64> {
        let mut loads = vec![0; self.work.len()];
        for placement in self.scheduler.placements() {
            loads[placement.lane.expect("all are placed") as usize] += self.rates[placement.group as usize];
        }
        loads
    }
}

#[test]
fn groups_of_unlike_load_are_spread_until_lanes_have_alike_much_to_do() {
    let mut world = World::alike("balanced", 4);
    world.rates = (0..GROUPS).map(|group| if group % 8 == 0 { 400_000 } else { 40_000 }).collect();
    world.run(10, 10);
    let (first, moves) = (world.loads(), world.moves.len());
    let (least, most) = (*first.iter().min().unwrap(), *first.iter().max().unwrap());
    assert!(most * 3 <= least * 4, "{first:?} after {moves} moves");
    assert!(moves <= 32, "{moves} moves");
    world.run(30, 10);
    let late = world.moves.len() - moves;
    assert!(late <= 2, "{late} moves in half a minute of a steady load");
    for release in &world.moves {
        let imbalance = release.imbalance.expect("a move says why");
        assert!(imbalance.gain_ns > 2 * imbalance.cost_ns && imbalance.windows == 3, "{release:?}");
    }
}

#[test]
fn noise_moves_nothing_once_lanes_are_alike() {
    let mut world = World::alike("balanced", 4);
    world.run(10, 50);
    let moves = world.moves.len();
    world.noise_percent = 80;
    world.run(60, 90);
    let flaps = world.moves.len() - moves;
    assert!(flaps <= 4, "{flaps} moves in a minute of noise");
}

#[test]
fn a_lane_that_is_slow_for_ten_seconds_loses_groups_and_gets_them_back() {
    let mut world = World::alike("balanced", 4);
    world.run(5, 10);
    let before = world.groups();
    assert!(before.iter().all(|groups| (7..=9).contains(groups)), "{before:?}");
    world.slowed[1] = 10;
    world.run(2, 10);
    let (slow, left) = (world.groups(), world.moves.len());
    assert!(slow[1] <= 4, "it keeps what it can do: {slow:?}");
    world.run(8, 10);
    let during = world.moves.len() - left;
    assert!(during <= 8, "{during} moves while it stays slow");
    world.slowed[1] = 1;
    world.run(5, 10);
    let back = world.groups();
    assert!(back.iter().all(|groups| (6..=10).contains(groups)), "{back:?}");
    let moves = world.moves.len();
    world.run(30, 10);
    assert_eq!(world.moves.len(), moves, "and then nothing moves");
    let of_group = |group| world.moves.iter().filter(|release| release.group == group).count();
    let most = (0..GROUPS).map(of_group).max().unwrap();
    assert!(most <= 4, "a group moved {most} times");
}

#[test]
fn lanes_of_unlike_classes_get_what_they_can_do() {
    let classes = ["fast", "slow"];
    let speeds = [Speed { base_ns: 20_000, row_ns: 200 }, Speed { base_ns: 50_000, row_ns: 800 }];
    let lane =
        |lane: i32| LaneSpec { class: classes[lane as usize % 2].into(), ..LaneSpec::new(lane, "cpu:0", 1) };
    let speeds: Vec<_> = (0..4).map(|lane| speeds[lane % 2]).collect();
    let mut world = World::new("balanced", &speeds, (0..4).map(lane).collect());
    world.run(10, 10);
    let groups = world.groups();
    assert!(groups[0] + groups[2] >= 24, "{groups:?}");
    assert!(groups.iter().all(|groups| *groups > 0), "{groups:?}");
    let moves = world.moves.len();
    world.run(20, 10);
    assert_eq!(world.moves.len(), moves, "nothing moves once each has what it can do");
}

#[test]
fn moves_of_a_window_are_bounded() {
    let mut world = World::alike("balanced", 4);
    world.run(5, 10);
    world.slowed[2] = 10;
    world.run(5, 10);
    let mut windows = std::collections::BTreeMap::<i64, i32>::new();
    assert!(!world.moves.is_empty());
    for release in &world.moves {
        *windows.entry(release.imbalance.expect("it says why").from_load_ns).or_default() += 1;
    }
    assert!(windows.values().all(|moves| *moves <= 4), "{windows:?}");
}

#[test]
fn nothing_moves_without_windows_or_under_another_policy() {
    for policy in ["rendezvous", "balanced"] {
        let mut world = World::alike(policy, 4);
        if policy == "balanced" {
            world.moves.clear();
            let choose = ChoosePolicy { of: "placement".into(), name: "rendezvous".into() };
            world.control(ControlCommand::ChoosePolicy(choose));
        }
        world.slowed[1] = 10;
        world.run(5, 10);
        assert_eq!(world.moves.len(), 0, "{policy}");
    }
}

#[test]
fn the_policy_is_switched_while_ticks_flow() {
    let mut world = World::alike("rendezvous", 4);
    world.rates = (0..GROUPS).map(|group| if group % 8 == 0 { 400_000 } else { 40_000 }).collect();
    world.run(3, 10);
    assert!(world.moves.is_empty());
    let choose =
        |name: &str| ControlCommand::ChoosePolicy(ChoosePolicy { of: "placement".into(), name: name.into() });
    world.control(choose("balanced@1"));
    world.run(5, 10);
    let loads = world.loads();
    assert!(loads.iter().max().unwrap() * 3 <= loads.iter().min().unwrap() * 4, "{loads:?}");
    let moves = world.moves.len();
    world.control(choose("rendezvous"));
    world.slowed[1] = 10;
    world.run(5, 10);
    assert_eq!(world.moves.len(), moves);
}

impl World {
    fn control(&mut self, command: ControlCommand) {
        let deadline_ns = self.at_ns;
        let (id, by) = ("c".to_owned(), "someone".to_owned());
        self.step(Input::Control(Control { offset: 0, id, by, deadline_ns, command }));
        self.scheduler.audit();
    }
}

#[test]
fn of_lanes_that_are_as_good_a_group_goes_to_the_closest() {
    // Lanes 0 and 3 share a NUMA node, lanes 0 and 2 a link; lane 0 is drained.
    let mut lanes: Vec<_> = (0..4).map(|lane| LaneSpec::new(lane, format!("cuda:{lane}"), 1)).collect();
    lanes[0].peers = vec![Peer { lane: 2, link: Link::Nvlink }];
    (lanes[0].numa_node, lanes[3].numa_node) = (Some(0), Some(0));
    let speeds = [Speed { base_ns: 20_000, row_ns: 10 }; 4];
    let mut world = World::new("balanced", &speeds, lanes);
    world.run(2, 0);
    world.control(ControlCommand::DrainLane(DrainLane { lane: 0 }));
    let first = world.moves.first().expect("its groups leave").group;
    world.until(world.at_ns + S);
    let placed = world.scheduler.placements().find(|placement| placement.group == first).unwrap();
    assert_eq!(placed.lane, Some(2));
}
