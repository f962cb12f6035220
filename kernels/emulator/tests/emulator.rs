//! Tests of `emulator.h`'s guarantees for kernels, with small kernels.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};
use warptape_emulator::Emulator;
use warptape_kernels::device::{CudaSource, Device, Kernel};

/// Number of launches, enough for all block sizes in all orders more than once.
const LAUNCHES: usize = 60;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Args {
    count: u64,
    values: u64,
    out: u64,
}

const fn kernel(function: &'static str) -> Kernel {
    let source = CudaSource { name: "small.cu", text: include_str!("small.cu") };
    Kernel { function, args: "warptape::Args", source }
}

const SUM: Kernel = kernel("sum_before");
const NEIGHBOURS: Kernel = kernel("neighbours");
const EXCHANGE: Kernel = kernel("exchange");
const ATOMICS: Kernel = kernel("atomics");
const PRODUCTS: Kernel = kernel("products");
const TICKETS: Kernel = kernel("tickets");
const COPY: Kernel = kernel("copy");
const SMALL: [Kernel; 7] = [SUM, NEIGHBOURS, EXCHANGE, ATOMICS, PRODUCTS, TICKETS, COPY];

/// A device with values, and room for a kernel's results.
struct Bench {
    device: Box<dyn Device>,
    args: Args,
}

impl Bench {
    fn new(emulator: &Emulator, values: &[u64]) -> Self {
        let mut device: Box<dyn Device> = Box::new(emulator.device(usize::MAX));
        let bytes = size_of_val(values);
        let at = device.allocate(bytes).unwrap();
        let out = device.allocate(64 * bytes).unwrap();
        device.staging(bytes).unwrap().copy_from_slice(cast_slice(values));
        device.upload(at, bytes).unwrap();
        Self { device, args: Args { count: values.len() as u64, values: at, out } }
    }

    /// The results of a launch, in zeroed memory.
    fn launch(&mut self, kernel: &Kernel, out: usize) -> Vec<u64> {
        self.device.clear(self.args.out, 8 * out).unwrap();
        self.device.launch(kernel, bytes_of(&self.args), self.args.count as usize).unwrap();
        let mut found = vec![0; out];
        self.device.download(self.args.out, cast_slice_mut(&mut found)).unwrap();
        found
    }
}

fn values(count: u64) -> Vec<u64> {
    (0..count).map(|value| value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).collect()
}

/// A barrier of `sum_before`.
const BARRIER: &str = "__syncthreads();  // Sums of warps are there.";

/// Number of launches in which a kernel gives a wrong result.
fn wrong(emulator: &Emulator, kernel: &Kernel, values: &[u64], expected: &[u64]) -> usize {
    let mut bench = Bench::new(emulator, values);
    (0..LAUNCHES).filter(|_| bench.launch(kernel, expected.len()) != expected).count()
}

/// For each value, the sum of the values before it in its block.
fn sums_before(values: &[u64], block: usize) -> Vec<u64> {
    (0..values.len()).map(|at| values[at - at % block..at].iter().sum()).collect()
}

/// Number of launches in which sums of sums are wrong.
fn wrong_sums(emulator: &Emulator, values: &[u64]) -> usize {
    let mut bench = Bench::new(emulator, values);
    let is_wrong = |found: Vec<u64>| {
        let block = found[values.len()] as usize;
        found[..values.len()] != sums_before(&sums_before(values, block), block)
    };
    (0..LAUNCHES).filter(|_| is_wrong(bench.launch(&SUM, values.len() + 1))).count()
}

#[test]
fn a_barrier_orders_threads_and_without_it_that_shows() {
    let emulator = Emulator::of(&SMALL);
    let values = values(500);
    assert_eq!(wrong_sums(&emulator, &values), 0);
    for barrier in [BARRIER, "__syncthreads();  // And were read."] {
        let without = wrong_sums(&emulator.with(barrier, ""), &values);
        println!("{barrier}: {without} of {LAUNCHES} launches are wrong without it");
        assert!(0 < without && without < LAUNCHES, "{without} of {LAUNCHES}");
    }
    let values = &values[..480];
    let next = |at: usize| values[if at % 32 == 31 { at - 31 } else { at + 1 }];
    let neighbours: Vec<u64> = (0..480).map(next).collect();
    assert_eq!(wrong(&emulator, &NEIGHBOURS, values, &neighbours), 0);
    assert!(wrong(&emulator.with("__syncwarp();", ""), &NEIGHBOURS, values, &neighbours) > 0);
}

/// The expected results of `exchange` for a lane, in its order.
fn exchanged(values: &[u64], at: usize) -> [u64; 9] {
    let (warp, lane) = (&values[at - at % 32..][..32], at % 32);
    let odd = |value: &u64| value % 2;
    let ballot = |picked: &dyn Fn(usize) -> bool| {
        (0..32).filter(|&lane| picked(lane)).fold(0, |ballot, lane| ballot | odd(&warp[lane]) << lane)
    };
    [
        warp[5],
        warp[lane - lane % 8 + 3],
        if lane >= 3 { warp[lane - 3] } else { warp[lane] },
        if lane % 16 >= 2 { warp[lane - 2] } else { warp[lane] },
        if lane + 7 < 32 { warp[lane + 7] } else { warp[lane] },
        if lane % 4 + 1 < 4 { warp[lane + 1] } else { warp[lane] },
        warp[lane ^ 9],
        ballot(&|_| true),
        ballot(&|other| (other < 16) == (lane < 16)),
    ]
}

