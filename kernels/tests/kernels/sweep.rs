//! Sweeps, compared with a simple reference, with any division of the grid, with other instructions, and on a device.

use warptape_cuda::CudaDevices;
use warptape_emulator::Emulator;
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError, Devices, Fault, FaultyDevice, KERNELS, WorkMemory};
use warptape_kernels::sweep::{CellResult, SweepBars, SweepError, TradingRule, sweep, sweep_on_device};

use crate::market::Numbers;

const COST: f64 = 2e-4;

/// Closes of some symbols that move in small and large steps, and sometimes stay constant for longer than any window.
fn closes(numbers: &mut Numbers, lengths: &[usize]) -> Vec<Vec<f64>> {
    let mut walk = |bars: usize| {
        let mut close = 50.0 + numbers.below(100) as f64;
        let mut still = 0;
        let step = |_| {
            if numbers.below(200) == 0 {
                still = numbers.below(150);
            }
            still = still.saturating_sub(1);
            let quiet = still > 0 || numbers.below(20) == 0;
            let change = (numbers.below(2_001) as f64 - 1_000.0) * 1e-5;
            close *= if quiet { 1.0 } else { 1.0 + change };
            close
        };
        (0..bars).map(step).collect()
    };
    lengths.iter().map(|&bars| walk(bars)).collect()
}

fn bars(closes: &[Vec<f64>]) -> SweepBars {
    let mut bars = SweepBars::default();
    closes.iter().for_each(|closes| bars.push_symbol(closes).expect("closes are above 0"));
    bars
}

/// Rules of all kinds, in random order.
fn rules(numbers: &mut Numbers, count: usize) -> Vec<TradingRule> {
    let mut rule = |_| {
        let window = 1 + numbers.below(60) as u32;
        let limit = numbers.below(30) as f64 * 0.1;
        match numbers.below(4) {
            0 => TradingRule::EmaCross { fast: window, slow: 1 + numbers.below(90) as u32 },
            1 => TradingRule::RsiReversion {
                length: window,
                low: 20.0 + limit * 8.0,
                high: 55.0 + limit * 10.0,
            },
            2 => TradingRule::ZScoreReversion { window, entry: limit, exit: limit * 0.4 },
            _ => TradingRule::BandBreakout { window, width: limit },
        }
    };
    (0..count).map(&mut rule).collect()
}

/// Mean and population deviation of a window's values, in two passes.
fn mean_and_deviation(window: &[f64]) -> (f64, f64) {
    let count = window.len() as f64;
    if window.iter().all(|value| *value == window[0]) {
        return (window[0], 0.0);
    }
    let mean = window.iter().sum::<f64>() / count;
    let squares: f64 = window.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / count).sqrt())
}

/// An average after each value, which begins with the mean of the first `length` values; `None` before.
fn average(values: &[f64], length: usize, next: impl Fn(f64, f64) -> f64) -> Vec<Option<f64>> {
    let mut average = None;
    let after = |(at, &value): (usize, &f64)| {
        average = match average {
            None if at + 1 < length => None,
            None => Some(values[..length].iter().sum::<f64>() / length as f64),
            Some(before) => Some(next(before, value)),
        };
        average
    };
    values.iter().enumerate().map(after).collect()
}

