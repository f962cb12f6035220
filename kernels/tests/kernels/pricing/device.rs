//! Kernels of pricing, compared with their twins in Rust.

use warptape_cuda::CudaDevices;
use warptape_emulator::Emulator;
use warptape_kernels::Isa;
use warptape_kernels::device::{
    Device, DeviceError, Devices, IMPLY_VOLATILITIES, IMPROVE_BOUNDARIES, Kernel, PRICE_OPTIONS,
    SIMULATE_AMERICAN_GREEKS, SIMULATE_AMERICANS, SIMULATE_BASKET_GREEKS, SIMULATE_BASKETS, SIMULATE_BLOCKS,
    SIMULATE_GREEKS, SUM_LANES, WEIGH_PREMIUMS, WorkMemory,
};
use warptape_kernels::pricing::{
    AmericanGreekSimulation, AmericanSimulation, AssetMarket, BasketGreekSimulation, BasketSimulation,
    BasketSpec, DevicePricing, DigitalPayout, Digitals, GreekSimulation, Greeks, OptionKind, Options,
    PRICE_DIGITALS, Precision, Sampling, Simulation, SimulationSpec, implied_volatility,
};

use super::american::some_americans;
use super::basket::some_baskets;
use super::black_scholes::some_options;
use super::early_exercise;
use super::simulation::some_specs;

/// The bits of all columns, with one form of NaN.
fn bits(greeks: &Greeks) -> Vec<u64> {
    let columns = super::black_scholes::columns(greeks);
    columns.into_iter().flatten().map(|value| if value.is_nan() { 0 } else { value.to_bits() }).collect()
}

/// Compares options on a device with the twin, in several parts, so that memory is reused; the error describes the
/// first difference.
fn compare_options(device: &mut dyn Device, options: &Options) -> Result<(), String> {
    let failed = |error: DeviceError| error.to_string();
    let mut pricing = DevicePricing::default();
    for range in [0..0, 3..10, 0..options.len()] {
        let (mut expected, mut found) = (Greeks::default(), Greeks::default());
        expected.add(Isa::detect(), options, range.clone());
        pricing.greeks(device, options, range.clone(), &mut found).map_err(failed)?;
        if bits(&expected) != bits(&found) {
            return Err(format!("Greeks of {range:?} differ"));
        }
        let mut prices = expected.price().to_vec();
        for (number, price) in prices.iter_mut().enumerate() {
            // For some prices there is no volatility.
            *price = match number % 50 {
                10 => -*price,
                20 => 1e9,
                30 => f64::NAN,
                _ => *price,
            };
        }
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        implied_volatility(Isa::detect(), options, range.clone(), &prices, &mut expected);
        pricing.implied_volatility(device, options, range.clone(), &prices, &mut found).map_err(failed)?;
        if expected != found {
            return Err(format!("volatilities of {range:?} differ"));
        }
    }
    pricing.release(device).map_err(failed)
}

/// Digital options of both kinds that pay cash or the asset, in and out of the money.
fn some_digitals() -> Digitals {
    let mut digitals = Digitals::default();
    for number in 0..200_u32 {
        let share = |place: u32| f64::from(number * place % 97) / 96.0;
        let kind = if number % 2 == 0 { OptionKind::Call } else { OptionKind::Put };
        let payout = if number % 3 == 0 { DigitalPayout::Asset } else { DigitalPayout::Cash };
        let market = AssetMarket {
            spot: 50.0 + 100.0 * share(13),
            rate: 0.1 * share(29) - 0.03,
            dividend_yield: 0.08 * share(41) - 0.02,
            volatility: 0.05 + 0.9 * share(53),
        };
        let (strike, expiry_years) = (60.0 + 80.0 * share(67), 0.02 + 4.0 * share(79));
        digitals
            .push(kind, &market, strike, expiry_years, (payout, 0.5 + 10.0 * share(83)))
            .expect("in range");
    }
    digitals
}

fn compare_digitals(device: &mut dyn Device) -> Result<(), String> {
    let failed = |error: DeviceError| error.to_string();
    let (digitals, mut pricing) = (some_digitals(), DevicePricing::default());
    for range in [0..0, 3..10, 0..digitals.len()] {
        let (mut expected, mut found) = (Greeks::default(), Greeks::default());
        digitals.greeks(Isa::detect(), range.clone(), &mut expected);
        digitals.greeks_on_device(&mut pricing, device, range.clone(), &mut found).map_err(failed)?;
        if bits(&expected) != bits(&found) {
            return Err(format!("Greeks of digital options {range:?} differ"));
        }
    }
    pricing.release(device).map_err(failed)
}

