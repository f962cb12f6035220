//! The threads of all lanes.

use crossbeam_channel::{Receiver, Sender, bounded};
use warptape_engine::{Doing, Event, LaneCommand, Slice};
use warptape_schemas::journal::LaneId;

use super::lanes::{Lane, LaneEvent};
use super::worker::Worker;
use super::{Clock, EngineConfig, process_log};

/// The threads of each lane that was not ended.
pub(super) struct LaneThreads {
    /// News of the lanes.
    pub(super) events: Receiver<LaneEvent>,
    sender: Sender<LaneEvent>,
    /// Each lane with its life; `None` for an ended one.
    lanes: Vec<Option<(u32, Lane)>>,
    /// The lanes on devices.
    on_devices: Vec<LaneId>,
    /// Threads of lanes that were ended.
    leaving: Vec<Worker>,
}

impl LaneThreads {
    pub(super) fn new(config: &EngineConfig) -> Self {
        let batches_max = config.core.scheduler.lane_batches_max as usize;
        // Lanes wait if the channel is full; the engine never waits for a lane.
        let (sender, events) = bounded(config.core.lanes.len() * (batches_max + 4));
        let lanes = config.core.lanes.iter().map(|_| None).collect();
        let on_devices =
            (0..config.core.lanes.len() as LaneId).filter(|&lane| config.core.is_on_device(lane));
        Self { events, sender, lanes, on_devices: on_devices.collect(), leaving: Vec::new() }
    }

    pub(super) fn start(&mut self, lane: LaneId, life: u32, config: &EngineConfig, clock: Clock) {
        let started = Lane::start(lane, life, config, clock, self.sender.clone());
        self.lanes[lane as usize] = Some((life, started));
    }

    pub(super) fn end(&mut self, lane: LaneId, hangs: bool) {
        let ended = self.lanes[lane as usize].take().map(|(_, lane)| lane.end());
        if !hangs {
            self.leaving.extend(ended);
        }
    }

    /// Sends a command to a lane. An ended lane ignores it.
    pub(super) fn command(&self, lane: LaneId, command: LaneCommand) {
        if let Some((_, lane)) = &self.lanes[lane as usize] {
            lane.command(command);
        }
    }

    /// Sends a slice to a lane. An ended lane ignores it.
    pub(super) fn run_slice(&self, lane: LaneId, slice: Slice) {
        if let Some((_, lane)) = &self.lanes[lane as usize] {
            lane.run_slice(slice);
        }
    }

    /// Returns the event of a lane's news; `None` if the lane was ended since, or began another life.
    pub(super) fn heard(&self, LaneEvent { lane, life, news }: LaneEvent) -> Option<Event> {
        let current = self.lanes[lane as usize].as_ref().map(|(life, _)| *life);
        if current == Some(life) {
            return Some(Event::Lane { lane, life, news });
        }
        process_log::lane_news(lane, life, &news);
        None
    }

    /// Returns the present work of the threads of lanes on devices.
    pub(super) fn doing(&self) -> Vec<(LaneId, Doing)> {
        let lane = |&lane: &LaneId| Some((lane, &self.lanes[lane as usize].as_ref()?.1));
        let lanes = self.on_devices.iter().filter_map(lane);
        lanes.flat_map(|(number, lane)| lane.doing().map(move |doing| (number, doing))).collect()
    }

    /// Ends all threads and waits for that.
    pub(super) fn stop(self) {
        // A lane with news finds no receiver, and ends.
        drop(self.events);
        let lanes = self.lanes.into_iter().flatten().map(|(_, lane)| lane.end());
        Worker::join_all(lanes.chain(self.leaving).collect());
    }
}
