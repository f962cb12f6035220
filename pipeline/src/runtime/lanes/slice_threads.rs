//! A lane's threads for slices, which keep ticks from waiting. Slices on the processor run on background threads, and
//! slices on a device on its background stream. The scheduler sees both as the same lane.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use warptape_eventlog::background::{BackgroundThread, run_at_once};
use warptape_kernels::Isa;
use warptape_kernels::device::DeviceError;
use warptape_schemas::journal::LaneId;
use warptape_stages::risk::Partial;

use super::super::Clock;
use super::super::worker::start_thread;
use super::thread::panic_message;
use super::{Activity, DeviceSlices, LaneEvent, LaneNews, Slice};

/// Reason for the loss of a lane whose threads could not start. The log has the system's error.
pub(super) const NO_THREAD: &str = "the system cannot start another thread for it";

/// Reports the results of slices to the engine.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) lane: LaneId,
    pub(super) life: u32,
    pub(super) clock: Clock,
    pub(super) events: Sender<LaneEvent>,
}

/// A lane's threads for slices. After this is dropped, each thread ends with its current slice.
pub(super) struct SliceThreads {
    /// Slices of non-critical tasks. They yield to ticks, and the system may delay them while other threads need the
    /// core.
    yielding: Sender<Slice>,
    /// Slices of critical tasks. They do not yield, and never wait for a slice that does.
    at_once: Sender<Slice>,
    on_device: Option<Sender<Slice>>,
}

impl SliceThreads {
    /// Starts the threads for slices on the processor, which nothing joins. If the lane has a device, also returns the
    /// channel of slices for the device's thread.
    pub(super) fn start(reporter: Reporter, isa: Isa, has_device: bool) -> (Self, Option<Receiver<Slice>>) {
        // A lane has at most two slices at a time, so the channels stay short.
        let [(yielding, to_yield), (at_once, to_run)] = [(); 2].map(|()| unbounded());
        let name = format!("risk-{}", reporter.lane);
        let run = move |slice: Slice| slice.task.run_caught(isa, slice.units);
        let report = |(partial, took): (Partial, Duration)| Ok((partial, took.as_nanos() as i64));
        let [of_yielding, of_urgent] = [reporter.clone(), reporter.clone()];
        let yields = BackgroundThread::start(&name, run).map(|background| {
            start_thread(&name, move || of_yielding.work(&to_yield, |slice| report(background.run(slice))))
        });
        let urgent = start_thread(&format!("{name}/now"), move || {
            of_urgent.work(&to_run, |slice| report(run_at_once(|| run(slice))));
        });
        if !matches!(yields, Ok(Some(_))) || urgent.is_none() {
            reporter.tell(LaneNews::Lost { reason: NO_THREAD.to_owned() });
        }
        let (on_device, received) = has_device.then(unbounded).unzip();
        (Self { yielding, at_once, on_device }, received)
    }

    /// Runs a slice, and reports the result to the engine.
    pub(super) fn run(&self, slice: Slice) {
        let on_host = if slice.critical { &self.at_once } else { &self.yielding };
        let thread = self.on_device.as_ref().filter(|_| !slice.task.is_host_only()).unwrap_or(on_host);
        // A failed thread accepts no slices; the engine will soon learn of the lane's loss.
        drop(thread.send(slice));
    }
}

/// Starts the thread for slices on a device. The lane is lost if the thread fails, because a failed stream breaks the
/// device's other streams.
pub(super) fn on_device(
    reporter: Reporter,
    mut background: DeviceSlices,
    work: Arc<Activity>,
    slices: Receiver<Slice>,
) -> Option<JoinHandle<()>> {
    let work_reporter = reporter.clone();
    let thread = start_thread(&format!("device-risk-{}", reporter.lane), move || {
        let reporter = work_reporter;
        reporter.work(&slices, |slice| {
            let since_ns = reporter.clock.now_ns();
            work.on_other(since_ns);
            let done = background.run(&slice);
            work.done();
            Ok((done?, reporter.clock.now_ns() - since_ns))
        });
    });
    if thread.is_none() {
        reporter.tell(LaneNews::Lost { reason: NO_THREAD.to_owned() });
    }
    thread
}

