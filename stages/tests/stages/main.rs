//! Intake and groups together: batch cuts, snapshots, lateness.

mod evicted;
mod flow;
mod formulas;
mod further;
mod lateness;
mod optimisation;
mod rows;
mod scales;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use warptape_emulator::Emulator;
use warptape_kernels::{Isa, RowKind};
use warptape_schemas::signal::SignalKind;
use warptape_schemas::tick::{Scales, Side, Tick, TickColumns, TickKind};
use warptape_schemas::{
    DeadLetterReason, InvalidTick, SetEventTime, TickDecoder, decode_signal, encode_set_event_time,
};
use warptape_stages::{
    Acceptance, Begun, DeviceGroups, GroupInput, GroupOutput, GroupQueue, GroupStage, Late, Lateness,
    PartitionIntake, SignalMerge, StageConfig, TickRecord, group_of,
};

const SECOND_NS: i64 = 1_000_000_000;
/// Factor from prices scaled by 1e-9 to prices scaled by 1e-18.
const E9: i128 = 1_000_000_000;

fn config(bars: &[&str], allowed_lateness_ns: i64) -> StageConfig {
    let bars = bars.iter().map(|text| text.parse().unwrap()).collect();
    StageConfig::unlimited(bars, allowed_lateness_ns, 3)
}

fn trade(symbol: &str, event_time_ns: i64, price_e9: i64) -> Tick {
    Tick {
        symbol: symbol.to_owned(),
        kind: TickKind::Trade,
        event_time_ns,
        receive_time_ns: 0,
        trade_id: 0,
        side: Side::None,
        price_e9,
        size_e9: 1_000_000_000,
        bid_price_e9: 0,
        bid_size_e9: 0,
        ask_price_e9: 0,
        ask_size_e9: 0,
        scales: Scales::E9,
    }
}

/// A partition with its groups, run inline.
struct Partition {
    config: StageConfig,
    intake: PartitionIntake,
    queues: Vec<GroupQueue>,
    stages: Vec<GroupStage>,
    merge: SignalMerge,
    late: Vec<Late>,
    /// Trades with an id that their symbol had before.
    repeated: u64,
    /// Snapshots, by group.
    snapshots: Vec<Vec<(i64, Vec<u8>)>>,
    /// Pages of symbols that have left, by number.
    pages: BTreeMap<i32, Vec<u8>>,
}

impl Partition {
    fn new(config: &StageConfig) -> Self {
        let groups = config.groups_per_partition;
        Self {
            config: config.clone(),
            intake: PartitionIntake::new(config),
            queues: (0..groups).map(|_| GroupQueue::default()).collect(),
            stages: (0..groups).map(|_| GroupStage::new(config, Isa::detect())).collect(),
            merge: SignalMerge::default(),
            late: Vec::new(),
            repeated: 0,
            snapshots: (0..groups).map(|_| Vec::new()).collect(),
            pages: BTreeMap::new(),
        }
    }

    fn accept(&mut self, offset: i64, tick: &Tick) {
        self.try_accept(offset, tick).unwrap();
    }

    fn try_accept(&mut self, offset: i64, tick: &Tick) -> Result<(), InvalidTick> {
        let mut columns = TickColumns::default();
        columns.push(tick, self.intake.symbols_mut());
        self.intake.accept(offset, 0, &mut columns, 0, &mut self.queues, &mut self.late);
        self.repeated += self.intake.trade_ids().repeated;
        columns.rejected.pop().map_or(Ok(()), Err)
    }

    /// Sets event time as an operator would.
    fn set_event_time(&mut self, offset: i64, event_time_max_ns: i64) {
        self.say_event_time(offset, event_time_max_ns, false);
    }

