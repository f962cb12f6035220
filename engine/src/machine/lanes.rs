//! Messages of lanes, and the loss and restart of lanes.

use std::collections::BTreeSet;

use warptape_events::journal::{
    Arrived, Completed, DeviceSample, Input, LaneId, LaneLost, LaneReady, Measured, Released, Sampled,
    ServicePoint,
};
use warptape_kernels::device::Sample;
use warptape_stages::GroupStage;

use super::Core;
use crate::command::Command;
use crate::error::CoreError;
use crate::lanes::{GroupId, LaneNews, PartOutput};
use crate::recorder::RecordError;
use crate::text::{LOST_REASON_BYTES_MAX, cut};

/// Most restarts of a failed lane on the processor in one process life.
const LANE_RESTARTS_MAX: u32 = 3;
/// Longest pause of the engine, in nanoseconds, after which the clock still shows reliably that a lane is slow.
const TURN_NS_MAX: i64 = 1_000_000_000;

/// Current work of a device lane's thread, as the thread itself reports it. So a lane is not blamed for messages that a
/// busy engine has not received yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A batch.
    Batch {
        /// Begin of the work, in nanoseconds of the engine's clock.
        since_ns: i64,
    },
    /// Other work: opening its device, installing a group, or a slice.
    Other {
        /// Begin of the work, in nanoseconds of the engine's clock.
        since_ns: i64,
    },
}

/// State of lanes and devices.
pub(super) struct Lanes {
    /// Number of earlier starts, by lane; `None` for a lost lane.
    lives: Vec<Option<u32>>,
    /// Bytes of slots, staging and workspace that a device lane reported last, by lane.
    memory_bytes: Vec<[usize; 3]>,
    watched_ns: i64,
}

impl Lanes {
    pub(super) fn new(count: usize) -> Self {
        Self { lives: vec![None; count], memory_bytes: vec![[0; 3]; count], watched_ns: 0 }
    }
}

impl Core {
    pub(super) fn start_lanes(&mut self, now_ns: i64) {
        self.lanes.watched_ns = now_ns;
        for (lane, life) in (0..).zip(&mut self.lanes.lives) {
            *life = Some(0);
            self.commands.push_back(Command::StartLane { lane, life: 0 });
        }
    }

    /// True if a message of a lane in this life is current.
    fn is_alive(&self, lane: LaneId, life: u32) -> bool {
        self.lanes.lives[lane as usize] == Some(life)
    }

    /// Handles a message of a lane in one of its lives.
    pub(super) fn on_lane(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        life: u32,
        news: LaneNews,
    ) -> Result<(), CoreError> {
        if !self.is_alive(lane, life) {
            return Ok(());
        }
        match news {
            LaneNews::Completed { batch, service_ns, parts, memory_bytes } => {
                if let Some(bytes) = memory_bytes {
                    self.lanes.memory_bytes[lane as usize] = bytes;
                }
                self.on_completed(now_ns, lane, batch, service_ns, parts)?;
            }
            LaneNews::Released { group, epoch, stage } => {
                self.on_released(now_ns, lane, group, epoch, stage)?
            }
            LaneNews::SliceDone { slice, service_ns, partial } => {
                self.on_slice_done(now_ns, lane, slice, service_ns, partial)?;
            }
            LaneNews::Measured { points } => self.on_measured(now_ns, lane, points)?,
            LaneNews::Lost { reason } => self.lose_lane(now_ns, lane, reason, false)?,
        }
        Ok(())
    }

    /// Gives up lanes on devices that take too long. Gives up none if the engine itself was held up, because then it
    /// cannot judge them.
    pub(crate) fn on_watch(&mut self, now_ns: i64, doing: &[(LaneId, Doing)]) -> Result<(), CoreError> {
        let was_held_up = now_ns - self.lanes.watched_ns >= TURN_NS_MAX;
        self.lanes.watched_ns = now_ns;
        if was_held_up {
            return Ok(());
        }
        let times = self.config.times;
        for &(lane, doing) in doing {
            let (since_ns, allowed_ns) = match doing {
                Doing::Batch { since_ns } => (since_ns, times.device_deadline_ns),
                Doing::Other { since_ns } => (since_ns, times.device_open_deadline_ns),
            };
            let is_overdue = (now_ns - since_ns).max(0) > allowed_ns;
            if is_overdue && self.config.is_on_device(lane) && self.lanes.lives[lane as usize].is_some() {
                let allowed_ms = times.device_deadline_ns / 1_000_000;
                let reason = format!("no answer in time (a batch may take {allowed_ms} ms)");
                self.lose_lane(now_ns, lane, reason, true)?;
            }
        }
        Ok(())
    }

    /// Records a device's sample for each of its lanes. Gives up a lane whose device has met a critical error.
    pub(super) fn on_sample(&mut self, now_ns: i64, device: &str, sample: &Sample) -> Result<(), CoreError> {
        // A process that has processed everything commits, and records nothing more.
        let records = !self.is_drained();
        for lane in 0..self.config.lanes.len() as LaneId {
            if self.config.device_of(lane) != device || self.lanes.lives[lane as usize].is_none() {
                continue;
            }
            let sampled = Sampled { lane, sample: recorded(sample, self.lanes.memory_bytes[lane as usize]) };
            if records {
                self.step(now_ns, Input::Sampled(Box::new(sampled)))?;
            }
            if let Some(xid) = sample.xid {
                self.lose_lane(now_ns, lane, format!("{device} has met Xid error {xid}"), true)?;
            }
        }
        Ok(())
    }

