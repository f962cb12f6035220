//! Compilation of kernels to machine code: the target architecture, the options, and a cache of compiled code.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cache::{Cache, name_of};
use crate::raw::{Nvrtc, Output};

/// The target of compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Machine code for a compute capability, such as 90 for 9.0.
    Machine(u32),
    /// PTX text that the driver compiles for this compute capability or a newer one.
    Virtual(u32),
}

impl Target {
    /// The best known target for a GPU; `None` if the compiler no longer supports it.
    pub(crate) fn choose(capability: u32, known: &[u32]) -> Option<Target> {
        if known.contains(&capability) {
            return Some(Target::Machine(capability));
        }
        known.iter().copied().filter(|&other| other < capability).max().map(Target::Virtual)
    }

    fn output(self) -> Output {
        match self {
            Target::Machine(_) => Output::Cubin,
            Target::Virtual(_) => Output::Ptx,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Machine(capability) => write!(f, "sm_{capability}"),
            Target::Virtual(capability) => write!(f, "compute_{capability}"),
        }
    }
}

/// A program to be compiled.
#[derive(Clone, Debug)]
pub(crate) struct Program<'a> {
    /// Name of the program in the compiler's messages.
    pub(crate) name: &'static str,
    pub(crate) text: &'a str,
    /// Options, without the architecture.
    pub(crate) options: &'a [&'a str],
}

/// Names of NVRTC's library, best first: the system's, that of the driver's CUDA version, and others that a package may
/// install.
pub(crate) fn library_names(driver_version: i32) -> Vec<OsString> {
    let major = driver_version / 1000;
    let mut names = vec![OsString::from("libnvrtc.so"), format!("libnvrtc.so.{major}").into()];
    names.extend(
        [13, 12]
            .into_iter()
            .filter(|&other| other != major)
            .map(|other| format!("libnvrtc.so.{other}").into()),
    );
    names
}

/// The message if there is no compiler.
pub(crate) const NO_COMPILER: &str = "libnvrtc.so was not found: install the CUDA toolkit's NVRTC, or pip install \
                                      nvidia-cuda-nvrtc and put its folder, site-packages/nvidia/cu13/lib \
                                      (nvidia/cuda_nvrtc/lib before CUDA 13), on LD_LIBRARY_PATH";

/// Compiles each program once for all users of GPUs of a kind.
pub(crate) struct Compiler {
    cache: Cache,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    nvrtc: Option<Arc<Nvrtc>>,
    compiled: HashMap<String, Arc<Vec<u8>>>,
}

impl Compiler {
    pub(crate) fn new(cache: Cache) -> Compiler {
        Compiler { cache, state: Mutex::default() }
    }

