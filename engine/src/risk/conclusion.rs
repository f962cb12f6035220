//! Conclusion of a round from the results of lanes: either the encoded answer, or another round. A long conclusion runs
//! in the background; a short one runs at once, because a task may have many rounds.

use std::sync::Arc;

use warptape_events::journal::{TaskClass, TaskId};
use warptape_stages::risk::Finished;

use super::{EncodedResult, OpenTask};
use crate::config::Config;

/// A task whose round is done, to be concluded.
pub struct Conclusion {
    pub(crate) number: TaskId,
    pub(crate) open: Box<OpenTask>,
    pub(crate) config: Arc<Config>,
}

/// The result of a conclusion.
pub struct Concluded {
    pub(crate) number: TaskId,
    pub(crate) outcome: ConcludedRound,
}

/// The outcome of a round.
pub(crate) enum ConcludedRound {
    /// The answer.
    Answer(EncodedResult),
    /// A further round, which must be done before there is an answer.
    More(Box<OpenTask>),
}

impl Concluded {
    /// The number of the task.
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

    /// True if it may take so long that ticks should not wait for it.
    pub(crate) fn is_long(&self) -> bool {
        self.open.is_long_to_finish()
    }

    /// True if the task is critical.
    pub fn is_critical(&self) -> bool {
        self.open.asked.class == TaskClass::Critical
    }

    /// Concludes the round; `now_ns` reads the clock after that.
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
