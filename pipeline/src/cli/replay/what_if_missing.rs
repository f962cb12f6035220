//! Replaces the arguments of `replay what-if` in a build without it.

use std::ffi::OsString;

use clap::Args;

/// Arguments of `warptape replay what-if`, for a build without the feature `lab`, which knows none of them.
#[derive(Clone, Debug, Args)]
pub struct WhatIfArgs {
    /// All arguments as given.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub given: Vec<OsString>,
}
