//! Symbols that leave memory and come back.

use std::cell::Cell;

use super::*;

/// Ticks of a few busy symbols and of others that rest for long, a second or two apart now and then.
fn ticks_with_rests() -> impl Strategy<Value = Vec<Tick>> {
    let symbol = prop_oneof![12 => 0..2_u32, 1 => 2..12_u32];
    let step = prop_oneof![8 => 0..SECOND_NS / 5, 1 => SECOND_NS..3 * SECOND_NS, 1 => -SECOND_NS / 4..0];
    let row = (symbol, any::<bool>(), step, 1..90_i64);
    prop::collection::vec(row, 50..300).prop_map(|rows| {
        let mut time_ns = 100 * SECOND_NS;
        let mut one = |(symbol, is_quote, step_ns, price): (u32, bool, i64, i64)| {
            time_ns += step_ns;
            let tick = Tick { trade_id: price, ..trade(&format!("X:{symbol}"), time_ns, price * E9 as i64) };
            if !is_quote {
                return tick;
            }
            // Every third quote has one side.
            let ask_price_e9 = if price % 3 == 0 { 0 } else { (price + 1) * E9 as i64 };
            let (bid_price_e9, kind) = (tick.price_e9, TickKind::Quote);
            Tick { kind, bid_price_e9, ask_price_e9, price_e9: 0, size_e9: 0, trade_id: 0, ..tick }
        };
        rows.into_iter().map(&mut one).collect()
    })
}

/// The place at which groups run.
enum Lanes {
    Host,
    Device(Box<OnDevice>),
}

impl Lanes {
    fn run(&mut self, partition: &mut Partition) {
        match self {
            Self::Host => partition.run(usize::MAX),
            Self::Device(device) => {
                device.run(partition, usize::MAX);
                device.finish(partition);
            }
        }
    }
}

impl Partition {
    /// Takes the symbols of a page back, whose state is there.
    fn take_page_back(&mut self, page: i32, offset: i64) {
        let bytes = self.pages.remove(&page).expect("its barrier was met");
        assert!(self.intake.take_back(page, &bytes[..bytes.len() - 1], offset, &mut self.queues).is_err());
        self.intake.take_back(page, &bytes, offset, &mut self.queues).unwrap();
    }

    /// Takes a snapshot before the record at an offset, at which idle symbols leave.
    fn evict(&mut self, idle_ns: Option<i64>, offset: i64, before: i64) {
        self.intake.evict(idle_ns, offset, before, &mut self.queues);
        self.intake.barrier(offset, offset, &mut self.queues);
    }
}

