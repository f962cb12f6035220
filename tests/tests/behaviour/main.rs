//! Tests of the behaviour of the crates together.

mod anchors;
mod background;
mod balance;
mod corrupted_results;
#[path = "../../../replay/tests/verify/corruption.rs"]
mod corruption;
mod device_figures;
mod devices;
mod documents;
mod engine;
mod forgeries;
mod full_engine;
mod kafka;
mod kafka_offsets;
mod live_feed;
mod offsets;
mod pricing_figures;
mod recordings;
mod risk;
mod risk_replay;
mod simulation;
mod tables;
#[path = "../../../replay/tests/verify/tampered.rs"]
#[expect(dead_code, reason = "the tests of replay use more of it")]
mod tampered;
mod timeline;
mod transactions;
