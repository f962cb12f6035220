//! What-if against the truth: simulated fleets, where the other configuration can be run for real.

mod prediction;
mod signs;
mod ticks;
