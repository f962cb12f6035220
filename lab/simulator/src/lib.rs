//! A simulated fleet in virtual time, driven by the real scheduler. Tasks arrive, lanes take times that follow from
//! their speeds, and the scheduler decides as in production.
//!
//! ```text
//!   Workload ──► arrivals ────────┐                       ┌──► Outcome: completion times, misses, fairness, busy time ──► figures
//!   Fleet ─────► speeds, losses ──┴──► run ◄──► Scheduler ┘
//!                                       └─ AskPrices ──► warptape_prices ──► Priced
//! ```
//!
//! All policies get the same arrivals: the time, kind, size and tenant of each task are drawn from the seed and the
//! task's number. The crate owns the model of lanes and arrivals, and the baselines that cannot run in production. It
//! reimplements no production policy.

mod agenda;
mod baseline;
pub mod clairvoyant;
mod draws;
pub mod experiment;
mod faults;
pub mod figures;
pub mod files;
mod fleet;
mod lanes;
mod options;
mod outcome;
mod rows;
mod run;
mod shared;
mod ticks;
mod workload;

pub use agenda::{Agenda, Next};
pub use baseline::BASELINES;
pub use fleet::{Autoscale, Class, Failure, Fleet, Outage, Throttling};
pub use options::Options;
pub use outcome::{
    Counts, Interval, MeasuredTasks, Outcome, PARTS, Ran, Scaled, Ticked, Verdict, interval, jain,
};
pub use run::{Observer, Pilot, Scaling, run, run_observed, run_piloted};
pub use ticks::{Pace, Surges, TickSpeed, Ticks};
pub use workload::{Arrival, Burst, Closed, Diurnal, Process, Sizes, TaskKind, Tenant, Workload};
