//! Kernels of devices against their twins in Rust: one test body for every device.

mod bars;
mod compiled;
mod cuda;
mod emulator;

use proptest::prelude::*;
use warptape_kernels::device::{
    ClosedBarsArgs, DETECT_SIGNALS, IndicatorArgs, IndicatorArrays, IndicatorConstants, KERNELS, Kernel,
    NONE, SignalArgs, UPDATE_INDICATORS, detected_kinds,
};
use warptape_kernels::{
    ClosedBars, Detected, INDICATORS, IndicatorColumns, IndicatorParams, IndicatorSlab, Isa, SignalKind,
    SignalParams, SignalSlab,
};

use crate::chain::short_params;
use crate::invariance::any_bars;
use emulator::Emulator;

const QUIET_E9: i64 = 5_000_000_000;

/// Something that runs kernels, with memory of its own.
trait Device {
    /// Copies values to new memory, and gives its address.
    fn upload<T: Copy>(&mut self, values: &[T]) -> u64;
    /// Copies values from where they were uploaded to.
    fn download<T: Copy + Default>(&mut self, address: u64, count: usize) -> Vec<T>;
    /// Runs a kernel with so many threads at least, and waits for it.
    fn launch<A>(&mut self, kernel: &Kernel, args: &A, threads: usize);
    /// Frees all memory.
    fn clear(&mut self);
}

/// What a bar came to: the bits of its indicators, and what was detected beside itself.
type Outcome = ([u64; INDICATORS], Vec<SignalKind>);

