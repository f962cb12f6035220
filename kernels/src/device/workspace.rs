//! Memory of a device for one piece of work.

use super::api::{Address, Device, DeviceError};

/// Memory that is given back when the work is done.
pub(crate) struct Workspace<'a> {
    pub(crate) device: &'a mut dyn Device,
    addresses: Vec<Address>,
}

/// Does a piece of work in memory of its own.
pub(crate) fn with_workspace<R>(
    device: &mut dyn Device,
    work: impl FnOnce(&mut Workspace) -> Result<R, DeviceError>,
) -> Result<R, DeviceError> {
    let mut workspace = Workspace { device, addresses: Vec::new() };
    let done = work(&mut workspace);
    let Workspace { device, addresses } = workspace;
    // There may not have been enough, which is no failure of the device.
    addresses.into_iter().try_for_each(|address| device.free(address))?;
    done
}

impl Workspace<'_> {
    /// New memory of zeros.
    pub(crate) fn room(&mut self, bytes: usize) -> Result<Address, DeviceError> {
        let address = self.device.allocate(bytes.max(1))?;
        self.addresses.push(address);
        Ok(address)
    }

    /// New memory with these bytes.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<Address, DeviceError> {
        let address = self.room(bytes.len())?;
        self.device.staging(bytes.len())?[..bytes.len()].copy_from_slice(bytes);
        self.device.upload(address, bytes.len())?;
        Ok(address)
    }
}
