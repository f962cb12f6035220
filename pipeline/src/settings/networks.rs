//! Networks that the task policy `dqn:HASH` may name. Their files are read with the settings.

use warptape_scheduler::{check_shadow, dqn};
use warptape_schemas::journal::Trained;

use super::parts::Settings;
use super::relations::{Relation, relation};
use super::show::Effective;
use crate::network_file::read;

/// Reads the networks, and replaces hash prefixes in policies with whole hashes. Returns the mistakes found.
pub(super) fn take_up(
    settings: &mut Settings,
    effective: &[Effective],
    gpus_are_known: bool,
) -> Vec<Relation> {
    let mut mistakes = Vec::new();
    let is_counted = gpus_are_known || !settings.engine.devices.iter().any(|device| device == "auto");
    let lanes = is_counted.then_some(settings.lanes.specs.len());
    for path in &settings.risk.networks {
        let trained =
            read(path, lanes).and_then(|trained| match settings.task_policies.networks.contains(&trained) {
                true => Err("is listed twice".to_owned()),
                false => Ok(trained),
            });
        match trained {
            Ok(trained) => settings.task_policies.networks.push(trained),
            Err(why) => {
                let allowed = format!("network files that fit these lanes; {} {why}", path.display());
                mistakes.push(relation(effective, "risk.networks", None, &allowed));
            }
        }
    }
    if let Err(allowed) = name_whole(&mut settings.scheduler.risk.policy, &settings.task_policies.networks) {
        mistakes.push(relation(effective, "risk.policy", Some("risk.networks"), &allowed));
        // The other checks continue without the policy.
        settings.scheduler.risk.policy.clear();
    }
    for policy in settings.task_policies.shadow.iter_mut().flat_map(|shadow| &mut shadow.policies) {
        if let Err(allowed) = name_whole(policy, &settings.task_policies.networks) {
            mistakes.push(relation(effective, "risk.shadow", Some("risk.networks"), &allowed));
        }
    }
    let shadow = settings.task_policies.shadow.iter().filter(|_| mistakes.is_empty()).flat_map(check_shadow);
    let shadow: Vec<_> =
        shadow.map(|mistake| relation(effective, "risk.shadow", None, &mistake.allowed)).collect();
    mistakes.extend(shadow);
    mistakes
}

/// Drops policies that name networks, for commands that run no scheduler with this configuration: the networks' files
/// may be on another machine.
pub(super) fn leave(settings: &mut Settings) {
    if dqn::prefix_of(&settings.scheduler.risk.policy).is_some() {
        settings.scheduler.risk.policy.clear();
    }
    settings.task_policies.shadow = None;
}

/// Replaces the prefix of a network's hash in a policy with the whole hash. An error names the allowed values.
fn name_whole(policy: &mut String, networks: &[Trained]) -> Result<(), String> {
    let Some(prefix) = dqn::prefix_of(policy) else { return Ok(()) };
    let mut named = networks.iter().filter(|trained| trained.hash.starts_with(prefix));
    let name = |trained: &Trained| dqn::name(&trained.hash);
    match (named.next(), named.next()) {
        (Some(trained), None) => {
            *policy = name(trained);
            Ok(())
        }
        _ => {
            let there: Vec<_> = networks.iter().map(name).collect();
            Err(format!("the hash of exactly one network of risk.networks, which are [{}]", there.join(", ")))
        }
    }
}
