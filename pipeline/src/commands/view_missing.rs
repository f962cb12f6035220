//! Replaces the view of `run` and `demo` in a build without `top`.

use std::time::Duration;

use crate::cli::Interrupt;
use crate::endpoint::Endpoint;
use crate::terminal::Terminal;
use crate::usage_error::UsageError;

/// Refuses a view that is asked for.
pub(super) fn check(is_asked: bool, _: bool) -> Result<(), UsageError> {
    if is_asked { Err(UsageError::not_built("--top", "top")) } else { Ok(()) }
}

/// No view.
pub(super) enum View {}

impl View {
    /// Wait between two steps.
    pub(super) const PACE: Duration = Duration::ZERO;

    /// Opens no view.
    pub(super) fn open(_: bool, _: Option<&Endpoint>, _: &Terminal, _: &Interrupt) -> Option<Self> {
        None
    }

    /// Does nothing.
    pub(super) fn step(&mut self) -> bool {
        match *self {}
    }
}
