//! The kernels on a GPU.

use warptape_cuda::CudaDevices;
use warptape_kernels::device::Devices;

use super::{check, compaction};

/// Random cases, each of all kernels.
const CASES: u32 = 10_000;

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_gives_the_bits_of_the_twins() {
    let devices = CudaDevices::new(None);
    let open = || devices.open("cuda:0").expect("a GPU");
    // Keeps the GPU's context from being made anew for each case.
    let _open = open();
    compaction::check(open, CASES);
    check(open, CASES);
}
