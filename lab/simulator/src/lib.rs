//! A fleet in virtual time that runs the real scheduler. Tasks arrive, lanes take the time that their speeds give, and
//! the scheduler decides as in production.
//!
//! ```text
//!   Workload ──► arrivals ────────┐                       ┌──► Outcome: completion times, misses, fairness, busy time ──► figures
//!   Fleet ─────► speeds, losses ──┴──► run ◄──► Scheduler ┘
//!                                       └─ AskPrices ──► warptape_prices ──► Priced
//! ```
//!
//! All policies meet the same arrivals: each task's time, kind, size and tenant is drawn from the seed by its number.
//! The crate owns the model of lanes and arrivals, and the baselines that cannot run in production. It reimplements no
//! policy of production.

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
