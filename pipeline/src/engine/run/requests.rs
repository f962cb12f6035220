//! The engine's side of risk requests: when they are read, and what is heard of them.

use super::super::requests::{RequestCommand, RequestEvent};
use super::super::{Concluded, EngineError, Prepared, Progress};
use super::Engine;

impl Engine {
    pub(super) fn on_requests(&mut self, event: RequestEvent) -> Result<(), EngineError> {
        match event {
            RequestEvent::Opened { partition, assignment, committed, found_before, answered } => {
                // It may have gone meanwhile, and even have come again.
                if self.core.is_owned(partition, assignment) {
                    self.core.on_requests_opened(partition, committed, found_before, answered);
                }
            }
            RequestEvent::Requests { partition, generation, requests } => {
                Progress::add(&self.progress.risk_requests, requests.len() as u64);
                self.core.on_requests(self.clock.now_ns(), partition, generation, requests)?;
            }
            RequestEvent::Position { partition, generation, position } => {
                self.core.on_requests_position(partition, generation, position);
            }
            RequestEvent::Failed(error) => return Err(error.into()),
        }
        self.obey()
    }

    /// A request is prepared, or the thread has ended that does that.
    pub(super) fn on_prepared(&mut self, prepared: Option<Prepared>) -> Result<(), EngineError> {
        let prepared = prepared.ok_or_else(|| self.preparing.gone())?;
        Ok(self.core.on_prepared(self.clock.now_ns(), prepared)?)
    }

    /// A round is concluded, or the thread has ended that does that.
    pub(super) fn on_concluded(&mut self, concluded: Option<Concluded>) -> Result<(), EngineError> {
        let concluded = concluded.ok_or_else(|| self.concluding.gone())?;
        Ok(self.core.on_concluded(self.clock.now_ns(), concluded)?)
    }

    /// Begins to read the requests of partitions that came, once the ticks of all of them were accepted as far as there were
    /// any when they came.
    pub(super) fn open_requests(&mut self) -> Result<(), EngineError> {
        let mut waiting = self.requests_wait.iter();
        if waiting.any(|(&partition, &end)| !self.core.is_read_to(partition, end)) {
            return Ok(());
        }
        while let Some((partition, _)) = self.requests_wait.pop_first() {
            if let Some(assignment) = self.core.ownership().of(partition) {
                self.command_requests(RequestCommand::Open { partition, assignment })?;
            }
        }
        Ok(())
    }

    pub(super) fn command_requests(&self, command: RequestCommand) -> Result<(), EngineError> {
        self.requests.commands.send(command).map_err(|_| {
            let failed = |event| match event {
                RequestEvent::Failed(error) => Some(EngineError::Log(error)),
                RequestEvent::Opened { .. }
                | RequestEvent::Requests { .. }
                | RequestEvent::Position { .. } => None,
            };
            let failed = self.requests.events.iter().find_map(failed);
            failed.unwrap_or(EngineError::ThreadGone { thread: "requests" })
        })
    }
}
