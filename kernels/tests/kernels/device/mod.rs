//! Kernels of devices, compared with their twins in Rust: the same test for every device.

mod compaction;
mod compiled;
mod cuda;
mod streams;

use proptest::prelude::*;
use warptape_emulator::Emulator;
use warptape_kernels::device::{
    Device, DeviceClosedBar, DeviceError, DeviceSlab, Fault, FaultyDevice, GroupRows, KERNELS, SlabConfig,
    SlotState, SpecState,
};
use warptape_kernels::{
    Aggressor, BarSlab, BarSpec, BySide, ClosedBars, Detected, INDICATORS, IndicatorColumns, IndicatorParams,
    IndicatorSlab, Isa, RowKind, Rows, SignalSlab,
};

use crate::bars::specs;
use crate::beside_each_other;
use crate::chain::{short_params, signal_params};
use crate::market::{Market, Numbers};

const SECOND_NS: i64 = 1_000_000_000;
const LATENESS_NS: i64 = 2 * SECOND_NS;

/// A closed bar: slot, row that closed it, its other fields, the bits of its indicators, and its signals.
type Line = (u32, u32, [i64; 9], ([i128; 4], BySide, bool), [u64; INDICATORS], Vec<(u8, u64, u64)>);

/// The columns of bars.
type Columns = (ClosedBars, IndicatorColumns, Vec<Detected>);

fn lines((closed, columns, detected): &Columns) -> Vec<Line> {
    // NaN has only one form here, because it means that a number is not available.
    let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    let line = |bar: usize| {
        let numbers = [
            closed.start_ns[bar],
            closed.end_ns[bar],
            closed.open_e9[bar],
            closed.high_e9[bar],
            closed.low_e9[bar],
            closed.close_e9[bar],
            closed.trades[bar],
            closed.bid_price_e9[bar],
            closed.ask_price_e9[bar],
        ];
        let [bid_size, ask_size] = closed.quote_sizes_e9[bar];
        let sums = [closed.volume_e9[bar], closed.notional_e18[bar], bid_size, ask_size];
        let sums = (sums, closed.by_side[bar], closed.is_cut[bar]);
        let of_bar = detected.iter().filter(|found| found.row as usize == bar);
        let kinds = of_bar.map(|found| (found.kind as u8, bits(found.value), bits(found.threshold)));
        let indicators = columns.of_bar(bar).map(bits);
        (closed.slot[bar], closed.row[bar], numbers, sums, indicators, kinds.collect())
    };
    (0..closed.len()).map(line).collect()
}

/// Moves some markets to times around the epoch, and some prices below 0. Gives some trades the greatest size, so that
/// notionals become unknown. Keeps some markets quiet, without deviation and with numbers on their lines.
fn extreme(seed: u64, mut rows: Rows) -> Rows {
    // The time is a multiple of all intervals.
    const AWAY_NS: i64 = 1_723_000_020 * SECOND_NS;
    const QUIET_E9: i64 = 5_000_000_000;
    let quiet = rows.len() / 3..2 * rows.len() / 3;
    for row in 0..rows.len() {
        if seed % 2 == 1 && rows.kind[row] != RowKind::BARRIER {
            rows.time_ns[row] -= AWAY_NS;
        }
        if rows.kind[row].is_trade() {
            if seed.is_multiple_of(6) {
                rows.price_e9[row] -= 40_000_000_000;
            } else if seed % 3 == 1 {
                let price_e9 = i64::MAX - row as i64;
                rows.price_e9[row] = if row % 5 < 2 { -(price_e9 >> 30) } else { price_e9 };
                rows.size_e9[row] = (i64::MAX / 2 + row as i64) >> (row % 60);
                rows.kind[row] = RowKind::trade(row as u32 % 10, Aggressor::Unknown);
            } else if seed % 3 == 2 && quiet.contains(&row) {
                rows.price_e9[row] = QUIET_E9;
            } else if seed % 3 == 2 {
                // There are few different prices, so that closes lie on lines.
                rows.price_e9[row] = QUIET_E9 + row as i64 * 7_919 / 13 % 4 * 100_000_000;
            }
        }
    }
    rows
}

/// A group with its state on the host.
struct Group {
    params: IndicatorParams,
    lateness_ns: i64,
    slots: usize,
    bars: Vec<BarSlab>,
    indicators: Vec<IndicatorSlab>,
    signals: Vec<SignalSlab>,
}

