//! Shadow policies: their choices are recorded with the real ones, and have no effect.
//!
//! ```text
//!   a task arrives      ──► policies that push: whose queue would it join?           beside Assign, or before lanes take it
//!   a free lane begins  ──► policies that pull: which task would it have been given?    beside RunSlice
//! ```
//!
//! They are part of the laboratory: a build without the feature `lab` refuses a configuration with shadow policies.

#[cfg(feature = "lab")]
mod account;
#[cfg(feature = "lab")]
mod policies;
#[cfg(not(feature = "lab"))]
#[path = "shadow/missing.rs"]
mod policies;

use warptape_events::journal::{Decision, LaneId, Shadow, ShadowConfig, TaskId};

use crate::config::{ConfigMistake, mistake};
use crate::policy::task::{Push, TaskPolicy};

#[cfg(feature = "lab")]
pub(crate) use account::{Waiting, joins, would_begin};
pub(crate) use policies::Shadows;
pub(super) use policies::{arrived, begins};

/// Most shadow policies.
pub const SHADOWS_MAX: usize = 4;
/// Greatest number of choices between two that are recorded.
pub const SHADOW_EVERY_MAX: i32 = 1_000_000;

/// All mistakes of a configuration; empty if it is valid.
pub fn check_shadow(config: &ShadowConfig) -> Vec<ConfigMistake> {
    check_in(config, cfg!(feature = "lab"))
}

/// All mistakes of a configuration for a build with or without the laboratory.
fn check_in(config: &ShadowConfig, has_lab: bool) -> Vec<ConfigMistake> {
    let mut mistakes = Vec::new();
    let policies = &config.policies;
    if !has_lab {
        let allowed = "there must be none: this build is without the feature `lab`; `cargo build --release --features lab` builds one that \
                       asks policies in the shadow";
        return vec![mistake("shadow.policies", format!("{policies:?}"), allowed.to_owned())];
    }
    for (index, text) in policies.iter().enumerate() {
        let mut refuse = |allowed: &str| mistakes.push(mistake("shadow.policies", text, allowed.to_owned()));
        match TaskPolicy::parse(text) {
            None => refuse("each must be a policy of tasks, as risk.policy has them"),
            Some(TaskPolicy::Push(Push::LinUcb)) => {
                refuse("linucb cannot be in the shadow: it learns from what it decides itself");
            }
            Some(_) if policies[..index].contains(text) => refuse("each policy is asked once"),
            Some(_) => {}
        }
    }
    if policies.is_empty() || policies.len() > SHADOWS_MAX {
        let allowed = format!("there must be 1 to {SHADOWS_MAX} of them");
        mistakes.push(mistake("shadow.policies", format!("{policies:?}"), allowed));
    }
    if !(1..=SHADOW_EVERY_MAX).contains(&config.every) {
        let allowed = format!("it must be from 1 to {SHADOW_EVERY_MAX}");
        mistakes.push(mistake("shadow.every", config.every, allowed));
    }
    mistakes
}

/// Records the lanes that push policies would have chosen for a task, together with the lane that it joined, if any.
pub(super) fn beside_arrival(
    task: TaskId,
    lane: Option<LaneId>,
    choices: &[(i32, LaneId)],
    decisions: &mut Vec<Decision>,
) {
    for &(policy, instead) in choices {
        let lane_instead = Some(instead);
        decisions.push(Decision::Shadow(Shadow { policy, task, lane, lane_instead, task_instead: None }));
    }
}

/// Records the tasks that pull policies would have given to a lane, together with the task that it got.
pub(super) fn beside_slice(
    lane: LaneId,
    task: TaskId,
    choices: &[(i32, TaskId)],
    decisions: &mut Vec<Decision>,
) {
    for &(policy, instead) in choices {
        let (lane, task_instead) = (Some(lane), Some(instead));
        decisions.push(Decision::Shadow(Shadow { policy, task, lane, lane_instead: None, task_instead }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_the_laboratory_refuses_policies_in_the_shadow_and_says_which_build_has_them() {
        let config = ShadowConfig { policies: vec!["fair@1".to_owned()], every: 1 };
        assert_eq!(check_in(&config, true), []);
        let [refused] = &check_in(&config, false)[..] else { panic!("one mistake") };
        assert!(refused.allowed.contains("--features lab"), "{refused:?}");
    }
}
