//! Prices computed on a device, with the bits of the host.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use super::american::AmericanSimulation;
use super::american_greeks::AmericanGreekSimulation;
use super::basket::BasketSimulation;
use super::basket_greeks::BasketGreekSimulation;
use super::black_scholes::{GREEK_COLUMNS, Greeks};
use super::bridge::{BridgePoint, bridge_points};
use super::draws::LANES;
use super::exercise::Continuation;
use super::greeks::{GreekSimulation, GreekSums};
use super::implied::{NoVolatility, volatility_of};
use super::options::Options;
use super::simulation::{Contract, Precision, Simulation, SimulationSpec};
use super::sums::BlockSums;
use super::terms::Terms;
use crate::device::{
    Address, Device, DeviceError, IMPLY_VOLATILITIES, Kernel, PRICE_OPTIONS, SIMULATE_AMERICAN_GREEKS,
    SIMULATE_AMERICANS, SIMULATE_BASKET_GREEKS, SIMULATE_BASKETS, SIMULATE_BLOCKS, SIMULATE_GREEKS,
    SUM_LANES, piece_bytes,
};
use crate::math::{Directions, PARAMETERS, Term};

const NUMBER_BYTES: usize = size_of::<f64>();
/// Most sums of blocks of baskets with Greeks in one launch; the sums of their lanes take 160 MiB.
const BASKET_SUMS_MAX: u64 = 1 << 16;

/// Arguments of the kernels of options in closed form: `OptionArgs` of `black_scholes.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ColumnArgs {
    count: u64,
    given: Address,
    found: Address,
}

/// Constants of a simulation: `Terms` of `payoffs.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct DeviceTerms {
    spot: DeviceTerm,
    drift: DeviceTerm,
    diffusion: DeviceTerm,
    barrier: DeviceTerm,
    factor: DeviceTerm,
    discount: DeviceTerm,
    strike: f64,
    sign: f64,
    steps_count: f64,
    untouched: f64,
    weights: [f64; 2],
    side: f64,
    mean: f64,
    gamma_slope: f64,
    is_floating: u64,
}

/// A value and its derivatives.
type DeviceTerm = [f64; 1 + PARAMETERS];

/// The source of the numbers of paths: `Source` of `draws.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct DeviceSource {
    key: u64,
    directions: Address,
    steps: u64,
    bridge: Address,
}

/// Tables that a kernel reads in addition to its arguments: directions of Sobol's points, points of a bridge, terms.
type Tables<'a> = (&'a [Directions], &'a [BridgePoint], &'a [f64]);

/// Arguments of `simulate_blocks` and `simulate_greeks`: `SimulationArgs` of `simulation.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct SimulationArgs {
    contract: u64,
    is_mixed: u64,
    is_antithetic: u64,
    source: DeviceSource,
    first_block: u64,
    blocks: u64,
    terms: DeviceTerms,
    bumped: [DeviceTerms; 2],
    inverse_width: f64,
    lanes: Address,
}

/// Arguments of `simulate_baskets` and `simulate_basket_greeks`: `BasketArgs` of `basket.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct BasketArgs {
    is_mixed: u64,
    is_antithetic: u64,
    assets: u64,
    source: DeviceSource,
    first_block: u64,
    blocks: u64,
    strike: f64,
    sign: f64,
    rate: f64,
    years: f64,
    terms: Address,
    lanes: Address,
}

/// Arguments of `simulate_americans` and `simulate_american_greeks`: `AmericanArgs` of `american.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct AmericanArgs {
    is_mixed: u64,
    is_antithetic: u64,
    source: DeviceSource,
    first_block: u64,
    blocks: u64,
    sign: f64,
    moneyness: DeviceTerm,
    drift: DeviceTerm,
    diffusion: DeviceTerm,
    bumped: [f64; 2],
    inverse_width: f64,
    step_rate: f64,
    step_years: f64,
    rule: Address,
    lanes: Address,
}

