//! The scheduler in a random world: arrivals, completions, losses, wakes, drains, restarts and bad inputs. The model
//! checks every step. Each run ends with a healing phase, in which all work must be finished.

use std::collections::BTreeMap;

use warptape_events::journal::*;
use warptape_scheduler::{PLACEMENT_POLICIES, TASK_POLICIES, current_task_policy, in_steps};

use crate::draws::Draws;
use crate::drifting;
use crate::learned::{network, trained};
use crate::model::Model;
use crate::planted::Plant;

const SEEDS: u64 = 2_500;
/// Seeds of runs with decisions that are rare.
const RARE: [u64; 2] = [1_828, 2_042];
const STEPS: i64 = 160;
/// Seeds of the networks in simulated runs.
const NETWORKS: [u64; 2] = [1, 2];
/// Most steps of healing. This suffices even if every row were a batch of its own, with a wake and a completion.
const HEALING_STEPS_MAX: i64 = 100_000;

/// Prints the seed if a run panics.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("simulation failed with seed {}: run it alone with WARPTAPE_SEED={}", self.0, self.0);
        }
    }
}

/// Seeds of a run: half of them are fixed, the others change with `WARPTAPE_TEST_ROTATION`. `tests/run` sets that to
/// the day of the commit.
fn rotating() -> Vec<u64> {
    #[expect(clippy::disallowed_methods, reason = "the seeds of a test are no input of the scheduler")]
    let rotation = std::env::var("WARPTAPE_TEST_ROTATION").unwrap_or_else(|_| "0".to_owned());
    let first = 1_000_000 * rotation.parse::<u64>().expect("WARPTAPE_TEST_ROTATION is a number");
    println!("seeds 0 to {} and, of WARPTAPE_TEST_ROTATION={rotation}, {first} onwards", SEEDS / 2);
    (0..SEEDS / 2).chain(RARE).chain(first.max(SEEDS)..).take(SEEDS as usize).collect()
}

#[test]
fn every_seed_keeps_the_rules_and_comes_to_rest() {
    #[expect(clippy::disallowed_methods, reason = "the seed of a test is not an input of the scheduler")]
    let only =
        std::env::var("WARPTAPE_SEED").ok().map(|seed| seed.parse().expect("WARPTAPE_SEED is a number"));
    let mut seen: BTreeMap<String, i64> = BTreeMap::new();
    for seed in only.map_or_else(rotating, |seed: u64| vec![seed]) {
        let _named = SeedOnPanic(seed);
        for (kind, count) in run(seed) {
            *seen.entry(kind).or_default() += count;
        }
    }
    // Simulated runs are too short for a drift of a learned policy.
    for (kind, count) in drifting::run().seen {
        *seen.entry(kind).or_default() += count;
    }
    // A simulation in which a rule never applies does not test it.
    let kinds: Vec<_> = seen.keys().map(String::as_str).collect();
    let all = [
        "admit",
        "ask for prices",
        "assign, dqn",
        "assign, earliest-completion",
        "assign, explored",
        "assign, linucb",
        "assign, round-robin",
        "assign, score-utilization",
        "assign, shortest-queue",
        "assign, stood in",
        "assign, two-choices",
        "assign, weighted-round-robin",
        "breaker Losses",
        "breaker Memory",
        "breaker Probe",
        "breaker ProbeFailed",
        "breaker Recovered",
        "breaker Slow",
        "controlled Done",
        "controlled Refused",
        "decides again",
        "dispatch Deadline",
        "dispatch Drain",
        "dispatch Full",
        "dispatch Idle",
        "drift",
        "expire",
        "fell back",
        "fence",
        "fence, rows kept",
        "finish",
        "headroom 100",
        "headroom 25",
        "headroom 50",
        "pause",
        "place",
        "reject Congested",
        "reject Expired",
        "reject Overloaded",
        "reject Quota",
        "reject Rate",
        "release Balance",
        "release Breaker",
        "release Drained",
        "release Rebalance",
        "release to Device",
        "release to Host",
        "reserve",
        "restore",
        "resume",
        "scale down",
        "scale up",
        "shadow pulls",
        "shadow pulls likewise",
        "shadow pushes",
        "shadow pushes likewise",
        "shed Batch",
        "shed Interactive",
        "slice Batch, Aged",
        "slice Batch, Explored",
        "slice Batch, Order",
        "slice Batch, Stolen",
        "slice Critical, Aged",
        "slice Critical, Explored",
        "slice Critical, Order",
        "slice Critical, Reserved",
        "slice Critical, Reserved, passes",
        "slice Critical, Stolen",
        "slice Interactive, Aged",
        "slice Interactive, Explored",
        "slice Interactive, Order",
        "slice Interactive, Stolen",
        "split Equal",
        "split Equal, gang",
        "split Score",
        "split Score, gang",
        "wake",
    ];
    assert!(only.is_some() || kinds == all, "seen: {seen:?}");
}

