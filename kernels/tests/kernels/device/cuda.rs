//! The kernels on a GPU.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};

use cudarc::driver::{CudaContext, result, sys};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};
use std::sync::Arc;
use warptape_kernels::device::{COMPILER_OPTIONS, KERNELS, Kernel};

use super::{Device, check};

/// Random cases of each kernel.
const CASES: u32 = 10_000;

/// The first GPU.
struct Gpu {
    /// Makes the device's context this thread's.
    _context: Arc<CudaContext>,
    functions: Vec<(&'static str, sys::CUfunction)>,
    memory: Vec<sys::CUdeviceptr>,
}

impl Gpu {
    fn new() -> Gpu {
        // SAFETY: these only look whether the libraries can be loaded.
        let found = unsafe { [sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present()] };
        assert_eq!(found, [true, true], "CUDA's driver and NVRTC are needed");
        let context = CudaContext::new(0).expect("a GPU");
        context.bind_to_thread().expect("a context");
        let [major, minor] = [
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        ]
        .map(|attribute| context.attribute(attribute).expect("every GPU has it"));
        println!("{}, compute capability {major}.{minor}", context.name().expect("every GPU has one"));
        let load = |kernel: &Kernel| {
            let mut options: Vec<String> = COMPILER_OPTIONS.map(str::to_owned).to_vec();
            options.push(format!("--gpu-architecture=compute_{major}{minor}"));
            let options = CompileOptions { options, ..CompileOptions::default() };
            let ptx = compile_ptx_with_opts(kernel.program(), options)
                .expect("the kernels are compiled in every run of tests");
            let text = CString::new(ptx.to_src()).expect("no zero bytes");
            let name = CString::new(kernel.function).expect("no zero bytes");
            // SAFETY: the text is PTX, ended by a zero byte; the module stays loaded.
            unsafe {
                let module = result::module::load_data(text.as_ptr().cast()).expect("the driver takes it");
                (kernel.function, result::module::get_function(module, name).expect("it has C linkage"))
            }
        };
        let functions = KERNELS.iter().map(load).collect();
        Gpu { _context: context, functions, memory: Vec::new() }
    }
}

impl Device for Gpu {
    fn upload<T: Copy>(&mut self, values: &[T]) -> u64 {
        // SAFETY: the memory has room for the values.
        unsafe {
            let address = result::malloc_sync(size_of_val(values).max(1)).expect("there is memory");
            result::memcpy_htod_sync(address, values).expect("the values can be copied");
            self.memory.push(address);
            address
        }
    }

    fn download<T: Copy + Default>(&mut self, address: u64, count: usize) -> Vec<T> {
        let mut values = vec![T::default(); count];
        // SAFETY: tests ask for what they have uploaded, or less.
        unsafe { result::memcpy_dtoh_sync(&mut values, address) }.expect("the values can be copied");
        values
    }

    fn launch<A>(&mut self, kernel: &Kernel, args: &A, threads: usize) {
        const BLOCK: u32 = 128;
        let (_, function) =
            self.functions.iter().find(|(name, _)| *name == kernel.function).expect("all are compiled");
        let blocks = (threads as u32).div_ceil(BLOCK).max(1);
        let mut params = [std::ptr::from_ref(args).cast::<c_void>().cast_mut()];
        // SAFETY: the arguments are laid out as the kernel has them, which the emulator checks.
        unsafe {
            let stream = std::ptr::null_mut();
            result::launch_kernel(*function, (blocks, 1, 1), (BLOCK, 1, 1), 0, stream, &mut params)
                .expect("the kernel starts");
        }
        result::ctx::synchronize().expect("the kernel ends without an error");
    }

    fn clear(&mut self) {
        for address in self.memory.drain(..) {
            // SAFETY: it was allocated by `upload`, and nothing uses it any more.
            unsafe { result::free_sync(address) }.expect("memory can be freed");
        }
    }
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_gives_the_bits_of_the_twins() {
    check(Gpu::new(), CASES);
}
