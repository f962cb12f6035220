//! Slices on a lane's device, on a stream of the lowest priority. This part knows no threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use warptape_kernels::device::{Device, DeviceError};
use warptape_stages::risk::{DeviceRisk, Partial};

use super::Slice;

/// Runs slices on a lane's device, beside the lane's batches. Slices and batches share no memory.
pub struct DeviceSlices {
    device: Box<dyn Device>,
    memory: DeviceRisk,
    bytes: Arc<AtomicUsize>,
}

impl DeviceSlices {
    pub(super) fn new(device: Box<dyn Device>) -> Self {
        Self { device, memory: DeviceRisk::default(), bytes: Arc::default() }
    }

    /// Returns the counter of device memory in use, in bytes, which stays up to date.
    pub(super) fn bytes(&self) -> Arc<AtomicUsize> {
        self.bytes.clone()
    }

    /// Runs a slice. After an error the device and all its streams are unusable.
    pub fn run(&mut self, slice: &Slice) -> Result<Partial, DeviceError> {
        let done = slice.task.run_on_device(&mut self.memory, self.device.as_mut(), slice.units.clone());
        self.bytes.store(self.memory.bytes(), Ordering::Relaxed);
        done
    }
}
