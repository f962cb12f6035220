//! Slices on a lane's device, on a stream of the lowest priority: the part of it that knows no thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptape_kernels::device::{Device, DeviceError};
use warptape_stages::risk::{DeviceRisk, Partial};

use super::Slice;

/// Does the slices of a lane on a device, beside the batches of the lane. Neither uses memory of the other.
pub struct DeviceSlices {
    device: Box<dyn Device>,
    memory: DeviceRisk,
    bytes: Arc<AtomicUsize>,
}

impl DeviceSlices {
    pub(super) fn new(device: Box<dyn Device>) -> Self {
        Self { device, memory: DeviceRisk::default(), bytes: Arc::default() }
    }

    /// Bytes of the device's memory that it takes, as they change.
    pub(super) fn bytes(&self) -> Arc<AtomicUsize> {
        self.bytes.clone()
    }

    /// Does a slice. After an error the device is void, its other streams too.
    pub fn run(&mut self, slice: &Slice) -> Result<Partial, DeviceError> {
        let done = slice.task.run_on_device(&mut self.memory, self.device.as_mut(), slice.units.clone());
        self.bytes.store(self.memory.bytes(), Ordering::Relaxed);
        done
    }
}
