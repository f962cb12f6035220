//! Records in a schema registry's frame: the schema of an id, and the id of a schema.
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
//! [`FramedLog`] stands between the log and all else. It writes records in the registry's frame. Records of Warptape's
//! own topics are read in single-object encoding, so that nothing above knows of the registry. Ticks stay unchanged,
//! because they belong to the producer, and a dead letter holds them unchanged. It only ensures that each id was asked
//! for before the decoder meets it.
//!
//! A registry's answer that it has no schema for an id is final, and the record is a dead letter. An unreachable
//! registry gives no answer: a partition of a running pipeline waits for it, and others go on. A command ends with the
//! ids that it asked for. If a registry answers for other ids, but never for this one, the id counts as unknown after a
//! while.
//!
//! Records with a schema id in a header are converted to the registry's frame, and treated like all others then.

mod asyncapi;
mod client;
mod error;
mod framed_consumer;
mod framed_log;
mod ids;
mod subjects;

pub use asyncapi::asyncapi;
pub use client::RegistryClient;
pub use error::{RegistryError, RegistryProblem};
pub use framed_log::FramedLog;
pub use ids::{SchemaIds, SchemaName};
pub use subjects::{Subject, subjects};
