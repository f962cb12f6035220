//! Behaviour of the crates together.

mod devices;
mod engine;
mod kafka;
mod recordings;
mod simulation;
mod transactions;
