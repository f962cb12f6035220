//! Behaviour of the crates together.

mod simulation;
