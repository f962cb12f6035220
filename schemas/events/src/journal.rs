//! The scheduler's inputs and decisions, and the journal entry that records both.
//!
//! These types are the journal's interface: `schemas/avro/journal_entry.avsc` is generated from them, doc comments
//! included. Apart from encoding, they only derive the kind of a device from its name. The rules for decisions are in
//! the crate `scheduler`.

mod autoscale;
mod config;
mod decisions;
mod inputs;
mod shadow;
mod tasks;

use serde::{Deserialize, Serialize};

use crate::hex::Digits;
use crate::wire::Wire;

pub use crate::control::{
    BreakerMode, ChoosePolicy, ControlCommand, ControlOutcome, DrainLane, Rebalance, SetBreaker,
    SetWatermark, UndrainLane, WeighLane, WeighTenant,
};
pub use autoscale::*;
pub use config::*;
pub use decisions::*;
pub use inputs::*;
pub use shadow::*;
pub use tasks::*;

/// Index of a lane within one process, dense from 0 in configuration order.
pub type LaneId = i32;

/// Partition number of the source topic.
pub type PartitionId = i32;

/// Index of a symbol group within its partition, dense from 0.
pub type GroupIndex = i32;

// Replays decode and move millions of entries, each as large as the largest input. So large inputs that are rare are in
// a `Box`.
const _: () = assert!(size_of::<JournalEntry>() <= 296);

/// One step of the scheduler: its input, its decisions, and the hashes that prove both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Wire)]
pub struct JournalEntry {
    /// Sequence number of the entry. It rises by one from 0 over the life of the journal, restarts included.
    pub sequence: i64,
    /// Time of the step, in nanoseconds since the Unix epoch; it never falls within a process life.
    pub at_ns: i64,
    /// Input of the step.
    pub input: Input,
    /// Decisions of the step, in order.
    pub decisions: Vec<Decision>,
    /// Hash of the scheduler's state before the step, as 16 lower-case hex digits in JSON.
    pub state_hash: Digits<16>,
    /// BLAKE3 hash that chains the entry to the previous one, as 64 lower-case hex digits in JSON. It covers the
    /// digits of the previous entry's hash (64 zeros for the first entry), then this entry's Avro encoding up to this
    /// field. The 10-byte single-object header is not hashed. The chain shows if an entry was changed, removed or added.
    /// It is the last field in every version.
    pub hash: Digits<64>,
}
