//! Lane threads: each owns the stages of its groups, and runs batches in the order of their arrival.

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

/// News of a lane for the engine.
pub(super) struct LaneEvent {
    pub(super) lane: LaneId,
    /// Number of the lane's restarts: news of an earlier life is ignored.
    pub(super) life: u32,
    pub(super) news: LaneNews,
}

/// Handle of a running lane.
pub(super) struct Lane {
    commands: Sender<LaneCommand>,
    slice_threads: SliceThreads,
    thread: Worker,
    work: Arc<Activity>,
    /// Present work of the thread for slices on the lane's device.
    slice_work: Arc<Activity>,
}

/// Start time of the thread's present work: of a batch, or, negated, of anything else; 0 while it waits for a command.
/// The thread sets it itself, so a delay of the engine in reading news does not count against the lane.
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

    /// Returns the thread's present work; `None` while it waits.
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
        // Waiting commands are bounded by the lane's credit and its number of groups.
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

    /// Runs a slice in the background; the engine gets its result.
    pub(super) fn run_slice(&self, slice: Slice) {
        self.slice_threads.run(slice);
    }

    /// Sends a command to the lane. A lane that just failed ignores it; its loss is on its way to the engine.
    pub(super) fn command(&self, command: LaneCommand) {
        drop(self.commands.send(command));
    }

    /// Returns the present work of the lane's threads.
    pub(super) fn doing(&self) -> impl Iterator<Item = Doing> {
        [&self.work, &self.slice_work].into_iter().filter_map(|work| work.doing())
    }

    /// Tells the threads to end, and returns the lane's own, for the caller to wait for.
    pub(super) fn end(self) -> Worker {
        self.thread
    }
}