/// Arguments of `sum_lanes`: `SumArgs` of `sums.cu`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct SumArgs {
    count: u64,
    lanes: Address,
    sums: Address,
}

/// Memory of a device for prices. It grows as needed, is reused, and belongs to the device with which it was first
/// used.
#[derive(Debug, Default)]
pub struct DevicePricing {
    memory: Address,
    bytes: usize,
}

impl DevicePricing {
    /// Computes [`Greeks::add`].
    pub fn greeks(
        &mut self,
        device: &mut dyn Device,
        options: &Options,
        range: Range<usize>,
        greeks: &mut Greeks,
    ) -> Result<(), DeviceError> {
        let given = options.columns.each_ref().map(|column| &column[range.clone()]);
        self.greek_columns(device, &PRICE_OPTIONS, &given, greeks)
    }

    /// Adds the price and Greeks that a kernel computes from columns.
    pub(super) fn greek_columns(
        &mut self,
        device: &mut dyn Device,
        kernel: &Kernel,
        given: &[&[f64]],
        greeks: &mut Greeks,
    ) -> Result<(), DeviceError> {
        let found = self.columns(device, kernel, given, GREEK_COLUMNS)?;
        for (column, found) in
            greeks.columns.iter_mut().zip(found.chunks((found.len() / GREEK_COLUMNS).max(1)))
        {
            column.extend_from_slice(found);
        }
        Ok(())
    }

    /// Computes [`implied_volatility`](super::implied_volatility).
    pub fn implied_volatility(
        &mut self,
        device: &mut dyn Device,
        options: &Options,
        range: Range<usize>,
        prices: &[f64],
        out: &mut Vec<Result<f64, NoVolatility>>,
    ) -> Result<(), DeviceError> {
        assert_eq!(prices.len(), range.len(), "a price for each option");
        let given = options.columns.iter().map(|column| &column[range.clone()]).chain([prices]);
        let found = self.columns(device, &IMPLY_VOLATILITIES, &given.collect::<Vec<_>>(), 1)?;
        out.extend(found.into_iter().map(volatility_of));
        Ok(())
    }

    /// Computes [`Simulation::run`].
    pub fn simulate(
        &mut self,
        device: &mut dyn Device,
        simulation: &Simulation,
        blocks: Range<u64>,
        out: &mut Vec<BlockSums>,
    ) -> Result<(), DeviceError> {
        let args = arguments(simulation, &blocks);
        // A thread computes the paths that share a call of Philox.
        let words = if args.is_mixed == 1 { 1 } else { 2 };
        let (points, bridge) = points_of(simulation.spec());
        let tables = (&points[..], &bridge[..], &[][..]);
        self.sum_blocks(device, count_of(&blocks), tables, out, |device, lanes, [directions, bridge, _]| {
            let source = DeviceSource { directions, bridge, ..args.source };
            let args = SimulationArgs { source, lanes, ..args };
            let threads = args.blocks as usize * LANES * words / 4;
            device.launch(&SIMULATE_BLOCKS, bytemuck::bytes_of(&args), threads)
        })
    }

    /// Computes [`GreekSimulation::run`].
    pub fn simulate_greeks(
        &mut self,
        device: &mut dyn Device,
        simulation: &GreekSimulation,
        blocks: Range<u64>,
        out: &mut Vec<GreekSums>,
    ) -> Result<(), DeviceError> {
        let bumped = simulation.bumped();
        let args = arguments(simulation.simulation(), &blocks);
        let (points, bridge) = points_of(simulation.simulation().spec());
        let tables = (&points[..], &bridge[..], &[][..]);
        self.sum_blocks(device, count_of(&blocks), tables, out, |device, lanes, [directions, bridge, _]| {
            let args = SimulationArgs {
                source: DeviceSource { directions, bridge, ..args.source },
                bumped: [0, 1].map(|side: usize| DeviceTerms::new(&bumped.terms[side])),
                inverse_width: bumped.inverse_width,
                lanes,
                ..args
            };
            device.launch(&SIMULATE_GREEKS, bytemuck::bytes_of(&args), args.blocks as usize * LANES)
        })
    }

