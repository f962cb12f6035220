//! A fleet in virtual time that runs the real scheduler: tasks arrive, lanes take as long as their speeds say, and the scheduler decides
//! as it does in production.
//!
//! ```text
//!   Workload ──► arrivals ──┐                       ┌──► Outcome: completion times, misses, fairness, busy time
//!   Fleet ─────► speeds ────┴──► run ◄──► Scheduler ┘
//!                                 └─ AskPrices ──► warptape_prices ──► Priced
//! ```
//!
//! All policies meet the same arrivals: each task's time, kind, size and tenant is drawn from the seed by its number. It owns the model of lanes
//! and arrivals; it must not schedule anything.

pub mod clairvoyant;
mod draws;
pub mod files;
mod fleet;
mod outcome;
mod run;
mod workload;

pub use fleet::{Class, Fleet};
pub use outcome::{Interval, Outcome, PARTS, interval, jain};
pub use run::{Observer, Options, run, run_observed};
pub use workload::{Arrival, Burst, Closed, Diurnal, Kind, Process, Sizes, Tenant, Workload};
