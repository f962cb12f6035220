//! A sweep with the crate vector-ta, which computes indicators for many parameters at once. A loop over the indicators
//! computes positions and profits. Arguments and output are like those of `sweep_figures`, for the rules `ema` and
//! `rsi` of a grid. Run it with RAYON_NUM_THREADS=1.

use std::time::Instant;

use vector_ta::indicators::moving_averages::ema::{EmaBatchRange, ema_batch_with_kernel};
use vector_ta::indicators::rsi::{RsiBatchRange, rsi_batch_with_kernel};
use vector_ta::utilities::enums::Kernel;

const COST: f64 = 1e-4;

struct Cell {
    profit: f64,
    drawdown: f64,
    sharpe: f64,
    trades: u64,
}

/// Returns the results of a rule. `target` computes each position from the bar and the previous position.
fn account(changes: &[f64], target: impl Fn(usize, f64) -> f64) -> Cell {
    let (mut position, mut profit, mut squares, mut peak, mut drawdown) = (0.0_f64, 0.0, 0.0, 0.0_f64, 0.0_f64);
    let mut trades = 0;
    for (bar, change) in changes.iter().enumerate() {
        let next = target(bar, position);
        let traded = (next - position).abs();
        let earned = position * change - COST * traded;
        profit += earned;
        squares += earned * earned;
        peak = peak.max(profit);
        drawdown = drawdown.max(peak - profit);
        trades += u64::from(traded > 0.0 && next != 0.0);
        position = next;
    }
    let bars = changes.len() as f64;
    let mean = profit / bars;
    let variance = squares / bars - mean * mean;
    Cell { profit, drawdown, sharpe: if variance > 0.0 { mean / variance.sqrt() } else { 0.0 }, trades }
}

/// Returns the least and the greatest of a grid's values and their distance. The values must be evenly spaced.
fn range(values: impl Iterator<Item = usize>) -> (usize, usize, usize) {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values.dedup();
    (values[0], values[values.len() - 1], values.get(1).map_or(1, |second| second - values[0]))
}

/// Returns the values of one window, from the values of a whole range.
fn row(values: &[f64], bars: usize, (from, _, step): (usize, usize, usize), window: f64) -> &[f64] {
    &values[(window as usize - from) / step * bars..][..bars]
}

fn sweep(closes: &[f64], changes: &[f64], rules: &[Vec<f64>], kind: &str) -> Vec<Cell> {
    let bars = closes.len();
    let first = range(rules.iter().map(|rule| rule[0] as usize));
    if kind == "rsi" {
        let found = rsi_batch_with_kernel(closes, &RsiBatchRange { period: first }, Kernel::Auto);
        let found = found.expect("good lengths");
        let of_rule = |rule: &Vec<f64>| {
            let index = row(&found.values, bars, first, rule[0]);
            account(changes, |bar, position| match index[bar] {
                value if value < rule[1] => 1.0,
                value if value > rule[2] => -1.0,
                _ => position,
            })
        };
        return rules.iter().map(of_rule).collect();
    }
    let second = range(rules.iter().map(|rule| rule[1] as usize));
    let of = |period| ema_batch_with_kernel(closes, &EmaBatchRange { period }, Kernel::Auto).expect("good lengths");
    let (fast, slow) = (of(first), of(second));
    let of_rule = |rule: &Vec<f64>| {
        let fast = row(&fast.values, bars, first, rule[0]);
        let slow = row(&slow.values, bars, second, rule[1]);
        account(changes, |bar, position| {
            let difference = fast[bar] - slow[bar];
            if difference > 0.0 {
                1.0
            } else if difference < 0.0 {
                -1.0
            } else {
                position
            }
        })
    };
    rules.iter().map(of_rule).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [closes, rules, repetitions] = arguments.as_slice() else { panic!("CLOSES RULES REPETITIONS") };
    let bytes = std::fs::read(closes).expect("a file of closes");
    let closes: Vec<f64> =
        bytes.chunks_exact(8).map(|word| f64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
    let earned = closes.windows(2).map(|pair| (pair[1] - pair[0]) / pair[0]);
    let changes: Vec<f64> = [0.0].into_iter().chain(earned).collect();
    let text = std::fs::read_to_string(rules).expect("a file of rules");
    let kind = text.split(' ').next().expect("a kind of rules").to_owned();
    let numbers = |line: &str| line.split(' ').skip(1).map(|word| word.parse().expect("a number")).collect();
    let rules: Vec<Vec<f64>> = text.lines().map(numbers).collect();
    let (mut best_s, mut cells) = (f64::INFINITY, Vec::new());
    for _ in 0..repetitions.parse().expect("a number of repetitions") {
        let begun = Instant::now();
        cells = sweep(&closes, &changes, &rules, &kind);
        best_s = best_s.min(begun.elapsed().as_secs_f64());
    }
    println!("{best_s}");
    for cell in cells {
        println!("{:e} {:e} {:e} {}", cell.profit, cell.drawdown, cell.sharpe, cell.trades);
    }
}
