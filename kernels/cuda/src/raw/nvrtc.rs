//! The compiler NVRTC. It is loaded by the file names of its packages, including newer ones than cudarc knows.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::ptr;

use libloading::Library;

type ProgramHandle = *mut c_void;
type Texts = *const *const c_char;
type Create =
    unsafe extern "C" fn(*mut ProgramHandle, *const c_char, *const c_char, c_int, Texts, Texts) -> c_int;
type Compile = unsafe extern "C" fn(ProgramHandle, c_int, Texts) -> c_int;
type Size = unsafe extern "C" fn(ProgramHandle, *mut usize) -> c_int;
type Bytes = unsafe extern "C" fn(ProgramHandle, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut ProgramHandle) -> c_int;
type Numbers = unsafe extern "C" fn(*mut c_int) -> c_int;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type Words = unsafe extern "C" fn(c_int) -> *const c_char;

/// The output of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Machine code.
    Cubin,
    /// PTX text for the driver to compile, ending with a zero byte.
    Ptx,
}

/// The compiler.
pub struct Nvrtc {
    create: Create,
    compile: Compile,
    log_size: Size,
    log: Bytes,
    cubin_size: Size,
    cubin: Bytes,
    ptx_size: Size,
    ptx: Bytes,
    destroy: Destroy,
    words: Words,
    /// Major and minor version.
    pub version: (u32, u32),
    /// Compute capabilities that it can compile for, such as 90 for 9.0.
    pub architectures: Vec<u32>,
    /// The library, kept loaded as long as its functions may be called.
    _library: Library,
}

impl Nvrtc {
    /// Loads the first existing library of these names; `None` if none exists.
    pub fn load(names: &[impl AsRef<OsStr>]) -> Option<Result<Nvrtc, String>> {
        // SAFETY: loading is safe, because NVRTC's initialisers are made for it.
        let library = names.iter().find_map(|name| unsafe { Library::new(name.as_ref()) }.ok())?;
        // SAFETY: the library has one of NVRTC's names.
        Some(
            unsafe { Self::of(library) }
                .map_err(|error| format!("NVRTC is not one that can be used: {error}")),
        )
    }

    /// # Safety
    /// The library is NVRTC.
    unsafe fn of(library: Library) -> Result<Nvrtc, libloading::Error> {
        let (mut major, mut minor, mut count): (c_int, c_int, c_int) = (0, 0, 0);
        // SAFETY: the types are those of nvrtc.h. Functions are used while the library is loaded. All pointers refer to
        // live numbers, as many as the library has reported.
        unsafe {
            let version = *library.get::<Version>(b"nvrtcVersion\0")?;
            let architecture_count = *library.get::<Numbers>(b"nvrtcGetNumSupportedArchs\0")?;
            let architectures_of = *library.get::<Numbers>(b"nvrtcGetSupportedArchs\0")?;
            version(&mut major, &mut minor);
            architecture_count(&mut count);
            let mut architectures = vec![0; count.max(0) as usize];
            architectures_of(architectures.as_mut_ptr());
            Ok(Nvrtc {
                create: *library.get(b"nvrtcCreateProgram\0")?,
                compile: *library.get(b"nvrtcCompileProgram\0")?,
                log_size: *library.get(b"nvrtcGetProgramLogSize\0")?,
                log: *library.get(b"nvrtcGetProgramLog\0")?,
                cubin_size: *library.get(b"nvrtcGetCUBINSize\0")?,
                cubin: *library.get(b"nvrtcGetCUBIN\0")?,
                ptx_size: *library.get(b"nvrtcGetPTXSize\0")?,
                ptx: *library.get(b"nvrtcGetPTX\0")?,
                destroy: *library.get(b"nvrtcDestroyProgram\0")?,
                words: *library.get(b"nvrtcGetErrorString\0")?,
                version: (major.max(0) as u32, minor.max(0) as u32),
                architectures: architectures.into_iter().map(|number: c_int| number.max(0) as u32).collect(),
                _library: library,
            })
        }
    }

    /// Compiles a program. An error contains the compiler's text.
    pub fn compile(
        &self,
        name: &str,
        text: &str,
        options: &[String],
        output: Output,
    ) -> Result<Vec<u8>, String> {
        let c_text = |text: &str| CString::new(text).map_err(|error| error.to_string());
        let (name, text) = (c_text(name)?, c_text(text)?);
        let options = options.iter().map(|option| c_text(option)).collect::<Result<Vec<_>, _>>()?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = Running { compiler: self, program: ptr::null_mut() };
        // SAFETY: the pointers refer to texts that end with a zero byte and live until the end of this function.
        let created = unsafe {
            (self.create)(&mut program.program, text.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        self.check(created)?;
        // SAFETY: as above; the number of options is correct.
        let compiled = unsafe { (self.compile)(program.program, options.len() as c_int, options.as_ptr()) };
        if let Err(error) = self.check(compiled) {
            let log = program.bytes(self.log_size, self.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            return Err(format!("{error}: {}", log.trim_end_matches(['\0', '\n'])));
        }
        match output {
            Output::Cubin => program.bytes(self.cubin_size, self.cubin),
            Output::Ptx => program.bytes(self.ptx_size, self.ptx),
        }
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC returns a static text for every code.
        let words = unsafe { CStr::from_ptr((self.words)(code)) };
        Err(words.to_string_lossy().into_owned())
    }
}

/// A program, which is destroyed when it is dropped.
struct Running<'a> {
    compiler: &'a Nvrtc,
    program: ProgramHandle,
}

impl Running<'_> {
    /// Reads bytes that NVRTC returns in two calls: one for their number, and one that writes them.
    fn bytes(&self, size_of: Size, bytes_of: Bytes) -> Result<Vec<u8>, String> {
        let mut size = 0;
        // SAFETY: the program is live, and the buffer has the size that was queried first.
        unsafe {
            self.compiler.check(size_of(self.program, &mut size))?;
            let mut bytes = vec![0_u8; size];
            self.compiler.check(bytes_of(self.program, bytes.as_mut_ptr().cast()))?;
            Ok(bytes)
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program was created, and is not used any more.
            unsafe { (self.compiler.destroy)(&mut self.program) };
        }
    }
}
