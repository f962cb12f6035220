//! Bars: rows of several groups through the kernels of a device, in parts, and through their twins.

use warptape_kernels::device::{
    CLOSE_BARS, DeviceBar, DevicePart, FOLD_QUOTES, FOLD_RUNS, FoldArgs, NONE, RUN, StagedRows,
};
use warptape_kernels::{BarSlab, BarSpec, ClosedBars, QuoteSlab, RowKind, Rows};

use super::Device;
use crate::bars::specs;
use crate::market::{Market, Numbers};

const SECOND_NS: i64 = 1_000_000_000;

/// A bar that closed: slot, row that closed it, what else is in it.
type Bar = (u32, u32, [i64; 9], [i128; 2]);

/// Moves some markets to the time around the epoch, and gives some trades as large as they can be: sums of them saturate.
fn extreme(seed: u64, mut rows: Rows) -> Rows {
    // A multiple of all intervals.
    const AWAY_NS: i64 = 1_723_000_020 * SECOND_NS;
    for row in 0..rows.len() {
        if seed % 2 == 1 && rows.kind[row] != RowKind::Barrier {
            rows.time_ns[row] -= AWAY_NS;
        }
        if seed % 3 == 1 && rows.kind[row] == RowKind::Trade {
            rows.price_e9[row] = i64::MAX - row as i64;
            rows.size_e9[row] = i64::MAX / 2 + row as i64;
        }
    }
    rows
}

/// Bars and quotes of one group.
struct Group {
    bars: Vec<BarSlab>,
    quotes: QuoteSlab,
    slots: usize,
    rows: Rows,
}

impl Group {
    fn new(market: &Market) -> Group {
        let slots = market.slots as usize;
        let slab = |spec: &BarSpec| BarSlab::new(*spec, market.allowed_lateness_ns);
        let mut group = Group {
            bars: market.specs.iter().map(slab).collect(),
            quotes: QuoteSlab::default(),
            slots,
            rows: extreme(market.seed, market.rows()),
        };
        group.bars.iter_mut().for_each(|bars| bars.resize(slots));
        group.quotes.resize(slots);
        group
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.bars.iter().for_each(|bars| bars.write(&mut bytes));
        self.quotes.write(&mut bytes);
        bytes
    }

    /// By specification: the bars that some rows close, in order.
    fn run_on_host(&mut self, rows: &Rows) -> Vec<Vec<Bar>> {
        let all = 0..rows.len();
        let mut closed_by_spec = Vec::new();
        for bars in &mut self.bars {
            let mut closed = ClosedBars::default();
            bars.fold(rows, all.clone(), &mut closed);
            self.quotes.fill(rows, all.clone(), &mut closed);
            closed_by_spec.push(bars_of(&closed));
        }
        self.quotes.fold(rows, all);
        closed_by_spec
    }
}

fn bars_of(closed: &ClosedBars) -> Vec<Bar> {
    let bar = |bar: usize| {
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
        (closed.slot[bar], closed.row[bar], numbers, [closed.volume_e9[bar], closed.notional_e18[bar]])
    };
    (0..closed.len()).map(bar).collect()
}

