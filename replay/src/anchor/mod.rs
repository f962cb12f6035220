//! Anchors: signed statements of how far a journal has come, by which a stranger knows who wrote it, and a copy kept elsewhere shows what was cut
//! off, rolled back or written anew.
//!
//! An entry's hash covers all entries before it, so a statement about one entry is one about all of them. Each commit of a process that signs has
//! its anchor in a header of its last journal record, so that both are committed or neither is; journals of processes that do not sign are what
//! they always were.

mod anchored;
mod check;
mod key;
mod statement;
mod told;

pub use anchored::{Anchored, AnchoredError};
pub use key::{KeyError, PublicKey, SigningKey};
pub use statement::{Anchor, HEADER, Statement, Unreadable};
pub use told::{LIFE_HEADER, Told};

pub(crate) use check::AnchorCheck;
