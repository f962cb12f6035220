//! Putting together what lanes gave of a round: either that is the answer, which is encoded, or more is to be done. Where that takes
//! long, it is done beside the engine; where it does not, at once, since a task may have many rounds.

use std::sync::Arc;

use warptape_events::journal::{TaskClass, TaskId};
use warptape_stages::risk::Finished;

use super::{EncodedResult, OpenTask};
use crate::config::Config;

/// A task whose round is done.
pub struct Conclusion {
    pub(crate) number: TaskId,
    pub(crate) open: Box<OpenTask>,
    pub(crate) config: Arc<Config>,
}

/// What came of it.
pub struct Concluded {
    pub(crate) number: TaskId,
    pub(crate) outcome: ConcludedRound,
}

/// What comes after a round.
pub(crate) enum ConcludedRound {
    /// The answer.
    Answer(EncodedResult),
    /// The next round, which is to be done first.
    More(Box<OpenTask>),
}

impl Concluded {
    /// The number of its task.
    pub fn number(&self) -> TaskId {
        self.number
    }
}

impl Conclusion {
    /// The number of the task.
    pub fn number(&self) -> TaskId {
        self.number
    }

    /// Partition and offset of the request.
    pub fn request(&self) -> (i32, i64) {
        (self.open.asked.partition, self.open.asked.offset)
    }

    /// Whether ticks should not wait for it.
    pub(crate) fn is_long(&self) -> bool {
        self.open.is_long_to_finish()
    }

    /// Whether the task is critical.
    pub fn is_critical(&self) -> bool {
        self.open.asked.class == TaskClass::Critical
    }

    /// Puts it together; `now_ns` tells the time when that is done.
    pub fn run(self, now_ns: impl Fn() -> i64) -> Concluded {
        let Self { number, mut open, config } = self;
        let outcome = match open.finish() {
            Finished::Outcome(outcome) => {
                ConcludedRound::Answer(open.into_result(now_ns(), outcome, &config))
            }
            Finished::More(next) => {
                open.go_on(next);
                ConcludedRound::More(open)
            }
        };
        Concluded { number, outcome }
    }
}
