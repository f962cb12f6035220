//! Steps through a journal, forwards and backwards, until a condition holds. Each step has an entry and the scheduler's
//! state there.
//!
//! ```text
//!  journal ──► Stepper ── Step: entry, state, what differs ──► Predicate: does it hold?
//!                 └──── Marks: states that are kept for the way back
//! ```
//!
//! Stepping runs the production scheduler and writes nothing. This module does not know how an entry is shown, or to
//! whom, and uses no terminal.

mod marks;
mod predicate;
mod stepper;

pub use predicate::{FIELDS, Field, Predicate, PredicateError};
pub use stepper::{Found, Step, Stepper};
