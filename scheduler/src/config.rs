//! Limits of a configuration, and of everything that the scheduler holds.
//!
//! The module reports all mistakes at once, each with its field; it must not know where a configuration came from.

use std::collections::BTreeSet;
use std::fmt::Display;

use thiserror::Error;
use warptape_events::journal::{
    BreakerConfig, LaneKind, LaneSpec, QueueConfig, Quota, SchedulerConfig, TenantWeight,
};

use crate::policy::placement::{PLACEMENT_POLICIES, PlacementPolicy};
use crate::policy::task::{EXPLORE_PPM_MAX, TaskPolicy, task_policies_listed};
use crate::risk::Quotas;

/// Most lanes of one process.
pub const LANES_MAX: usize = 256;
/// Most partitions that one process may own in its life, including revoked ones, because their epochs are remembered.
pub const PARTITIONS_MAX: usize = 4_096;
/// Most symbol groups of one partition.
pub const GROUPS_PER_PARTITION_MAX: i32 = 4_096;
/// Most symbol groups of all partitions that one process may own in its life.
pub const GROUPS_TOTAL_MAX: i64 = 65_536;
/// Most rows that may wait per partition, be in flight per lane, or form a batch.
pub const ROWS_MAX: i64 = 1 << 40;
/// Most bytes that may wait per partition or be in flight per lane.
pub const BYTES_MAX: i64 = 1 << 50;
/// Most bytes of a risk request, and of all known requests together.
pub const REQUEST_BYTES_MAX: i64 = 1 << 40;
/// Latest time of a step, in ns since the epoch (the year 2116): sums of times and durations do not overflow.
pub const TIME_NS_MAX: i64 = i64::MAX / 2;
/// Greatest weight of one lane.
pub const WEIGHT_MAX: i32 = 1_000_000;
/// Most risk tasks that may be known at a time, including later rounds.
pub const TASKS_MAX: i32 = 1 << 20;
/// The first rules of a released version. Decisions by these or later rules can be replayed.
pub(crate) const FIRST_RULES: i32 = 3;
/// The current number of the rules by which the scheduler decides. Earlier rules are kept, so that decisions by them
/// can be replayed.
///
/// | rules | what changed |
/// | --- | --- |
/// | 3 | |
/// | 4 | slices count in waves: the units that a lane works on at the same time |
pub const RULES: i32 = 4;
/// The first rules with waves. Under earlier ones, each lane works on one unit at a time.
pub const WAVE_RULES: i32 = 4;
/// Most units of a task, including those of earlier rounds.
pub const UNITS_MAX: i64 = 1 << 36;
/// Greatest cost of one unit of a task.
pub const COST_MAX: i64 = 1 << 20;
/// Greatest width of a lane: blocks of a kernel that its device runs at the same time.
pub const WIDTH_MAX: i32 = 1 << 20;
/// Most bytes of a tenant's name, a rate key or a request's own id.
pub const TEXT_BYTES_MAX: usize = 256;
/// Greatest weight of a tenant.
pub const TENANT_WEIGHT_MAX: i32 = 1_000;
/// Most tenants with a weight of their own.
pub const TENANT_WEIGHTS_MAX: usize = 1_024;
/// Most quotas of tenants.
pub const QUOTAS_MAX: usize = 256;
/// Most requests per second that a quota may name.
pub const QUOTA_RATE_MAX: i32 = 1_000_000;
/// A useful limit for [`in_steps`]: entries of such steps have at most 512 KiB, however much there is to decide.
pub const STEP_BYTES_MAX: i64 = 256 << 10;
/// Most networks of one process life. Each has at most 64 KiB ([`warptape_network::BYTES_MAX`]).
pub const NETWORKS_MAX: usize = 8;
/// Greatest configurable number of losses after which a lane's breaker opens.
const LOSSES_MAX: i32 = 100;
/// Greatest configurable number of probes.
const PROBES_MAX: i32 = 10_000;
/// Longest configurable slice: one second.
pub const SLICE_NS_MAX: i64 = 1_000_000_000;

