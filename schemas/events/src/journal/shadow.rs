//! Shadow policies of tasks: their choices are recorded beside those of the policy that decides.

use serde::{Deserialize, Serialize};

use super::{LaneId, TaskId};
use crate::wire::Wire;

/// Which task policies are asked beside the one that decides, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct ShadowConfig {
    /// Names of the policies, as `risk.policy` has them.
    pub policies: Vec<String>,
    /// They are asked at one choice of so many, at least 1.
    pub every: i32,
}

/// What a policy in the shadow would have done. Nothing follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct Shadow {
    /// Index of the policy in [`ShadowConfig::policies`].
    pub policy: i32,
    /// The task of the choice.
    pub task: TaskId,
    /// The lane that it was given to, or whose queue it joined; null: it arrived, and lanes will take it when they are free.
    pub lane: Option<LaneId>,
    /// The lane whose queue it would have joined; null: the policy gives tasks to lanes that are free.
    pub lane_instead: Option<LaneId>,
    /// The task that the lane would have been given; null: the policy gives lanes to tasks that arrive.
    pub task_instead: Option<TaskId>,
}
