//! Emulated devices of simulated lanes, with occasional faults. Also devices that tests can observe.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use warptape_emulator::Emulator;
use warptape_kernels::device::{Address, Device, DeviceError, Devices, Fault, FaultyDevice, Kernel};

use crate::random::Random;

/// The emulator of all runs. It is shared because compiling its kernels takes seconds.
pub static EMULATOR: LazyLock<Arc<Emulator>> = LazyLock::new(Arc::default);

/// Greatest number of launches and downloads before a faulty device fails.
const CALLS_MAX: usize = 50;
/// Greatest number of such calls on the stream of slices, which are few.
const BACKGROUND_CALLS_MAX: usize = 2;

/// Devices, some of which fail as the seed decides.
pub struct SimulatedDevices {
    /// Draws the faults; `None` once devices must work without faults.
    faults: Mutex<Option<Random>>,
}

impl SimulatedDevices {
    /// Creates the devices of a seed.
    pub fn new(random: Random) -> Self {
        Self { faults: Mutex::new(Some(random)) }
    }

    /// Makes all devices opened from now on work without faults.
    pub fn heal(&self) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the devices of a new process, with intact contexts.
    pub fn of_process(self: &Arc<Self>) -> Arc<dyn Devices> {
        Arc::new(ProcessDevices { devices: self.clone(), contexts: Mutex::default() })
    }

    /// Draws the faults of the next device: on its main stream, and on the stream of its slices.
    fn draw_faults(&self) -> [Option<Fault>; 2] {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(random) = faults.as_mut() else { return [None, None] };
        if random.one_in(3) {
            return [None, None];
        }
        let background = !random.one_in(4);
        let call = random.index(if background { BACKGROUND_CALLS_MAX } else { CALLS_MAX }) as u64;
        let fault = match random.index(4) {
            0 | 1 => Fault::Launch(call),
            2 => Fault::Gone(call),
            _ => Fault::OutOfMemory(call),
        };
        if background { [None, Some(fault)] } else { [Some(fault), None] }
    }
}

/// The devices of one process; all lanes on a device share its context.
struct ProcessDevices {
    devices: Arc<SimulatedDevices>,
    /// For each device, true if its context is broken. The lanes on the device write and read it.
    contexts: Mutex<BTreeMap<String, Arc<AtomicBool>>>,
}

impl Devices for ProcessDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        let device = EMULATOR.open(name)?;
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        let context = contexts.entry(name.to_owned()).or_default().clone();
        let faulty = FaultyDevice::with_faults(name, device, self.devices.draw_faults());
        Ok(Box::new(faulty.in_context(context)))
    }
}

/// A function that replaces a launch.
type Launch = Box<dyn FnMut(&mut dyn Device, &Kernel, &[u8], usize) -> Result<(), DeviceError> + Send>;
/// A function that wraps a background stream.
type Background = Box<dyn FnMut(Box<dyn Device>) -> Box<dyn Device> + Send>;

/// A device that a test can observe.
pub struct Intercepted {
    device: Box<dyn Device>,
    launch: Launch,
    background: Background,
}

impl Intercepted {
    /// Creates a device whose launches go through a function.
    pub fn launches(
        device: Box<dyn Device>,
        launch: impl FnMut(&mut dyn Device, &Kernel, &[u8], usize) -> Result<(), DeviceError> + Send + 'static,
    ) -> Self {
        Self { device, launch: Box::new(launch), background: Box::new(|background| background) }
    }

    /// Creates a device whose background streams are wrapped by a function.
    pub fn background(
        device: Box<dyn Device>,
        background: impl FnMut(Box<dyn Device>) -> Box<dyn Device> + Send + 'static,
    ) -> Self {
        let plain = |device: &mut dyn Device, kernel: &Kernel, args: &[u8], threads: usize| {
            device.launch(kernel, args, threads)
        };
        Self { background: Box::new(background), ..Self::launches(device, plain) }
    }
}

impl Device for Intercepted {
    fn allocate(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        self.device.allocate(bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.device.free(address)
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], DeviceError> {
        self.device.staging(bytes)
    }

    fn upload(&mut self, to: Address, bytes: usize) -> Result<(), DeviceError> {
        self.device.upload(to, bytes)
    }

    fn download(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.download(from, bytes)
    }

    fn begin_download(&mut self, from: Address, bytes: usize) -> Result<(), DeviceError> {
        self.device.begin_download(from, bytes)
    }

    fn end_download(&mut self) -> Result<&[u8], DeviceError> {
        self.device.end_download()
    }

    fn download_ended(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.download_ended(from, bytes)
    }

    fn clear(&mut self, address: Address, bytes: usize) -> Result<(), DeviceError> {
        self.device.clear(address, bytes)
    }

    fn launch(&mut self, kernel: &Kernel, args: &[u8], threads: usize) -> Result<(), DeviceError> {
        (self.launch)(self.device.as_mut(), kernel, args, threads)
    }

    fn background(&mut self) -> Result<Box<dyn Device>, DeviceError> {
        Ok((self.background)(self.device.background()?))
    }
}

/// Emulated devices whose background streams launch nothing until the gate is open.
#[derive(Clone, Default)]
pub struct GatedDevices {
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    /// Number of launches that reached the gate, and true if the gate is open. Both sides write this, and wake each
    /// other.
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl GatedDevices {
    /// Waits until a launch has reached the gate.
    ///
    /// # Panics
    /// If no launch has reached it within `patience`.
    pub fn wait_for_launch(&self, patience: Duration) {
        let state = self.gate.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.gate.changed.wait_timeout_while(state, patience, |(launches, _)| *launches == 0);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(state.0 > 0, "nothing is launched in the background");
    }

    /// Lets all launches through.
    pub fn open_gate(&self) {
        self.gate.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.gate.changed.notify_all();
    }
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |(_, is_open)| !*is_open));
    }
}

impl Devices for GatedDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        let gate = self.gate.clone();
        let gated = move |background| -> Box<dyn Device> {
            let gate = gate.clone();
            Box::new(Intercepted::launches(background, move |device, kernel, args, threads| {
                gate.pass();
                device.launch(kernel, args, threads)
            }))
        };
        Ok(Box::new(Intercepted::background(EMULATOR.open(name)?, gated)))
    }
}