/// Longest row deadline and longest predicted service time: one day.
pub(crate) const DURATION_NS_MAX: i64 = 86_400_000_000_000;
/// Slowest service time per row in predictions: one second.
pub(crate) const SERVICE_PS_PER_ROW_MAX: i64 = 1_000_000_000_000;
/// Most batches in the measurement of a lane.
pub(crate) const POINTS_MAX: usize = 64;
/// Time that free lanes wait for the other lanes of a gang, in configured slices. Then other tasks go first for the
/// same time.
pub(crate) const GANG_WAIT_SLICES: i64 = 64;
const LANE_BATCHES_MAX: i32 = 1_024;
const LOAD_FACTOR_PERCENT_MAX: i32 = 10_000;

// The arithmetic relies on these bounds: none of these sums and products overflows i64.
const _: () = assert!(TIME_NS_MAX.checked_add(2 * DURATION_NS_MAX).is_some());
const _: () = assert!(ROWS_MAX.checked_mul(PARTITIONS_MAX as i64).is_some());
const _: () = assert!(BYTES_MAX.checked_mul(PARTITIONS_MAX as i64).is_some());
const _: () = assert!(REQUEST_BYTES_MAX.checked_mul(TASKS_MAX as i64 + 1).is_some());
const _: () = assert!(
    (LOAD_FACTOR_PERCENT_MAX as i64 * GROUPS_TOTAL_MAX).checked_mul(WEIGHT_MAX as i64).is_some(),
    "groups_max is computed in i64"
);
const _: () = assert!((WEIGHT_MAX as i64).checked_mul(100 * LANES_MAX as i64).is_some());
const _: () = assert!(TIME_NS_MAX.checked_add(GANG_WAIT_SLICES * SLICE_NS_MAX).is_some());
const _: () = assert!((UNITS_MAX + WIDTH_MAX as i64).checked_mul(COST_MAX).is_some());

/// A field of a configuration with an unacceptable value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {found}; {allowed}")]
pub struct ConfigMistake {
    /// Name of the field in [`SchedulerConfig`], or `lanes[N].field`.
    pub field: String,
    /// Its value.
    pub found: String,
    /// The allowed values, worded to follow a semicolon.
    pub allowed: String,
    /// Another field that limits this one; `None` if there is none.
    pub against: Option<&'static str>,
}

/// Adds a bound to a placement policy: its steps write at most about `step_bytes_max` bytes to the journal. Without the
/// bound, a step decides everything that is due.
pub fn in_steps(placement_policy: &str, step_bytes_max: i64) -> String {
    format!("{placement_policy}/{step_bytes_max}")
}

/// True if the placement policy uses measured loads.
pub fn measures(config: &SchedulerConfig) -> bool {
    PlacementPolicy::parse(&config.placement_policy).is_some_and(|(policy, _)| policy.is_measured())
}

