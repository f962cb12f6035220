//! Records in a schema registry's frame: which schema an id stands for, and which id a schema has.
//!
//! ```text
//!  producers ──► ticks ─────────────────────────► decoder, which asks SchemaIds
//!                   │ ids not met before               ▲
//!                   ▼                                  │
//!  SchemaIds ◄── RegistryClient ◄──HTTP──► registry    │
//!                   ▲                                  │
//!  engine, replay, tail ◄── single-object ── FramedLog ┘ ◄── 00 and id ── other topics
//! ```
//!
//! [`FramedLog`] stands between the log and everybody else. What it writes is in the registry's frame; what it reads of
//! Warptape's own topics is put back into single-object encoding, so that nothing above knows of the registry. Ticks
//! are left as they are: they are the producer's, and a dead letter holds them unchanged. It only sees to it that the
//! registry was asked for each id before the decoder meets it.
//!
//! A registry that has no schema of an id is an answer, and the record a dead letter. A registry that cannot be reached
//! is none: a partition of a running pipeline waits for it, and others go on; a command ends with what it asked for. One that answers for
//! other ids and for this one never does is taken to have none, after a while.
//!
//! Records whose schema id is in a header are put into the registry's frame, and are like all others from there on.

mod client;
mod error;
mod framed_consumer;
mod framed_log;
mod ids;
mod subjects;

pub use client::RegistryClient;
pub use error::{RegistryError, RegistryProblem};
pub use framed_log::FramedLog;
pub use ids::{SchemaIds, SchemaName};
pub use subjects::{Subject, subjects};