fn run(seed: u64) -> BTreeMap<String, i64> {
    run_with(seed, None)
}

/// Runs with a seed and, if one is given, an artificial fault of the scheduler.
pub fn run_with(seed: u64, plant: Option<Plant>) -> BTreeMap<String, i64> {
    let mut draws = Draws::new(seed);
    let (config, weights) = random_start(&mut draws);
    let begins_ns = draws.below(1 << 60);
    let autoscale = if draws.percent(25) { Some(random_autoscale(&mut draws)) } else { None };
    let shadow = if draws.percent(25) { Some(random_shadow(&mut draws, &config)) } else { None };
    let mut model = Model::start(begins_ns, config, &weights, autoscale, shadow);
    model.plant = plant;
    for _ in 0..STEPS {
        let pace = draws.pick(&[1, 50, 3_000]).unwrap();
        model.at_ns += draws.below(pace);
        // Windows last seconds, while all other times are microseconds.
        if autoscale.is_some() && draws.percent(20) {
            model.at_ns += draws.below(3_000_000_000);
        }
        if draws.percent(10) {
            refuse_something(&mut model, &mut draws);
        }
        step_at_random(&mut model, &mut draws);
    }
    heal(&mut model);
    model.check_replay();
    model.check_without_shadow();
    model.seen
}

fn random_autoscale(draws: &mut Draws) -> AutoscaleConfig {
    let lanes_min = draws.range(1, 4) as i32;
    AutoscaleConfig {
        policy: draws.pick(&[AutoscalePolicy::Reactive, AutoscalePolicy::Predictive]).unwrap(),
        lanes_min,
        lanes_max: lanes_min + draws.range(0, 60) as i32,
        window_ns: 1_000_000_000,
        utilization_percent: draws.range(1, 100) as i32,
        hysteresis_percent: 0,
        hold_windows: draws.range(0, 2) as i32,
        clear_ns: 1_000_000_000,
        start_ns: draws.pick(&[0, 1_000_000_000, 5_000_000_000]).unwrap(),
        ..AutoscaleConfig::default()
    }
}

fn random_shadow(draws: &mut Draws, config: &SchedulerConfig) -> ShadowConfig {
    let others = [draws.pick(&TASK_POLICIES).unwrap().to_owned(), network_policy(draws)];
    let mut policies = vec![config.risk.policy.clone()];
    policies.extend(others);
    policies.retain(|policy| !policy.starts_with("linucb"));
    policies.sort();
    policies.dedup();
    ShadowConfig { policies, every: draws.pick(&[1, 3]).unwrap() }
}

