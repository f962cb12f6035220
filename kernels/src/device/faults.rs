//! Artificial faults of devices, for tests and for demonstrations of a pipeline's behaviour.

use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;

use super::{Address, Device, DeviceError, Devices, Kernel, Sample};

/// An artificial fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The launch with this number, counted from 0, fails, and so do all later calls.
    Launch(u64),
    /// The launch with this number takes this long; the next download waits for it.
    Hang(u64, Duration),
    /// Allocations after this many run out of memory.
    OutOfMemory(u64),
    /// The device is lost after this many downloads; one that is begun and ended by two calls counts twice.
    Gone(u64),
    /// The device is lost once this many bytes were uploaded.
    GoneAfterBytes(u64),
}

/// A text that is not a valid fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no fault of a device; write DEVICE=FAULT, such as cuda:0=launch:40. Faults are launch:N, hang:N:MILLISECONDS, \
     memory:N, gone:N and upload:BYTES; N calls of that kind succeed before. DEVICE/background is the low-priority stream"
)]
pub struct FaultError(String);

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let wrong = || FaultError(text.to_owned());
        let words: Vec<&str> = text.split(':').collect();
        let number = |word: &str| word.parse::<u64>().map_err(|_| wrong());
        Ok(match words[..] {
            ["launch", count] => Self::Launch(number(count)?),
            ["hang", count, milliseconds] => {
                Self::Hang(number(count)?, Duration::from_millis(number(milliseconds)?))
            }
            ["memory", count] => Self::OutOfMemory(number(count)?),
            ["gone", count] => Self::Gone(number(count)?),
            ["upload", bytes] => Self::GoneAfterBytes(number(bytes)?),
            _ => return Err(wrong()),
        })
    }
}

/// Devices, some of which have a fault each time they are opened.
pub struct FaultyDevices {
    devices: Arc<dyn Devices>,
    faults: Vec<(String, Fault)>,
}

impl FaultyDevices {
    /// Adds faults to devices by name. A name followed by `/background` means the device's stream for slices.
    pub fn new(devices: Arc<dyn Devices>, faults: Vec<(String, Fault)>) -> Self {
        Self { devices, faults }
    }

    /// Devices with the faults described by a text, such as `cuda:0=launch:40,cuda:1=hang:500:4000`.
    pub fn parse(devices: Arc<dyn Devices>, text: &str) -> Result<Self, FaultError> {
        let fault = |part: &str| {
            let (device, fault) = part.split_once('=').ok_or_else(|| FaultError(part.to_owned()))?;
            Ok((device.to_owned(), fault.parse()?))
        };
        Ok(Self::new(devices, text.split(',').map(fault).collect::<Result<_, _>>()?))
    }
}

impl Devices for FaultyDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        let device = self.devices.open(name)?;
        let fault_of =
            |stream: &str| self.faults.iter().find(|(of, _)| of == stream).map(|(_, fault)| *fault);
        Ok(match [fault_of(name), fault_of(&format!("{name}{BACKGROUND}"))] {
            [None, None] => device,
            faults => Box::new(FaultyDevice::with_faults(name, device, faults)),
        })
    }

    fn sample(&self, name: &str) -> Option<Sample> {
        self.devices.sample(name)
    }
}

/// Suffix for a device's stream of the lowest priority.
const BACKGROUND: &str = "/background";

/// A device with a fault.
pub struct FaultyDevice {
    name: String,
    allocated: usize,
    device: Box<dyn Device>,
    fault: Option<Fault>,
    /// The fault of the device's background stream.
    background_fault: Option<Fault>,
    launches: u64,
    allocations: u64,
    downloads: u64,
    uploaded_bytes: u64,
    hung: bool,
    /// True if the context is broken; shared by all of its streams.
    failed: Arc<AtomicBool>,
}

impl FaultyDevice {
    /// A device that works until a fault.
    pub fn new(name: &str, device: Box<dyn Device>, fault: Fault) -> Self {
        Self::with_faults(name, device, [Some(fault), None])
    }

    /// A device that works until a fault of its own, or of its background stream.
    pub fn with_faults(name: &str, device: Box<dyn Device>, faults: [Option<Fault>; 2]) -> Self {
        let [fault, background_fault] = faults;
        Self {
            name: name.to_owned(),
            allocated: 0,
            device,
            fault,
            background_fault,
            launches: 0,
            allocations: 0,
            downloads: 0,
            uploaded_bytes: 0,
            hung: false,
            failed: Arc::default(),
        }
    }

