//! A GPU as a device of the kernels: its streams, host memory for copies, and the loaded kernels.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use warptape_kernels::device::{Address, BLOCK_THREADS, DOWNLOADS_MAX, Device, DeviceError, Kernel};

use crate::raw::{ARGS_BYTES_MAX, DriverResult, Function, Pinned, Session, describe, is_out_of_memory};

/// Least size of host memory for copies.
const PINNED_BYTES_MIN: usize = 64 * 1024;
/// Largest part of a download: host memory that the device can access is scarce.
const DOWNLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A GPU, opened by one lane. The lane has one value for its batches and one for its slices of risk tasks, whose
/// kernels yield to those of batches. Resources are freed only after the stream has finished with them.
pub(crate) struct CudaDevice {
    name: String,
    session: Session,
    functions: Arc<[(&'static str, Function)]>,
    /// Two buffers of host memory for uploads: one is uploaded while the other is filled.
    staging: [Option<Pinned>; 2],
    /// Index of the buffer that was returned last.
    staged: usize,
    downloaded: Option<Pinned>,
    /// Downloads under way, with their sizes in bytes. Below: host memory of finished downloads.
    downloads: VecDeque<(Pinned, usize)>,
    ended: Vec<Pinned>,
    memory: BTreeSet<Address>,
    /// The first failure of this value or of another one in the same context; every later call returns it. A failure
    /// breaks a context with all of its streams.
    failure: Arc<OnceLock<DeviceError>>,
}

impl CudaDevice {
    pub(crate) fn new(
        name: String,
        session: Session,
        functions: Vec<(&'static str, Function)>,
    ) -> CudaDevice {
        CudaDevice::with(name, session, functions.into(), Arc::default())
    }

    fn with(
        name: String,
        session: Session,
        functions: Arc<[(&'static str, Function)]>,
        failure: Arc<OnceLock<DeviceError>>,
    ) -> CudaDevice {
        CudaDevice {
            name,
            session,
            functions,
            staging: [None, None],
            staged: 0,
            downloaded: None,
            downloads: VecDeque::new(),
            ended: Vec::new(),
            memory: BTreeSet::new(),
            failure,
        }
    }

    fn working(&self) -> Result<(), DeviceError> {
        self.failure.get().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn failed(&mut self, call: &'static str, reason: String) -> DeviceError {
        let failed = || DeviceError::Failed { device: self.name.clone(), call, reason };
        self.failure.get_or_init(failed).clone()
    }

    fn check<T>(&mut self, call: &'static str, result: DriverResult<T>) -> Result<T, DeviceError> {
        result.map_err(|error| self.failed(call, describe(error)))
    }

    /// Checks a call that may run out of memory, which is not a failure of the device.
    fn check_memory<T>(
        &mut self,
        call: &'static str,
        wanted_bytes: usize,
        result: DriverResult<T>,
    ) -> Result<T, DeviceError> {
        match result {
            Err(error) if is_out_of_memory(error) => {
                Err(DeviceError::OutOfMemory { device: self.name.clone(), wanted_bytes })
            }
            other => self.check(call, other),
        }
    }

    /// Returns unused host memory of at least `bytes`: `pinned` if it is large enough, or new memory of at least twice
    /// its size.
    fn ready(
        &mut self,
        call: &'static str,
        pinned: Option<Pinned>,
        bytes: usize,
    ) -> Result<Pinned, DeviceError> {
        if let Some(mut pinned) = pinned {
            let waited = pinned.wait();
            self.check(call, waited)?;
            if pinned.len() >= bytes {
                return Ok(pinned);
            }
        }
        let size = bytes.max(PINNED_BYTES_MIN).checked_next_power_of_two().unwrap_or(bytes);
        let pinned = self.session.pin(size);
        self.check_memory(call, size, pinned)
    }
}

impl CudaDevice {
    /// Copies bytes to the host, part by part.
    fn download_by(
        &mut self,
        call: &'static str,
        mut from: Address,
        bytes: &mut [u8],
        copy: fn(&Session, Address, &mut Pinned, usize) -> DriverResult<()>,
    ) -> Result<(), DeviceError> {
        for piece in bytes.chunks_mut(DOWNLOAD_BYTES_MAX) {
            let before = self.downloaded.take();
            let mut pinned = self.ready(call, before, piece.len())?;
            let downloaded = copy(&self.session, from, &mut pinned, piece.len());
            let waited = downloaded.and_then(|()| pinned.wait());
            self.check(call, waited)?;
            piece.copy_from_slice(&pinned.bytes_mut()[..piece.len()]);
            self.downloaded = Some(pinned);
            from += piece.len() as Address;
        }
        Ok(())
    }
}

impl Device for CudaDevice {
    fn allocate(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        const CALL: &str = "allocate";
        self.working()?;
        let allocated = self.session.allocate(bytes);
        let address = self.check_memory(CALL, bytes, allocated)?;
        self.memory.insert(address);
        let cleared = self.session.clear(address, bytes).and_then(|()| self.session.settle());
        self.check(CALL, cleared)?;
        Ok(address)
    }

    fn free(&mut self, address: Address) -> Result<(), DeviceError> {
        self.working()?;
        assert!(self.memory.remove(&address), "only what was allocated is freed");
        let freed = self.session.free(address);
        self.check("free", freed)
    }

    fn staging(&mut self, bytes: usize) -> Result<&mut [u8], DeviceError> {
        self.working()?;
        self.staged = 1 - self.staged;
        let before = self.staging[self.staged].take();
        let pinned = self.ready("staging", before, bytes)?;
        Ok(&mut self.staging[self.staged].insert(pinned).bytes_mut()[..bytes])
    }

    fn upload(&mut self, to: Address, bytes: usize) -> Result<(), DeviceError> {
        self.working()?;
        let staged = self.staging[self.staged].as_mut().expect("what is uploaded was staged before");
        let uploaded = self.session.upload(to, staged, bytes);
        self.check("upload", uploaded)
    }

    fn download(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        const CALL: &str = "download";
        self.working()?;
        if bytes.is_empty() {
            let done = self.session.synchronize();
            return self.check(CALL, done);
        }
        self.download_by(CALL, from, bytes, Session::download)
    }

    fn download_ended(&mut self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.working()?;
        // The copy that has ended began after the bytes were written.
        self.download_by("download_ended", from, bytes, Session::download_beside)
    }

    fn begin_download(&mut self, from: Address, bytes: usize) -> Result<(), DeviceError> {
        const CALL: &str = "begin_download";
        self.working()?;
        assert!(self.downloads.len() < DOWNLOADS_MAX, "no more downloads are under way at once");
        let before = self.ended.pop();
        let mut pinned = self.ready(CALL, before, bytes)?;
        let begun = self.session.download(from, &mut pinned, bytes);
        self.check(CALL, begun)?;
        self.downloads.push_back((pinned, bytes));
        Ok(())
    }

    fn end_download(&mut self) -> Result<&[u8], DeviceError> {
        self.working()?;
        let (mut pinned, bytes) = self.downloads.pop_front().expect("a download that ends was begun");
        let waited = pinned.wait();
        self.check("end_download", waited)?;
        self.ended.push(pinned);
        let pinned = self.ended.last_mut().expect("it was just put there");
        Ok(&pinned.bytes_mut()[..bytes])
    }

    fn clear(&mut self, address: Address, bytes: usize) -> Result<(), DeviceError> {
        self.working()?;
        let cleared = self.session.clear(address, bytes);
        self.check("clear", cleared)
    }

    fn launch(&mut self, kernel: &Kernel, args: &[u8], threads: usize) -> Result<(), DeviceError> {
        const CALL: &str = "launch";
        self.working()?;
        assert!(args.len() <= ARGS_BYTES_MAX, "the arguments of {} are too large", kernel.function);
        let Ok(blocks) = u32::try_from(threads.div_ceil(BLOCK_THREADS).max(1)) else {
            return Err(self.failed(CALL, format!("{threads} threads are too many")));
        };
        let found = self.functions.iter().find(|(name, _)| *name == kernel.function);
        let (_, function) = found.expect("all kernels were loaded when the device was opened");
        let launched = self.session.launch(function, blocks, BLOCK_THREADS as u32, args);
        self.check(CALL, launched)
    }

    fn background(&mut self) -> Result<Box<dyn Device>, DeviceError> {
        self.working()?;
        let session = self.session.background();
        let session = self.check("background", session)?;
        let (functions, failure) = (Arc::clone(&self.functions), Arc::clone(&self.failure));
        Ok(Box::new(CudaDevice::with(self.name.clone(), session, functions, failure)))
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        for address in &self.memory {
            // The memory of a failed context is already freed.
            let _ = self.session.free(*address);
        }
    }
}
