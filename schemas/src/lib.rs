//! The Avro schemas of Warptape and the event types that go with them: the only code that knows Avro bytes.

pub mod journal;
pub mod signal;
pub mod tick;
