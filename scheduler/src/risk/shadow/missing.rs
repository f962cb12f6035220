//! Stand-in for a build without the feature `lab`: there are no shadow policies, because admission refuses a
//! configuration with some.

use serde::{Deserialize, Serialize};
use warptape_events::journal::{LaneId, ShadowConfig, TaskClass, TaskId};

use crate::life::Life;
use crate::policy::task::TaskPolicy;
use crate::state_hash::StateHash;

/// Shadow policies, which this build does not have. The type has no values, so a checkpoint with shadow policies cannot
/// be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Shadows {}

impl Shadows {
    pub(crate) fn new(_: &ShadowConfig, _: &mut StateHash) -> Self {
        unreachable!("admission refuses policies in the shadow")
    }

    pub(crate) fn names(&self) -> &[String] {
        match *self {}
    }

    pub(crate) fn any(&self, _: impl Fn(TaskPolicy) -> bool) -> bool {
        match *self {}
    }

    pub(crate) fn walked_hash(&self) -> u64 {
        match *self {}
    }
}

/// Returns no choices.
pub(crate) fn arrived(_: &mut Life, _: TaskId) -> Vec<(i32, LaneId)> {
    Vec::new()
}

/// Returns no choices.
pub(crate) fn begins(_: &mut Life, _: LaneId, _: bool, _: TaskClass) -> Vec<(i32, TaskId)> {
    Vec::new()
}
