//! Scheduling cases as text: a line that begins with `>` is a step, and the lines after it are its decisions.
//!
//! ```text
//! > 0 start 2 batch=8          time, two lanes, changes to the configuration below
//! > 0 assign 0 4               partition, groups
//! > 10 arrive 0 1:5 2:3:900    partition, group:rows[:bytes], one byte a row unless given
//! > 20 complete 0 0 1000       lane, batch, service time
//! > 20 lost 1 | ready 1 | revoke 0 | woke | drain
//! > 30 measured 1 2:500 64:700 lane, rows:service time of a batch each
//! > 40 released 0 3 1 7        partition, group, lane, epoch
//! > 50 task 0 units=20 gang    task, and what differs from the one in `task` below
//! > 60 done 1 0 500            lane, slice, service time
//! > 70 drop 0                  task
//! > 80 priced 0 5 7            question, price of each kind
//! > 80 control drain 1         undrain 1, weight 1 5, rebalance, tenant a 5, breaker 1 open|closed|auto, policy NAME, placement NAME
//! ```

use warptape_events::journal::*;
use warptape_scheduler::{RULES, Scheduler};

/// Runs the steps of a script, and compares all decisions with those in the script.
pub fn check(script: &str) {
    let script: String = script.trim().lines().map(|line| format!("{}\n", line.trim())).collect();
    let mut scheduler = Scheduler::new();
    let mut found = String::new();
    for (number, line) in script.lines().filter(|line| line.starts_with('>')).enumerate() {
        let (at_ns, input) = parse_step(line, number as i64);
        let mut decisions = Vec::new();
        let hash_before = scheduler.state_hash();
        found.push_str(line);
        found.push('\n');
        if let Err(error) = scheduler.step(at_ns, &input, &mut decisions) {
            assert_eq!(scheduler.state_hash(), hash_before, "a refused input changed the state: {line}");
            assert!(decisions.is_empty(), "a refused input decided something: {line}");
            found.push_str(&format!("error: {error}\n"));
        }
        scheduler.audit();
        decisions.iter().for_each(|decision| found.push_str(&format!("{}\n", describe(decision))));
    }
    assert!(found == script, "expected:\n{script}\nfound:\n{found}");
}

/// The default configuration of scripts.
pub fn config() -> SchedulerConfig {
    SchedulerConfig {
        placement_policy: "rendezvous".into(),
        placement_seed: 1,
        load_factor_percent: 100,
        lane_credit_rows: 20,
        lane_credit_bytes: 1_000,
        lane_batches_max: 2,
        batch_rows_max: 10,
        row_deadline_ns: 1_000,
        high_water_rows: 1_000,
        low_water_rows: 100,
        route_interval_ns: 0,
        risk: RiskConfig::default(),
        breakers: None,
        balance_interval_ns: 0,
    }
}

/// Width of lanes on devices.
pub const DEVICE_WIDTH: i32 = 6;

/// The start of a process whose lanes have these weights. All are on the processor or, if groups are routed, every
/// other one is on a device.
pub fn started(scheduler: SchedulerConfig, weights: &[i32]) -> Input {
    started_by(RULES, scheduler, weights)
}

/// The rules of the first release. State hashes and checkpoints of journals by them never change.
pub const FIRST_RULES: i32 = 3;

/// The same start under other rules.
pub fn started_by(rules: i32, scheduler: SchedulerConfig, weights: &[i32]) -> Input {
    let lanes = weights
        .iter()
        .enumerate()
        .map(|(lane, &weight)| {
            let is_device = scheduler.route_interval_ns > 0 && lane % 2 == 1;
            let (kind, width) = if is_device { ("cuda", DEVICE_WIDTH) } else { ("cpu", 1) };
            LaneSpec { width, ..LaneSpec::new(lane as i32, format!("{kind}:{lane}"), weight) }
        })
        .collect();
    Input::Started(Box::new(Started {
        node: "node".into(),
        software: "test".into(),
        stage_config: "{}".into(),
        scheduler,
        lanes,
        autoscale: None,
        shadow: None,
        rules,
    }))
}

pub fn assigned(partition: PartitionId, groups: i32) -> Input {
    Input::PartitionAssigned(PartitionAssigned {
        partition,
        groups,
        committed_offset: 0,
        snapshot_offset: 0,
        ..PartitionAssigned::default()
    })
}

