//! A simulated lane. It performs the steps of a lane's threads one after another, when the seed decides.

use std::collections::VecDeque;

use warptape_engine::{Doing, Event, LaneCommand, LaneNews, Slice};
use warptape_kernels::Isa;
use warptape_kernels::device::{DeviceError, Sample};
use warptape_pipeline::runtime::{DeviceSlices, EngineConfig, LaneResult, LaneStages, LaneWork};
use warptape_schemas::journal::{LaneId, ServicePoint};
use warptape_stages::risk::Partial;

use super::process::{Around, Process, any_of};
use super::risk::POSITIONS;
use super::{Failure, Plant, World, swap_prices};
use crate::random::Random;

/// A lane with its waiting commands, and the results that the core has not received.
pub(super) struct SimulatedLane {
    pub(super) life: u32,
    /// Interval between the opportunities that the lane uses; it is longer for slow lanes.
    pub(super) pace: u64,
    /// The operation in which the lane hangs; `None` if it works.
    pub(super) hangs: Option<Doing>,
    /// The lane's stages; `None` until they are first used.
    stages: Option<LaneStages>,
    /// Runs slices on the lane's device; `None` for lanes without a device.
    background: Option<DeviceSlices>,
    pub(super) commands: VecDeque<LaneCommand>,
    /// Slices that wait for the slice threads.
    pub(super) slices: VecDeque<Slice>,
    pub(super) results: VecDeque<SimulatedResult>,
}

/// A result for the core.
pub(super) enum SimulatedResult {
    Lane(LaneResult),
    Slice { slice: i64, partial: Partial },
}

/// Situations that occurred when a batch began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    /// True if the batch began while another one was running.
    pub(super) batch: bool,
    /// True if the batch overtook an earlier slice.
    pub(super) slice: bool,
}

impl SimulatedLane {
    pub(super) fn new(life: u32, random: &mut Random) -> Self {
        Self {
            life,
            pace: if random.one_in(4) { 8 } else { 1 },
            hangs: None,
            stages: None,
            background: None,
            commands: VecDeque::new(),
            slices: VecDeque::new(),
            results: VecDeque::new(),
        }
    }

    /// True if the lane has work and does not hang.
    pub(super) fn has_work(&self) -> bool {
        self.hangs.is_none() && !(self.commands.is_empty() && self.slices.is_empty())
    }

    /// Returns the memory use of the lane's device, in bytes; `None` if there is none.
    pub(super) fn memory_bytes(&self) -> Option<[usize; 3]> {
        self.stages.as_ref().and_then(LaneWork::memory_bytes)
    }

    /// Executes a command like a lane's thread.
    pub(super) fn obey(
        &mut self,
        command: LaneCommand,
        config: &EngineConfig,
        index: usize,
    ) -> Result<Met, DeviceError> {
        let stages = open(&mut self.stages, &mut self.background, config, index)?;
        if !stages.may_overlap(&command) {
            self.results.extend(stages.finish()?.map(SimulatedResult::Lane));
        }
        let is_batch = matches!(command, LaneCommand::Run(_));
        let met = Met { batch: stages.is_running(), slice: is_batch && !self.slices.is_empty() };
        self.results.extend(stages.obey(command)?.map(SimulatedResult::Lane));
        // As in a lane's thread, a batch is finished if there is no other work.
        if self.commands.is_empty() {
            self.results.extend(stages.finish()?.map(SimulatedResult::Lane));
        }
        Ok(met)
    }

    /// Opens the lane unless it is open.
    pub(super) fn open(&mut self, config: &EngineConfig, index: usize) -> Result<(), DeviceError> {
        open(&mut self.stages, &mut self.background, config, index).map(drop)
    }

    /// Runs the next waiting slice, like the slice threads of an open lane. Returns true if the lane's device ran it.
    pub(super) fn run_slice(&mut self, isa: Isa) -> Result<bool, DeviceError> {
        let Some(slice) = self.slices.pop_front() else { return Ok(false) };
        let background = self.background.as_mut().filter(|_| !slice.task.is_host_only());
        let by_device = background.is_some();
        let partial = match background {
            Some(background) => background.run(&slice)?,
            None => slice.task.run(isa, slice.units),
        };
        self.results.push_back(SimulatedResult::Slice { slice: slice.slice, partial });
        Ok(by_device)
    }
}

