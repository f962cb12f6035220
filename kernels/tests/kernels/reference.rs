//! Bars and indicators straight from their definitions, over the whole history, with no thought of speed.

use std::collections::BTreeMap;

use warptape_kernels::{
    BarSpec, ClosedBars, INDICATORS, Indicator, IndicatorParams, RECENT_QUOTES_MAX, RowKind, Rows,
};

/// The bars that rows close, by definition.
pub fn bars(spec: BarSpec, rows: &Rows) -> ClosedBars {
    let mut found: Vec<(usize, Bar)> = match spec {
        BarSpec::Time { interval_ns } => time_bars(interval_ns, rows),
        BarSpec::Ticks { count } => filled_bars(rows, |bar| bar.len() as i64 >= count),
        BarSpec::Volume { volume_e9 } => filled_bars(rows, |bar| {
            bar.iter().map(|&row| size_e9(rows, row)).sum::<i128>() >= i128::from(volume_e9)
        }),
    };
    found.sort_by_key(|(cause, bar)| (*cause, bar.start_ns, bar.slot));
    let mut closed = ClosedBars::default();
    for (cause, bar) in found {
        let prices: Vec<i64> = bar.trades.iter().map(|&row| rows.price_e9[row]).collect();
        let sizes: Vec<i128> = bar.trades.iter().map(|&row| size_e9(rows, row)).collect();
        let quote = quote(spec, rows, cause, &bar);
        closed.slot.push(bar.slot);
        closed.start_ns.push(bar.start_ns);
        closed.end_ns.push(bar.end_ns);
        closed.open_e9.push(prices[0]);
        closed.high_e9.push(*prices.iter().max().expect("a bar has trades"));
        closed.low_e9.push(*prices.iter().min().expect("a bar has trades"));
        closed.close_e9.push(prices[prices.len() - 1]);
        closed.volume_e9.push(sizes.iter().sum());
        let notional = prices.iter().zip(&sizes).map(|(&price, &size)| i128::from(price) * size);
        closed.notional_e18.push(notional.sum());
        closed.trades.push(prices.len() as i64);
        closed.bid_price_e9.push(quote.map_or(0, |row| rows.price_e9[row]));
        closed.ask_price_e9.push(quote.map_or(0, |row| rows.size_e9[row]));
        closed.offset.push(rows.offset[cause]);
        closed.index.push(rows.index[cause]);
        closed.row.push(cause as u32);
    }
    closed
}

/// Row of the quote that a bar has: of a time bar the last by event time and arrival before its end, whenever it came; of others
/// the last at its end or before, of those that came before the row that closed it.
fn quote(spec: BarSpec, rows: &Rows, cause: usize, bar: &Bar) -> Option<usize> {
    let of_slot = |&row: &usize| rows.kind[row] == RowKind::QUOTE && rows.slot[row] == bar.slot;
    let last = |quotes: Vec<usize>| quotes.into_iter().max_by_key(|&row| (rows.time_ns[row], row));
    if let BarSpec::Time { .. } = spec {
        return last((0..rows.len()).filter(of_slot).filter(|&row| rows.time_ns[row] < bar.end_ns).collect());
    }
    let (after, quotes): (Vec<usize>, Vec<usize>) =
        (0..cause).filter(of_slot).partition(|&row| rows.time_ns[row] > bar.end_ns);
    if after.len() < RECENT_QUOTES_MAX { last(quotes) } else { None }
}

fn size_e9(rows: &Rows, row: usize) -> i128 {
    i128::from(rows.size_e9[row]) * 10_i128.pow(rows.kind[row].exponent())
}

struct Bar {
    slot: u32,
    start_ns: i64,
    end_ns: i64,
    /// Rows, first trade first.
    trades: Vec<usize>,
}

