//! Executes commands on the groups of a lane. This part of a lane must not know threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptape_engine::{BatchPart, GroupId, LaneBatch, LaneCommand, PartOutput};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_stages::{Begun, DeviceGroups, GroupInput, GroupOutput, GroupStage, StageConfig};

use super::{DeviceSlices, LaneWork};

/// Result of a command.
pub enum LaneResult {
    /// A batch is finished.
    Batch {
        /// Number of the batch.
        batch: i64,
        /// Output of each part.
        parts: Vec<PartOutput>,
    },
    /// A group was released.
    Released {
        /// The group.
        group: GroupId,
        /// Epoch of the group.
        epoch: i64,
        /// State of the group.
        stage: Box<GroupStage>,
    },
}

/// The groups of a lane, and the code that executes commands on them, without threads.
pub struct LaneStages {
    config: StageConfig,
    isa: Isa,
    epochs: BTreeMap<GroupId, i64>,
    groups: LaneGroups,
    /// Batch in progress on a device; `None` if there is none.
    running: Option<Running>,
    /// Runner of slices on a device, until another thread takes it.
    background: Option<DeviceSlices>,
    /// Bytes of device memory that slices use, updated by their runner.
    background_bytes: Arc<AtomicUsize>,
}

struct Running {
    batch: i64,
    /// Outputs of all parts. Those of current groups are filled in later.
    outputs: Vec<PartOutput>,
    begun: Begun<GroupId>,
}

/// State of a lane's groups, on the host or on a device.
enum LaneGroups {
    Host(BTreeMap<GroupId, Box<GroupStage>>),
    Device(Box<DeviceGroups<GroupId>>),
}

impl LaneStages {
    /// Creates a lane without groups, on the host.
    pub fn on_host(config: &StageConfig, isa: Isa) -> Self {
        Self::new(config, isa, LaneGroups::Host(BTreeMap::new()), None)
    }

    /// Creates a lane without groups, on a device.
    pub fn on_device(
        name: &str,
        mut device: Box<dyn Device>,
        config: &StageConfig,
        isa: Isa,
    ) -> Result<Self, DeviceError> {
        let background = DeviceSlices::new(device.background()?);
        let groups = LaneGroups::Device(Box::new(DeviceGroups::new(name, device, config)?));
        Ok(Self::new(config, isa, groups, Some(background)))
    }

    fn new(config: &StageConfig, isa: Isa, groups: LaneGroups, background: Option<DeviceSlices>) -> Self {
        Self {
            background_bytes: background.as_ref().map_or_else(Arc::default, DeviceSlices::bytes),
            background,
            config: config.clone(),
            isa,
            epochs: BTreeMap::new(),
            groups,
            running: None,
        }
    }

    /// Runs a batch. On a device, starts this batch and finishes the previous one.
    fn run(&mut self, LaneBatch { batch, parts }: LaneBatch) -> Result<Option<LaneResult>, DeviceError> {
        let mut outputs = Vec::with_capacity(parts.len());
        let mut inputs = Vec::with_capacity(parts.len());
        for BatchPart { group, epoch, input } in parts {
            outputs.push(PartOutput { group, epoch, output: GroupOutput::default() });
            // A part with an older epoch was cut off by a restore: its rows come again.
            if self.is_current(group, epoch) {
                inputs.push((group, input));
            }
        }
        match &mut self.groups {
            LaneGroups::Host(stages) => {
                let run = |(group, input)| run_on_host(stages, group, input);
                let current = inputs.into_iter().map(run).collect();
                Ok(Some(LaneResult::Batch { batch, parts: self.filled(outputs, current) }))
            }
            LaneGroups::Device(groups) => {
                let begun = groups.begin(inputs)?;
                let done = self.finish()?;
                self.running = Some(Running { batch, outputs, begun });
                Ok(done)
            }
        }
    }

    fn is_current(&self, group: GroupId, epoch: i64) -> bool {
        self.epochs.get(&group) == Some(&epoch)
    }

    /// Returns the outputs of all parts, after adding those of the current groups.
    fn filled(&self, mut outputs: Vec<PartOutput>, current: Vec<GroupOutput>) -> Vec<PartOutput> {
        let ran = outputs.iter_mut().filter(|part| self.is_current(part.group, part.epoch));
        for (part, output) in ran.zip(current) {
            part.output = output;
        }
        outputs
    }
}

impl LaneWork for LaneStages {
    fn take_background(&mut self) -> Option<DeviceSlices> {
        self.background.take()
    }

    fn memory_bytes(&self) -> Option<[usize; 3]> {
        match &self.groups {
            LaneGroups::Host(_) => None,
            LaneGroups::Device(groups) => {
                let [slots, staging, work] = groups.memory_bytes();
                Some([slots, staging, work + self.background_bytes.load(Ordering::Relaxed)])
            }
        }
    }

    fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn may_overlap(&self, command: &LaneCommand) -> bool {
        let LaneCommand::Run(batch) = command else { return false };
        let mut current = batch.parts.iter().filter(|part| self.is_current(part.group, part.epoch));
        current.all(|part| DeviceGroups::<GroupId>::may_overlap(&part.input))
    }

    fn obey(&mut self, command: LaneCommand) -> Result<Option<LaneResult>, DeviceError> {
        assert!(!self.is_running() || self.may_overlap(&command), "the batch under way is finished before");
        match command {
            LaneCommand::Install { group, epoch, state } => {
                self.epochs.insert(group, epoch);
                let stage = state.into_stage(&self.config, self.isa);
                match &mut self.groups {
                    LaneGroups::Host(stages) => drop(stages.insert(group, stage)),
                    LaneGroups::Device(groups) => groups.install(group, stage)?,
                }
                Ok(None)
            }
            LaneCommand::Drop { partition } => {
                let stays = |group: &GroupId| group.partition != partition;
                self.epochs.retain(|group, _| stays(group));
                match &mut self.groups {
                    LaneGroups::Host(stages) => stages.retain(|group, _| stays(group)),
                    LaneGroups::Device(groups) => groups.retain(stays),
                }
                Ok(None)
            }
            LaneCommand::Run(batch) => self.run(batch),
            LaneCommand::Release { group, epoch } => {
                // The partition may have left meanwhile.
                if !self.is_current(group, epoch) {
                    return Ok(None);
                }
                self.epochs.remove(&group);
                let stage = match &mut self.groups {
                    LaneGroups::Host(stages) => stages.remove(&group).expect(HAS_STAGE),
                    LaneGroups::Device(groups) => groups.take(&group)?,
                };
                Ok(Some(LaneResult::Released { group, epoch, stage }))
            }
        }
    }

    fn finish(&mut self) -> Result<Option<LaneResult>, DeviceError> {
        let Some(Running { batch, outputs, begun }) = self.running.take() else { return Ok(None) };
        let LaneGroups::Device(groups) = &mut self.groups else { return Ok(None) };
        let current = groups.finish(begun)?;
        Ok(Some(LaneResult::Batch { batch, parts: self.filled(outputs, current) }))
    }
}

const HAS_STAGE: &str = "a group with an epoch has a stage";

fn run_on_host(
    stages: &mut BTreeMap<GroupId, Box<GroupStage>>,
    group: GroupId,
    input: GroupInput,
) -> GroupOutput {
    let mut output = GroupOutput::default();
    stages.get_mut(&group).expect(HAS_STAGE).run(input, &mut output);
    output
}
