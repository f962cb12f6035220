//! Requests that are made tasks and rounds that are concluded, in the background: both take so long that no tick should wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Receiver;
use warptape_engine::{Concluded, Conclusion, Preparation, Prepared};

use super::background::BackgroundJobs;
use super::{Clock, EngineError};

/// Makes requests tasks, unless nobody waits for that any more by the time.
pub(super) struct Preparing {
    thread: BackgroundJobs<(Preparation, Arc<AtomicBool>), Prepared>,
    /// By number: whether somebody still waits for it. The thread has the other end, and drops it when it is done.
    wanted: BTreeMap<u64, Arc<AtomicBool>>,
}

impl Preparing {
    pub(super) fn start() -> Self {
        let run = |(preparation, is_wanted): (Preparation, Arc<AtomicBool>)| match is_wanted
            .load(Ordering::Relaxed)
        {
            true => preparation.run(),
            false => preparation.abandon(),
        };
        Self { thread: BackgroundJobs::start("prepare", run), wanted: BTreeMap::new() }
    }

    pub(super) fn run(&mut self, preparation: Preparation) -> Result<(), EngineError> {
        self.wanted.retain(|_, is_wanted| Arc::strong_count(is_wanted) > 1);
        let is_wanted = Arc::new(AtomicBool::new(true));
        self.wanted.insert(preparation.number(), is_wanted.clone());
        self.thread.run((preparation, is_wanted))
    }

    /// Nobody waits for one of them any more.
    pub(super) fn abandon(&self, number: u64) {
        if let Some(is_wanted) = self.wanted.get(&number) {
            is_wanted.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn done(&self) -> &Receiver<Prepared> {
        self.thread.done()
    }

    pub(super) fn gone(&self) -> EngineError {
        self.thread.gone()
    }

    pub(super) fn stop(self) {
        self.thread.stop();
    }
}

/// Concludes rounds.
pub(super) struct Concluding(BackgroundJobs<Conclusion, Concluded>);

impl Concluding {
    pub(super) fn start(clock: Clock) -> Self {
        Self(BackgroundJobs::start("conclude", move |conclusion: Conclusion| {
            conclusion.run(|| clock.now_ns())
        }))
    }

    pub(super) fn run(&self, conclusion: Conclusion) -> Result<(), EngineError> {
        self.0.run(conclusion)
    }

    pub(super) fn done(&self) -> &Receiver<Concluded> {
        self.0.done()
    }

    pub(super) fn gone(&self) -> EngineError {
        self.0.gone()
    }

    pub(super) fn stop(self) {
        self.0.stop();
    }
}