fn compare_simulations(device: &mut dyn Device, specs: &[SimulationSpec]) -> Result<(), String> {
    let failed = |error: DeviceError| error.to_string();
    let mut pricing = DevicePricing::default();
    for (number, spec) in specs.iter().enumerate() {
        for precision in [Precision::F64, Precision::Mixed] {
            let (sampling, antithetic) = match number {
                1 | 5 | 12 => (Sampling::Sobol, false),
                6 => (Sampling::Sobol, true),
                _ => (Sampling::Random, number % 2 == 0),
            };
            let spec = SimulationSpec { precision, sampling, antithetic, ..*spec };
            let simulation = Simulation::new(spec).expect("all in range");
            for blocks in [0..0, 5..6, (1 << 33) - 1..(1 << 33) + 1] {
                let (mut expected, mut found) = (Vec::new(), Vec::new());
                simulation.run(Isa::detect(), blocks.clone(), &mut expected);
                pricing.simulate(device, &simulation, blocks.clone(), &mut found).map_err(failed)?;
                if expected != found {
                    return Err(format!("blocks {blocks:?} of {spec:?}: {found:?} instead of {expected:?}"));
                }
                let simulation = GreekSimulation::new(spec).expect("all in range");
                let (mut expected, mut found) = (Vec::new(), Vec::new());
                simulation.run(Isa::detect(), blocks.clone(), &mut expected);
                pricing.simulate_greeks(device, &simulation, blocks.clone(), &mut found).map_err(failed)?;
                if expected != found {
                    return Err(format!("Greeks of blocks {blocks:?} of {spec:?} differ"));
                }
            }
        }
    }
    pricing.release(device).map_err(failed)
}

fn compare_baskets(device: &mut dyn Device) -> Result<(), String> {
    let failed = |error: DeviceError| error.to_string();
    let mut pricing = DevicePricing::default();
    for (number, spec) in some_baskets().into_iter().enumerate() {
        for precision in [Precision::F64, Precision::Mixed] {
            let sampling = if number == 1 { Sampling::Sobol } else { Sampling::Random };
            let spec = BasketSpec { precision, sampling, ..spec.clone() };
            let simulation = BasketSimulation::new(spec).expect("all in range");
            let greeks = BasketGreekSimulation::new(simulation.clone());
            for blocks in [3..5, (1 << 33) - 1..(1 << 33)] {
                let (mut expected, mut found) = (Vec::new(), Vec::new());
                simulation.run(Isa::detect(), blocks.clone(), &mut expected);
                pricing.simulate_basket(device, &simulation, blocks.clone(), &mut found).map_err(failed)?;
                if expected != found {
                    return Err(format!("blocks {blocks:?} of basket {number}, {precision:?}, differ"));
                }
                let (mut expected, mut found) = (Vec::new(), Vec::new());
                greeks.run(Isa::detect(), blocks.clone(), &mut expected);
                let done = pricing.simulate_basket_greeks(device, &greeks, blocks.clone(), &mut found);
                done.map_err(failed)?;
                if expected != found {
                    return Err(format!(
                        "Greeks of blocks {blocks:?} of basket {number}, {precision:?}, differ"
                    ));
                }
            }
        }
    }
    pricing.release(device).map_err(failed)
}

fn compare_americans(device: &mut dyn Device) -> Result<(), String> {
    let failed = |error: DeviceError| error.to_string();
    let mut pricing = DevicePricing::default();
    for spec in some_americans() {
        let simulation = AmericanSimulation::new(spec).expect("all in range");
        let greeks = AmericanGreekSimulation::new(simulation.clone());
        for blocks in [3..5, (1 << 33) - 1..(1 << 33)] {
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            simulation.run(Isa::detect(), blocks.clone(), &mut expected);
            pricing.simulate_american(device, &simulation, blocks.clone(), &mut found).map_err(failed)?;
            if expected != found {
                return Err(format!("blocks {blocks:?} of {spec:?} differ"));
            }
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            greeks.run(Isa::detect(), blocks.clone(), &mut expected);
            pricing.simulate_american_greeks(device, &greeks, blocks.clone(), &mut found).map_err(failed)?;
            if expected != found {
                return Err(format!("Greeks of blocks {blocks:?} of {spec:?} differ"));
            }
        }
    }
    pricing.release(device).map_err(failed)
}