impl Group {
    fn new(params: &IndicatorParams, lateness_ns: i64, slots: usize) -> Group {
        let specs = specs();
        let mut group = Group {
            params: params.clone(),
            lateness_ns,
            slots,
            bars: specs.iter().map(|spec| BarSlab::new(*spec, lateness_ns)).collect(),
            indicators: specs.iter().map(|_| IndicatorSlab::new(params.clone(), &signal_params())).collect(),
            signals: specs.iter().map(|_| SignalSlab::new(signal_params())).collect(),
        };
        group.bars.iter_mut().for_each(|slab| slab.resize(slots));
        group.indicators.iter_mut().for_each(|slab| slab.resize(slots));
        group.signals.iter_mut().for_each(|slab| slab.resize(slots));
        group
    }

    fn state(&mut self) -> SlotState<'_> {
        let of_specs = self.bars.iter_mut().zip(&mut self.indicators).zip(&mut self.signals);
        let specs = of_specs.map(|((bars, indicators), signals)| SpecState { bars, indicators, signals });
        SlotState { specs: specs.collect() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for spec in 0..self.bars.len() {
            self.bars[spec].write(&mut bytes);
            self.indicators[spec].write(&mut bytes);
            self.signals[spec].write(&mut bytes);
        }
        bytes
    }

    /// The lines of some rows, by specification.
    fn run(&mut self, rows: &Rows) -> Vec<Vec<Line>> {
        let all = 0..rows.len();
        let mut by_spec = Vec::new();
        for spec in 0..self.bars.len() {
            let mut out = Columns::default();
            self.bars[spec].fold(rows, all.clone(), &mut out.0);
            self.indicators[spec].update(Isa::Baseline, &out.0, &mut out.1);
            self.signals[spec].detect(&out.0, &out.1, &mut out.2);
            let mut lines = lines(&out);
            // A device returns a slot's bars together, in the order of closing.
            lines.sort_by_key(|(slot, ..)| *slot);
            by_spec.push(lines);
        }
        by_spec
    }

    /// The same state, read from a device.
    fn read(&self, slab: &mut DeviceSlab, slots: &[u32]) -> Result<Group, DeviceError> {
        let mut group = Group::new(&self.params, self.lateness_ns, self.slots);
        slab.read(slots, &mut group.state())?;
        Ok(group)
    }
}

