//! Putting together what lanes gave of a round: either that is the answer, which is encoded, or more is to be done. Where that takes
//! long, it is done beside the engine; where it does not, at once, since a task may have many rounds.

use std::sync::Arc;

use warptape_schemas::journal::TaskId;
use warptape_stages::risk::Finished;

use super::super::EngineConfig;
use super::{EncodedResult, OpenTask};

/// A task whose round is done.
pub struct Conclusion {
    pub(in super::super) number: TaskId,
    pub(in super::super) open: Box<OpenTask>,
    pub(in super::super) config: Arc<EngineConfig>,
}

/// What came of it.
pub struct Concluded {
    pub(in super::super) number: TaskId,
    pub(in super::super) outcome: ConcludedRound,
}

/// What comes after a round.
pub(in super::super) enum ConcludedRound {
    /// The answer.
    Answer(EncodedResult),
    /// The next round, which is to be done first.
    More(Box<OpenTask>),
}

impl Conclusion {
    /// Whether ticks should not wait for it.
    pub(in super::super) fn is_long(&self) -> bool {
        self.open.is_long_to_finish()
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