fn compare_early_exercise(device: &mut dyn Device) -> Result<(), String> {
    let mut memory = WorkMemory::default();
    for (number, option) in early_exercise::some_options().into_iter().enumerate() {
        let has_greeks = number % 2 == 0;
        let expected = option.value(Isa::detect(), has_greeks);
        let found =
            option.value_on_device(device, &mut memory, has_greeks).map_err(|error| error.to_string())?;
        if expected != found {
            return Err(format!("{option:?} is worth {found:?}, not {expected:?}"));
        }
    }
    Ok(())
}

/// Kernels that work together, and the function that compares them.
type Family = (&'static [Kernel], fn(&mut dyn Device) -> Result<(), String>);

const OPTIONS: Family =
    (&[PRICE_OPTIONS, IMPLY_VOLATILITIES], |device| compare_options(device, &some_options()));
const DIGITALS: Family = (&[PRICE_DIGITALS], compare_digitals);
const SIMULATIONS: Family =
    (&[SIMULATE_BLOCKS, SIMULATE_GREEKS, SUM_LANES], |device| compare_simulations(device, &some_specs()));
const BASKETS: Family = (&[SIMULATE_BASKETS, SIMULATE_BASKET_GREEKS, SUM_LANES], compare_baskets);
const AMERICANS: Family = (&[SIMULATE_AMERICANS, SIMULATE_AMERICAN_GREEKS, SUM_LANES], compare_americans);
const EARLY_EXERCISE: Family = (&[IMPROVE_BOUNDARIES, WEIGH_PREMIUMS], compare_early_exercise);
const FAMILIES: [Family; 6] = [OPTIONS, DIGITALS, SIMULATIONS, BASKETS, AMERICANS, EARLY_EXERCISE];

#[test]
fn emulated_kernels_give_the_bits_of_their_twins() {
    for (kernels, compare) in FAMILIES {
        let emulator = Emulator::of(kernels);
        let mut device = emulator.device(usize::MAX);
        // There are as many runs as orders of threads.
        for _ in 0..4 {
            compare(&mut device).unwrap();
        }
    }
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_gives_the_bits_of_the_twins() {
    let mut device = CudaDevices::new(None).open("cuda:0").expect("a GPU");
    for (_, compare) in FAMILIES {
        compare(device.as_mut()).unwrap();
    }
}

/// Faults: a file, a text in it, and a replacement with another meaning.
const FAULTS: [(&str, &str, &str); 95] = [
    ("exp.cuh", "0.001388888894392804", "0.00138888889"),
    ("exp.cuh", "(r * r) * estrin(Q, r)", "r * (r * estrin(Q, r))"),
    (
        "polynomial.cuh",
        "if (N % 2 == 1) terms[N - PAIRS - 1] = coefficients[N - 1];",
        "terms[N - PAIRS - 1] = coefficients[N - 1];",
    ),
    ("ln.cuh", "1ull << 51", "1ull << 50"),
    ("normal.cuh", "estrin(TABLE.below, x)", "estrin(TABLE.below, x) * 1.0000000000000002"),
    ("philox.cuh", "round < 10", "round < 9"),
    ("philox.cuh", "(u32)(number >> 32)", "0"),
    ("philox.cuh", "(u32)(key >> 32)", "0"),
    ("real.cuh", "word >> 63 == 1", "word >> 62 == 1"),
    ("real.cuh", "outer.value < (T)0.075", "outer.value < (T)0.0751"),
    ("real.cuh", "17.894861f", "17.89486f"),
    ("real.cuh", "half_square = 0.5f * f * f", "half_square = 0.5f * (f * f * 1.0000001f)"),
    ("polynomial.cuh", "+ y_square * slopes[part]", "+ y_square * slopes[0]"),
    ("normal.cuh", "below.slope - below.value", "below.slope - below_far"),
    (
        "black_scholes.cu",
        "deviation = volatility * root",
        "deviation = volatility * root * 1.0000000000000002",
    ),
    ("black_scholes.cu", "d1 + d2 < 0.0", "d1 + d2 > 0.0"),
    ("black_scholes.cu", "is_beyond ? far + near : deviation", "deviation"),
    ("black_scholes.cu", "(rest - rest_cash)", "(rest + rest_cash)"),
    ("black_scholes.cu", "is_beyond ? larger - smaller : mills.fall", "mills.fall"),
    ("black_scholes.cu", "dense * by_spot * inverse", "dense * (by_spot * inverse)"),
    ("black_scholes.cu", "b < B_MIN ? FAILURES[0]", "b < B_MIN + 1e-3 ? FAILURES[0]"),
    ("black_scholes.cu", "if (!is_moving) break;", "if (!is_moving && step > 40) break;"),
    ("black_scholes.cu", "side * mills(t - h)", "mills(t - h)"),
    ("digital.cu", "d + (pays_asset ? -deviation : deviation)", "d - deviation"),
    ("digital.cu", "pays_asset ? other : d;", "other;"),
    ("digital.cu", "of_asset * (price * by_spot)", "price * by_spot"),
    ("digital.cu", "- 0.5 * d / years", "+ 0.5 * d / years"),
    ("digital.cu", "(1.0 - of_asset) * price", "price"),
    ("digital.cu", "other * other * d - other - d", "other * other * d - other + d"),
    (
        "payoffs.cuh",
        "state.second + exp_less_1(x), state.third + x",
        "state.second + exp_less_1(x), state.third + state.x",
    ),
    ("payoffs.cuh", "(barrier - state.x) * (barrier - x)", "(barrier - x) * (barrier - x)"),
    ("payoffs.cuh", "scaled(state.second, side)", "state.second"),
    ("simulation.cu", "payoff.step(mirrored[path], -z, u)", "payoff.step(mirrored[path], z, u)"),
    ("simulation.cu", "+ path * CALLS + call]", "+ call * PATHS + path]"),
    ("sums.cu", "lanes[lane] += lanes[lane + half]", "lanes[lane] += lanes[2 * half - 1 - lane]"),
    ("simulation.cu", "args.first_block + block", "block"),
    ("simulation.cu", "of_up[0] - of_down[0]", "of_down[0] - of_up[0]"),
    ("simulation.cu", "double_of(paid.payoff) * discount", "scaled(double_of(paid.payoff), discount.value)"),
    ("simulation.cu", "0.5 * (greeks[greek] + other[greek])", "greeks[greek]"),
    ("payoffs.cuh", "paid > (Part)0.0 ? weighted", "paid >= (Part)0.0 ? weighted"),
    ("dual.cuh", "a.value * b.by[number] + b.value", "a.value * b.by[number] - b.value"),
    ("dual.cuh", "(T)0.5 / root", "(T)1.0 / root"),
    ("dual.cuh", "mapped(a, e, (T)1.0 + e)", "mapped(a, e, e)"),
    ("basket.cu", "of <= asset", "of < asset"),
    ("basket.cu", "STREAM_ASSETS + (u32)asset", "STREAM_ASSETS"),
    ("basket.cu", "paid_of(args, moved, (T)-1.0)", "paid_of(args, moved, (T)1.0)"),
    ("basket.cu", "exp_of((T)drifts[asset] + -moved[asset])", "exp_of((T)drifts[asset] + moved[asset])"),
    ("basket.cu", "side->basket - far", "side->basket - (T)2.0 * far"),
    ("basket.cu", "worth[1][asset], -moved[asset]", "worth[1][asset], moved[asset]"),
    ("basket.cu", "side->theta -= held", "side->theta -= (double)worth"),
    ("basket.cu", "- asset.volatility_years", "- asset.drift"),
    ("basket.cu", "sides[side].rho = -paid", "sides[side].rho = paid"),
    ("basket.cu", "OF_ALL + OF_ASSET * asset + greek", "OF_ALL + OF_ASSET * asset"),
    ("american.cu", "pays >= estrin", "pays * (T)1.01 >= estrin"),
    ("american.cu", "rule += 6", "rule += 0"),
    ("american.cu", "pays >= least && ", ""),
    ("american.cu", "control + paid_of(args, walks[1].x, last)", "control + paid_of(args, walks[0].x, last)"),
    ("american.cu", "stops[spot].date == (T)0.0", "stops[spot].date >= (T)0.0"),
    ("american.cu", "(u64)date - 1", "(u64)date - (date > 1.0 ? 2 : 1)"),
    ("american.cu", "moved * args.diffusion.by[number]", "2.0 * moved * args.diffusion.by[number]"),
    ("american.cu", "-(args.step_rate * date", "(args.step_rate * date"),
    ("american.cu", "args.step_years * date", "args.step_years"),
    ("american.cu", "up.delta - down.delta", "down.delta - up.delta"),
    ("american.cu", "args.bumped[1], below", "args.bumped[0], below"),
    ("american.cu", "walk.stops[1], walk.stops[2]", "walk.stops[2], walk.stops[1]"),
    ("american.cu", "greeks_of_walk(args, walks[1], other)", "greeks_of_walk(args, walks[0], other)"),
    ("greeks.cuh", "-price.by[YEARS]", "price.by[YEARS]"),
    ("sums.cuh", "payoff * payoff", "payoff * payoff * 1.0000000000000002"),
    ("early_exercise.cu", "lanes[lane] + lanes[lane + half]", "lanes[lane] + lanes[2 * half - 1 - lane]"),
    ("early_exercise.cu", "point % POINT_LANES", "point / 8 % POINT_LANES"),
    ("early_exercise.cu", "smooth ? below.density / deviation", "smooth ? below.cdf"),
    ("early_exercise.cu", "above.cdf + above.density / deviation", "above.density / deviation"),
    ("early_exercise.cu", "thread % NODES", "(thread + 1) % NODES"),
    ("early_exercise.cu", "put * (NODES + 1)", "put * NODES"),
    ("early_exercise.cu", "thread * (NODES + 1)", "thread * NODES"),
    ("early_exercise.cu", "degree > 0", "degree > 1"),
    ("early_exercise.cu", "put.rate - put.carry + 0.5", "put.rate - put.carry - 0.5"),
    ("early_exercise.cu", "lift * d1 / deviation", "lift * d1"),
    ("early_exercise.cu", "density_and_cdf(deviation - d1)", "density_and_cdf(-d1)"),
    ("early_exercise.cu", "is_below ? -plus : plus", "plus"),
    ("early_exercise.cu", "denominator = 1.0 - denominator", "denominator = 1.0 + denominator"),
    ("early_exercise.cu", "put.endless_years + left", "left"),
    ("early_exercise.cu", "deviation = put.volatility * __dsqrt_rn(left)", "deviation = spread * sine"),
    ("sobol.cuh", "number ^ number >> 1", "number"),
    ("draws.cuh", "dimension += source.steps", "dimension += 1"),
    ("draws.cuh", "round * GROUPS + group % GROUPS", "round + group % GROUPS"),
    ("draws.cuh", "(block % REPLICATES) << 32", "0"),
    ("draws.cuh", "shift.word[1]", "0"),
    ("draws.cuh", "lane % CALLS", "lane / 2 % CALLS"),
    ("bridge.cuh", "(T)point.left * now", "(T)point.right * now"),
    ("bridge.cuh", "(T)point.right * nearest", "(T)point.left * nearest"),
    ("bridge.cuh", "(T)point.deviation * z", "z"),
    ("bridge.cuh", "point.dimension, STREAM_STEPS", "point.step, STREAM_STEPS"),
    ("bridge.cuh", "nearest - now", "now - nearest"),
    ("simulation.cu", "path * CALLS + call, step", "call, step"),
];

/// The smallest family that uses all of a file; the file's faults are applied to it.
fn family_of(file: &str) -> Family {
    match file {
        "exp.cuh" | "ln.cuh" | "polynomial.cuh" | "normal.cuh" | "black_scholes.cu" => OPTIONS,
        "digital.cu" => DIGITALS,
        "philox.cuh" | "real.cuh" | "sobol.cuh" | "sums.cuh" | "sums.cu" | "basket.cu" => BASKETS,
        "american.cu" | "greeks.cuh" => AMERICANS,
        "early_exercise.cu" => EARLY_EXERCISE,
        _ => SIMULATIONS,
    }
}

#[test]
fn a_fault_in_a_kernel_is_found() {
    let emulators = FAMILIES.map(|(kernels, _)| (kernels, Emulator::of(kernels)));
    crate::beside_each_other(&FAULTS, |&(file, from, to)| {
        let (family, compare) = family_of(file);
        assert!(family.iter().any(|kernel| kernel.program().contains(from)), "{file}: {from}");
        let (_, emulator) =
            emulators.iter().find(|(kernels, _)| *kernels == family).expect("there is one for each");
        let faulty = emulator.with(from, to);
        let found = compare(&mut faulty.device(usize::MAX));
        assert!(found.is_err(), "nobody notices {to:?} for {from:?} in {file}");
    });
}