fn time_bars(interval_ns: i64, rows: &Rows) -> Vec<(usize, Bar)> {
    let mut open: BTreeMap<(i64, u32), Vec<usize>> = BTreeMap::new();
    for row in 0..rows.len() {
        if rows.kind[row].is_trade() {
            open.entry((rows.time_ns[row].div_euclid(interval_ns), rows.slot[row])).or_default().push(row);
        }
    }
    let mut found = Vec::new();
    for ((number, slot), mut trades) in open {
        let end_ns = (number + 1) * interval_ns;
        let cause =
            (0..rows.len()).find(|&row| rows.kind[row] == RowKind::WATERMARK && rows.time_ns[row] >= end_ns);
        if let Some(cause) = cause {
            trades.sort_by_key(|&row| rows.time_ns[row]);
            found.push((cause, Bar { slot, start_ns: number * interval_ns, end_ns, trades }));
        }
    }
    found
}

fn filled_bars(rows: &Rows, is_full: impl Fn(&[usize]) -> bool) -> Vec<(usize, Bar)> {
    let mut open: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut found = Vec::new();
    for row in 0..rows.len() {
        if !rows.kind[row].is_trade() {
            continue;
        }
        let slot = rows.slot[row];
        let trades = open.entry(slot).or_default();
        trades.push(row);
        if is_full(trades) {
            let trades = std::mem::take(trades);
            let (start_ns, end_ns) = (rows.time_ns[trades[0]], rows.time_ns[row]);
            found.push((row, Bar { slot, start_ns, end_ns, trades }));
        }
    }
    found
}

/// The history of one slot.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Closes as integers, for what floats would cancel away.
    pub close_e9: Vec<i128>,
    pub high: Vec<f64>,
    pub low: Vec<f64>,
    pub close: Vec<f64>,
    pub volume: Vec<f64>,
    pub notional: Vec<f64>,
}

impl History {
    pub fn push(&mut self, closed: &ClosedBars, row: usize) {
        self.close_e9.push(closed.close_e9[row].into());
        self.high.push(closed.high_e9[row] as f64 / 1e9);
        self.low.push(closed.low_e9[row] as f64 / 1e9);
        self.close.push(closed.close_e9[row] as f64 / 1e9);
        self.volume.push(closed.volume_e9[row] as f64 / 1e9);
        self.notional.push(closed.notional_e18[row] as f64 / 1e18);
    }
}

