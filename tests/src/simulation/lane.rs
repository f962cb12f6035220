//! A simulated lane: what the threads of a lane do, one after the other, when the seed has it.

use std::collections::VecDeque;

use warptape_kernels::device::DeviceError;
use warptape_pipeline::engine::{Background, EngineConfig, LaneCommand, LaneResult, LaneStages, Slice};
use warptape_schemas::journal::LaneId;
use warptape_stages::risk::Partial;

/// A lane: commands that wait, and results that the core does not know of yet.
#[derive(Default)]
pub(super) struct SimulatedLane {
    /// Opened at the first command.
    stages: Option<LaneStages>,
    /// Of a lane on a device.
    background: Option<Background>,
    pub(super) commands: VecDeque<LaneCommand>,
    /// Slices that wait for the thread beside.
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
    /// As a lane's thread.
    pub(super) fn obey(
        &mut self,
        command: LaneCommand,
        config: &EngineConfig,
        index: usize,
    ) -> Result<Met, DeviceError> {
        let stages = match &mut self.stages {
            Some(stages) => stages,
            none => {
                let stages = none.insert(config.lane_stages(index as LaneId)?);
                self.background = stages.take_background();
                stages
            }
        };
        let command = match command {
            LaneCommand::RunSlice(slice) => {
                self.slices.push_back(slice);
                return Ok(Met::default());
            }
            command => command,
        };
        if !stages.runs_beside(&command) {
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

    /// As the thread beside: does the slice that waits.
    pub(super) fn run_slice(&mut self) -> Result<(), DeviceError> {
        let (Some(stages), Some(slice)) = (&self.stages, self.slices.pop_front()) else { return Ok(()) };
        let partial = match &mut self.background {
            Some(background) => background.run(&slice)?,
            None => slice.task.run(stages.isa(), slice.units),
        };
        self.results.push_back(SimulatedResult::Slice { slice: slice.slice, partial });
        Ok(())
    }
}