/// Returns the stages of a lane, and opens them on first use.
fn open<'a>(
    stages: &'a mut Option<LaneStages>,
    background: &mut Option<DeviceSlices>,
    config: &EngineConfig,
    index: usize,
) -> Result<&'a mut LaneStages, DeviceError> {
    match stages {
        Some(stages) => Ok(stages),
        none => {
            let stages = none.insert(config.lane_stages(index as LaneId)?);
            *background = stages.take_background();
            Ok(stages)
        }
    }
}

impl Process {
    /// Executes a command of a lane, which may fail.
    pub(super) fn work(&mut self, world: &mut World) -> Result<(), Failure> {
        let Some(index) = self.around.any_lane(world, SimulatedLane::has_work) else { return Ok(()) };
        let lane = self.around.lanes[index].as_mut().expect("it was found");
        if !world.phase.healing && !world.random.one_in(lane.pace) {
            return Ok(());
        }
        if !lane.slices.is_empty() && (lane.commands.is_empty() || world.random.one_in(2)) {
            let revalued = self.core.status().positions_revalued;
            if let Err(error) = lane.open(&self.around.config, index) {
                return self.fail_device(index, &error, world);
            }
            match lane.run_slice(self.around.config.isa) {
                Ok(by_device) => world.coverage.device_slices += usize::from(by_device),
                Err(error) => {
                    world.coverage.background_faults += 1;
                    return self.fail_device(index, &error, world);
                }
            }
            let revalued = self.core.status().positions_revalued - revalued;
            world.coverage.portfolios_followed += usize::from((1..POSITIONS as u64).contains(&revalued));
            return Ok(());
        }
        let Some(mut command) = lane.commands.pop_front() else { return Ok(()) };
        if world.plant == Plant::RowsSwapped {
            swap_prices(&mut command);
        }
        world.coverage.device_commands += usize::from(self.around.config.core.is_on_device(index as LaneId));
        match lane.obey(command, &self.around.config, index) {
            Ok(met) => {
                world.coverage.batches_overlapped += usize::from(met.batch);
                world.coverage.slices_passed += usize::from(met.slice);
                Ok(())
            }
            Err(error) => self.fail_device(index, &error, world),
        }
    }

    /// Handles an error of a lane's device. The other lanes on the device will also meet it, unless it was only a lack
    /// of memory.
    fn fail_device(&mut self, index: usize, error: &DeviceError, world: &mut World) -> Result<(), Failure> {
        world.coverage.device_faults += 1;
        if !matches!(error, DeviceError::OutOfMemory { .. }) {
            let device = self.around.config.core.device_of(index as LaneId).to_owned();
            world.coverage.devices_shared += usize::from(!self.around.broken_devices.insert(device));
        }
        self.lose_lane(index, world)
    }

    /// Reports a finished result of a lane to the core.
    pub(super) fn report(&mut self, world: &mut World) -> Result<(), Failure> {
        let news = self.around.lane_news(world);
        news.map_or(Ok(()), |news| self.tell(news, world))
    }

    /// Reports a measurement of a lane, with a random time per batch and per row.
    pub(super) fn measure(&mut self, world: &mut World) -> Result<(), Failure> {
        let index = world.random.index(self.around.lanes.len());
        let Some(lane) = self.around.lanes[index].as_ref().filter(|_| self.around.config.routes()) else {
            return Ok(());
        };
        let (base_ns, row_ns) = (world.random.between(1, 100_000), world.random.between(1, 10_000));
        let points = [1, 16, 256].map(|rows| ServicePoint { rows, service_ns: base_ns + rows * row_ns });
        let news = LaneNews::Measured { points: points.into() };
        let life = lane.life;
        self.tell(Event::Lane { lane: index as LaneId, life, news }, world)
    }

    /// Makes a lane fail, with all its work.
    pub(super) fn lose_lane(&mut self, index: usize, world: &mut World) -> Result<(), Failure> {
        let Some(lane) = &self.around.lanes[index] else { return Ok(()) };
        let news = LaneNews::Lost { reason: "simulated".to_owned() };
        let life = lane.life;
        self.tell(Event::Lane { lane: index as LaneId, life, news }, world)
    }

