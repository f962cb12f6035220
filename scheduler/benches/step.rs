//! Benchmark of one `step` with 64 lanes, all of them busy. The settings are 16 partitions of 16 groups, the same with
//! routes, and 40 partitions of 256 groups under balancing. The last setting has the same 40 partitions, lanes of four
//! classes, and all features of the scheduler. These are routes, balancing, breakers (one opens and closes again),
//! samples of devices, and risk tasks by prices.
//!
//! The load is a closed loop: arrivals of 256 rows over all groups of a partition, and completions that keep the rows
//! in flight level. Criterion gives the mean. The tail comes from a loop of its own that times every step alone and
//! prints p50, p99 and p99.9 (the clock's own cost included). It prints them for one run, and for the least time of
//! each step in several runs, which leaves out interrupts and other programs. Goal: p99.9 below 10 µs.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::float_arithmetic,
    reason = "a benchmark reads the clock; the scheduler does not"
)]

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use warptape_events::journal::*;
use warptape_network::Network;
use warptape_scheduler::{RULES, Scheduler};

const LANES: i32 = 64;
/// Number of groups that get rows in one arrival.
const ARRIVAL_GROUPS: i32 = 16;
const ARRIVAL_ROWS: i64 = 256;
const ROW_BYTES: i64 = 40;
/// Rows that arrive before completions begin: enough to keep every lane busy with a second batch queued.
const ROWS_AHEAD: i64 = 64 * 1_024;
/// Nanoseconds between two steps.
const STEP_NS: i64 = 5_000;
/// Inputs per input about a task, in the setting with all features. Below: inputs per sample of a device.
const TASK_STEPS: u64 = 16;
const SAMPLE_STEPS: u64 = 6_000;
/// Tasks known in the setting with all features.
const TASKS_BESIDE: usize = 1_000;
/// Range of steps in which one lane takes ten times as long.
const SLOW_STEPS: std::ops::Range<u64> = 200_000..400_000;
const SLOW_LANE: LaneId = 6;
/// Tasks known while steps about them are measured.
const TASKS: usize = 9_999;
const STEPS_MEASURED: usize = 1_000_000;
/// Runs of the same steps; the least time of each step counts.
const RUNS: usize = 5;

/// A setting to be measured.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    policy: &'static str,
    /// True if every other lane is on a device of the same speed, and groups are routed.
    routed: bool,
    partitions: i32,
    /// Groups of each partition.
    groups: i32,
    /// True if lanes are of four classes, and breakers, samples and tasks are on.
    everything: bool,
}

const PLAIN: Setting = Setting {
    name: "",
    policy: "rendezvous",
    routed: false,
    partitions: 16,
    groups: ARRIVAL_GROUPS,
    everything: false,
};
const ROUTED: Setting = Setting { name: ", routed", routed: true, ..PLAIN };
const BALANCED: Setting =
    Setting { name: ", balanced", policy: "balanced", partitions: 40, groups: 256, ..PLAIN };

const EVERYTHING: Setting = Setting { name: ", everything", routed: true, everything: true, ..BALANCED };

/// The closed loop around the scheduler: its decisions come back as inputs.
struct Loop {
    setting: Setting,
    scheduler: Scheduler,
    at_ns: i64,
    arrivals: i64,
    /// Rows that have arrived and are not completed.
    rows_open: i64,
    in_flight: VecDeque<(Completed, i64)>,
    released: VecDeque<Released>,
    slices: VecDeque<SliceDone>,
    answers: VecDeque<Priced>,
    steps: u64,
    tasks: TaskId,
    decisions: Vec<Decision>,
    decided: u64,
    placed: u64,
    breakers: u64,
}

fn arrived_task(task: TaskId) -> Input {
    Input::TaskArrived(TaskArrived {
        task,
        partition: 0,
        offset: task,
        request_id: task.to_string(),
        tenant: format!("tenant {}", task % 100),
        class: [TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch][task as usize % 3],
        deadline_ns: Some(i64::MAX / 2 - task % 1_000),
        rate_key: ["key", "other", "third"][task as usize % 7 % 3].into(),
        first_unit: 0,
        units: 20,
        unit_cost: 1,
        bytes: 1_000,
        slice_units_max: 10,
        gang: false,
        as_of: Vec::new(),
        unit_width: 0,
    })
}

/// The breakers of the example configuration.
fn breakers() -> BreakerConfig {
    BreakerConfig {
        losses_max: 3,
        window_ns: 60_000_000_000,
        slow_percent: 500,
        slow_ns: 250_000_000,
        probe_ns: 500_000_000,
        probe_ns_max: 300_000_000_000,
        probes: 8,
        headroom_c: 5,
        memory_free_percent: 5,
    }
}