/// By specification and group: the bars that the rows close, each slot's in order.
fn run_on<D: Device>(
    device: &mut D,
    market: &Market,
    groups: &mut [Group],
    parts: &[Rows],
) -> Result<Vec<Vec<Vec<Bar>>>, String> {
    let staged: Vec<(usize, &Rows)> = groups.iter().map(|group| group.slots).zip(parts).collect();
    let staged = StagedRows::new(&staged);
    let places = staged.group.len();
    // Slots of a device are anywhere.
    let capacity = places + 2;
    let slots: Vec<u32> = (0..places as u32).map(|place| capacity as u32 - 1 - place).collect();
    let of_place: Vec<(usize, usize)> = groups
        .iter()
        .enumerate()
        .flat_map(|(group, of)| (0..of.slots).map(move |slot| (group, slot)))
        .collect();
    let first_row: Vec<u32> =
        parts.iter().scan(0, |rows, part| Some(std::mem::replace(rows, *rows + part.len() as u32))).collect();
    let trades = staged.trade_row.len();

    let mut quotes = [vec![0_i64; capacity], vec![0_i64; capacity]];
    for (place, &(group, slot)) in of_place.iter().enumerate() {
        let quote = groups[group].quotes.quote(slot);
        (0..2).for_each(|side| quotes[side][slots[place] as usize] = quote[side]);
    }
    let rows = FoldArgs {
        places: places as u64,
        slot: device.upload(&slots),
        group: device.upload(&staged.group),
        trades: trades as u64,
        trade_begin: device.upload(&staged.trade_begin),
        trade_place: device.upload(&staged.trade_place),
        trade_row: device.upload(&staged.trade_row),
        trade_time_ns: device.upload(&staged.trade_time_ns),
        trade_price_e9: device.upload(&staged.trade_price_e9),
        trade_size_e9: device.upload(&staged.trade_size_e9),
        quote_begin: device.upload(&staged.quote_begin),
        quote_row: device.upload(&staged.quote_row),
        quote_bid_e9: device.upload(&staged.quote_bid_e9),
        quote_ask_e9: device.upload(&staged.quote_ask_e9),
        mark_begin: device.upload(&staged.mark_begin),
        mark_row: device.upload(&staged.mark_row),
        mark_ns: device.upload(&staged.mark_ns),
        bid_e9: device.upload(&quotes[0]),
        ask_e9: device.upload(&quotes[1]),
        parts: device.upload(&vec![DevicePart::default(); trades]),
        part_count: device.upload(&vec![0_u32; trades.div_ceil(RUN)]),
        ..FoldArgs::default()
    };

    let mut closed_by_spec = Vec::new();
    for (spec, bar_spec) in market.specs.iter().enumerate() {
        let of_spec = FoldArgs::new(*bar_spec, market.allowed_lateness_ns);
        let open_max = of_spec.open_max as usize;
        let mut open = vec![DeviceBar::default(); capacity * open_max];
        let mut open_count = vec![0_u32; capacity];
        for (place, &(group, slot)) in of_place.iter().enumerate() {
            let (bars, slot) = (groups[group].bars[spec].open_bars(slot), slots[place] as usize);
            open[slot * open_max..][..bars.len()].copy_from_slice(&bars);
            open_count[slot] = bars.len() as u32;
        }
        let open_before: usize = open_count.iter().map(|count| *count as usize).sum();
        let closed_max = trades + open_before;
        let mut column = || device.upload(&vec![0_i64; closed_max]);
        let columns: [u64; 9] = std::array::from_fn(|_| column());
        let [
            start_ns,
            end_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            closed_trades,
            closed_bid_e9,
            closed_ask_e9,
        ] = columns;
        let args = FoldArgs {
            kind: of_spec.kind,
            parameter: of_spec.parameter,
            open_max: of_spec.open_max,
            open: device.upload(&open),
            open_count: device.upload(&open_count),
            closed_max: closed_max as u64,
            closed_count: device.upload(&[0_u32]),
            failed: device.upload(&[0_u32]),
            first: device.upload(&vec![NONE; places]),
            next: device.upload(&vec![NONE; closed_max]),
            closed_place: device.upload(&vec![NONE; closed_max]),
            closed_row: device.upload(&vec![NONE; closed_max]),
            start_ns,
            end_ns,
            open_e9,
            high_e9,
            low_e9,
            close_e9,
            closed_trades,
            closed_bid_e9,
            closed_ask_e9,
            volume_e9: device.upload(&vec![0_i128; closed_max]),
            notional_e18: device.upload(&vec![0_i128; closed_max]),
            ..rows
        };
        device.launch(&FOLD_RUNS, &args, trades.div_ceil(RUN));
        device.launch(&CLOSE_BARS, &args, places);
        if device.download::<u32>(args.failed, 1) != [0] {
            return Err(format!("{bar_spec}: there is no room for all bars"));
        }

        let count = device.download::<u32>(args.closed_count, 1)[0] as usize;
        let numbers = columns.map(|column| device.download::<i64>(column, count));
        let sums = [args.volume_e9, args.notional_e18].map(|column| device.download::<i128>(column, count));
        let closed_row = device.download::<u32>(args.closed_row, count);
        let closed_place = device.download::<u32>(args.closed_place, count);
        let next = device.download::<u32>(args.next, count);
        let first = device.download::<u32>(args.first, places);
        let mut closed = vec![Vec::new(); groups.len()];
        let mut listed = 0;
        for (place, &(group, slot)) in of_place.iter().enumerate() {
            let mut id = first[place];
            while id != NONE {
                let bar = id as usize;
                assert_eq!(closed_place[bar] as usize, place, "a slot's list has its own bars");
                let numbers = numbers.each_ref().map(|column| column[bar]);
                let sums = sums.each_ref().map(|column| column[bar]);
                closed[group].push((slot as u32, closed_row[bar] - first_row[group], numbers, sums));
                listed += 1;
                id = next[bar];
            }
        }
        assert_eq!(listed, count, "every bar is in a list");
        closed_by_spec.push(closed);

        let open: Vec<DeviceBar> = device.download(args.open, capacity * open_max);
        let open_count: Vec<u32> = device.download(args.open_count, capacity);
        for (number, group) in groups.iter_mut().enumerate() {
            group.bars[spec] = BarSlab::new(*bar_spec, market.allowed_lateness_ns);
            group.bars[spec].resize(group.slots);
            let places = of_place.iter().zip(&slots).filter(|((of, _), _)| *of == number);
            for ((_, slot), &at) in places {
                let bars = &open[at as usize * open_max..][..open_count[at as usize] as usize];
                group.bars[spec].set_open_bars(*slot, bars);
            }
        }
    }
    device.launch(&FOLD_QUOTES, &rows, places);
    let quotes = [rows.bid_e9, rows.ask_e9].map(|side| device.download::<i64>(side, capacity));
    for (place, &(group, slot)) in of_place.iter().enumerate() {
        groups[group].quotes.set_quote(slot, quotes.each_ref().map(|side| side[slots[place] as usize]));
    }
    device.clear();
    Ok(closed_by_spec)
}