/// Symbols leave at any points, on the host and on a device, with restores from the remaining states. Signals, late
/// ticks, the market and the last states equal those of a partition that keeps all symbols.
#[test]
fn symbols_that_leave_and_come_back_do_not_show() {
    let emulator = Emulator::new();
    let (left, back) = (Cell::new(0), Cell::new(0));
    let at = || prop::collection::vec(any::<prop::sample::Index>(), 1..12);
    let inputs = (any::<bool>(), ticks_with_rests(), at(), at(), any::<prop::sample::Index>());
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 120,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let result = runner.run(&inputs, |(on_device, ticks, barriers, moved_back, restore_at)| {
        let config = formulas::with_some(config(&["1s", "tick:3", "volume:4"], SECOND_NS / 2));
        let [barriers, moved_back] = [barriers, moved_back]
            .map(|at| at.iter().map(|at| at.index(ticks.len())).collect::<Vec<usize>>());
        let restore_at = restore_at.index(ticks.len());
        let (mut plain, mut other) = (Partition::new(&config), Partition::new(&config));
        let mut lanes = Lanes::Host;
        if on_device {
            let groups = DeviceGroups::new("cuda:0", Box::new(emulator.device(usize::MAX)), &config).unwrap();
            let mut device = OnDevice { groups, begun: None, beside: 0 };
            for (group, stage) in std::mem::take(&mut other.stages).into_iter().enumerate() {
                device.groups.install(group, Box::new(stage)).unwrap();
            }
            lanes = Lanes::Device(Box::new(device));
        }
        let mut before = 0;
        for (offset, tick) in (0_i64..).zip(&ticks) {
            if barriers.contains(&(offset as usize)) {
                plain.intake.barrier(offset, offset, &mut plain.queues);
                other.evict(Some(0), offset, before);
                before = offset;
                lanes.run(&mut other);
                left.set(left.get() + other.intake.evicted().symbols());
            }
            if restore_at == offset as usize && !on_device {
                other.run(usize::MAX);
                other.evict(None, offset, before);
                other.run(usize::MAX);
                let (late, pages) = (other.late.clone(), other.pages.clone());
                let signals = other.signals();
                prop_assert_eq!(
                    {
                        plain.run(usize::MAX);
                        plain.signals()
                    },
                    signals
                );
                other = other.restored();
                (other.late, other.pages) = (late, pages);
            }
            if moved_back.contains(&(offset as usize)) && offset % 7 == 0 {
                let back_ns = tick.event_time_ns - 5 * SECOND_NS;
                plain.set_event_time(offset, back_ns);
                other.set_event_time(offset, back_ns);
                continue;
            }
            let number = other.intake.symbols().id(&tick.symbol);
            if let Some(page) = number.and_then(|number| other.intake.evicted().page_of(number)) {
                back.set(back.get() + 1);
                other.take_page_back(page, offset);
            }
            plain.accept(offset, tick);
            other.accept(offset, tick);
        }
        plain.run(usize::MAX);
        lanes.run(&mut other);
        prop_assert_eq!(plain.signals(), other.signals());
        prop_assert_eq!(&plain.late, &other.late);
        for symbol in 0..12 {
            let of = |partition: &Partition| partition.intake.market_of(&format!("X:{symbol}"), 0, 0);
            prop_assert_eq!(of(&plain), of(&other));
        }
        let end = ticks.len() as i64;
        let pages: Vec<i32> = other.intake.evicted().pages().keys().copied().collect();
        pages.into_iter().for_each(|page| other.take_page_back(page, end - 1));
        other.snapshots.iter_mut().for_each(Vec::clear);
        other.evict(None, end, before);
        plain.snapshots.iter_mut().for_each(Vec::clear);
        plain.intake.barrier(end, end, &mut plain.queues);
        plain.run(usize::MAX);
        lanes.run(&mut other);
        prop_assert_eq!(&plain.snapshots, &other.snapshots);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(left.get() > 200 && back.get() > 50, "{} left and {} came back", left.get(), back.get());
}

#[test]
fn symbols_with_open_bars_or_too_few_stay() {
    let config = config(&["1s"], SECOND_NS);
    let mut partition = Partition::new(&config);
    for symbol in 0..9 {
        partition.accept(symbol, &trade(&format!("X:{symbol}"), 10 * SECOND_NS, 5));
    }
    let evicted = |partition: &mut Partition, idle_ns, offset| {
        partition.intake.evict(Some(idle_ns), offset, 0, &mut partition.queues);
        partition.intake.barrier(offset, offset, &mut partition.queues);
        partition.run(usize::MAX);
        partition.intake.evicted().symbols()
    };
    partition.accept(9, &trade("X:0", 13 * SECOND_NS, 5));
    assert_eq!(evicted(&mut partition, 0, 10), 0, "their bars may be open");
    partition.accept(10, &trade("X:0", 13 * SECOND_NS + 1, 5));
    assert_eq!(evicted(&mut partition, 60 * SECOND_NS, 11), 0, "they are not idle for a minute");
    assert_eq!(evicted(&mut partition, 0, 11), 8);
    partition.accept(11, &trade("X:0", 14 * SECOND_NS, 5));
    for symbol in 10..20 {
        partition.accept(symbol + 2, &trade(&format!("X:{symbol}"), 17 * SECOND_NS + symbol % 2, 5));
    }
    partition.accept(30, &trade("X:11", 20 * SECOND_NS + 1, 5));
    assert_eq!(evicted(&mut partition, 0, 31), 14, "one page more, of those that are idle");
    assert_eq!(partition.intake.symbol_count(), 19);
}