/// Runs rows of groups on a device. Returns their lines by group and specification.
fn run_on<'a>(
    slab: &mut DeviceSlab,
    slots: &'a [Vec<u32>],
    parts: &'a [Rows],
) -> Result<Vec<Vec<Vec<Line>>>, DeviceError> {
    let group = |(slots, rows): (_, &'a Rows)| GroupRows { slots, rows, range: 0..rows.len() };
    let groups: Vec<GroupRows<'a>> = slots.iter().map(Vec::as_slice).zip(parts).map(group).collect();
    let staged = slab.stage(&groups)?;
    let closed = slab.run(&staged)?;
    assert!(closed.is_sorted_by_key(|bar| (bar.place, bar.spec)), "bars of a place stand together");
    let none = || specs().iter().map(|_| Columns::default()).collect();
    let mut out: Vec<Vec<Columns>> = parts.iter().map(|_| none()).collect();
    for bar in &closed {
        let (mut group, mut slot, mut row) = (0, bar.place as usize, bar.row as usize);
        while slot >= slots[group].len() {
            slot -= slots[group].len();
            row -= parts[group].len();
            group += 1;
        }
        let (closed, columns, detected) = &mut out[group][bar.spec as usize];
        let signals = signal_params();
        bar.receive(slot as u32, &parts[group], row, &signals, (closed, columns, detected));
    }
    Ok(out.iter().map(|by_spec| by_spec.iter().map(lines).collect()).collect())
}

/// The rows of a range, as a batch contains them.
fn part_of(rows: &Rows, from: usize, to: usize) -> Rows {
    let mut rest = rows.clone();
    rest.take_front(from);
    rest.take_front(to - from)
}

/// Runs rows of three groups through the kernels of a device and through their twins, in batches, while slots are
/// added, removed and moved. The error describes the first difference.
fn compare(
    device: Box<dyn Device>,
    params: &IndicatorParams,
    lateness_ns: i64,
    seed: u64,
    slots: u32,
    ticks: usize,
) -> Result<(), String> {
    let failed = |error: DeviceError| error.to_string();
    let config = SlabConfig {
        bars: specs(),
        allowed_lateness_ns: lateness_ns,
        indicators: params.clone(),
        signals: signal_params(),
    };
    let market = |group: u64| Market {
        seed: seed ^ group << 32,
        slots: slots + group as u32,
        ticks: ticks >> group,
        allowed_lateness_ns: lateness_ns,
        specs: specs(),
    };
    let markets = [0, 1, 2].map(market);
    let rows = markets.each_ref().map(|market| extreme(market.seed, market.rows()));
    let mut host = markets.each_ref().map(|market| Group::new(params, lateness_ns, market.slots as usize));
    let mut slab = DeviceSlab::new("emulator", device, config, 4).map_err(failed)?;
    let mut at = Vec::new();
    for group in &host {
        // Half of the slots are added first.
        at.push(slab.take_slots(group.slots / 2).map_err(failed)?);
    }
    for (slots, group) in at.iter_mut().zip(&host) {
        slots.extend(slab.take_slots(group.slots - slots.len()).map_err(failed)?);
    }
    let mut numbers = Numbers::new(seed);
    let batches = 1 + numbers.below(4) as usize;
    for batch in 0..batches {
        let cut = |rows: &Rows, batch: usize| rows.len() * batch / batches;
        let parts = rows.each_ref().map(|rows| part_of(rows, cut(rows, batch), cut(rows, batch + 1)));
        let found = run_on(&mut slab, &at, &parts).map_err(failed)?;
        for (number, (group, rows)) in host.iter_mut().zip(&parts).enumerate() {
            for (spec, expected) in group.run(rows).into_iter().enumerate() {
                let found = &found[number][spec];
                if expected != *found {
                    let differs = expected.iter().zip(found).find(|(expected, found)| expected != found);
                    let (spec, counts) = (&specs()[spec], [expected.len(), found.len()]);
                    return Err(format!(
                        "batch {batch}, group {number}, {spec}: {counts:?} bars, {differs:x?}"
                    ));
                }
            }
            let mut other = group.read(&mut slab, &at[number]).map_err(failed)?;
            if group.bytes() != other.bytes() {
                return Err(format!("batch {batch}, group {number}: the state differs"));
            }
            if numbers.below(3) == 0 {
                // The group moves to other slots, via the host.
                slab.give_back(&at[number]);
                let stranger = slab.take_slots(1 + numbers.below(3) as usize).map_err(failed)?;
                at[number] = slab.take_slots(group.slots).map_err(failed)?;
                slab.install(&at[number], &other.state()).map_err(failed)?;
                let mut fresh = Group::new(params, lateness_ns, stranger.len());
                if fresh.bytes() != fresh.read(&mut slab, &stranger).map_err(failed)?.bytes() {
                    return Err(format!("batch {batch}, group {number}: a slot is not new"));
                }
                slab.install(&stranger, &fresh.state()).map_err(failed)?;
                slab.give_back(&stranger);
            }
        }
    }
    Ok(())
}

/// Checks random cases of all kernels.
fn check(device: impl Fn() -> Box<dyn Device>, cases: u32) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let inputs = (any::<u64>(), 1..30_u32, 1..2_100_usize, any::<bool>());
    let result = runner.run(&inputs, |(seed, slots, ticks, short)| {
        let params = if short { short_params() } else { IndicatorParams::default() };
        compare(device(), &params, LATENESS_NS, seed, slots, ticks).map_err(TestCaseError::fail)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn emulated_kernels_give_the_bits_of_their_twins() {
    let emulator = Emulator::new();
    check(|| Box::new(emulator.device(usize::MAX)), 150);
}

#[test]
fn many_bars_may_be_open_while_few_are() {
    let emulator = Emulator::new();
    let device = Box::new(emulator.device(usize::MAX));
    compare(device, &short_params(), 2_000 * SECOND_NS, 5, 15, 3_000).unwrap();
}

/// Two batches close more bars than the first download covers; the second is begun before the first is finished. The
/// result is the same as one after the other.
#[test]
fn batches_beside_each_other_are_as_one_by_one() {
    const SLOTS: usize = 9;
    let specs = [BarSpec::Ticks { count: 1 }, BarSpec::Time { interval_ns: SECOND_NS }];
    let bits = |bars: &[DeviceClosedBar]| bytemuck::cast_slice::<_, u8>(bars).to_vec();
    let emulator = Emulator::new();
    let slab = || {
        let config = SlabConfig {
            bars: specs.to_vec(),
            allowed_lateness_ns: LATENESS_NS,
            indicators: short_params(),
            signals: signal_params(),
        };
        let mut slab =
            DeviceSlab::new("emulator", Box::new(emulator.device(usize::MAX)), config, SLOTS).unwrap();
        let slots = slab.take_slots(SLOTS).unwrap();
        (slab, slots)
    };
    for seed in (1..40).step_by(2) {
        let market = Market {
            seed,
            slots: SLOTS as u32,
            ticks: 2_500,
            allowed_lateness_ns: LATENESS_NS,
            specs: specs.to_vec(),
        };
        let rows = market.rows();
        let cuts = [0, 300, 1_000, 1_020, rows.len()];
        let batches = [0, 1, 2, 3].map(|batch| part_of(&rows, cuts[batch], cuts[batch + 1]));
        let (mut one, slots) = slab();
        let rows_of = |rows| GroupRows { slots: &slots, rows, range: 0..Rows::len(rows) };
        let expected = batches.each_ref().map(|rows| {
            let staged = one.stage(&[rows_of(rows)]).unwrap();
            bits(&one.run(&staged).unwrap())
        });
        let most = expected.iter().map(|bars| bars.len() / size_of::<DeviceClosedBar>()).max();
        assert!(most > Some(500), "more than are asked for at once");
        let (mut other, _) = slab();
        let (mut begun, mut found) = (None, Vec::new());
        for rows in &batches {
            let staged = other.stage(&[rows_of(rows)]).unwrap();
            let batch = other.begin(&staged).unwrap();
            if let Some(before) = begun.replace(batch) {
                found.push(bits(&other.finish(before).unwrap()));
            }
        }
        found.push(bits(&other.finish(begun.unwrap()).unwrap()));
        assert!(found == expected, "seed {seed}");
    }
}

/// Faults: a file, a text in it, and a replacement with another meaning.
const FAULTS: [(&str, &str, &str); 52] = [
    ("bars.cu", "exponent > 0; --exponent", "exponent > 1; --exponent"),
    ("bars.cu", "u64 price = high > low ?", "u64 price = high < low ?"),
    ("bars.cu", "upper >> 63 ?", "upper >> 100 ?"),
    ("indicators.cu", "before > 0.0 ?", "before != 0.0 ?"),
    ("indicators.cu", "value < 0 ? -number : number", "number"),
    ("bars.cu", "later.low_e9 < bar.low_e9", "later.low_e9 > bar.low_e9"),
    ("bars.cu", "later.close_time_ns >= bar.close_time_ns", "later.close_time_ns > bar.close_time_ns"),
    ("bars.cu", "later.open_time_ns < bar.open_time_ns", "later.open_time_ns <= bar.open_time_ns"),
    ("bars.cu", "dividend % divisor < 0 ? quotient - 1 : quotient", "quotient"),
    ("bars.cu", "open[bar] = open[bar - 1]", "open[bar] = open[bar]"),
    ("bars.cu", "if (end_ns > watermark_ns) break;", "if (end_ns >= watermark_ns) break;"),
    ("bars.cu", "if (quote.row > row) break;", "if (quote.row > row + 9) break;"),
    (
        "bars.cu",
        "if (quote.time_ns < part.time_ns) continue;",
        "if (quote.time_ns <= part.time_ns) continue;",
    ),
    ("bars.cu", "part.time_ns < bar->quote_time_ns", "part.time_ns <= bar->quote_time_ns"),
    ("bars.cu", "of_trades->first_row < of_quotes->first_row", "of_trades->first_row"),
    ("bars.cu", "begun.quoted = bar->quoted;", ""),
    ("bars.cu", "at(position - 1).time_ns > quote.time_ns", "at(position - 1).time_ns >= quote.time_ns"),
    ("bars.cu", "at(position - 1).time_ns <= time_ns", "at(position - 1).time_ns < time_ns"),
    ("bars.cu", "at(1).time_ns <= settled_ns", "at(1).time_ns < settled_ns"),
    ("bars.cu", "first + position", "position"),
    ("indicators.cu", "value % 4", "value % 2"),
    ("indicators.cu", "% WRAPS_PER_SUM == WRAPS_PER_SUM - 1", "% WRAPS_PER_SUM == 0"),
    ("indicators.cu", "(input - state) * period.alpha", "input * period.alpha - state * period.alpha"),
    ("indicators.cu", "(close - anchor) - mean_distance", "close - (anchor + mean_distance)"),
    ("indicators.cu", "anchor = close;", ""),
    ("indicators.cu", "highs.length + percents.length - 2", "highs.length + percents.length - 1"),
    ("indicators.cu", "lows.at(bar) < lowest", "lows.at(bar) > lowest"),
    ("indicators.cu", "args.kept_first[kept + 1] - first", "args.kept_first[kept + 1] - first - 1"),
    ("ln.cuh", "0.6666666666667287", "0.666666"),
    ("bars.cu", "later.volumes_e9[side]", "later.volumes_e9[0]"),
    ("bars.cu", "trades[1] + trades[2]", "trades[1]"),
    ("bars.cu", "place_kind >> 26 & 15", "place_kind >> 26 & 7"),
    ("bars.cu", "unit > 1; --unit", "unit > 2; --unit"),
    ("bars.cu", "top.unit > 0 ? size_of(top, top.ask_size) : ABSENT", "size_of(top, top.ask_size)"),
    ("bars.cu", "has_forgotten = 1;", ""),
    ("ties.cuh", "if (side == ON) return line;", ""),
    ("ties.cuh", "if (side == ON) return close;", ""),
    ("ties.cuh", "of_close == of_line", "false"),
    ("ties.cuh", "per * per + units * units", "per * per"),
    ("ties.cuh", "digits == DIGITS", "digits == 1"),
    ("signals.cu", "before != ZONE_NONE && ", ""),
    ("signals.cu", "value < lower", "value <= lower"),
    ("compaction.cu", "if (lane >= delta)", "if (lane > delta)"),
    ("compaction.cu", "delta < TILE; delta *= 2", "delta < TILE / 2; delta *= 2"),
    ("compaction.cu", "args.by_place[place] = through - bars;", "args.by_place[place] = through;"),
    ("compaction.cu", "args.by_tile[tile] = before + all +", "args.by_tile[tile] = all +"),
    ("compaction.cu", "__syncthreads();  // Sums of warps are there.", ""),
    ("compaction.cu", "__syncthreads();  // And were read.", ""),
    ("compaction.cu", " + bar.rank;", ";"),
    ("slots.cu", "words.slot ? words.slot[place] : place", "place"),
    ("slots.cu", "slot * words.slot_stride", "slot"),
    ("slots.cu", "args.from.at ? *word_of(args.from, place, word) : 0", "*word_of(args.to, place, word)"),
];

#[test]
fn a_fault_in_a_kernel_is_found() {
    let sound = Emulator::new();
    beside_each_other(&FAULTS, |(file, from, to)| {
        assert!(KERNELS.iter().any(|kernel| kernel.program().contains(from)), "{file}: {from}");
        assert!(is_found(&sound.with(from, to)), "nobody notices {to:?} for {from:?} in {file}");
    });
}

/// True if a comparison with the twins detects an artificial fault.
fn is_found(emulator: &Emulator) -> bool {
    let device = || Box::new(emulator.device(usize::MAX));
    // An impossible state causes a panic.
    let compared = |seed| {
        std::panic::catch_unwind(|| {
            compare(device(), &short_params(), LATENESS_NS, seed, 1 + seed as u32 % 6, 1_500)
        })
    };
    // Some faults are visible only with many places, others with any number.
    let ordered = |seed| std::panic::catch_unwind(|| compaction::compare(device(), seed, 9_000));
    (0..60).any(|seed| !matches!(compared(seed), Ok(Ok(()))))
        || (0..10).any(|seed| !matches!(ordered(seed), Ok(Ok(()))))
}

#[test]
fn a_device_that_fails_says_why() {
    let emulator = Emulator::new();
    let with = |device: Box<dyn Device>| {
        compare(device, &short_params(), LATENESS_NS, 3, 20, 2_000).expect_err("it fails")
    };
    let faulty =
        |fault| with(Box::new(FaultyDevice::new("emulator", Box::new(emulator.device(usize::MAX)), fault)));
    assert_eq!(faulty(Fault::Launch(30)), "emulator failed in launch: a fault that was asked for");
    assert_eq!(faulty(Fault::Gone(0)), "emulator failed in begin_download: a fault that was asked for");
    assert_eq!(faulty(Fault::Gone(1)), "emulator failed in end_download: a fault that was asked for");
    assert_eq!(faulty(Fault::Gone(2)), "emulator failed in download_ended: a fault that was asked for");
    let no_memory = "emulator has no memory left: ";
    assert!(faulty(Fault::OutOfMemory(30)).starts_with(no_memory));
    assert!(with(Box::new(emulator.device(1 << 20))).starts_with(no_memory));
}