impl Loop {
    fn start(setting: Setting) -> Self {
        Self::start_with(setting, None)
    }

    /// Starts a loop with shadow policies.
    fn start_with(setting: Setting, shadow: Option<ShadowConfig>) -> Self {
        let Setting { policy, routed, partitions, groups, everything, .. } = setting;
        let risk = RiskConfig {
            policy: "lp-price@1".into(),
            price_interval_ns: 1_000_000_000,
            critical_percent: 25,
            ageing_ns: 1_000_000_000,
            predictor: 1,
            steals: true,
            explore_ppm: 10_000,
            quantum_ns: 20_000_000,
            ..RiskConfig::default()
        };
        let scheduler = SchedulerConfig {
            placement_policy: policy.into(),
            placement_seed: 1,
            load_factor_percent: 125,
            lane_credit_rows: 4_096,
            lane_credit_bytes: 1 << 20,
            lane_batches_max: 2,
            batch_rows_max: 1_024,
            row_deadline_ns: 2_000_000,
            high_water_rows: 32_768,
            low_water_rows: 8_192,
            route_interval_ns: if routed { 1_000_000_000 } else { 0 },
            balance_interval_ns: 250_000_000,
            risk: if everything { risk } else { RiskConfig::default() },
            breakers: everything.then(breakers),
        };
        let lane = |lane| {
            let kind = if routed && lane % 2 == 1 { "cuda" } else { "cpu" };
            let spec = LaneSpec::new(lane, format!("{kind}:{lane}"), 1);
            match everything {
                true => LaneSpec { class: format!("{kind}, kind {}", lane / 2 % 2), ..spec },
                false => spec,
            }
        };
        let lanes = (0..LANES).map(lane).collect();
        let (node, software, stage_config) = (String::new(), String::new(), String::new());
        let mut new = Self {
            setting,
            scheduler: Scheduler::new(),
            at_ns: 1_700_000_000_000_000_000,
            arrivals: 0,
            rows_open: 0,
            in_flight: VecDeque::new(),
            released: VecDeque::new(),
            slices: VecDeque::new(),
            answers: VecDeque::new(),
            steps: 0,
            tasks: 0,
            decisions: Vec::new(),
            decided: 0,
            placed: 0,
            breakers: 0,
        };
        new.step(&Input::Started(Box::new(Started {
            node,
            software,
            stage_config,
            scheduler,
            lanes,
            autoscale: None,
            shadow,
            rules: RULES,
        })));
        for lane in 0..if everything { 4 } else { 2 } {
            let point = |rows| ServicePoint { rows, service_ns: rows * 300 };
            new.step(&Input::Measured(Measured { lane, points: [2, 32, 512].map(point).into() }));
        }
        for partition in 0..partitions {
            let (committed_offset, snapshot_offset) = (0, 0);
            let assigned = PartitionAssigned {
                partition,
                groups,
                committed_offset,
                snapshot_offset,
                ..PartitionAssigned::default()
            };
            new.step(&Input::PartitionAssigned(assigned));
        }
        while new.rows_open < ROWS_AHEAD {
            let input = new.next_arrival();
            new.step(&input);
        }
        new
    }

    fn next_input(&mut self) -> Input {
        if let Some(released) = self.released.pop_front() {
            return Input::Released(released);
        }
        self.steps += 1;
        if let Some(input) = self.next_beside() {
            return input;
        }
        if self.rows_open >= ROWS_AHEAD
            && let Some((completed, rows)) = self.in_flight.pop_front()
        {
            self.rows_open -= rows;
            return Input::Completed(completed);
        }
        self.next_arrival()
    }

    /// Next input that is not about ticks, in the setting with all features.
    fn next_beside(&mut self) -> Option<Input> {
        if !self.setting.everything {
            return None;
        }
        if let Some(answer) = self.answers.pop_front() {
            return Some(Input::Priced(answer));
        }
        if self.steps.is_multiple_of(SAMPLE_STEPS) {
            let lane = (self.steps / SAMPLE_STEPS) as LaneId * 2 % LANES + 1;
            let sample = DeviceSample {
                temperature_c: Some(60 + i64::from(lane) % 32),
                slowdown_c: Some(90),
                memory_used_bytes: Some(60 << 30),
                memory_free_bytes: Some(20 << 30),
                ..DeviceSample::default()
            };
            return Some(Input::Sampled(Box::new(Sampled { lane, sample })));
        }
        if !self.steps.is_multiple_of(TASK_STEPS) {
            return None;
        }
        if self.scheduler.tasks_known() >= TASKS_BESIDE {
            return self.slices.pop_front().map(Input::SliceDone);
        }
        self.tasks += 1;
        Some(arrived_task(self.tasks))
    }

