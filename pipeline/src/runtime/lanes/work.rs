//! What a lane's thread has done: the seam between the thread and the groups of its lane.

use warptape_engine::LaneCommand;
use warptape_kernels::device::DeviceError;
use warptape_schemas::journal::LaneId;

use super::super::EngineConfig;
use super::{DeviceSlices, LaneResult};

/// The groups of a lane and what they do with a command.
pub trait LaneWork {
    /// Gives what does the slices of a lane on a device, once, so that another thread can have it.
    fn take_background(&mut self) -> Option<DeviceSlices>;

    /// Bytes of the device's memory: of slots, of what is uploaded, of what kernels hand on, those of risk too.
    fn memory_bytes(&self) -> Option<[usize; 3]>;

    /// Whether a batch is under way.
    fn is_running(&self) -> bool;

    /// Whether a command may be obeyed while a batch is under way: before all others that is to be finished.
    fn may_overlap(&self, command: &LaneCommand) -> bool;

    /// Obeys a command; a batch on a device is begun by that, and the one before it finished. After an error the lane's state is
    /// void.
    fn obey(&mut self, command: LaneCommand) -> Result<Option<LaneResult>, DeviceError>;

    /// Finishes the batch that is under way.
    fn finish(&mut self) -> Result<Option<LaneResult>, DeviceError>;
}

/// Opens lanes, in their threads. Tests put delays and faults round what is opened.
pub trait OpenLanes: Send + Sync {
    /// A lane without groups, in a life that is counted from 0.
    fn open(&self, config: &EngineConfig, lane: LaneId, life: u32) -> Result<Box<dyn LaneWork>, DeviceError>;
}

/// Lanes on the devices of the configuration.
pub struct ConfiguredLanes;

impl OpenLanes for ConfiguredLanes {
    fn open(&self, config: &EngineConfig, lane: LaneId, _: u32) -> Result<Box<dyn LaneWork>, DeviceError> {
        Ok(Box::new(config.lane_stages(lane)?))
    }
}