/// Numbers that are not available have one form.
fn bits(values: [f64; INDICATORS]) -> [u64; INDICATORS] {
    values.map(|value| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
}

/// Where a slot of the slab is on the device.
fn place(slot: usize, capacity: usize) -> usize {
    capacity - 1 - slot
}

/// State of slots on the host: the same whether a device or the host has moved it on.
struct State {
    indicators: IndicatorSlab,
    signals: SignalSlab,
}

impl State {
    fn new(params: &IndicatorParams, slots: usize) -> State {
        let mut state = State {
            indicators: IndicatorSlab::new(params.clone()),
            signals: SignalSlab::new(SignalParams::default()),
        };
        state.indicators.resize(slots);
        state.signals.resize(slots);
        state
    }

    fn run_on_host(&mut self, closed: &ClosedBars) -> Vec<Outcome> {
        let (mut columns, mut detected) = (IndicatorColumns::default(), Vec::new());
        self.indicators.update(Isa::Baseline, closed, &mut columns);
        self.signals.detect(closed, &columns, &mut detected);
        let kinds_of = |row: usize| {
            let others = |found: &&Detected| found.row as usize == row && found.kind != SignalKind::Bar;
            detected.iter().filter(others).map(|found| found.kind).collect()
        };
        (0..closed.len()).map(|row| (bits(columns.of_bar(row)), kinds_of(row))).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.indicators.write(&mut bytes);
        self.signals.write(&mut bytes);
        bytes
    }

    fn run_on<D: Device>(
        &mut self,
        device: &mut D,
        params: &IndicatorParams,
        slots: usize,
        closed: &ClosedBars,
    ) -> Vec<Outcome> {
        let (bars, capacity) = (closed.len(), slots + 3);
        // Each slot's bars as a list.
        let mut first = vec![NONE; slots];
        let mut last = vec![NONE; slots];
        let mut next = vec![NONE; bars];
        for bar in 0..bars {
            let slot = closed.slot[bar] as usize;
            match last[slot] {
                NONE => first[slot] = bar as u32,
                before => next[before as usize] = bar as u32,
            }
            last[slot] = bar as u32;
        }
        let at: Vec<u32> = (0..slots).map(|slot| place(slot, capacity) as u32).collect();
        let list = ClosedBarsArgs {
            slots: slots as u64,
            slot: device.upload(&at),
            first: device.upload(&first),
            next: device.upload(&next),
            high_e9: device.upload(&closed.high_e9),
            low_e9: device.upload(&closed.low_e9),
            close_e9: device.upload(&closed.close_e9),
            volume_e9: device.upload(&closed.volume_e9),
            notional_e18: device.upload(&closed.notional_e18),
        };

        let mut arrays = IndicatorArrays::new(params, capacity);
        for slot in 0..slots {
            arrays.scatter(place(slot, capacity), &self.indicators, slot);
        }
        let out = device.upload(&vec![f64::NAN; INDICATORS * bars]);
        let args = IndicatorArgs {
            bars: list,
            constants: IndicatorConstants::new(params),
            capacity: capacity as u64,
            numbers: device.upload(&arrays.numbers),
            closes: device.upload(&arrays.closes),
            squared_returns: device.upload(&arrays.squared_returns),
            weights: device.upload(&arrays.weights),
            out_capacity: bars as u64,
            out,
        };
        device.launch(&UPDATE_INDICATORS, &args, slots);
        arrays.numbers = device.download(args.numbers, arrays.numbers.len());
        arrays.closes = device.download(args.closes, arrays.closes.len());
        arrays.squared_returns = device.download(args.squared_returns, arrays.squared_returns.len());
        arrays.weights = device.download(args.weights, arrays.weights.len());
        for slot in 0..slots {
            arrays.gather(place(slot, capacity), &mut self.indicators, slot);
        }

        let thresholds = SignalParams::default();
        let mut zones = vec![0_u8; capacity];
        for (slot, packed) in self.signals.packed_zones().enumerate() {
            zones[place(slot, capacity)] = packed;
        }
        let args = SignalArgs {
            bars: list,
            rsi_upper: thresholds.rsi_upper,
            rsi_lower: thresholds.rsi_lower,
            zscore_threshold: thresholds.zscore_threshold,
            zones: device.upload(&zones),
            indicators_capacity: bars as u64,
            indicators: out,
            detected: device.upload(&vec![0_u8; bars]),
        };
        device.launch(&DETECT_SIGNALS, &args, slots);
        let zones: Vec<u8> = device.download(args.zones, capacity);
        for slot in 0..slots {
            self.signals.set_packed_zones(slot, zones[place(slot, capacity)]);
        }

        let values: Vec<f64> = device.download(out, INDICATORS * bars);
        let detected: Vec<u8> = device.download(args.detected, bars);
        device.clear();
        let of_bar = |bar: usize| std::array::from_fn(|indicator| values[indicator * bars + bar]);
        (0..bars).map(|bar| (bits(of_bar(bar)), detected_kinds(detected[bar]).collect())).collect()
    }
}

/// Bars go through the kernels of a device and through their twins, in two parts; says what differs first.
fn compare<D: Device>(
    device: &mut D,
    params: &IndicatorParams,
    seed: u64,
    slots: u32,
    bars: usize,
) -> Result<(), String> {
    let slots_count = slots as usize;
    let (mut host, mut other) = (State::new(params, slots_count), State::new(params, slots_count));
    for part in 0..2 {
        let mut closed = any_bars(seed ^ part, slots, bars);
        if seed % 2 == part {
            // A quiet market: nothing deviates, and numbers are on their lines.
            for column in [&mut closed.high_e9, &mut closed.low_e9, &mut closed.close_e9] {
                column.fill(QUIET_E9);
            }
        }
        let expected = host.run_on_host(&closed);
        let found = other.run_on(device, params, slots_count, &closed);
        for (bar, (expected, found)) in expected.iter().zip(&found).enumerate() {
            if expected != found {
                return Err(format!("part {part}, bar {bar}: expected {expected:x?}, found {found:x?}"));
            }
        }
        if host.bytes() != other.bytes() {
            return Err(format!("part {part}: the state differs"));
        }
    }
    Ok(())
}

/// Random cases, so many, of all kernels.
fn check<D: Device>(device: D, cases: u32) {
    let device = std::cell::RefCell::new(device);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let inputs = (any::<u64>(), 1..30_u32, 1..700_usize, any::<bool>());
    let result = runner.run(&inputs, |(seed, slots, bars, short)| {
        let params = if short { short_params() } else { IndicatorParams::default() };
        let device = &mut *device.borrow_mut();
        let compared = compare(device, &params, seed, slots, bars);
        compared.and_then(|()| bars::compare(device, seed, slots, 3 * bars)).map_err(TestCaseError::fail)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn emulated_kernels_give_the_bits_of_their_twins() {
    check(Emulator::new(), 200);
}

/// A text of a source, and one with another meaning.
const FAULTS: [(&str, &str, &str); 16] = [
    ("bars.cu", "bool fits = later.notional_e18 <=", "bool fits = 0 <="),
    ("bars.cu", "later.low_e9 < bar.low_e9", "later.low_e9 > bar.low_e9"),
    ("bars.cu", "later.close_time_ns >= bar.close_time_ns", "later.close_time_ns > bar.close_time_ns"),
    ("bars.cu", "later.open_time_ns < bar.open_time_ns", "later.open_time_ns <= bar.open_time_ns"),
    ("bars.cu", "dividend % divisor < 0 ? quotient - 1 : quotient", "quotient"),
    ("bars.cu", "open[bar] = open[bar - 1]", "open[bar] = open[bar]"),
    ("bars.cu", "if (end_ns > watermark_ns) break;", "if (end_ns >= watermark_ns) break;"),
    ("bars.cu", "args.quote_row[quote] > row", "args.quote_row[quote] > row + 9"),
    ("indicators.cu", "value % 4", "value % 2"),
    ("indicators.cu", "% WRAPS_PER_SUM == WRAPS_PER_SUM - 1", "% WRAPS_PER_SUM == 0"),
    ("indicators.cu", "(input - state) * period.alpha", "input * period.alpha - state * period.alpha"),
    ("indicators.cu", "(close - anchor) - mean_distance", "close - (anchor + mean_distance)"),
    ("indicators.cu", "anchor = close;", ""),
    ("ln.cuh", "0.39999999999414676", "0.39999999999"),
    ("signals.cu", "before != ZONE_NONE && ", ""),
    ("signals.cu", "value < lower", "value <= lower"),
];

#[test]
fn a_fault_in_a_kernel_is_found() {
    for (file, from, to) in FAULTS {
        assert!(KERNELS.iter().any(|kernel| kernel.program().contains(from)), "{file}: {from}");
        let mut device = Emulator::with(from, to);
        let differs = |seed| match file {
            "bars.cu" => bars::compare(&mut device, seed, 5, 900).is_err(),
            _ => compare(&mut device, &short_params(), seed, 7, 600).is_err(),
        };
        let found = (0..40).any(differs);
        assert!(found, "nobody notices {to:?} for {from:?} in {file}");
    }
}