fn parse_step(line: &str, step: i64) -> (i64, Input) {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let at_ns = number(words[0]);
    let argument = |index: usize| number(words[2 + index]) as i32;
    let input = match words[1] {
        "start" => {
            let mut scheduler = config();
            let mut weights = vec![1; argument(0) as usize];
            for change in &words[3..] {
                match change.strip_prefix("weights=") {
                    Some(given) => weights = given.split(',').map(|weight| number(weight) as i32).collect(),
                    None => change_config(&mut scheduler, change),
                }
            }
            started(scheduler, &weights)
        }
        "assign" => assigned(argument(0), argument(1)),
        "revoke" => Input::PartitionRevoked(PartitionRevoked { partition: argument(0) }),
        "arrive" => Input::Arrived(Arrived {
            partition: argument(0),
            next_offset: step,
            groups: words[3..].iter().map(|word| parse_arrival(word)).collect(),
        }),
        "complete" => Input::Completed(Completed {
            lane: argument(0),
            batch: argument(1).into(),
            service_ns: argument(2).into(),
            sample: None,
        }),
        "lost" => Input::LaneLost(LaneLost { lane: argument(0), reason: "gone".into(), kept: false }),
        "ready" => Input::LaneReady(LaneReady { lane: argument(0) }),
        "measured" => Input::Measured(Measured {
            lane: argument(0),
            points: words[3..].iter().map(|word| parse_point(word)).collect(),
        }),
        "released" => Input::Released(Released {
            partition: argument(0),
            group: argument(1),
            lane: argument(2),
            epoch: argument(3).into(),
        }),
        "task" => Input::TaskArrived(parse_task(number(words[2]), &words[3..])),
        "done" => Input::SliceDone(SliceDone {
            lane: argument(0),
            slice: number(words[3]),
            service_ns: number(words[4]),
        }),
        "priced" => Input::Priced(Priced {
            question: number(words[2]),
            prices: words[3..].iter().map(|word| number(word)).collect(),
        }),
        "drop" => Input::TaskDropped(TaskDropped { task: number(words[2]) }),
        "control" => Input::Control(Control {
            offset: step,
            id: "c".into(),
            by: "someone".into(),
            deadline_ns: 1_000_000_000,
            command: parse_command(&words[2..]),
        }),
        "sample" => Input::Sampled(Box::new(Sampled {
            lane: argument(0),
            sample: DeviceSample {
                temperature_c: Some(number(words[3])),
                slowdown_c: Some(90),
                ecc_errors_uncorrected: words.get(4).map(|word| number(word)),
                memory_used_bytes: words.get(5).map(|word| parse_point(word).rows),
                memory_free_bytes: words.get(5).map(|word| parse_point(word).service_ns),
                ..DeviceSample::default()
            },
        })),
        "woke" => Input::Woke(Woke {}),
        "drain" => Input::Draining(Draining {}),
        other => panic!("no such step: {other}"),
    };
    (at_ns, input)
}

fn number(word: &str) -> i64 {
    word.parse().unwrap_or_else(|_| panic!("not a number: {word}"))
}

fn parse_arrival(word: &str) -> GroupArrival {
    let numbers: Vec<i64> = word.split(':').map(number).collect();
    let rows = numbers[1];
    GroupArrival { group: numbers[0] as i32, rows, bytes: numbers.get(2).copied().unwrap_or(rows) }
}

/// The default task of scripts and of the simulation.
pub fn task(task: TaskId) -> TaskArrived {
    TaskArrived {
        task,
        partition: 0,
        offset: task,
        request_id: format!("request-{task}"),
        tenant: "a".into(),
        class: TaskClass::Interactive,
        deadline_ns: None,
        rate_key: "key".into(),
        first_unit: 0,
        units: 1,
        unit_cost: 1,
        slice_units_max: 100,
        gang: false,
        as_of: Vec::new(),
        bytes: 0,
        unit_width: 0,
    }
}