    /// Removes a lane. A lane on the processor is started again, up to [`LANE_RESTARTS_MAX`] times; a lost GPU is not
    /// used again in this life.
    fn lose_lane(&mut self, now_ns: i64, lane: LaneId, reason: String, hangs: bool) -> Result<(), CoreError> {
        let is_on_device = self.config.is_on_device(lane);
        let device = &self.config.lanes[lane as usize].device;
        let reason = match is_on_device {
            true => format!("{reason}; {device} is used again after a restart of this process"),
            false => reason,
        };
        tracing::error!(lane, device, reason, "lane lost");
        self.commands.push_back(Command::EndLane { lane, hangs });
        let life = self.lanes.lives[lane as usize].take().expect("a lane is lost once");
        let restart = !is_on_device && life < LANE_RESTARTS_MAX;
        if restart {
            self.lanes.lives[lane as usize] = Some(life + 1);
            self.commands.push_back(Command::StartLane { lane, life: life + 1 });
        } else if self.lanes.lives.iter().all(Option::is_none) {
            return Err(CoreError::NoLanes { reason });
        }
        Ok(self.on_lane_lost(now_ns, lane, reason, restart)?)
    }

    /// Handles a finished batch of a lane.
    fn on_completed(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        batch: i64,
        service_ns: i64,
        parts: Vec<PartOutput>,
    ) -> Result<(), CoreError> {
        let mut waiting = BTreeSet::new();
        for part in parts {
            if let Some(partition) = self.partitions.get_mut(&part.group.partition) {
                partition.complete(part.group, part.epoch, part.output, self.config.limits.kept_bytes_max);
                if partition.waits_for_pages() {
                    waiting.insert(part.group.partition);
                }
            }
        }
        self.step(now_ns, Input::Completed(Completed { lane, batch, service_ns, sample: None }))?;
        waiting.into_iter().try_for_each(|partition| self.see_to_pages(partition))
    }

    /// Handles the measured service times of a lane.
    fn on_measured(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        points: Vec<ServicePoint>,
    ) -> Result<(), RecordError> {
        self.step(now_ns, Input::Measured(Measured { lane, points }))
    }

    /// Handles a group that a lane gave back.
    fn on_released(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        group: GroupId,
        epoch: i64,
        stage: Box<GroupStage>,
    ) -> Result<(), RecordError> {
        let GroupId { partition, group } = group;
        let owned = self.partitions.get_mut(&partition);
        // The partition may have gone or been restored since the lane got the command.
        if !owned.is_some_and(|owned| owned.release(group, lane, epoch, stage)) {
            return Ok(());
        }
        self.step(now_ns, Input::Released(Released { partition, group, lane, epoch }))
    }

    /// Handles the failure of a lane; `restarted` is true if a new worker has taken its place.
    fn on_lane_lost(
        &mut self,
        now_ns: i64,
        lane: LaneId,
        reason: String,
        restarted: bool,
    ) -> Result<(), RecordError> {
        let reason = cut(reason, LOST_REASON_BYTES_MAX);
        self.risk.forget_lane(lane);
        let kept = self.config.is_on_device(lane)
            && self.partitions.values().all(|owned| owned.keeps_groups_of(lane));
        let mut again = Vec::new();
        if kept {
            for (&partition, owned) in &mut self.partitions {
                let groups = owned.take_back(lane);
                again.push(Arrived { partition, next_offset: owned.next_offset, groups });
            }
        }
        self.step(now_ns, Input::LaneLost(LaneLost { lane, reason, kept }))?;
        for arrived in again.into_iter().filter(|arrived| !arrived.groups.is_empty()) {
            self.step(now_ns, Input::Arrived(arrived))?;
        }
        if restarted {
            self.step(now_ns, Input::LaneReady(LaneReady { lane }))?;
        }
        Ok(())
    }
}

/// The recorded form of a device's sample for one lane, with the lane's own memory.
fn recorded(sample: &Sample, memory_bytes: [usize; 3]) -> DeviceSample {
    let [slots_bytes, staging_bytes, work_bytes] = memory_bytes.map(|bytes| bytes as i64);
    let wide = |value: Option<u32>| value.map(i64::from);
    let long = |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
    DeviceSample {
        slots_bytes,
        staging_bytes,
        work_bytes,
        memory_used_bytes: long(sample.memory_used_bytes),
        memory_free_bytes: long(sample.memory_free_bytes),
        utilization_percent: wide(sample.utilization_percent),
        temperature_c: wide(sample.temperature_c),
        power_mw: wide(sample.power_mw),
        sm_clock_mhz: wide(sample.sm_clock_mhz),
        memory_clock_mhz: wide(sample.memory_clock_mhz),
        throttle_bits: long(sample.throttle_bits),
        ecc_errors_uncorrected: long(sample.ecc_errors_uncorrected),
        xid: long(sample.xid),
        slowdown_c: wide(sample.slowdown_c),
    }
}
