//! A GPU in use: its context, its streams, memory on both sides, and kernels.

use std::ffi::{CString, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use cudarc::driver::{result, sys};
use warptape_kernels::device::Address;

use super::{DriverResult, GpuHandle};

/// Greatest size of a kernel's arguments, in bytes: all GPUs accept at least this.
pub const ARGS_BYTES_MAX: usize = 4096;

/// The primary context of a GPU, shared by all its users in this process.
pub(super) struct Context {
    device: sys::CUdevice,
    context: sys::CUcontext,
}

// SAFETY: the driver's handles belong to no thread; they may be used from any thread, also concurrently.
unsafe impl Send for Context {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context {}

impl Context {
    /// Makes the context current. A thread has one current context at a time, and may work with several GPUs.
    pub(super) fn make_current(&self) -> DriverResult<()> {
        // SAFETY: the context is retained.
        unsafe { result::ctx::set_current(self.context) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and all objects made in it are gone, because each of them holds the context. If
        // this fails, the process has nothing left to release.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// Two streams of a GPU: one for uploads, and one for all other calls, which run in their order. An upload waits only
/// for the calls made before the previous upload, and every call after an upload waits for it.
pub struct Session {
    pub(super) context: Arc<Context>,
    pub(super) stream: sys::CUstream,
    uploads: sys::CUstream,
    /// An event after the calls that the next upload waits for.
    asked: sys::CUevent,
}

// SAFETY: a stream belongs to no thread, and every call makes its context current first.
unsafe impl Send for Session {}

/// The order in which a GPU begins blocks of kernels.
#[derive(Clone, Copy)]
enum Priority {
    Greatest,
    Least,
}

impl Session {
    /// Opens new streams of the highest priority.
    pub fn open(gpu: GpuHandle) -> DriverResult<Session> {
        // SAFETY: the device comes from the driver.
        let context = unsafe { result::primary_ctx::retain(gpu.device) }?;
        Session::new(Arc::new(Context { device: gpu.device, context }), Priority::Greatest)
    }

    /// Opens new streams of the lowest priority, in the same context. The two sessions do not wait for each other,
    /// except at allocations and frees, where the driver may wait for all work on the GPU.
    pub fn background(&self) -> DriverResult<Session> {
        Session::new(Arc::clone(&self.context), Priority::Least)
    }

    fn new(context: Arc<Context>, priority: Priority) -> DriverResult<Session> {
        context.make_current()?;
        // Smaller numbers mean higher priority; both are 0 if a GPU has no priorities.
        let (least, greatest) = result::stream::get_priority_range()?;
        let priority = match priority {
            Priority::Greatest => greatest,
            Priority::Least => least,
        };
        let stream =
            || result::stream::create_with_priority(result::stream::StreamKind::NonBlocking, priority);
        let asked = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        Ok(Session { context, stream: stream()?, uploads: stream()?, asked })
    }

    /// Makes the next upload wait for all calls so far.
    pub fn settle(&self) -> DriverResult<()> {
        self.context.make_current()?;
        // SAFETY: the event and the stream are live.
        unsafe { result::event::record(self.asked, self.stream) }
    }

    /// Allocates memory with undefined content.
    pub fn allocate(&self, bytes: usize) -> DriverResult<Address> {
        self.context.make_current()?;
        // SAFETY: this is memory of the device, which this program does not access directly.
        unsafe { result::malloc_sync(bytes.max(1)) }
    }

    /// Frees memory once all earlier calls are done.
    pub fn free(&self, address: Address) -> DriverResult<()> {
        let done = self.synchronize();
        self.context.make_current()?;
        // SAFETY: no work on this stream uses it any more; the driver refuses addresses that it has not allocated.
        let freed = unsafe { result::free_sync(address) };
        done.and(freed)
    }

    pub fn clear(&self, address: Address, bytes: usize) -> DriverResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: it writes only memory of the device.
        unsafe { result::memset_d8_async(address, 0, bytes, self.stream) }
    }

    /// Copies the first bytes of host memory, which must be waited for before it is used again. The copy may run
    /// concurrently with calls made since the last upload or [`Session::settle`].
    pub fn upload(&self, to: Address, from: &mut Pinned, bytes: usize) -> DriverResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        from.is_in_use = true;
        let no_flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the host memory is neither freed nor accessed before the event, which comes after the copy. A stream
        // waits for an event as it was last recorded, whatever happens to the event later.
        unsafe {
            result::stream::wait_event(self.uploads, self.asked, no_flags)?;
            result::event::record(self.asked, self.stream)?;
            result::memcpy_htod_async(to, from.slice(bytes), self.uploads)?;
            result::event::record(from.last_use, self.uploads)?;
            result::stream::wait_event(self.stream, from.last_use, no_flags)
        }
    }

    /// Copies bytes to the beginning of host memory, which must be waited for.
    pub fn download(&self, from: Address, to: &mut Pinned, bytes: usize) -> DriverResult<()> {
        self.download_on(self.stream, from, to, bytes)
    }

    /// As [`Session::download`], but waits only for uploads. The bytes must be complete, and later kernels must not
    /// change them.
    pub fn download_beside(&self, from: Address, to: &mut Pinned, bytes: usize) -> DriverResult<()> {
        self.download_on(self.uploads, from, to, bytes)
    }

    fn download_on(
        &self,
        stream: sys::CUstream,
        from: Address,
        to: &mut Pinned,
        bytes: usize,
    ) -> DriverResult<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        to.is_in_use = true;
        // SAFETY: as for an upload.
        unsafe {
            result::memcpy_dtoh_async(to.slice_mut(bytes), from, stream)?;
            result::event::record(to.last_use, stream)
        }
    }

    /// Copies within the device.
    pub fn copy(&self, to: Address, from: Address, bytes: usize) -> DriverResult<()> {
        self.context.make_current()?;
        // SAFETY: it reads and writes only memory of the device.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }
    }

    /// Waits until all calls are done, including uploads, because the stream waits for each of them.
    pub fn synchronize(&self) -> DriverResult<()> {
        self.context.make_current()?;
        // SAFETY: the stream is live.
        unsafe { result::stream::synchronize(self.stream) }
    }

    /// Bytes of free memory of the device.
    pub fn memory_free_bytes(&self) -> DriverResult<usize> {
        self.context.make_current()?;
        result::mem_get_info().map(|(free, _)| free)
    }

    /// Loads functions of a program: machine code, or PTX that ends with a zero byte.
    pub fn load(&self, image: &[u8], functions: &[&str]) -> DriverResult<Vec<Function>> {
        self.context.make_current()?;
        // SAFETY: the image comes from the compiler; the driver copies it.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }?;
        let module = Arc::new(Module { context: Arc::clone(&self.context), module });
        let function = |name: &&str| {
            let name = CString::new(*name).expect("names of functions have no zero bytes");
            // SAFETY: the module is loaded, and the function keeps it loaded.
            let function = unsafe { result::module::get_function(module.module, name) }?;
            Ok(Function { _module: Arc::clone(&module), function })
        };
        functions.iter().map(function).collect()
    }

    /// Runs a function that takes one struct by value, given as bytes.
    pub fn launch(
        &self,
        function: &Function,
        blocks: u32,
        block_threads: u32,
        args: &[u8],
    ) -> DriverResult<()> {
        // The driver copies as many bytes as the function takes, without checking the buffer's size.
        let mut aligned = Args([0; ARGS_BYTES_MAX]);
        aligned.0[..args.len()].copy_from_slice(args);
        let mut params: [*mut c_void; 1] = [ptr::from_mut(&mut aligned).cast()];
        self.context.make_current()?;
        let (grid, block) = ((blocks, 1, 1), (block_threads, 1, 1));
        // SAFETY: the only parameter is a struct no larger than the buffer, sufficiently aligned, and copied before
        // this returns. The kernel accesses only memory of the device, not of this program.
        unsafe { result::launch_kernel(function.function, grid, block, 0, self.stream, &mut params) }
    }

    /// Allocates zeroed host memory that the device can access.
    pub fn pin(&self, bytes: usize) -> DriverResult<Pinned> {
        self.context.make_current()?;
        let last_use = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
        // SAFETY: the memory is not shared.
        let allocated = unsafe { result::malloc_host(bytes.max(1), 0) };
        match allocated.map(|pointer| NonNull::new(pointer.cast::<u8>())) {
            Ok(Some(pointer)) => {
                // SAFETY: at least `bytes` bytes were allocated; one if `bytes` is 0.
                unsafe { pointer.write_bytes(0, bytes.max(1)) };
                let context = Arc::clone(&self.context);
                Ok(Pinned { context, pointer, bytes, last_use, is_in_use: false })
            }
            failed => {
                // SAFETY: no call waits for the event, and there is no other handle of it.
                let _ = unsafe { result::event::destroy(last_use) };
                let out_of_memory = sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
                Err(failed.err().unwrap_or(cudarc::driver::DriverError(out_of_memory)))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.synchronize();
        // SAFETY: there are no other handles of them. If the context has failed, they are already gone.
        unsafe {
            let _ = result::stream::destroy(self.uploads);
            let _ = result::stream::destroy(self.stream);
            let _ = result::event::destroy(self.asked);
        }
    }
}

/// The bytes of a kernel's arguments, with an alignment that suits any type.
#[repr(C, align(16))]
struct Args([u8; ARGS_BYTES_MAX]);

struct Module {
    context: Arc<Context>,
    module: sys::CUmodule,
}

// SAFETY: a module belongs to no thread.
unsafe impl Send for Module {}
// SAFETY: it is only read.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.context.make_current();
        // SAFETY: no function of the module exists any more.
        let _ = unsafe { result::module::unload(self.module) };
    }
}

/// A loaded kernel, to be launched in the context that loaded it.
pub struct Function {
    _module: Arc<Module>,
    function: sys::CUfunction,
}

// SAFETY: a function belongs to no thread.
unsafe impl Send for Function {}
// SAFETY: it is only read, and the driver accepts it from any thread, also concurrently.
unsafe impl Sync for Function {}

/// Host memory that the device can reach.
pub struct Pinned {
    context: Arc<Context>,
    pointer: NonNull<u8>,
    bytes: usize,
    /// An event after the last copy from or to the memory.
    last_use: sys::CUevent,
    is_in_use: bool,
}

// SAFETY: only this value owns the memory, which belongs to no thread.
unsafe impl Send for Pinned {}

impl Pinned {
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Waits for the last copy from or to the memory.
    pub fn wait(&mut self) -> DriverResult<()> {
        if self.is_in_use {
            self.context.make_current()?;
            // SAFETY: the event is live.
            unsafe { result::event::synchronize(self.last_use) }?;
            self.is_in_use = false;
        }
        Ok(())
    }

    /// The memory's bytes. The caller must have waited for the last copy.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(!self.is_in_use, "host memory is waited for before it is seen");
        // SAFETY: all `self.bytes` bytes were allocated and written, and no copy is under way.
        unsafe { self.slice_mut(self.bytes) }
    }

    /// # Safety
    /// The slice may only be passed to the driver, which may use its memory until `last_use`.
    unsafe fn slice(&self, bytes: usize) -> &[u8] {
        assert!(bytes <= self.bytes, "no more is copied than there is");
        // SAFETY: at least `bytes` bytes were allocated and written.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), bytes) }
    }

    /// # Safety
    /// As for `slice`.
    unsafe fn slice_mut(&mut self, bytes: usize) -> &mut [u8] {
        assert!(bytes <= self.bytes, "no more is copied than there is");
        // SAFETY: at least `bytes` bytes were allocated and written.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.wait();
        let _ = self.context.make_current();
        // SAFETY: the last copy is done, or the context has failed and copies nothing any more.
        unsafe {
            let _ = result::free_host(self.pointer.as_ptr().cast());
            let _ = result::event::destroy(self.last_use);
        }
    }
}
