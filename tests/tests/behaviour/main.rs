//! Behaviour of the crates together.

mod engine;
mod kafka;
mod recordings;
mod simulation;
mod transactions;
