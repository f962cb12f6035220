//! Tests with the first GPU as a device.

use warptape_cuda::{CudaDevices, Inventory, Telemetry, inventory};
use warptape_kernels::device::{
    ClosedBarsArgs, DETECT_SIGNALS, Device, DeviceError, Devices, FOLD_QUOTES, KERNELS,
};

/// Bytes that differ within a pattern, and between seeds.
fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index * 31 + index / 251 + seed * 17 + 1) as u8).collect()
}

fn upload(device: &mut dyn Device, to: u64, bytes: &[u8]) {
    device.staging(bytes.len()).expect("host memory").copy_from_slice(bytes);
    device.upload(to, bytes.len()).expect("an upload");
}

fn download(device: &mut dyn Device, from: u64, bytes: usize) -> Vec<u8> {
    let mut found = vec![0xaa; bytes];
    device.download(from, &mut found).expect("a download");
    found
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn copies_arrive_in_the_order_of_the_calls() {
    let mut device = CudaDevices::new(None).open("cuda:0").expect("a GPU");
    let device = device.as_mut();
    let sizes = [1, 70_000, 3, 300_000, 65_536, 100, 1_000_000, 8];
    let places: Vec<u64> = sizes.iter().map(|&bytes| device.allocate(bytes).expect("memory")).collect();
    for (&place, &bytes) in places.iter().zip(&sizes) {
        assert!(place % 256 == 0 && download(device, place, bytes) == vec![0; bytes], "{bytes}");
    }
    for round in 0..3 {
        for (seed, (&place, &bytes)) in places.iter().zip(&sizes).enumerate() {
            upload(device, place, &pattern(round + seed, bytes));
        }
        for (seed, (&place, &bytes)) in places.iter().zip(&sizes).enumerate() {
            assert_eq!(download(device, place, bytes), pattern(round + seed, bytes), "{bytes}");
        }
    }
    // One buffer is uploaded to two places, and then a part of one place is cleared.
    let bytes = pattern(9, 100);
    device.staging(100).expect("host memory").copy_from_slice(&bytes);
    device.upload(places[1], 100).expect("an upload");
    device.upload(places[3], 50).expect("an upload");
    device.clear(places[1], 10).expect("cleared");
    assert_eq!(download(device, places[1], 100), [&[0; 10], &bytes[10..]].concat());
    assert_eq!(download(device, places[3], 50), bytes[..50]);
    device.upload(places[0], 0).expect("nothing");
    device.clear(places[0], 0).expect("nothing");
    device.download(places[0], &mut []).expect("nothing");
    for place in &places[..4] {
        device.free(*place).expect("it was allocated");
    }
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn no_memory_is_no_failure() {
    let mut device = CudaDevices::new(None).open("cuda:0").expect("a GPU");
    let wanted_bytes = 1 << 50;
    let full = device.allocate(wanted_bytes);
    assert_eq!(full, Err(DeviceError::OutOfMemory { device: "cuda:0".to_owned(), wanted_bytes }));
    let place = device.allocate(4).expect("there is less");
    upload(device.as_mut(), place, &[1, 2, 3, 4]);
    assert_eq!(download(device.as_mut(), place, 4), [1, 2, 3, 4]);
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn what_streams_copy_does_not_meet() {
    let mut device = CudaDevices::new(None).open("cuda:0").expect("a GPU");
    let mut background = device.background().expect("another stream");
    let streams: [&mut dyn Device; 2] = [device.as_mut(), background.as_mut()];
    std::thread::scope(|scope| {
        for (number, stream) in streams.into_iter().enumerate() {
            scope.spawn(move || {
                for round in 0..200 {
                    let bytes = pattern(2 * round + number, 100_000 + round);
                    let place = stream.allocate(bytes.len()).expect("memory");
                    upload(stream, place, &bytes);
                    assert_eq!(download(stream, place, bytes.len()), bytes, "{number}, {round}");
                    stream.free(place).expect("it was allocated");
                }
            });
        }
    });
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn kernels_run_beside_each_other_and_a_failure_stays() {
    let folder = tempfile::tempdir().unwrap();
    let devices = CudaDevices::new(Some(folder.path().to_owned()));
    let mut lanes: Vec<_> = (0..2).map(|_| devices.open("cuda:0").expect("a GPU")).collect();
    let sources = KERNELS.chunk_by(|one, other| one.source == other.source).count();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), sources, "a file for each source");
    let mut again = CudaDevices::new(Some(folder.path().to_owned())).open("cuda:0").expect("from the files");
    // Without places, the kernel ends at once.
    let nothing = vec![0_u8; size_of::<warptape_kernels::device::FoldArgs>()];
    let sum = |lane: &mut dyn Device| {
        let place = lane.allocate(16).expect("memory");
        upload(lane, place, &[7; 16]);
        lane.launch(&FOLD_QUOTES, &nothing, 1000).expect("a launch");
        download(lane, place, 16)
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = lanes.iter_mut().map(|lane| scope.spawn(move || sum(lane.as_mut()))).collect();
        for lane in running {
            assert_eq!(lane.join().unwrap(), [7; 16]);
        }
    });
    assert_eq!(sum(again.as_mut()), [7; 16]);
    // The arguments lack an address: the kernel reads at address zero.
    let mut wrong = vec![0_u8; size_of::<ClosedBarsArgs>() + 512];
    wrong[..8].copy_from_slice(&1_u64.to_le_bytes());
    let mut lane = lanes.pop().unwrap();
    let mut background = lane.background().expect("another stream");
    let [place, of_background] =
        [&mut lane, &mut background].map(|stream| stream.allocate(4).expect("memory"));
    background.launch(&DETECT_SIGNALS, &wrong, 1).expect("a launch");
    let failure = background.download(of_background, &mut [0; 4]).expect_err("it fails");
    assert!(matches!(failure, DeviceError::Failed { .. }), "{failure}");
    assert_eq!(lane.allocate(4), Err(failure.clone()));
    assert_eq!(lane.clear(place, 4), Err(failure.clone()));
    assert_eq!(background.clear(of_background, 4), Err(failure.clone()));
    assert_eq!(lane.staging(4).map(|_| ()), Err(failure));
    // All lanes of a GPU share its context; CUDA does not promise that a new context works after a failure.
    drop((lane, background, lanes, again));
    match devices.open("cuda:0").and_then(|mut lane| lane.allocate(4)) {
        Ok(_) => println!("a GPU that has failed can be opened again"),
        Err(error) => println!("a GPU that has failed cannot be opened again: {error}"),
    }
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn it_is_described_scored_and_watched() {
    let Inventory { gpus, missing } = inventory();
    assert_eq!(missing, None);
    let folder = tempfile::tempdir().unwrap();
    let devices = CudaDevices::new(Some(folder.path().to_owned()));
    for gpu in &gpus {
        println!("{gpu:#?}");
        let score = devices.score(gpu).expect("a score");
        println!("{score:?}: {}", score.value());
        assert!(score.copy_gb_s > 1.0 && score.f64_gflop_s > 1.0);
        assert_eq!(devices.score(gpu), Ok(score), "kept");
        match Telemetry::open() {
            Ok(mut telemetry) => println!("{:#?}", telemetry.sample(&gpu.pci_bus_id)),
            Err(error) => println!("{error}"),
        }
    }
}