    fn say_event_time(&mut self, offset: i64, event_time_max_ns: i64, cuts_bars: bool) {
        let mut value = Vec::new();
        let set = SetEventTime {
            id: "one".to_owned(),
            by: "someone".to_owned(),
            event_time_max_ns,
            cuts_bars,
            only_forward: cuts_bars,
        };
        encode_set_event_time(&set, &mut value);
        let (mut columns, mut late) = (TickColumns::default(), Vec::new());
        let record = TickRecord { offset, written_ns: 0, value: &value };
        let decoder = &mut TickDecoder::new();
        let accepted = self.intake.accept_record(record, decoder, &mut columns, &mut self.queues, &mut late);
        assert_eq!((accepted, late.len()), (Ok(Acceptance::Taken(0)), 0));
    }

    /// Runs up to `rows` rows of each group.
    fn run(&mut self, rows: usize) {
        for ((queue, stage), snapshots) in
            self.queues.iter_mut().zip(&mut self.stages).zip(&mut self.snapshots)
        {
            let mut output = GroupOutput::default();
            stage.run(queue.take(rows.min(queue.rows.len())), &mut output);
            self.merge.push(output.signals);
            snapshots.extend(output.snapshots);
            self.pages.extend(output.pages.into_iter().map(|page| (page.page, page.bytes)));
        }
    }

    fn signals(&mut self) -> Vec<Vec<u8>> {
        let mut signals = Vec::new();
        signals.extend(self.merge.take_before(i64::MAX).iter().map(|signal| signal.bytes.to_vec()));
        signals
    }

    /// Writes everything and reads it back.
    fn restored(&self) -> Self {
        let mut bytes = Vec::new();
        self.intake.write(&mut bytes);
        let mut restored = Self::new(&self.config);
        restored.intake = PartitionIntake::read(&self.config, &bytes).unwrap();
        for (stage, restored) in self.stages.iter().zip(&mut restored.stages) {
            bytes.clear();
            stage.write(&mut bytes);
            *restored = GroupStage::read(&self.config, Isa::Baseline, &bytes).unwrap();
        }
        restored
    }
}

#[test]
fn a_bar_closes_by_the_watermark_of_another_symbol() {
    let config = config(&["1s"], SECOND_NS);
    let mut partition = Partition::new(&config);
    partition.accept(0, &trade("X:IDLE", 10 * SECOND_NS, 5));
    partition.accept(1, &trade("X:BUSY", 12 * SECOND_NS - 1, 7));
    partition.run(usize::MAX);
    assert!(partition.signals().is_empty(), "the watermark is one nanosecond short of 11 s");
    partition.accept(2, &trade("X:BUSY", 12 * SECOND_NS, 7));
    partition.run(usize::MAX);
    let signals = partition.signals();
    assert_eq!(signals.len(), 1);
    let signal = decode_signal(&signals[0]).unwrap();
    assert_eq!((&*signal.symbol, signal.kind), ("X:IDLE", SignalKind::Bar));
    assert_eq!((signal.bar_start_ns, signal.bar_end_ns), (10 * SECOND_NS, 11 * SECOND_NS));
    assert_eq!((signal.source_offset, signal.source_index), (2, 0));
}

#[test]
fn lateness_is_judged_at_each_tick() {
    let config = config(&["1s"], SECOND_NS);
    let mut partition = Partition::new(&config);
    partition.accept(0, &trade("X:A", 10 * SECOND_NS, 5));
    partition.accept(1, &trade("X:A", 9 * SECOND_NS, 5));
    assert!(partition.late.is_empty(), "as old as the watermark is not late");
    partition.accept(2, &trade("X:A", 9 * SECOND_NS - 1, 5));
    assert_eq!(partition.late, [Late { index: 0, watermark_ns: 9 * SECOND_NS }]);
}

