//! `warptape train`: reads files, writes a network, its learning curve and a comparison. The crate `warptape_train` has
//! the training.

#[cfg(feature = "training")]
mod learning;

use std::process::ExitCode;

use crate::cli::TrainArgs;

/// Trains or compares.
#[cfg(feature = "training")]
pub fn execute(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    learning::execute(args)
}

/// Returns an error that names the feature needed for training.
#[cfg(not(feature = "training"))]
pub fn execute(_: &TrainArgs) -> anyhow::Result<ExitCode> {
    Err(crate::usage_error::UsageError::not_built("train", "training").into())
}

#[cfg(all(test, not(feature = "training")))]
mod tests {
    use clap::Parser;

    use crate::cli::{Cli, Command, UNUSABLE, exit_code};

    #[test]
    fn a_binary_without_training_says_how_to_build_one_with_it() {
        let asked = ["warptape", "train", "--fleet", "a", "--workload", "b", "--to", "c"];
        let Ok(Cli { command: Command::Train(args), .. }) = Cli::try_parse_from(asked) else {
            panic!("it is a training");
        };
        let error = super::execute(&args).unwrap_err();
        assert_eq!(exit_code(&error), UNUSABLE);
        assert!(error.to_string().contains("`cargo build --release --features training`"), "{error}");
    }
}