    fn next_arrival(&mut self) -> Input {
        let Setting { partitions, groups, .. } = self.setting;
        let rows = ARRIVAL_ROWS / i64::from(ARRIVAL_GROUPS);
        let arrival = |group| GroupArrival { group, rows, bytes: rows * ROW_BYTES };
        let turn = self.arrivals / i64::from(partitions) % i64::from(groups / ARRIVAL_GROUPS);
        let first = turn as GroupIndex * ARRIVAL_GROUPS;
        let groups = (first..first + ARRIVAL_GROUPS).map(arrival).collect();
        let partition = (self.arrivals % i64::from(partitions)) as PartitionId;
        self.arrivals += 1;
        self.rows_open += ARRIVAL_ROWS;
        Input::Arrived(Arrived { partition, next_offset: self.arrivals, groups })
    }

    /// Takes one step and updates the loop; returns the nanoseconds of the step alone.
    fn step(&mut self, input: &Input) -> u64 {
        self.at_ns += STEP_NS;
        self.decisions.clear();
        let begin = Instant::now();
        let outcome = self.scheduler.step(self.at_ns, black_box(input), &mut self.decisions);
        let step_ns = begin.elapsed().as_nanos() as u64;
        outcome.expect("the loop sends good inputs");
        for decision in &self.decisions {
            match decision {
                Decision::Dispatch(dispatch) => {
                    // One lane of eight is slow under balancing.
                    let is_slow = self.setting.policy == "balanced" && dispatch.lane % 8 == 5;
                    let fails = dispatch.lane == SLOW_LANE && SLOW_STEPS.contains(&self.steps);
                    let is_slow = if self.setting.everything { fails } else { is_slow };
                    let service_ns = dispatch.rows * if is_slow { 3_000 } else { 300 };
                    let completed =
                        Completed { lane: dispatch.lane, batch: dispatch.batch, service_ns, sample: None };
                    self.in_flight.push_back((completed, dispatch.rows));
                }
                &Decision::Release(Release { partition, group, lane, epoch, .. }) => {
                    self.released.push_back(Released { partition, group, lane, epoch });
                }
                Decision::RunSlice(RunSlice { slice, lane, .. }) => {
                    self.slices.push_back(SliceDone { lane: *lane, slice: *slice, service_ns: 500_000 });
                }
                Decision::AskPrices(asked) => {
                    let prices = (1..=asked.kinds.len() as i64).map(|price| price << 20).collect();
                    self.answers.push_back(Priced { question: asked.question, prices });
                }
                Decision::Place(_) => self.placed += 1,
                Decision::Breaker(_) => self.breakers += 1,
                _ => {}
            }
        }
        self.decided += self.decisions.len() as u64;
        step_ns
    }
}

fn print_tail(name: &str, mut step_ns: Vec<u64>) {
    step_ns.sort_unstable();
    let at = |per_mille: usize| step_ns[(step_ns.len() - 1) * per_mille / 1_000];
    let max = step_ns[step_ns.len() - 1];
    let steps = step_ns.len();
    println!(
        "{name}: {steps} steps, p50 {} ns, p99 {} ns, p99.9 {} ns, max {max} ns",
        at(500),
        at(990),
        at(999)
    );
}

/// Kind of a step.
#[derive(Clone, Copy, PartialEq)]
enum About {
    Arrived,
    Completed,
    Others,
}

/// Runs the loop, and times each step.
fn time_steps(around: &mut Loop) -> Vec<(About, u64)> {
    let mut steps = Vec::with_capacity(STEPS_MEASURED);
    for _ in 0..STEPS_MEASURED {
        let input = around.next_input();
        let step_ns = around.step(&input);
        let about = match input {
            Input::Arrived(_) => About::Arrived,
            Input::Completed(_) => About::Completed,
            _ => About::Others,
        };
        steps.push((about, step_ns));
    }
    steps
}

