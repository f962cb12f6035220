//! Sweeps of trading rules. A unit is a block of rules of one kind over all bars: as many as the processor computes
//! side by side.

use std::ops::Range;

use warptape_events::risk::{self, Asset, RiskError, RiskOutcome, SweepCell, SweepProblem, SweepResult};
use warptape_kernels::Isa;
use warptape_kernels::device::{BLOCK_THREADS, Device, DeviceError};
use warptape_kernels::sweep::{
    CellResult, SweepBars, SweepError, TradingRule, blocks, sweep, sweep_on_device,
};

use super::assets::Resolved;
use super::rounds::{DeviceRisk, Next, Partial, Plan, ProblemKind, Round, places};
use super::{bad, check_count, cost};

/// Most rules of a request: their cells have to fit into a record.
const RULES_MAX: usize = 20_000;
/// Most bars of a request: lanes run a block of rules over all of them at once, and other requests wait meanwhile.
const BARS_MAX: usize = 2_000_000;
/// Bars of a unit of cost.
const COST_BARS: usize = 64;
/// Most symbols of a request.
const SYMBOLS_MAX: usize = 10_000;

impl ProblemKind for SweepProblem {
    fn assets(&self) -> &[Asset] {
        &[]
    }

    fn plan(&self, _: &Resolved, _: i64) -> Result<Plan, RiskError> {
        let round = SweepRound::new(self)?;
        let bytes = round.bars.len() * size_of::<f64>() + round.rules.len() * size_of::<CellResult>();
        let cost_ns = cost::sweep(round.rules.len(), round.bars.len());
        Ok(Plan { first: Box::new(round), bytes, cost_ns })
    }
}

#[derive(Debug)]
struct SweepRound {
    bars: SweepBars,
    rules: Vec<TradingRule>,
    /// The rules of each unit, by their numbers in the request.
    blocks: Vec<Vec<usize>>,
    cost: f64,
}

impl SweepRound {
    fn new(problem: &SweepProblem) -> Result<Self, RiskError> {
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

    /// The rules of some units, block by block.
    fn rules_of(&self, units: Range<i64>) -> Vec<TradingRule> {
        self.blocks[places(units)].iter().flatten().map(|&rule| self.rules[rule]).collect()
    }
}

impl Round for SweepRound {
    fn units(&self) -> i64 {
        self.blocks.len() as i64
    }

    fn rate_key(&self) -> String {
        "sweep".to_owned()
    }

    fn unit_cost(&self) -> i64 {
        self.bars.len().div_ceil(COST_BARS) as i64
    }

    /// A thread of the kernel tries a rule on the bars of a symbol.
    fn unit_width(&self) -> usize {
        let rules = self.blocks.iter().map(Vec::len).max().unwrap_or(1);
        (rules * self.bars.symbol_count()).div_ceil(BLOCK_THREADS)
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let cells = sweep(isa, &self.bars, &self.rules_of(units), self.cost);
        Partial::Cells(cells.expect(CHECKED))
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let rules = self.rules_of(units);
        let cells = sweep_on_device(device, &mut memory.work, &self.bars, &rules, self.cost)?;
        Ok(Partial::Cells(cells.expect(CHECKED)))
    }

    /// The cells of all units, in the order of the request's rules.
    fn finish(&self, partials: &[&Partial]) -> Next {
        let mut rules = self.blocks.iter().flatten();
        let mut cells = Vec::with_capacity(self.rules.len());
        for partial in partials {
            let Partial::Cells(found) = partial else { continue };
            cells.extend(found.iter().zip(rules.by_ref()).map(|(cell, &rule)| (rule, of_cell(cell))));
        }
        cells.sort_unstable_by_key(|(rule, _)| *rule);
        let cells = cells.into_iter().map(|(_, cell)| cell).collect();
        Next::Outcome(RiskOutcome::Sweep(SweepResult { cells }))
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
    // Windows were checked not to be negative.
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
