//! The engine's side of lanes: what it tells them, what it hears, and when it gives one up.

use std::sync::atomic::Ordering;

use warptape_kernels::device::Sample;
use warptape_schemas::journal::LaneId;

use super::super::lanes::{Lane, LaneCommand, LaneEvent, LaneNews};
use super::super::{EngineError, Progress};
use super::Engine;

/// How often a lane that failed is started again in the life of a process.
const LANE_RESTARTS_MAX: u32 = 3;

impl Engine {
    pub(super) fn start_lane(&self, index: usize, life: u32, fault: Option<u64>) -> Lane {
        Lane::start(index as LaneId, life, &self.config, self.clock, fault, self.lane_events_sender.clone())
    }

    pub(super) fn command_lane(&self, lane: LaneId, command: LaneCommand) {
        if let LaneCommand::Run(batch) = &command {
            let rows = self.core.batch_rows(batch.batch);
            self.progress.lanes[lane as usize].in_flight_rows.fetch_add(rows, Ordering::Relaxed);
        }
        if let Some(lane) = &self.lanes[lane as usize] {
            lane.command(command);
        }
    }

    pub(super) fn on_lane(&mut self, event: LaneEvent) -> Result<(), EngineError> {
        let LaneEvent { lane, life, news } = event;
        if self.lanes[lane as usize].as_ref().is_none_or(|current| current.life != life) {
            return Ok(());
        }
        match news {
            LaneNews::Completed { batch, service_ns, parts, memory_bytes } => {
                let figures = &self.progress.lanes[lane as usize];
                let rows = self.core.batch_rows(batch);
                figures.in_flight_rows.fetch_sub(rows, Ordering::Relaxed);
                Progress::add(&figures.rows, rows as u64);
                Progress::add(&figures.busy_ns, service_ns as u64);
                let device = self.config.device_of(lane);
                let sample = memory_bytes.and_then(|bytes| self.telemetry.record(lane, device, bytes));
                self.core.on_completed(self.clock.now_ns(), lane, batch, service_ns, parts, sample)?;
            }
            LaneNews::Released { group, epoch, stage } => {
                self.core.on_released(self.clock.now_ns(), lane, group, epoch, stage)?;
            }
            LaneNews::SliceDone { slice, service_ns, partial } => {
                Progress::add(&self.progress.lanes[lane as usize].busy_ns, service_ns as u64);
                self.core.on_slice_done(self.clock.now_ns(), lane, slice, service_ns, partial)?;
            }
            LaneNews::Measured { points } => {
                self.core.on_measured(self.clock.now_ns(), lane, points)?;
            }
            LaneNews::Lost { reason } => {
                // None of its threads is waited for: another one may be long at what it does.
                self.leaving.extend(self.lanes[lane as usize].take().map(Lane::end));
                self.on_lane_lost(lane, life, reason)?;
            }
        }
        self.obey()
    }

    /// Gives up lanes on devices that take too long.
    pub(super) fn fence_overdue_lanes(&mut self) -> Result<(), EngineError> {
        let (now_ns, deadline) = (self.clock.now_ns(), self.config.device_deadline);
        let other = self.config.device_open_deadline;
        for index in 0..self.lanes.len() {
            if !self.config.is_on_device(index as LaneId) {
                continue;
            }
            // Its thread may never come back, and is not waited for.
            if let Some(lane) = self.lanes[index].take_if(|lane| lane.is_overdue(now_ns, deadline, other)) {
                let reason = format!("no answer in time (a batch may take {} ms)", deadline.as_millis());
                self.on_lane_lost(index as LaneId, lane.life, reason)?;
            }
        }
        Ok(())
    }

    /// Keeps a device's sample; one that has met a critical error is given up.
    pub(super) fn on_sample(&mut self, device: String, sample: Sample) -> Result<(), EngineError> {
        if let Some(xid) = sample.xid {
            for index in 0..self.lanes.len() {
                let lane = index as LaneId;
                if self.config.device_of(lane) != device {
                    continue;
                }
                if let Some(lost) = self.lanes[index].take() {
                    self.on_lane_lost(lane, lost.life, format!("{device} has met Xid error {xid}"))?;
                }
            }
        }
        self.telemetry.keep(device, sample);
        Ok(())
    }

    /// What is left of a lane is gone; one on the processor is started again.
    fn on_lane_lost(&mut self, lane: LaneId, life: u32, reason: String) -> Result<(), EngineError> {
        let index = lane as usize;
        let device = &self.config.lanes[index].device;
        // A process that has lost a GPU once does not get it back.
        let restart = !self.config.is_on_device(lane) && life < LANE_RESTARTS_MAX;
        let reason = if self.config.is_on_device(lane) {
            format!("{reason}; {device} is used again after a restart of this process")
        } else {
            reason
        };
        tracing::error!(lane, device, reason, "lane lost");
        self.progress.lanes[index].in_flight_rows.store(0, Ordering::Relaxed);
        if restart {
            self.lanes[index] = Some(self.start_lane(index, life + 1, None));
        } else if self.lanes.iter().all(Option::is_none) {
            return Err(EngineError::NoLanes { reason });
        }
        Ok(self.core.on_lane_lost(self.clock.now_ns(), lane, reason, restart)?)
    }
}
