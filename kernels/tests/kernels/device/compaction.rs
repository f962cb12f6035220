//! Kernels that sort closed bars, compared with their twin.

use bytemuck::{bytes_of, cast_slice, cast_slice_mut};
use proptest::prelude::*;
use warptape_emulator::Emulator;
use warptape_kernels::device::{
    CompactionArgs, Device, DeviceClosedBar, DeviceError, GATHER_BARS, GATHER_THREADS, SCAN_PLACES,
    SCAN_TILES, TILE, ordered,
};

use crate::market::Numbers;

/// Bars in an order in which threads may close them: those of a place by rank, mixed with bars of other places.
fn closed(numbers: &mut Numbers, places: usize) -> Vec<DeviceClosedBar> {
    // Some markets are quiet; in others, some places close many bars.
    let bars_max = 1 + numbers.below(6);
    let mut left: Vec<u32> =
        (0..places as u32).flat_map(|place| vec![place; numbers.below(bars_max) as usize]).collect();
    left.extend(std::iter::repeat_n(numbers.below(places as u64) as u32, numbers.below(200) as usize));
    for at in (1..left.len()).rev() {
        left.swap(at, numbers.below(at as u64 + 1) as usize);
    }
    let mut ranks = vec![0; places];
    let bar = |place: u32| {
        let rank = ranks[place as usize];
        ranks[place as usize] += 1;
        DeviceClosedBar {
            place,
            rank,
            row: numbers.below(1 << 32) as u32,
            spec: rank / 3,
            ..DeviceClosedBar::default()
        }
    };
    left.into_iter().map(bar).collect()
}

fn upload(device: &mut dyn Device, bytes: &[u8]) -> Result<u64, DeviceError> {
    let at = device.allocate(bytes.len())?;
    device.staging(bytes.len())?.copy_from_slice(bytes);
    device.upload(at, bytes.len())?;
    Ok(at)
}

/// The bars as a device sorts them by place, for `places` places.
fn ordered_on(
    device: &mut dyn Device,
    places: usize,
    closed: &[DeviceClosedBar],
    closed_max: usize,
    threads: usize,
) -> Result<Vec<DeviceClosedBar>, DeviceError> {
    let mut by_place = vec![0_u32; places];
    closed.iter().for_each(|bar| by_place[bar.place as usize] += 1);
    let args = CompactionArgs {
        places: places as u64,
        by_place: upload(device, cast_slice(&by_place))?,
        by_tile: device.allocate(4 * places.div_ceil(TILE))?,
        closed_count: upload(device, bytes_of(&(closed.len() as u32)))?,
        closed_max: closed_max as u64,
        closed: upload(device, cast_slice(closed))?,
        ordered: device.allocate(size_of_val(closed))?,
    };
    device.launch(&SCAN_PLACES, bytes_of(&args), places)?;
    device.launch(&SCAN_TILES, bytes_of(&args), 1)?;
    device.launch(&GATHER_BARS, bytes_of(&args), threads)?;
    let mut found = vec![DeviceClosedBar::default(); closed.len()];
    device.download(args.ordered, cast_slice_mut(&mut found))?;
    for at in [args.by_place, args.by_tile, args.closed_count, args.closed, args.ordered] {
        device.free(at)?;
    }
    Ok(found)
}

/// Compares a device with the twin; the error describes the difference.
pub fn compare(mut device: Box<dyn Device>, seed: u64, places: usize) -> Result<(), String> {
    let mut numbers = Numbers::new(seed);
    let closed = closed(&mut numbers, places);
    // If there are fewer threads than pieces, each takes several.
    let threads = GATHER_THREADS * (1 + numbers.below(2 * closed.len() as u64 + 1) as usize);
    let found = ordered_on(device.as_mut(), places, &closed, closed.len(), threads);
    let found = found.map_err(|error| error.to_string())?;
    let expected = ordered(places, &closed);
    match expected.iter().zip(&found).position(|(expected, found)| expected != found) {
        Some(at) => {
            Err(format!("of {} bars that at {at}: {:?}, not {:?}", closed.len(), found[at], expected[at]))
        }
        None => Ok(()),
    }
}

/// Checks random cases.
pub fn check(device: impl Fn() -> Box<dyn Device>, cases: u32) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let inputs = (any::<u64>(), prop_oneof![1..200_usize, 1..12_000_usize]);
    let result =
        runner.run(&inputs, |(seed, places)| compare(device(), seed, places).map_err(TestCaseError::fail));
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn emulated_kernels_put_bars_in_order() {
    let emulator = Emulator::new();
    check(|| Box::new(emulator.device(usize::MAX)), 60);
}

#[test]
fn the_twin_puts_bars_in_order() {
    let bar = |place, rank| DeviceClosedBar { place, rank, ..DeviceClosedBar::default() };
    let closed = [bar(3, 0), bar(1, 0), bar(3, 1), bar(1, 1), bar(0, 0), bar(3, 2)];
    assert_eq!(ordered(5, &closed), [bar(0, 0), bar(1, 0), bar(1, 1), bar(3, 0), bar(3, 1), bar(3, 2)]);
    assert_eq!(ordered(5, &[]), []);
}

#[test]
fn bars_without_room_are_left_out() {
    // More bars are counted than have room; another test checks that the state is void then.
    let mut device = Emulator::new().device(usize::MAX);
    let mut numbers = Numbers::new(3);
    let closed: Vec<DeviceClosedBar> = closed(&mut numbers, 50);
    let kept = closed.len() - 5;
    let found = ordered_on(&mut device, 50, &closed, kept, 1).unwrap();
    let left =
        |bars: &[DeviceClosedBar]| bars.iter().filter(|bar| **bar != DeviceClosedBar::default()).count();
    assert_eq!(left(&found), left(&closed[..kept]));
}
