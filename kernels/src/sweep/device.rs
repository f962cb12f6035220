//! A sweep on a device, with `sweep.cu`, the twin of the host's loops.

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};

use super::{CellResult, SweepBars, SweepError, SymbolSums, TradingRule, check};
use crate::device::{Address, Device, DeviceError, SWEEP_RULES, WorkMemory, Workspace, with_workspace};

/// A rule: `TradingRule` of `sweep.cu`.
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

/// Arguments of `sweep_rules`: `SweepArgs` of `sweep.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct SweepArgs {
    rules: u64,
    symbols: u64,
    rule: Address,
    close: Address,
    change: Address,
    end: Address,
    scale: Address,
    sums: Address,
    cost: f64,
}

/// Computes [`super::sweep`] on a device, with the same bits.
pub fn sweep_on_device(
    device: &mut dyn Device,
    memory: &mut WorkMemory,
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
        with_workspace(device, memory, |workspace| run(workspace, bars, rules, cost, &mut sums))?;
    }
    let of_rule = |rule: usize| -> Vec<SymbolSums> {
        (0..symbols).map(|symbol| sums[symbol * rules.len() + rule]).collect()
    };
    let cells = (0..rules.len()).map(|rule| CellResult::of_symbols(&of_rule(rule), bars.len()));
    Ok(Ok(cells.collect()))
}

fn run(
    workspace: &mut Workspace,
    bars: &SweepBars,
    rules: &[TradingRule],
    cost: f64,
    sums: &mut [SymbolSums],
) -> Result<(), DeviceError> {
    let of_rules: Vec<DeviceRule> = rules.iter().map(DeviceRule::from).collect();
    let ends: Vec<u64> = bars.ends.iter().map(|&end| end as u64).collect();
    let rule = workspace.put(cast_slice(&of_rules))?;
    // All slices of a sweep have the same bars.
    let close = workspace.put_shared(&bars.close)?;
    let change = workspace.put_shared(&bars.change)?;
    let end = workspace.put(cast_slice(&ends))?;
    let scale = workspace.put(cast_slice(&bars.scales))?;
    let at = workspace.room(size_of_val(sums))?;
    let [rules, symbols] = [rules.len() as u64, bars.ends.len() as u64];
    let args = SweepArgs { rules, symbols, rule, close, change, end, scale, sums: at, cost };
    workspace.device.launch(&SWEEP_RULES, bytes_of(&args), sums.len())?;
    workspace.device.download(at, cast_slice_mut(sums))
}
