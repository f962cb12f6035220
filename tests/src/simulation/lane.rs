//! A simulated lane: what the threads of a lane do, one after the other, when the seed has it.

use std::collections::VecDeque;

use warptape_engine::{LaneCommand, Slice};
use warptape_kernels::Isa;
use warptape_kernels::device::DeviceError;
use warptape_pipeline::engine::{DeviceSlices, EngineConfig, LaneResult, LaneStages};
use warptape_schemas::journal::LaneId;
use warptape_stages::risk::Partial;

use crate::random::Random;

/// A lane: commands that wait, and results that the core does not know of yet.
pub(super) struct SimulatedLane {
    pub(super) life: u32,
    /// It does something once in so many times that it could: some lanes are slow.
    pub(super) pace: u64,
    /// Since when it answers nothing any more.
    pub(super) hangs_since_ns: Option<i64>,
    /// Opened when they are first needed.
    stages: Option<LaneStages>,
    /// Of a lane on a device.
    background: Option<DeviceSlices>,
    pub(super) commands: VecDeque<LaneCommand>,
    /// Slices that wait for the threads for slices.
    pub(super) slices: VecDeque<Slice>,
    pub(super) results: VecDeque<SimulatedResult>,
}

/// What the core is to hear of.
pub(super) enum SimulatedResult {
    Lane(LaneResult),
    Slice { slice: i64, partial: Partial },
}

/// What a batch met on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    /// It was begun while another was under way.
    pub(super) batch: bool,
    /// It passed a slice that was asked for before.
    pub(super) slice: bool,
}

impl SimulatedLane {
    pub(super) fn new(life: u32, random: &mut Random) -> Self {
        Self {
            life,
            pace: if random.one_in(4) { 8 } else { 1 },
            hangs_since_ns: None,
            stages: None,
            background: None,
            commands: VecDeque::new(),
            slices: VecDeque::new(),
            results: VecDeque::new(),
        }
    }

    /// Whether it has something to do, and does not hang.
    pub(super) fn has_work(&self) -> bool {
        self.hangs_since_ns.is_none() && !(self.commands.is_empty() && self.slices.is_empty())
    }

    /// Bytes of its device's memory.
    pub(super) fn memory_bytes(&self) -> Option<[usize; 3]> {
        self.stages.as_ref().and_then(LaneStages::memory_bytes)
    }

    /// As a lane's thread.
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
        // As a lane's thread has it: a batch is finished when nothing else is to be done.
        if self.commands.is_empty() {
            self.results.extend(stages.finish()?.map(SimulatedResult::Lane));
        }
        Ok(met)
    }

    /// Opens it, if that was not done before.
    pub(super) fn open(&mut self, config: &EngineConfig, index: usize) -> Result<(), DeviceError> {
        open(&mut self.stages, &mut self.background, config, index).map(drop)
    }

    /// As the threads for slices, once it is open: does the slice that waits. Whether the lane's device did it.
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

/// The stages of a lane, opened when they are first needed.
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
