//! Slices on a lane's device, on a stream of the lowest priority: the part that knows no threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptape_kernels::device::{Device, DeviceError};
use warptape_stages::risk::{DeviceRisk, Partial};

use super::Slice;

/// Runs the slices of a lane on a device, beside the lane's batches. Slices and batches share no memory.
pub struct DeviceSlices {
    device: Box<dyn Device>,
    memory: DeviceRisk,
    bytes: Arc<AtomicUsize>,
}

impl DeviceSlices {
    pub(super) fn new(device: Box<dyn Device>) -> Self {
        Self { device, memory: DeviceRisk::default(), bytes: Arc::default() }
    }

    /// Returns the bytes of device memory in use, updated while they change.
    pub(super) fn bytes(&self) -> Arc<AtomicUsize> {
        self.bytes.clone()
    }

    /// Runs a slice. After an error the device is unusable, with all its streams.
    pub fn run(&mut self, slice: &Slice) -> Result<Partial, DeviceError> {
        let done = slice.task.run_on_device(&mut self.memory, self.device.as_mut(), slice.units.clone());
        self.bytes.store(self.memory.bytes(), Ordering::Relaxed);
        done
    }
}
