//! Lane threads: each owns the stages of the groups placed on it, and runs batches in the order they come.

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

/// What a lane tells the engine.
pub(super) struct LaneEvent {
    pub(super) lane: LaneId,
    /// How often the lane had been started again: what an earlier life says is of no use.
    pub(super) life: u32,
    pub(super) news: LaneNews,
}

/// Handle of a running lane.
pub(super) struct Lane {
    commands: Sender<LaneCommand>,
    slice_threads: SliceThreads,
    thread: Worker,
    work: Arc<Activity>,
    /// What the thread is at that does slices on the lane's device.
    slice_work: Arc<Activity>,
}

/// Since when a thread of a lane has been at something: a batch, or, negated, anything else; 0 where it waits for a command.
/// The thread says so itself: what the engine has not heard yet, because it was busy, is not held against the lane.
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

    /// What it is at; nothing where it waits.
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
        // What waits is bounded by the credit of the lane and the number of groups.
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

    /// Has a slice done in the background; the engine is told what comes of it.
    pub(super) fn run_slice(&self, slice: Slice) {
        self.slice_threads.run(slice);
    }

    /// Tells the lane. One that just failed takes nothing any more; its loss is on its way to the engine.
    pub(super) fn command(&self, command: LaneCommand) {
        drop(self.commands.send(command));
    }

    /// What its threads are at.
    pub(super) fn doing(&self) -> impl Iterator<Item = Doing> {
        [&self.work, &self.slice_work].into_iter().filter_map(|work| work.doing())
    }

    /// Tells the threads to end, and gives the lane's own, to be waited for.
    pub(super) fn end(self) -> Worker {
        self.thread
    }
}
