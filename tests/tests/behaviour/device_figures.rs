//! How fast lanes on a device are beside one on the processor; both must give the same signals.

use std::sync::Arc;
use std::time::Instant;

use warptape_cuda::{CudaDevices, LaunchFigures, inventory};
use warptape_kernels::device::{DeviceError, DeviceSlab, Devices, GroupRows, SlabConfig};
use warptape_stages::{
    DeviceGroups, GroupInput, GroupOutput, GroupStage, Isa, Rows, SlotSymbol, StageConfig,
};
use warptape_tests::devices::EMULATOR;
use warptape_tests::engine_run;
use warptape_tests::random::Random;

/// Bytes that a trade takes on its way to a device.
const TRADE_BYTES: usize = 2 * size_of::<u32>() + 3 * size_of::<i64>();

/// What is measured.
struct Plan {
    symbols: usize,
    /// Ticks of the batches, from the smallest on.
    batch_ticks: Vec<usize>,
    /// Batches of each size, of which the first third warms up.
    batches: usize,
    /// Ticks of one batch that is on the device already.
    resident_ticks: usize,
}

fn config() -> StageConfig {
    engine_run::stage_config(&["1s", "1m"])
}

/// Trades of all symbols in turn, whose time goes on by a second each `symbols` trades.
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
        /// Of each symbol.
        const TRADES_PER_SECOND: usize = 100;
        let mut rows = Rows::default();
        let symbol =
            |number: usize| SlotSymbol { number: number as u32, name: format!("X:{number}"), offset: 0 };
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
        GroupInput { symbols, rows: Arc::new(rows) }
    }
}

fn median(mut times_us: Vec<f64>) -> f64 {
    times_us.sort_by(f64::total_cmp);
    times_us[times_us.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let result = work();
    (result, started.elapsed().as_nanos() as f64 / 1e3)
}

/// Medians of a batch on the device and on the processor, in microseconds: from rows to signals in the host's memory.
fn batch_us(devices: &dyn Devices, plan: &Plan, ticks: usize) -> [f64; 2] {
    let mut market = Market::new(plan.symbols);
    let device = devices.open("cuda:0").expect("a device");
    let mut groups = DeviceGroups::new("cuda:0", device, &config()).expect("there is memory");
    groups.install(0, Box::new(GroupStage::new(&config(), Isa::detect()))).expect("there is memory");
    let mut stage = GroupStage::new(&config(), Isa::detect());
    let (mut device_us, mut host_us) = (Vec::new(), Vec::new());
    for batch in 0..plan.batches {
        // The first batch brings all symbols.
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

/// Median of a batch that is on the device already, in microseconds, until its bars are in the host's memory.
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
        // Every specification reads all trades; a byte that is copied is read and written.
        let floor_us = bytes as f64 / (2.0 * copy_gb_s * 1e3);
        println!("figure resident_floor {floor_us:.1} us");
        println!("figure resident_share_of_floor {:.3} of_1", floor_us / resident_us);
    }
}

#[test]
fn figures_are_of_equal_work() {
    let plan = Plan { symbols: 50, batch_ticks: vec![64, 500], batches: 6, resident_ticks: 1_000 };
    measure(EMULATOR.as_ref(), &plan, None);
}

/// Prints what launches and copies cost on the first GPU, or in one line why that cannot be said.
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