fn random_start(draws: &mut Draws) -> (SchedulerConfig, Vec<i32>) {
    let batch_rows_max = draws.range(1, 40);
    let high_water_rows = draws.range(1, 200);
    let policy = draws.pick(&PLACEMENT_POLICIES).unwrap();
    let mut config = SchedulerConfig {
        placement_policy: match draws.pick(&[0, 0, 1, 500, 100_000]).unwrap() {
            0 => policy.into(),
            bytes => in_steps(policy, bytes),
        },
        placement_seed: draws.below(1 << 40),
        load_factor_percent: draws.pick(&[100, 125, 400]).unwrap(),
        lane_credit_rows: batch_rows_max + draws.below(60),
        lane_credit_bytes: draws.pick(&[10, 500, 1 << 20]).unwrap(),
        lane_batches_max: draws.range(1, 4) as i32,
        batch_rows_max,
        row_deadline_ns: draws.pick(&[0, 100, 5_000]).unwrap(),
        high_water_rows,
        low_water_rows: draws.below(high_water_rows),
        route_interval_ns: draws.pick(&[0, 1, 20_000]).unwrap(),
        risk: random_risk(draws),
        breakers: if draws.percent(70) { Some(random_breakers(draws)) } else { None },
        balance_interval_ns: draws.pick(&[0, 1, 300, 20_000]).unwrap(),
    };
    // The guarantees must fit.
    config.risk.queues.quotas.truncate(if config.risk.tasks_max < 4 { 0 } else { usize::MAX });
    let weights = (0..draws.range(1, 6)).map(|_| draws.pick(&[0, 1, 1, 3]).unwrap()).collect();
    (config, weights)
}

fn random_breakers(draws: &mut Draws) -> BreakerConfig {
    let probe_ns = draws.pick(&[1, 100, 5_000]).unwrap();
    BreakerConfig {
        losses_max: draws.pick(&[0, 1, 2, 5]).unwrap(),
        window_ns: draws.pick(&[100, 1_000_000]).unwrap(),
        slow_percent: draws.pick(&[0, 1, 120, 300]).unwrap(),
        slow_ns: draws.pick(&[0, 500]).unwrap(),
        probe_ns,
        probe_ns_max: probe_ns * draws.pick(&[1, 8]).unwrap(),
        probes: draws.pick(&[1, 2, 4]).unwrap(),
        headroom_c: draws.pick(&[0, 5, 20]).unwrap(),
        memory_free_percent: draws.pick(&[0, 5, 50]).unwrap(),
    }
}

fn random_risk(draws: &mut Draws) -> RiskConfig {
    let weight = |tenant: &str, weight| TenantWeight { tenant: tenant.into(), weight };
    RiskConfig {
        slice_ns: draws.pick(&[1, 50, 2_000]).unwrap(),
        tasks_max: draws.pick(&[1, 4, 100]).unwrap(),
        split: draws.pick(&[SplitPolicy::Dynamic, SplitPolicy::Equal, SplitPolicy::Score]).unwrap(),
        tenant_weights: vec![weight("b", draws.range(1, 3) as i32)],
        bytes_max: draws.pick(&[1, 1_000, 1 << 30]).unwrap(),
        quantum_ns: draws.pick(&[0, 1, 5_000]).unwrap(),
        policy: match draws.percent(30) {
            true => String::new(),
            false if draws.percent(15) => network_policy(draws),
            false => task_policy(draws),
        },
        price_interval_ns: draws.pick(&[0, 1, 2_000]).unwrap(),
        critical_percent: draws.pick(&[0, 25, 100]).unwrap(),
        ageing_ns: draws.pick(&[0, 1, 4_000]).unwrap(),
        predictor: draws.pick(&[0, 1]).unwrap(),
        steals: draws.percent(50),
        queues: random_queues(draws),
        explore_ppm: draws.pick(&[0, 20_000]).unwrap(),
    }
}

fn random_queues(draws: &mut Draws) -> QueueConfig {
    let mut quota = |name: &str, parent: &str| {
        let guaranteed = draws.below(2) as i32;
        let (lendable, limit) = (draws.range(0, guaranteed.into()) as i32, draws.pick(&[0, 1, 3]).unwrap());
        let rate_per_s = draws.pick(&[0, 0, 1_000_000]).unwrap();
        let burst = draws.range(0, 3) as i32;
        Quota { name: name.into(), parent: parent.into(), guaranteed, lendable, limit, rate_per_s, burst }
    };
    let all = vec![quota("firm", ""), quota("a", "firm"), quota("b", "firm"), quota("c", "")];
    let delay_target_ns = draws.pick(&[0, 0, 100, 2_000]).unwrap();
    QueueConfig {
        quotas: all.into_iter().take(draws.below(5) as usize).collect(),
        delay_target_ns,
        delay_interval_ns: draws.pick(&[1, 500, 5_000]).unwrap(),
        in_flight_min: if delay_target_ns > 0 { draws.below(2) as i32 } else { 0 },
    }
}

