//! Prices on one core: options in closed form with seven Greeks, implied volatilities, European options by a million paths, Asian
//! options of 252 fixings. Rivals are in Python, in the same run: `tests/benches/pricing.py`, which runs this.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AssetMarket, BLOCK_SAMPLES, BarrierKind, Contract, Greeks, OptionKind, Options, Precision, Simulation,
    SimulationSpec, implied_volatility,
};

const MARKET: AssetMarket = AssetMarket { spot: 100.0, rate: 0.03, dividend_yield: 0.01, volatility: 0.2 };
const OPTIONS: usize = 100_000;
const PATHS: u64 = 1_000_000;
const ASIAN_PATHS: u64 = 50_000;
const FIXINGS: u32 = 252;

fn isas() -> [(&'static str, Isa); 2] {
    [("fastest", Isa::detect()), ("baseline instructions", Isa::Baseline)]
}

fn closed_form(criterion: &mut Criterion) {
    let mut options = Options::default();
    for number in 0..OPTIONS {
        let part = number as f64 / OPTIONS as f64;
        let market = AssetMarket { volatility: 0.1 + 0.4 * part, ..MARKET };
        let kind = if number % 2 == 0 { OptionKind::Call } else { OptionKind::Put };
        options.push(kind, &market, 80.0 + 40.0 * part, 0.1 + 2.0 * part).expect("all in range");
    }
    let mut group = criterion.benchmark_group("closed form");
    group.throughput(Throughput::Elements(OPTIONS as u64));
    for (name, isa) in isas() {
        let mut greeks = Greeks::default();
        group.bench_function(format!("price and seven Greeks, {name}"), |bencher| {
            bencher.iter(|| {
                greeks.clear();
                greeks.add(isa, black_box(&options), 0..OPTIONS);
            });
        });
        let mut volatilities = Vec::new();
        group.bench_function(format!("implied volatility, {name}"), |bencher| {
            bencher.iter(|| {
                volatilities.clear();
                implied_volatility(isa, black_box(&options), 0..OPTIONS, greeks.price(), &mut volatilities);
            });
        });
    }
    group.finish();
}

fn monte_carlo(criterion: &mut Criterion) {
    let (kind, strike) = (OptionKind::Call, 100.0);
    let european = Contract::European { kind, strike };
    let asian = Contract::Asian { kind, strike };
    let barrier = Contract::Barrier { kind, strike, barrier_kind: BarrierKind::UpOut, barrier: 130.0 };
    let lookback = Contract::Lookback { kind, strike: None };
    for (name, contract, steps, paths) in [
        ("European", european, 1, PATHS),
        ("Asian", asian, FIXINGS, ASIAN_PATHS),
        ("barrier", barrier, 1, PATHS),
        ("lookback", lookback, 1, PATHS),
    ] {
        let mut group = criterion.benchmark_group(format!("{name}, {steps} steps"));
        group.sample_size(10).throughput(Throughput::Elements(paths * u64::from(steps)));
        for (precision_name, precision) in [("f64", Precision::F64), ("mixed", Precision::Mixed)] {
            for (isa_name, isa) in isas() {
                let spec = SimulationSpec {
                    market: MARKET,
                    contract,
                    expiry_years: 1.0,
                    steps,
                    antithetic: false,
                    precision,
                    key: 1,
                };
                let simulation = Simulation::new(spec).expect("all in range");
                let mut sums = Vec::new();
                group.bench_function(format!("{precision_name}, {isa_name}"), |bencher| {
                    bencher.iter(|| {
                        sums.clear();
                        simulation.run(isa, 0..paths.div_ceil(BLOCK_SAMPLES), &mut sums);
                        black_box(simulation.estimate(&sums))
                    });
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, closed_form, monte_carlo);
criterion_main!(benches);
