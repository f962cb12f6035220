//! Sweeps of trading rules. A unit is a block of rules over all bars: as many of one kind as the processor computes side by side.

use std::ops::Range;

use warptape_events::risk::{self, RiskError, RiskOutcome, SweepCell, SweepProblem, SweepResult};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError, WorkMemory};
use warptape_kernels::sweep::{
    CellResult, SweepBars, SweepError, TradingRule, blocks, sweep, sweep_on_device,
};

use super::{Partial, bad, check_count, cost};

/// Rules of a request at most: their cells have to fit into a record.
const RULES_MAX: usize = 20_000;
/// Bars of a request at most: lanes do a block of rules over all of them at once, and other requests wait meanwhile.
const BARS_MAX: usize = 2_000_000;
/// Bars of a unit of cost.
const COST_BARS: usize = 64;
/// Symbols of a request at most.
const SYMBOLS_MAX: usize = 10_000;

#[derive(Debug)]
pub(super) struct SweepTask {
    bars: SweepBars,
    rules: Vec<TradingRule>,
    /// The rules of each unit, by their numbers in the request.
    blocks: Vec<Vec<usize>>,
    cost: f64,
}

impl SweepTask {
    pub(super) fn new(problem: &SweepProblem) -> Result<Self, RiskError> {
        check_count("problem.rules", problem.rules.len(), 1..=RULES_MAX)?;
        check_count("problem.symbols", problem.symbols.len(), 1..=SYMBOLS_MAX)?;
        let mut bars = SweepBars::default();
        for (number, symbol) in problem.symbols.iter().enumerate() {
            let pushed = bars.push_symbol(&symbol.closes);
            pushed.map_err(|error| bad(format!("problem.symbols[{number}].closes"), error.to_string()))?;
        }
        check_count("problem.symbols.closes", bars.len(), 1..=BARS_MAX)?;
        for (number, rule) in problem.rules.iter().enumerate() {
            if let Some((field, bars)) = windows_of(rule).into_iter().flatten().find(|(_, bars)| *bars < 1) {
                let field = format!("problem.rules[{number}].{field}");
                return Err(bad(field, format!("{bars}; it must be from 1 on")));
            }
        }
        let rules: Vec<TradingRule> = problem.rules.iter().map(rule_of).collect();
        for (number, rule) in rules.iter().enumerate() {
            rule.check().map_err(|error| bad(rule_field(number, &error), error.to_string()))?;
        }
        if !(0.0..=1.0).contains(&problem.cost) {
            return Err(bad("problem.cost", format!("{}; it must be from 0 to 1", problem.cost)));
        }
        let blocks = blocks(&rules);
        Ok(Self { bars, rules, blocks, cost: problem.cost })
    }

    pub(super) fn units(&self) -> i64 {
        self.blocks.len() as i64
    }

    pub(super) fn bytes(&self) -> usize {
        self.bars.len() * size_of::<f64>() + self.rules.len() * size_of::<CellResult>()
    }

    pub(super) fn cost_ns(&self) -> u64 {
        cost::sweep(self.rules.len(), self.bars.len())
    }

    pub(super) fn unit_cost(&self) -> i64 {
        self.bars.len().div_ceil(COST_BARS) as i64
    }

    /// The rules of some units, one block after the other.
    fn rules_of(&self, units: Range<usize>) -> Vec<TradingRule> {
        self.blocks[units].iter().flatten().map(|&rule| self.rules[rule]).collect()
    }

    pub(super) fn run(&self, isa: Isa, range: Range<usize>) -> Partial {
        let cells = sweep(isa, &self.bars, &self.rules_of(range), self.cost);
        Partial::Cells(cells.expect(CHECKED))
    }

    pub(super) fn run_on_device(
        &self,
        device: &mut dyn Device,
        memory: &mut WorkMemory,
        range: Range<usize>,
    ) -> Result<Partial, DeviceError> {
        let cells = sweep_on_device(device, memory, &self.bars, &self.rules_of(range), self.cost)?;
        Ok(Partial::Cells(cells.expect(CHECKED)))
    }

    /// The cells of all units, in the order of the request's rules.
    pub(super) fn outcome(&self, partials: &[&Partial]) -> RiskOutcome {
        let mut rules = self.blocks.iter().flatten();
        let mut cells = Vec::with_capacity(self.rules.len());
        for partial in partials {
            let Partial::Cells(found) = partial else { continue };
            cells.extend(found.iter().zip(rules.by_ref()).map(|(cell, &rule)| (rule, of_cell(cell))));
        }
        cells.sort_unstable_by_key(|(rule, _)| *rule);
        RiskOutcome::Sweep(SweepResult { cells: cells.into_iter().map(|(_, cell)| cell).collect() })
    }
}

fn of_cell(cell: &CellResult) -> SweepCell {
    let CellResult { profit, drawdown, sharpe, trades } = *cell;
    SweepCell { profit, drawdown, sharpe, trades: trades as i64 }
}

const CHECKED: &str = "rules and cost were checked";

fn rule_field(number: usize, error: &SweepError) -> String {
    match error {
        SweepError::Window { field, .. } | SweepError::Threshold { field, .. } => {
            format!("problem.rules[{number}].{field}")
        }
        SweepError::Close { .. } => format!("problem.rules[{number}]"),
    }
}

/// The windows of a rule with their names.
fn windows_of(rule: &risk::TradingRule) -> [Option<(&'static str, i32)>; 2] {
    match rule {
        risk::TradingRule::EmaCross(rule) => [Some(("fast", rule.fast)), Some(("slow", rule.slow))],
        risk::TradingRule::RsiReversion(rule) => [Some(("length", rule.length)), None],
        risk::TradingRule::ZScoreReversion(rule) => [Some(("window", rule.window)), None],
        risk::TradingRule::BandBreakout(rule) => [Some(("window", rule.window)), None],
    }
}

fn rule_of(rule: &risk::TradingRule) -> TradingRule {
    // None is negative: that was checked.
    let bars = |bars: i32| bars as u32;
    match rule {
        risk::TradingRule::EmaCross(rule) => {
            TradingRule::EmaCross { fast: bars(rule.fast), slow: bars(rule.slow) }
        }
        risk::TradingRule::RsiReversion(rule) => {
            TradingRule::RsiReversion { length: bars(rule.length), low: rule.low, high: rule.high }
        }
        risk::TradingRule::ZScoreReversion(rule) => {
            TradingRule::ZScoreReversion { window: bars(rule.window), entry: rule.entry, exit: rule.exit }
        }
        risk::TradingRule::BandBreakout(rule) => {
            TradingRule::BandBreakout { window: bars(rule.window), width: rule.width }
        }
    }
}