/// All mistakes of a scheduler configuration; empty if it is valid.
pub fn check_config(config: &SchedulerConfig) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    if PlacementPolicy::parse(&config.placement_policy).is_none() {
        let names = PLACEMENT_POLICIES.join(", ");
        mistakes.push(mistake(
            "placement_policy",
            &config.placement_policy,
            format!("it must be one of: {names}, each followed by `@VERSION` unless that is 1; `/BYTES` bounds the decisions of a step"),
        ));
    }
    if TaskPolicy::parse(&config.risk.policy).is_none() {
        let allowed = format!(
            "it must be one of: {} (version 1 may be left out), or `dqn:HASH` with the hash of a network",
            task_policies_listed()
        );
        mistakes.push(mistake("risk.policy", &config.risk.policy, allowed));
    }
    let ranges = [
        (
            "load_factor_percent",
            i64::from(config.load_factor_percent),
            100,
            i64::from(LOAD_FACTOR_PERCENT_MAX),
        ),
        ("lane_credit_rows", config.lane_credit_rows, 1, ROWS_MAX),
        ("lane_credit_bytes", config.lane_credit_bytes, 1, BYTES_MAX),
        ("lane_batches_max", i64::from(config.lane_batches_max), 1, i64::from(LANE_BATCHES_MAX)),
        ("batch_rows_max", config.batch_rows_max, 1, ROWS_MAX),
        ("row_deadline_ns", config.row_deadline_ns, 0, DURATION_NS_MAX),
        ("high_water_rows", config.high_water_rows, 1, ROWS_MAX),
        ("low_water_rows", config.low_water_rows, 0, ROWS_MAX),
        ("route_interval_ns", config.route_interval_ns, 0, DURATION_NS_MAX),
        ("balance_interval_ns", config.balance_interval_ns, 0, DURATION_NS_MAX),
        ("risk.slice_ns", config.risk.slice_ns, 1, SLICE_NS_MAX),
        ("risk.tasks_max", i64::from(config.risk.tasks_max), 1, i64::from(TASKS_MAX)),
        ("risk.bytes_max", config.risk.bytes_max, 1, REQUEST_BYTES_MAX),
        ("risk.quantum_ns", config.risk.quantum_ns, 0, DURATION_NS_MAX),
        ("risk.price_interval_ns", config.risk.price_interval_ns, 0, DURATION_NS_MAX),
        ("risk.critical_percent", i64::from(config.risk.critical_percent), 0, 100),
        ("risk.explore_ppm", i64::from(config.risk.explore_ppm), 0, i64::from(EXPLORE_PPM_MAX)),
        ("risk.predictor", i64::from(config.risk.predictor), 0, 1),
        ("risk.ageing_ns", config.risk.ageing_ns, 0, DURATION_NS_MAX),
    ];
    for (field, found, min, max) in ranges {
        if found < min || found > max {
            mistakes.push(mistake(field, found, format!("it must be from {min} to {max}")));
        }
    }
    if config.batch_rows_max > config.lane_credit_rows {
        let allowed = format!("a batch must fit into lane_credit_rows ({})", config.lane_credit_rows);
        let mistake = mistake("batch_rows_max", config.batch_rows_max, allowed);
        mistakes.push(ConfigMistake { against: Some("lane_credit_rows"), ..mistake });
    }
    if config.low_water_rows >= config.high_water_rows {
        let allowed = format!("it must be below high_water_rows ({})", config.high_water_rows);
        let mistake = mistake("low_water_rows", config.low_water_rows, allowed);
        mistakes.push(ConfigMistake { against: Some("high_water_rows"), ..mistake });
    }
    mistakes.extend(check_tenants(&config.risk.tenant_weights));
    mistakes.extend(config.breakers.iter().flat_map(check_breakers));
    mistakes.extend(check_queues(&config.risk.queues, config.risk.tasks_max));
    mistakes
}

fn check_queues(queues: &QueueConfig, tasks_max: i32) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    let ranges = [
        ("risk.delay_target_ns", queues.delay_target_ns, 0, DURATION_NS_MAX),
        ("risk.delay_interval_ns", queues.delay_interval_ns, 0, DURATION_NS_MAX),
        ("risk.in_flight_min", i64::from(queues.in_flight_min), 0, i64::from(TASKS_MAX)),
    ];
    for (field, found, min, max) in ranges {
        if found < min || found > max {
            mistakes.push(mistake(field, found, format!("it must be from {min} to {max}")));
        }
    }
    if queues.delay_target_ns > 0 && queues.delay_interval_ns == 0 {
        let allowed = "it must be positive if delay_target_ns is positive".to_owned();
        let mistake = mistake("risk.delay_interval_ns", 0, allowed);
        mistakes.push(ConfigMistake { against: Some("delay_target_ns"), ..mistake });
    }
    if queues.in_flight_min > 0 && queues.delay_target_ns == 0 {
        let allowed = "delay_target_ns must be positive, because the limit follows the delay".to_owned();
        let mistake = mistake("risk.in_flight_min", queues.in_flight_min, allowed);
        mistakes.push(ConfigMistake { against: Some("delay_target_ns"), ..mistake });
    }
    if queues.in_flight_min > tasks_max {
        let mistake = mistake(
            "risk.in_flight_min",
            queues.in_flight_min,
            format!("it must be up to tasks_max ({tasks_max})"),
        );
        mistakes.push(ConfigMistake { against: Some("tasks_max"), ..mistake });
    }
    if queues.quotas.len() > QUOTAS_MAX {
        let found = format!("a list of {}", queues.quotas.len());
        mistakes.push(mistake("risk.quotas", found, format!("there may be up to {QUOTAS_MAX} quotas")));
        return mistakes;
    }
    mistakes.extend(check_quotas(&queues.quotas, tasks_max));
    mistakes
}

