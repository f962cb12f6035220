//! The engine: one thread that reads, steps the scheduler, executes its decisions and commits.
//!
//! ```text
//!  source thread ──records──► engine ──batches──► lane threads
//!        ▲                    │  ▲  ▲                  │
//!        └──pause/resume/seek─┘  │  └───completions────┘
//!                      requests  │ receipts
//!                                ▼
//!                          commit thread
//! ```
//!
//! [`core`] is the part without threads, clock or log, which a simulation can drive as well.

mod answered;
mod beside;
mod clock;
mod commit;
mod config;
pub mod core;
mod dead_letter_headers;
mod error;
mod failpoint;
mod journal_tail;
mod lanes;
mod lifecycle;
mod measure;
mod opening;
mod ownership;
mod partition;
mod progress;
mod record_limits;
mod recorder;
mod requests;
mod restore;
mod risk;
mod run;
mod segment;
mod snapshots;
mod source;
mod summary;
mod telemetry;
mod transaction;
mod worker;

pub use answered::Answered;
pub use clock::Clock;
pub use commit::{CommitRequest, Receipt};
pub use config::{COMMIT_BYTES_MAX, EngineConfig, Retention, TopicPlan, Topics};
pub use error::EngineError;
pub(crate) use failpoint::faulty;
pub use lanes::{
    Background, BatchPart, GroupId, GroupState, Kept, LaneBatch, LaneCommand, LaneFault, LaneResult,
    LaneStages, PartOutput, Slice,
};
pub use partition::Accepted;
pub use progress::{LaneProgress, Progress};
pub use recorder::RecordError;
pub use requests::ReadRequest;
pub use restore::{Restored, restore, restore_from};
pub use risk::{Concluded, Conclusion, Preparation, Prepared};
pub use run::{Stop, run};
pub use snapshots::SnapshotPlace;
pub use summary::Summary;
