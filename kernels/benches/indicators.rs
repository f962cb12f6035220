//! Indicators per closed bar, compared with TA-Lib and yata in the same run.
//!
//! - *1,000 symbols*: ours is streaming, with one update call per point in time and one bar of each symbol per call.
//!   TA-Lib (official Rust port) is called once per symbol over whole arrays that already are `f64`, with reused
//!   buffers.
//! - *one symbol*: yata's methods are called directly bar by bar, without its indicator layer, and combined to the same
//!   numbers, from columns of `f64`. Ours gets 64 closed bars per call, as with `tick:1` bars of a busy symbol. For
//!   comparison it also gets one per call. Its inputs are the integers of bars.
//!
//! Every library computes all 16 columns that are on by default; results are compared before any measurement. For one
//! symbol, both sides write the values of each bar to memory and read them back.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use warptape_kernels::{
    ClosedBars, INDICATORS, Indicator, IndicatorColumns, IndicatorParams, IndicatorSlab, Isa, SignalParams,
};
use yata::core::{Method, PeriodType, ValueType};
use yata::methods::{EMA, Momentum, RMA, RateOfChange, SMA, StDev, VWMA};

#[expect(dead_code, reason = "the bench needs only closed bars")]
#[path = "../tests/kernels/market.rs"]
mod market;
#[expect(dead_code, reason = "the bench compares with rivals, not with definitions")]
#[path = "../tests/kernels/indicator_reference.rs"]
mod reference;

use reference::{History, assert_close, scale};

const SYMBOLS: u32 = 1000;
const BARS: usize = 512;
const BARS_OF_ONE: usize = 4096;
const BARS_PER_CALL: usize = 64;
/// Number of columns that are on by default, which come first.
const COMPUTED: usize = 16;

fn thousand_symbols(criterion: &mut Criterion) {
    let params = IndicatorParams::default();
    let times = market::closed_bars(1, SYMBOLS, BARS);
    let histories = reference::histories(SYMBOLS, &times);
    compare_with_ta_lib(&params, &times, &histories);

    let mut group = criterion.benchmark_group("indicators, 1000 symbols");
    group.throughput(Throughput::Elements(u64::from(SYMBOLS) * BARS as u64));
    group.sample_size(10);
    for (name, isa) in [("warptape", Isa::detect()), ("warptape, baseline instructions", Isa::Baseline)] {
        let mut slab = slab(&params, SYMBOLS);
        let mut columns = IndicatorColumns::default();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for closed in &times {
                    slab.update(isa, closed, &mut columns);
                    black_box(&columns);
                }
            });
        });
    }
    let mut scratch = reference::Scratch::default();
    let mut out: [Vec<f64>; INDICATORS] = std::array::from_fn(|_| vec![0.0; BARS]);
    group.bench_function("ta-lib", |bencher| {
        bencher.iter(|| {
            for history in &histories {
                black_box(reference::ta_lib_into(&params, history, &mut scratch, &mut out))
                    .expect("inputs are right");
                black_box(&out);
            }
        });
    });
    group.finish();
}

fn one_symbol(criterion: &mut Criterion) {
    let params = IndicatorParams::default();
    let times = market::closed_bars(2, 1, BARS_OF_ONE);
    let history = reference::histories(1, &times).remove(0);
    compare_with_yata(&params, &times, &history);

    let mut group = criterion.benchmark_group("indicators, one symbol");
    group.throughput(Throughput::Elements(BARS_OF_ONE as u64));
    let all = joined(&times);
    for (name, isa) in [("warptape", Isa::detect()), ("warptape, baseline instructions", Isa::Baseline)] {
        group.bench_function(name, |bencher| {
            let mut calls = Calls::<BARS_PER_CALL>::new(&params, &all);
            bencher.iter(|| calls.run(isa, &all));
        });
    }
    group.bench_function("warptape, a call per bar", |bencher| {
        let mut calls = Calls::<1>::new(&params, &all);
        bencher.iter(|| calls.run(Isa::detect(), &all));
    });
    let mut yata = Yata::new(&params, &history);
    group.bench_function("yata", |bencher| {
        bencher.iter(|| {
            for bar in 0..BARS_OF_ONE {
                read(black_box(&yata.next(&history, bar)));
            }
        });
    });
    group.finish();
}