fn step_at_random(model: &mut Model, draws: &mut Draws) {
    let with_work: Vec<_> = lanes_where(model, |lane| !lane.in_flight.is_empty());
    let ready: Vec<_> = lanes_where(model, |lane| lane.ready);
    let lost: Vec<_> = lanes_where(model, |lane| !lane.ready);
    let late: Vec<_> = lanes_where(model, |lane| !lane.voided.is_empty());
    let assigned: Vec<_> = partitions_where(model, |partition| partition.assigned);
    let owned: Vec<_> = partitions_where(model, |partition| partition.assigned || partition.restoring);
    let to_read: Vec<_> = partitions_where(model, |partition| partition.assigned && !partition.paused);
    let leaving = model.leaving();
    if draws.percent(20)
        && let Some(released) = draws.pick(&leaving)
    {
        return model.step(Input::Released(released));
    }
    if draws.percent(30) {
        return step_a_task(model, draws);
    }
    match draws.below(113) {
        0..40 => {
            // Rows of a paused partition may still arrive, because they were read before.
            let partitions = if draws.percent(90) { to_read } else { assigned };
            if let Some(partition) = draws.pick(&partitions) {
                arrive(model, draws, partition);
            }
        }
        40..72 => {
            if let Some(lane) = draws.pick(&with_work) {
                complete(model, lane, draws.below(4_000));
            }
        }
        72..78 => {
            if let Some(timer_ns) = model.life.timer_ns {
                // The wake is on time, late or too early.
                let late_ns = draws.range(-20, 20);
                model.at_ns = model.at_ns.max(timer_ns + late_ns);
                model.step(Input::Woke(Woke {}));
            }
        }
        78..90 => {
            let partition = draws.below(4) as PartitionId;
            let groups = draws.range(1, 6) as i32;
            assign(model, partition, groups);
        }
        90..92 => {
            if let Some(partition) = draws.pick(&owned) {
                model.step(Input::PartitionRevoked(PartitionRevoked { partition }));
            }
        }
        92..94 => {
            if let Some(lane) = draws.pick(&ready) {
                let kept = draws.percent(50);
                model.step(Input::LaneLost(LaneLost { lane, reason: "gone".into(), kept }));
            }
        }
        94..97 => {
            if let Some(lane) = draws.pick(&lost) {
                model.step(Input::LaneReady(LaneReady { lane }));
            }
        }
        97..100 => {
            if let Some(lane) = draws.pick(&late) {
                let batch = model.lanes[lane as usize].voided[0];
                model.step(Input::Completed(Completed { lane, batch, service_ns: 5, sample: None }));
            }
        }
        100 => tell_network(model, draws),
        101 => measure(model, draws),
        102..105 => sample(model, draws),
        105..112 => control(model, draws),
        _ => {
            if draws.percent(30) {
                let (config, weights) = random_start(draws);
                model.restart(config, &weights);
            } else if draws.percent(20) {
                model.step(Input::Draining(Draining {}));
            }
        }
    }
}