    /// Computes [`BasketSimulation::run`].
    pub fn simulate_basket(
        &mut self,
        device: &mut dyn Device,
        simulation: &BasketSimulation,
        blocks: Range<u64>,
        out: &mut Vec<BlockSums>,
    ) -> Result<(), DeviceError> {
        self.launch_basket(device, &SIMULATE_BASKETS, simulation, &[], 1, blocks, out)
    }

    /// Computes [`BasketGreekSimulation::run`].
    pub fn simulate_basket_greeks(
        &mut self,
        device: &mut dyn Device,
        greeks: &BasketGreekSimulation,
        blocks: Range<u64>,
        out: &mut Vec<BlockSums>,
    ) -> Result<(), DeviceError> {
        let (simulation, columns) = (greeks.simulation(), greeks.columns());
        let of_assets = bytemuck::cast_slice(greeks.assets());
        // Sums of lanes take much memory if there are many assets.
        let part = (BASKET_SUMS_MAX / columns as u64).max(1);
        for first in blocks.clone().step_by(part as usize) {
            let blocks = first..blocks.end.min(first + part);
            self.launch_basket(device, &SIMULATE_BASKET_GREEKS, simulation, of_assets, columns, blocks, out)?;
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "two kernels that differ in three of them")]
    fn launch_basket(
        &mut self,
        device: &mut dyn Device,
        kernel: &Kernel,
        simulation: &BasketSimulation,
        of_assets: &[f64],
        columns: usize,
        blocks: Range<u64>,
        out: &mut Vec<BlockSums>,
    ) -> Result<(), DeviceError> {
        let (spec, terms) = (simulation.spec(), simulation.terms());
        let table = [&terms.drifts[..], &terms.values, &terms.factors, of_assets].concat();
        let steps = spec.assets.len() as u32;
        let points = spec.sampling.directions(steps, 1);
        let count = count_of(&blocks) * columns;
        self.sum_blocks(
            device,
            count,
            (&points, &[], &table),
            out,
            |device, lanes, [directions, bridge, terms]| {
                let args = BasketArgs {
                    is_mixed: u64::from(spec.precision == Precision::Mixed),
                    is_antithetic: u64::from(spec.antithetic),
                    assets: u64::from(steps),
                    source: DeviceSource { key: spec.key, directions, steps: u64::from(steps), bridge },
                    first_block: blocks.start,
                    blocks: blocks.end - blocks.start,
                    strike: spec.strike,
                    sign: spec.kind.sign(),
                    rate: spec.rate,
                    years: spec.expiry_years,
                    terms,
                    lanes,
                };
                device.launch(kernel, bytemuck::bytes_of(&args), args.blocks as usize * LANES)
            },
        )
    }

    /// Computes [`AmericanSimulation::run`].
    pub fn simulate_american(
        &mut self,
        device: &mut dyn Device,
        simulation: &AmericanSimulation,
        blocks: Range<u64>,
        out: &mut Vec<BlockSums>,
    ) -> Result<(), DeviceError> {
        let args = american_arguments(simulation, &blocks);
        self.launch_american(device, &SIMULATE_AMERICANS, simulation, args, out)
    }

    /// Computes [`AmericanGreekSimulation::run`].
    pub fn simulate_american_greeks(
        &mut self,
        device: &mut dyn Device,
        greeks: &AmericanGreekSimulation,
        blocks: Range<u64>,
        out: &mut Vec<GreekSums>,
    ) -> Result<(), DeviceError> {
        let (bumped, inverse_width) = (greeks.bumped_moneyness(), greeks.inverse_width());
        let [step_rate, step_years] = greeks.steps();
        let args = american_arguments(greeks.simulation(), &blocks);
        let args = AmericanArgs { bumped, inverse_width, step_rate, step_years, ..args };
        self.launch_american(device, &SIMULATE_AMERICAN_GREEKS, greeks.simulation(), args, out)
    }

