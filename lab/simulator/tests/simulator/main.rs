//! The model against formulas, policies against each other, and fleets that fail.

mod autoscale;
mod baselines;
mod faults;
mod pilot;
mod quality;
mod ticks;
