//! Networks that the policy of tasks `dqn:HASH` may name: their files are read with the settings.

use warptape_scheduler::dqn;
use warptape_schemas::journal::Trained;

use super::parts::Settings;
use super::relations::{Relation, relation};
use super::show::Effective;
use crate::network_file::read;

/// Reads the networks, and has the policy name the whole hash of its own. The mistakes in either.
pub(super) fn take_up(
    settings: &mut Settings,
    effective: &[Effective],
    gpus_are_known: bool,
) -> Vec<Relation> {
    let mut mistakes = Vec::new();
    let is_counted = gpus_are_known || !settings.engine.devices.iter().any(|device| device == "auto");
    let lanes = is_counted.then_some(settings.lanes.len());
    for path in &settings.risk.networks {
        let trained = read(path, lanes).and_then(|trained| match settings.networks.contains(&trained) {
            true => Err("is there twice".to_owned()),
            false => Ok(trained),
        });
        match trained {
            Ok(trained) => settings.networks.push(trained),
            Err(why) => {
                let allowed = format!("files of networks for these lanes: {} {why}", path.display());
                mistakes.push(relation(effective, "risk.networks", None, &allowed));
            }
        }
    }
    let policy = &mut settings.scheduler.risk.policy;
    let Some(prefix) = dqn::prefix_of(policy) else { return mistakes };
    let mut named = settings.networks.iter().filter(|trained| trained.hash.starts_with(prefix));
    let name = |trained: &Trained| dqn::name(&trained.hash);
    match (named.next(), named.next()) {
        (Some(trained), None) => *policy = name(trained),
        _ => {
            let there: Vec<_> = settings.networks.iter().map(name).collect();
            let allowed =
                format!("the hash of one network; those of risk.networks are [{}]", there.join(", "));
            mistakes.push(relation(effective, "risk.policy", Some("risk.networks"), &allowed));
            // What else is wrong is said without it.
            policy.clear();
        }
    }
    mistakes
}
