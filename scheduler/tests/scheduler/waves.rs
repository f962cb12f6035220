//! Slices in waves: few slices on a wide lane, a bounded time for each, and the decisions of narrow lanes.

use warptape_events::journal::*;
use warptape_scheduler::{CheckpointError, RULES, Scheduler};

use crate::script::{FIRST_RULES, assigned, config, started_by, task};

/// Width of a GPU with 132 multiprocessors of 16 blocks.
const WIDTH: i32 = 132 * 16;
/// Units of 1,000,000 paths, at 512 paths each.
const MILLION_PATHS: i64 = 1_954;
/// Target time of a slice, as configured by default.
const SLICE_NS: i64 = 500_000;

fn start(rules: i32, widths: &[i32]) -> Input {
    let mut config = config();
    config.risk.slice_ns = SLICE_NS;
    let Input::Started(mut started) = started_by(rules, config, &vec![1; widths.len()]) else {
        unreachable!()
    };
    for (lane, &width) in started.lanes.iter_mut().zip(widths) {
        (lane.device, lane.width) = (format!("cuda:{}", lane.lane), width);
    }
    Input::Started(started)
}

/// A simulated lane, which takes a time for each wave and one for each slice.
struct Lane {
    scheduler: Scheduler,
    at_ns: i64,
    wave: i64,
    wave_ns: i64,
    slice_ns: i64,
    /// The running slice and its end.
    running: Option<(RunSlice, i64)>,
    /// Units and duration of each slice.
    slices: Vec<(i64, i64)>,
    /// Waits of batches of ticks for a running slice.
    waits: Vec<i64>,
}

impl Lane {
    fn new(width: i32, wave_ns: i64, slice_ns: i64) -> Self {
        let (scheduler, wave) = (Scheduler::new(), i64::from(width));
        let (slices, waits) = (Vec::new(), Vec::new());
        let mut lane = Self { scheduler, at_ns: 0, wave, wave_ns, slice_ns, running: None, slices, waits };
        lane.step(&start(RULES, &[width]));
        lane.step(&assigned(0, 1));
        lane
    }

    fn step(&mut self, input: &Input) {
        let mut decisions = Vec::new();
        self.scheduler.step(self.at_ns, input, &mut decisions).expect("good input");
        self.scheduler.audit();
        for decision in decisions {
            match decision {
                Decision::RunSlice(slice) => {
                    let units = slice.to - slice.from;
                    let takes_ns = self.slice_ns + (units + self.wave - 1) / self.wave * self.wave_ns;
                    self.slices.push((units, takes_ns));
                    assert!(self.running.replace((slice, self.at_ns + takes_ns)).is_none());
                }
                Decision::Dispatch(batch) => {
                    // Blocks of the batch begin once the blocks of the slice end.
                    let free_ns = self.running.as_ref().map_or(self.at_ns, |(_, end_ns)| *end_ns);
                    self.waits.push(free_ns - self.at_ns);
                    let (lane, batch, service_ns, sample) = (0, batch.batch, 1_000, None);
                    self.step(&Input::Completed(Completed { lane, batch, service_ns, sample }));
                }
                _ => {}
            }
        }
    }

    /// Brings ticks at each of these times after the start of a slice, for as long as there are slices.
    fn finish(&mut self, ticks_after_ns: &[i64]) {
        let mut next_offset = self.waits.len() as i64;
        for number in 0.. {
            let Some((_, end_ns)) = self.running.as_ref() else { return };
            let (begun_ns, end_ns) = (self.at_ns, *end_ns);
            if let Some(after_ns) = ticks_after_ns.get(number % ticks_after_ns.len().max(1)) {
                self.at_ns = end_ns.min(begun_ns + after_ns);
                next_offset += 1;
                let groups = vec![GroupArrival { group: 0, rows: 1, bytes: 1 }];
                self.step(&Input::Arrived(Arrived { partition: 0, next_offset, groups }));
            }
            self.at_ns = end_ns;
            let (slice, _) = self.running.take().expect("it still runs");
            let service_ns = end_ns - begun_ns;
            self.step(&Input::SliceDone(SliceDone { lane: 0, slice: slice.slice, service_ns }));
        }
    }

