//! Tests of the crate from outside: records read back, other Avro libraries read the same values, and damage gives
//! error values.

mod avro;
mod damaged;
mod declared;
mod fingerprints;
mod golden;
mod journal_chain;
mod packed;
mod reason_words;
mod records;
mod rejected;
mod risk;
mod rows;
mod samples;
mod ticks;
