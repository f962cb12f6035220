//! NVIDIA's GPUs as devices of the kernels.
//!
//! It owns whatever is CUDA's or NVML's: what GPUs there are ([`inventory()`]), how fast they are ([`CudaDevices::score`]),
//! how they fare ([`Telemetry`]), and a [`Device`](warptape_kernels::device::Device) that runs kernels ([`CudaDevices`]).
//! Neither the driver nor the compiler is linked. Where they are missing, this says so. It must not know what kernels
//! compute, nor who calls them.
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