/// Takes a step about tasks: a task or a later round arrives, a slice is done (on time or late), or a task is
/// withdrawn.
fn step_a_task(model: &mut Model, draws: &mut Draws) {
    let with_slice: Vec<_> = lanes_where(model, |lane| lane.slice.is_some());
    let late: Vec<_> = lanes_where(model, |lane| !lane.slices_voided.is_empty());
    let owned: Vec<_> = partitions_where(model, |partition| partition.assigned || partition.restoring);
    match draws.below(100) {
        0..35 => {
            let Some(partition) = draws.pick(&owned) else { return };
            let later = draws.pick(&model.tasks.finished).filter(|_| draws.percent(40));
            let (task, first_unit) = later.unwrap_or((model.tasks.task_next + draws.below(2), 0));
            let arrived = random_task(model.at_ns, draws, task);
            model.step(Input::TaskArrived(TaskArrived { partition, first_unit, ..arrived }));
        }
        35..90 => {
            if let Some(lane) = draws.pick(&with_slice) {
                let passed = model.lanes[lane as usize].passed.as_ref().map(|(passed, _)| passed.slice);
                match passed.filter(|_| draws.percent(50)) {
                    Some(slice) => {
                        model.step(Input::SliceDone(SliceDone {
                            lane,
                            slice,
                            service_ns: draws.below(3_000),
                        }));
                    }
                    None => finish_slice(model, lane, draws.below(3_000)),
                }
            }
        }
        90..92 => {
            if let Some(AskPrices { question, kinds, .. }) = &model.tasks.asked {
                // The answer is to the last question or an earlier one; it is empty if there was no solution.
                let question = *question - draws.below(2).min(*question);
                let kinds = if draws.percent(20) { 0 } else { kinds.len() };
                let is_last = model.tasks.asked.as_ref().is_some_and(|asked| asked.question == question);
                let kinds = if is_last { kinds } else { 3 };
                let prices = (0..kinds).map(|_| draws.below(1 << 30)).collect();
                model.step(Input::Priced(Priced { question, prices }));
            }
        }
        92..95 => {
            if let Some(lane) = draws.pick(&late) {
                let slice = model.lanes[lane as usize].slices_voided[0];
                model.step(Input::SliceDone(SliceDone { lane, slice, service_ns: 5 }));
            }
        }
        _ => {
            let known: Vec<_> = model.tasks.known.keys().copied().collect();
            if let Some(task) = draws.pick(&known) {
                model.step(Input::TaskDropped(TaskDropped { task }));
            }
        }
    }
}

fn random_task(at_ns: i64, draws: &mut Draws, task: TaskId) -> TaskArrived {
    let deadline_ns = draws.pick(&[None, Some(-10), Some(200), Some(9_000), Some(50_000)]).unwrap();
    TaskArrived {
        tenant: draws.pick(&["a", "b", "c"]).unwrap().into(),
        class: draws.pick(&[TaskClass::Critical, TaskClass::Interactive, TaskClass::Batch]).unwrap(),
        deadline_ns: deadline_ns.map(|after_ns: i64| (at_ns + after_ns).max(0)),
        rate_key: draws.pick(&["one", "other"]).unwrap().into(),
        units: draws.pick(&[1, 3, 7, 40]).unwrap(),
        unit_cost: draws.pick(&[1, 50]).unwrap(),
        slice_units_max: draws.pick(&[1, 5, 100]).unwrap(),
        bytes: draws.pick(&[0, 300, 900]).unwrap(),
        unit_width: draws.pick(&[0, 1, 2, 9]).unwrap(),
        gang: draws.percent(25),
        ..crate::script::task(task)
    }
}

fn finish_slice(model: &mut Model, lane: LaneId, service_ns: i64) {
    let slice = model.lanes[lane as usize].slice.as_ref().expect("the lane works on one").slice;
    model.step(Input::SliceDone(SliceDone { lane, slice, service_ns }));
}

fn lanes_where(model: &Model, chosen: impl Fn(&crate::model::ModelLane) -> bool) -> Vec<LaneId> {
    (0..model.lanes.len() as LaneId).filter(|&lane| chosen(&model.lanes[lane as usize])).collect()
}

fn partitions_where(
    model: &Model,
    chosen: impl Fn(&crate::model::ModelPartition) -> bool,
) -> Vec<PartitionId> {
    model.partitions.iter().filter(|(_, partition)| chosen(partition)).map(|(&id, _)| id).collect()
}

