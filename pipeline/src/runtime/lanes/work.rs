//! Work of a lane's thread: the seam between the thread and the groups of its lane.

use warptape_engine::LaneCommand;
use warptape_kernels::device::DeviceError;
use warptape_schemas::journal::LaneId;

use super::super::EngineConfig;
use super::{DeviceSlices, LaneResult};

/// The groups of a lane, and the execution of commands on them.
pub trait LaneWork {
    /// Returns the runner of slices on the lane's device, once, so that another thread can own it.
    fn take_background(&mut self) -> Option<DeviceSlices>;

    /// Returns bytes of device memory: of slots, of uploads, and of kernels' intermediate data, including those of risk
    /// tasks.
    fn memory_bytes(&self) -> Option<[usize; 3]>;

    /// True if a batch is in progress.
    fn is_running(&self) -> bool;

    /// True if a command may be executed while a batch is in progress. The batch must be finished before all others.
    fn may_overlap(&self, command: &LaneCommand) -> bool;

    /// Executes a command. On a device, this begins a batch and finishes the previous one. After an error the lane's
    /// state is void.
    fn obey(&mut self, command: LaneCommand) -> Result<Option<LaneResult>, DeviceError>;

    /// Finishes the batch in progress.
    fn finish(&mut self) -> Result<Option<LaneResult>, DeviceError>;
}

/// Opens lanes, in their threads. Tests wrap the opened lanes in delays and faults.
pub trait OpenLanes: Send + Sync {
    /// Opens a lane without groups, in a life that is counted from 0.
    fn open(&self, config: &EngineConfig, lane: LaneId, life: u32) -> Result<Box<dyn LaneWork>, DeviceError>;
}

/// Opens lanes on the devices of the configuration.
pub struct ConfiguredLanes;

impl OpenLanes for ConfiguredLanes {
    fn open(&self, config: &EngineConfig, lane: LaneId, _: u32) -> Result<Box<dyn LaneWork>, DeviceError> {
        Ok(Box::new(config.lane_stages(lane)?))
    }
}
