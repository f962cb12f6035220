//! The host's interface to a device: memory, copies, and running kernels.

use thiserror::Error;

use super::Kernel;

/// Most downloads under way at once: those of a batch and of the previous one.
pub const DOWNLOADS_MAX: usize = 2;

/// An address in a device's memory.
pub type Address = u64;

/// A device: its memory, and the kernels that it runs. All calls take effect in their order, with one exception. An
/// upload need not wait for calls since the previous upload, if no memory was allocated in between. So uploads that
/// alternate between two places run concurrently with kernels. Only downloads make the caller wait. A device that has
/// failed once returns errors for ever.
pub trait Device: Send {
    /// Allocates zeroed memory, with an alignment that suits any type.
    fn allocate(&mut self, bytes: usize) -> Result<Address, DeviceError>;

    /// Frees memory of [`Device::allocate`].
    fn free(&mut self, address: Address) -> Result<(), DeviceError>;

    /// Host memory of this many bytes, to be filled and uploaded, with an alignment that suits any type; its content is
    /// undefined.
    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], DeviceError>;

    /// Copies the first `bytes` bytes of the memory last returned by [`Device::staging`] to an address.
    fn upload(&mut self, to: Address, bytes: usize) -> Result<(), DeviceError>;

    /// Copies bytes to the host once all earlier calls are done.
    fn download(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Begins to copy bytes to the host; at most [`DOWNLOADS_MAX`] such copies may be under way.
    fn begin_download(&mut self, from: Address, bytes: usize) -> Result<(), DeviceError>;

    /// Waits for the copy that was begun first, and returns its bytes.
    fn end_download(&mut self) -> Result<&[u8], DeviceError>;

    /// Copies bytes to the host as they were when the copy that [`Device::end_download`] returned last had begun. It
    /// does not wait for calls since then.
    fn download_ended(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Sets bytes to zero.
    fn clear(&mut self, address: Address, bytes: usize) -> Result<(), DeviceError>;

    /// Runs a kernel with at least this many threads. `args` are the bytes of its argument struct.
    fn launch(&mut self, kernel: &Kernel, args: &[u8], threads: usize) -> Result<(), DeviceError>;

    /// Opens another stream of the device, of the lowest priority, for the work of another thread: kernels of this
    /// stream run first. Its calls have their own order, and may only use memory that it allocated. If one of the two
    /// streams fails, both have failed.
    fn background(&mut self) -> Result<Box<dyn Device>, DeviceError>;
}

/// A source of devices.
pub trait Devices: Send + Sync {
    /// Opens a device by its name, such as `cuda:0`.
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError>;

    /// The present figures of a device; `None` if they are unavailable. Takes at most a few milliseconds.
    fn sample(&self, _name: &str) -> Option<Sample> {
        None
    }
}

/// Figures of a device; `None` for a figure that it does not report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Share of the last moments in which a kernel ran, %.
    pub utilization_percent: Option<u32>,
    /// Memory in use, bytes.
    pub memory_used_bytes: Option<u64>,
    /// Unused memory, bytes.
    pub memory_free_bytes: Option<u64>,
    /// Temperature of the chip, °C.
    pub temperature_c: Option<u32>,
    /// Temperature of the chip at which it lowers its clocks, °C.
    pub slowdown_c: Option<u32>,
    /// Power drawn, mW.
    pub power_mw: Option<u32>,
    /// Clock of the multiprocessors, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Reasons why the clocks are not higher, as NVML's bits.
    pub throttle_bits: Option<u64>,
    /// Uncorrected memory errors since the driver was loaded.
    pub ecc_errors_uncorrected: Option<u64>,
    /// The last critical Xid error of the device since the previous sample; after it, no result of the device can be
    /// trusted. The first sample begins the watch for such errors.
    pub xid: Option<u64>,
}

/// A source without devices.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDevices;

impl Devices for NoDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        let reason = "there are no devices here but the processor".to_owned();
        Err(DeviceError::Unavailable { device: name.to_owned(), reason })
    }
}

/// Errors of a device.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// There is no such device, or it cannot be used.
    #[error("{device} cannot be used: {reason}")]
    Unavailable {
        /// Its name.
        device: String,
        /// The reason.
        reason: String,
    },
    /// The device has no memory left.
    #[error("{device} has no memory left: {wanted_bytes} bytes were wanted")]
    OutOfMemory {
        /// Its name.
        device: String,
        /// Bytes requested in one allocation.
        wanted_bytes: usize,
    },
    /// The device does not accept a kernel, which is a defect of this build.
    #[error("{device} does not take the kernel {kernel}: {reason}")]
    Kernel {
        /// The device's name.
        device: String,
        /// The kernel's function or file.
        kernel: &'static str,
        /// Text of the compiler or the driver.
        reason: String,
    },
    /// A call failed, and the device cannot be used any more.
    #[error("{device} failed in {call}: {reason}")]
    Failed {
        /// Its name.
        device: String,
        /// Name of the call.
        call: &'static str,
        /// Text of the driver.
        reason: String,
    },
    /// The device has no room for bars. The configuration excludes this, so the device's state is damaged.
    #[error(
        "{device} has no room for the bars of a batch, which the configuration excludes: its state is void"
    )]
    Void {
        /// Its name.
        device: String,
    },
}