fn assign(model: &mut Model, partition: PartitionId, groups: i32) {
    let assigned = PartitionAssigned {
        partition,
        groups,
        committed_offset: 70,
        snapshot_offset: 30,
        ..PartitionAssigned::default()
    };
    model.step(Input::PartitionAssigned(assigned));
}

fn arrive(model: &mut Model, draws: &mut Draws, partition: PartitionId) {
    let known = &model.partitions[&partition];
    let mut groups = Vec::new();
    for group in 0..known.groups.len() as GroupIndex {
        if draws.percent(50) {
            let rows_most = draws.pick(&[3, 30, 150]).unwrap();
            let rows = draws.range(1, rows_most);
            let row_bytes = draws.pick(&[0, 1, 7, 90]).unwrap();
            groups.push(GroupArrival { group, rows, bytes: rows * row_bytes + draws.below(5) });
        }
    }
    let next_offset = known.position + draws.below(3);
    model.step(Input::Arrived(Arrived { partition, next_offset, groups }));
}

fn complete(model: &mut Model, lane: LaneId, service_ns: i64) {
    // Some batches take as long as windows, if there are windows.
    let is_long = model.autoscale.is_some() && service_ns % 8 == 0;
    let service_ns = if is_long { service_ns.max(1) * 1_000_000 } else { service_ns };
    let batch = model.lanes[lane as usize].in_flight[0].batch;
    model.step(Input::Completed(Completed { lane, batch, service_ns, sample: None }));
}

/// A task policy with its version, or without it for version 1, as in journals from before versions.
fn task_policy(draws: &mut Draws) -> String {
    let name = draws.pick(&TASK_POLICIES).unwrap();
    let current = current_task_policy(name);
    if current == format!("{name}@1") { name.to_owned() } else { current }
}

/// The policy of one of two networks; the network may be missing.
fn network_policy(draws: &mut Draws) -> String {
    format!("dqn:{}", network(draws.pick(&NETWORKS).unwrap()).hash())
}

/// Adds a network to the process, once.
fn tell_network(model: &mut Model, draws: &mut Draws) {
    let network = network(draws.pick(&NETWORKS).unwrap());
    if !model.life.networks.contains(&network.hash()) {
        model.step(trained(&network));
    }
}

/// Measures a lane: with a high fixed time, or with a high time per row.
fn measure(model: &mut Model, draws: &mut Draws) {
    let lane = draws.below(model.lanes.len() as i64) as LaneId;
    let (base_ns, row_ns) = (draws.pick(&[10, 5_000]).unwrap(), draws.pick(&[1, 100]).unwrap());
    let points = [1, 20, 400].map(|rows| ServicePoint { rows, service_ns: base_ns + rows * row_ns });
    model.step(Input::Measured(Measured { lane, points: points.into() }));
}

/// Samples a lane's device.
fn sample(model: &mut Model, draws: &mut Draws) {
    let lane = draws.below(model.lanes.len() as i64) as LaneId;
    let sample = DeviceSample {
        temperature_c: draws.pick(&[None, Some(40), Some(92), Some(94)]).unwrap(),
        throttle_bits: draws.pick(&[None, Some(0), Some(1), Some(0x48)]).unwrap(),
        slowdown_c: draws.pick(&[None, Some(85), Some(95)]).unwrap(),
        ecc_errors_uncorrected: draws.pick(&[None, Some(0), Some(0), Some(1), Some(2)]).unwrap(),
        memory_used_bytes: draws.pick(&[None, Some(0), Some(95)]).unwrap(),
        memory_free_bytes: draws.pick(&[None, Some(0), Some(4), Some(5), Some(10), Some(i64::MAX)]).unwrap(),
        ..DeviceSample::default()
    };
    // Withheld weight comes back only after some samples.
    for _ in 0..draws.pick(&[1, 1, 1, 11]).unwrap() {
        model.step(Input::Sampled(Box::new(Sampled { lane, sample: sample.clone() })));
    }
}

