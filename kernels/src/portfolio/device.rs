//! Profits and covariances on a device, with the bits of the host.

use std::ops::Range;

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};

use super::covariance::{Covariance, CovarianceError, exponential_divisor, sample_sums};
use super::positions::Portfolio;
use super::revaluation::{HeldTerms, Profits};
use super::scenarios::{MOVES, Scenarios, ShockSource};
use crate::device::{
    Address, CENTRE_RETURNS, DRAW_NORMALS, Device, DeviceError, MOVE_SPOTS, REVALUE_POSITIONS, SUM_BOOKS,
    SUM_PRODUCTS, WorkMemory, Workspace, with_workspace,
};
use crate::pricing::draws::LANES;

/// Greatest count of numbers that a device keeps at once: one per scenario for each position, book and asset; 512 MiB.
/// Beyond it, scenarios are processed in several parts.
pub const DEVICE_CELLS_MAX: usize = 1 << 26;

const NUMBER_BYTES: usize = size_of::<f64>();

/// Arguments of the kernels of `portfolio.cu`: its `PortfolioArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
struct PortfolioArgs {
    first_group: u64,
    scenarios: u64,
    assets: u64,
    positions: u64,
    books: u64,
    key: u64,
    drift: Address,
    factor: Address,
    normal: Address,
    moves: [Address; MOVES],
    terms: Address,
    profit: Address,
    member: Address,
    end: Address,
    sum: Address,
}

/// Arguments of the kernels of `covariance.cu`: its `CovarianceArgs`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct CovarianceArgs {
    assets: u64,
    times: u64,
    decay: f64,
    divisor: f64,
    value: Address,
    covariance: Address,
}

/// Computes [`Portfolio::run`] on a device, with the same bits.
pub fn run_on_device(
    device: &mut dyn Device,
    memory: &mut WorkMemory,
    portfolio: &Portfolio,
    scenarios: &Scenarios,
    range: Range<u64>,
    profits: &mut Profits,
) -> Result<(), DeviceError> {
    assert_eq!(scenarios.assets(), portfolio.assets().len(), "moves for each asset");
    assert!(range.end <= scenarios.len(), "scenarios that there are");
    let books = portfolio.parents().len();
    let mut found = Profits { columns: vec![Vec::new(); books], ..Profits::default() };
    if range.start < range.end && books > 0 {
        with_workspace(device, memory, |workspace| {
            let args = put_portfolio(workspace, portfolio, scenarios)?;
            let cells = portfolio.positions().len() + books + scenarios.assets() * (MOVES + 1);
            let part = (DEVICE_CELLS_MAX / cells / LANES).max(1) as u64 * LANES as u64;
            let mut from = range.start;
            while from < range.end {
                let to = range.end.min((from / part + 1) * part);
                workspace.with_part(|part| run(part, args, scenarios, from..to, &mut found))?;
                from = to;
            }
            Ok(())
        })?;
    }
    profits.append(&found);
    Ok(())
}

/// Uploads the data that do not depend on the scenario.
fn put_portfolio(
    workspace: &mut Workspace,
    portfolio: &Portfolio,
    scenarios: &Scenarios,
) -> Result<PortfolioArgs, DeviceError> {
    let (mut member, mut end) = (Vec::new(), Vec::new());
    for members in portfolio.members() {
        for numbers in [&members.positions, &members.books] {
            member.extend(numbers.iter().map(|number| *number as u64));
            end.push(member.len() as u64);
        }
    }
    let terms: Vec<HeldTerms> =
        (0..portfolio.positions().len()).map(|number| portfolio.terms(number)).collect();
    let mut args = PortfolioArgs {
        assets: scenarios.assets() as u64,
        positions: terms.len() as u64,
        books: portfolio.parents().len() as u64,
        terms: workspace.put(cast_slice(&terms))?,
        member: workspace.put(cast_slice(&member))?,
        end: workspace.put(cast_slice(&end))?,
        ..PortfolioArgs::default()
    };
    if let ShockSource::Drawn { key, drifts, factor } = &scenarios.source {
        args.key = *key;
        args.drift = workspace.put(cast_slice(drifts))?;
        args.factor = workspace.put(cast_slice(factor))?;
    }
    Ok(args)
}