impl Reporter {
    /// Runs the slices, and reports each one's result and duration in nanoseconds.
    fn work(
        &self,
        slices: &Receiver<Slice>,
        mut run: impl FnMut(Slice) -> Result<(Partial, i64), DeviceError>,
    ) {
        for slice in slices {
            let number = slice.slice;
            let lost = match catch_unwind(AssertUnwindSafe(|| run(slice))) {
                Ok(Ok((partial, service_ns))) => {
                    self.tell(LaneNews::SliceDone { slice: number, service_ns, partial });
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(panic) => panic_message(panic.as_ref()),
            };
            return self.tell(LaneNews::Lost { reason: lost });
        }
    }

    /// Reports news. News for an ended engine is dropped.
    pub(super) fn tell(&self, news: LaneNews) {
        drop(self.events.send(LaneEvent { lane: self.lane, life: self.life, news }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossbeam_channel::unbounded;
    use serde_json::json;
    use warptape_engine::LaneBatch;
    use warptape_schemas::risk::RiskOutcome;
    use warptape_stages::risk::{Finished, Partial, RiskTask, refusals};

    use super::super::{Lane, LaneCommand};
    use super::*;
    use crate::settings::{Sources, load};

    const SLICES: i64 = 16;

    /// Returns a task that computes the weights of some assets, on the processor.
    fn weights_task() -> RiskTask {
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

    /// Returns a block of 512 paths with many steps each.
    fn long_paths() -> RiskTask {
        let request = json!({"request_id": "paths", "problem": {
            "type": "simulation", "assets": [{"symbol": "a", "spot": 100.0, "volatility": 0.2}], "expiry_years": 1.0,
            "steps": 16_384, "paths_max": 1_000, "contract": {"type": "asian", "kind": "call", "strike": 105.0}}});
        let request = serde_json::from_value(request).expect("a request");
        RiskTask::new(&request, &|_| None).expect("a good request")
    }

    #[test]
    fn what_a_device_would_do_nothing_for_is_done_on_the_processor() {
        let (events, told) = unbounded();
        let reporter = Reporter { lane: 0, life: 0, clock: Clock::start(), events };
        let (threads, of_device) = SliceThreads::start(reporter, Isa::Baseline, true);
        for (slice, task) in [(0, implied_task()), (1, weights_task())] {
            threads.run(Slice { slice, task: Arc::new(task), units: 0..1, critical: false });
        }
        drop(threads);
        let of_device: Vec<i64> = of_device.expect("it has one").iter().map(|slice| slice.slice).collect();
        assert_eq!(of_device, [0]);
        assert!(matches!(told.iter().next().expect("it is done").news, LaneNews::SliceDone { slice: 1, .. }));
    }

    #[test]
    fn no_batch_waits_for_a_slice() {
        let sources = Sources { cores: 1, ..Sources::default() };
        let config = load(&sources).expect("the defaults are good").0.engine_config(None);
        let (events, told) = unbounded();
        let task = Arc::new(long_paths());
        let lane = Lane::start(0, 2, &config, Clock::start(), events);
        let expected = task.run(Isa::Baseline, 0..1);
        // There are enough slices to delay the lane's thread, which still must run the batch before they are done.
        for slice in 0..SLICES {
            let slice = Slice { slice, task: task.clone(), units: 0..1, critical: slice % 2 == 0 };
            lane.run_slice(slice);
        }
        let batch = LaneBatch { batch: 3, parts: Vec::new() };
        lane.command(LaneCommand::Run(batch));
        lane.end().join();
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
        // Each thread runs its own slices in order.
        for is_critical in [true, false] {
            let of_thread: Vec<i64> =
                slices.iter().copied().filter(|slice| (slice % 2 == 0) == is_critical).collect();
            assert_eq!(
                of_thread,
                (0..SLICES).filter(|slice| (slice % 2 == 0) == is_critical).collect::<Vec<_>>()
            );
        }
        assert_eq!(slices.len(), SLICES as usize);
    }

    /// The yielding thread runs long slices, as if the system had delayed it.
    #[test]
    fn a_critical_slice_waits_for_none_that_yields() {
        let (events, told) = unbounded();
        let reporter = Reporter { lane: 0, life: 0, clock: Clock::start(), events };
        let (threads, _) = SliceThreads::start(reporter, Isa::Baseline, false);
        let (long, short) = (Arc::new(long_paths()), Arc::new(implied_task()));
        for slice in 0..SLICES {
            threads.run(Slice { slice, task: long.clone(), units: 0..1, critical: false });
        }
        threads.run(Slice { slice: SLICES, task: short, units: 0..1, critical: true });
        drop(threads);
        let done = |event: LaneEvent| match event.news {
            LaneNews::SliceDone { slice, .. } => slice,
            _ => panic!("there are slices alone"),
        };
        let done: Vec<i64> = told.iter().map(done).collect();
        assert_eq!(done.len(), SLICES as usize + 1);
        assert_ne!(done.last(), Some(&SLICES), "it came last, and is done before what was there");
    }

    #[test]
    fn a_panic_is_an_answer_and_the_next_slice_is_done() {
        let (events, told) = unbounded();
        let task = Arc::new(implied_task());
        let reporter = Reporter { lane: 0, life: 0, clock: Clock::start(), events };
        let (threads, _) = SliceThreads::start(reporter, Isa::Baseline, false);
        // The first slice requests units that the task does not have; the second requests one that exists.
        for (slice, units) in [(0, 5..6), (1, 0..1)] {
            threads.run(Slice { slice, task: task.clone(), units, critical: false });
        }
        drop(threads);
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