/// Prints the time of every step in one run, and the least time of each in [`RUNS`] runs. The same input gives the same
/// step, so that differences between runs come from the machine and not from the scheduler.
fn measure_tail(setting: Setting) {
    let mut around = Loop::start(setting);
    let placed_before = around.placed;
    let first = time_steps(&mut around);
    let Setting { name, partitions, groups, .. } = setting;
    println!(
        "step, {LANES} lanes, {partitions} x {groups} groups{name}, {} decisions, {} placements, {} changes of breakers, state {:016x}",
        around.decided,
        around.placed - placed_before,
        around.breakers,
        around.scheduler.state_hash()
    );
    around.scheduler.audit();
    let mut least = first.clone();
    for _ in 1..RUNS {
        for ((about, least_ns), (same, step_ns)) in
            least.iter_mut().zip(time_steps(&mut Loop::start(setting)))
        {
            assert!(*about == same, "the loop has no chance in it");
            *least_ns = step_ns.min(*least_ns);
        }
    }
    for (words, steps) in [("one run", first), ("least of the runs", least)] {
        println!("  {words}:");
        let of = |wanted: About| -> Vec<u64> {
            steps.iter().filter(|(about, _)| *about == wanted).map(|&(_, step_ns)| step_ns).collect()
        };
        print_tail("    arrived  ", of(About::Arrived));
        print_tail("    completed", of(About::Completed));
        if setting.everything {
            print_tail("    others   ", of(About::Others));
        }
        print_tail("    all      ", steps.iter().map(|&(_, step_ns)| step_ns).collect());
    }
    let clock = || {
        let begin = Instant::now();
        begin.elapsed().as_nanos() as u64
    };
    print_tail("  clock      ", (0..STEPS_MEASURED).map(|_| clock()).collect());
}

/// Measures steps about tasks: all lanes work on slices, and a new task replaces each that ends. Returns their mean
/// time.
fn measure_tasks(shadow: Option<ShadowConfig>) -> f64 {
    let name = shadow.as_ref().map_or(String::new(), |shadow| {
        format!(", {} in the shadow at one choice of {}", &shadow.policies[0], shadow.every)
    });
    let mut around = Loop::start_with(PLAIN, shadow);
    around.step(&trained());
    // Lanes finish their batches first.
    while let Some((completed, _)) = around.in_flight.pop_front() {
        around.step(&Input::Completed(completed));
    }
    let mut task = 0;
    let mut running = VecDeque::new();
    let (mut arrivals, mut slices) = (Vec::new(), Vec::new());
    for _ in 0..STEPS_MEASURED {
        let wanted = around.scheduler.tasks_known() < TASKS;
        if wanted {
            task += 1;
            arrivals.push(around.step(&arrived_task(task)));
        } else {
            let done = running.pop_front().expect("lanes work while tasks are known");
            slices.push(around.step(&Input::SliceDone(done)));
        }
        running.extend(around.decisions.iter().filter_map(|decision| match decision {
            Decision::RunSlice(RunSlice { slice, lane, .. }) => {
                Some(SliceDone { lane: *lane, slice: *slice, service_ns: 500_000 })
            }
            _ => None,
        }));
    }
    println!("step, {LANES} lanes, {TASKS} tasks of 100 tenants{name}");
    let mean_ns = arrivals.iter().chain(&slices).sum::<u64>() as f64 / STEPS_MEASURED as f64;
    print_tail("  task arrived", arrivals);
    print_tail("  slice done  ", slices);
    around.scheduler.audit();
    mean_ns
}

/// A network for any number of lanes, as wide as `warptape train` makes them.
fn network() -> Network {
    Network::from_bytes(include_bytes!("../../tests/fixtures/networks/improved.network")).expect("a network")
}

fn trained() -> Input {
    let network = network();
    Input::Trained(Trained { hash: network.hash(), network: StateBytes(network.to_bytes()) })
}

/// Prints the time that a shadow policy adds to steps about tasks, in percent of the mean of a run before and one
/// after.
fn measure_shadows() {
    let network = format!("dqn:{}", network().hash());
    for policy in
        ["earliest-deadline", "least-laxity", "lp-price", "round-robin", "earliest-completion", &network]
    {
        let every = 256;
        let before = measure_tasks(None);
        let with = measure_tasks(Some(ShadowConfig { policies: vec![policy.to_owned()], every }));
        let without = (before + measure_tasks(None)) / 2.0;
        println!(
            "  mean {with:.0} ns, and {without:.0} ns without: {:+.1} %",
            (with / without - 1.0) * 100.0
        );
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("step");
    group.throughput(Throughput::Elements(1));
    let mut around = Loop::start(PLAIN);
    group.bench_function("64 lanes, 16 x 16 groups", |bencher| {
        bencher.iter(|| {
            let input = around.next_input();
            around.step(&input)
        });
    });
    group.finish();
    criterion.final_summary();
    // `cargo bench` passes --bench; `cargo test --benches` only checks that the loop runs.
    if std::env::args().any(|argument| argument == "--bench") {
        measure_tail(PLAIN);
        measure_tail(ROUTED);
        measure_tail(BALANCED);
        measure_tail(EVERYTHING);
        measure_tasks(None);
        measure_shadows();
    }
}
