//! A sweep on a device: `sweep.cu` beside the host's loops.

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};

use super::{CellResult, SweepBars, SweepError, SymbolSums, TradingRule, check};
use crate::device::{Address, Device, DeviceError, SWEEP_RULES};

/// As `TradingRule` of `sweep.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct DeviceRule {
    kind: u64,
    windows: [u64; 2],
    limits: [f64; 2],
}

impl From<&TradingRule> for DeviceRule {
    fn from(rule: &TradingRule) -> Self {
        let (kind, windows, limits) = match *rule {
            TradingRule::EmaCross { fast, slow } => (0, [fast, slow], [0.0; 2]),
            TradingRule::RsiReversion { length, low, high } => (1, [length, 0], [low, high]),
            TradingRule::ZScoreReversion { window, entry, exit } => {
                (2, [window, 0], [entry * entry, exit * exit])
            }
            TradingRule::BandBreakout { window, width } => (3, [window, 0], [width * width, 0.0]),
        };
        Self { kind, windows: windows.map(u64::from), limits }
    }
}

/// As `SweepArgs` of `sweep.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct SweepArgs {
    rules: u64,
    symbols: u64,
    rule: Address,
    close: Address,
    change: Address,
    end: Address,
    sums: Address,
    cost: f64,
}

/// What [`super::sweep`] computes, with the same bits, on a device. Its memory is given back.
pub fn sweep_on_device(
    device: &mut dyn Device,
    bars: &SweepBars,
    rules: &[TradingRule],
    cost: f64,
) -> Result<Result<Vec<CellResult>, SweepError>, DeviceError> {
    if let Err(error) = check(rules, cost) {
        return Ok(Err(error));
    }
    let symbols = bars.ends.len();
    let mut sums = vec![SymbolSums::default(); symbols * rules.len()];
    if !sums.is_empty() {
        let mut memory = Vec::new();
        let swept = run(device, bars, rules, cost, &mut memory, &mut sums);
        // There may not have been enough, which is no failure of the device.
        memory.into_iter().try_for_each(|address| device.free(address))?;
        swept?;
    }
    let of_rule = |rule: usize| -> Vec<SymbolSums> {
        (0..symbols).map(|symbol| sums[symbol * rules.len() + rule]).collect()
    };
    let cells = (0..rules.len()).map(|rule| CellResult::of_symbols(&of_rule(rule), bars.len()));
    Ok(Ok(cells.collect()))
}

/// Computes the sums, in memory that is the caller's to free.
fn run(
    device: &mut dyn Device,
    bars: &SweepBars,
    rules: &[TradingRule],
    cost: f64,
    memory: &mut Vec<Address>,
    sums: &mut [SymbolSums],
) -> Result<(), DeviceError> {
    let of_rules: Vec<DeviceRule> = rules.iter().map(DeviceRule::from).collect();
    let ends: Vec<u64> = bars.ends.iter().map(|&end| end as u64).collect();
    let rule = put(device, memory, cast_slice(&of_rules))?;
    let close = put(device, memory, cast_slice(&bars.close))?;
    let change = put(device, memory, cast_slice(&bars.change))?;
    let end = put(device, memory, cast_slice(&ends))?;
    let at = device.allocate(size_of_val(sums))?;
    memory.push(at);
    let counts = [rules.len() as u64, bars.ends.len() as u64];
    let args = SweepArgs { rules: counts[0], symbols: counts[1], rule, close, change, end, sums: at, cost };
    device.launch(&SWEEP_RULES, bytes_of(&args), sums.len())?;
    device.download(at, cast_slice_mut(sums))
}

/// New memory of the device with these bytes, which is noted.
fn put(device: &mut dyn Device, memory: &mut Vec<Address>, bytes: &[u8]) -> Result<Address, DeviceError> {
    let address = device.allocate(bytes.len().max(1))?;
    memory.push(address);
    device.staging(bytes.len())?[..bytes.len()].copy_from_slice(bytes);
    device.upload(address, bytes.len())?;
    Ok(address)
}