    /// NVRTC, loaded once.
    pub(crate) fn nvrtc(&self, driver_version: i32) -> Result<Arc<Nvrtc>, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nvrtc) = &state.nvrtc {
            return Ok(Arc::clone(nvrtc));
        }
        let loaded = Nvrtc::load(&library_names(driver_version)).ok_or_else(|| NO_COMPILER.to_owned())??;
        Ok(Arc::clone(state.nvrtc.insert(Arc::new(loaded))))
    }

    /// Returns a program compiled for a target. `compile` gets the program's options with the architecture. The result
    /// also depends on the versions of compiler and driver, so the caller names these.
    pub(crate) fn image(
        &self,
        program: &Program<'_>,
        target: Target,
        versions: &str,
        compile: impl FnOnce(&[String]) -> Result<Vec<u8>, String>,
    ) -> Result<Arc<Vec<u8>>, String> {
        let architecture = format!("--gpu-architecture={target}");
        let options: Vec<String> =
            program.options.iter().copied().chain([architecture.as_str()]).map(str::to_owned).collect();
        let name = name_of("kernel", &[program.name, program.text, &options.join("\n"), versions]);
        // The lock is held during compilation, so that another lane of the same GPU waits for the result and does not
        // compile as well.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(image) = state.compiled.get(&name) {
            return Ok(Arc::clone(image));
        }
        let image = Arc::new(self.cache.get(&name, || compile(&options))?);
        state.compiled.insert(name, Arc::clone(&image));
        Ok(image)
    }

    /// Returns the same program, compiled by NVRTC.
    pub(crate) fn compile(
        &self,
        nvrtc: &Nvrtc,
        program: &Program<'_>,
        target: Target,
        driver_version: i32,
    ) -> Result<Arc<Vec<u8>>, String> {
        let (major, minor) = nvrtc.version;
        let versions = format!("NVRTC {major}.{minor}, driver {driver_version}");
        self.image(program, target, &versions, |options| {
            nvrtc.compile(program.name, program.text, options, target.output())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use warptape_kernels::device::{COMPILER_OPTIONS, KERNELS};

    use super::*;

    #[test]
    fn targets() {
        let known = [75, 80, 90, 120];
        let check = |capability: u32, expected: Option<&str>| {
            let target = Target::choose(capability, &known).map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{capability}");
        };
        check(90, Some("sm_90"));
        check(89, Some("compute_80"));
        check(121, Some("compute_120"));
        check(70, None);
    }

    #[test]
    fn each_program_is_compiled_once() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(folder.path().to_owned()));
        let compiles = |compiler: &Compiler, text: &str, target: Target, versions: &str| {
            let mut options = None;
            let program = Program { name: "a.cu", text, options: &["--fmad=false"] };
            let image = compiler.image(&program, target, versions, |given| {
                options = Some(given.to_vec());
                Ok(text.as_bytes().to_vec())
            });
            assert_eq!(image.unwrap().as_slice(), text.as_bytes());
            options
        };
        let (machine, other) = (Target::Machine(90), Target::Virtual(90));
        let first = Compiler::new(cache.clone());
        let options = ["--fmad=false".to_owned(), "--gpu-architecture=sm_90".to_owned()];
        assert_eq!(compiles(&first, "text", machine, "1").as_deref(), Some(&options[..]));
        assert_eq!(compiles(&first, "text", machine, "1"), None, "in memory");
        let second = Compiler::new(cache);
        assert_eq!(compiles(&second, "text", machine, "1"), None, "in a file");
        assert!(compiles(&second, "other text", machine, "1").is_some());
        assert!(compiles(&second, "text", other, "1").is_some());
        assert!(compiles(&second, "text", machine, "2").is_some());
        assert!(compiles(&Compiler::new(Cache::new(None)), "text", machine, "1").is_some());
    }

    #[test]
    fn what_the_compiler_says_is_passed_on() {
        let compiler = Compiler::new(Cache::new(None));
        let program = Program { name: "a.cu", text: "", options: &[] };
        let failed = compiler.image(&program, Target::Machine(90), "", |_| Err("line 1: no".to_owned()));
        assert_eq!(failed.unwrap_err(), "line 1: no");
    }

    #[test]
    fn names_of_the_library() {
        let names = |version| {
            library_names(version).into_iter().map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(12_040), ["libnvrtc.so", "libnvrtc.so.12", "libnvrtc.so.13"]);
        assert_eq!(names(14_000), ["libnvrtc.so", "libnvrtc.so.14", "libnvrtc.so.13", "libnvrtc.so.12"]);
    }

    #[test]
    fn nvrtc_compiles_kernels_and_says_what_is_wrong() {
        let Some(folder) = std::env::var_os("WARPTAPE_TEST_NVRTC") else {
            panic!(
                "WARPTAPE_TEST_NVRTC is not set: run the tests by tests/run, or set it to the folder of libnvrtc.so"
            );
        };
        let paths: Vec<PathBuf> =
            library_names(13_000).into_iter().map(|name| PathBuf::from(&folder).join(name)).collect();
        let nvrtc = Nvrtc::load(&paths).expect("it is there").expect("it is one that can be used");
        assert!(nvrtc.architectures.contains(&90) && nvrtc.version >= (12, 0), "{:?}", nvrtc.version);
        let compiler = Compiler::new(Cache::new(None));
        // The tests of kernels compile all of them, with the same options.
        let kernel = KERNELS[0].program();
        let texts = [(KERNELS[0].source.name, &*kernel), (crate::score::SOURCE_NAME, crate::score::SOURCE)];
        for (name, text) in texts {
            let program = Program { name, text, options: &COMPILER_OPTIONS };
            let cubin = compiler.compile(&nvrtc, &program, Target::Machine(90), 13_000).unwrap();
            assert!(cubin.starts_with(b"\x7fELF"), "{name}");
        }
        let program = Program { name: "none.cu", text: &kernel, options: &COMPILER_OPTIONS };
        let ptx = compiler.compile(&nvrtc, &program, Target::Virtual(80), 13_000).unwrap();
        let text = String::from_utf8_lossy(&ptx);
        assert!(text.contains(".target sm_80") && text.ends_with('\0'), "{text}");
        let program = Program { name: "wrong.cu", text: "int f() { return wrong; }", options: &[] };
        let said = compiler.compile(&nvrtc, &program, Target::Machine(90), 13_000).unwrap_err();
        assert!(said.contains("NVRTC_ERROR_COMPILATION") && said.contains("wrong.cu(1): error"), "{said}");
        let said = compiler.compile(&nvrtc, &program, Target::Machine(1), 13_000).unwrap_err();
        assert!(said.contains("--gpu-architecture"), "{said}");
    }
}
