//! The GPUs of this machine.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::Clock;
use warptape_kernels::device::BLOCK_THREADS;

use crate::compiler::{NO_COMPILER, library_names};
use crate::raw::{Driver, DriverResult, GpuHandle, Nvrtc, describe};

/// The GPUs of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// GPUs that CUDA shows to this process, by their numbers.
    pub gpus: Vec<Gpu>,
    /// The reason why no lane can run on them, in one line: a missing library, or no GPU. `None` if lanes can.
    pub missing: Option<String>,
}

impl Inventory {
    /// GPUs that lanes can run on.
    pub fn usable(&self) -> &[Gpu] {
        if self.missing.is_none() { &self.gpus } else { &[] }
    }
}

/// A GPU; `None` for figures that NVML does not report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Number of the GPU among those that CUDA shows.
    pub ordinal: u32,
    /// Name of the product.
    pub name: String,
    /// UUID in hexadecimal digits, of this GPU or this slice of one.
    pub uuid: String,
    /// Place on the bus, as `DOMAIN:BUS:DEVICE.FUNCTION`.
    pub pci_bus_id: String,
    /// Major and minor version.
    pub compute_capability: (u32, u32),
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Greatest number of resident threads of a multiprocessor.
    pub multiprocessor_threads: u32,
    /// Memory that CUDA shows, in bytes.
    pub memory_total_bytes: u64,
    /// Free memory of the whole GPU, in bytes.
    pub memory_free_bytes: Option<u64>,
    /// Clock of the multiprocessors.
    pub sm_clock: Clocks,
    /// Clock of the memory.
    pub memory_clock: Clocks,
    /// Links to the host and to other GPUs.
    pub links: Links,
    /// NUMA node of the host to which the GPU is attached; `None` if Linux does not report it.
    pub numa_node: Option<i32>,
    /// Division into slices; `None` if the GPU cannot be divided.
    pub mig: Option<Mig>,
    /// Version of the driver, or of CUDA if NVML does not report the driver's.
    pub driver_version: Option<String>,
}

impl Gpu {
    /// Number of blocks of a kernel that the GPU runs at the same time, as far as their threads fit.
    pub fn blocks_at_once(&self) -> u32 {
        self.multiprocessors.saturating_mul(self.multiprocessor_threads / BLOCK_THREADS as u32)
    }
}

/// Links of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Generation and width of the link to the host; both may be lower while nothing is sent.
    pub pcie: PcieLink,
    /// Greatest generation and width of the link to the host.
    pub pcie_max: PcieLink,
    /// Number of active links to other GPUs.
    pub nvlinks_active: Option<u32>,
    /// Numbers of the GPUs whose memory this one can read and write.
    pub peers: Vec<u32>,
}

/// A clock, MHz.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// The present value.
    pub now_mhz: Option<u32>,
    /// The greatest value.
    pub max_mhz: Option<u32>,
}

/// A PCI Express link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PcieLink {
    /// Generation of the link.
    pub generation: Option<u32>,
    /// Number of the link's lanes.
    pub width: Option<u32>,
}

/// Division of a GPU (Multi-Instance GPU).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mig {
    /// True if the GPU is divided.
    pub is_enabled: bool,
    /// Number of existing slices.
    pub slices: u32,
}

/// Detects GPUs, the compiler and NVML. It computes nothing on the GPUs and allocates none of their memory.
pub fn inventory() -> Inventory {
    let missing = |reason: String| Inventory { gpus: Vec::new(), missing: Some(format!("no GPU: {reason}")) };
    let driver = match Driver::load() {
        Ok(driver) => driver,
        Err(error) => return missing(error.to_string()),
    };
    let gpus = match gpus(driver) {
        Ok(gpus) if gpus.is_empty() => return missing("CUDA shows none".to_owned()),
        Ok(gpus) => gpus,
        Err(error) => return missing(format!("CUDA does not show it: {}", describe(error))),
    };
    let missing = match Nvrtc::load(&library_names(driver.version)) {
        None => Some(format!("no GPU can be used: {NO_COMPILER}")),
        Some(Err(reason)) => Some(format!("no GPU can be used: {reason}")),
        Some(Ok(_)) => None,
    };
    Inventory { gpus, missing }
}

