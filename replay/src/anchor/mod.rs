//! Anchors: signed statements of a journal's newest entry. They prove to third parties who wrote the journal. A copy
//! stored elsewhere shows whether the journal was cut off, rolled back or rewritten.
//!
//! An entry's hash covers all earlier entries, so a statement about one entry covers them all. A process that signs
//! adds an anchor to each commit, in a header of its last journal record, so the two are committed together. Processes
//! that do not sign write journals without such headers.

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