#[test]
fn one_time_far_ahead_makes_nothing_late() {
    let config = StageConfig { future_max_ns: 60 * SECOND_NS, ..config(&["1s"], SECOND_NS) };
    let mut partition = Partition::new(&config);
    partition.accept(0, &trade("X:A", 10 * SECOND_NS, 5));
    let error = partition.try_accept(1, &trade("X:NEW", 900_000 * SECOND_NS, 5)).unwrap_err();
    assert_eq!(error.reason(), DeadLetterReason::BadTime);
    assert!(error.to_string().contains("stages.future_max_ms"), "{error}");
    assert_eq!(partition.intake.symbol_count(), 1, "what is refused numbers no symbol");
    partition.accept(2, &trade("X:B", 11 * SECOND_NS, 5));
    partition.accept(3, &trade("X:A", 10 * SECOND_NS, 5));
    assert!(partition.late.is_empty());
    // Markets open again a week later. A restore on the way changes nothing.
    let monday_ns = 604_800 * SECOND_NS;
    let mut refused = 0;
    for offset in 4..20 {
        let symbol = ["X:A", "X:B"][offset as usize % 2];
        let accepted = partition.try_accept(offset, &trade(symbol, monday_ns + offset * SECOND_NS, 5));
        refused += usize::from(accepted.is_err());
        if offset % 3 == 0 {
            partition.run(usize::MAX);
            partition = partition.restored();
        }
    }
    assert_eq!((refused, partition.late.len()), (7, 0));
}

#[test]
fn the_first_tick_is_compared_with_when_it_was_written() {
    let config = StageConfig { future_max_ns: 60 * SECOND_NS, ..config(&["1s"], SECOND_NS) };
    let mut partition = Partition::new(&config);
    let mut accept = |time_ns, written_ns| {
        let mut columns = TickColumns::default();
        columns.push(&trade("X:A", time_ns, 5), partition.intake.symbols_mut());
        let Partition { intake, queues, late, .. } = &mut partition;
        intake.accept(0, written_ns, &mut columns, 0, queues, late);
        columns.rejected.is_empty()
    };
    assert!(!accept(161 * SECOND_NS, 100 * SECOND_NS));
    assert!(accept(10 * SECOND_NS, 100 * SECOND_NS));
    assert!(!accept(161 * SECOND_NS, 200 * SECOND_NS), "from then on event times count alone");
}

#[test]
fn idle_groups_get_watermarks_only_when_they_have_symbols() {
    let config = config(&["1s"], 0);
    let mut partition = Partition::new(&config);
    partition.accept(0, &trade("X:A", 10 * SECOND_NS, 5));
    partition.accept(1, &trade("X:A", 11 * SECOND_NS, 5));
    let watermarks =
        |queue: &GroupQueue| queue.rows.kind.iter().filter(|&&kind| kind == RowKind::WATERMARK).count();
    assert_eq!(partition.queues.iter().map(watermarks).sum::<usize>(), 1);
}

#[test]
fn a_snapshot_of_another_configuration_is_refused() {
    let partition = Partition::new(&config(&["1s"], 0));
    let mut bytes = Vec::new();
    partition.intake.write(&mut bytes);
    let error = PartitionIntake::read(&config(&["5s"], 0), &bytes).unwrap_err();
    assert!(error.to_string().contains("another stage configuration"), "{error}");
}

fn ticks() -> impl Strategy<Value = Vec<Tick>> {
    let tick = (0..5_u8, 0..400_i64, -900..900_i64, 1..200_i64);
    prop::collection::vec(tick, 1..150).prop_map(|steps| {
        let mut time_ns = 1_000 * SECOND_NS;
        let one = |(symbol, step, jitter, price): (u8, i64, i64, i64)| {
            time_ns += step * 1_000_000;
            let mut tick = trade(&format!("X:{symbol}"), time_ns + jitter * 1_000_000, price * 10_000_000);
            if price % 5 == 0 {
                tick.kind = TickKind::Quote;
                (tick.bid_price_e9, tick.ask_price_e9) = (tick.price_e9, tick.price_e9 + 1);
                (tick.bid_size_e9, tick.ask_size_e9) =
                    (price / 5 % 3 * 1_000_000_000, price / 15 % 2 * 2_000_000_000);
                (tick.price_e9, tick.size_e9) = (0, 0);
            } else {
                tick.side = [Side::None, Side::Buy, Side::Sell][price as usize % 3];
                tick.trade_id = price;
            }
            match symbol {
                // A spread.
                3 => {
                    tick.price_e9 -= 1_000_000_000 * i64::from(tick.kind == TickKind::Trade);
                    tick.bid_price_e9 = -tick.bid_price_e9;
                }
                // A coin of little worth, whose publisher writes scales as it likes.
                4 => {
                    let size = [0, 5, 9, 12][price as usize % 4];
                    tick.scales = Scales { price: 6 + (price % 2) as u8, size };
                    (tick.bid_price_e9, tick.ask_price_e9) = (tick.bid_price_e9, tick.bid_price_e9);
                    tick.size_e9 *= price * 100;
                }
                _ => {}
            }
            tick
        };
        steps.into_iter().map(one).collect()
    })
}