/// Positions after each bar, directly from the definitions.
fn positions(rule: &TradingRule, closes: &[f64]) -> Vec<f64> {
    let exponential = |length: u32| {
        let alpha = 2.0 / (f64::from(length) + 1.0);
        average(closes, length as usize, |before, value| before + alpha * (value - before))
    };
    let wilder = |values: &[f64], length: u32| {
        let count = f64::from(length);
        average(values, length as usize, |before, value| (before * (count - 1.0) + value) / count)
    };
    let window_at = |bar: usize, window: u32| {
        (bar + 1 >= window as usize).then(|| mean_and_deviation(&closes[bar + 1 - window as usize..=bar]))
    };
    let mut position = 0.0;
    let mut held = |next: Option<f64>| {
        position = next.unwrap_or(position);
        position
    };
    match *rule {
        TradingRule::EmaCross { fast, slow } => {
            let pairs = exponential(fast).into_iter().zip(exponential(slow));
            let side = |(fast, slow): (Option<f64>, Option<f64>)| match (fast, slow) {
                (Some(fast), Some(slow)) if fast == slow => held(None),
                (Some(fast), Some(slow)) => held(Some(if fast > slow { 1.0 } else { -1.0 })),
                _ => held(Some(0.0)),
            };
            pairs.map(side).collect()
        }
        TradingRule::RsiReversion { length, low, high } => {
            let changes: Vec<f64> = closes.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let ups: Vec<f64> = changes.iter().map(|change| change.max(0.0)).collect();
            let downs: Vec<f64> = changes.iter().map(|change| (-change).max(0.0)).collect();
            let indices = wilder(&ups, length).into_iter().zip(wilder(&downs, length));
            let side = |pair: (Option<f64>, Option<f64>)| match pair {
                (Some(up), Some(down)) => {
                    let index = 100.0 * up / (up + down);
                    held(if index < low {
                        Some(1.0)
                    } else if index > high {
                        Some(-1.0)
                    } else {
                        None
                    })
                }
                _ => held(Some(0.0)),
            };
            std::iter::once(0.0).take(closes.len()).chain(indices.map(side)).collect()
        }
        TradingRule::ZScoreReversion { window, entry, exit } => (0..closes.len())
            .map(|bar| {
                let Some((mean, deviation)) = window_at(bar, window) else { return held(Some(0.0)) };
                let distance = closes[bar] - mean;
                held(if distance.abs() > entry * deviation {
                    Some(-distance.signum())
                } else if distance.abs() <= exit * deviation {
                    Some(0.0)
                } else {
                    None
                })
            })
            .collect(),
        TradingRule::BandBreakout { window, width } => {
            let mut position = 0.0;
            let mut next = |bar: usize| {
                let Some((mean, deviation)) = window_at(bar, window) else { return 0.0 };
                let distance = closes[bar] - mean;
                if distance.abs() > width * deviation {
                    position = distance.signum();
                } else if position * distance < 0.0 {
                    position = 0.0;
                }
                position
            };
            (0..closes.len()).map(&mut next).collect()
        }
    }
}

fn reference(rule: &TradingRule, symbols: &[Vec<f64>]) -> CellResult {
    let (mut profits, mut trades, mut drawdown) = (Vec::new(), 0, 0.0_f64);
    for closes in symbols {
        let positions = positions(rule, closes);
        let (mut before, mut sum, mut peak) = (0.0, 0.0_f64, 0.0_f64);
        for (bar, &position) in positions.iter().enumerate() {
            let change = if bar == 0 { 0.0 } else { closes[bar] / closes[bar - 1] - 1.0 };
            let profit = before * change - COST * (position - before).abs();
            trades += u64::from(position != before && position != 0.0);
            sum += profit;
            peak = peak.max(sum);
            drawdown = drawdown.max(peak - sum);
            profits.push(profit);
            before = position;
        }
    }
    let (mean, deviation) = mean_and_deviation(&profits);
    let sharpe = if deviation > 0.0 { mean / deviation } else { 0.0 };
    CellResult { profit: profits.iter().sum(), drawdown, sharpe, trades }
}

#[test]
fn a_sweep_is_what_the_definitions_say() {
    let mut numbers = Numbers::new(11);
    let symbols = closes(&mut numbers, &[700, 1, 0, 4_100, 90]);
    let rules = rules(&mut numbers, 120);
    let found = sweep(Isa::detect(), &bars(&symbols), &rules, COST).unwrap();
    let mut traded = 0;
    for (rule, found) in rules.iter().zip(found) {
        let expected = reference(rule, &symbols);
        let near = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        assert_eq!(found.trades, expected.trades, "{rule:?}");
        assert!(near(found.profit, expected.profit), "{rule:?}: {found:?} {expected:?}");
        assert!(near(found.drawdown, expected.drawdown), "{rule:?}: {found:?} {expected:?}");
        assert!(near(found.sharpe, expected.sharpe), "{rule:?}: {found:?} {expected:?}");
        traded += usize::from(expected.trades > 10);
    }
    assert!(traded > 60, "{traded} rules trade");
}

/// Bits of the results.
fn bits(results: &[CellResult]) -> Vec<[u64; 4]> {
    let of = |cell: &CellResult| {
        [cell.profit.to_bits(), cell.drawdown.to_bits(), cell.sharpe.to_bits(), cell.trades]
    };
    results.iter().map(of).collect()
}