/// Sends an operator's command, which may be invalid or late.
fn control(model: &mut Model, draws: &mut Draws) {
    let lane = draws.range(-1, model.lanes.len() as i64) as LaneId;
    let command = match draws.below(13) {
        0..3 => ControlCommand::DrainLane(DrainLane { lane }),
        3..6 => ControlCommand::UndrainLane(UndrainLane { lane }),
        6 => {
            let weight = draws.pick(&[-1, 0, 1, 5, 1_000_001]).unwrap();
            ControlCommand::WeighLane(WeighLane { lane, weight })
        }
        7 => ControlCommand::Rebalance(Rebalance {}),
        8 => {
            let (tenant, weight) = (draws.pick(&["a", "b", "new"]).unwrap(), draws.range(0, 4) as i32);
            ControlCommand::WeighTenant(WeighTenant { tenant: tenant.into(), weight })
        }
        11 => {
            let (partition, event_time_max_ns) = (draws.range(0, 4) as i32, draws.range(0, 5));
            ControlCommand::SetWatermark(SetWatermark { partition, event_time_max_ns })
        }
        9..11 => {
            let to = draws.pick(&[BreakerMode::Auto, BreakerMode::Open, BreakerMode::Closed]).unwrap();
            ControlCommand::SetBreaker(SetBreaker { lane, to })
        }
        _ => {
            let of = if draws.percent(50) { "tasks" } else { "placement" };
            let name = match draws.below(10) {
                0..2 => "dice".to_owned(),
                2..4 if of == "tasks" => network_policy(draws),
                _ if of == "tasks" => task_policy(draws),
                _ => draws.pick(&PLACEMENT_POLICIES).unwrap().to_owned(),
            };
            ControlCommand::ChoosePolicy(ChoosePolicy { of: of.into(), name })
        }
    };
    let deadline_ns = model.at_ns + draws.range(-1, 20);
    let (id, by) = (format!("control-{deadline_ns}"), "someone".to_owned());
    model.step(Input::Control(Control { offset: 0, id, by, deadline_ns, command }));
}

