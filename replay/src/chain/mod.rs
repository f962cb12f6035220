//! Explains why an output was late. The explanation is the chain of causes from the publication of a record to the
//! visible signal, with the wait at each step.
//!
//! ```text
//!  tick record ──► Arrival ──► Batch ──► complete ──► sealed ──► committed      the journal's history
//!      │                         │
//!      created                   Scheduler::explain: why then, which lanes      stepped again, from the nearest checkpoint
//! ```
//!
//! All times are from the log: create times of records, times of journal entries, and those in `CommitEnded`. The waits
//! are differences of consecutive times, so they add up to the total. Facts that are not in the journal are listed as
//! unknown.

mod batch;
mod context;
mod dealt;
mod facts;
mod find;
mod follow;
mod held;
mod lane;
mod request;
mod rows;
mod signal;
mod slowest;
mod waits;
mod way;

pub(crate) use context::Context;
pub(crate) use rows::row_waits;

pub use batch::{BatchChain, PartFacts, SymbolRows, why_batch};
pub use facts::{ArrivalFacts, BatchFacts, Chain, ProcessFacts, SignalFacts, TickFacts, TransactionFacts};
pub use find::{SignalOfSymbol, find_signal};
pub use held::{Held, Holder, partition_argument};
pub use lane::{LaneName, LaneWhy, RowTime, why_lane};
pub use request::{Clock, RequestChain, RequestFacts, TaskFacts, why_request};
pub use signal::why_signal;
pub use slowest::{SLOWEST_MAX, Seen, Slow, Slowest, SlowestOptions, slowest, slowest_with};
pub use waits::{Step, Wait, flight};