fn check_quotas(quotas: &[Quota], tasks_max: i32) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    let mut wrong = |index: usize, field: &str, found: &dyn Display, allowed: String| {
        mistakes.push(mistake(format!("risk.quotas[{index}].{field}"), found, allowed));
    };
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (index, quota) in quotas.iter().enumerate() {
        let Quota { name, parent, guaranteed, lendable, limit, rate_per_s, burst } = quota;
        if !parent.is_empty() && !seen.contains(parent.as_str()) {
            wrong(index, "parent", parent, "it must be the name of an earlier quota".to_owned());
        }
        if name.is_empty() || name.len() > TEXT_BYTES_MAX || !seen.insert(name) {
            wrong(index, "name", name, format!("it must be named once, with 1 to {TEXT_BYTES_MAX} bytes"));
        }
        let ranges = [
            ("guaranteed", guaranteed, 0, TASKS_MAX),
            ("lendable", lendable, 0, *guaranteed),
            ("limit", limit, 0, TASKS_MAX),
            ("rate_per_s", rate_per_s, 0, QUOTA_RATE_MAX),
            ("burst", burst, 0, TASKS_MAX),
        ];
        for (field, found, min, max) in ranges {
            if !(min..=max).contains(found) {
                wrong(index, field, found, format!("it must be from {min} to {max}"));
            }
        }
        if *limit > 0 && limit < guaranteed {
            wrong(
                index,
                "limit",
                limit,
                format!("it must be at least the guaranteed number ({guaranteed}), or 0"),
            );
        }
    }
    let claimed = Quotas::new(if mistakes.is_empty() { quotas } else { &[] }).claimed();
    if claimed > i64::from(tasks_max) {
        let allowed = format!("guaranteed tasks that are not lendable must fit into tasks_max ({tasks_max})");
        let mistake = mistake("risk.quotas", format!("{claimed} tasks"), allowed);
        mistakes.push(ConfigMistake { against: Some("tasks_max"), ..mistake });
    }
    mistakes
}

fn check_breakers(config: &BreakerConfig) -> Vec<ConfigMistake> {
    let ranges = [
        ("breakers.losses_max", i64::from(config.losses_max), 0, i64::from(LOSSES_MAX)),
        ("breakers.window_ns", config.window_ns, 1, DURATION_NS_MAX),
        ("breakers.slow_percent", i64::from(config.slow_percent), 0, 10_000),
        ("breakers.slow_ns", config.slow_ns, 0, DURATION_NS_MAX),
        ("breakers.probe_ns", config.probe_ns, 1, DURATION_NS_MAX),
        ("breakers.probe_ns_max", config.probe_ns_max, config.probe_ns, DURATION_NS_MAX),
        ("breakers.probes", i64::from(config.probes), 1, i64::from(PROBES_MAX)),
        ("breakers.headroom_c", i64::from(config.headroom_c), 0, 100),
        ("breakers.memory_free_percent", i64::from(config.memory_free_percent), 0, 50),
    ];
    let outside = ranges.into_iter().filter(|(_, found, min, max)| found < min || found > max);
    outside
        .map(|(field, found, min, max)| mistake(field, found, format!("it must be from {min} to {max}")))
        .collect()
}

fn check_tenants(tenants: &[TenantWeight]) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    if tenants.len() > TENANT_WEIGHTS_MAX {
        let found = format!("a list of {}", tenants.len());
        let allowed = format!("there may be up to {TENANT_WEIGHTS_MAX} tenants");
        return vec![mistake("risk.tenant_weights", found, allowed)];
    }
    let mut seen = BTreeSet::new();
    for (index, TenantWeight { tenant, weight }) in tenants.iter().enumerate() {
        if tenant.len() > TEXT_BYTES_MAX {
            let allowed = format!("it may have up to {TEXT_BYTES_MAX} bytes");
            mistakes.push(mistake(format!("risk.tenant_weights[{index}].tenant"), tenant, allowed));
        } else if !seen.insert(tenant) {
            let allowed = "it must be named once".to_owned();
            mistakes.push(mistake(format!("risk.tenant_weights[{index}].tenant"), tenant, allowed));
        }
        if !(1..=TENANT_WEIGHT_MAX).contains(weight) {
            let allowed = format!("it must be from 1 to {TENANT_WEIGHT_MAX}");
            mistakes.push(mistake(format!("risk.tenant_weights[{index}].weight"), weight, allowed));
        }
    }
    mistakes
}

