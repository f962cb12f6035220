//! All unsafe code of this crate: the driver's and the compiler's functions, wrapped in types that free their
//! resources.
//!
//! The libraries are not linked, but loaded when they are needed. Only a [`Driver`] gives access to the driver's
//! functions, and it exists only once the library is loaded.
#![allow(unsafe_code)]

mod driver;
mod nvrtc;
mod session;
mod timing;

pub use driver::{Driver, GpuHandle, describe};
pub use nvrtc::{Nvrtc, Output};
pub use session::{ARGS_BYTES_MAX, Function, Pinned, Session};
pub use timing::TIMING_VERSION_MIN;

/// The result of a driver call; its errors are codes.
pub type DriverResult<T> = Result<T, cudarc::driver::DriverError>;

/// True if an error means that memory is full, on the device or in the host's pinned memory.
pub fn is_out_of_memory(error: cudarc::driver::DriverError) -> bool {
    error.0 == cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY
}