fn parse_task(id: TaskId, changes: &[&str]) -> TaskArrived {
    let mut task = task(id);
    for change in changes {
        match change.split_once('=').unwrap_or((change, "")) {
            ("partition", value) => task.partition = number(value) as i32,
            ("tenant", value) => task.tenant = value.into(),
            ("class", value) => task.class = parse_class(value),
            ("deadline", value) => task.deadline_ns = Some(number(value)),
            ("key", value) => task.rate_key = value.into(),
            ("first", value) => task.first_unit = number(value),
            ("units", value) => task.units = number(value),
            ("cost", value) => task.unit_cost = number(value),
            ("max", value) => task.slice_units_max = number(value),
            ("gang", "") => task.gang = true,
            ("bytes", value) => task.bytes = number(value),
            ("width", value) => task.unit_width = number(value) as u16,
            other => panic!("no such change of a task: {other:?}"),
        }
    }
    task
}

fn parse_command(words: &[&str]) -> ControlCommand {
    let argument = |index: usize| number(words[index]) as i32;
    match words[0] {
        "drain" => ControlCommand::DrainLane(DrainLane { lane: argument(1) }),
        "undrain" => ControlCommand::UndrainLane(UndrainLane { lane: argument(1) }),
        "weight" => ControlCommand::WeighLane(WeighLane { lane: argument(1), weight: argument(2) }),
        "rebalance" => ControlCommand::Rebalance(Rebalance {}),
        "tenant" => ControlCommand::WeighTenant(WeighTenant { tenant: words[1].into(), weight: argument(2) }),
        "breaker" => {
            let to = match words[2] {
                "open" => BreakerMode::Open,
                "closed" => BreakerMode::Closed,
                "auto" => BreakerMode::Auto,
                other => panic!("no such mode: {other}"),
            };
            ControlCommand::SetBreaker(SetBreaker { lane: argument(1), to })
        }
        "policy" => ControlCommand::ChoosePolicy(ChoosePolicy { of: "tasks".into(), name: words[1].into() }),
        "placement" => {
            ControlCommand::ChoosePolicy(ChoosePolicy { of: "placement".into(), name: words[1].into() })
        }
        other => panic!("no such command: {other}"),
    }
}

fn parse_class(word: &str) -> TaskClass {
    match word {
        "critical" => TaskClass::Critical,
        "interactive" => TaskClass::Interactive,
        "batch" => TaskClass::Batch,
        other => panic!("no such class: {other}"),
    }
}

fn parse_point(word: &str) -> ServicePoint {
    let (rows, service_ns) = word.split_once(':').expect("a point is rows:ns");
    ServicePoint { rows: number(rows), service_ns: number(service_ns) }
}

fn change_config(config: &mut SchedulerConfig, change: &str) {
    let (field, value) = change.split_once('=').expect("a change is field=value");
    if field == "split" {
        config.risk.split = match value {
            "dynamic" => SplitPolicy::Dynamic,
            "equal" => SplitPolicy::Equal,
            "score" => SplitPolicy::Score,
            other => panic!("no such policy: {other}"),
        };
        return;
    }
    if field == "policy" {
        return value.clone_into(&mut config.risk.policy);
    }
    if let Some(name) = field.strip_prefix("quota-") {
        return config.risk.queues.quotas.push(parse_quota(name, value));
    }
    if let Some(tenant) = field.strip_prefix("tenant-") {
        let (tenant, weight) = (tenant.to_owned(), number(value) as i32);
        return config.risk.tenant_weights.push(TenantWeight { tenant, weight });
    }
    if field == "placement" {
        return value.clone_into(&mut config.placement_policy);
    }
    let value = number(value);
    match field {
        "load" => config.load_factor_percent = value as i32,
        "credit" => config.lane_credit_rows = value,
        "bytes" => config.lane_credit_bytes = value,
        "batches" => config.lane_batches_max = value as i32,
        "batch" => config.batch_rows_max = value,
        "deadline" => config.row_deadline_ns = value,
        "high" => config.high_water_rows = value,
        "low" => config.low_water_rows = value,
        "balance" => config.balance_interval_ns = value,
        "route" => config.route_interval_ns = value,
        "slice" => config.risk.slice_ns = value,
        "tasks" => config.risk.tasks_max = value as i32,
        "requests" => config.risk.bytes_max = value,
        "quantum" => config.risk.quantum_ns = value,
        "prices" => config.risk.price_interval_ns = value,
        "losses" => breakers(config).losses_max = value as i32,
        "slow" => breakers(config).slow_percent = value as i32,
        "headroom" => breakers(config).headroom_c = value as i32,
        "memory" => breakers(config).memory_free_percent = value as i32,
        "critical" => config.risk.critical_percent = value as i32,
        "ageing" => config.risk.ageing_ns = value,
        "predictor" => config.risk.predictor = value as i32,
        "target" => config.risk.queues.delay_target_ns = value,
        "interval" => config.risk.queues.delay_interval_ns = value,
        "explore" => config.risk.explore_ppm = value as i32,
        "least" => config.risk.queues.in_flight_min = value as i32,
        "steals" => config.risk.steals = value > 0,
        other => panic!("no such field: {other}"),
    }
}

