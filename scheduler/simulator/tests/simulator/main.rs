//! The model against formulas, policies against each other, and fleets that fail.

mod baselines;
mod faults;
mod pilot;
mod quality;