#[test]
fn nothing_depends_on_instructions_and_cuts() {
    let mut numbers = Numbers::new(5);
    let symbols = closes(&mut numbers, &[5_000, 4_096, 4_097, 17]);
    let (rules, bars) = (rules(&mut numbers, 77), bars(&symbols));
    let whole = bits(&sweep(Isa::detect(), &bars, &rules, COST).unwrap());
    for isa in Isa::supported() {
        assert_eq!(whole, bits(&sweep(isa, &bars, &rules, COST).unwrap()), "{isa:?}");
    }
    for size in [1, 3, 8, 40] {
        let parts =
            rules.chunks(size).flat_map(|part| bits(&sweep(Isa::detect(), &bars, part, COST).unwrap()));
        assert!(parts.eq(whole.iter().copied()), "{size} rules at once");
    }
}

/// True if a device gives the host's bits.
fn compare(device: &mut dyn Device, memory: &mut WorkMemory, seed: u64) -> bool {
    let mut numbers = Numbers::new(seed);
    let mut lengths: Vec<usize> = (0..1 + numbers.below(4)).map(|_| numbers.below(300) as usize).collect();
    if seed.is_multiple_of(20) {
        lengths.push(4_500);
    }
    let mut symbols = closes(&mut numbers, &lengths);
    // Prices with few digits are sometimes equal to the mean of their window.
    for (symbol, closes) in symbols.iter_mut().enumerate().skip(1) {
        let unit = [1.0, 10.0, 100.0][symbol % 3];
        closes.iter_mut().for_each(|close| *close = (*close * unit).round().max(1.0) / unit);
    }
    let bars = bars(&symbols);
    let count = 1 + numbers.below(40) as usize;
    let rules = rules(&mut numbers, count);
    let expected = sweep(Isa::detect(), &bars, &rules, COST).unwrap();
    let found = sweep_on_device(device, memory, &bars, &rules, COST).expect("the device works").unwrap();
    bits(&found) == bits(&expected)
}

#[test]
#[ignore = "needs a GPU: see tests/gpu/run"]
fn a_gpu_gives_the_same_bits() {
    check_device(CudaDevices::new(None).open("cuda:0").expect("a GPU"), 10_000);
}

/// Checks random sweeps.
pub fn check_device(mut device: Box<dyn Device>, cases: u64) {
    let mut memory = WorkMemory::default();
    assert!((0..cases).all(|seed| compare(device.as_mut(), &mut memory, seed)), "the bits differ");
}

#[test]
fn an_emulated_device_gives_the_same_bits() {
    check_device(Box::new(Emulator::new().device(usize::MAX)), 200);
}

/// Faults: a text of the source, and a replacement with another meaning.
const FAULTS: [(&str, &str); 9] = [
    ("2.0 / (length + 1.0)", "2.0 / length"),
    ("sample == length ? sum / length : next", "next"),
    ("up - change, sample", "change, sample"),
    ("scaled < rule.limits[0] * all", "scaled <= rule.limits[1] * all"),
    ("close[bar - window] - close[0] : 0.0", "close[bar - window] : 0.0"),
    ("square <= rule.limits[1] * variance", "square <= rule.limits[0] * variance"),
    ("if (scale > 0.0) whole", "if (scale < 0.0) whole"),
    ("thread / args.rules", "thread % args.symbols"),
    ("if (below > sums.drawdown)", ""),
];

#[test]
fn a_fault_in_the_kernel_is_found() {
    let sound = Emulator::new();
    for (from, to) in FAULTS {
        assert!(KERNELS.iter().any(|kernel| kernel.program().contains(from)), "{from}");
        let emulator = sound.with(from, to);
        let found =
            (0..60).any(|seed| !compare(&mut emulator.device(usize::MAX), &mut WorkMemory::default(), seed));
        assert!(found, "nobody notices {to:?} for {from:?}");
    }
}

#[test]
fn a_device_without_memory_has_none_of_it_used() {
    let mut numbers = Numbers::new(3);
    let bars = bars(&closes(&mut numbers, &[200]));
    let rules = rules(&mut numbers, 3);
    let emulator = Emulator::new();
    for allocations in 0..6 {
        let device = Box::new(emulator.device(usize::MAX));
        let mut device = FaultyDevice::new("emulator", device, Fault::OutOfMemory(allocations));
        let mut memory = WorkMemory::default();
        let error = sweep_on_device(&mut device, &mut memory, &bars, &rules, COST).unwrap_err();
        assert!(matches!(error, DeviceError::OutOfMemory { .. }), "{error}");
        assert_eq!((device.allocated(), memory.bytes()), (0, 0), "after {allocations} allocations");
    }
}