    fn launch_american<S: Pod>(
        &mut self,
        device: &mut dyn Device,
        kernel: &Kernel,
        simulation: &AmericanSimulation,
        args: AmericanArgs,
        out: &mut Vec<S>,
    ) -> Result<(), DeviceError> {
        let (spec, rule) = (simulation.spec(), simulation.rule());
        let dates = rule.discounts[1..].iter().zip(&rule.continuations);
        let table: Vec<f64> = dates
            .flat_map(|(discount, Continuation { least, value: [a, b, c, d] })| {
                [*discount, *least, *a, *b, *c, *d]
            })
            .collect();
        let (points, bridge) = points_of(&spec.european());
        let blocks = args.first_block..args.first_block + args.blocks;
        self.sum_blocks(
            device,
            count_of(&blocks),
            (&points, &bridge, &table),
            out,
            |device, lanes, [directions, bridge, rule]| {
                let mut args = args;
                (args.source.directions, args.source.bridge) = (directions, bridge);
                (args.rule, args.lanes) = (rule, lanes);
                device.launch(kernel, bytemuck::bytes_of(&args), args.blocks as usize * LANES)
            },
        )
    }

    /// Adds the sums of blocks. `launch` runs the kernel that writes the sums of each lane. It gets the addresses of
    /// the tables; an empty table has the address 0.
    fn sum_blocks<S: Pod>(
        &mut self,
        device: &mut dyn Device,
        sums_count: usize,
        (directions, bridge, terms): Tables<'_>,
        out: &mut Vec<S>,
        launch: impl FnOnce(&mut dyn Device, Address, [Address; 3]) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        if sums_count == 0 {
            return Ok(());
        }
        let count = sums_count * size_of::<S>() / NUMBER_BYTES;
        let tables: [&[u8]; 3] =
            [bytemuck::cast_slice(directions), bytemuck::cast_slice(bridge), bytemuck::cast_slice(terms)];
        let table_bytes: usize = tables.iter().map(|table| table.len()).sum();
        let lanes = self.room(device, count * (LANES + 1) * NUMBER_BYTES + table_bytes)?;
        let sums = lanes + (count * LANES * NUMBER_BYTES) as Address;
        let mut at = sums + (count * NUMBER_BYTES) as Address;
        let mut addresses = [0; 3];
        for (address, table) in addresses.iter_mut().zip(tables).filter(|(_, table)| !table.is_empty()) {
            device.staging(table.len())?.copy_from_slice(table);
            device.upload(at, table.len())?;
            *address = at;
            at += table.len() as Address;
        }
        launch(&mut *device, lanes, addresses)?;
        let args = SumArgs { count: count as u64, lanes, sums };
        device.launch(&SUM_LANES, bytemuck::bytes_of(&args), count)?;
        let before = out.len();
        out.resize(before + sums_count, S::zeroed());
        let downloaded = device.download(sums, bytemuck::cast_slice_mut(&mut out[before..]));
        if downloaded.is_err() {
            out.truncate(before);
        }
        downloaded
    }

    /// Allocated memory in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Frees the memory.
    pub fn release(&mut self, device: &mut dyn Device) -> Result<(), DeviceError> {
        if std::mem::take(&mut self.bytes) > 0 {
            device.free(self.memory)?;
        }
        Ok(())
    }

    /// Launches a kernel with one thread for each row of some columns of equal length. Returns the columns that it
    /// computes, one after the other.
    pub(super) fn columns(
        &mut self,
        device: &mut dyn Device,
        kernel: &Kernel,
        columns: &[&[f64]],
        columns_found: usize,
    ) -> Result<Vec<f64>, DeviceError> {
        let count = columns.first().map_or(0, |column| column.len());
        if count == 0 {
            return Ok(Vec::new());
        }
        let column_bytes = count * NUMBER_BYTES;
        let given_bytes = column_bytes * columns.len();
        let given = self.room(device, given_bytes + column_bytes * columns_found)?;
        let staging = device.staging(given_bytes)?;
        for (place, column) in staging.chunks_mut(column_bytes).zip(columns) {
            place.copy_from_slice(bytemuck::cast_slice(column));
        }
        device.upload(given, given_bytes)?;
        let args = ColumnArgs { count: count as u64, given, found: given + given_bytes as Address };
        device.launch(kernel, bytemuck::bytes_of(&args), count)?;
        let mut found = vec![0.0; count * columns_found];
        device.download(args.found, bytemuck::cast_slice_mut(&mut found))?;
        Ok(found)
    }

