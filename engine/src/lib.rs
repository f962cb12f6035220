//! The engine makes all decisions of the pipeline, and causes no effects itself.
//!
//! ```text
//!   handle: events, with the time     poll: commands, in order
//!   ────────────────────────────► Core ───────────────────────►  lanes, source, log, requests
//!                                 │  step
//!                                 ▼
//!                             Scheduler ──► journal entries, which go into the next transaction
//! ```
//!
//! [`Core`] owns the partitions, steps the scheduler and executes its decisions on them. [`drive`] defines the order of
//! its events. Every effect becomes a [`Command`] for an [`Outside`]: threads, channels, a clock and a log in
//! production (`warptape_pipeline::runtime`), one seed in the simulation. So this crate has no thread, no lock, no
//! channel and no clock, which `clippy.toml` enforces. Every such choice is made here, so that the simulation tests it.

mod answered;
mod command;
mod commit;
mod config;
mod control;
mod drive;
mod error;
mod event;
mod lanes;
mod machine;
mod observer;
mod outage;
mod partition;
mod payload;
mod positions;
mod read_ticks;
mod recorder;
mod restore;
mod risk;
mod segment;
mod side_outputs;
mod snapshots;
mod split_symbols;
mod tally;
mod text;
mod tick_digest;
mod topics;

pub use answered::Answered;
pub use command::Command;
pub use commit::{CommitRequest, Receipt, RecordTimes, Sealed, SealedResult, SideOutput, SideTopic};
pub use config::{AcceptedLoss, Config, Limits, Times};
pub use control::{ControlAnswers, ControlRefusal, ReadControl};
pub use drive::{Outside, Waits, drive, settle, tell};
pub use error::{CoreError, RemovedTicks};
pub use event::{Assigned, CommitAttempt, Committed, Event, Position, ReadRequest, Stop};
pub use lanes::{BatchPart, GroupId, GroupState, Kept, LaneBatch, LaneCommand, LaneNews, PartOutput, Slice};
pub use machine::{Core, Doing, LaneStatus, PartitionStatus, Status, Wants};
pub use observer::Observer;
pub use outage::Outage;
pub use partition::{Accepted, PageId, ReadPage};
pub use payload::payload_of;
pub use positions::{Claims, JournalPositions, Odds};
pub use read_ticks::{ReadTicks, TickReader};
pub use recorder::RecordError;
pub use restore::{Restored, restore_from};
pub use risk::{Concluded, Conclusion, Haste, Preparation, Prepared};
pub use side_outputs::{
    dead_letter_of, encode_dead_letter_of, encode_late_tick_of, encode_row_letters, tick_record,
};
pub use snapshots::{PART_BYTES_MAX, PendingSnapshot, SnapshotPlace, snapshot_records};
pub use split_symbols::{SplitSymbol, SplitSymbols};
pub use tally::{
    Counts, REQUEST_OUTCOMES, ShadowTally, TASK_CLASSES, Tally, TimeBuckets, request_outcome, task_class,
};
pub use text::{LOST_REASON_BYTES_MAX, cut};
pub use tick_digest::tick_record_digest;
pub use topics::Topics;
