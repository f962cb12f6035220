//! What the scheduler knows beside its lanes, partitions and tasks: one field for each feature that has a memory of its own.
//!
//! In the bytes of a checkpoint it stands behind the rest of the state ([`crate::checkpoint`]). A field that is its default adds
//! nothing to the state hash, so that states without the feature have the hash that they had before it was there.

use serde::{Deserialize, Serialize};

use crate::autoscale;
use crate::config::FIRST_RULES;
use crate::networks::Networks;
use crate::policy::task::{Push, TaskPolicy};
use crate::risk::Shadows;
use crate::risk::bandit::Bandit;
use crate::state_hash::{Component, StateHash, hash_component};

/// What policies have learnt, and behind it what stands apart in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Learnt {
    /// Networks that policies may name.
    pub(crate) networks: Networks,
    /// What the policy `linucb` learns, while it decides.
    pub(crate) bandit: Option<Bandit>,
    #[serde(skip)]
    pub(crate) later: Later,
}

/// What stands behind [`Learnt`] in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Later {
    /// How many lanes are wanted; none where that is not judged.
    pub(crate) autoscale: Option<autoscale::Live>,
    /// Policies that are asked beside the one that decides.
    pub(crate) shadows: Option<Shadows>,
    /// By which rules is decided: part of the hash of the configuration.
    #[serde(skip)]
    pub(crate) rules: Rules,
    /// True if the slice that was for the aged task that has waited longest passed another one instead: the next one that does not is for
    /// it. It came after checkpoint version 4.
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
    /// Sets what is owed.
    pub(crate) fn owe_aged(&mut self, owes: bool, hash: &mut StateHash) {
        let mut before = self.owed_hash();
        self.owes_aged = owes;
        let now = self.owed_hash();
        hash.replace(&mut before, now);
    }

    /// Nothing where nothing is owed.
    fn owed_hash(&self) -> u64 {
        if self.owes_aged { hash_component(Component::AgedOwed, []) } else { 0 }
    }
}

impl Learnt {
    /// Nothing, by these rules.
    pub(crate) fn by_rules(rules: i32) -> Self {
        Self { later: Later { rules: Rules(rules), ..Later::default() }, ..Self::default() }
    }

    /// Hash of everything here, by walking.
    pub(crate) fn walked_hash(&self) -> u64 {
        let bandit = self.bandit.as_ref().map_or(0, Bandit::walked_hash);
        let autoscale = self.later.autoscale.as_ref().map_or(0, autoscale::Live::walked_hash);
        let shadows = self.later.shadows.as_ref().map_or(0, Shadows::walked_hash);
        let later = autoscale.wrapping_add(shadows).wrapping_add(self.later.owed_hash());
        self.networks.walked_hash().wrapping_add(bandit).wrapping_add(later)
    }

    /// Another policy decides from now on: what the one before learnt is forgotten.
    pub(crate) fn choose_policy(&mut self, policy: TaskPolicy, lanes: usize, hash: &mut StateHash) {
        if let Some(bandit) = self.bandit.take() {
            bandit.forget(hash);
        }
        let learns = policy == TaskPolicy::Push(Push::LinUcb);
        self.bandit = learns.then(|| Bandit::new(lanes, hash));
    }
}
