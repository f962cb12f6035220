//! Slices that cannot be cut and may take long, on a thread of their own beside the lane's, so that no ticks wait for them. To the
//! scheduler they are slices of the lane as any other.

use std::thread;

use crossbeam_channel::{Sender, unbounded};
use warptape_kernels::Isa;
use warptape_schemas::journal::LaneId;

use super::super::Clock;
use super::{LaneEvent, LaneNews, Slice};

/// The thread beside a lane's. It ends after what it is at when this is dropped; nobody waits for that.
pub(super) struct Aside {
    slices: Sender<Slice>,
}

impl Aside {
    pub(super) fn start(lane: LaneId, life: u32, isa: Isa, clock: Clock, events: Sender<LaneEvent>) -> Self {
        // A lane has one slice at a time.
        let (slices, received) = unbounded::<Slice>();
        let work = move || {
            for Slice { slice, task, units } in received {
                let since_ns = clock.now_ns();
                let partial = task.run_aside(isa, units);
                let service_ns = clock.now_ns() - since_ns;
                let news = LaneNews::SliceDone { slice, service_ns, partial };
                // An engine that has ended reads no more.
                drop(events.send(LaneEvent { lane, life, news }));
            }
        };
        let thread = thread::Builder::new().name(format!("aside-{lane}"));
        thread.spawn(work).expect("the system can start a thread");
        Self { slices }
    }

    /// Does a slice; the engine is told what comes of it.
    pub(super) fn run(&self, slice: Slice) {
        // The thread outlives what it is sent by.
        drop(self.slices.send(slice));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossbeam_channel::unbounded;
    use serde_json::json;
    use warptape_schemas::risk::RiskOutcome;
    use warptape_stages::risk::{Finished, Partial, RiskTask, refusals};

    use super::super::thread::LaneWorker;
    use super::super::{LaneBatch, LaneCommand, Work};
    use super::*;
    use crate::settings::{Sources, load};

    const SLICES: i64 = 16;

    /// The weights of so many assets take time.
    fn long_task() -> RiskTask {
        const ASSETS: usize = 256;
        let covariance: Vec<f64> = (0..ASSETS * ASSETS)
            .map(|at| if at % (ASSETS + 1) == 0 { 0.04 + at as f64 / 1e7 } else { 0.01 })
            .collect();
        let asset = |number: usize| json!({"symbol": format!("a{number}"), "spot": 1.0, "volatility": 0.2});
        let request = json!({"request_id": "weights", "problem": {
            "type": "optimisation", "assets": (0..ASSETS).map(asset).collect::<Vec<_>>(),
            "expected_returns": (0..ASSETS).map(|asset| 0.01 + asset as f64 / 1e4).collect::<Vec<_>>(),
            "covariance": covariance, "risk_aversion": 3.0, "budget": 1.0,
            "lower": vec![0.0; ASSETS], "upper": vec![0.1; ASSETS]}});
        let request = serde_json::from_value(request).expect("a request");
        RiskTask::new(&request, &|_| None).expect("a good request")
    }

    #[test]
    fn no_batch_waits_for_what_cannot_be_cut() {
        let sources = Sources { cores: 1, ..Sources::default() };
        let config = load(&sources).expect("the defaults are good").0.engine_config(None);
        let (commands, received) = unbounded();
        let (events, told) = unbounded();
        let task = Arc::new(long_task());
        assert!(task.is_aside());
        let expected = task.run(Isa::Baseline, 0..1);
        // So many that the lane's thread may well be held up, and still comes to the batch before they are done.
        for slice in 0..SLICES {
            let slice = Slice { slice, task: task.clone(), units: 0..1 };
            commands.send(LaneCommand::RunSlice(slice)).expect("it is received below");
        }
        let batch = LaneBatch { batch: 3, parts: Vec::new() };
        commands.send(LaneCommand::Run(batch)).expect("it is received below");
        drop(commands);
        let work = Arc::new(Work::default());
        LaneWorker { lane: 0, life: 2, config, clock: Clock::start(), work, fault: None, events }
            .run(&received);
        let told: Vec<LaneEvent> = told.iter().collect();
        assert!(told.iter().all(|event| (event.lane, event.life) == (0, 2)));
        let is_batch = |event: &LaneEvent| matches!(event.news, LaneNews::Completed { batch: 3, .. });
        let at = told.iter().position(is_batch).expect("the batch is done");
        assert!(at < told.len() - 1, "the batch is done before the last slice");
        let mut slices = Vec::new();
        for event in &told {
            let LaneNews::SliceDone { slice, partial, service_ns } = &event.news else { continue };
            assert!(*partial == expected && *service_ns > 0);
            slices.push(*slice);
        }
        assert_eq!(slices, (0..SLICES).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_is_an_answer_and_the_next_slice_is_done() {
        let (events, told) = unbounded();
        let task = Arc::new(implied_task());
        let aside = Aside::start(0, 0, Isa::Baseline, Clock::start(), events);
        // Units that the task does not have, then one that it has.
        for (slice, units) in [(0, 5..6), (1, 0..1)] {
            aside.run(Slice { slice, task: task.clone(), units });
        }
        drop(aside);
        let partials: Vec<Partial> = told.iter().map(partial).collect();
        let [panicked, done] = &partials[..] else { panic!("each slice is told of once") };
        assert_eq!(*done, task.run(Isa::Baseline, 0..1));
        let Finished::Outcome(RiskOutcome::Error(error)) = task.finish([panicked]) else {
            panic!("it is an error")
        };
        assert_eq!(error, refusals::panicked());
    }

    fn partial(event: LaneEvent) -> Partial {
        match event.news {
            LaneNews::SliceDone { partial, .. } => partial,
            _ => panic!("there are slices alone"),
        }
    }

    fn implied_task() -> RiskTask {
        let request = json!({"request_id": "implied", "problem": {
            "type": "implied-volatilities", "assets": [{"symbol": "a", "spot": 100.0, "volatility": 0.2}],
            "options": [{"asset": 0, "kind": "put", "strike": 95.0, "expiry_years": 0.5}], "prices": [4.0]}});
        let request = serde_json::from_value(request).expect("a request");
        RiskTask::new(&request, &|_| None).expect("a good request")
    }
}
