//! Speed of lanes on a device, compared with a lane on the processor. Both must give the same signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use crossbeam_channel::bounded;

use warptape_cuda::{CudaDevices, LaunchFigures, inventory};
use warptape_kernels::device::{Device, DeviceError, DeviceSlab, Devices, GroupRows, SlabConfig};
use warptape_kernels::pricing::{
    AssetMarket, Contract, DevicePricing, OptionKind, Precision, Sampling, Simulation, SimulationSpec,
};
use warptape_stages::{
    DeviceGroups, GroupInput, GroupOutput, GroupStage, Isa, Rows, SlotSymbol, StageConfig,
};
use warptape_tests::devices::EMULATOR;
use warptape_tests::engine_run;
use warptape_tests::random::Random;

/// Size of a trade that is sent to a device, in bytes.
const TRADE_BYTES: usize = 2 * size_of::<u32>() + 3 * size_of::<i64>();

/// Sizes of the measurement.
struct Plan {
    symbols: usize,
    /// Numbers of ticks per batch, ascending.
    batch_ticks: Vec<usize>,
    /// Number of batches of each size; the first third only warms up.
    batches: usize,
    /// Number of ticks of the batch that is already on the device.
    resident_ticks: usize,
}

fn config() -> StageConfig {
    engine_run::stage_config(&["1s", "1m"])
}

/// Trades of all symbols in turn, at `TRADES_PER_SECOND` trades per symbol.
struct Market {
    symbols: usize,
    random: Random,
    ticks: usize,
}

impl Market {
    fn new(symbols: usize) -> Market {
        Market { symbols, random: Random::new(7), ticks: 0 }
    }

    fn next(&mut self, ticks: usize) -> GroupInput {
        const SECOND_NS: i64 = 1_000_000_000;
        /// Number of trades per second of each symbol.
        const TRADES_PER_SECOND: usize = 100;
        let mut rows = Rows::default();
        let symbol = |number: usize| SlotSymbol {
            number: number as u32,
            name: format!("X:{number}"),
            price_scale: 9,
            seen_since_ns: 0,
            offset: 0,
            state: None,
        };
        let symbols = if self.ticks == 0 { (0..self.symbols).map(symbol).collect() } else { Vec::new() };
        for _ in 0..ticks {
            let offset = self.ticks as i64;
            let ticks_per_second = TRADES_PER_SECOND * self.symbols;
            let time_ns = offset * SECOND_NS / ticks_per_second as i64;
            if self.ticks.is_multiple_of(ticks_per_second) {
                rows.push_watermark(time_ns - 2 * SECOND_NS, offset, 0);
            }
            let slot = (self.ticks % self.symbols) as u32;
            let price_e9 = 100_000_000_000 + self.random.between(-1_000_000_000, 1_000_000_000);
            let size_e9 = self.random.between(1, 5_000_000_000);
            rows.push_trade(slot, time_ns, price_e9, size_e9, offset, 1);
            self.ticks += 1;
        }
        GroupInput { symbols, rows: Arc::new(rows), repacks: Vec::new() }
    }
}

fn median(times_us: Vec<f64>) -> f64 {
    quantile(&times_us, 0.5)
}

/// Returns the quantile `share` of the times, in microseconds.
fn quantile(times_us: &[f64], share: f64) -> f64 {
    let mut sorted = times_us.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() as f64 * share) as usize]
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed().as_nanos() as f64 / 1e3)
}

/// Returns the median times of a batch on the device and on the processor, in microseconds. They are measured from rows
/// to signals in the host's memory.
fn batch_us(devices: &dyn Devices, plan: &Plan, ticks: usize) -> [f64; 2] {
    let mut market = Market::new(plan.symbols);
    let device = devices.open("cuda:0").expect("a device");
    let mut groups = DeviceGroups::new("cuda:0", device, &config()).expect("there is memory");
    groups.install(0, Box::new(GroupStage::new(&config(), Isa::detect()))).expect("there is memory");
    let mut stage = GroupStage::new(&config(), Isa::detect());
    let (mut device_us, mut host_us) = (Vec::new(), Vec::new());
    for batch in 0..plan.batches {
        // The first batch contains all symbols.
        let input = market.next(if batch == 0 { ticks.max(plan.symbols) } else { ticks });
        let inputs = vec![(0, input.clone())];
        let (found, on_device_us) = timed(|| groups.run(inputs).expect("the device works"));
        let mut expected = GroupOutput::default();
        let ((), on_host_us) = timed(|| stage.run(input, &mut expected));
        assert!(found[0].signals == expected.signals, "both give the same signals");
        if batch >= plan.batches / 3 {
            device_us.push(on_device_us);
            host_us.push(on_host_us);
        }
    }
    [median(device_us), median(host_us)]
}

