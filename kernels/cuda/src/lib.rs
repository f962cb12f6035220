//! NVIDIA's GPUs as devices of the kernels.
//!
//! The crate owns all access to CUDA and NVML. It reports the existing GPUs ([`inventory()`]), their speed
//! ([`CudaDevices::score`]), and their state ([`Telemetry`]). [`CudaDevices`] opens each as a
//! [`Device`](warptape_kernels::device::Device) that runs kernels. Driver and compiler are not linked; if they are
//! missing, calls report it. It must not know what kernels compute, or who calls them.
//!
//! ```text
//!   settings, `warptape devices` ──► inventory, score        engine ──► telemetry
//!   lane's thread ──► CudaDevices::open ──► CudaDevice       cache ◄── compiler
//!                             └────────────────┴──► raw: driver, session, nvrtc (all unsafe code)
//! ```

mod cache;
mod compiler;
mod device;
mod devices;
mod inventory;
mod launches;
mod raw;
mod score;
mod telemetry;

pub use cache::cache_folder;
pub use devices::CudaDevices;
pub use inventory::{Clocks, Gpu, Inventory, Links, Mig, PcieLink, inventory};
pub use launches::LaunchFigures;
pub use score::Score;
pub use telemetry::{NoTelemetry, Telemetry};