    fn room(&mut self, device: &mut dyn Device, bytes: usize) -> Result<Address, DeviceError> {
        if self.bytes < bytes {
            self.release(device)?;
            let bytes = piece_bytes(bytes);
            self.memory = device.allocate(bytes)?;
            self.bytes = bytes;
        }
        Ok(self.memory)
    }
}

fn count_of(blocks: &Range<u64>) -> usize {
    (blocks.end - blocks.start) as usize
}

fn points_of(spec: &SimulationSpec) -> (Vec<Directions>, Vec<BridgePoint>) {
    let directions = spec.sampling.directions(spec.steps, spec.numbers_of_step());
    let bridge = if spec.sampling.is_sobol() { bridge_points(spec.steps) } else { Vec::new() };
    (directions, bridge)
}

fn arguments(simulation: &Simulation, blocks: &Range<u64>) -> SimulationArgs {
    let spec = simulation.spec();
    let contract = match spec.contract {
        Contract::European { .. } => 0,
        Contract::Asian { .. } => 1,
        Contract::Barrier { .. } if simulation.knocks_in() => 4,
        Contract::Barrier { .. } => 2,
        Contract::Lookback { .. } => 3,
    };
    SimulationArgs {
        contract,
        is_mixed: u64::from(spec.precision == Precision::Mixed),
        is_antithetic: u64::from(spec.antithetic),
        source: DeviceSource { key: spec.key, directions: 0, steps: u64::from(spec.steps), bridge: 0 },
        first_block: blocks.start,
        blocks: blocks.end - blocks.start,
        terms: DeviceTerms::new(simulation.terms()),
        bumped: Zeroable::zeroed(),
        inverse_width: 0.0,
        lanes: 0,
    }
}

fn american_arguments(simulation: &AmericanSimulation, blocks: &Range<u64>) -> AmericanArgs {
    let (spec, terms) = (simulation.spec(), simulation.terms());
    AmericanArgs {
        is_mixed: u64::from(spec.precision == Precision::Mixed),
        is_antithetic: u64::from(spec.antithetic),
        source: DeviceSource { key: spec.key, directions: 0, steps: u64::from(spec.exercises), bridge: 0 },
        first_block: blocks.start,
        blocks: blocks.end - blocks.start,
        sign: terms.sign,
        moneyness: of(&terms.moneyness),
        drift: of(&terms.drift),
        diffusion: of(&terms.diffusion),
        bumped: [0.0; 2],
        inverse_width: 0.0,
        step_rate: 0.0,
        step_years: 0.0,
        rule: 0,
        lanes: 0,
    }
}

fn of(term: &Term) -> DeviceTerm {
    let [a, b, c, d] = term.by;
    [term.value, a, b, c, d]
}

impl DeviceTerms {
    fn new(terms: &Terms) -> Self {
        Self {
            spot: of(&terms.spot),
            drift: of(&terms.drift),
            diffusion: of(&terms.diffusion),
            barrier: of(&terms.barrier),
            factor: of(&terms.factor()),
            discount: of(&terms.discount),
            strike: terms.strike,
            sign: terms.sign,
            steps_count: terms.steps,
            untouched: terms.untouched,
            weights: terms.weights,
            side: terms.side,
            mean: terms.mean(),
            gamma_slope: terms.gamma_slope(),
            is_floating: u64::from(terms.is_floating),
        }
    }
}