/// Returns the median time of a batch that is already on the device, in microseconds, until its bars are in the host's
/// memory.
fn resident_us(devices: &dyn Devices, plan: &Plan) -> f64 {
    let StageConfig { bars, allowed_lateness_ns, indicators, signals, .. } = config();
    let config = SlabConfig { bars, allowed_lateness_ns, indicators, signals };
    let device = devices.open("cuda:0").expect("a device");
    let mut slab = DeviceSlab::new("cuda:0", device, config, plan.symbols).expect("there is memory");
    let slots = slab.take_slots(plan.symbols).expect("there is memory");
    let mut market = Market::new(plan.symbols);
    let mut times_us = Vec::new();
    for _ in 0..plan.batches {
        let input = market.next(plan.resident_ticks);
        let rows = GroupRows { slots: &slots, rows: &input.rows, range: 0..input.rows.len() };
        let staged = slab.stage(&[rows]).expect("the device works");
        slab.wait().expect("the device works");
        times_us.push(timed(|| slab.run(&staged).expect("the device works")).1);
    }
    median(times_us)
}

/// Prints `figure NAME VALUE UNIT` for each figure.
fn measure(devices: &dyn Devices, plan: &Plan, copy_gb_s: Option<f64>) {
    let symbols = plan.symbols;
    let mut break_even = None;
    for &ticks in &plan.batch_ticks {
        let [device_us, host_us] = batch_us(devices, plan, ticks);
        println!("figure batch_of_{ticks}_over_{symbols}_symbols {device_us:.1} us");
        println!("figure batch_of_{ticks}_on_one_cpu_lane {host_us:.1} us");
        if device_us <= host_us {
            break_even = break_even.or(Some(ticks));
        } else {
            break_even = None;
        }
    }
    match break_even {
        Some(ticks) => println!("figure break_even {ticks} ticks"),
        None => println!("a lane on the processor is faster with every batch"),
    }
    let resident_us = resident_us(devices, plan);
    let bytes = TRADE_BYTES * plan.resident_ticks * config().bars.len();
    println!("figure resident_{}_ticks {resident_us:.1} us", plan.resident_ticks);
    if let Some(copy_gb_s) = copy_gb_s {
        // Every bar specification reads all trades. A copied byte counts twice, because it is read and written.
        let floor_us = bytes as f64 / (2.0 * copy_gb_s * 1e3);
        println!("figure resident_floor {floor_us:.1} us");
        println!("figure resident_share_of_floor {:.3} of_1", floor_us / resident_us);
    }
}

#[test]
fn figures_are_of_equal_work() {
    let plan = Plan { symbols: 50, batch_ticks: vec![64, 500], batches: 6, resident_ticks: 1_000 };
    measure(EMULATOR.as_ref(), &plan, None);
    measure_beside(EMULATOR.as_ref(), &BesidePlan { symbols: 50, ticks: 100, batches: 6, slice_blocks: 1 });
}

/// Sizes of the measurement with slices: ticks per batch, number of batches, and blocks of paths per slice.
struct BesidePlan {
    symbols: usize,
    ticks: usize,
    batches: usize,
    slice_blocks: u64,
}

/// Returns an Asian option with 252 fixings.
fn simulation() -> Simulation {
    let spec = SimulationSpec {
        market: AssetMarket { spot: 100.0, rate: 0.03, dividend_yield: 0.01, volatility: 0.2 },
        contract: Contract::Asian { kind: OptionKind::Call, strike: 100.0 },
        expiry_years: 1.0,
        steps: 252,
        antithetic: false,
        sampling: Sampling::Random,
        precision: Precision::F64,
        key: 1,
    };
    Simulation::new(spec).expect("in range")
}

/// Runs some slices one after another, and more until `stop` is set. Calls `done` after each one. Returns the slices'
/// times, in microseconds.
fn run_slices(device: &mut dyn Device, blocks: u64, stop: &AtomicBool, done: impl Fn()) -> Vec<f64> {
    const SLICES_MIN: usize = 3;
    let (simulation, mut pricing) = (simulation(), DevicePricing::default());
    let (mut expected, mut times_us) = (Vec::new(), Vec::new());
    simulation.run(Isa::detect(), 0..blocks, &mut expected);
    while times_us.len() < SLICES_MIN || !stop.load(Ordering::Relaxed) {
        let mut found = Vec::new();
        let slice =
            || pricing.simulate(device, &simulation, 0..blocks, &mut found).expect("the device works");
        times_us.push(timed(slice).1);
        assert!(found == expected, "slices give what the processor gives");
        done();
    }
    times_us
}

