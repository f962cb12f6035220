//! Trading rules over recorded bars: 250 rules, a million bars.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warptape_kernels::Isa;
use warptape_kernels::sweep::{SweepBars, TradingRule, sweep};

const BARS: usize = 1_000_000;
const RULES: u32 = 250;
const COST: f64 = 1e-4;

/// Closes of a random walk, the same in every run.
fn closes() -> Vec<f64> {
    let (mut state, mut close) = (42_u64, 100.0_f64);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) - 0.5
    };
    (0..BARS)
        .map(|_| {
            close *= 1.0 + 0.002 * next();
            close
        })
        .collect()
}

fn rules(kind: &str) -> Vec<TradingRule> {
    let rule = |number: u32| match kind {
        "ema cross" => TradingRule::EmaCross { fast: 5 + number % 25, slow: 40 + 6 * (number / 25) },
        "rsi" => TradingRule::RsiReversion {
            length: 5 + number % 25,
            low: 20.0 + f64::from(number / 25),
            high: 80.0 - f64::from(number / 25),
        },
        "z-score" => TradingRule::ZScoreReversion {
            window: 10 + 4 * (number % 25),
            entry: 1.0 + 0.2 * f64::from(number / 25),
            exit: 0.5,
        },
        _ => TradingRule::BandBreakout {
            window: 10 + 4 * (number % 25),
            width: 1.0 + 0.2 * f64::from(number / 25),
        },
    };
    (0..RULES).map(rule).collect()
}

fn sweeps(criterion: &mut Criterion) {
    let mut bars = SweepBars::default();
    bars.push_symbol(&closes()).expect("closes are above 0");
    let mut group = criterion.benchmark_group("sweep");
    group.throughput(Throughput::Elements(BARS as u64 * u64::from(RULES)));
    for kind in ["ema cross", "rsi", "z-score", "band breakout"] {
        let rules = rules(kind);
        group.bench_function(kind, |bencher| {
            bencher.iter(|| sweep(Isa::detect(), &bars, &rules, COST).expect("the rules are good"));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = sweeps
}
criterion_main!(benches);
