//! Prices on one core: options in closed form with seven Greeks, implied volatilities, European options by a million
//! paths, and Asian options of 252 fixings. The libraries for comparison are in Python: `tests/benches/pricing.py` runs
//! this program with `--compare`, and requests one figure at a time.

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group};
use warptape_kernels::Isa;
use warptape_kernels::pricing::{
    AssetMarket, BarrierKind, Contract, Greeks, OptionKind, Options, Precision, Sampling, Simulation,
    SimulationSpec, implied_volatility,
};

const MARKET: AssetMarket = AssetMarket { spot: 100.0, rate: 0.03, dividend_yield: 0.01, volatility: 0.2 };
const OPTIONS: usize = 100_000;
const PATHS: u64 = 1_000_000;
const ASIAN_PATHS: u64 = 50_000;
const COMPARED_ASIAN_PATHS: u64 = 20_000;
/// Greatest number of options of a request.
const CALL_OPTIONS: usize = 10_000;
const REPEATS: usize = 10;
const FIXINGS: u32 = 252;

fn isas() -> [(&'static str, Isa); 2] {
    [("fastest", Isa::detect()), ("baseline instructions", Isa::Baseline)]
}

fn options() -> Options {
    let mut options = Options::default();
    for number in 0..OPTIONS {
        let part = number as f64 / OPTIONS as f64;
        let market = AssetMarket { volatility: 0.1 + 0.4 * part, ..MARKET };
        let kind = if number % 2 == 0 { OptionKind::Call } else { OptionKind::Put };
        options.push(kind, &market, 80.0 + 40.0 * part, 0.1 + 2.0 * part).expect("all in range");
    }
    options
}

fn closed_form(criterion: &mut Criterion) {
    let options = options();
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

fn simulation(contract: Contract, steps: u32, precision: Precision, key: u64) -> Simulation {
    let spec = SimulationSpec {
        market: MARKET,
        contract,
        expiry_years: f64::from(FIXINGS) / 365.0,
        steps,
        antithetic: false,
        sampling: Sampling::Random,
        precision,
        key,
    };
    Simulation::new(spec).expect("all in range")
}

const EUROPEAN: Contract = Contract::European { kind: OptionKind::Call, strike: 100.0 };
const ASIAN: Contract = Contract::Asian { kind: OptionKind::Call, strike: 100.0 };

fn monte_carlo(criterion: &mut Criterion) {
    let (kind, strike) = (OptionKind::Call, 100.0);
    let barrier = Contract::Barrier { kind, strike, barrier_kind: BarrierKind::UpOut, barrier: 130.0 };
    let lookback = Contract::Lookback { kind, strike: None };
    for (name, contract, steps, paths) in [
        ("European", EUROPEAN, 1, PATHS),
        ("Asian", ASIAN, FIXINGS, ASIAN_PATHS),
        ("barrier", barrier, 1, PATHS),
        ("lookback", lookback, 1, PATHS),
    ] {
        let mut group = criterion.benchmark_group(format!("{name}, {steps} steps"));
        group.sample_size(10).throughput(Throughput::Elements(paths * u64::from(steps)));
        for (precision_name, precision) in [("f64", Precision::F64), ("mixed", Precision::Mixed)] {
            for (isa_name, isa) in isas() {
                let simulation = simulation(contract, steps, precision, 1);
                let mut sums = Vec::new();
                group.bench_function(format!("{precision_name}, {isa_name}"), |bencher| {
                    bencher.iter(|| {
                        sums.clear();
                        simulation.run(isa, 0..Simulation::blocks_of(paths), &mut sums);
                        black_box(simulation.estimate(&sums))
                    });
                });
            }
        }
        group.finish();
    }
}

/// Answers requests from standard input, one name and seed per line, with seconds and results.
fn compare() {
    let options = options();
    let isa = Isa::detect();
    let simulated = |contract, steps, precision, paths, key| {
        let estimate = {
            let simulation = simulation(contract, steps, precision, key);
            let mut sums = Vec::new();
            simulation.run(isa, 0..Simulation::blocks_of(paths), &mut sums);
            simulation.estimate(&sums)
        };
        vec![estimate.price, estimate.standard_error]
    };
    let mut greeks = Greeks::default();
    for line in std::io::stdin().lines() {
        let line = line.expect("a line of text");
        let (name, seed) = line.split_once(' ').expect("a name and a seed");
        let key = seed.parse().expect("a seed is a number");
        let start = Instant::now();
        let result = match name {
            "european-f64" => simulated(EUROPEAN, 1, Precision::F64, PATHS, key),
            "european-mixed" => simulated(EUROPEAN, 1, Precision::Mixed, PATHS, key),
            "asian-f64" => simulated(ASIAN, FIXINGS, Precision::F64, COMPARED_ASIAN_PATHS, key),
            "asian-mixed" => simulated(ASIAN, FIXINGS, Precision::Mixed, COMPARED_ASIAN_PATHS, key),
            _ => {
                let call_options = if name == "greeks" { OPTIONS } else { CALL_OPTIONS };
                for first in (0..REPEATS).flat_map(|_| (0..OPTIONS).step_by(call_options)) {
                    greeks.clear();
                    greeks.add(isa, black_box(&options), first..first + call_options);
                }
                Vec::new()
            }
        };
        let seconds = start.elapsed().as_secs_f64();
        let result = if result.is_empty() {
            greeks.clear();
            greeks.add(isa, &options, 0..OPTIONS);
            sums_of(&greeks)
        } else {
            result
        };
        println!("{{\"seconds\": {seconds}, \"result\": {result:?}}}");
    }
}

/// Sums of prices and five Greeks.
fn sums_of(greeks: &Greeks) -> Vec<f64> {
    let columns =
        [greeks.price(), greeks.delta(), greeks.gamma(), greeks.vega(), greeks.theta(), greeks.rho()];
    columns.map(|column| column.iter().sum()).to_vec()
}

criterion_group!(benches, closed_form, monte_carlo);

fn main() {
    if std::env::args().any(|argument| argument == "--compare") {
        return compare();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
