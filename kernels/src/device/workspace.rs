//! Memory of a device for jobs, such as risk calculations.

use std::sync::{Arc, Weak};

use bytemuck::cast_slice;

use super::api::{Address, Device, DeviceError};

/// Most bytes that are kept between jobs: allocating or freeing may stall the device for all its users.
const KEPT_BYTES_MAX: usize = 256 << 20;
/// Bytes up to which memory is allocated in powers of two, so that a slightly larger job fits too.
const POWERS_BYTES_MAX: usize = 64 << 20;

/// Memory of a device that is kept for the next job. It belongs to the device with which it was first used.
#[derive(Debug, Default)]
pub struct WorkMemory {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    address: Address,
    bytes: usize,
    in_use: bool,
    /// Numbers that the piece contains for the jobs that share them.
    shared: Weak<Vec<f64>>,
}

impl Piece {
    /// True if a later job may want the content.
    fn is_shared(&self) -> bool {
        self.shared.strong_count() > 0
    }
}

/// Memory of one job.
pub(crate) struct Workspace<'a> {
    pub(crate) device: &'a mut dyn Device,
    memory: &'a mut WorkMemory,
    addresses: Vec<Address>,
}

/// Runs a job. It must end with a download, after which no call uses its memory any more.
pub(crate) fn with_workspace<R>(
    device: &mut dyn Device,
    memory: &mut WorkMemory,
    work: impl FnOnce(&mut Workspace) -> Result<R, DeviceError>,
) -> Result<R, DeviceError> {
    let mut workspace = Workspace { device, memory, addresses: Vec::new() };
    let done = work(&mut workspace);
    let Workspace { device, memory, addresses } = workspace;
    let used = memory.pieces.iter_mut().filter(|piece| addresses.contains(&piece.address));
    used.for_each(|piece| piece.in_use = false);
    // The memory may have been too small, which is not a failure of the device; but earlier calls may still be running.
    memory.shrink(device, if done.is_ok() { KEPT_BYTES_MAX } else { 0 })?;
    done
}

impl WorkMemory {
    /// Bytes that are allocated.
    pub fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes).sum()
    }

    /// Returns memory with undefined content, and true if it is new; new memory is zero.
    fn take(&mut self, device: &mut dyn Device, bytes: usize) -> Result<(Address, bool), DeviceError> {
        let is_fitting = |piece: &&mut Piece| !piece.in_use && !piece.is_shared() && piece.bytes >= bytes;
        if let Some(piece) = self.pieces.iter_mut().filter(is_fitting).min_by_key(|piece| piece.bytes) {
            piece.in_use = true;
            return Ok((piece.address, false));
        }
        let bytes = piece_bytes(bytes);
        let address = match device.allocate(bytes) {
            Err(DeviceError::OutOfMemory { .. }) => {
                self.shrink(device, 0)?;
                device.allocate(bytes)?
            }
            allocated => allocated?,
        };
        self.pieces.push(Piece { address, bytes, in_use: true, shared: Weak::new() });
        Ok((address, true))
    }

    /// Returns memory with these numbers from an earlier job; `None` if there is none.
    fn take_shared(&mut self, numbers: &Arc<Vec<f64>>) -> Option<Address> {
        let has_them =
            |piece: &&mut Piece| piece.is_shared() && piece.shared.as_ptr() == Arc::as_ptr(numbers);
        let piece = self.pieces.iter_mut().find(has_them)?;
        piece.in_use = true;
        Some(piece.address)
    }

    /// Notes that memory in use contains these numbers until it is freed.
    fn share(&mut self, address: Address, numbers: &Arc<Vec<f64>>) {
        let of_address = self.pieces.iter_mut().filter(|piece| piece.address == address);
        of_address.for_each(|piece| piece.shared = Arc::downgrade(numbers));
    }

    /// Frees unused memory until at most `kept_bytes_max` are kept: the largest parts first, and those with shared
    /// numbers last.
    fn shrink(&mut self, device: &mut dyn Device, kept_bytes_max: usize) -> Result<(), DeviceError> {
        while self.bytes() > kept_bytes_max {
            let unused = (0..self.pieces.len()).filter(|&at| !self.pieces[at].in_use);
            let order = |&at: &usize| (!self.pieces[at].is_shared(), self.pieces[at].bytes);
            let Some(at) = unused.max_by_key(order) else { break };
            device.free(self.pieces.swap_remove(at).address)?;
        }
        Ok(())
    }
}

/// Number of bytes to allocate for a need of `bytes`.
pub(crate) fn piece_bytes(bytes: usize) -> usize {
    if bytes <= POWERS_BYTES_MAX { bytes.next_power_of_two() } else { bytes }
}

impl Workspace<'_> {
    /// Returns zeroed memory.
    pub(crate) fn room(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        let (address, is_new) = self.take(bytes)?;
        if !is_new {
            self.device.clear(address, bytes)?;
        }
        Ok(address)
    }

    /// Returns memory with these bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<Address, DeviceError> {
        // The upload fills the memory, so it need not be cleared.
        let (address, _) = self.take(bytes.len())?;
        self.device.staging(bytes.len())?[..bytes.len()].copy_from_slice(bytes);
        self.device.upload(address, bytes.len())?;
        Ok(address)
    }

    /// Returns memory with numbers that later jobs share. They are uploaded again only if the memory was needed
    /// meanwhile.
    pub(crate) fn put_shared(&mut self, numbers: &Arc<Vec<f64>>) -> Result<Address, DeviceError> {
        if let Some(address) = self.memory.take_shared(numbers) {
            self.addresses.push(address);
            return Ok(address);
        }
        let address = self.put(cast_slice(numbers))?;
        self.memory.share(address, numbers);
        Ok(address)
    }

    /// Runs a part of the job, whose memory the next part may reuse.
    pub(crate) fn with_part<R>(
        &mut self,
        work: impl FnOnce(&mut Workspace) -> Result<R, DeviceError>,
    ) -> Result<R, DeviceError> {
        with_workspace(self.device, self.memory, work)
    }

    fn take(&mut self, bytes: usize) -> Result<(Address, bool), DeviceError> {
        let (address, is_new) = self.memory.take(self.device, bytes)?;
        self.addresses.push(address);
        Ok((address, is_new))
    }
}
