//! Devices of simulated lanes: emulated, and failing now and then.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use warptape_emulator::Emulator;
use warptape_kernels::device::{Device, DeviceError, Devices, Fault, FaultyDevice};

use crate::random::Random;

/// One emulator for all runs: to compile its kernels takes seconds.
pub static EMULATOR: LazyLock<Arc<Emulator>> = LazyLock::new(Arc::default);

/// Launches and downloads within which a device that fails does so.
const CALLS_MAX: usize = 100;

/// Devices some of which fail, as a seed has it.
pub struct SimulatedDevices {
    /// Nothing once devices are to be sound.
    faults: Mutex<Option<Random>>,
}

impl SimulatedDevices {
    /// Devices of a seed.
    pub fn new(random: Random) -> Self {
        Self { faults: Mutex::new(Some(random)) }
    }

    /// Devices that are opened from now on are sound.
    pub fn heal(&self) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Devices for SimulatedDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        let device = EMULATOR.open(name)?;
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(random) = faults.as_mut() else { return Ok(device) };
        if random.one_in(2) {
            return Ok(device);
        }
        let call = random.index(CALLS_MAX) as u64;
        let fault = match random.index(3) {
            0 => Fault::Launch(call),
            1 => Fault::Gone(call),
            _ => Fault::OutOfMemory(call),
        };
        Ok(Box::new(FaultyDevice::new(name, device, fault)))
    }
}
