//! The commands, one module each: arguments and settings in, an exit code out.

pub mod config;
pub mod control;
pub mod demo;
pub mod devices;
pub mod dlq;
pub mod feed;
pub mod hot;
pub mod journal;
pub mod log;
#[cfg(feature = "manuals")]
pub mod manuals;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod ready;
pub mod replay;
pub mod risk;
pub mod run;
#[cfg(feature = "lab")]
pub mod simulate;
pub mod tail;
#[cfg(feature = "top")]
pub mod top;
pub mod topics;
pub mod train;

mod columns;
mod csv_rows;
mod explaining;
mod fit;
#[cfg(feature = "lab")]
mod fleets;
#[cfg(any(feature = "debugger", feature = "top"))]
mod full_screen;
mod json;
mod live;
#[cfg(feature = "lab")]
mod seeds;
#[cfg(feature = "top")]
mod view;
#[cfg(not(feature = "top"))]
#[path = "view_missing.rs"]
mod view;