fn gpus(driver: Driver) -> DriverResult<Vec<Gpu>> {
    let handles = (0..driver.gpu_count()?)
        .map(|ordinal| Ok((ordinal, driver.gpu(ordinal)?)))
        .collect::<DriverResult<Vec<(u32, GpuHandle)>>>()?;
    let nvml = Nvml::init().inspect_err(|error| tracing::debug!(%error, "NVML does not answer")).ok();
    let cuda_version = format!("CUDA {}.{}", driver.version / 1000, driver.version % 1000 / 10);
    let driver_version =
        nvml.as_ref().and_then(|nvml| nvml.sys_driver_version().ok()).unwrap_or(cuda_version);
    let describe = |&(ordinal, handle): &(u32, GpuHandle)| {
        let is_peer =
            |other: &&(u32, GpuHandle)| other.0 != ordinal && handle.can_access(other.1).unwrap_or(false);
        let mut gpu = Gpu {
            ordinal,
            name: handle.name()?,
            uuid: handle.uuid()?,
            pci_bus_id: handle.pci_bus_id()?,
            compute_capability: handle.compute_capability()?,
            multiprocessors: handle.multiprocessors()?,
            multiprocessor_threads: handle.multiprocessor_threads()?,
            memory_total_bytes: handle.memory_total_bytes()?,
            memory_free_bytes: None,
            sm_clock: Clocks::default(),
            memory_clock: Clocks::default(),
            links: Links {
                peers: handles.iter().filter(is_peer).map(|(other, _)| *other).collect(),
                ..Links::default()
            },
            numa_node: None,
            mig: None,
            driver_version: Some(driver_version.clone()),
        };
        gpu.numa_node = numa_node(&gpu.pci_bus_id);
        if let Some(nvml) = &nvml {
            ask_nvml(nvml, &mut gpu);
        }
        Ok(gpu)
    };
    handles.iter().map(describe).collect()
}

/// The NUMA node of a place on the bus. Linux reports −1 if it is unknown.
fn numa_node(pci_bus_id: &str) -> Option<i32> {
    let path = format!("/sys/bus/pci/devices/{}/numa_node", pci_bus_id.to_lowercase());
    std::fs::read_to_string(path).ok()?.trim().parse().ok().filter(|node| *node >= 0)
}

/// Greatest number of links of a GPU (NVML_NVLINK_MAX_LINKS).
const NVLINKS_MAX: u32 = 18;

/// Adds NVML's figures to a GPU. NVML numbers GPUs differently and shows GPUs that are hidden from CUDA, so the place
/// on the bus identifies the GPU.
fn ask_nvml(nvml: &Nvml, gpu: &mut Gpu) {
    let by_uuid = || nvml.device_by_uuid(format!("GPU-{}", gpu.uuid));
    let Ok(device) = nvml.device_by_pci_bus_id(gpu.pci_bus_id.as_str()).or_else(|_| by_uuid()) else {
        return;
    };
    let clocks = |clock: Clock| Clocks {
        now_mhz: device.clock_info(clock).ok(),
        max_mhz: device.max_clock_info(clock).ok(),
    };
    gpu.sm_clock = clocks(Clock::SM);
    gpu.memory_clock = clocks(Clock::Memory);
    gpu.memory_free_bytes = device.memory_info().ok().map(|memory| memory.free);
    gpu.links.pcie = PcieLink {
        generation: device.current_pcie_link_gen().ok(),
        width: device.current_pcie_link_width().ok(),
    };
    gpu.links.pcie_max =
        PcieLink { generation: device.max_pcie_link_gen().ok(), width: device.max_pcie_link_width().ok() };
    let states: Vec<bool> =
        (0..NVLINKS_MAX).filter_map(|link| device.link_wrapper_for(link).is_active().ok()).collect();
    gpu.links.nvlinks_active =
        (!states.is_empty()).then(|| states.iter().filter(|is_active| **is_active).count() as u32);
    gpu.mig = device.mig_mode().ok().map(|mode| {
        let places = device.mig_device_count().unwrap_or(0);
        let slices = (0..places).filter(|&place| device.mig_device_by_index(place).is_ok()).count();
        Mig { is_enabled: mode.current == 1, slices: slices as u32 }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_gpus_or_says_what_is_missing() {
        let found = inventory();
        match &found.missing {
            Some(line) => {
                assert!(line.starts_with("no GPU") && !line.contains('\n'), "{line}");
                assert!(found.usable().is_empty());
            }
            None => assert!(!found.gpus.is_empty() && found.usable() == found.gpus),
        }
    }
}
