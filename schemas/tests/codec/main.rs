//! The crate from outside: what goes in comes out, other Avro libraries read the same, damage is an error value.

mod avro;
mod damaged;
mod declared;
mod fingerprints;
mod golden;
mod journal_chain;
mod reason_words;
mod records;
mod rejected;
mod risk;
mod rows;
mod samples;
mod ticks;