/// The rows of a range, as a batch would have them.
fn part_of(rows: &Rows, from: usize, to: usize) -> Rows {
    let mut rest = rows.clone();
    rest.take_front(from);
    rest.take_front(to - from)
}

/// Rows of three groups go through the kernels of a device and through their twins, in batches; says what differs first.
pub fn compare<D: Device>(device: &mut D, seed: u64, slots: u32, ticks: usize) -> Result<(), String> {
    let market = |group: u64| Market {
        seed: seed ^ group << 32,
        slots: slots + group as u32,
        ticks: ticks >> group,
        allowed_lateness_ns: 2 * SECOND_NS,
        specs: specs(),
    };
    let markets = [0, 1, 2].map(market);
    let mut host = markets.each_ref().map(Group::new);
    let mut other = markets.each_ref().map(Group::new);
    let mut numbers = Numbers::new(seed);
    let batches = 1 + numbers.below(4) as usize;
    for batch in 0..batches {
        let part = |group: &Group| {
            let cut = |batch: usize| group.rows.len() * batch / batches;
            part_of(&group.rows, cut(batch), cut(batch + 1))
        };
        let parts = host.each_ref().map(part);
        let found = run_on(device, &markets[0], &mut other, &parts)?;
        for (group, (of, rows)) in host.iter_mut().zip(&parts).enumerate() {
            for (spec, mut expected) in of.run_on_host(rows).into_iter().enumerate() {
                // Each slot's in order: what closes first among slots is the host's to sort.
                expected.sort_by_key(|(slot, ..)| *slot);
                if expected != found[spec][group] {
                    let differs =
                        expected.iter().zip(&found[spec][group]).find(|(expected, found)| expected != found);
                    let counts = [expected.len(), found[spec][group].len()];
                    return Err(format!(
                        "batch {batch}, group {group}, {}: {counts:?} bars, {differs:?}",
                        specs()[spec]
                    ));
                }
            }
        }
        if host.iter().zip(&other).any(|(host, other)| host.bytes() != other.bytes()) {
            return Err(format!("batch {batch}: the state differs"));
        }
    }
    Ok(())
}