    /// Runs a task, and returns the units of its slices.
    fn run(&mut self, number: TaskId, units: i64, unit_width: u16) -> Vec<i64> {
        let before = self.slices.len();
        let (unit_cost, slice_units_max) = (252, units);
        let arrived = TaskArrived { units, unit_width, unit_cost, slice_units_max, ..task(number) };
        self.step(&Input::TaskArrived(arrived));
        self.finish(&[]);
        self.slices[before..].iter().map(|(units, _)| *units).collect()
    }
}

#[test]
fn a_million_paths_take_one_slice_even_if_nothing_is_known() {
    let mut lane = Lane::new(WIDTH, 700_000, 10_000);
    assert_eq!(lane.run(0, MILLION_PATHS, 1), [MILLION_PATHS]);
    assert_eq!(lane.run(1, MILLION_PATHS, 1), [MILLION_PATHS]);
    let mut narrow = Lane::new(WIDTH / 16, 700_000, 10_000);
    let slices = narrow.run(0, MILLION_PATHS, 1);
    assert!(slices.len() == 15 && slices.iter().sum::<i64>() == MILLION_PATHS, "{slices:?}");
}

#[test]
fn slices_of_short_waves_grow_to_the_wanted_time_and_partly_filled_waves_do_not_spoil_the_rate() {
    let mut lane = Lane::new(100, 90_000, 0);
    // One unit tells the time of a wave, so the next slices have as many waves as fit, but grow twofold at most.
    assert_eq!(lane.run(0, 1, 1), [1]);
    assert_eq!(lane.run(1, 1_750, 1), [200, 400, 500, 500, 150]);
    // A hundred tasks of one unit each are slow by their units, but not by their waves.
    assert!((2..102).all(|number| lane.run(number, 1, 1) == [1]));
    assert_eq!(lane.run(102, 1_000, 1), [500, 500]);
    assert!(lane.slices.iter().all(|(_, takes_ns)| *takes_ns <= SLICE_NS), "{:?}", lane.slices);
}

#[test]
fn a_unit_may_take_many_blocks_or_run_alone() {
    let slices = |wave, units, unit_width| {
        let mut lane = Lane::new(100, 400_000, 0);
        lane.wave = wave;
        lane.run(0, units, unit_width)
    };
    assert_eq!(slices(33, 70, 3), [33, 33, 4]);
    assert_eq!(slices(1, 2, 101), [1, 1], "a unit fills more than the device");
    assert_eq!(slices(1, 3, 0), [1, 1, 1], "units run one after the other");
}

#[test]
fn ticks_wait_for_one_wave_or_for_the_time_of_a_slice() {
    let many = 400 * i64::from(WIDTH);
    for (wave_ns, slice_ns) in [(700_000, 20_000), (150_000, 20_000), (60_000, 5_000), (3_000, 10_000)] {
        // A task smaller than a wave tells least about later slices.
        for tasks in [[many, 7, MILLION_PATHS], [7, many, MILLION_PATHS]] {
            let mut lane = Lane::new(WIDTH, wave_ns, slice_ns);
            for (number, units) in (0..).zip(tasks) {
                let (unit_width, unit_cost, slice_units_max) = (1, 252, units);
                let arrived = TaskArrived { units, slice_units_max, unit_width, unit_cost, ..task(number) };
                lane.step(&Input::TaskArrived(arrived));
                lane.finish(&[1, 1_000, 30_000, 400_000]);
            }
            let longest_ns = *lane.waits.iter().max().expect("ticks came");
            let bound_ns = SLICE_NS.max(slice_ns + wave_ns);
            assert!(longest_ns <= bound_ns, "a batch waits {longest_ns} ns for waves of {wave_ns} ns");
            assert!(longest_ns > bound_ns / 4, "the waits of ticks are not measured: {longest_ns} ns");
        }
    }
}

