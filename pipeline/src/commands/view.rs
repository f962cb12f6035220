//! The view of `top` within `run` and `demo`: of their own process, without a connection.

use std::time::Duration;

use super::top::{Client, Session, has_colours, has_screen};
use crate::cli::Interrupt;
use crate::endpoint::Endpoint;
use crate::logging::NOTICE;
use crate::terminal::Terminal;
use crate::usage_error::UsageError;

/// Refuses a view that is asked for where there is no endpoint to read.
pub(super) fn check(is_asked: bool, has_endpoint: bool) -> Result<(), UsageError> {
    if is_asked && !has_endpoint {
        let message = "--top shows the data of the endpoint, and endpoint.listen is empty: set it, or give \
                       --listen 127.0.0.1:9464";
        return Err(UsageError(message.to_owned()));
    }
    Ok(())
}

/// The view, until it is dropped.
pub(super) struct View {
    session: Session,
    interrupt: Interrupt,
}

impl View {
    /// Wait between two steps.
    pub(super) const PACE: Duration = Duration::from_millis(20);

    /// Opens the view of this endpoint's process if it is asked for, and if there is a terminal. Its end by a key sets
    /// the interrupt.
    pub(super) fn open(
        is_asked: bool,
        endpoint: Option<&Endpoint>,
        terminal: &Terminal,
        interrupt: &Interrupt,
    ) -> Option<Self> {
        let endpoint = endpoint.filter(|_| is_asked && has_screen())?;
        let client = Client::inside(endpoint);
        let session = Session::open(client, terminal, has_colours()).inspect_err(tell).ok()?;
        Some(Self { session, interrupt: interrupt.clone() })
    }

    /// Takes keys and news in, and draws. Returns false if the view is over.
    pub(super) fn step(&mut self) -> bool {
        if self.interrupt.is_set() {
            return false;
        }
        match self.session.step(Duration::ZERO) {
            Ok(true) => true,
            Ok(false) => {
                self.interrupt.set();
                false
            }
            Err(error) => {
                tell(&error);
                false
            }
        }
    }
}

/// Reports a terminal that fails. The pipeline does not depend on it.
fn tell(error: &anyhow::Error) {
    tracing::warn!(target: NOTICE, "the screen cannot be shown, and the pipeline goes on without it: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_needs_an_endpoint() {
        let error = check(true, false).expect_err("there is no endpoint").to_string();
        assert!(error.contains("endpoint.listen") && error.contains("--listen"), "{error}");
        assert!(check(false, false).is_ok() && check(true, true).is_ok());
    }
}
