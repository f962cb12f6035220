//! State hash of the configuration of risk tasks. A field with its default adds nothing, so that states from before the
//! field existed keep their hashes.

use warptape_events::journal::{QueueConfig, Quota, RiskConfig, TenantWeight};
use xxhash_rust::xxh3::xxh3_64;

use crate::state_hash::{Component, hash_component};

/// Hash of the configuration; 0 for the default.
pub(crate) fn config_hash(config: &RiskConfig) -> u64 {
    if *config == RiskConfig::default() {
        return 0;
    }
    let tenants = config.tenant_weights.iter().map(|TenantWeight { tenant, weight }| {
        let fields = [xxh3_64(tenant.as_bytes()) as i64, i64::from(*weight)];
        hash_component(Component::RiskConfig, fields)
    });
    let rest = [config.slice_ns, i64::from(config.tasks_max), config.split as i64];
    // The default adds nothing here either.
    let bytes = match config.bytes_max == RiskConfig::default().bytes_max {
        true => 0,
        false => hash_component(Component::RiskBytes, [config.bytes_max]),
    };
    let quantum = match config.quantum_ns {
        0 => 0,
        quantum_ns => hash_component(Component::RiskQuantum, [quantum_ns]),
    };
    let policy = match (config.policy.as_str(), config.price_interval_ns) {
        ("", 0) => 0,
        (policy, interval_ns) => {
            hash_component(Component::TaskPolicy, [xxh3_64(policy.as_bytes()) as i64, interval_ns])
        }
    };
    let waits = match (config.critical_percent, config.ageing_ns) {
        (0, 0) => 0,
        (percent, ageing_ns) => hash_component(Component::RiskWaits, [i64::from(percent), ageing_ns]),
    };
    let queues = queues_hash(&config.queues);
    let explores = match config.explore_ppm {
        0 => 0,
        explore_ppm => hash_component(Component::Explores, [i64::from(explore_ppm)]),
    };
    let predictor = match config.predictor {
        0 => 0,
        version => hash_component(Component::Predictor, [i64::from(version)]),
    };
    let steals = match config.steals {
        false => 0,
        true => hash_component(Component::Stealing, []),
    };
    let tenants = tenants.fold(hash_component(Component::RiskConfig, rest), u64::wrapping_add);
    [bytes, quantum, policy, waits, predictor, queues, explores, steals]
        .into_iter()
        .fold(tenants, u64::wrapping_add)
}

/// Hash of the configuration of queues; 0 for the default.
fn queues_hash(config: &QueueConfig) -> u64 {
    if *config == QueueConfig::default() {
        return 0;
    }
    let quotas = (0..).zip(&config.quotas).map(|(index, quota)| {
        let Quota { name, parent, guaranteed, lendable, limit, rate_per_s, burst } = quota;
        let names = [name, parent].map(|name| xxh3_64(name.as_bytes()) as i64);
        let [guaranteed, lendable, limit, rate, burst] =
            [guaranteed, lendable, limit, rate_per_s, burst].map(|number| i64::from(*number));
        hash_component(
            Component::QueueConfig,
            [index, names[0], names[1], guaranteed, lendable, limit, rate, burst],
        )
    });
    let rest = [config.delay_target_ns, config.delay_interval_ns, i64::from(config.in_flight_min)];
    quotas.fold(hash_component(Component::QueueConfig, rest), u64::wrapping_add)
}
