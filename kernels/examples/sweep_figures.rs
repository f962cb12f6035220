//! One sweep of one kind of rules, for `tests/benches/sweep.py`. It prints the time in seconds, then a line for each
//! rule.
//!
//! `sweep_figures CLOSES RULES REPETITIONS`: closes as little-endian `f64`, rules as lines of a kind and its
//! parameters.

use std::time::Instant;

use warptape_kernels::Isa;
use warptape_kernels::sweep::{SweepBars, TradingRule, sweep};

const COST: f64 = 1e-4;

fn rule(line: &str) -> TradingRule {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words[at].parse::<f64>().expect("a number");
    let window = |at: usize| number(at) as u32;
    match words[0] {
        "ema" => TradingRule::EmaCross { fast: window(1), slow: window(2) },
        "rsi" => TradingRule::RsiReversion { length: window(1), low: number(2), high: number(3) },
        "zscore" => TradingRule::ZScoreReversion { window: window(1), entry: number(2), exit: number(3) },
        "bands" => TradingRule::BandBreakout { window: window(1), width: number(2) },
        other => panic!("no such rule: {other}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [closes, rules, repetitions] = arguments.as_slice() else { panic!("CLOSES RULES REPETITIONS") };
    let bytes = std::fs::read(closes).expect("a file of closes");
    let closes = bytes.chunks_exact(8).map(|word| f64::from_le_bytes(word.try_into().expect("eight bytes")));
    let mut bars = SweepBars::default();
    bars.push_symbol(&closes.collect::<Vec<f64>>()).expect("closes are above 0");
    let text = std::fs::read_to_string(rules).expect("a file of rules");
    let rules: Vec<TradingRule> = text.lines().map(rule).collect();
    let (mut best_s, mut cells) = (f64::INFINITY, Vec::new());
    for _ in 0..repetitions.parse().expect("a number of repetitions") {
        let begun = Instant::now();
        cells = sweep(Isa::detect(), &bars, &rules, COST).expect("the rules are good");
        best_s = best_s.min(begun.elapsed().as_secs_f64());
    }
    println!("{best_s}");
    for cell in cells {
        println!("{:e} {:e} {:e} {}", cell.profit, cell.drawdown, cell.sharpe, cell.trades);
    }
}
