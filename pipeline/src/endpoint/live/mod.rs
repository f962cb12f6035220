//! The live state of a running pipeline, for its page and for `warptape top`.

pub mod snapshot;
