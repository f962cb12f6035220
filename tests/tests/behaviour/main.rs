//! Behaviour of the crates together.

mod device_figures;
mod devices;
mod engine;
mod kafka;
mod recordings;
mod risk;
mod risk_replay;
mod simulation;
mod transactions;
