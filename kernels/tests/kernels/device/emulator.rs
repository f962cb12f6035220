//! The kernels' own sources, compiled for this processor and run here.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_void};
use std::path::Path;
use std::process::Command;

use libloading::Library;
use tempfile::TempDir;
use warptape_kernels::device::{KERNELS, Kernel};

use super::Device;

/// Runs kernels as loops over their threads.
pub struct Emulator {
    kernels: Vec<(&'static str, Library)>,
    memory: Vec<Vec<u128>>,
    backwards: bool,
    _folder: TempDir,
}

impl Emulator {
    /// Compiles all kernels.
    pub fn new() -> Emulator {
        Self::with("", "")
    }

    /// Likewise, with one text in place of another.
    pub fn with(from: &str, to: &str) -> Emulator {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let load = |kernel: &Kernel| {
            let program = kernel.program();
            let program = if from.is_empty() { program } else { program.replace(from, to) };
            (kernel.function, compile(folder.path(), kernel, &program))
        };
        let kernels = KERNELS.iter().map(load).collect();
        Emulator { kernels, memory: Vec::new(), backwards: false, _folder: folder }
    }

    fn kernel(&self, function: &str) -> &Library {
        let (_, library) = self.kernels.iter().find(|(name, _)| *name == function).expect("all are compiled");
        library
    }

    /// Size of the struct that a kernel is given.
    pub fn args_bytes(&self, kernel: &Kernel) -> usize {
        // SAFETY: the library was made from `emulator.h`, which defines it so.
        unsafe {
            let size = self.kernel(kernel.function).get::<unsafe extern "C" fn() -> u64>(b"args_bytes");
            size.expect("emulator.h defines it")() as usize
        }
    }
}

fn compile(folder: &Path, kernel: &Kernel, program: &str) -> Library {
    let Kernel { function, args, .. } = kernel;
    let text = format!("{}\n{program}\nEMULATE({function}, {args})\n", include_str!("emulator.h"));
    let (unit, library) = (folder.join(format!("{function}.cpp")), folder.join(format!("{function}.so")));
    std::fs::write(&unit, text).expect("a file can be written");
    let output = Command::new("c++")
        .args(["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Werror", "-Wno-unused-function"])
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &unit])
        .output()
        .expect("a C++ compiler, which tests/run installs");
    assert!(output.status.success(), "{function}:\n{}", String::from_utf8_lossy(&output.stderr));
    // SAFETY: the library has no initialisers.
    unsafe { Library::new(library) }.expect("it was just compiled")
}

impl Device for Emulator {
    fn upload<T: Copy>(&mut self, values: &[T]) -> u64 {
        let mut memory = vec![0_u128; size_of_val(values).div_ceil(16).max(1)];
        // SAFETY: the memory has room for the values and is aligned for any of them.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), memory.as_mut_ptr().cast(), values.len()) };
        self.memory.push(memory);
        self.memory.last_mut().expect("it was just pushed").as_mut_ptr().expose_provenance() as u64
    }

    fn download<T: Copy + Default>(&mut self, address: u64, count: usize) -> Vec<T> {
        let memory = self.memory.iter().find(|memory| memory.as_ptr().addr() as u64 == address);
        let memory = memory.expect("an address that upload gave");
        assert!(count * size_of::<T>() <= size_of_val(memory.as_slice()), "there are fewer values");
        let mut values = vec![T::default(); count];
        // SAFETY: the memory is at least as long and aligned for any value.
        unsafe { std::ptr::copy_nonoverlapping(memory.as_ptr().cast(), values.as_mut_ptr(), count) };
        values
    }

    fn launch<A>(&mut self, kernel: &Kernel, args: &A, threads: usize) {
        const BLOCK: usize = 32;
        assert_eq!(size_of::<A>(), self.args_bytes(kernel), "both sides lay out the arguments alike");
        self.backwards = !self.backwards;
        // SAFETY: the library was made from `emulator.h`, which defines it so; the arguments are what the kernel takes,
        // and name memory of this emulator.
        unsafe {
            type Launch = unsafe extern "C" fn(*const c_void, c_uint, c_uint, c_int);
            let launch =
                self.kernel(kernel.function).get::<Launch>(b"launch").expect("emulator.h defines it");
            let blocks = threads.div_ceil(BLOCK) as c_uint;
            launch(std::ptr::from_ref(args).cast(), blocks, BLOCK as c_uint, self.backwards.into());
        }
    }

    fn clear(&mut self) {
        self.memory.clear();
    }
}
