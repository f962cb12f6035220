//! Records in a schema registry's frame: looks up schemas by id, and ids by schema.
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
//! [`FramedLog`] is between the log and everything else. It writes records in the registry's frame. It returns records
//! of Warptape's own topics in single-object encoding, so that its callers need not know the registry. Ticks stay
//! unchanged, because they belong to the producer, and dead letters must hold them unchanged. For ticks it only ensures
//! that each id is looked up before the decoder needs it.
//!
//! If a registry answers that it has no schema for an id, the answer is final, and the record becomes a dead letter. An
//! unreachable registry gives no answer: a partition of a running pipeline waits for it, while others go on. A command
//! ends, and names the ids that it asked for. If a registry answers for other ids but never for one, that id counts as
//! unknown after a while.
//!
//! Records with a schema id in a header are converted to the registry's frame, and then treated like all others.

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