/// Adds the profits in some scenarios.
fn run(
    workspace: &mut Workspace,
    mut args: PortfolioArgs,
    scenarios: &Scenarios,
    range: Range<u64>,
    profits: &mut Profits,
) -> Result<(), DeviceError> {
    let lanes = LANES as u64;
    args.first_group = range.start / lanes;
    let first = args.first_group * lanes;
    args.scenarios = range.end.div_ceil(lanes) * lanes - first;
    let count = args.scenarios as usize;
    let bytes = |rows: u64| rows as usize * count * NUMBER_BYTES;
    args.profit = workspace.room(bytes(args.positions))?;
    args.sum = workspace.room(bytes(args.books))?;
    match &scenarios.source {
        ShockSource::Drawn { .. } => {
            args.normal = workspace.room(bytes(args.assets))?;
            args.moves[0] = workspace.room(bytes(args.assets))?;
            let moves = scenarios.assets() * count;
            workspace.device.launch(&DRAW_NORMALS, bytes_of(&args), moves / 2)?;
            workspace.device.launch(&MOVE_SPOTS, bytes_of(&args), moves)?;
        }
        ShockSource::Given(columns) => {
            for (number, column) in columns.iter().enumerate().filter(|(_, column)| !column.is_empty()) {
                let still = f64::from(u8::from(number == 0));
                args.moves[number] = put_moves(workspace, scenarios, column, still, first as usize, count)?;
            }
        }
    }
    workspace.device.launch(&REVALUE_POSITIONS, bytes_of(&args), args.positions as usize * count)?;
    workspace.device.launch(&SUM_BOOKS, bytes_of(&args), count)?;
    let mut sums = vec![0.0; args.books as usize * count];
    workspace.device.download(args.sum, cast_slice_mut(&mut sums))?;
    let wanted = (range.start - first) as usize..(range.end - first) as usize;
    for (column, sums) in profits.columns.iter_mut().zip(sums.chunks_exact(count)) {
        column.extend_from_slice(&sums[wanted.clone()]);
    }
    Ok(())
}

/// Uploads a column of moves for some scenarios; scenarios after the last one have no moves.
fn put_moves(
    workspace: &mut Workspace,
    scenarios: &Scenarios,
    column: &[f64],
    still: f64,
    first: usize,
    count: usize,
) -> Result<Address, DeviceError> {
    let all = scenarios.len() as usize;
    let mut moves = vec![still; scenarios.assets() * count];
    let given = count.min(all - first);
    for (moves, column) in moves.chunks_exact_mut(count).zip(column.chunks_exact(all)) {
        moves[..given].copy_from_slice(&column[first..first + given]);
    }
    workspace.put(cast_slice(&moves))
}

/// Computes [`Covariance::sample`] on a device, with the same bits.
pub fn sample_on_device(
    device: &mut dyn Device,
    memory: &mut WorkMemory,
    assets: usize,
    returns: &[f64],
) -> Result<Result<Covariance, CovarianceError>, DeviceError> {
    match sample_sums(assets, returns) {
        Ok((_, divisor)) => covariance(device, memory, (assets, returns), true, 1.0, divisor),
        Err(error) => Ok(Err(error)),
    }
}

/// Computes [`Covariance::exponential`] on a device, with the same bits.
pub fn exponential_on_device(
    device: &mut dyn Device,
    memory: &mut WorkMemory,
    assets: usize,
    returns: &[f64],
    lambda: f64,
) -> Result<Result<Covariance, CovarianceError>, DeviceError> {
    match exponential_divisor(assets, returns, lambda) {
        Ok(divisor) => covariance(device, memory, (assets, returns), false, lambda, divisor),
        Err(error) => Ok(Err(error)),
    }
}

fn covariance(
    device: &mut dyn Device,
    memory: &mut WorkMemory,
    (assets, returns): (usize, &[f64]),
    is_centred: bool,
    decay: f64,
    divisor: f64,
) -> Result<Result<Covariance, CovarianceError>, DeviceError> {
    let mut values = vec![0.0; assets * assets];
    with_workspace(device, memory, |workspace| {
        let value = workspace.put(cast_slice(returns))?;
        let covariance = workspace.room(size_of_val(values.as_slice()))?;
        let times = (returns.len() / assets) as u64;
        let args = CovarianceArgs { assets: assets as u64, times, decay, divisor, value, covariance };
        if is_centred {
            workspace.device.launch(&CENTRE_RETURNS, bytes_of(&args), assets)?;
        }
        workspace.device.launch(&SUM_PRODUCTS, bytes_of(&args), values.len())?;
        workspace.device.download(covariance, cast_slice_mut(&mut values))
    })?;
    Ok(Covariance::of_values(assets, values))
}
