//! The engine's side of risk requests: when they are read, and what is heard of them.

use warptape_eventlog::TopicPartition;

use super::super::answered::Answered;
use super::super::requests::{RequestCommand, RequestEvent};
use super::super::{EngineError, Progress};
use super::Engine;

impl Engine {
    pub(super) fn on_requests(&mut self, event: RequestEvent) -> Result<(), EngineError> {
        match event {
            RequestEvent::Records { partition, generation, records } => {
                Progress::add(&self.progress.risk_requests, records.len() as u64);
                self.core.on_requests(self.clock.now_ns(), partition, generation, &records)?;
            }
            RequestEvent::Position { partition, generation, position } => {
                self.core.on_requests_position(partition, generation, position);
            }
            RequestEvent::Failed(error) => return Err(error.into()),
        }
        self.obey()
    }

    /// Begins to read the requests of partitions whose ticks were accepted as far as there were any when they came.
    pub(super) fn open_requests(&mut self) -> Result<(), EngineError> {
        let is_read =
            |(&partition, &end): (&i32, &i64)| self.core.is_read_to(partition, end).then_some(partition);
        let Some(partition) = self.requests_wait.iter().find_map(is_read) else { return Ok(()) };
        self.requests_wait.remove(&partition);
        let name = |topic: &String| TopicPartition { topic: topic.clone(), partition };
        let topics = &self.config.topics;
        let committed = self.log.committed(&self.config.group, &name(&topics.risk_requests))?.unwrap_or(0);
        let answered = Answered::read(self.log.as_ref(), &name(&topics.risk_results), committed)?;
        self.core.on_requests_opened(partition, committed, answered);
        Ok(())
    }

    pub(super) fn command_requests(&self, command: RequestCommand) -> Result<(), EngineError> {
        self.requests.commands.send(command).map_err(|_| {
            let failed = |event| match event {
                RequestEvent::Failed(error) => Some(EngineError::Log(error)),
                RequestEvent::Records { .. } | RequestEvent::Position { .. } => None,
            };
            let failed = self.requests.events.iter().find_map(failed);
            failed.unwrap_or(EngineError::ThreadGone { thread: "requests" })
        })
    }
}