    /// The same device in a context that it shares with others; a failure of one breaks all.
    pub fn in_context(self, failed: Arc<AtomicBool>) -> Self {
        Self { failed, ..self }
    }

    /// Number of uploaded bytes.
    pub fn uploaded_bytes(&self) -> u64 {
        self.uploaded_bytes
    }

    /// Number of allocations that were not freed.
    pub fn allocated(&self) -> usize {
        self.allocated
    }

    fn check(&mut self, call: &'static str, fails: bool) -> Result<(), DeviceError> {
        if self.failed.fetch_or(fails, Ordering::Relaxed) || fails {
            let reason = "a fault that was asked for".to_owned();
            return Err(DeviceError::Failed { device: self.name.clone(), call, reason });
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "a device that hangs makes its caller wait")]
    fn check_download(&mut self, call: &'static str) -> Result<(), DeviceError> {
        if let Some(Fault::Hang(hanging, time)) = self.fault
            && self.launches > hanging
            && !self.hung
            && call != "begin_download"
        {
            self.hung = true;
            std::thread::sleep(time);
        }
        let number = count(&mut self.downloads);
        self.check(call, matches!(self.fault, Some(Fault::Gone(last)) if number >= last))
    }
}

/// Counts a call, and returns the number of calls before it.
fn count(calls: &mut u64) -> u64 {
    *calls += 1;
    *calls - 1
}

impl Device for FaultyDevice {
    fn allocate(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        self.check("allocate", false)?;
        let number = count(&mut self.allocations);
        if matches!(self.fault, Some(Fault::OutOfMemory(last)) if number >= last) {
            return Err(DeviceError::OutOfMemory { device: self.name.clone(), wanted_bytes: bytes });
        }
        let address = self.device.allocate(bytes)?;
        self.allocated += 1;
        Ok(address)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.check("free", false)?;
        self.device.free(address)?;
        self.allocated -= 1;
        Ok(())
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], DeviceError> {
        self.device.staging(bytes)
    }

    fn upload(&mut self, to: Address, bytes: usize) -> Result<(), DeviceError> {
        self.uploaded_bytes += bytes as u64;
        let is_gone = matches!(self.fault, Some(Fault::GoneAfterBytes(last)) if self.uploaded_bytes > last);
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

    fn download_ended(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check_download("download_ended")?;
        self.device.download_ended(from, bytes)
    }

    fn clear(&mut self, address: Address, bytes: usize) -> Result<(), DeviceError> {
        self.check("clear", false)?;
        self.device.clear(address, bytes)
    }

    fn launch(&mut self, kernel: &Kernel, args: &[u8], threads: usize) -> Result<(), DeviceError> {
        let number = count(&mut self.launches);
        self.check("launch", matches!(self.fault, Some(Fault::Launch(failing)) if number >= failing))?;
        self.device.launch(kernel, args, threads)
    }

    fn background(&mut self) -> Result<Box<dyn Device>, DeviceError> {
        self.check("background", false)?;
        let (name, device) = (format!("{}{BACKGROUND}", self.name), self.device.background()?);
        let background = Self::with_faults(&name, device, [self.background_fault, None]);
        Ok(Box::new(Self { failed: self.failed.clone(), ..background }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoDevices;
    use super::*;

    #[test]
    fn faults_are_written_as_text() {
        let parse =
            |text: &str| FaultyDevices::parse(Arc::new(NoDevices), text).map(|devices| devices.faults);
        let hang = Fault::Hang(500, Duration::from_secs(4));
        assert_eq!(
            parse("cuda:0=launch:40,cuda:1=hang:500:4000").unwrap(),
            [("cuda:0".to_owned(), Fault::Launch(40)), ("cuda:1".to_owned(), hang)]
        );
        let background = ("cuda:0/background".to_owned(), Fault::Gone(2));
        assert_eq!(parse("cuda:0/background=gone:2").unwrap(), [background]);
        for (text, fault) in [
            ("memory:3", Fault::OutOfMemory(3)),
            ("gone:9", Fault::Gone(9)),
            ("upload:7", Fault::GoneAfterBytes(7)),
        ] {
            assert_eq!(text.parse(), Ok(fault));
        }
        for wrong in ["", "launch:40", "cuda:0=", "cuda:0=hang:1", "cuda:0=launch:-1", "cuda:0=fire:1"] {
            assert!(parse(wrong).unwrap_err().to_string().contains("write DEVICE=FAULT"), "{wrong}");
        }
    }
}
