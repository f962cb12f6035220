//! Anchors: signed statements of how far a journal has come. They prove to a stranger who wrote it; a copy kept
//! elsewhere shows whether it was cut off, rolled back or rewritten.
//!
//! An entry's hash covers all entries before it, so a statement about one entry covers them all. Each commit of a
//! process that signs has its anchor in a header of its last journal record: both are committed or neither is.
//! Processes that do not sign write journals without such headers.

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
