//! Bounded steps: no entry of the journal exceeds the log's limit, however many lanes, groups and tasks there are.

use warptape_events::JournalWriter;
use warptape_events::journal::*;
use warptape_scheduler::{STEP_BYTES_MAX, Scheduler, in_steps};

use crate::script::{assigned, config, started};

/// Most bytes of an entry.
const ENTRY_BYTES_MAX: usize = 512 << 10;
/// Number of the first partition; its encoding takes more than one byte.
const FIRST: PartitionId = 1_000;
/// A scheduler that gets its wakes on time, and the size of its largest entry.
struct Measured {
    scheduler: Scheduler,
    writer: JournalWriter,
    at_ns: i64,
    wake_ns: Option<i64>,
    largest: usize,
}

impl Measured {
    fn start(step_bytes_max: i64, lanes: usize) -> Self {
        let mut config = SchedulerConfig {
            lane_credit_rows: 1 << 40,
            lane_credit_bytes: 1 << 50,
            batch_rows_max: 1 << 40,
            high_water_rows: 1 << 40,
            row_deadline_ns: 86_400_000_000_000,
            risk: RiskConfig { tasks_max: 1 << 20, ..RiskConfig::default() },
            ..config()
        };
        if step_bytes_max > 0 {
            config.placement_policy = in_steps(&config.placement_policy, step_bytes_max);
        }
        let (scheduler, writer) = (Scheduler::new(), JournalWriter::new());
        let mut measured = Self { scheduler, writer, at_ns: 1 << 60, wake_ns: None, largest: 0 };
        measured.step(&started(config, &vec![1; lanes]));
        measured
    }

    /// Assigns partitions; returns the number of placed groups.
    fn assign(&mut self, groups: &[i32]) -> usize {
        let mut placed = 0;
        for (partition, &groups) in (FIRST..).zip(groups) {
            let decisions = self.all(&assigned(partition, groups));
            placed += decisions.iter().filter(|one| matches!(one, Decision::Place(_))).count();
        }
        placed
    }

    fn step(&mut self, input: &Input) -> Vec<Decision> {
        let hash = self.scheduler.state_hash();
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, input, &mut decisions).expect("good input");
        let mut entry = Vec::new();
        self.writer.append(self.at_ns, input, &decisions, hash, &mut entry);
        self.largest = self.largest.max(entry.len());
        self.wake_ns = self.wake_ns.filter(|&wake_ns| wake_ns > self.at_ns);
        for decision in &decisions {
            if let Decision::WakeAt(wake) = decision {
                self.wake_ns = Some(wake.at_ns);
            }
        }
        decisions
    }

    /// Takes a step, and the further steps for which it lacked room.
    fn all(&mut self, input: &Input) -> Vec<Decision> {
        let mut decisions = self.step(input);
        while self.wake_ns == Some(self.at_ns + 1) {
            self.at_ns += 1;
            decisions.extend(self.step(&Input::Woke(Woke {})));
        }
        self.scheduler.audit();
        decisions
    }
}

fn arrivals(partition: i32, groups: i32) -> Input {
    let groups = (0..groups).map(|group| GroupArrival { group, rows: 1 << 22, bytes: 1 << 30 }).collect();
    Input::Arrived(Arrived { partition, next_offset: i64::MAX, groups })
}

fn task(task: i64, deadline_ns: i64) -> Input {
    Input::TaskArrived(TaskArrived {
        task,
        partition: FIRST,
        offset: task,
        request_id: "r".repeat(256),
        tenant: "t".repeat(256),
        class: TaskClass::Batch,
        deadline_ns: Some(deadline_ns),
        rate_key: String::new(),
        first_unit: 0,
        units: 1 << 30,
        unit_cost: 1,
        slice_units_max: 1,
        gang: false,
        as_of: Vec::new(),
        bytes: 1,
        unit_width: 0,
    })
}

/// Checks the size of the largest entry, with bounded steps and without.
fn check(largest_of: impl Fn(i64) -> usize) {
    let largest = largest_of(STEP_BYTES_MAX);
    assert!(largest <= ENTRY_BYTES_MAX, "an entry of {largest} bytes");
    let largest = largest_of(0);
    assert!(largest > ENTRY_BYTES_MAX, "without a bound entries are larger: {largest} bytes");
}

#[test]
fn placements_are_spread_over_steps() {
    check(|step_bytes_max| {
        let mut measured = Measured::start(step_bytes_max, 64);
        assert_eq!(measured.assign(&[4_096, 4_096, 1_808]), 10_000);
        // All lanes but one are lost, one after the other, and their groups are placed on the others.
        for lane in 1..64 {
            measured.all(&Input::LaneLost(LaneLost { lane, reason: "gone".into(), kept: true }));
        }
        for lane in 1..64 {
            measured.all(&Input::LaneReady(LaneReady { lane }));
        }
        measured.largest
    });
}

#[test]
fn takes_from_groups_are_spread_over_steps() {
    const PARTITIONS: usize = 16;
    check(|step_bytes_max| {
        let mut measured = Measured::start(step_bytes_max, 2);
        let groups = [4_096; PARTITIONS];
        assert_eq!(measured.assign(&groups), PARTITIONS * 4_096);
        let mut decisions = Vec::new();
        for (partition, groups) in (FIRST..).zip(groups) {
            decisions.extend(measured.all(&arrivals(partition, groups)));
        }
        decisions.extend(measured.all(&Input::Draining(Draining {})));
        for batch in 0.. {
            let find = |one: &Decision| match one {
                Decision::Dispatch(dispatch) if dispatch.batch == batch => Some(dispatch.lane),
                _ => None,
            };
            let Some(lane) = decisions.iter().find_map(find) else { break };
            let completed = Completed { lane, batch, service_ns: 1, sample: None };
            decisions.extend(measured.all(&Input::Completed(completed)));
        }
        let takes = |one: &Decision| match one {
            Decision::Dispatch(dispatch) => dispatch.takes.len(),
            _ => 0,
        };
        assert_eq!(decisions.iter().map(takes).sum::<usize>(), PARTITIONS * 4_096);
        measured.largest
    });
}

#[test]
fn expiries_are_spread_over_steps() {
    const TASKS: i64 = 40_000;
    check(|step_bytes_max| {
        let mut measured = Measured::start(step_bytes_max, 64);
        measured.assign(&[1]);
        let deadline_ns = measured.at_ns + 1_000_000;
        for number in 0..TASKS {
            measured.step(&task(number, deadline_ns));
        }
        measured.at_ns = deadline_ns;
        let decisions = measured.all(&Input::Woke(Woke {}));
        let expired = decisions.iter().filter(|one| matches!(one, Decision::Expire(_))).count();
        assert_eq!(expired as i64, TASKS);
        measured.largest
    });
}
