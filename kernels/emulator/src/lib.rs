//! A device for tests: the kernels' own sources, compiled for this processor by the C++ compiler and run here.
//!
//! A launch takes threads and blocks in one order of several, in blocks of one size of several (`emulator.h` says how threads wait
//! for each other). Which, follows from the number of the launch. What a device is asked to do happens as late as it may: so uploads
//! come before kernels that were launched first. A stream in the background is run by the thread that asks of it.
#![allow(unsafe_code)]

mod device;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use libloading::Library;
use tempfile::TempDir;
use warptape_kernels::device::{Device, DeviceError, Devices, KERNELS, Kernel};

pub use device::EmulatedDevice;
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
        EmulatedDevice::new(self.programs.clone(), memory_max)
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
