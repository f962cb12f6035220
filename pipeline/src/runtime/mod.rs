//! The engine's shell: threads, channels, a clock and a log around `warptape_engine::Core`, which makes all decisions.
//!
//! ```text
//!  source thread ──records──► engine ──batches──► lane threads
//!        ▲                    │  ▲  ▲                  │
//!        └──pause/resume/seek─┘  │  └───completions────┘
//!                      requests  │ receipts
//!                                ▼
//!                          commit thread
//! ```

mod anchoring;
mod background;
mod breaker;
mod commit;
mod config;
mod controls;
mod dead_letter_headers;
mod error;
mod failpoint;
mod fence;
mod figures;
mod holding;
mod journal_tail;
mod journals;
mod lane_threads;
mod lanes;
mod lifecycle;
mod measure;
mod opening;
mod pages;
mod preparing;
mod process_log;
mod progress;
mod record_limits;
mod requests;
mod restore;
mod run;
mod segment;
mod source;
mod summary;
mod telemetry;
#[cfg(test)]
mod tests;
mod tracer;
mod transaction;
mod worker;
mod written;

use crate::clock::Clock;
pub use anchoring::Anchoring;
pub(crate) use breaker::words as breaker_words;
pub use commit::records_of;
pub use config::{COMMIT_BYTES_MAX, EngineConfig, Retention, TopicPlan, topic_specs};
pub use error::EngineError;
pub(crate) use failpoint::faulty;
pub(crate) use journal_tail::needed_from;
pub use lanes::{ConfiguredLanes, DeviceSlices, LaneResult, LaneStages, LaneWork, OpenLanes};
pub use progress::{Committed, EngineView, LaneProgress, Latencies, Progress};
pub use requests::{WAIT_HEADER, read_request};
pub use run::run;
pub use summary::Summary;
pub use warptape_engine::{Stop, Topics};
