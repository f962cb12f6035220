//! The shell of Warptape: configuration, the command line, and everything that touches clocks, threads and terminals.
//!
//! `stages` interprets ticks and `scheduler` makes decisions; this crate carries their inputs and outputs.

mod bounded_file;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod endpoint;
mod exported;
pub mod feed_ledger;
mod http_agent;
#[cfg(feature = "tables")]
pub mod library;
pub mod logging;
mod network_file;
mod new_file;
pub mod open;
mod order;
#[cfg(feature = "otlp")]
pub mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "otlp_missing.rs"]
pub mod otlp;
mod printable;
pub mod publisher;
mod publishing;
pub mod registry;
pub mod retention;
pub mod runtime;
pub mod settings;
pub mod terminal;
pub mod traces;
mod transaction;
mod usage_error;
mod watch;
