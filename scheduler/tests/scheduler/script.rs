//! A scheduling case as text: lines that begin with `>` are steps, the lines after each are what it decided.
//!
//! ```text
//! > 0 start 2 batch=8          time, two lanes, changes to the configuration below
//! > 0 assign 0 4               partition, groups
//! > 10 arrive 0 1:5 2:3:900    partition, group:rows[:bytes], one byte a row unless given
//! > 20 complete 0 0 1000       lane, batch, service time
//! > 20 lost 1 | ready 1 | revoke 0 | woke | drain
//! > 30 measured 1 2:500 64:700 lane, rows:service time of a batch each
//! > 40 released 0 3 1 7        partition, group, lane, epoch
//! ```

use warptape_scheduler::Scheduler;
use warptape_schemas::journal::*;

/// Runs the steps of a script and compares everything they decide with the script itself.
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

/// The configuration that scripts change.
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
    }
}

/// A process that starts with lanes of the given weights: all on the processor, or, where groups are routed, every other
/// one on a device.
pub fn started(scheduler: SchedulerConfig, weights: &[i32]) -> Input {
    let lanes = weights
        .iter()
        .enumerate()
        .map(|(lane, &weight)| {
            let kind = if scheduler.route_interval_ns > 0 && lane % 2 == 1 { "cuda" } else { "cpu" };
            LaneSpec { lane: lane as i32, device: format!("{kind}:{lane}"), weight }
        })
        .collect();
    Input::Started(Started {
        node: "node".into(),
        software: "test".into(),
        stage_config: "{}".into(),
        scheduler,
        lanes,
    })
}

pub fn assigned(partition: PartitionId, groups: i32) -> Input {
    Input::PartitionAssigned(PartitionAssigned { partition, groups, committed_offset: 0, snapshot_offset: 0 })
}

fn parse_step(line: &str, step: i64) -> (i64, Input) {
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let at_ns = number(words[0]);
    let argument = |index: usize| number(words[2 + index]) as i32;
    let input = match words[1] {
        "start" => {
            let mut scheduler = config();
            words[3..].iter().for_each(|change| change_config(&mut scheduler, change));
            started(scheduler, &vec![1; argument(0) as usize])
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

fn parse_point(word: &str) -> ServicePoint {
    let (rows, service_ns) = word.split_once(':').expect("a point is rows:ns");
    ServicePoint { rows: number(rows), service_ns: number(service_ns) }
}

fn change_config(config: &mut SchedulerConfig, change: &str) {
    let (field, value) = change.split_once('=').expect("a change is field=value");
    let value = number(value);
    match field {
        "credit" => config.lane_credit_rows = value,
        "bytes" => config.lane_credit_bytes = value,
        "batches" => config.lane_batches_max = value as i32,
        "batch" => config.batch_rows_max = value,
        "deadline" => config.row_deadline_ns = value,
        "high" => config.high_water_rows = value,
        "low" => config.low_water_rows = value,
        "route" => config.route_interval_ns = value,
        other => panic!("no such field: {other}"),
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
        Decision::Release(Release { partition, group, lane, epoch, route }) => {
            format!("release {partition}/{group} from {lane} epoch {epoch}: {}", describe_route(route))
        }
        other => format!("{other:?}"),
    }
}

fn describe_route(route: &Route) -> String {
    let Route { kind, rows, break_even_rows, host_ns, device_ns } = route;
    let even = break_even_rows.map_or("never".to_owned(), |rows| format!("from {rows}"));
    format!("{kind:?} for {rows} rows, device {even} (host {host_ns}, device {device_ns})")
}
