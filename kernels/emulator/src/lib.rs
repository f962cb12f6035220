//! A device for tests: the C++ compiler compiles the kernels' own sources for this processor.
//!
//! A launch runs threads and blocks in one of several orders, with one of several block sizes, depending on the number
//! of the launch. `emulator.h` implements barriers between threads. Calls are executed as late as possible, so that
//! uploads may run before kernels that were launched earlier. A background stream runs on the thread that calls it.
//!
//! Compiled libraries are stored beside the test program, named by the hash of all their inputs. So each text is
//! compiled once, and not by every test.
#![allow(unsafe_code)]

mod device;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use libloading::Library;
use warptape_kernels::device::{Device, DeviceError, Devices, KERNELS, Kernel};

pub use device::EmulatedDevice;
/// Compiled kernels.
pub struct Emulator {
    programs: Vec<Arc<Program>>,
    /// True if a kernel has an artificial fault.
    is_faulty: bool,
}

/// A compiled program with its kernels.
struct Program {
    text: String,
    kernels: Vec<Compiled>,
    _library: Library,
}

#[derive(Clone, Copy)]
struct Compiled {
    kernel: Kernel,
    args_bytes: unsafe extern "C" fn() -> u64,
    launch: unsafe extern "C" fn(*const c_void, c_uint, c_uint, c_int) -> *const c_char,
}

impl Emulator {
    /// Width of a lane on an emulated device. It is small, so that tasks of tests have several waves.
    pub const WIDTH: i32 = 3;

    /// Compiles all kernels.
    pub fn new() -> Self {
        Self::of(&KERNELS)
    }

    /// Compiles some kernels; those of one file must be adjacent.
    pub fn of(kernels: &[Kernel]) -> Self {
        let programs = kernels.chunk_by(|one, other| one.source == other.source);
        let compile = |kernels: &[Kernel]| Arc::new(Program::compile(kernels, kernels[0].program()));
        Self { programs: programs.map(compile).collect(), is_faulty: false }
    }

    /// Returns the same kernels with a text replaced: an artificial fault.
    pub fn with(&self, from: &str, to: &str) -> Self {
        let compile = |program: &Arc<Program>| {
            if !program.text.contains(from) {
                return program.clone();
            }
            let kernels: Vec<Kernel> = program.kernels.iter().map(|compiled| compiled.kernel).collect();
            Arc::new(Program::compile(&kernels, program.text.replace(from, to)))
        };
        Self { programs: self.programs.iter().map(compile).collect(), is_faulty: true }
    }

    /// Returns a device with its own memory of at most `memory_max` bytes.
    pub fn device(&self, memory_max: usize) -> EmulatedDevice {
        EmulatedDevice::new(self.programs.clone(), self.is_faulty, memory_max)
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
        // SAFETY: the library has no initialisers. If two load the same file, they share its variables, which are all
        // thread-local.
        let library =
            unsafe { Library::new(compiled(kernels, &text)) }.expect("a library for this processor");
        // SAFETY: `EMULATE` defines both for each kernel, and the library stays loaded with them.
        let compiled = |kernel: &Kernel| unsafe {
            let name = |what: &str| format!("{what}_{}", kernel.function);
            Compiled {
                kernel: *kernel,
                args_bytes: *library.get(name("args_bytes").as_bytes()).expect("EMULATE defines it"),
                launch: *library.get(name("launch").as_bytes()).expect("EMULATE defines it"),
            }
        };
        Self { kernels: kernels.iter().map(compiled).collect(), text, _library: library }
    }
}

const OPTIONS: [&str; 10] = [
    "-std=c++17",
    "-O1",
    "-ffp-contract=off",
    "-pthread",
    // Otherwise the C library would treat jumps between stacks as an error.
    "-U_FORTIFY_SOURCE",
    "-Wall",
    "-Werror",
    "-Wno-unused-function",
    "-shared",
    "-fPIC",
];

/// Returns the path of the library of these kernels; compiles it if it is missing.
fn compiled(kernels: &[Kernel], text: &str) -> PathBuf {
    static COMPILER: LazyLock<String> = LazyLock::new(|| run(Command::new("c++").arg("--version")));
    // Threads that want the same library wait for the one that compiles it. Processes may compile it concurrently,
    // because the result is the same.
    static LIBRARIES: Mutex<BTreeMap<PathBuf, Arc<OnceLock<()>>>> = Mutex::new(BTreeMap::new());
    let emulate = |kernel: &Kernel| format!("EMULATE({}, {})\n", kernel.function, kernel.args);
    let emulated: String = kernels.iter().map(emulate).collect();
    let text = format!("{}\n{text}\n{emulated}", include_str!("emulator.h"));
    let key = blake3::hash(format!("{}\n{OPTIONS:?}\n{text}", *COMPILER).as_bytes()).to_hex();
    let program = std::env::current_exe().expect("the program of the test is a file");
    let folder = program.parent().expect("it is in a folder").join("emulated");
    let library = folder.join(format!("{}-{}.so", kernels[0].source.name.replace('/', "-"), &key[..32]));
    let once = LIBRARIES
        .lock()
        .expect("no thread panics while it has the lock")
        .entry(library.clone())
        .or_default()
        .clone();
    once.get_or_init(|| {
        if !library.exists() {
            compile(&folder, &library, &text);
        }
    });
    library
}

/// Compiles a library. The file appears only once it is complete.
fn compile(folder: &Path, library: &Path, text: &str) {
    std::fs::create_dir_all(folder).expect("a folder beside the program of the test");
    let work = tempfile::tempdir_in(folder).expect("a temporary folder");
    let (unit, unfinished) = (work.path().join("unit.cpp"), work.path().join("unit.so"));
    std::fs::write(&unit, text).expect("a file can be written");
    run(Command::new("c++").args(OPTIONS).arg("-o").args([&unfinished, &unit]));
    std::fs::rename(unfinished, library).expect("a file of the same folder");
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("a C++ compiler, which tests/run installs");
    assert!(output.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
