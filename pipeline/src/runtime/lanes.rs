//! Lane threads: each owns the state of its groups, and runs batches in the order of their arrival.

mod device_slices;
mod slice_threads;
mod stages;
mod thread;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crossbeam_channel::{Sender, unbounded};
use warptape_engine::{Doing, LaneCommand, LaneNews, Slice};
use warptape_schemas::journal::LaneId;

use super::worker::Worker;
use super::{Clock, EngineConfig};
pub use device_slices::DeviceSlices;
use slice_threads::{NO_THREAD, Reporter, SliceThreads};
pub use stages::{LaneResult, LaneStages};
use thread::LaneWorker;
pub use work::{ConfiguredLanes, LaneWork, OpenLanes};

/// News from a lane to the engine.
pub(super) struct LaneEvent {
    pub(super) lane: LaneId,
    /// Number of restarts of the lane. News from an earlier life is ignored.
    pub(super) life: u32,
    pub(super) news: LaneNews,
}

/// Handle of a running lane.
pub(super) struct Lane {
    commands: Sender<LaneCommand>,
    slice_threads: SliceThreads,
    thread: Worker,
    work: Arc<Activity>,
    /// Current work of the thread for slices on the lane's device.
    slice_work: Arc<Activity>,
}

/// Start time of the thread's current work: positive for a batch, negative for anything else, and 0 while the thread
/// waits for a command. The thread itself sets it, so the lane is not blamed if the engine reads news late.
#[derive(Default)]
struct Activity(AtomicI64);

impl Activity {
    fn on_batch(&self, now_ns: i64) {
        self.0.store(now_ns, Ordering::Relaxed);
    }

    fn on_other(&self, now_ns: i64) {
        self.0.store(-now_ns, Ordering::Relaxed);
    }

    fn done(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Returns the thread's current work; `None` while it waits.
    fn doing(&self) -> Option<Doing> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            other if other < 0 => Some(Doing::Other { since_ns: -other }),
            batch => Some(Doing::Batch { since_ns: batch }),
        }
    }
}

impl Lane {
    /// Starts the lane's threads.
    pub(super) fn start(
        lane: LaneId,
        life: u32,
        config: &EngineConfig,
        clock: Clock,
        events: Sender<LaneEvent>,
    ) -> Self {
        // The lane's credit and its number of groups limit the waiting commands.
        let (commands, received) = unbounded();
        let [work, slice_work] = [Arc::new(Activity::default()), Arc::new(Activity::default())];
        let reporter = Reporter { lane, life, clock, events: events.clone() };
        let (slice_threads, device_slices) =
            SliceThreads::start(reporter.clone(), config.isa, config.core.is_on_device(lane));
        let worker = LaneWorker {
            lane,
            life,
            config: config.clone(),
            clock,
            work: work.clone(),
            slice_work: slice_work.clone(),
            device_slices,
            events,
        };
        let thread = Worker::start(format!("lane-{lane}"), move || worker.run(&received));
        if !thread.has_started() {
            reporter.tell(LaneNews::Lost { reason: NO_THREAD.to_owned() });
        }
        Self { commands, slice_threads, thread, work, slice_work }
    }

    /// Runs a slice in the background, and reports the result to the engine.
    pub(super) fn run_slice(&self, slice: Slice) {
        self.slice_threads.run(slice);
    }

    /// Sends a command to the lane. A lane that has just failed ignores it; the engine will soon learn of its loss.
    pub(super) fn command(&self, command: LaneCommand) {
        drop(self.commands.send(command));
    }

    /// Returns the current work of the lane's threads.
    pub(super) fn doing(&self) -> impl Iterator<Item = Doing> {
        [&self.work, &self.slice_work].into_iter().filter_map(|work| work.doing())
    }

    /// Tells the threads to end. Returns the lane's own thread, for the caller to wait for.
    pub(super) fn end(self) -> Worker {
        self.thread
    }
}
