//! The configuration of a run, and the scheduler's first input, which contains it.

use warptape_events::journal::{RiskConfig, SchedulerConfig, SplitPolicy, Started, TenantWeight, Trained};
use warptape_scheduler::{PLACEMENT_POLICIES, RULES, current_task_policy};

use crate::fleet::Fleet;
use crate::run::Scaling;
use crate::workload::Workload;

/// The configuration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Task policy: one of the scheduler's or of [`crate::BASELINES`].
    pub policy: String,
    /// Network of a policy `dqn:HASH`, made for the fleet's number of lanes; `None` for other policies.
    pub network: Option<Trained>,
    /// How tasks are split.
    pub split: SplitPolicy,
    /// Target service time of a slice, in nanoseconds.
    pub slice_ns: i64,
    /// Service after which the tasks of a tenant take turns, in nanoseconds; 0: they never do.
    pub quantum_ns: i64,
    /// Interval between solutions of the prices, in nanoseconds.
    pub price_interval_ns: i64,
    /// Share of the tasks that are not measured, because the fleet is still filling up. These are the first ones.
    pub warmup: f64,
    /// True if the outcome lists every slice that lanes ran.
    pub records: bool,
    /// Policy that sets the number of running lanes in a fleet with autoscaling. Under a baseline all lanes run.
    pub scaling: Scaling,
    /// Placement policy of the groups of ticks.
    pub placement: String,
    /// Production configuration that the run uses, with its split, quantum, price interval and the rest; `None` for the
    /// simulator's own. These options and the workload override it. Limits on known tasks are raised, and breakers are
    /// off.
    pub production: Option<Box<SchedulerConfig>>,
}

impl Options {
    /// Returns the options of a run under the production configuration.
    pub fn of_production(policy: impl Into<String>, production: &SchedulerConfig) -> Self {
        let slice_ns = production.risk.slice_ns;
        let production = Some(Box::new(production.clone()));
        Self { policy: policy.into(), slice_ns, production, ..Self::default() }
    }
}

impl Default for Options {
    /// Uses the current dynamic split, and runs the tasks of a tenant one after the other.
    fn default() -> Self {
        Self {
            policy: "fair".to_owned(),
            network: None,
            split: SplitPolicy::Dynamic,
            slice_ns: 2_000_000,
            quantum_ns: 0,
            price_interval_ns: 1_000_000_000,
            warmup: 0.1,
            records: false,
            scaling: Scaling::None,
            placement: PLACEMENT_POLICIES[0].to_owned(),
            production: None,
        }
    }
}

/// Returns the first input of a run.
pub(crate) fn started(fleet: &Fleet, workload: &Workload, options: &Options) -> Started {
    let weights = workload.tenants.iter();
    let weights = weights.map(|tenant| TenantWeight { tenant: tenant.name.clone(), weight: tenant.weight });
    let has_ticks = workload.ticks.is_some();
    let scheduler = match &options.production {
        Some(production) => (**production).clone(),
        None if has_ticks => beside_ticks(bare(options)),
        None => bare(options),
    };
    let scheduler = SchedulerConfig {
        placement_policy: options.placement.clone(),
        placement_seed: 0,
        breakers: None,
        risk: RiskConfig {
            slice_ns: options.slice_ns,
            tasks_max: 1 << 20,
            bytes_max: 1 << 40,
            tenant_weights: weights.collect(),
            policy: current_task_policy(&options.policy),
            ..scheduler.risk
        },
        ..scheduler
    };
    Started {
        node: "simulator".to_owned(),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        stage_config: "{}".to_owned(),
        scheduler,
        lanes: fleet.specs(has_ticks),
        // The simulator calls the autoscaling policy itself, under every task policy.
        autoscale: None,
        shadow: None,
        rules: RULES,
    }
}

/// Returns a configuration with only task rules, for experiments and training: no reserve, no ageing, no stealing.
fn bare(options: &Options) -> SchedulerConfig {
    SchedulerConfig {
        placement_policy: options.placement.clone(),
        placement_seed: 0,
        load_factor_percent: 125,
        lane_credit_rows: 4_096,
        lane_credit_bytes: 1 << 20,
        lane_batches_max: 2,
        batch_rows_max: 1_024,
        row_deadline_ns: 2_000_000,
        high_water_rows: 32_768,
        low_water_rows: 8_192,
        risk: RiskConfig {
            split: options.split,
            quantum_ns: options.quantum_ns,
            price_interval_ns: options.price_interval_ns,
            ..RiskConfig::default()
        },
        route_interval_ns: 0,
        balance_interval_ns: 0,
        breakers: None,
    }
}

/// Adds production's default settings for ticks, and for tasks beside ticks.
fn beside_ticks(scheduler: SchedulerConfig) -> SchedulerConfig {
    SchedulerConfig {
        lane_credit_rows: 262_144,
        lane_credit_bytes: 32 << 20,
        batch_rows_max: 65_536,
        row_deadline_ns: 5_000_000,
        high_water_rows: 1 << 20,
        low_water_rows: 262_144,
        route_interval_ns: 1_000_000_000,
        balance_interval_ns: 250_000_000,
        risk: RiskConfig { critical_percent: 25, ageing_ns: 1_000_000_000, ..scheduler.risk },
        ..scheduler
    }
}