/// Joins the first bars of several times in one list.
fn joined(times: &[ClosedBars]) -> ClosedBars {
    let mut all = ClosedBars::default();
    times.iter().for_each(|closed| push_copy(&mut all, closed, 0));
    all
}

fn push_copy(to: &mut ClosedBars, from: &ClosedBars, bar: usize) {
    let prices = [from.open_e9[bar], from.high_e9[bar], from.low_e9[bar], from.close_e9[bar]];
    market::push(to, from.slot[bar], from.start_ns[bar], prices, from.volume_e9[bar]);
}

/// Updates with `N` bars per call.
struct Calls<const N: usize> {
    slab: IndicatorSlab,
    closed: ClosedBars,
    columns: IndicatorColumns,
}

impl<const N: usize> Calls<N> {
    fn new(params: &IndicatorParams, all: &ClosedBars) -> Self {
        let mut closed = ClosedBars::default();
        (0..N).for_each(|bar| push_copy(&mut closed, all, bar));
        Self { slab: slab(params, 1), closed, columns: IndicatorColumns::default() }
    }

    fn run(&mut self, isa: Isa, all: &ClosedBars) {
        for first in (0..BARS_OF_ONE).step_by(N) {
            // Bars are in reused memory, as in the pipeline. Only the inputs of indicators are copied: other columns
            // are the work of the bars' kernel, and yata's bars are not written here either.
            let closed = &mut self.closed;
            copy::<_, N>(&mut closed.slot, &all.slot, first);
            copy::<_, N>(&mut closed.high_e9, &all.high_e9, first);
            copy::<_, N>(&mut closed.low_e9, &all.low_e9, first);
            copy::<_, N>(&mut closed.close_e9, &all.close_e9, first);
            copy::<_, N>(&mut closed.volume_e9, &all.volume_e9, first);
            copy::<_, N>(&mut closed.notional_e18, &all.notional_e18, first);
            self.slab.update(isa, &self.closed, &mut self.columns);
            let columns = black_box(&self.columns);
            (0..N).for_each(|bar| read(&columns.of_bar(bar)));
        }
    }
}

/// Reads all values of a bar from memory.
fn read(values: &[f64]) {
    black_box(values.iter().fold(0, |checksum, value| checksum ^ value.to_bits()));
}

/// Sets all of `to` to the values at `first ..`.
fn copy<T: Copy, const N: usize>(to: &mut [T], from: &[T], first: usize) {
    let to: &mut [T; N] = to.try_into().expect("there are as many bars as a call has");
    *to = *from[first..].first_chunk().expect("bars are a whole number of calls");
}

fn slab(params: &IndicatorParams, slots: u32) -> IndicatorSlab {
    let mut slab = IndicatorSlab::new(params.clone(), &SignalParams::default());
    slab.resize(slots as usize);
    slab
}

fn compare_with_ta_lib(params: &IndicatorParams, times: &[ClosedBars], histories: &[History]) {
    let expected: Vec<_> = histories.iter().map(|history| reference::ta_lib(params, history)).collect();
    let mut slab = slab(params, SYMBOLS);
    let mut columns = IndicatorColumns::default();
    for (bar, closed) in times.iter().enumerate() {
        slab.update(Isa::detect(), closed, &mut columns);
        for (slot, expected) in expected.iter().enumerate() {
            for indicator in Indicator::ALL {
                let scale = scale(indicator, histories[slot].close[bar]);
                let (found, expected) = (columns.at(indicator, slot), expected[indicator as usize][bar]);
                assert_close(found, expected, scale, 1e-9, &format!("{indicator:?} of {slot} at {bar}"));
            }
        }
    }
}

/// yata begins its averages with the first price, so only the second half is compared, where that no longer matters.
fn compare_with_yata(params: &IndicatorParams, times: &[ClosedBars], history: &History) {
    let mut yata = Yata::new(params, history);
    let mut slab = slab(params, 1);
    let mut columns = IndicatorColumns::default();
    for (bar, closed) in times.iter().enumerate() {
        slab.update(Isa::detect(), closed, &mut columns);
        let expected = yata.next(history, bar);
        for (indicator, expected) in
            Indicator::ALL.into_iter().zip(expected).filter(|_| bar > BARS_OF_ONE / 2)
        {
            let scale = scale(indicator, history.close[bar]);
            let found = columns.at(indicator, 0);
            assert_close(found, expected, scale, 1e-7, &format!("{indicator:?} at {bar}"));
        }
    }
}