/// Groups on a device, with what was begun there.
struct OnDevice {
    groups: DeviceGroups<usize>,
    begun: Option<Begun<usize>>,
    /// Number of batches that were begun before the previous one was finished.
    beside: usize,
}

impl OnDevice {
    /// Begins up to `rows` rows of each group, all groups at once, and finishes what was begun before.
    fn run(&mut self, partition: &mut Partition, rows: usize) {
        let queues = partition.queues.iter_mut();
        let inputs: Vec<(usize, GroupInput)> =
            queues.map(|queue| queue.take(rows.min(queue.rows.len()))).enumerate().collect();
        if !inputs.iter().all(|(_, input)| DeviceGroups::<usize>::may_overlap(input)) {
            self.finish(partition);
        }
        let begun = self.groups.begin(inputs).unwrap();
        self.beside += usize::from(self.begun.is_some());
        self.finish(partition);
        self.begun = Some(begun);
    }

    fn finish(&mut self, partition: &mut Partition) {
        let Some(begun) = self.begun.take() else { return };
        for (group, output) in self.groups.finish(begun).unwrap().into_iter().enumerate() {
            partition.merge.push(output.signals);
            partition.snapshots[group].extend(output.snapshots);
            partition.pages.extend(output.pages.into_iter().map(|page| (page.page, page.bytes)));
        }
    }
}

