//! One recording, whose lines become ticks.

use std::path::Path;

use warptape_events::tick::Tick;

use super::VenueMessages;
use crate::arrival_merge::TickInput;
use crate::input::{FileProgress, Lines};
use crate::{DOES_NOT_FIT, FieldProblem, PassedOver, SourceError, warn_of};

/// Ticks of one recording, in the order of its lines.
pub struct CaptureFile<M> {
    lines: Lines,
    messages: M,
    passed_over: PassedOver,
}

impl<M: VenueMessages> CaptureFile<M> {
    /// Opens a recording of a venue's messages.
    pub(crate) fn open(path: &Path, messages: M) -> Result<Self, SourceError> {
        Ok(Self { lines: Lines::open(path)?, messages, passed_over: PassedOver::default() })
    }

    /// Returns the tick of the current line; `None` for other contents, which are counted.
    fn tick(&mut self) -> Result<Option<Tick>, FieldProblem> {
        let line = self.lines.line();
        if line.is_empty() {
            self.passed_over.ignore("empty line");
            return Ok(None);
        }
        self.messages.read(line)?.into_tick(&mut self.passed_over)
    }
}

impl<M: VenueMessages> Iterator for CaptureFile<M> {
    type Item = Result<Tick, SourceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.lines.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
            match self.tick() {
                Ok(Some(tick)) => return Some(Ok(tick)),
                Ok(None) => {}
                Err(problem) if problem.does_not_fit => self.count_unfit(&problem),
                Err(problem) => {
                    let path = self.lines.path().to_owned();
                    return Some(Err(SourceError::BadLine { path, line: self.lines.number(), problem }));
                }
            }
        }
    }
}

impl<M> CaptureFile<M> {
    /// Counts the current line, which has numbers beyond the range of a tick.
    fn count_unfit(&mut self, problem: &FieldProblem) {
        warn_of(&self.lines, problem, self.passed_over.unfit());
        self.passed_over.ignore(DOES_NOT_FIT);
    }
}

impl<M: VenueMessages> TickInput for CaptureFile<M> {
    fn leave_out(&mut self, problem: FieldProblem) -> Result<(), SourceError> {
        self.count_unfit(&problem);
        Ok(())
    }

    fn progress(&self) -> &FileProgress {
        self.lines.progress()
    }

    fn place(&self) -> u64 {
        self.lines.number()
    }

    fn passed_over(&self) -> PassedOver {
        self.passed_over.clone()
    }
}
