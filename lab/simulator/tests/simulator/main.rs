//! Tests of the model against formulas, of policies against each other, and of fleets that fail.

mod autoscale;
mod baselines;
mod faults;
mod pilot;
mod quality;
mod ticks;