#[test]
fn memory_is_kept_for_the_next_sweep() {
    let emulator = Emulator::new();
    let mut memory = WorkMemory::default();
    // The device allows only the allocations of the first sweep.
    let mut device =
        FaultyDevice::new("emulator", Box::new(emulator.device(usize::MAX)), Fault::OutOfMemory(6));
    let mut run = |length: usize, count: usize| {
        let mut numbers = Numbers::new(3);
        let (bars, rules) = (bars(&closes(&mut numbers, &[length])), rules(&mut numbers, count));
        let found = sweep_on_device(&mut device, &mut memory, &bars, &rules, COST).expect("there is memory");
        assert_eq!(bits(&found.unwrap()), bits(&sweep(Isa::detect(), &bars, &rules, COST).unwrap()));
        (device.allocated(), memory.bytes())
    };
    let first = run(200, 30);
    assert_eq!(first.0, 6);
    // These sweeps need as many allocations, fewer, and then more again, and find memory of earlier ones.
    for (length, count) in [(200, 30), (50, 4), (220, 31)] {
        assert_eq!(run(length, count), first);
    }
}

#[test]
fn slices_of_a_sweep_upload_its_bars_once() {
    let (emulator, mut memory) = (Emulator::new(), WorkMemory::default());
    let mut device =
        FaultyDevice::with_faults("emulator", Box::new(emulator.device(usize::MAX)), [None, None]);
    let mut numbers = Numbers::new(3);
    let lengths = [2_000, 700];
    let [mut one, other] = [(); 2].map(|()| bars(&closes(&mut numbers, &lengths)));
    let rules = rules(&mut numbers, 40);
    let mut uploaded = |bars: &SweepBars, rules: &[TradingRule]| {
        let before = device.uploaded_bytes();
        let found = sweep_on_device(&mut device, &mut memory, bars, rules, COST).expect("there is memory");
        assert_eq!(bits(&found.unwrap()), bits(&sweep(Isa::detect(), bars, rules, COST).unwrap()));
        device.uploaded_bytes() - before
    };
    let bytes_of_bars = 2 * 8 * lengths.iter().sum::<usize>() as u64;
    let first = uploaded(&one, &rules[..8]);
    assert!(first > bytes_of_bars);
    assert_eq!(uploaded(&one, &rules[8..16]), first - bytes_of_bars);
    // Sweeps take turns.
    assert_eq!(
        [uploaded(&other, &rules[..8]), uploaded(&other, &rules[8..16])],
        [first, first - bytes_of_bars]
    );
    assert!(uploaded(&one, &rules) < bytes_of_bars);
    // Changed bars are other bars, and memory of bars that are gone is used again.
    one.push_symbol(&[1.0, 2.0]).expect("good closes");
    assert!(uploaded(&one, &rules[..8]) > first);
    let bytes = memory.bytes();
    drop((one, other));
    let next = bars(&closes(&mut numbers, &lengths));
    let found = sweep_on_device(&mut device, &mut memory, &next, &rules, COST).expect("there is memory");
    assert_eq!(bits(&found.unwrap()), bits(&sweep(Isa::detect(), &next, &rules, COST).unwrap()));
    assert_eq!(memory.bytes(), bytes);
}

#[test]
fn what_cannot_be_computed_is_refused() {
    let refused = |rule| sweep(Isa::detect(), &SweepBars::default(), &[rule], COST).unwrap_err().to_string();
    assert_eq!(
        refused(TradingRule::EmaCross { fast: 0, slow: 9 }),
        "fast is 0 bars; it must be from 1 to 1048576"
    );
    assert_eq!(
        refused(TradingRule::BandBreakout { window: 9, width: f64::NAN }),
        "width is NaN; it must be from 0 to 1000000"
    );
    assert_eq!(
        refused(TradingRule::RsiReversion { length: 9, low: 20.0, high: 101.0 }),
        "high is 101; it must be from 0 to 100"
    );
    let free = sweep(Isa::detect(), &SweepBars::default(), &[], f64::NAN).unwrap_err().to_string();
    assert_eq!(free, "cost is NaN; it must be from 0 to 1");
    let mut bars = SweepBars::default();
    bars.push_symbol(&[1.0]).unwrap();
    let close = bars.push_symbol(&[2.0, 0.0]).unwrap_err();
    assert_eq!(close, SweepError::Close { symbol: 1, bar: 1, close: 0.0 });
    assert_eq!(bars.len(), 1, "nothing of a bad symbol is kept");
    let flat =
        sweep(Isa::detect(), &SweepBars::default(), &[TradingRule::EmaCross { fast: 1, slow: 2 }], COST);
    assert_eq!(flat.unwrap(), [CellResult::default()], "nothing comes of no bars");
}

