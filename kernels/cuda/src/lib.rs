//! NVIDIA's GPUs as devices of the kernels.
//!
//! It owns everything of CUDA and NVML: the GPUs that exist ([`inventory()`]), their speed ([`CudaDevices::score`]),
//! their state ([`Telemetry`]), and a [`Device`](warptape_kernels::device::Device) that runs kernels ([`CudaDevices`]).
//! Driver and compiler are not linked; if they are missing, calls report it. It must not know what kernels compute, nor
//! who calls them.
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
