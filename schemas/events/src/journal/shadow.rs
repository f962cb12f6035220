//! Shadow policies of tasks: their choices are recorded with those of the deciding policy.

use serde::{Deserialize, Serialize};

use super::{LaneId, TaskId};
use crate::wire::Wire;

/// Shadow policies of tasks: their choices are recorded with those of the deciding policy, and have no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ShadowConfig {
    /// Names of the policies, as in `risk.policy`.
    pub policies: Vec<String>,
    /// Interval of recorded choices, at least 1: the policies are asked at one choice in `every`.
    pub every: i32,
}

/// Choice of a shadow policy, recorded with the choice that was made. It has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Shadow {
    /// Index of the policy in `policies` of `ShadowConfig`, from 0.
    pub policy: i32,
    /// Number of the task that was chosen or assigned.
    pub task: TaskId,
    /// Number of the lane that got the task, or whose queue it joined; null if the task arrived and free lanes take it
    /// later.
    pub lane: Option<LaneId>,
    /// Number of the lane whose queue the task would have joined; null if the policy gives tasks to free lanes.
    pub lane_instead: Option<LaneId>,
    /// Number of the task that the lane would have got; null if the policy gives lanes to arriving tasks.
    pub task_instead: Option<TaskId>,
}
