//! The kernels on a GPU.

use warptape_cuda::CudaDevices;
use warptape_kernels::device::{Device, Devices};

use super::{check, compaction, streams};

/// Random cases per run, each with all kernels. tests/gpu/run has several runs, which draw different cases.
const CASES: u32 = 2_500;

/// Cases whose batches run concurrently with other work.
const STREAM_CASES: u64 = 200;

/// Runs a check in which every device is opened anew on the same GPU.
fn on_gpu(check: impl Fn(&dyn Fn() -> Box<dyn Device>)) {
    let devices = CudaDevices::new(None);
    let open = || devices.open("cuda:0").expect("a GPU");
    // The open device keeps the GPU's context, so that it is not created again for each case.
    let _open = open();
    check(&open);
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_gives_the_bits_of_the_twins() {
    on_gpu(|open| check(open, CASES));
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_puts_bars_in_order() {
    on_gpu(|open| compaction::check(open, CASES));
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_runs_streams_beside_each_other() {
    on_gpu(|open| streams::check(open, STREAM_CASES));
}
