//! Behaviour of the crates together.

mod recordings;
mod simulation;
