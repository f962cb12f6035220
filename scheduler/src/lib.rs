//! The pure scheduling state machine: which lane owns which symbol group, when rows go to a lane, when a partition is
//! paused at its source, and what of risk tasks lanes do when there are no rows for them.
//!
//! ```text
//!   Input ──► admission ──► machine ──► placement      Place
//!   at_ns     (Err: bad      (applies)    │
//!              input,                     ▼
//!              nothing           service, routing,     Release
//!              changed)             balance, rebalance
//!                                         ▼
//!                                      dispatch        Dispatch
//!                                         │
//!                                         ▼
//!                                        risk           RunSlice, Split, Expire, Finish; WakeAt
//!                                         │
//!                                         ▼
//!                                    backpressure      Pause, Resume
//!                                         │
//!                                         ▼
//!                                     autoscale        Scale
//!                                         ▼
//!                                     state hash       chained in the journal
//! ```
//!
//! It owns decisions, not effects: the shell executes each [`Decision`](warptape_events::journal::Decision) and
//! reports back with an [`Input`](warptape_events::journal::Input). It must not know a clock (time comes in with the
//! step), randomness (draws are addressed by stream and counter), hash order, floats, I/O, or what rows mean.
//!
//! What the shell must do, beyond the words on each decision:
//!
//! - **Time** given to [`Scheduler::step`] never falls within a process life.
//! - **[`Restore`](warptape_events::journal::Restore)**: the scheduler has dropped the partition's waiting rows,
//!   its placement and its pause. The shell stops reading the partition, discards everything of it that waits on the
//!   host or is uncommitted, forgets that it was paused, ignores what lanes still send for its old epochs, restores it,
//!   and then sends `PartitionAssigned`. Between the two, `Arrived` for it is an error. Healthy lanes still send
//!   `Completed` for its batches in flight: these hold credit until then.
//! - **`PartitionAssigned`** always starts a partition unpaused and with nothing waiting, also when it was assigned
//!   before. Reading goes on from the snapshot's offset.
//! - **[`WakeAt`](warptape_events::journal::WakeAt)** sets one timer, always to an earlier time than before. It stays
//!   set when other inputs come, and is spent by any input at or past its time, or by `Woke`; `Woke` is needed only
//!   where no such input came. A wake that nobody needs any more is harmless.
//! - **[`in_steps`]** bounds what a step decides. What it has no room for (placements, batches, expiries, slices) follows in
//!   the next step, for which a wake is asked a nanosecond later.
//! - **[`Release`](warptape_events::journal::Release)**: the lane gets no more rows of the group. When it has finished
//!   those it has, the shell takes the group's state from it and sends `Released`; the group is then placed anew. If the
//!   lane is lost or the partition goes before, nothing is owed any more.
//! - **`Control`** has texts of 256 bytes at most; what is longer the shell answers itself. `Controlled` is the answer, to be given with
//!   the words that it has. What follows from it is done as ever.
//! - **[`RunSlice`](warptape_events::journal::RunSlice)**: the lane works on the units of the task, beside what batches
//!   it gets, and the shell sends `SliceDone` when it is done, also when the task has expired, was dropped or went
//!   with its partition meanwhile: until then the lane gets no other slice. The result counts only if the task is known.
//!   After a lane is lost `SliceDone` may still come: it changes nothing, and the units are run again.
//! - **[`Restore`](warptape_events::journal::Restore)** leaves tasks alone; `PartitionRevoked` drops those of the
//!   partition without a decision. A task is forgotten with `Expire` and `Finish`.
//! - **`Completed`** comes in the order of a lane's dispatches. For a batch that was in flight when its lane was lost
//!   it may still come: it changes nothing.
#![deny(clippy::float_arithmetic, clippy::disallowed_types, clippy::disallowed_methods)]

mod account;
mod admission;
mod audit;
pub mod autoscale;
mod backpressure;
mod balance;
mod breaker;
mod checkpoint;
mod classes;
mod config;
mod control;
mod dispatch;
mod error;
mod explain;
mod lanes;
mod learnt;
mod life;
pub mod log2;
mod machine;
mod name;
mod networks;
mod partitions;
mod placement;
mod policy;
mod ratio;
mod rebalance;
mod risk;
mod room;
mod routing;
mod service;
mod service_curve;
mod state_hash;
mod topology;
mod views;

pub use account::{Choice, Comparison, Condition, Instead, Measure, Otherwise, Subject, Term};
pub use checkpoint::CheckpointError;
pub use config::{
    BYTES_MAX, ConfigMistake, GROUPS_PER_PARTITION_MAX, GROUPS_TOTAL_MAX, LANES_MAX, NETWORKS_MAX,
    PARTITIONS_MAX, QUOTA_RATE_MAX, ROWS_MAX, RULES, STEP_BYTES_MAX, TASKS_MAX, TENANT_WEIGHT_MAX,
    TIME_NS_MAX, UNITS_MAX, WEIGHT_MAX, check_config, check_lanes, in_steps, measures, routes,
};
pub use dispatch::NextBatch;
pub use error::StepError;
pub use explain::{Explanation, GroupElsewhere, LaneExplanation};
pub use machine::Scheduler;
pub use partitions::PartitionPhase;
pub use policy::placement::PLACEMENT_POLICIES;
pub use policy::task::{TASK_POLICIES, current_task_policy, dqn};
pub use risk::{SHADOW_EVERY_MAX, SHADOWS_MAX, check_shadow};
pub use views::{InFlightBatch, LaneLoad, PartitionLoad, Placement, QuotaLoad, WaitingRows};
