//! The `warptape` binary.
fn main() {}
