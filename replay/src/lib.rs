//! Replays recorded runs. It reads a log, and steps the same inputs through the production scheduler and the same ticks
//! through the production stages. It compares the results with the recording.
//!
//! ```text
//!  journal ──► chain, sequence ──► Scheduler::step ──► state hash, decisions ──┐
//!     └─────► what is sealed ──► committed offsets, digests of ticks ──────────┤
//!                                                                             ├──► Report, with the first Divergence
//!  ticks ──► PartitionIntake ──► GroupStage ──► SignalMerge ──► signals ───────┤
//!     └──┬──────────└────────────────└─► snapshots ────────────► late, dead ───┤
//!        └► PartitionIntake, as of a task's decision ─► RiskTask ──► results ───┘
//! ```
//!
//! The crate reads logs, and writes none except exported files (`export`). It has no rules of its own about what is
//! right: only the production crates do. It needs no Kafka, Redis or GPU, and reads no clock.

mod about;
mod accounts;
mod admissions;
pub mod anchor;
mod arrivals;
mod assignments;
mod cause;
pub mod chain;
mod comparison;
mod controls;
mod cut;
pub mod debugger;
pub mod diff;
mod difference;
mod divergence;
mod entries;
mod error;
mod export;
pub mod fixture;
mod follower;
pub mod history;
mod journal;
mod life;
mod market_fold;
mod moment;
mod options;
mod outputs;
mod outside;
mod ownerships;
mod partition_reader;
mod read_ahead;
mod recorded;
mod report;
mod rerun;
mod risk;
mod segments;
mod snapshot;
mod started;
mod states;
mod tally;
mod unaccounted;
mod verify;
mod why;

pub use about::MODELLED;
pub use difference::Difference;
pub use divergence::{
    AnchorDivergence, AnchorProblem, Divergence, JournalDivergence, JournalEnd, Orphans, OutputDivergence,
    OutputProblem, SealedDivergence, TicksDivergence, Unaccounted,
};
pub use error::ReplayError;
pub use export::{
    ABOUT_KEY, ABOUT_TOPIC, Bound, ExportOptions, ExportProgress, Exported, ExportedTopic, Planned,
    SCHEMA_ID_KEY, SCHEMA_KEY, Window, export, first_signal_from, last_start_before, planned,
};
pub use follower::{Followed, Follower};
pub use moment::{JournalReach, iso, utc};
pub use options::{OutputOptions, VerifyOptions};
pub use partition_reader::PartitionReader;
pub use recorded::{Recorded, read_recorded};
pub use report::{OutputCounts, Phase, ReplayProgress, Report};
pub use segments::{StageConfigChange, stage_config_changes};
pub use started::started_of;
pub use verify::{verify, verify_journal};
pub use why::{Before, Explained, Why, WhyOptions, why};