/// Prints the times of batches, first alone, and then beside slices that run one after another on the device's
/// background stream.
fn measure_beside(devices: &dyn Devices, plan: &BesidePlan) {
    let mut device = devices.open("cuda:0").expect("a device");
    let mut background = device.background().expect("another stream");
    let mut groups = DeviceGroups::new("cuda:0", device, &config()).expect("there is memory");
    groups.install(0, Box::new(GroupStage::new(&config(), Isa::detect()))).expect("there is memory");
    let mut stage = GroupStage::new(&config(), Isa::detect());
    let mut market = Market::new(plan.symbols);
    let mut run = |batches: usize| -> Vec<f64> {
        let mut times_us = Vec::new();
        for _ in 0..batches {
            let input = market.next(plan.ticks);
            let inputs = vec![(0, input.clone())];
            let (found, batch_us) = timed(|| groups.run(inputs).expect("the device works"));
            let mut expected = GroupOutput::default();
            stage.run(input, &mut expected);
            assert!(found[0].signals == expected.signals, "both give the same signals");
            times_us.push(batch_us);
        }
        times_us
    };
    // These batches introduce the symbols, and warm up.
    run(plan.symbols.div_ceil(plan.ticks) + plan.batches / 10);
    let alone_us = run(plan.batches);
    let slices_alone_us = run_slices(background.as_mut(), plan.slice_blocks, &AtomicBool::new(true), || ());
    let (stop, (began, begun)) = (AtomicBool::new(false), bounded(1));
    let (beside_us, slices_us) = thread::scope(|scope| {
        let (background, stop) = (background.as_mut(), &stop);
        // The thread owns the sender that reports the first finished slice.
        let slices = scope.spawn(move || {
            run_slices(background, plan.slice_blocks, stop, || {
                let _ = began.try_send(());
            })
        });
        begun.recv().expect("slices are done");
        let beside_us = run(plan.batches);
        stop.store(true, Ordering::Relaxed);
        (beside_us, slices.join().expect("slices are right"))
    });
    let ticks = plan.ticks;
    for (name, times_us) in [("alone", alone_us), ("beside_risk", beside_us)] {
        for (percentile, share) in [(50, 0.5), (99, 0.99)] {
            let found_us = quantile(&times_us, share);
            println!("figure batch_of_{ticks}_{name}_p{percentile} {found_us:.1} us");
        }
    }
    println!("figure slice_alone {:.1} us", median(slices_alone_us));
    println!("figure slice_beside_batches_of_{ticks} {:.1} us", median(slices_us));
}

/// Prints the costs of launches and copies on the first GPU, or the reason why they cannot be measured.
fn measure_launches(devices: &CudaDevices) -> Option<LaunchFigures> {
    match devices.launch_figures("cuda:0", 0) {
        Ok(figures) => {
            println!("figure launch_to_launch {:.2} us", figures.gap_us);
            println!("figure launches_of_a_batch {:.2} us", figures.sequence_us);
            println!("figure launches_of_a_batch_as_a_graph {:.2} us", figures.graph_us);
            println!("figure copies_beside_kernels {:.3} of_1", figures.overlap);
            Some(figures)
        }
        Err(error) => {
            println!("launches are not measured: {error}");
            None
        }
    }
}

#[test]
fn launches_are_measured_or_it_is_said_why_not() {
    match CudaDevices::new(None).launch_figures("cuda:0", 0) {
        Ok(figures) => assert!(figures.gap_us > 0.0 && figures.graph_us > 0.0),
        Err(error) => assert!(matches!(error, DeviceError::Unavailable { .. }), "{error}"),
    }
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn figures_of_a_gpu() {
    let devices = CudaDevices::new(None);
    measure_launches(&devices).expect("a GPU");
    let plan = Plan {
        symbols: 10_000,
        batch_ticks: vec![256, 1_024, 4_096, 16_384, 64_000, 262_144],
        batches: 60,
        resident_ticks: 1_000_000,
    };
    let score = inventory().usable().first().map(|gpu| devices.score(gpu).expect("it can be measured"));
    measure(&devices, &plan, score.map(|score| score.copy_gb_s));
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn figures_of_a_gpu_beside_risk() {
    let devices = CudaDevices::new(None);
    for ticks in [1_024, 64_000] {
        // The blocks of a slice keep any GPU busy for some milliseconds.
        let plan = BesidePlan { symbols: 10_000, ticks, batches: 1_000, slice_blocks: 2_048 };
        measure_beside(&devices, &plan);
    }
}
