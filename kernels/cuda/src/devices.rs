//! Opening GPUs by name.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use warptape_kernels::device::{COMPILER_OPTIONS, Device, DeviceError, Devices, KERNELS, Kernel, Sample};

use crate::cache::Cache;
use crate::compiler::{Compiler, Program, Target};
use crate::device::CudaDevice;
use crate::raw::{Driver, Function, Nvrtc, Session, describe};
use crate::telemetry::Telemetry;

/// The GPUs of this machine that CUDA shows, named `cuda:0`, `cuda:1` and so on.
pub struct CudaDevices {
    pub(crate) cache: Cache,
    pub(crate) compiler: Compiler,
    /// NVML, opened at the first sample; the inner `None` means that it is missing.
    telemetry: Mutex<Option<Option<Telemetry>>>,
}

/// An opened GPU, with the compiler for it.
pub(crate) struct Opened {
    pub(crate) session: Session,
    pub(crate) nvrtc: Arc<Nvrtc>,
    pub(crate) target: Target,
    pub(crate) driver_version: i32,
}

impl CudaDevices {
    /// Compiled kernels are stored in the folder ([`cache_folder`](crate::cache_folder) names the usual one); only in
    /// memory if it is `None`.
    pub fn new(cache_folder: Option<PathBuf>) -> CudaDevices {
        let cache = Cache::new(cache_folder);
        CudaDevices { compiler: Compiler::new(cache.clone()), cache, telemetry: Mutex::default() }
    }

    pub(crate) fn open_gpu(&self, name: &str, ordinal: u32) -> Result<Opened, DeviceError> {
        let unavailable = |reason: String| DeviceError::Unavailable { device: name.to_owned(), reason };
        let driver = Driver::load().map_err(|error| unavailable(error.to_string()))?;
        let said = |error| unavailable(describe(error));
        let count = driver.gpu_count().map_err(said)?;
        if ordinal >= count {
            return Err(unavailable(format!("GPUs that CUDA shows: {count}, counted from cuda:0")));
        }
        let gpu = driver.gpu(ordinal).map_err(said)?;
        let (major, minor) = gpu.compute_capability().map_err(said)?;
        let nvrtc = self.compiler.nvrtc(driver.version).map_err(unavailable)?;
        let target = Target::choose(major * 10 + minor, &nvrtc.architectures).ok_or_else(|| {
            let (nvrtc_major, nvrtc_minor) = nvrtc.version;
            unavailable(format!(
                "NVRTC {nvrtc_major}.{nvrtc_minor} does not compile for its compute capability {major}.{minor}: \
                 install an older one"
            ))
        })?;
        let session = Session::open(gpu).map_err(said)?;
        Ok(Opened { session, nvrtc, target, driver_version: driver.version })
    }

    /// Loads functions of a program.
    pub(crate) fn load(
        &self,
        name: &str,
        opened: &Opened,
        program: &Program<'_>,
        functions: &[&str],
    ) -> Result<Vec<Function>, DeviceError> {
        let refused = |reason| DeviceError::Kernel { device: name.to_owned(), kernel: program.name, reason };
        let image = self
            .compiler
            .compile(&opened.nvrtc, program, opened.target, opened.driver_version)
            .map_err(refused)?;
        opened.session.load(&image, functions).map_err(|error| {
            let ((major, minor), driver) = (opened.nvrtc.version, opened.driver_version);
            refused(format!(
                "{} (NVRTC {major}.{minor} for {}, the driver supports CUDA {}.{})",
                describe(error),
                opened.target,
                driver / 1000,
                driver % 1000 / 10
            ))
        })
    }
}

impl Devices for CudaDevices {
    fn open(&self, name: &str) -> Result<Box<dyn Device>, DeviceError> {
        let ordinal = ordinal_of(name).ok_or_else(|| DeviceError::Unavailable {
            device: name.to_owned(),
            reason: "names of GPUs are cuda:0, cuda:1 and so on".to_owned(),
        })?;
        let opened = self.open_gpu(name, ordinal)?;
        let mut functions = Vec::with_capacity(KERNELS.len());
        for kernels in KERNELS.chunk_by(|one, other| one.source == other.source) {
            let names: Vec<&'static str> = kernels.iter().map(|kernel: &Kernel| kernel.function).collect();
            let text = kernels[0].program();
            let program = Program { name: kernels[0].source.name, text: &text, options: &COMPILER_OPTIONS };
            let loaded = self.load(name, &opened, &program, &names)?;
            functions.extend(names.into_iter().zip(loaded));
        }
        Ok(Box::new(CudaDevice::new(name.to_owned(), opened.session, functions)))
    }

    fn sample(&self, name: &str) -> Option<Sample> {
        let gpu = Driver::load().ok()?.gpu(ordinal_of(name)?).ok()?;
        let mut telemetry = self.telemetry.lock().unwrap_or_else(PoisonError::into_inner);
        let telemetry = telemetry.get_or_insert_with(open_telemetry).as_mut()?;
        telemetry.sample(&gpu.pci_bus_id().ok()?).ok()
    }
}

fn open_telemetry() -> Option<Telemetry> {
    Telemetry::open().inspect_err(|error| tracing::warn!(%error, "GPUs are not watched")).ok()
}

/// The number N in `cuda:N`; `None` for another name.
fn ordinal_of(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("cuda:")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals() {
        for (name, expected) in [
            ("cuda:0", Some(0)),
            ("cuda:12", Some(12)),
            ("cuda:", None),
            ("cuda:+1", None),
            ("cuda:0#1", None),
            ("cpu:0", None),
            ("cuda:99999999999", None),
        ] {
            assert_eq!(ordinal_of(name), expected, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_opened_says_why() {
        let devices = CudaDevices::new(None);
        for name in ["cuda", "cuda:4000000"] {
            match devices.open(name) {
                Err(DeviceError::Unavailable { device, reason }) => {
                    assert!(device == name && !reason.is_empty(), "{reason}")
                }
                Err(other) => panic!("{name}: {other}"),
                Ok(_) => panic!("{name} is no device"),
            }
        }
    }
}
