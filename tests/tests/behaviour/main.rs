//! Behaviour of the crates together.

mod engine;
mod recordings;
mod simulation;