/// All mistakes of a list of lanes; empty if it is valid.
pub fn check_lanes(lanes: &[LaneSpec]) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    if lanes.is_empty() || lanes.len() > LANES_MAX {
        let found = format!("a list of {}", lanes.len());
        mistakes.push(mistake("lanes", found, format!("there must be from 1 to {LANES_MAX} lanes")));
        return mistakes;
    }
    for (index, spec) in lanes.iter().enumerate() {
        if usize::try_from(spec.lane) != Ok(index) {
            let allowed = format!("lanes are numbered from 0 in order, so it must be {index}");
            mistakes.push(mistake(format!("lanes[{index}].lane"), spec.lane, allowed));
        }
        if spec.weight < 0 || spec.weight > WEIGHT_MAX {
            let allowed = format!("it must be from 0 (stands by) to {WEIGHT_MAX}");
            mistakes.push(mistake(format!("lanes[{index}].weight"), spec.weight, allowed));
        }
        if !(1..=WIDTH_MAX).contains(&spec.width) {
            let allowed = format!("it must be from 1 to {WIDTH_MAX}");
            mistakes.push(mistake(format!("lanes[{index}].width"), spec.width, allowed));
        }
    }
    mistakes
}

/// True if groups move between host lanes and device lanes: routing is configured, and there are lanes of both kinds.
pub fn routes(config: &SchedulerConfig, lanes: &[LaneSpec]) -> bool {
    let has = |kind| lanes.iter().any(|lane| lane.kind() == kind);
    config.route_interval_ns > 0 && has(LaneKind::Host) && has(LaneKind::Device)
}

pub(crate) fn mistake(field: impl Into<String>, found: impl Display, allowed: String) -> ConfigMistake {
    ConfigMistake { field: field.into(), found: found.to_string(), allowed, against: None }
}

#[cfg(test)]
pub(crate) mod tests {
    use warptape_events::journal::RiskConfig;

    use super::*;
    use crate::policy::task::current_task_policy;

    pub(crate) fn good() -> SchedulerConfig {
        SchedulerConfig {
            placement_policy: "rendezvous".into(),
            placement_seed: 7,
            load_factor_percent: 125,
            lane_credit_rows: 8_192,
            lane_credit_bytes: 1 << 20,
            lane_batches_max: 2,
            batch_rows_max: 4_096,
            row_deadline_ns: 5_000_000,
            high_water_rows: 65_536,
            low_water_rows: 16_384,
            route_interval_ns: 0,
            balance_interval_ns: 0,
            risk: RiskConfig::default(),
            breakers: None,
        }
    }

    fn check(change: impl FnOnce(&mut SchedulerConfig), fields: &[&str]) {
        let mut config = good();
        change(&mut config);
        let found: Vec<_> = check_config(&config).into_iter().map(|mistake| mistake.field).collect();
        assert_eq!(found, fields);
    }

    fn check_lane_list(lanes: &[(i32, i32)], fields: &[&str]) {
        let lanes: Vec<_> = lanes.iter().map(|&(lane, weight)| LaneSpec::new(lane, "cpu", weight)).collect();
        let found: Vec<_> = check_lanes(&lanes).into_iter().map(|mistake| mistake.field).collect();
        assert_eq!(found, fields);
    }

