//! Background work that would delay ticks: preparing requests as tasks, computing prices, and concluding rounds.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_channel::Receiver;
use warptape_engine::{Concluded, Conclusion, Haste, Preparation, Prepared};
use warptape_schemas::journal::{AskPrices, Priced};

use super::background::BackgroundJobs;
use super::{Clock, EngineError};

/// Prepares requests as tasks, unless they are abandoned before their turn. Later requests, with newer markets, may
/// overtake a preparation that yields.
pub(super) struct Preparing {
    thread: BackgroundJobs<(Preparation, Arc<AtomicBool>), Prepared>,
    /// Preparations in progress by number; the flag is true while the request still waits. The thread holds the other
    /// end, and drops it when done.
    wanted: BTreeMap<u64, Arc<AtomicBool>>,
}

impl Preparing {
    pub(super) fn start() -> Self {
        let run = |(preparation, is_wanted): (Preparation, Arc<AtomicBool>)| match is_wanted
            .load(Ordering::Relaxed)
        {
            true => {
                let (partition, offset) = (preparation.partition, preparation.offset);
                let _span = tracing::debug_span!("request", partition, offset).entered();
                preparation.run()
            }
            false => preparation.abandon(),
        };
        Self { thread: BackgroundJobs::start("prepare", run), wanted: BTreeMap::new() }
    }

    pub(super) fn run(&mut self, preparation: Preparation) -> Result<(), EngineError> {
        self.wanted.retain(|_, is_wanted| Arc::strong_count(is_wanted) > 1);
        let is_wanted = Arc::new(AtomicBool::new(true));
        self.wanted.insert(preparation.number(), is_wanted.clone());
        let haste = preparation.haste;
        self.thread.run((preparation, is_wanted), haste)
    }

    /// Marks a preparation as abandoned.
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

/// Computes prices of task kinds for the scheduler.
pub(super) struct Pricing(BackgroundJobs<AskPrices, Priced>);

impl Pricing {
    pub(super) fn start() -> Self {
        Self(BackgroundJobs::start("prices", |asked: AskPrices| {
            // Without new prices the scheduler keeps its current ones.
            let prices = catch_unwind(|| warptape_prices::solve(&asked)).unwrap_or_else(|_| {
                tracing::warn!(question = asked.question, "the prices of task kinds could not be computed");
                Vec::new()
            });
            Priced { question: asked.question, prices }
        }))
    }

    pub(super) fn run(&self, asked: AskPrices) -> Result<(), EngineError> {
        self.0.run(asked, Haste::Yields)
    }

    pub(super) fn done(&self) -> &Receiver<Priced> {
        self.0.done()
    }

    pub(super) fn gone(&self) -> EngineError {
        self.0.gone()
    }

    pub(super) fn stop(self) {
        self.0.stop();
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
        // Work for a critical task does not yield to ticks.
        let haste = if conclusion.is_critical() { Haste::AtOnce } else { Haste::Yields };
        self.0.run(conclusion, haste)
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
