//! `warptape train`: files in, a network out, with its learning curve and a comparison. What is learnt, and how, is `warptape_train`'s.

#[cfg(feature = "training")]
mod learning;

use std::process::ExitCode;

use crate::cli::TrainArgs;

/// Trains or compares.
#[cfg(feature = "training")]
pub fn execute(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    learning::execute(args)
}

/// Says how to build a binary that trains.
#[cfg(not(feature = "training"))]
pub fn execute(_: &TrainArgs) -> anyhow::Result<ExitCode> {
    let how = "this binary was built without training; `cargo build --release --features training` builds one that has it";
    Err(crate::cli::UsageError(how.to_owned()).into())
}
