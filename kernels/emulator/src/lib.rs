//! A device for tests: the kernels' own sources, compiled for this processor by the C++ compiler and run here.
//!
//! Threads of a kernel run one after the other, forwards at one launch and backwards at the next, and on two of the host's at the
//! third.
#![allow(unsafe_code)]

mod faults;

use std::ffi::{c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use libloading::Library;
use tempfile::TempDir;
use warptape_kernels::device::{Address, Device, DeviceError, Devices, KERNELS, Kernel};

pub use faults::{Fault, FaultyDevice};

/// Threads of a block.
const BLOCK: usize = 32;
/// Orders in which `emulator.h` starts threads.
const ORDERS: c_int = 3;

/// The kernels, compiled.
pub struct Emulator {
    kernels: Arc<Vec<(&'static str, Library)>>,
    _folder: TempDir,
}

impl Emulator {
    /// Compiles all kernels.
    pub fn new() -> Self {
        Self::with("", "")
    }

    /// Likewise, with one text in place of another.
    pub fn with(from: &str, to: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let load = |kernel: &Kernel| {
            let program = kernel.program();
            let program = if from.is_empty() { program } else { program.replace(from, to) };
            (kernel.function, compile(folder.path(), kernel, &program))
        };
        Self { kernels: Arc::new(KERNELS.iter().map(load).collect()), _folder: folder }
    }

    /// A device with memory of its own, of at most so many bytes.
    pub fn device(&self, memory_max: usize) -> EmulatedDevice {
        EmulatedDevice {
            kernels: self.kernels.clone(),
            memory: Vec::new(),
            memory_max,
            staging: Vec::new(),
            launches: 0,
        }
    }
}

impl Default for Emulator {
    fn default() -> Self {
        Self::new()
    }
}

impl Devices for Emulator {
    fn open(&self, _name: &str) -> Result<Box<dyn Device>, DeviceError> {
        Ok(Box::new(self.device(usize::MAX)))
    }
}

fn compile(folder: &Path, kernel: &Kernel, program: &str) -> Library {
    let Kernel { function, args, .. } = kernel;
    let text = format!("{}\n{program}\nEMULATE({function}, {args})\n", include_str!("emulator.h"));
    let (unit, library) = (folder.join(format!("{function}.cpp")), folder.join(format!("{function}.so")));
    std::fs::write(&unit, text).expect("a file can be written");
    let output = Command::new("c++")
        .args([
            "-std=c++17",
            "-O1",
            "-ffp-contract=off",
            "-pthread",
            "-Wall",
            "-Werror",
            "-Wno-unused-function",
        ])
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &unit])
        .output()
        .expect("a C++ compiler, which tests/run installs");
    assert!(output.status.success(), "{function}:\n{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: the library has no initialisers.
    unsafe { Library::new(library) }.expect("it was just compiled")
}

/// Memory of the host, and kernels as loops over their threads.
pub struct EmulatedDevice {
    kernels: Arc<Vec<(&'static str, Library)>>,
    /// What is allocated, with its bytes.
    memory: Vec<(Vec<u128>, usize)>,
    memory_max: usize,
    staging: Vec<u128>,
    launches: c_int,
}

/// Memory for so many bytes, aligned for anything.
fn zeros(bytes: usize) -> Vec<u128> {
    vec![0; bytes.div_ceil(16).max(1)]
}

fn bytes_of(memory: &mut [u128]) -> &mut [u8] {
    // SAFETY: any bytes are bytes, and the borrow is handed on.
    unsafe { std::slice::from_raw_parts_mut(memory.as_mut_ptr().cast(), size_of_val(memory)) }
}

fn address_of(memory: &[u128]) -> Address {
    memory.as_ptr().expose_provenance() as Address
}

impl EmulatedDevice {
    /// Some bytes of what is allocated.
    fn bytes(&mut self, address: Address, bytes: usize) -> &mut [u8] {
        let holds = |(memory, size): &&mut (Vec<u128>, usize)| {
            let first = address_of(memory);
            address >= first && address + bytes as u64 <= first + *size as u64
        };
        let (memory, _) =
            self.memory.iter_mut().find(holds).expect("an address that was allocated, and no more");
        let from = (address - address_of(memory)) as usize;
        &mut bytes_of(memory)[from..from + bytes]
    }
}

impl Device for EmulatedDevice {
    fn allocate(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        let used: usize = self.memory.iter().map(|(_, bytes)| bytes).sum();
        if bytes > self.memory_max - used {
            return Err(DeviceError::OutOfMemory { device: "emulator".to_owned(), wanted_bytes: bytes });
        }
        let memory = zeros(bytes);
        let address = address_of(&memory);
        self.memory.push((memory, bytes));
        Ok(address)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        let before = self.memory.len();
        self.memory.retain(|(memory, _)| address_of(memory) != address);
        assert_eq!(self.memory.len() + 1, before, "an address that was allocated");
        Ok(())
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], DeviceError> {
        self.staging = zeros(bytes);
        self.staging.fill(0xa5a5 << 64);
        Ok(&mut bytes_of(&mut self.staging)[..bytes])
    }

    fn upload(&mut self, to: Address, bytes: usize) -> Result<(), DeviceError> {
        let mut staging = std::mem::take(&mut self.staging);
        self.bytes(to, bytes).copy_from_slice(&bytes_of(&mut staging)[..bytes]);
        self.staging = staging;
        Ok(())
    }

    fn download(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        bytes.copy_from_slice(self.bytes(from, bytes.len()));
        Ok(())
    }

    fn clear(&mut self, address: Address, bytes: usize) -> Result<(), DeviceError> {
        self.bytes(address, bytes).fill(0);
        Ok(())
    }

    fn launch(&mut self, kernel: &Kernel, args: &[u8], threads: usize) -> Result<(), DeviceError> {
        let (_, library) =
            self.kernels.iter().find(|(name, _)| *name == kernel.function).expect("all are compiled");
        // As aligned as the struct is.
        let mut aligned = zeros(args.len());
        bytes_of(&mut aligned)[..args.len()].copy_from_slice(args);
        let order = self.launches % ORDERS;
        self.launches = order + 1;
        // SAFETY: the library was made from `emulator.h`, which defines both; the arguments are what the kernel takes, and
        // name memory of this device.
        unsafe {
            type Launch = unsafe extern "C" fn(*const c_void, c_uint, c_uint, c_int);
            type Size = unsafe extern "C" fn() -> u64;
            let size = library.get::<Size>(b"args_bytes").expect("emulator.h defines it")();
            assert_eq!(
                size,
                args.len() as u64,
                "both sides lay out the arguments of {} alike",
                kernel.function
            );
            let launch = library.get::<Launch>(b"launch").expect("emulator.h defines it");
            let blocks = threads.div_ceil(BLOCK) as c_uint;
            launch(aligned.as_ptr().cast(), blocks, BLOCK as c_uint, order);
        }
        Ok(())
    }
}