/// Decisions about some tasks on lanes of these widths, under these rules.
fn decided(rules: i32, widths: &[i32], unit_width: u16) -> Vec<Decision> {
    let (mut scheduler, mut decisions) = (Scheduler::new(), Vec::new());
    let mut step = |at_ns, input: &Input| -> Vec<Decision> {
        let first = decisions.len();
        scheduler.step(at_ns, input, &mut decisions).expect("good input");
        scheduler.audit();
        decisions[first..].to_vec()
    };
    step(0, &start(rules, widths));
    step(0, &assigned(0, 1));
    let mut at_ns = 0;
    for number in 0..20 {
        let units = 1 + 37 * number % 200;
        let arrived = TaskArrived { units, unit_width, slice_units_max: 1_000, ..task(number) };
        let mut running = step(at_ns, &Input::TaskArrived(arrived));
        while let Some(Decision::RunSlice(slice)) = running
            .iter()
            .position(|decision| matches!(decision, Decision::RunSlice(_)))
            .map(|at| running.remove(at))
        {
            let service_ns = 7_000 * (slice.to - slice.from) + 1_000;
            at_ns += service_ns;
            let done = SliceDone { lane: slice.lane, slice: slice.slice, service_ns };
            running.extend(step(at_ns, &Input::SliceDone(done)));
        }
    }
    decisions
}

#[test]
fn lanes_of_width_one_decide_as_before_and_earlier_rules_know_no_widths() {
    let before = decided(FIRST_RULES, &[1, 1], 0);
    assert_eq!(decided(RULES, &[1, 1], 0), before);
    assert_eq!(decided(RULES, &[1, 1], 1), before, "a wave is one unit");
    assert_eq!(decided(RULES, &[WIDTH, WIDTH], 0), before, "units run one after the other");
    assert_eq!(decided(FIRST_RULES, &[WIDTH, WIDTH], 1), before, "a journal of earlier rules");
    assert_ne!(decided(RULES, &[WIDTH, WIDTH], 1), before);
}

#[test]
fn a_checkpoint_has_the_widths() {
    let mut scheduler = Scheduler::new();
    let waiting = TaskArrived { units: 9_000, unit_width: 2, slice_units_max: 9_000, ..task(0) };
    for input in [start(RULES, &[8, 1]), assigned(0, 1), Input::TaskArrived(waiting)] {
        scheduler.step(0, &input, &mut Vec::new()).expect("good input");
    }
    let bytes = scheduler.checkpoint();
    assert_eq!(bytes[0], 6);
    let mut read = Scheduler::from_checkpoint(&bytes).expect("it was just written");
    read.audit();
    assert_eq!((read.state_hash(), read.checkpoint()), (scheduler.state_hash(), bytes.clone()));
    let (Input::Started(same), Input::Started(other)) = (start(RULES, &[8, 1]), start(RULES, &[8, 8])) else {
        unreachable!()
    };
    assert_eq!((read.contradiction(&same), read.contradiction(&other)), (None, Some("lanes")));
    let done = Input::SliceDone(SliceDone { lane: 0, slice: 0, service_ns: 100 });
    let [then, now] = [&mut scheduler, &mut read].map(|scheduler| {
        let mut decisions = Vec::new();
        scheduler.step(100, &done, &mut decisions).expect("the slice runs");
        decisions
    });
    assert!(matches!(&now[..], [Decision::RunSlice(slice)] if slice.to - slice.from == 8), "{now:?}");
    assert_eq!(then, now);
    for length in 0..bytes.len() {
        let cut = Scheduler::from_checkpoint(&bytes[..length]);
        assert!(matches!(cut, Err(CheckpointError::Damaged(_))), "{length} bytes of {}", bytes.len());
    }
}
