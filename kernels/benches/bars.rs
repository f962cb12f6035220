//! Folding rows into bars, in rows per second on one core, with 100 slots and batches of 4,096 rows. Also, sorting a
//! batch of 64,000 rows of 10,000 slots for a device.
//!
//! No other known library does the same work. There are 100,000 trades per second of event time, with slots in random
//! order.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warptape_kernels::device::{GroupRows, StagedRows};
use warptape_kernels::{BarSlab, BarSpec, ClosedBars, Rows};

const SLOTS: u32 = 100;
const BATCHES: usize = 64;
const ROWS: usize = 4096;
const TICK_NS: i64 = 10_000;
const LATENESS_NS: i64 = 1_000_000_000;

/// Batches of trades, with a watermark row at each second, and a quote for every `trades_per_quote` trades.
fn batches(trades_per_quote: u64) -> Vec<Rows> {
    let mut numbers: u64 = 7;
    let mut next = |limit: u64| {
        numbers = numbers.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (numbers >> 33) % limit
    };
    let mut time_ns = 1_723_000_000_000_000_000_i64;
    (0..BATCHES as i64)
        .map(|offset| {
            let mut rows = Rows::default();
            for index in 0..ROWS as u32 {
                let second = time_ns / 1_000_000_000;
                time_ns += TICK_NS;
                if time_ns / 1_000_000_000 > second {
                    rows.push_watermark(time_ns - LATENESS_NS, offset, index);
                }
                let (slot, price_e9) =
                    (next(SLOTS.into()) as u32, 50_000_000_000 + next(1000) as i64 * 10_000_000);
                if next(trades_per_quote + 1) == 0 {
                    rows.push_quote(slot, time_ns, price_e9, price_e9 + 1, offset, index);
                } else {
                    rows.push_trade(slot, time_ns, price_e9, 1 + next(1_000_000_000) as i64, offset, index);
                }
            }
            rows
        })
        .collect()
}

fn fold(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fold, 100 slots");
    for (name, trades_per_quote, specs) in [
        ("1s, trades", u64::MAX - 1, &["1s"][..]),
        ("1s and 1m, trades", u64::MAX - 1, &["1s", "1m"]),
        ("1s and 1m, a quote per trade", 1, &["1s", "1m"]),
        ("tick:100", u64::MAX - 1, &["tick:100"]),
        ("tick:100, a quote per trade", 1, &["tick:100"]),
    ] {
        let batches = batches(trades_per_quote);
        let specs: Vec<BarSpec> = specs.iter().map(|text| text.parse().expect("a specification")).collect();
        group.throughput(Throughput::Elements(batches.iter().map(|rows| rows.len() as u64).sum()));
        group.bench_function(name, |bencher| {
            let mut closed = ClosedBars::default();
            bencher.iter(|| {
                let slab = |spec: &BarSpec| {
                    let mut slab = BarSlab::new(*spec, LATENESS_NS);
                    slab.resize(SLOTS as usize);
                    slab
                };
                let mut slabs: Vec<BarSlab> = specs.iter().map(slab).collect();
                for rows in &batches {
                    for slab in &mut slabs {
                        closed.clear();
                        slab.fold(rows, 0..rows.len(), &mut closed);
                        black_box(&closed);
                    }
                }
            });
        });
    }
    group.finish();
}

fn stage(criterion: &mut Criterion) {
    const SLOTS: u32 = 10_000;
    const ROWS: u32 = 64_000;
    let mut rows = Rows::default();
    let mut number: u64 = 7;
    for index in 0..ROWS {
        number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let slot = (number >> 33) as u32 % SLOTS;
        rows.push_trade(slot, i64::from(index), 50_000_000_000, 1_000_000_000, 0, index);
    }
    let mut group = criterion.benchmark_group("rows sorted for a device");
    group.throughput(Throughput::Elements(ROWS.into()));
    group.bench_function("64,000 trades of 10,000 slots", |bencher| {
        let slots: Vec<u32> = (0..SLOTS).collect();
        let mut memory = Vec::new();
        bencher.iter(|| {
            let groups = [GroupRows { slots: &slots, rows: &rows, range: 0..ROWS as usize }];
            let staged = StagedRows::count(&groups);
            memory.resize(staged.bytes().div_ceil(size_of::<u128>()), 0_u128);
            black_box(staged.write(bytemuck::cast_slice_mut(&mut memory), 0));
        });
    });
    group.finish();
}

criterion_group!(benches, fold, stage);
criterion_main!(benches);
