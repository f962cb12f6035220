//! Stepping through a journal: forwards and backwards, with the state of the scheduler at each entry, until a condition holds.
//!
//! ```text
//!  journal ──► Stepper ── Step: entry, state, what differs ──► Predicate: does it hold?
//!                 └──── Marks: states that are kept for the way back
//! ```
//!
//! It steps the production scheduler and writes nothing. It must not know how an entry is shown, nor what asks for it: there is no
//! terminal here.

mod marks;
mod predicate;
mod stepper;

pub use predicate::{FIELDS, Field, Predicate, PredicateError};
pub use stepper::{Found, Step, Stepper};
