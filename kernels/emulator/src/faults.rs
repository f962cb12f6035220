//! Faults of devices, on purpose.

use std::time::Duration;

use warptape_kernels::device::{Address, Device, DeviceError, Kernel};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The launch with this number, counted from 0, fails, and everything after it.
    Launch(u64),
    /// The launch with this number takes so long.
    Hang(u64, Duration),
    /// There is no more memory after so many allocations.
    OutOfMemory(u64),
    /// The device is gone after so many downloads, of which those in two steps count twice.
    Gone(u64),
    /// It is gone once so many bytes were uploaded.
    GoneAfterBytes(u64),
}

/// A device with a fault.
pub struct FaultyDevice {
    device: Box<dyn Device>,
    fault: Fault,
    launches: u64,
    allocations: u64,
    downloads: u64,
    uploaded_bytes: u64,
    failed: bool,
}

impl FaultyDevice {
    /// A device that works until the fault.
    pub fn new(device: Box<dyn Device>, fault: Fault) -> Self {
        Self { device, fault, launches: 0, allocations: 0, downloads: 0, uploaded_bytes: 0, failed: false }
    }

    fn check(&mut self, call: &'static str, fails: bool) -> Result<(), DeviceError> {
        self.failed |= fails;
        if self.failed {
            let reason = "fault injected by a test".to_owned();
            return Err(DeviceError::Failed { device: "emulator".to_owned(), call, reason });
        }
        Ok(())
    }

    fn check_download(&mut self, call: &'static str) -> Result<(), DeviceError> {
        let number = count(&mut self.downloads);
        self.check(call, matches!(self.fault, Fault::Gone(last) if number >= last))
    }
}

/// Counts a call, and gives how many there were before.
fn count(calls: &mut u64) -> u64 {
    *calls += 1;
    *calls - 1
}

impl Device for FaultyDevice {
    fn allocate(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        self.check("allocate", false)?;
        let number = count(&mut self.allocations);
        if matches!(self.fault, Fault::OutOfMemory(last) if number >= last) {
            return Err(DeviceError::OutOfMemory { device: "emulator".to_owned(), wanted_bytes: bytes });
        }
        self.device.allocate(bytes)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.check("free", false)?;
        self.device.free(address)
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], DeviceError> {
        self.device.staging(bytes)
    }

    fn upload(&mut self, to: Address, bytes: usize) -> Result<(), DeviceError> {
        self.uploaded_bytes += bytes as u64;
        let is_gone = matches!(self.fault, Fault::GoneAfterBytes(last) if self.uploaded_bytes > last);
        self.check("upload", is_gone)?;
        self.device.upload(to, bytes)
    }

    fn download(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check_download("download")?;
        self.device.download(from, bytes)
    }

    fn begin_download(&mut self, from: Address, bytes: usize) -> Result<(), DeviceError> {
        self.check_download("begin_download")?;
        self.device.begin_download(from, bytes)
    }

    fn end_download(&mut self) -> Result<&[u8], DeviceError> {
        self.check_download("end_download")?;
        self.device.end_download()
    }

    fn clear(&mut self, address: Address, bytes: usize) -> Result<(), DeviceError> {
        self.check("clear", false)?;
        self.device.clear(address, bytes)
    }

    #[expect(clippy::disallowed_methods, reason = "a device that hangs makes its caller wait")]
    fn launch(&mut self, kernel: &Kernel, args: &[u8], threads: usize) -> Result<(), DeviceError> {
        let number = count(&mut self.launches);
        self.check("launch", matches!(self.fault, Fault::Launch(failing) if number >= failing))?;
        if let Fault::Hang(hanging, time) = self.fault
            && number == hanging
        {
            std::thread::sleep(time);
        }
        self.device.launch(kernel, args, threads)
    }
}
