//! The threads of all lanes.

use crossbeam_channel::{Receiver, Sender, bounded};
use warptape_engine::{Doing, Event, LaneCommand, Slice};
use warptape_schemas::journal::LaneId;

use super::lanes::{Lane, LaneEvent};
use super::worker::Worker;
use super::{Clock, EngineConfig, process_log};

/// The threads of each lane that has not been ended.
pub(super) struct LaneThreads {
    /// News from the lanes.
    pub(super) events: Receiver<LaneEvent>,
    sender: Sender<LaneEvent>,
    /// Each lane with the number of its life; `None` if the lane has been ended.
    lanes: Vec<Option<(u32, Lane)>>,
    /// The lanes that run on devices.
    on_devices: Vec<LaneId>,
    /// Threads of lanes that have been ended.
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

    /// Sends a command to a lane. Does nothing if the lane has been ended.
    pub(super) fn command(&self, lane: LaneId, command: LaneCommand) {
        if let Some((_, lane)) = &self.lanes[lane as usize] {
            lane.command(command);
        }
    }

    /// Sends a slice to a lane. Does nothing if the lane has been ended.
    pub(super) fn run_slice(&self, lane: LaneId, slice: Slice) {
        if let Some((_, lane)) = &self.lanes[lane as usize] {
            lane.run_slice(slice);
        }
    }

    /// Converts news of a lane to an event; `None` if the lane has since been ended or restarted.
    pub(super) fn heard(&self, LaneEvent { lane, life, news }: LaneEvent) -> Option<Event> {
        let current = self.lanes[lane as usize].as_ref().map(|(life, _)| *life);
        if current == Some(life) {
            return Some(Event::Lane { lane, life, news });
        }
        process_log::lane_news(lane, life, &news);
        None
    }

    /// Returns the current work of each thread of lanes on devices.
    pub(super) fn doing(&self) -> Vec<(LaneId, Doing)> {
        let lane = |&lane: &LaneId| Some((lane, &self.lanes[lane as usize].as_ref()?.1));
        let lanes = self.on_devices.iter().filter_map(lane);
        lanes.flat_map(|(number, lane)| lane.doing().map(move |doing| (number, doing))).collect()
    }

    /// Ends all threads and waits for them.
    pub(super) fn stop(self) {
        // A lane with news then finds no receiver, and ends.
        drop(self.events);
        let lanes = self.lanes.into_iter().flatten().map(|(_, lane)| lane.end());
        Worker::join_all(lanes.chain(self.leaving).collect());
    }
}
