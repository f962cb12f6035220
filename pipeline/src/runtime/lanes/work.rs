//! The interface between a lane's thread and the groups of the lane.

use warptape_engine::LaneCommand;
use warptape_kernels::device::DeviceError;
use warptape_schemas::journal::LaneId;

use super::super::EngineConfig;
use super::{DeviceSlices, LaneResult};

/// The groups of a lane, and the code that executes commands on them.
pub trait LaneWork {
    /// Returns the runner of slices on the lane's device. Only the first call does, so that another thread can own it.
    fn take_background(&mut self) -> Option<DeviceSlices>;

    /// Returns three amounts of device memory in bytes: of slots, of uploads, and of kernels' intermediate data,
    /// including those of risk tasks.
    fn memory_bytes(&self) -> Option<[usize; 3]>;

    /// True if a batch is in progress.
    fn is_running(&self) -> bool;

    /// True if a command may be executed while a batch is in progress. For other commands the batch must be finished
    /// first.
    fn may_overlap(&self, command: &LaneCommand) -> bool;

    /// Executes a command. On a device, a batch is started, and the previous one finished. After an error the lane's
    /// state is invalid.
    fn obey(&mut self, command: LaneCommand) -> Result<Option<LaneResult>, DeviceError>;

    /// Finishes the batch in progress.
    fn finish(&mut self) -> Result<Option<LaneResult>, DeviceError>;
}

/// Opens lanes, on the lanes' own threads. Tests wrap the opened lanes to add delays and faults.
pub trait OpenLanes: Send + Sync {
    /// Opens a lane without groups. `life` is the number of its restarts.
    fn open(&self, config: &EngineConfig, lane: LaneId, life: u32) -> Result<Box<dyn LaneWork>, DeviceError>;
}

/// Opens lanes on the devices of the configuration.
pub struct ConfiguredLanes;

impl OpenLanes for ConfiguredLanes {
    fn open(&self, config: &EngineConfig, lane: LaneId, _: u32) -> Result<Box<dyn LaneWork>, DeviceError> {
        Ok(Box::new(config.lane_stages(lane)?))
    }
}
