//! Concurrent streams of a device, each on its own thread.

use std::thread;

use warptape_emulator::Emulator;
use warptape_kernels::device::{Device, DeviceError, FOLD_QUOTES, Fault, FaultyDevice, FoldArgs};

use super::{LATENESS_NS, compare};
use crate::chain::short_params;
use crate::sweep;

/// Number of sweeps that run concurrently with the batches of a case.
const SWEEPS: u64 = 4;

/// Runs batches of ticks concurrently with sweeps in the background: both must give the bits of their twins.
pub(super) fn check(open: &dyn Fn() -> Box<dyn Device>, cases: u64) {
    for seed in 0..cases {
        let mut device = open();
        let background = device.background().expect("another stream");
        thread::scope(|scope| {
            let sweeps = scope.spawn(move || sweep::check_device(background, SWEEPS));
            compare(device, &short_params(), LATENESS_NS, seed, 6, 1_500).unwrap();
            sweeps.join().expect("sweeps have the same bits");
        });
    }
}

#[test]
fn batches_and_sweeps_beside_each_other_give_the_bits_of_their_twins() {
    let emulator = Emulator::new();
    check(&|| Box::new(emulator.device(usize::MAX)), 8);
}

#[test]
fn streams_share_what_memory_there_is() {
    let emulator = Emulator::new();
    let mut device = emulator.device(1_000);
    let mut background = device.background().unwrap();
    let given = background.allocate(600).unwrap();
    let full = DeviceError::OutOfMemory { device: "emulator".to_owned(), wanted_bytes: 600 };
    assert_eq!(device.allocate(600), Err(full.clone()));
    device.allocate(400).unwrap();
    background.free(given).unwrap();
    background.allocate(500).unwrap();
    assert_eq!(device.allocate(600), Err(full));
    drop(background);
    device.allocate(600).unwrap();
}

#[test]
fn a_stream_that_fails_fails_the_other() {
    let emulator = Emulator::new();
    let launch = |device: &mut dyn Device| {
        device
            .launch(&FOLD_QUOTES, bytemuck::bytes_of(&FoldArgs::default()), 1)
            .map_err(|error| error.to_string())
    };
    for is_background in [false, true] {
        let mut faults = [None; 2];
        faults[usize::from(is_background)] = Some(Fault::Launch(1));
        let mut device = FaultyDevice::with_faults("gpu", Box::new(emulator.device(usize::MAX)), faults);
        let mut background = device.background().unwrap();
        let streams: [&mut dyn Device; 2] = match is_background {
            false => [&mut device, background.as_mut()],
            true => [background.as_mut(), &mut device],
        };
        let names = if is_background { ["gpu/background", "gpu"] } else { ["gpu", "gpu/background"] };
        let [failing, other] = streams;
        assert_eq!([launch(failing), launch(other)], [Ok(()), Ok(())]);
        for (stream, name) in [(failing, names[0]), (other, names[1])] {
            assert_eq!(launch(stream), Err(format!("{name} failed in launch: a fault that was asked for")));
        }
    }
}