    /// Makes a lane on a device hang in a batch, or in another operation such as opening the device.
    pub(super) fn hang(&mut self, world: &mut World) {
        let index = world.random.index(self.around.lanes.len());
        let since_ns = world.now_ns;
        let doing = match world.random.one_in(3) {
            true => Doing::Other { since_ns },
            false => Doing::Batch { since_ns },
        };
        if let Some(lane) = self.around.lanes[index]
            .as_mut()
            .filter(|_| self.around.config.core.is_on_device(index as LaneId))
        {
            lane.hangs.get_or_insert(doing);
        }
    }

    /// Reports a sample of a device.
    pub(super) fn sample(&mut self, world: &mut World) -> Result<(), Failure> {
        let index = world.random.index(self.around.lanes.len()) as LaneId;
        if !self.around.config.core.is_on_device(index) {
            return Ok(());
        }
        let xid = (!world.phase.healing && world.random.one_in(40)).then_some(79);
        world.coverage.xid_errors +=
            usize::from(xid.is_some() && self.around.lanes[index as usize].is_some());
        let (temperature_c, slowdown_c) = (Some(world.random.between(60, 95) as u32), Some(90));
        let ecc_errors_uncorrected = Some(u64::from(world.random.one_in(20)));
        let memory_free_bytes = Some(world.random.between(0, 100) as u64);
        let memory_used_bytes = memory_free_bytes.map(|free| 100 - free);
        let sample = Sample {
            xid,
            temperature_c,
            slowdown_c,
            ecc_errors_uncorrected,
            memory_used_bytes,
            memory_free_bytes,
            ..Sample::default()
        };
        let device = self.around.config.core.device_of(index).to_owned();
        let on_device: Vec<usize> = (0..self.around.lanes.len())
            .filter(|&lane| {
                self.around.config.core.device_of(lane as LaneId) == device
                    && self.around.lanes[lane].is_some()
            })
            .collect();
        self.tell(Event::Sample { device, sample }, world)?;
        if xid.is_some() && !self.gave_up {
            let is_left = |&&lane: &&usize| self.around.lanes[lane].is_some();
            assert_eq!(
                on_device.iter().find(is_left),
                None,
                "a critical error takes the device from all its lanes"
            );
            world.coverage.devices_lost_whole += usize::from(on_device.len() > 1);
        }
        Ok(())
    }
}

impl Around {
    /// Returns a random lane for which `has` is true; `None` if there is none.
    fn any_lane(&self, world: &mut World, has: impl Fn(&SimulatedLane) -> bool) -> Option<usize> {
        let lanes = self.lanes.iter().enumerate();
        let have = lanes.filter(|(_, lane)| lane.as_ref().is_some_and(&has)).map(|(index, _)| index);
        any_of(have.collect(), &mut world.random)
    }

    /// Removes and returns a finished result of a random lane; `None` if there is none.
    pub(super) fn lane_news(&mut self, world: &mut World) -> Option<Event> {
        let index = self.any_lane(world, |lane| !lane.results.is_empty())?;
        let lane = self.lanes[index].as_mut().expect("it was found");
        let result = lane.results.pop_front().expect("it has one");
        let (life, service_ns) = (lane.life, world.random.between(1, 1_000_000));
        let news = match result {
            SimulatedResult::Lane(LaneResult::Batch { batch, parts }) => {
                LaneNews::Completed { batch, service_ns, parts, memory_bytes: lane.memory_bytes() }
            }
            SimulatedResult::Lane(LaneResult::Released { group, epoch, stage }) => {
                LaneNews::Released { group, epoch, stage }
            }
            SimulatedResult::Slice { slice, partial } => LaneNews::SliceDone { slice, service_ns, partial },
        };
        Some(Event::Lane { lane: index as LaneId, life, news })
    }

    /// Returns the hanging lanes, each with its operation.
    pub(super) fn doing(&self) -> Vec<(LaneId, Doing)> {
        let of_lane = |(index, lane): (LaneId, &Option<SimulatedLane>)| Some((index, lane.as_ref()?.hangs?));
        (0..).zip(&self.lanes).filter_map(of_lane).collect()
    }

    /// True if a lane exceeds the time allowed for an operation.
    pub(super) fn is_any_overdue(&self, doing: &[(LaneId, Doing)], now_ns: i64) -> bool {
        let times = self.config.core.times;
        let is_overdue = |(_, doing): &(LaneId, Doing)| match doing {
            Doing::Batch { since_ns } => now_ns - since_ns > times.device_deadline_ns,
            Doing::Other { since_ns } => now_ns - since_ns > times.device_open_deadline_ns,
        };
        doing.iter().any(is_overdue)
    }
}
