//! The same integrals on a device, with one thread for each node of each put, bit for bit.

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};

use super::boundary::{Integrals, Settled, share};
use super::nodes::{
    LEVEL_COSINES, LEVEL_SINES, LEVEL_WEIGHTS, NODES, PREMIUM_COSINES, PREMIUM_SINES, PREMIUM_WEIGHTS,
};
use super::points::{Curve, Levels, Premium, Put};
use crate::device::{
    Address, Device, DeviceError, IMPROVE_BOUNDARIES, WEIGH_PREMIUMS, WorkMemory, Workspace, with_workspace,
};

/// Arguments of the kernels: `EarlyExerciseArgs` of `early_exercise.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct EarlyExerciseArgs {
    puts: u64,
    put: Address,
    tables: Address,
    curves: Address,
    levels: Address,
    premiums: Address,
}

/// Computes [`boundary::settle`](super::boundary::settle).
pub fn settle(
    device: &mut dyn Device,
    memory: &mut WorkMemory,
    puts: &[Put],
) -> Result<Option<Vec<Settled>>, DeviceError> {
    if puts.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let shares: [f64; NODES] = std::array::from_fn(share);
    let level = [&shares[..], &LEVEL_SINES, &LEVEL_COSINES, &LEVEL_WEIGHTS].concat();
    let premium = [&PREMIUM_SINES[..], &PREMIUM_COSINES, &PREMIUM_WEIGHTS].concat();
    with_workspace(device, memory, |workspace| {
        let tables = workspace.put(cast_slice(&[level, premium].concat()))?;
        super::boundary::settle(puts, &mut OnDevice { workspace, tables })
    })
}

struct OnDevice<'a, 'b> {
    workspace: &'a mut Workspace<'b>,
    tables: Address,
}

impl Integrals for OnDevice<'_, '_> {
    type Error = DeviceError;

    fn improve(
        &mut self,
        puts: &[Put],
        curves: &[Curve],
        levels: &[Levels],
    ) -> Result<Vec<Levels>, DeviceError> {
        let tables = self.tables;
        self.workspace.with_part(|part| {
            let put = part.put(cast_slice(puts))?;
            let curves = part.put(cast_slice(curves.as_flattened()))?;
            let at = part.put(cast_slice(levels.as_flattened()))?;
            let args =
                EarlyExerciseArgs { puts: puts.len() as u64, put, tables, curves, levels: at, premiums: 0 };
            part.device.launch(&IMPROVE_BOUNDARIES, bytes_of(&args), puts.len() * NODES)?;
            let mut better = levels.to_vec();
            part.device.download(at, cast_slice_mut(better.as_flattened_mut()))?;
            Ok(better)
        })
    }

    fn premiums(&mut self, puts: &[Put], curves: &[Curve]) -> Result<Vec<Premium>, DeviceError> {
        let tables = self.tables;
        self.workspace.with_part(|part| {
            let put = part.put(cast_slice(puts))?;
            let curves = part.put(cast_slice(curves.as_flattened()))?;
            let mut premiums = vec![Premium::default(); puts.len()];
            let at = part.room(size_of_val(&premiums[..]))?;
            let args =
                EarlyExerciseArgs { puts: puts.len() as u64, put, tables, curves, levels: 0, premiums: at };
            part.device.launch(&WEIGH_PREMIUMS, bytes_of(&args), puts.len())?;
            part.device.download(at, cast_slice_mut(&mut premiums))?;
            Ok(premiums)
        })
    }
}
