//! The pure scheduling state machine. It decides which lane owns which symbol group, when rows go to a lane, and when a
//! partition is paused at its source. Lanes without rows get units of risk tasks.
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
//! It owns decisions, not effects: the shell executes each [`Decision`](warptape_events::journal::Decision) and reports
//! back with an [`Input`](warptape_events::journal::Input). It must not know a clock, randomness, hash order, floats,
//! I/O, or what rows mean. Time comes in with the step, and draws are addressed by stream and counter.
//!
//! Duties of the shell, beyond the words on each decision:
//!
//! - **Time** given to [`Scheduler::step`] never decreases within a process life.
//! - **[`Restore`](warptape_events::journal::Restore)**: the scheduler has dropped the partition's waiting rows, its
//!   placement and its pause. The shell stops reading the partition, and discards everything of it that waits on the
//!   host or is uncommitted. It forgets the pause, and ignores what lanes still send for old epochs. It restores the
//!   partition and then sends `PartitionAssigned`. `Arrived` for the partition is an error until then. Healthy lanes
//!   still send `Completed` for its batches in flight, which hold credit until then.
//! - **`PartitionAssigned`** starts a partition unpaused and with nothing waiting, even if it was assigned before.
//!   Reading goes on from the snapshot's offset.
//! - **[`WakeAt`](warptape_events::journal::WakeAt)** sets one timer, always to an earlier time than before. It stays
//!   set when other inputs come. Any input at or past its time spends it; the shell sends `Woke` only if no such input
//!   came. A superfluous wake is harmless.
//! - **[`in_steps`]** bounds what a step decides. Placements, batches, expiries and slices beyond that follow in the
//!   next step, for which a wake is set a nanosecond later.
//! - **[`Release`](warptape_events::journal::Release)**: the lane gets no more rows of the group. The shell takes the
//!   group's state from the lane when it has finished the rows that it has, and sends `Released`. The group is then
//!   placed anew. No `Released` is due if the lane is lost or the partition goes before.
//! - **`Control`** has texts of at most 256 bytes; the shell itself answers a command with longer ones. `Controlled` is
//!   the answer, and the shell passes on its words. The consequences are ordinary decisions.
//! - **[`RunSlice`](warptape_events::journal::RunSlice)**: the lane works on the units of the task, beside its batches,
//!   and the shell sends `SliceDone` at the end. It does so even if the task has expired, was dropped or went with its
//!   partition. Until then the lane gets no other slice, except one of a critical task that passes this one. The result
//!   counts only if the task is known. `SliceDone` may still come after the lane is lost: it changes nothing, and the
//!   units are run again.
//! - **[`Restore`](warptape_events::journal::Restore)** leaves tasks alone; `PartitionRevoked` drops those of the
//!   partition without a decision. `Expire`, `Shed` and `Finish` end a task.
//! - **`Completed`** comes in the order of a lane's dispatches. It may still come for a batch that was in flight when
//!   its lane was lost, and then changes nothing.
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
    TIME_NS_MAX, UNITS_MAX, WAVE_RULES, WEIGHT_MAX, WIDTH_MAX, check_config, check_lanes, in_steps, measures,
    routes,
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