#[test]
fn threads_of_a_warp_tell_each_other() {
    let emulator = Emulator::of(&SMALL);
    let values = values(512);
    let expected: Vec<u64> = (0..512).flat_map(|at| exchanged(&values, at)).collect();
    assert_eq!(wrong(&emulator, &EXCHANGE, &values, &expected), 0);
    for (from, to) in
        [("value, 5)", "value, 6)"), ("value, 9)", "value, 8)"), ("value, 2u, 16)", "value, 2u)")]
    {
        assert_eq!(wrong(&emulator.with(from, to), &EXCHANGE, &values, &expected), LAUNCHES, "{to}");
    }
}

#[test]
fn atomics_lose_nothing_and_integers_have_128_bits() {
    let emulator = Emulator::of(&SMALL);
    let values = values(40_000);
    let (sum, max): (u64, u64) = (values.iter().sum(), *values.iter().max().unwrap());
    assert_eq!(wrong(&emulator, &ATOMICS, &values, &[sum, max, max.wrapping_neg(), sum, 1, 1]), 0);
    let product = |value: &u64| {
        let product = i128::from(*value) * -0x1234_5678_9abc_def0_1234 / 3;
        [product as u64, (product >> 64) as u64]
    };
    let products: Vec<u64> = values.iter().flat_map(product).collect();
    assert_eq!(wrong(&emulator, &PRODUCTS, &values, &products), 0);
}

#[test]
fn threads_start_in_several_orders() {
    let emulator = Emulator::of(&SMALL);
    let mut bench = Bench::new(&emulator, &values(1_000));
    let mut orders: Vec<Vec<u64>> = (0..LAUNCHES).map(|_| bench.launch(&TICKETS, 1_001)).collect();
    // Threads beyond the end may take numbers as well.
    orders.iter_mut().for_each(|order| order.truncate(1_000));
    assert!(orders.contains(&(0..1_000).collect()), "forwards");
    orders.sort();
    orders.dedup();
    // Blocks of 32, 64 and 128 threads, backwards and interleaved, one at a time or several.
    assert!(orders.len() >= 6, "{} orders", orders.len());
}

/// The message of the first launch that fails, with a kernel's text replaced.
fn failure(from: &str, to: &str) -> String {
    let emulator = Emulator::of(&SMALL).with(from, to);
    let mut bench = Bench::new(&emulator, &values(128));
    let launches = AssertUnwindSafe(|| (0..LAUNCHES).for_each(|_| drop(bench.launch(&SUM, 129))));
    let failed = catch_unwind(launches).expect_err("it is no kernel");
    failed.downcast_ref::<String>().expect("a text").clone()
}

#[test]
fn a_wait_without_end_is_a_failure_that_says_who_waits() {
    const CALL: &str = "u64 sums = sum_of_block_before";
    let said = failure(CALL, "if (threadIdx.x == 3) { return; } u64 sums = sum_of_block_before");
    assert_eq!(said, "sum_before: thread 0 of block 0 waits at __shfl_up_sync for thread 3, which has ended");
    let said = failure(CALL, "if (threadIdx.x / 32 == 1) { return; } u64 sums = sum_of_block_before");
    assert!(said.contains("waits at __syncthreads for thread 32, which has ended"), "{said}");
    let said = failure(BARRIER, "if (threadIdx.x == 9) __syncwarp(); else __syncthreads();");
    assert!(said.contains("waits at __syncthreads for thread 9, which waits at __syncwarp"), "{said}");
    let said = failure(BARRIER, "if (threadIdx.x < 7) __syncwarp(0x80u);");
    assert_eq!(said, "sum_before: __syncwarp is called in lane 6, which its mask does not name");
    let said = failure(
        "__shfl_up_sync(ALL, sum, delta)",
        "(threadIdx.x == 20 ? sum : __shfl_up_sync(ALL, sum, delta))",
    );
    assert!(said.contains("waits at __shfl_up_sync for thread 20, which"), "{said}");
    let said = failure("__shfl_up_sync(ALL, sum, delta)", "__shfl_sync(1u << threadIdx.x % 32, sum, 2)");
    assert!(said.contains("__shfl_sync reads from lane 2, which its mask does not name"), "{said}");
}

#[test]
fn an_upload_comes_before_kernels_that_read_elsewhere() {
    let emulator = Emulator::of(&SMALL);
    let words = values(640);
    let mut device = emulator.device(usize::MAX);
    let out = device.allocate(64 * 64).unwrap();
    let places = [device.allocate(64).unwrap(), device.allocate(64).unwrap()];
    // Each group of eight words as the kernel saw it; the next words are uploaded before the kernel is waited for.
    let mut seen = |place: &dyn Fn(usize) -> u64| -> Vec<u64> {
        let mut found = Vec::new();
        for (number, words) in words.chunks(8).enumerate() {
            device.staging(64).unwrap().copy_from_slice(cast_slice(words));
            device.upload(place(number), 64).unwrap();
            if number > 0 {
                found.extend_from_slice(cast_slice::<u8, u64>(device.end_download().unwrap()));
            }
            let args = Args { count: 8, values: place(number), out };
            device.launch(&COPY, bytes_of(&args), 8).unwrap();
            device.begin_download(out, 64).unwrap();
        }
        found.extend_from_slice(cast_slice::<u8, u64>(device.end_download().unwrap()));
        found
    };
    assert_eq!(seen(&|number| places[number % 2]), words);
    assert_ne!(seen(&|_| places[0]), words, "an upload to where a kernel reads");
}