/// Steps the scheduler with an input that it must refuse.
fn refuse_something(model: &mut Model, draws: &mut Draws) {
    let lanes = model.lanes.len() as LaneId;
    let lane = draws.below(lanes.into()) as LaneId;
    let assigned: Vec<_> = partitions_where(model, |partition| partition.assigned);
    let mut at_ns = model.at_ns;
    let input = match draws.below(19) {
        17 => Input::Priced(Priced { question: i64::MAX, prices: vec![1] }),
        18 => {
            let question = model.tasks.asked.as_ref().map_or(-1, |asked| asked.question);
            Input::Priced(Priced { question, prices: vec![-1] })
        }
        16 => Input::Control(Control {
            offset: 0,
            id: "x".repeat(257),
            by: String::new(),
            deadline_ns: at_ns,
            command: ControlCommand::Rebalance(Rebalance {}),
        }),
        15 => Input::Sampled(Box::new(Sampled { lane: lanes, sample: DeviceSample::default() })),
        12 => Input::SliceDone(SliceDone { lane, slice: i64::MAX, service_ns: 1 }),
        13 => Input::TaskDropped(TaskDropped { task: model.tasks.task_next }),
        14 => {
            let task = model.tasks.known.keys().next().copied().unwrap_or(i64::MAX);
            let partition = model.partitions.keys().next().copied().unwrap_or(0);
            Input::TaskArrived(TaskArrived { partition, ..crate::script::task(task) })
        }
        0 => {
            at_ns = model.journal.last().expect("a run begins with a start").at_ns - 1;
            Input::Woke(Woke {})
        }
        1 => Input::LaneLost(LaneLost { lane: lanes, reason: String::new(), kept: false }),
        2 if model.lanes[lane as usize].ready => Input::LaneReady(LaneReady { lane }),
        2 => Input::LaneLost(LaneLost { lane, reason: String::new(), kept: false }),
        3 => Input::Completed(Completed { lane, batch: i64::MAX, service_ns: 1, sample: None }),
        4 if model.lanes[lane as usize].in_flight.len() > 1 => {
            let batch = model.lanes[lane as usize].in_flight[1].batch;
            Input::Completed(Completed { lane, batch, service_ns: 1, sample: None })
        }
        10 => Input::Measured(Measured { lane, points: vec![ServicePoint { rows: 0, service_ns: 1 }] }),
        11 => Input::Released(match model.leaving().first() {
            Some(leaving) => Released { epoch: leaving.epoch - 1, ..*leaving },
            None => Released { partition: 0, group: 0, lane, epoch: 1 },
        }),
        4 => Input::Completed(Completed { lane: -1, batch: 0, service_ns: 1, sample: None }),
        5 => Input::PartitionRevoked(PartitionRevoked { partition: 4 }),
        6 => Input::PartitionAssigned(PartitionAssigned {
            partition: 0,
            groups: 0,
            committed_offset: 0,
            snapshot_offset: 0,
            ..PartitionAssigned::default()
        }),
        7 => {
            let restoring = partitions_where(model, |partition| !partition.assigned);
            let partition = draws.pick(&restoring).unwrap_or(8);
            Input::Arrived(Arrived { partition, next_offset: i64::MAX, groups: Vec::new() })
        }
        8 if !assigned.is_empty() => {
            let partition = draws.pick(&assigned).expect("not empty");
            let next_offset = model.partitions[&partition].position - 1;
            Input::Arrived(Arrived { partition, next_offset, groups: Vec::new() })
        }
        _ => {
            let partition = draws.pick(&assigned).unwrap_or(7);
            let groups = model.partitions.get(&partition).map_or(0, |known| known.groups.len()) as GroupIndex;
            let bad = [
                GroupArrival { group: groups, rows: 1, bytes: 1 },
                GroupArrival { group: -1, rows: 1, bytes: 1 },
                GroupArrival { group: 0, rows: 0, bytes: 1 },
                GroupArrival { group: 0, rows: 1, bytes: -1 },
                GroupArrival { group: 0, rows: i64::MAX, bytes: i64::MAX },
            ];
            let first = GroupArrival { group: 0, rows: 5, bytes: 5 };
            let groups = vec![first, draws.pick(&bad).unwrap()];
            Input::Arrived(Arrived { partition, next_offset: i64::MAX, groups })
        }
    };
    model.step_refused(at_ns, &input);
}

/// Heals the world without further faults: lanes return, partitions are restored, batches complete. All arrived work
/// must be done in a bounded number of steps.
fn heal(model: &mut Model) {
    for lane in lanes_where(model, |lane| !lane.ready) {
        model.step(Input::LaneReady(LaneReady { lane }));
    }
    for partition in partitions_where(model, |partition| partition.restoring) {
        assign(model, partition, 3);
    }
    for _ in 0..HEALING_STEPS_MAX {
        if let Some(released) = model.leaving().first() {
            model.step(Input::Released(*released));
            continue;
        }
        // A step follows at once if the last one lacked room. No other wake is needed.
        if model.life.timer_ns.is_some_and(|wake_ns| wake_ns <= model.at_ns + 1) {
            model.at_ns += 1;
            model.step(Input::Woke(Woke {}));
            continue;
        }
        model.at_ns += 10;
        if let Some(&lane) = lanes_where(model, |lane| !lane.in_flight.is_empty()).first() {
            complete(model, lane, 10);
        } else if let Some(&lane) = lanes_where(model, |lane| lane.slice.is_some()).first() {
            finish_slice(model, lane, 10);
        } else {
            break;
        }
    }
    assert!(model.leaving().is_empty(), "a group moves and never arrives");
    assert!(model.tasks.known.is_empty(), "a task never ends");
    assert!(model.scheduler.is_quiet(), "work is left and nobody does it");
    for (id, partition) in &model.partitions {
        assert!(!partition.paused, "partition {id} is paused for ever");
        let done = partition.groups.iter().all(|group| group.row_next == group.rows_arrived);
        assert!(done, "rows of partition {id} never went to a lane");
    }
}
