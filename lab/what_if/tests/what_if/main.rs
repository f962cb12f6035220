//! Tests of what-if against the truth: on these fleets, the other configuration is really run.

mod prediction;
mod signs;
mod ticks;
