//! The driver, and its information about a GPU without a context.

use std::ffi::{CStr, c_char};

use cudarc::driver::{DriverError, result, sys};
use thiserror::Error;

use super::DriverResult;

/// Least version of CUDA that the driver must support, in the numbers of `cuDriverGetVersion`: 12.0.
const CUDA_VERSION_MIN: i32 = 12_000;

/// The driver, loaded and initialised.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// The newest version of CUDA that the driver supports, such as 12040 for 12.4.
    pub version: i32,
}

/// Reasons for a missing driver.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoDriver {
    #[error("libcuda.so (the NVIDIA driver) was not found")]
    NotFound,
    #[error("the NVIDIA driver supports CUDA {0}.{1}, and 12.0 is needed: update it")]
    TooOld(i32, i32),
    #[error("the NVIDIA driver cannot be used: {0}")]
    Refused(String),
}

impl Driver {
    /// Loads the driver and initialises it.
    pub fn load() -> Result<Driver, NoDriver> {
        // SAFETY: this only loads and unloads the library, whose initialisers are made for that.
        if !unsafe { sys::is_culib_present() } {
            return Err(NoDriver::NotFound);
        }
        let refused = |error| NoDriver::Refused(describe(error));
        let mut version = 0;
        // SAFETY: the library is present, and the pointer refers to a live number.
        unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(refused)?;
        if version < CUDA_VERSION_MIN {
            return Err(NoDriver::TooOld(version / 1000, version % 1000 / 10));
        }
        result::init().map_err(refused)?;
        Ok(Driver { version })
    }

    /// Number of GPUs visible to this process.
    pub fn gpu_count(self) -> DriverResult<u32> {
        result::device::get_count().map(|count| count.max(0) as u32)
    }

    /// A GPU by its number.
    pub fn gpu(self, ordinal: u32) -> DriverResult<GpuHandle> {
        let ordinal = i32::try_from(ordinal).unwrap_or(i32::MAX);
        result::device::get(ordinal).map(|device| GpuHandle { device })
    }
}

/// The driver's name for an error, and its text.
pub fn describe(error: DriverError) -> String {
    let text = |words: DriverResult<&CStr>| words.map(|words| words.to_string_lossy().into_owned());
    match (text(error.error_name()), text(error.error_string())) {
        (Ok(name), Ok(words)) => format!("{name}: {words}"),
        _ => format!("error {}", error.0 as u32),
    }
}

/// A GPU of the driver.
#[derive(Clone, Copy, Debug)]
pub struct GpuHandle {
    pub(super) device: sys::CUdevice,
}

/// Room for `DOMAIN:BUS:DEVICE.FUNCTION` and a zero byte.
const PCI_BUS_ID_BYTES: usize = 32;

impl GpuHandle {
    pub fn name(self) -> DriverResult<String> {
        result::device::get_name(self.device)
    }

    /// UUID in hexadecimal digits, grouped like those of `nvidia-smi`.
    pub fn uuid(self) -> DriverResult<String> {
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the pointer refers to live bytes of the size of a UUID.
        unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, self.device) }.result()?;
        let digits: String = uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
        Ok([&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-"))
    }

    /// Place on the bus, such as `0000:3b:00.0`.
    pub fn pci_bus_id(self) -> DriverResult<String> {
        let mut text = [0_u8; PCI_BUS_ID_BYTES];
        let pointer: *mut c_char = text.as_mut_ptr().cast();
        // SAFETY: the pointer refers to at least the stated number of live bytes.
        unsafe { sys::cuDeviceGetPCIBusId(pointer, PCI_BUS_ID_BYTES as i32, self.device) }.result()?;
        Ok(CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy().into_owned())
    }

    /// Major and minor version.
    pub fn compute_capability(self) -> DriverResult<(u32, u32)> {
        let major = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
        let minor = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
        Ok((self.attribute(major)?, self.attribute(minor)?))
    }

    pub fn multiprocessors(self) -> DriverResult<u32> {
        self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    /// Greatest number of resident threads of a multiprocessor.
    pub fn multiprocessor_threads(self) -> DriverResult<u32> {
        self.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
    }

    pub fn memory_total_bytes(self) -> DriverResult<u64> {
        // SAFETY: the device comes from the driver.
        unsafe { result::device::total_mem(self.device) }.map(|bytes| bytes as u64)
    }

    /// True if the GPU can read and write the memory of another GPU.
    pub fn can_access(self, other: GpuHandle) -> DriverResult<bool> {
        let mut can_access = 0;
        // SAFETY: the pointer refers to a live number, and the devices come from the driver.
        unsafe { sys::cuDeviceCanAccessPeer(&mut can_access, self.device, other.device) }.result()?;
        Ok(can_access != 0)
    }

    fn attribute(self, attribute: sys::CUdevice_attribute) -> DriverResult<u32> {
        // SAFETY: the device comes from the driver.
        unsafe { result::device::get_attribute(self.device, attribute) }.map(|value| value.max(0) as u32)
    }
}
