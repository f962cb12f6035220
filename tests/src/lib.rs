//! Behaviour across crates: what the tests in `tests/` run against.
//!
//! [`market`] makes small random logs, [`sequential`] runs them plainly, [`simulation`] runs them through the engine's
//! core with simulated lanes, commits and crashes: all three functions of a seed. [`engine_run`] runs the real engine, and
//! [`live_run`] while its market happens. [`drawn`] reads timelines back. [`wrapped_log`] is a log of which tests replace parts,
//! [`injected`] has lanes with delays and faults.
//! [`vocabulary`] counts what cores command and are told. [`turns`] is for benchmarks.

pub mod coverage;
pub mod devices;
pub mod drawn;
pub mod engine_run;
pub mod injected;
pub mod journal_fields;
pub mod live_run;
pub mod market;
pub mod random;
pub mod sequential;
pub mod simulation;
pub mod turns;
pub mod vocabulary;
pub mod wrapped_log;