/// A configuration of breakers that open only with explicit settings, and are probed after 1,000 ns.
fn breakers(config: &mut SchedulerConfig) -> &mut BreakerConfig {
    config.breakers.get_or_insert(BreakerConfig {
        losses_max: 0,
        window_ns: 10_000,
        slow_percent: 0,
        slow_ns: 100,
        probe_ns: 1_000,
        probe_ns_max: 3_000,
        probes: 2,
        headroom_c: 0,
        memory_free_percent: 0,
    })
}

/// Reads a quota: `NAME[@PARENT]`, and `GUARANTEED:LENDABLE:LIMIT[:RATE:BURST]`.
fn parse_quota(name: &str, numbers: &str) -> Quota {
    let (name, parent) = name.split_once('@').unwrap_or((name, ""));
    let numbers: Vec<i32> = numbers.split(':').map(|word| number(word) as i32).collect();
    Quota {
        name: name.into(),
        parent: parent.into(),
        guaranteed: numbers[0],
        lendable: numbers[1],
        limit: numbers[2],
        rate_per_s: numbers.get(3).copied().unwrap_or(0),
        burst: numbers.get(4).copied().unwrap_or(0),
    }
}

fn describe(decision: &Decision) -> String {
    match decision {
        Decision::Place(place) => {
            let Place { partition, group, lane, epoch, route, .. } = place;
            let why = route.as_ref().map_or(String::new(), |route| format!(": {}", describe_route(route)));
            format!("place {partition}/{group} on {lane} epoch {epoch}{why}")
        }
        Decision::Dispatch(dispatch) => {
            let takes: Vec<_> = dispatch
                .takes
                .iter()
                .map(|take| format!("{}/{}:{}", take.partition, take.group, take.rows))
                .collect();
            format!(
                "dispatch {} to {}: {} ({} rows, {} bytes, {:?}, oldest {}, finish {})",
                dispatch.batch,
                dispatch.lane,
                takes.join(" "),
                dispatch.rows,
                dispatch.bytes,
                dispatch.reason,
                dispatch.oldest_arrival_ns,
                dispatch.predicted_finish_ns
            )
        }
        Decision::Pause(pause) => format!("pause {} at {}", pause.partition, pause.waiting_rows),
        Decision::Resume(resume) => format!("resume {} at {}", resume.partition, resume.waiting_rows),
        Decision::Fence(fence) => format!("fence {}: {} groups, {}", fence.lane, fence.groups, fence.reason),
        Decision::Restore(restore) => format!("restore {} for {}", restore.partition, restore.lost_lane),
        Decision::WakeAt(wake) => format!("wake {}", wake.at_ns),
        Decision::Release(Release { partition, group, lane, epoch, route, cause, .. }) => {
            let why = route.as_ref().map_or(format!("{cause:?}"), describe_route);
            format!("release {partition}/{group} from {lane} epoch {epoch}: {why}")
        }
        Decision::Breaker(Breaker { lane, state, reason, measured, limit }) => {
            format!("breaker of {lane}: {state:?}, {reason:?} {measured} of {limit}")
        }
        Decision::Scale(scale) => {
            let Scale { lanes, lanes_before, reason, load_e6, waiting_ns, .. } = scale;
            format!(
                "scale to {lanes} from {lanes_before}: {reason:?}, load {load_e6}, {waiting_ns} ns waiting"
            )
        }
        Decision::Headroom(Headroom { lane, weight_percent, temperature_c, limit_c }) => {
            format!("weight of {lane}: {weight_percent} %, {temperature_c} of {limit_c} C")
        }
        Decision::Controlled(Controlled { outcome, detail, .. }) => format!("{outcome:?}: {detail}"),
        Decision::Admit(Admit { task, class, tenant, tasks }) => {
            format!("admit {task}: {class:?} of {tenant}, {tasks} known")
        }
        Decision::Reject(Reject { task, reason, tasks, tasks_max, deadline_ns, bytes, bytes_max, quota }) => {
            let due = deadline_ns.map_or(String::new(), |deadline_ns| format!(", due {deadline_ns}"));
            let of = if quota.is_empty() { String::new() } else { format!(" for {quota}") };
            let bytes = if *bytes > 0 { format!(", {bytes} of {bytes_max} bytes") } else { String::new() };
            format!("reject {task}: {reason:?}, {tasks} of {tasks_max} known{bytes}{due}{of}")
        }
        Decision::Split(Split { task, policy, gang, shares }) => {
            let share = |Share { lane, from, to, score }: &Share| format!(" {lane}:{from}..{to} by {score}");
            let shares: String = shares.iter().map(share).collect();
            format!("split {task}, {policy:?}{}:{shares}", if *gang { ", gang" } else { "" })
        }
        Decision::Reserve(Reserve { task, lanes, busy, until_ns }) => {
            format!("reserve {lanes:?} for {task}, {busy:?} busy, until {until_ns}")
        }
        Decision::RunSlice(RunSlice {
            slice,
            task,
            lane,
            from,
            to,
            class,
            tenant,
            tasks_waiting,
            tenant_service_ns,
            service_fs_per_cost,
            predicted_finish_ns,
            reason,
            upper_ns,
            propensity_ppm,
            stolen_from,
        }) => {
            let why = match (reason, stolen_from) {
                (SliceReason::Order, None) => String::new(),
                (other, Some(owner)) => format!(", {other:?} from {owner}"),
                (other, None) => format!(", {other:?}"),
            };
            let why = if *propensity_ppm < 1_000_000 { format!("{why}, {propensity_ppm} ppm") } else { why };
            let upper = if *upper_ns > 0 { format!(" of at most {upper_ns}") } else { String::new() };
            format!(
                "slice {slice} of {task} on {lane}: {from}..{to} ({class:?} of {tenant} after {tenant_service_ns}, \
                 {tasks_waiting} waiting, {service_fs_per_cost} fs, finish {predicted_finish_ns}{upper}{why})"
            )
        }
        Decision::Expire(Expire { task, deadline_ns, slices_running }) => {
            format!("expire {task}: due {deadline_ns}, {slices_running} running")
        }
        Decision::Finish(Finish { task, slices, service_ns, predicted_ns }) => {
            let of = if *predicted_ns > 0 { format!(" of {predicted_ns}") } else { String::new() };
            format!("finish {task}: {slices} slices, {service_ns}{of} ns")
        }
        Decision::Shed(Shed { task, reason, class, waited_ns, target_ns, number }) => {
            format!("shed {task}: {class:?}, {reason:?}, {waited_ns} of {target_ns} ns, number {number}")
        }
        Decision::FellBack(fell) => format!("{fell:?}"),
        Decision::Shadow(shadow) => format!("{shadow:?}"),
        Decision::Drift(Drift { slice, lane, rate_key, predicted_ns, service_ns, slices }) => {
            format!(
                "drift of {rate_key} on {lane}: slice {slice} took {service_ns} of {predicted_ns} ns, {slices} slices forgotten"
            )
        }
        Decision::Assign(Assign { task, lane, tasks, backlog_ns, task_ns, reason, propensity_ppm }) => {
            let drawn = match propensity_ppm {
                1_000_000 => String::new(),
                ppm => format!(", {reason:?}, {ppm} ppm"),
            };
            format!("assign {task} to {lane}: {tasks} tasks, {backlog_ns} ns, then {task_ns} ns{drawn}")
        }
        Decision::AskPrices(AskPrices { question, lanes, kinds }) => {
            let kind =
                |kind: &KindDemand| format!(" {}:{} at {:?}", kind.rate_key, kind.cost, kind.fs_per_cost);
            format!("ask {question} for lanes {lanes:?}:{}", kinds.iter().map(kind).collect::<String>())
        }
    }
}

fn describe_route(route: &Route) -> String {
    let Route { kind, rows, break_even_rows, host_ns, device_ns } = route;
    let even = break_even_rows.map_or("never".to_owned(), |rows| format!("from {rows}"));
    format!("{kind:?} for {rows} rows, device {even} (host {host_ns}, device {device_ns})")
}