/// Closes with few digits are sometimes equal to the mean of their window. Then a breakout keeps its position, and a
/// reversion within 0 deviations gives it up. Whole numbers determine these bars, in any unit.
#[test]
fn a_close_that_is_the_mean_is_on_neither_side() {
    let mut numbers = Numbers::new(12);
    let closes: Vec<i64> = (0..9_000).map(|_| 61_000 + numbers.below(9) as i64).collect();
    for per_unit in [1.0, 10.0, 100.0, 1e9] {
        for window in [7, 20, 49, 64] {
            assert!(check_ties(&closes, per_unit, window) > 5, "{window} closes of 1/{per_unit}");
        }
    }
}

/// Closes near the mean of their window. They have too many digits for doubles, in which some equal the mean.
#[test]
fn a_close_next_to_the_mean_is_on_its_side() {
    let mut numbers = Numbers::new(13);
    let mut closes: Vec<i64> = Vec::new();
    for bar in 0..9_000 {
        let spread = 1_000_000_000_000_000_i64 + numbers.below(1_000_000_000_000_000) as i64;
        let others: i64 = closes.iter().rev().take(19).sum();
        let is_near = bar >= 19 && numbers.below(3) == 0;
        closes.push(if is_near { others / 19 + numbers.below(3) as i64 - 1 } else { spread });
    }
    check_ties(&closes, 1e9, 20);
}

/// Compares both rules with whole numbers, `per_unit` of them per unit. Returns the number of closes that equal the
/// mean.
fn check_ties(closes: &[i64], per_unit: f64, window: u32) -> u64 {
    let floats: Vec<f64> = closes.iter().map(|close| *close as f64 / per_unit).collect();
    let bars = bars(std::slice::from_ref(&floats));
    let rules = [
        TradingRule::BandBreakout { window, width: 0.777 },
        TradingRule::ZScoreReversion { window, entry: 0.777, exit: 0.0 },
    ];
    let found = sweep(Isa::detect(), &bars, &rules, 1e-4).expect("good rules");
    let ties = rules.iter().zip(found).map(|(rule, found)| {
        let is_breakout = matches!(rule, TradingRule::BandBreakout { .. });
        let (profit, trades, ties) = exact(closes, window as usize, is_breakout);
        assert_eq!(found.trades, trades, "{rule:?} 1/{per_unit}");
        assert!(
            (found.profit - profit).abs() < 1e-9 * profit.abs().max(1.0),
            "{rule:?}: {} {profit}",
            found.profit
        );
        ties
    });
    ties.min().expect("two rules")
}

/// Profit, positions taken, and number of closes that equal the mean, computed in whole numbers.
fn exact(closes: &[i64], window: usize, is_breakout: bool) -> (f64, u64, u64) {
    let (mut position, mut profit, mut trades, mut ties) = (0.0_f64, 0.0, 0, 0);
    for bar in 0..closes.len() {
        let change =
            if bar == 0 { 0.0 } else { (closes[bar] - closes[bar - 1]) as f64 / closes[bar - 1] as f64 };
        let mut target = 0.0;
        if bar + 1 >= window {
            let of = &closes[bar + 1 - window..=bar];
            let (n, sum) = (window as i128, of.iter().map(|&close| i128::from(close)).sum::<i128>());
            let distance_of = |close: i64| n * i128::from(close) - sum;
            let squares: i128 = of.iter().map(|&close| distance_of(close) * distance_of(close)).sum();
            let distance = distance_of(closes[bar]);
            ties += u64::from(distance == 0);
            // The square of n deviations is n² times the variance.
            let is_far = (distance * distance) as f64 > 0.777 * 0.777 * squares as f64 / n as f64;
            let side = distance.signum() as f64;
            target = match (is_far, is_breakout) {
                (true, true) => side,
                (true, false) => -side,
                (false, true) => {
                    if position * side < 0.0 {
                        0.0
                    } else {
                        position
                    }
                }
                (false, false) => {
                    if distance == 0 {
                        0.0
                    } else {
                        position
                    }
                }
            };
        }
        let traded = (target - position).abs();
        profit += position * change - 1e-4 * traded;
        trades += u64::from(traded > 0.0 && target != 0.0);
        position = target;
    }
    (profit, trades, ties)
}
