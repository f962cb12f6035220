//! Knowledge that belongs to no lane, partition or task: one field for each feature with a memory of its own.
//!
//! A checkpoint stores it after the rest of the state ([`crate::checkpoint`]). A field with its default adds nothing to
//! the state hash, so that states from before the feature keep their hashes.

use serde::{Deserialize, Serialize};

use crate::autoscale;
use crate::config::FIRST_RULES;
use crate::networks::Networks;
use crate::policy::task::{Push, TaskPolicy};
use crate::risk::Shadows;
use crate::risk::bandit::Bandit;
use crate::state_hash::{Component, StateHash, hash_component};

/// Knowledge that policies have learnt, and fields that checkpoints store separately.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learnt {
    /// Networks that policies may name.
    pub(crate) networks: Networks,
    /// The learner of the policy `linucb`; `None` under other policies.
    pub(crate) bandit: Option<Bandit>,
    #[serde(skip)]
    pub(crate) later: Later,
}

/// Fields that a checkpoint stores after [`Learnt`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Later {
    /// Autoscaling; `None` if it is off.
    pub(crate) autoscale: Option<autoscale::Live>,
    /// Shadow policies; `None` if there are none.
    pub(crate) shadows: Option<Shadows>,
    /// Rules in force, which are part of the hash of the configuration.
    #[serde(skip)]
    pub(crate) rules: Rules,
    /// True if the slice that was due for the longest-waiting aged task went to a task that passed another slice. The
    /// next slice that passes none is then for the aged task. The field was added after checkpoint version 4.
    #[serde(skip)]
    pub(crate) owes_aged: bool,
}

/// A number of [`crate::RULES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rules(pub(crate) i32);

impl Default for Rules {
    fn default() -> Self {
        Self(FIRST_RULES)
    }
}

impl Later {
    /// Sets `owes_aged`.
    pub(crate) fn owe_aged(&mut self, owes: bool, hash: &mut StateHash) {
        let mut before = self.owed_hash();
        self.owes_aged = owes;
        let now = self.owed_hash();
        hash.replace(&mut before, now);
    }

    /// Hash of `owes_aged`; 0 if it is false.
    fn owed_hash(&self) -> u64 {
        if self.owes_aged { hash_component(Component::AgedOwed, []) } else { 0 }
    }
}

impl Learnt {
    /// The initial state under these rules.
    pub(crate) fn by_rules(rules: i32) -> Self {
        Self { later: Later { rules: Rules(rules), ..Later::default() }, ..Self::default() }
    }

    /// Hash of everything here, computed by walking over it.
    pub(crate) fn walked_hash(&self) -> u64 {
        let bandit = self.bandit.as_ref().map_or(0, Bandit::walked_hash);
        let autoscale = self.later.autoscale.as_ref().map_or(0, autoscale::Live::walked_hash);
        let shadows = self.later.shadows.as_ref().map_or(0, Shadows::walked_hash);
        let later = autoscale.wrapping_add(shadows).wrapping_add(self.later.owed_hash());
        self.networks.walked_hash().wrapping_add(bandit).wrapping_add(later)
    }

    /// Switches to another policy, and forgets what the previous one learnt.
    pub(crate) fn choose_policy(&mut self, policy: TaskPolicy, lanes: usize, hash: &mut StateHash) {
        if let Some(bandit) = self.bandit.take() {
            bandit.forget(hash);
        }
        let learns = policy == TaskPolicy::Push(Push::LinUcb);
        self.bandit = learns.then(|| Bandit::new(lanes, hash));
    }
}
