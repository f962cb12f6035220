//! Speed of pricing on a device, compared with the limits of the device. The device and the processor must give the
//! same results.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use warptape_cuda::{CudaDevices, Score, inventory};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, Devices, Kernel, PRICE_OPTIONS, SIMULATE_BLOCKS};
use warptape_kernels::pricing::{
    AssetMarket, BLOCK_SAMPLES, Contract, DevicePricing, Greeks, OptionKind, Options, Precision, Sampling,
    Simulation, SimulationSpec,
};
use warptape_tests::devices::{EMULATOR, Intercepted};

/// Number of values of an option: kind, spot, strike, years, rate, yield and volatility, and then price and seven
/// Greeks.
const OPTION_NUMBERS: usize = 7 + 8;
/// Number of fixings of the Asian option.
const FIXINGS: u32 = 252;
/// Number of `f64` operations per step of the Asian option, by the formulas of `math` and `payoffs`. A uniform number
/// takes 2, its quantile in the middle 35, the move 2, `exp(x) - 1` 35, and two sums 2. Each operation may be a
/// multiply-add.
const STEP_OPERATIONS: f64 = 76.0;
/// Number of runs; the first one only warms up.
const RUNS: usize = 4;

/// Times of launches, in microseconds.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Vec<f64>>>);

impl Times {
    /// Returns a device that records the time of each launch of a kernel.
    fn of(&self, mut device: Box<dyn Device>, timed: &Kernel) -> Intercepted {
        let probe = device.allocate(8).expect("there is memory");
        let (times, timed) = (self.clone(), timed.function);
        Intercepted::launches(device, move |device, kernel, args, threads| {
            if kernel.function != timed {
                return device.launch(kernel, args, threads);
            }
            device.download(probe, &mut [0; 8])?;
            let begun = Instant::now();
            device.launch(kernel, args, threads)?;
            device.download(probe, &mut [0; 8])?;
            times.0.lock().expect("nobody panics").push(begun.elapsed().as_nanos() as f64 / 1e3);
            Ok(())
        })
    }

    /// Returns the median time of the launches so far, except the first, in microseconds.
    fn median_us(&self) -> f64 {
        let mut times_us = self.0.lock().expect("nobody panics")[1..].to_vec();
        times_us.sort_by(f64::total_cmp);
        times_us[times_us.len() / 2]
    }
}

const MARKET: AssetMarket = AssetMarket { spot: 100.0, rate: 0.03, dividend_yield: 0.01, volatility: 0.2 };

/// Prints a kernel's time, and its share of the device's limit.
fn print(name: &str, found_us: f64, floor_us: Option<f64>) {
    println!("figure {name} {found_us:.1} us");
    if let Some(floor_us) = floor_us {
        println!("figure {name}_floor {floor_us:.1} us");
        println!("figure {name}_share_of_floor {:.3} of_1", floor_us / found_us);
    }
}

/// Measures `options` options in closed form, and `blocks` blocks of paths of an Asian option. Prints `figure NAME
/// VALUE UNIT` for each figure.
fn measure(devices: &dyn Devices, options: usize, blocks: u64, score: Option<Score>) {
    let open = || devices.open("cuda:0").expect("a device");
    let mut given = Options::default();
    for number in 0..options {
        let strike = 60.0 + (number % 800) as f64 / 10.0;
        let kind = if number % 2 == 0 { OptionKind::Call } else { OptionKind::Put };
        given.push(kind, &MARKET, strike, 0.1 + (number % 7) as f64 / 4.0).expect("in range");
    }
    let times = Times::default();
    let (mut device, mut pricing) = (times.of(open(), &PRICE_OPTIONS), DevicePricing::default());
    let mut found = Greeks::default();
    for _ in 0..RUNS {
        found = Greeks::default();
        pricing.greeks(&mut device, &given, 0..options, &mut found).expect("the device works");
    }
    let mut expected = Greeks::default();
    expected.add(Isa::detect(), &given, 0..options);
    assert!(found == expected, "both give the same Greeks");
    // A copied byte counts twice, because it is read and written.
    let bytes = (options * OPTION_NUMBERS * size_of::<f64>()) as f64;
    let floor_us = score.map(|score| bytes / (2.0 * score.copy_gb_s * 1e3));
    print(&format!("greeks_of_{options}_options"), times.median_us(), floor_us);

    let spec = SimulationSpec {
        market: MARKET,
        contract: Contract::Asian { kind: OptionKind::Call, strike: 100.0 },
        expiry_years: 1.0,
        steps: FIXINGS,
        antithetic: false,
        sampling: Sampling::Random,
        precision: Precision::F64,
        key: 1,
    };
    let simulation = Simulation::new(spec).expect("in range");
    let times = Times::default();
    let (mut device, mut pricing) = (times.of(open(), &SIMULATE_BLOCKS), DevicePricing::default());
    let mut found = Vec::new();
    for _ in 0..RUNS {
        found.clear();
        pricing.simulate(&mut device, &simulation, 0..blocks, &mut found).expect("the device works");
    }
    let mut expected = Vec::new();
    simulation.run(Isa::detect(), 0..blocks, &mut expected);
    assert!(found == expected, "both give the same sums");
    let paths = blocks * BLOCK_SAMPLES;
    let operations = paths as f64 * f64::from(FIXINGS) * STEP_OPERATIONS;
    // A multiply-add counts as two operations.
    let floor_us = score.map(|score| 2.0 * operations / (score.f64_gflop_s * 1e3));
    print(&format!("asian_{paths}_paths_of_{FIXINGS}"), times.median_us(), floor_us);
}

#[test]
fn figures_are_of_equal_prices() {
    measure(EMULATOR.as_ref(), 100, 2, None);
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn figures_of_a_gpu() {
    let devices = CudaDevices::new(None);
    let score = inventory().usable().first().map(|gpu| devices.score(gpu).expect("it can be measured"));
    measure(&devices, 10_000_000, 1_000_000_u64.div_ceil(BLOCK_SAMPLES), score);
}
