//! Code shared by the tests in `tests/`, which check behaviour across crates.
//!
//! [`market`] makes small random logs. [`sequential`] runs them plainly; [`simulation`] runs them through the engine's
//! core with simulated lanes, commits and crashes. The results of all three depend only on a seed. [`engine_run`] runs
//! the real engine, and [`live_run`] runs it on a live market. [`drawn`] reads timelines back. [`wrapped_log`] is a log
//! with replaceable parts, and [`injected`] has lanes with delays and faults. [`vocabulary`] counts the commands and
//! events of the cores. [`turns`] is for benchmarks.

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