/// All indicators after the last bar of a history, by definition.
#[expect(clippy::disallowed_methods, reason = "a rough reference for our own logarithm")]
pub fn indicators(params: &IndicatorParams, history: &History) -> [f64; INDICATORS] {
    let close = &history.close;
    let bars = close.len();
    let last = |values: &[f64], count: u32| {
        values.len().checked_sub(count as usize).map(|start| values[start..].to_vec())
    };
    let changes: Vec<f64> = close.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut out = [f64::NAN; INDICATORS];
    let mut set = |indicator: Indicator, value: Option<f64>| {
        if let Some(value) = value {
            out[indicator as usize] = value;
        }
    };

    set(Indicator::Sma, last(close, params.sma).map(|window| mean(&window)));
    set(Indicator::EmaFast, exponential(close, params.ema_fast).last().copied());
    set(Indicator::EmaSlow, exponential(close, params.ema_slow).last().copied());
    if let Some(window) = last(close, params.bollinger) {
        let [_, deviation] = distance_and_deviation(&history.close_e9, params.bollinger);
        let width = params.bollinger_width * deviation;
        set(Indicator::BollingerMiddle, Some(mean(&window)));
        set(Indicator::BollingerUpper, Some(mean(&window) + width));
        set(Indicator::BollingerLower, Some(mean(&window) - width));
    }
    let gains: Vec<f64> = changes.iter().map(|change| change.max(0.0)).collect();
    let losses: Vec<f64> = changes.iter().map(|change| (-change).max(0.0)).collect();
    if let (Some(gain), Some(loss)) = (wilder(&gains, params.rsi), wilder(&losses, params.rsi)) {
        set(Indicator::Rsi, Some(if gain + loss == 0.0 { 0.0 } else { 100.0 * gain / (gain + loss) }));
    }
    let skipped = (params.macd_slow - params.macd_fast) as usize;
    let fast = exponential(close.get(skipped..).unwrap_or_default(), params.macd_fast);
    let slow = exponential(close, params.macd_slow);
    let macd: Vec<f64> = fast.iter().zip(&slow).map(|(fast, slow)| fast - slow).collect();
    if let Some(signal) = exponential(&macd, params.macd_signal).last() {
        let macd = macd[macd.len() - 1];
        set(Indicator::Macd, Some(macd));
        set(Indicator::MacdSignal, Some(*signal));
        set(Indicator::MacdHistogram, Some(macd - signal));
    }
    let ranges: Vec<f64> = (1..bars)
        .map(|bar| {
            let (high, low, before) = (history.high[bar], history.low[bar], close[bar - 1]);
            (high - low).max((high - before).abs()).max((low - before).abs())
        })
        .collect();
    set(Indicator::Atr, wilder(&ranges, params.atr));
    if let (Some(notional), Some(volume)) =
        (last(&history.notional, params.vwap), last(&history.volume, params.vwap))
    {
        let volume: f64 = volume.iter().sum();
        set(Indicator::Vwap, (volume > 0.0).then(|| notional.iter().sum::<f64>() / volume));
    }
    let before = |count: u32| bars.checked_sub(1 + count as usize).map(|bar| close[bar]);
    set(Indicator::Momentum, before(params.momentum).map(|before| close[bars - 1] - before));
    set(Indicator::Roc, before(params.roc).map(|before| (close[bars - 1] / before - 1.0) * 100.0));
    if bars >= params.zscore as usize {
        let [distance, deviation] = distance_and_deviation(&history.close_e9, params.zscore);
        set(Indicator::Zscore, Some(if deviation == 0.0 { 0.0 } else { distance / deviation }));
    }
    let squares: Vec<f64> = close.windows(2).map(|pair| (pair[1] / pair[0]).ln().powi(2)).collect();
    let volatility =
        last(&squares, params.realised_volatility).map(|window| window.iter().sum::<f64>().sqrt());
    set(Indicator::RealisedVolatility, volatility);
    out
}

fn mean(window: &[f64]) -> f64 {
    window.iter().sum::<f64>() / window.len() as f64
}

/// Of the last closes: newest minus mean, and population standard deviation. Nothing is rounded before the end.
fn distance_and_deviation(close_e9: &[i128], length: u32) -> [f64; 2] {
    let window = &close_e9[close_e9.len() - length as usize..];
    let (count, newest) = (i128::from(length), window[window.len() - 1]);
    let sum: i128 = window.iter().map(|close| close - newest).sum();
    let squares: i128 = window.iter().map(|close| (close - newest) * (close - newest)).sum();
    let scale = 1e9 * count as f64;
    [-sum as f64 / scale, ((count * squares - sum * sum) as f64).sqrt() / scale]
}

/// The averages after each value from the n-th on.
fn exponential(values: &[f64], length: u32) -> Vec<f64> {
    let length = length as usize;
    if values.len() < length {
        return Vec::new();
    }
    let mut averages = vec![mean(&values[..length])];
    for value in &values[length..] {
        let last = averages[averages.len() - 1];
        averages.push(last + (value - last) * 2.0 / (length as f64 + 1.0));
    }
    averages
}

fn wilder(values: &[f64], length: u32) -> Option<f64> {
    let length = length as usize;
    let seed = mean(values.get(..length)?);
    let weight = length as f64;
    Some(values[length..].iter().fold(seed, |average, value| (average * (weight - 1.0) + value) / weight))
}

/// Panics unless two numbers are both NaN or within `tolerance`, relative to the greater or to `scale`.
#[track_caller]
pub fn assert_close(found: f64, expected: f64, scale: f64, tolerance: f64, what: &str) {
    let size = found.abs().max(expected.abs()).max(scale);
    let close = (found.is_nan() && expected.is_nan()) || (found - expected).abs() <= tolerance * size;
    assert!(close, "{what}: found {found:e}, expected {expected:e}, off by {:e}", (found - expected) / size);
}