    #[test]
    fn configurations_are_checked_field_by_field() {
        check(|_| (), &[]);
        check(|c| c.placement_policy = "dice".into(), &["placement_policy"]);
        check(|c| c.risk.policy = current_task_policy("linucb"), &[]);
        // A name without a version in a journal means the first version.
        for gone in ["linucb", "linucb@1", "linucb@2", "fair@2"] {
            check(|c| c.risk.policy = gone.into(), &["risk.policy"]);
        }
        check(|c| c.load_factor_percent = 99, &["load_factor_percent"]);
        check(|c| c.load_factor_percent = i32::MAX, &["load_factor_percent"]);
        check(|c| c.lane_credit_bytes = 0, &["lane_credit_bytes"]);
        check(|c| c.lane_batches_max = 0, &["lane_batches_max"]);
        check(|c| c.row_deadline_ns = -1, &["row_deadline_ns"]);
        check(|c| c.row_deadline_ns = i64::MAX, &["row_deadline_ns"]);
        check(|c| c.batch_rows_max = c.lane_credit_rows + 1, &["batch_rows_max"]);
        check(|c| c.route_interval_ns = -1, &["route_interval_ns"]);
        check(|c| c.placement_policy = in_steps("rendezvous", 1), &[]);
        for wrong in ["rendezvous/", "rendezvous/0", "rendezvous/-1", "rendezvous/x", "dice/1", "balanced@2"]
        {
            check(|c| c.placement_policy = wrong.into(), &["placement_policy"]);
        }
        check(|c| c.risk.slice_ns = 0, &["risk.slice_ns"]);
        check(|c| c.risk.tasks_max = TASKS_MAX + 1, &["risk.tasks_max"]);
        check(|c| c.risk.bytes_max = 0, &["risk.bytes_max"]);
        check(|c| c.risk.explore_ppm = 20_001, &["risk.explore_ppm"]);
        check(|c| c.risk.critical_percent = 101, &["risk.critical_percent"]);
        check(|c| c.risk.ageing_ns = -1, &["risk.ageing_ns"]);
        check(|c| c.risk.queues.in_flight_min = 1, &["risk.in_flight_min"]);
        check(|c| c.risk.queues.delay_target_ns = 1, &["risk.delay_interval_ns"]);
        let quota = |name: &str, parent: &str, guaranteed, lendable, limit| Quota {
            name: name.into(),
            parent: parent.into(),
            guaranteed,
            lendable,
            limit,
            rate_per_s: 0,
            burst: 0,
        };
        let quotas = |quotas: Vec<Quota>| move |c: &mut SchedulerConfig| c.risk.queues.quotas = quotas;
        check(quotas(vec![quota("a", "", 2, 1, 2), quota("b", "a", 0, 0, 0)]), &[]);
        check(quotas(vec![quota("b", "a", 0, 0, 0), quota("a", "", 0, 0, 0)]), &["risk.quotas[0].parent"]);
        check(quotas(vec![quota("a", "", 0, 0, 0); 2]), &["risk.quotas[1].name"]);
        let long = "a".repeat(TEXT_BYTES_MAX);
        check(quotas(vec![quota(&long, "", 0, 0, 0)]), &[]);
        check(quotas(vec![quota(&format!("{long}a"), "", 0, 0, 0)]), &["risk.quotas[0].name"]);
        check(quotas(vec![quota("a", "", 2, 3, 1)]), &["risk.quotas[0].lendable", "risk.quotas[0].limit"]);
        check(quotas(vec![quota("a", "", 10_001, 0, 0)]), &["risk.quotas"]);
        let weights = |weights: &[i32]| {
            weights.iter().map(|&weight| TenantWeight { tenant: "a".into(), weight }).collect()
        };
        check(
            |c| c.risk.tenant_weights = weights(&[TENANT_WEIGHT_MAX, 0]),
            &["risk.tenant_weights[1].tenant", "risk.tenant_weights[1].weight"],
        );
        check(|c| c.risk.tenant_weights = weights(&[1; TENANT_WEIGHTS_MAX + 1]), &["risk.tenant_weights"]);
        check(|c| c.low_water_rows = c.high_water_rows, &["low_water_rows"]);
    }

    #[test]
    fn all_mistakes_come_at_once() {
        check(
            |c| {
                c.placement_policy = String::new();
                c.lane_credit_rows = -1;
                c.batch_rows_max = 0;
                c.high_water_rows = i64::MIN;
            },
            &[
                "placement_policy",
                "lane_credit_rows",
                "batch_rows_max",
                "high_water_rows",
                "batch_rows_max",
                "low_water_rows",
            ],
        );
    }

    #[test]
    fn lanes_are_dense_and_weights_in_range() {
        check_lane_list(&[(0, 0), (1, WEIGHT_MAX)], &[]);
        check_lane_list(&[], &["lanes"]);
        check_lane_list(&[(0, 1); LANES_MAX + 1], &["lanes"]);
        check_lane_list(
            &[(0, -1), (2, 1), (2, WEIGHT_MAX + 1)],
            &["lanes[0].weight", "lanes[1].lane", "lanes[2].weight"],
        );
        let mistakes = |width| check_lanes(&[LaneSpec { width, ..LaneSpec::new(0, "cuda:0", 1) }]).len();
        assert_eq!([0, 1, WIDTH_MAX, WIDTH_MAX + 1].map(mistakes), [1, 0, 0, 1]);
    }

    #[test]
    fn a_mistake_says_what_is_allowed() {
        let mut config = good();
        config.load_factor_percent = 7;
        let said: Vec<_> = check_config(&config).iter().map(ToString::to_string).collect();
        assert_eq!(said, ["load_factor_percent is 7; it must be from 100 to 10000"]);
    }
}
