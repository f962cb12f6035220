//! Behaviour of the crates together.

mod background;
mod balance;
mod device_figures;
mod devices;
mod documents;
mod engine;
mod full_engine;
mod kafka;
mod live_feed;
mod pricing_figures;
mod recordings;
mod risk;
mod risk_replay;
mod simulation;
mod tables;
mod timeline;
mod transactions;
