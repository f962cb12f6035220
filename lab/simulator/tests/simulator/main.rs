//! Tests of the model against formulas, of policies against each other, and of fleets with failing lanes.

mod autoscale;
mod baselines;
mod faults;
mod pilot;
mod quality;
mod ticks;
