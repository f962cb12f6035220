//! Tests of what-if against the truth: fleets on which the other configuration is really run.

mod prediction;
mod signs;
mod ticks;