/// The indicators from yata's methods.
struct Yata {
    previous_close: ValueType,
    sma: SMA,
    ema_fast: EMA,
    ema_slow: EMA,
    bollinger_mean: SMA,
    bollinger_deviation: StDev,
    bollinger_width: ValueType,
    gain: RMA,
    loss: RMA,
    macd_fast: EMA,
    macd_slow: EMA,
    macd_signal: EMA,
    true_range: RMA,
    vwap: VWMA,
    momentum: Momentum,
    roc: RateOfChange,
    zscore_mean: SMA,
    zscore_deviation: StDev,
    squared_returns: SMA,
    returns: ValueType,
}

impl Yata {
    fn new(params: &IndicatorParams, history: &History) -> Self {
        let period = |length: u32| PeriodType::try_from(length).expect("default windows are short");
        let first = &history.close[0];
        let price = history.notional[0] / history.volume[0];
        Self {
            previous_close: *first,
            sma: SMA::new(period(params.sma), first).expect("the length is right"),
            ema_fast: EMA::new(period(params.ema_fast), first).expect("the length is right"),
            ema_slow: EMA::new(period(params.ema_slow), first).expect("the length is right"),
            bollinger_mean: SMA::new(period(params.bollinger), first).expect("the length is right"),
            bollinger_deviation: StDev::new(period(params.bollinger), first).expect("the length is right"),
            bollinger_width: params.bollinger_width * sample_to_population(params.bollinger),
            gain: RMA::new(period(params.rsi), &0.0).expect("the length is right"),
            loss: RMA::new(period(params.rsi), &0.0).expect("the length is right"),
            macd_fast: EMA::new(period(params.macd_fast), first).expect("the length is right"),
            macd_slow: EMA::new(period(params.macd_slow), first).expect("the length is right"),
            macd_signal: EMA::new(period(params.macd_signal), &0.0).expect("the length is right"),
            true_range: RMA::new(period(params.atr), &0.0).expect("the length is right"),
            vwap: VWMA::new(period(params.vwap), &(price, history.volume[0])).expect("the length is right"),
            momentum: Momentum::new(period(params.momentum), first).expect("the length is right"),
            roc: RateOfChange::new(period(params.roc), first).expect("the length is right"),
            zscore_mean: SMA::new(period(params.zscore), first).expect("the length is right"),
            zscore_deviation: StDev::new(period(params.zscore), first).expect("the length is right"),
            squared_returns: SMA::new(period(params.realised_volatility), &0.0).expect("the length is right"),
            returns: f64::from(params.realised_volatility),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "yata has no logarithm: its user takes the standard library's"
    )]
    fn next(&mut self, history: &History, bar: usize) -> [f64; COMPUTED] {
        let (high, low, close) = (history.high[bar], history.low[bar], history.close[bar]);
        let (notional, volume) = (history.notional[bar], history.volume[bar]);
        let previous_close = std::mem::replace(&mut self.previous_close, close);
        let middle = self.bollinger_mean.next(&close);
        let width = self.bollinger_width * self.bollinger_deviation.next(&close);
        let change = close - previous_close;
        let (gain, loss) = (self.gain.next(&change.max(0.0)), self.loss.next(&(-change).max(0.0)));
        let macd = self.macd_fast.next(&close) - self.macd_slow.next(&close);
        let macd_signal = self.macd_signal.next(&macd);
        let range = (high - low).max((high - previous_close).abs()).max((low - previous_close).abs());
        let deviation = self.zscore_deviation.next(&close) * sample_to_population(20);
        let change = (close / previous_close).ln();
        [
            self.sma.next(&close),
            self.ema_fast.next(&close),
            self.ema_slow.next(&close),
            middle,
            middle + width,
            middle - width,
            100.0 * gain / (gain + loss),
            macd,
            macd_signal,
            macd - macd_signal,
            self.true_range.next(&range),
            self.vwap.next(&(notional / volume, volume)),
            self.momentum.next(&close),
            self.roc.next(&close) * 100.0,
            (close - self.zscore_mean.next(&close)) / deviation,
            (self.squared_returns.next(&(change * change)) * self.returns).sqrt(),
        ]
    }
}

/// Factor that converts the deviation with n − 1 to the one with n.
fn sample_to_population(length: u32) -> f64 {
    (f64::from(length - 1) / f64::from(length)).sqrt()
}

criterion_group!(benches, thousand_symbols, one_symbol);
criterion_main!(benches);
