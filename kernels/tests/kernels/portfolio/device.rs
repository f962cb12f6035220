//! Kernels of portfolios, compared with their twins in Rust.

use warptape_cuda::CudaDevices;
use warptape_emulator::Emulator;
use warptape_kernels::Isa;
use warptape_kernels::device::{
    CENTRE_RETURNS, DRAW_NORMALS, Device, DeviceError, Devices, KERNELS, MOVE_SPOTS, REVALUE_POSITIONS,
    SUM_BOOKS, SUM_PRODUCTS, WorkMemory,
};
use warptape_kernels::portfolio::{
    Covariance, Profits, Scenarios, Shock, Stress, exponential_on_device, run_on_device, sample_on_device,
};

use super::invariance::drawn;
use super::{Fixture, Numbers, random_portfolio, random_scenarios};

fn bits(profits: &Profits) -> Vec<Vec<u64>> {
    let of_book = |book| profits.of_book(book).iter().map(|profit| profit.to_bits()).collect();
    (0..profits.books()).map(of_book).collect()
}

/// Compares a device with the twins; the error describes the first difference.
fn compare(device: &mut dyn Device) -> Result<(), String> {
    let failed = |error: DeviceError| error.to_string();
    let (numbers, memory) = (&mut Numbers(5), &mut WorkMemory::default());
    for (assets, books, positions) in [(3, 5, 23), (1, 1, 1), (2, 40, 0), (4, 2, 70)] {
        let portfolio = random_portfolio(numbers, assets, books, positions);
        let rates = Scenarios::stress(assets, &vec![Stress::All(Shock::shift(0.0, 0.0, 0.01)); 150]);
        let rates = rates.expect("in range");
        for scenarios in [random_scenarios(numbers, assets, 150), rates, drawn(numbers, assets, 1 << 40)] {
            for range in [0..0, 0..150, 70..71, 128..150, (1 << 39) - 3..(1 << 39) + 2] {
                if range.end > scenarios.len() {
                    continue;
                }
                let (mut expected, mut found) = (Profits::default(), Profits::default());
                portfolio.run(Isa::detect(), &scenarios, range.clone(), &mut expected);
                run_on_device(device, memory, &portfolio, &scenarios, range.clone(), &mut found)
                    .map_err(failed)?;
                if bits(&expected) != bits(&found) {
                    return Err(format!("{range:?} of {positions} positions differ"));
                }
            }
        }
    }
    let fixture = Fixture::read();
    let (portfolio, scenarios) = (fixture.portfolio(), fixture.stresses());
    let (mut expected, mut found) = (Profits::default(), Profits::default());
    portfolio.run(Isa::detect(), &scenarios, 0..scenarios.len(), &mut expected);
    run_on_device(device, memory, &portfolio, &scenarios, 0..scenarios.len(), &mut found).map_err(failed)?;
    if bits(&expected) != bits(&found) {
        return Err("stress differs".to_owned());
    }
    for assets in [1, 5, 33] {
        let returns: Vec<f64> = (0..assets * 30).map(|_| numbers.within(-0.03, 0.03)).collect();
        let sample = sample_on_device(device, memory, assets, &returns).map_err(failed)?;
        if sample != Covariance::sample(Isa::detect(), assets, &returns) {
            return Err(format!("sample of {assets} differs"));
        }
        let found = exponential_on_device(device, memory, assets, &returns, 0.97).map_err(failed)?;
        if found != Covariance::exponential(Isa::detect(), assets, &returns, 0.97) {
            return Err(format!("exponential of {assets} differs"));
        }
    }
    if sample_on_device(device, memory, 2, &[0.1]).map_err(failed)?.is_ok() {
        return Err("no returns have a covariance".to_owned());
    }
    Ok(())
}

fn emulator() -> Emulator {
    Emulator::of(&[DRAW_NORMALS, MOVE_SPOTS, REVALUE_POSITIONS, SUM_BOOKS, CENTRE_RETURNS, SUM_PRODUCTS])
}

#[test]
fn emulated_kernels_give_the_bits_of_their_twins() {
    let emulator = emulator();
    let mut device = emulator.device(usize::MAX);
    // There are as many runs as orders of threads.
    for _ in 0..4 {
        compare(&mut device).unwrap();
    }
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_gives_the_bits_of_the_twins() {
    let mut device = CudaDevices::new(None).open("cuda:0").expect("a GPU");
    compare(device.as_mut()).unwrap();
}

/// Faults: a text of a source, and a replacement with another meaning.
const FAULTS: [(&str, &str); 19] = [
    ("args.first_group + group", "group"),
    (
        "normal[CALLS] = normal_of(outer_of(0.0, words.word[2]",
        "normal[CALLS] = normal_of(outer_of(0.0, words.word[1]",
    ),
    ("(u32)asset, 0)", "(u32)asset, 1)"),
    ("other <= asset", "other < asset"),
    ("double sum = args.drift[asset]", "double sum = 0.0"),
    ("-10.0, 10.0", "-100.0, 100.0"),
    ("1e-6, 100.0", "1e-1, 100.0"),
    ("1e-12, 1e15", "1e-12, 1e9"),
    ("args.move[column] ? args.move[column][at] : still", "args.move[column] ? args.move[column][at] : 0.0"),
    ("constant + slope * years", "constant - slope * years"),
    ("(1.0 / deviation)", "(1.0000000000000002 / deviation)"),
    ("spot * carried - cash", "spot * carried + cash"),
    ("terms.sign * (asset - cash", "(asset - cash"),
    ("bits & 1; bits >>= 1", "bits & 1; bits = 0"),
    ("at < args.end[2 * book + 1]", "at < args.end[2 * book]"),
    ("1ll << 27", "1ll << 26"),
    ("x > 0.0 ? 1.0 - below", "x < 0.0 ? 1.0 - below"),
    ("args.decay * sum + value", "sum + value"),
    ("mean /= (double)args.times", "mean *= 1.0 / (double)args.times"),
];

#[test]
fn a_fault_in_a_kernel_is_found() {
    let emulator = emulator();
    for (from, to) in FAULTS {
        assert!(KERNELS.iter().any(|kernel| kernel.program().contains(from)), "{from}");
        let faulty = emulator.with(from, to);
        let found = compare(&mut faulty.device(usize::MAX));
        assert!(found.is_err(), "nobody notices {to:?} for {from:?}");
    }
}