/// A device gives the signals and snapshots of the host, whatever the cuts and barriers. The state of a group goes to
/// the device as it is, or as its snapshot.
#[test]
fn a_device_gives_what_the_host_gives() {
    let emulator = Emulator::new();
    let beside = Cell::new(0);
    let inputs = (
        any::<bool>(),
        ticks(),
        prop::collection::vec(1..20_usize, 1..40),
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        any::<prop::sample::Index>(),
    );
    let mut runner =
        TestRunner::new(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() });
    let result = runner.run(&inputs, |(further, ticks, cuts, barriers, moved_back, moved_at)| {
        let mut config = formulas::with_some(config(&["1s", "tick:3", "volume:4"], SECOND_NS / 2));
        config.indicators.stochastic = if further { 2 } else { 0 };
        let moved_back: Vec<usize> = moved_back.iter().map(|at| at.index(ticks.len())).collect();
        let barriers: Vec<usize> = barriers.iter().map(|at| at.index(ticks.len())).collect();
        let moved_at = moved_at.index(ticks.len());
        let (mut host, mut other) = (Partition::new(&config), Partition::new(&config));
        let device = Box::new(emulator.device(usize::MAX));
        let groups = DeviceGroups::new("cuda:0", device, &config).unwrap();
        let mut device = OnDevice { groups, begun: None, beside: 0 };
        for (group, stage) in std::mem::take(&mut other.stages).into_iter().enumerate() {
            device.groups.install(group, Box::new(stage)).unwrap();
        }
        let mut cuts = cuts.iter().cycle();
        for (offset, tick) in ticks.iter().enumerate() {
            for partition in [&mut host, &mut other] {
                if barriers.contains(&offset) {
                    partition.intake.barrier(offset as i64, offset as i64, &mut partition.queues);
                }
                if moved_back.contains(&offset) {
                    partition.set_event_time(offset as i64, tick.event_time_ns - 5 * SECOND_NS);
                } else {
                    partition.accept(offset as i64, tick);
                }
            }
            if offset % cuts.next().unwrap() == 0 {
                host.run(*cuts.next().unwrap());
                device.run(&mut other, *cuts.next().unwrap());
            }
            if offset == moved_at {
                // A group leaves, and comes back from its snapshot.
                other.intake.barrier(-1, offset as i64 + 1, &mut other.queues);
                device.run(&mut other, usize::MAX);
                device.finish(&mut other);
                let group = offset % 3;
                let (_, bytes) = other.snapshots[group].pop().unwrap();
                other.snapshots.iter_mut().enumerate().for_each(|(other, snapshots)| {
                    if other != group {
                        snapshots.pop();
                    }
                });
                device.groups.retain(|kept| *kept != group);
                let stage = GroupStage::read(&config, Isa::Baseline, &bytes).unwrap();
                device.groups.install(group, Box::new(stage)).unwrap();
            }
        }
        host.run(usize::MAX);
        device.run(&mut other, usize::MAX);
        device.finish(&mut other);
        beside.set(beside.get() + device.beside);
        prop_assert_eq!(host.signals(), other.signals());
        prop_assert_eq!(&host.snapshots, &other.snapshots);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(beside.get() > 100, "{} batches were begun beside others", beside.get());
}

/// Bars of each symbol with their quotes, scaled by 1e-18, from ticks of these symbols: nothing is late, and all bars
/// close.
fn quotes_of(
    config: &StageConfig,
    ticks: &[Tick],
    symbols: &[String],
) -> Vec<(String, String, i64, [i128; 2])> {
    let mut partition = Partition::new(config);
    let of_symbols = ticks.iter().filter(|tick| symbols.contains(&tick.symbol));
    let last_ns = ticks.iter().map(|tick| tick.event_time_ns).max().unwrap_or(0);
    let end = trade("Y:END", last_ns + 60 * SECOND_NS, 1);
    for (offset, tick) in of_symbols.chain([&end]).enumerate() {
        partition.accept(offset as i64, tick);
        partition.run(usize::MAX);
    }
    assert!(partition.late.is_empty());
    let signals = partition.signals();
    let decoded = signals.iter().map(|signal| decode_signal(signal).unwrap());
    let mut quotes: Vec<_> = decoded
        .filter(|signal| signal.symbol != "Y:END")
        .filter_map(|signal| {
            let bar = signal.bar?;
            let quote = match (bar.bid_price_e9, bar.ask_price_e9, bar.exact) {
                (Some(bid_e9), Some(ask_e9), _) => [bid_e9, ask_e9].map(|price| i128::from(price) * E9),
                (_, _, exact) => {
                    let exact = exact.expect("it has the prices that the bar has not");
                    [exact.bid_price.0, exact.ask_price.0]
                }
            };
            Some((signal.symbol.to_string(), signal.bar_spec.to_string(), signal.bar_start_ns, quote))
        })
        .collect();
    quotes.sort();
    quotes
}

#[test]
fn a_bar_has_the_last_quote_before_its_end() {
    let config = config(&["1s"], SECOND_NS);
    let quote = |time_ns, bid_e9| Tick {
        kind: TickKind::Quote,
        bid_price_e9: bid_e9,
        ask_price_e9: bid_e9 + 1,
        price_e9: 0,
        size_e9: 0,
        ..trade("X:A", time_ns, 0)
    };
    let ticks = [
        quote(10 * SECOND_NS + 1, 10),
        trade("X:A", 10 * SECOND_NS + 2, 5),
        quote(10 * SECOND_NS + 3, 20),
        trade("X:B", 11 * SECOND_NS, 5),
    ];
    let ticks = [&ticks[..], &[quote(11 * SECOND_NS, 30)]].concat();
    let symbols = ["X:A", "X:B"].map(str::to_owned);
    // It closes when the quote after its end is there.
    assert_eq!(quotes_of(&config, &ticks, &symbols)[0].3, [20 * E9, 21 * E9]);
}

proptest! {
    /// The quote of a bar does not depend on the time at which other symbols have it closed.
    #[test]
    fn quotes_of_bars_are_a_function_of_their_symbol_alone(ticks in ticks()) {
        let config = config(&["1s", "3s", "tick:3", "volume:4"], 10 * SECOND_NS);
        let symbols: Vec<String> = (0..5).map(|symbol| format!("X:{symbol}")).collect();
        let all = quotes_of(&config, &ticks, &symbols);
        let mut alone: Vec<_> =
            symbols.iter().flat_map(|symbol| quotes_of(&config, &ticks, std::slice::from_ref(symbol))).collect();
        alone.sort();
        prop_assert_eq!(all, alone);
    }

    /// Cuts, and a restore at any point, change neither signals nor late ticks nor the bytes of the state.
    #[test]
    fn cuts_and_restores_do_not_show(
        ticks in ticks(),
        cuts in prop::collection::vec(1..20_usize, 1..40),
        restore_at in 0..150_usize,
    ) {
        let config = formulas::with_some(config(&["1s", "tick:3", "volume:4"], SECOND_NS / 2));
        let mut plain = Partition::new(&config);
        let mut cut = Partition::new(&config);
        let mut plain_signals = Vec::new();
        let mut cut_signals = Vec::new();
        let mut cuts = cuts.iter().cycle();
        for (offset, tick) in ticks.iter().enumerate() {
            plain.accept(offset as i64, tick);
            plain.run(usize::MAX);
            plain_signals.extend(plain.signals());
            cut.accept(offset as i64, tick);
            if offset % cuts.next().unwrap() == 0 {
                cut.run(*cuts.next().unwrap());
            }
            if offset == restore_at {
                cut.run(usize::MAX);
                cut_signals.extend(cut.signals());
                let (late, repeated) = (std::mem::take(&mut cut.late), cut.repeated);
                cut = cut.restored();
                (cut.late, cut.repeated) = (late, repeated);
            }
        }
        cut.run(usize::MAX);
        cut_signals.extend(cut.signals());
        prop_assert_eq!(plain_signals, cut_signals);
        prop_assert_eq!((&plain.late, plain.repeated), (&cut.late, cut.repeated));
        for (plain, cut) in plain.stages.iter().zip(&cut.stages) {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            plain.write(&mut left);
            cut.write(&mut right);
            prop_assert_eq!(left, right);
        }
    }

    /// A barrier gives the state at its place, whatever follows it in the same batch.
    #[test]
    fn barriers_cut_exactly(ticks in ticks(), at in any::<prop::sample::Index>(), rows in 1..50_usize) {
        let at = at.index(ticks.len());
        let config = formulas::with_some(config(&["1s", "tick:3"], SECOND_NS / 2));
        let mut partition = Partition::new(&config);
        let mut before = Partition::new(&config);
        for (offset, tick) in ticks.iter().enumerate() {
            if offset == at {
                partition.intake.barrier(7, offset as i64, &mut partition.queues);
            }
            if offset < at {
                before.accept(offset as i64, tick);
            }
            partition.accept(offset as i64, tick);
        }
        while partition.queues.iter().any(|queue| !queue.rows.is_empty()) {
            partition.run(rows);
        }
        before.run(usize::MAX);
        for (snapshots, stage) in partition.snapshots.iter().zip(&before.stages) {
            let mut expected = Vec::new();
            stage.write(&mut expected);
            prop_assert_eq!(snapshots, &[(7, expected)]);
        }
    }

    /// Damaged snapshots are errors.
    #[test]
    fn damaged_snapshots_do_not_panic(ticks in ticks(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let config = formulas::with_some(config(&["1s", "tick:3"], SECOND_NS / 2));
        let mut partition = Partition::new(&config);
        for (offset, tick) in ticks.iter().enumerate() {
            partition.accept(offset as i64, tick);
        }
        partition.run(usize::MAX);
        for stage in &partition.stages {
            let mut bytes = Vec::new();
            stage.write(&mut bytes);
            let position = at.index(bytes.len());
            prop_assert!(GroupStage::read(&config, Isa::Baseline, &bytes[..position]).is_err());
            bytes[position] ^= 1 << bit;
            drop(GroupStage::read(&config, Isa::Baseline, &bytes));
        }
    }
}
