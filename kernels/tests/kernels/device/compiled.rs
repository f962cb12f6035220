//! The kernels, compiled by NVRTC for the oldest and the newest supported architecture, or for all of them (`tests/run
//! --all`). This does not need a GPU.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr;

use libloading::{Library, Symbol};
use warptape_kernels::device::{COMPILER_OPTIONS, KERNELS, Kernel};

/// Compute capabilities, the oldest first.
const ARCHITECTURES: [&str; 5] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"];

type Program = *mut c_void;

/// NVRTC, with the functions that this test needs; they return 0 for success.
struct Compiler {
    library: Library,
}

impl Compiler {
    fn load() -> Compiler {
        let folder = std::env::var_os("WARPTAPE_TEST_NVRTC").expect(
            "WARPTAPE_TEST_NVRTC is not set: run the tests by tests/run, or set it to the folder of libnvrtc.so",
        );
        let is_nvrtc = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc.so"))
        };
        let files = std::fs::read_dir(&folder).expect("WARPTAPE_TEST_NVRTC is a folder");
        let path = files.filter_map(|file| Some(file.ok()?.path())).find(is_nvrtc);
        let path = path.expect("WARPTAPE_TEST_NVRTC has libnvrtc.so");
        // SAFETY: NVRTC's library.
        Compiler { library: unsafe { Library::new(path) }.expect("NVRTC can be loaded") }
    }

    fn function<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: the caller names the function's type in nvrtc.h.
        unsafe { self.library.get(name.as_bytes()) }.expect("nvrtc.h has it")
    }

    /// Size of the machine code, and the compiler's messages.
    fn compile(&self, program_text: &str, name: &str, architecture: &str) -> (usize, String) {
        let text = |text: &str| CString::new(text).expect("no zero bytes");
        let (c_program, c_name) = (text(program_text), text(name));
        let architecture = format!("--gpu-architecture={architecture}");
        let options: Vec<CString> = COMPILER_OPTIONS
            .into_iter()
            .chain([architecture.as_str(), "--ptxas-options=--verbose"])
            .map(text)
            .collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();

        type Create = unsafe extern "C" fn(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
        type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
        type Text = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
        let mut program: Program = ptr::null_mut();
        // SAFETY: all pointers refer to live, zero-terminated texts, and the buffer has the queried size.
        unsafe {
            let created = self.function::<Create>("nvrtcCreateProgram")(
                &mut program,
                c_program.as_ptr(),
                c_name.as_ptr(),
                0,
                ptr::null(),
                ptr::null(),
            );
            assert_eq!(created, 0, "a program can be made");
            let compiled = self.function::<Compile>("nvrtcCompileProgram")(
                program,
                options.len() as c_int,
                options.as_ptr(),
            );
            let mut log_bytes = 0;
            self.function::<Size>("nvrtcGetProgramLogSize")(program, &mut log_bytes);
            let mut log = vec![0_u8; log_bytes.max(1)];
            self.function::<Text>("nvrtcGetProgramLog")(program, log.as_mut_ptr().cast());
            let log = CStr::from_bytes_until_nul(&log).unwrap_or_default().to_string_lossy().into_owned();
            assert_eq!(compiled, 0, "{name} for {architecture}:\n{log}");
            let mut code_bytes = 0;
            self.function::<Size>("nvrtcGetCUBINSize")(program, &mut code_bytes);
            self.function::<Destroy>("nvrtcDestroyProgram")(&mut program);
            (code_bytes, log)
        }
    }
}

#[test]
fn kernels_compile_for_every_architecture() {
    let compiler = Compiler::load();
    let architectures =
        if crate::is_long() { &ARCHITECTURES[..] } else { &[ARCHITECTURES[0], ARCHITECTURES[4]] };
    // A program may have several kernels.
    let mut programs: BTreeMap<String, Vec<&Kernel>> = BTreeMap::new();
    KERNELS.iter().for_each(|kernel| programs.entry(kernel.program()).or_default().push(kernel));
    for (program, kernels) in &programs {
        for architecture in architectures {
            let (code_bytes, log) = compiler.compile(program, kernels[0].source.name, architecture);
            assert!(code_bytes > 0, "{} for {architecture} has no code:\n{log}", kernels[0].source.name);
            for kernel in kernels {
                let entry = format!("entry function '{}'", kernel.function);
                let of_kernel: Vec<&str> = log.lines().skip_while(|line| !line.contains(&entry)).collect();
                let said =
                    |what: &str| of_kernel.iter().find(|line| line.contains(what)).expect("ptxas says it");
                let (used, spills) = (said("registers"), said("spill"));
                println!("{} {architecture}: {}; {}", kernel.function, used.trim(), spills.trim());
                assert!(
                    spills.contains("0 bytes spill stores"),
                    "{} for {architecture}: {spills}",
                    kernel.function
                );
            }
        }
    }
}
