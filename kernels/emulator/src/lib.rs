//! A device for tests: the kernels' own sources, compiled for this processor by the C++ compiler and run here.
//!
//! A launch takes threads and blocks in one order of several, in blocks of one size of several (`emulator.h` says how threads wait
//! for each other). Which, follows from the number of the launch.
#![allow(unsafe_code)]

mod faults;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use libloading::Library;
use tempfile::TempDir;
use warptape_kernels::device::{Address, Device, DeviceError, Devices, KERNELS, Kernel};

pub use faults::{Fault, FaultyDevice};

/// Threads of a block.
const BLOCKS: [usize; 3] = [32, 128, 64];
/// Orders of `emulator.h`.
const ORDERS: usize = 4;

/// Kernels, compiled.
pub struct Emulator {
    programs: Vec<Arc<Program>>,
}

/// A program with its kernels.
struct Program {
    text: String,
    kernels: Vec<Compiled>,
    _library: Library,
    _folder: TempDir,
}

#[derive(Clone, Copy)]
struct Compiled {
    kernel: Kernel,
    args_bytes: unsafe extern "C" fn() -> u64,
    launch: unsafe extern "C" fn(*const c_void, c_uint, c_uint, c_int) -> *const c_char,
}

impl Emulator {
    /// Compiles all kernels.
    pub fn new() -> Self {
        Self::of(&KERNELS)
    }

    /// Compiles some kernels; those of a file stand side by side.
    pub fn of(kernels: &[Kernel]) -> Self {
        let programs = kernels.chunk_by(|one, other| one.source == other.source);
        let compile = |kernels: &[Kernel]| Arc::new(Program::compile(kernels, kernels[0].program()));
        Self { programs: programs.map(compile).collect() }
    }

    /// The same kernels with one text in place of another.
    pub fn with(&self, from: &str, to: &str) -> Self {
        let compile = |program: &Arc<Program>| {
            if !program.text.contains(from) {
                return program.clone();
            }
            let kernels: Vec<Kernel> = program.kernels.iter().map(|compiled| compiled.kernel).collect();
            Arc::new(Program::compile(&kernels, program.text.replace(from, to)))
        };
        Self { programs: self.programs.iter().map(compile).collect() }
    }

    /// A device with memory of its own, of at most so many bytes.
    pub fn device(&self, memory_max: usize) -> EmulatedDevice {
        EmulatedDevice {
            programs: self.programs.clone(),
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

impl Program {
    fn compile(kernels: &[Kernel], text: String) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let library = compile(folder.path(), kernels, &text);
        // SAFETY: `EMULATE` defines both for each kernel, and the library stays with them.
        let compiled = |kernel: &Kernel| unsafe {
            let name = |what: &str| format!("{what}_{}", kernel.function);
            Compiled {
                kernel: *kernel,
                args_bytes: *library.get(name("args_bytes").as_bytes()).expect("EMULATE defines it"),
                launch: *library.get(name("launch").as_bytes()).expect("EMULATE defines it"),
            }
        };
        Self { kernels: kernels.iter().map(compiled).collect(), text, _library: library, _folder: folder }
    }
}

fn compile(folder: &Path, kernels: &[Kernel], text: &str) -> Library {
    let name = kernels[0].source.name;
    let emulate = |kernel: &Kernel| format!("EMULATE({}, {})\n", kernel.function, kernel.args);
    let emulated: String = kernels.iter().map(emulate).collect();
    let text = format!("{}\n{text}\n{emulated}", include_str!("emulator.h"));
    let (unit, library) = (folder.join("unit.cpp"), folder.join("unit.so"));
    std::fs::write(&unit, text).expect("a file can be written");
    let output = Command::new("c++")
        .args(["-std=c++17", "-O1", "-ffp-contract=off", "-pthread"])
        // Jumps from stack to stack look to it like a fault.
        .arg("-U_FORTIFY_SOURCE")
        .args(["-Wall", "-Werror", "-Wno-unused-function"])
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &unit])
        .output()
        .expect("a C++ compiler, which tests/run installs");
    assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: the library has no initialisers.
    unsafe { Library::new(library) }.expect("it was just compiled")
}

/// Memory of the host, and kernels as loops over their threads.
pub struct EmulatedDevice {
    programs: Vec<Arc<Program>>,
    /// What is allocated, with its bytes.
    memory: Vec<(Vec<u128>, usize)>,
    memory_max: usize,
    staging: Vec<u128>,
    launches: usize,
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
        let mut compiled = self.programs.iter().flat_map(|program| &program.kernels);
        let compiled =
            *compiled.find(|compiled| compiled.kernel.function == kernel.function).expect("all are compiled");
        // As aligned as the struct is.
        let mut aligned = zeros(args.len());
        bytes_of(&mut aligned)[..args.len()].copy_from_slice(args);
        let [block, order] = form(self.launches);
        self.launches += 1;
        // SAFETY: the functions are those of `emulator.h`; the arguments are what the kernel takes, and name memory of this
        // device.
        let failure = unsafe {
            let bytes = (compiled.args_bytes)();
            assert_eq!(
                bytes,
                args.len() as u64,
                "both sides lay out the arguments of {} alike",
                kernel.function
            );
            let blocks = threads.div_ceil(block) as c_uint;
            CStr::from_ptr((compiled.launch)(
                aligned.as_ptr().cast(),
                blocks,
                block as c_uint,
                order as c_int,
            ))
        };
        // On a GPU it hangs, or does anything.
        assert!(failure.is_empty(), "{}: {}", kernel.function, failure.to_string_lossy());
        Ok(())
    }
}

/// Size of blocks, and order, of the launch with this number: in no step with what is launched again and again.
fn form(launch: usize) -> [usize; 2] {
    let mixed = (launch as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let form = mixed as usize % (BLOCKS.len() * ORDERS);
    [BLOCKS[form / ORDERS], form % ORDERS]
}
