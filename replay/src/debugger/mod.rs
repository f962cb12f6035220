//! Steps through a journal, forwards and backwards, with the state of the scheduler at each entry, until a condition
//! holds.
//!
//! ```text
//!  journal ──► Stepper ── Step: entry, state, what differs ──► Predicate: does it hold?
//!                 └──── Marks: states that are kept for the way back
//! ```
//!
//! It steps the production scheduler and writes nothing. It does not know how an entry is shown or who asks for it: no
//! terminal is used here.

mod marks;
mod predicate;
mod stepper;

pub use predicate::{FIELDS, Field, Predicate, PredicateError};
pub use stepper::{Found, Step, Stepper};
