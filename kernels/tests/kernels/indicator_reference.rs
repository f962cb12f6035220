//! Two references for indicators: a slow one that follows their definitions over the whole history of a symbol, and
//! TA-Lib's official Rust port.

use ta_lib::{Core, MAType, OutRange, RetCode};
use warptape_kernels::{ClosedBars, INDICATORS, Indicator, IndicatorParams};

/// The history of one slot.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Closes as integers, for differences in which floating-point numbers would cancel.
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

/// All indicators after the last bar of a history, by their definitions.
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
    if params.stochastic > 0 {
        let percent = |end: usize| -> Option<f64> {
            let window = end.checked_sub(params.stochastic as usize)?..end;
            let highest = history.high[window.clone()].iter().copied().fold(f64::MIN, f64::max);
            let lowest = history.low[window].iter().copied().fold(f64::MAX, f64::min);
            let share = (close[end - 1] - lowest) / (highest - lowest);
            Some(if highest == lowest { 0.0 } else { 100.0 * share })
        };
        set(Indicator::StochasticK, percent(bars));
        let ends = (bars + 1).saturating_sub(params.stochastic_average as usize).max(1)..=bars;
        let percents: Option<Vec<f64>> = ends.map(percent).collect();
        let percents = percents.filter(|percents| percents.len() == params.stochastic_average as usize);
        set(Indicator::StochasticD, percents.map(|percents| mean(&percents)));
    }
    out
}

/// Least reference value for a relative difference: differences of prices may be near 0 although prices are not.
pub fn scale(indicator: Indicator, close: f64) -> f64 {
    match indicator {
        Indicator::Macd | Indicator::MacdSignal | Indicator::MacdHistogram | Indicator::Momentum => close,
        Indicator::Roc | Indicator::StochasticK | Indicator::StochasticD => 100.0,
        Indicator::Zscore => 1.0,
        _ => 0.0,
    }
}

fn mean(window: &[f64]) -> f64 {
    window.iter().sum::<f64>() / window.len() as f64
}

/// Newest close minus mean, and population standard deviation, of the last closes; only the final results are rounded.
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

/// Panics unless two numbers are both NaN, or differ by at most `tolerance`, relative to the greater one or to `scale`.
#[track_caller]
pub fn assert_close(found: f64, expected: f64, scale: f64, tolerance: f64, what: &str) {
    let size = found.abs().max(expected.abs()).max(scale);
    let close = (found.is_nan() && expected.is_nan()) || (found - expected).abs() <= tolerance * size;
    assert!(close, "{what}: found {found:e}, expected {expected:e}, off by {:e}", (found - expected) / size);
}

/// The bars of each slot, from lists of bars by time.
pub fn histories(slots: u32, times: &[ClosedBars]) -> Vec<History> {
    let mut histories = vec![History::default(); slots as usize];
    for closed in times {
        for row in 0..closed.len() {
            histories[closed.slot[row] as usize].push(closed, row);
        }
    }
    histories
}

/// All indicators at all bars of one symbol; NaN where TA-Lib has no value. TA-Lib has no z-score, no rolling VWAP and
/// no realised volatility; these are combined from its vector functions.
pub fn ta_lib(params: &IndicatorParams, history: &History) -> [Vec<f64>; INDICATORS] {
    let mut out: [Vec<f64>; INDICATORS] = std::array::from_fn(|_| vec![f64::NAN; history.close.len()]);
    let mut scratch = Scratch::default();
    let ranges = ta_lib_into(params, history, &mut scratch, &mut out).expect("inputs are of equal length");
    for (column, range) in out.iter_mut().zip(ranges) {
        column.truncate(range.count);
        column.splice(..0, std::iter::repeat_n(f64::NAN, range.beg_idx));
    }
    out
}

/// Intermediate columns of [`ta_lib_into`].
#[derive(Debug, Default)]
pub struct Scratch {
    first: Vec<f64>,
    second: Vec<f64>,
}

/// As [`ta_lib`], but values stay at the start of `out`, for the returned ranges of bars.
pub fn ta_lib_into(
    params: &IndicatorParams,
    history: &History,
    scratch: &mut Scratch,
    out: &mut [Vec<f64>; INDICATORS],
) -> Result<[OutRange; INDICATORS], RetCode> {
    let core = Core::new();
    let History { high, low, close, volume, notional, .. } = history;
    let end = close.len() - 1;
    let length = |length: u32| i32::try_from(length).expect("windows are short");
    let [
        sma,
        ema_fast,
        ema_slow,
        middle,
        upper,
        lower,
        rsi,
        macd,
        macd_signal,
        macd_histogram,
        atr,
        vwap,
        momentum,
        roc,
        zscore,
        volatility,
        stochastic_k,
        stochastic_d,
    ] = out;
    let Scratch { first, second } = scratch;
    first.resize(close.len(), 0.0);
    second.resize(close.len(), 0.0);

    let sma_range = core.sma(0, end, close, length(params.sma), sma)?;
    let ema_fast_range = core.ema(0, end, close, length(params.ema_fast), ema_fast)?;
    let ema_slow_range = core.ema(0, end, close, length(params.ema_slow), ema_slow)?;
    let width = params.bollinger_width;
    let bollinger = length(params.bollinger);
    let bands = core.bbands(0, end, close, bollinger, width, width, MAType::SMA, upper, middle, lower)?;
    let rsi_range = core.rsi(0, end, close, length(params.rsi), rsi)?;
    let (fast, slow, signal) =
        (length(params.macd_fast), length(params.macd_slow), length(params.macd_signal));
    let macd_range = core.macd(0, end, close, fast, slow, signal, macd, macd_signal, macd_histogram)?;
    let atr_range = core.atr(0, end, high, low, close, length(params.atr), atr)?;
    let momentum_range = core.mom(0, end, close, length(params.momentum), momentum)?;
    let roc_range = core.roc(0, end, close, length(params.roc), roc)?;

    let vwap_range = core.sum(0, end, notional, length(params.vwap), first)?;
    core.sum(0, end, volume, length(params.vwap), second)?;
    core.div(0, vwap_range.count.saturating_sub(1), first, second, vwap)?;

    // (close − mean) / deviation
    let zscore_range = core.sma(0, end, close, length(params.zscore), first)?;
    core.sub(0, zscore_range.count.saturating_sub(1), &close[zscore_range.beg_idx..], first, zscore)?;
    core.stddev(0, end, close, length(params.zscore), 1.0, first)?;
    for (score, deviation) in zscore.iter_mut().zip(&*first) {
        *score /= deviation;
    }

    // √Σ ln²(close / previous close)
    core.div(0, end - 1, &close[1..], close, first)?;
    core.ln(0, end - 1, first, second)?;
    core.mult(0, end - 1, second, second, first)?;
    let sums = core.sum(0, end - 1, &first[..end], length(params.realised_volatility), second)?;
    core.sqrt(0, sums.count.saturating_sub(1), second, volatility)?;
    let volatility_range = OutRange { beg_idx: sums.beg_idx + 1, ..sums };

    // TA-Lib returns K from the first D on, which is from the first K on if the mean is of one value.
    let mut stochastic = [OutRange { beg_idx: close.len(), count: 0 }; 2];
    if params.stochastic > 0 {
        let (k, d) = (length(params.stochastic), length(params.stochastic_average));
        stochastic[1] = core.stochf(0, end, high, low, close, k, d, MAType::SMA, first, stochastic_d)?;
        stochastic[0] = core.stochf(0, end, high, low, close, k, 1, MAType::SMA, stochastic_k, first)?;
    }

    let mut ranges = [OutRange { beg_idx: close.len(), count: 0 }; INDICATORS];
    for (indicator, range) in [
        (Indicator::Sma, sma_range),
        (Indicator::EmaFast, ema_fast_range),
        (Indicator::EmaSlow, ema_slow_range),
        (Indicator::BollingerMiddle, bands),
        (Indicator::BollingerUpper, bands),
        (Indicator::BollingerLower, bands),
        (Indicator::Rsi, rsi_range),
        (Indicator::Macd, macd_range),
        (Indicator::MacdSignal, macd_range),
        (Indicator::MacdHistogram, macd_range),
        (Indicator::Atr, atr_range),
        (Indicator::Vwap, vwap_range),
        (Indicator::Momentum, momentum_range),
        (Indicator::Roc, roc_range),
        (Indicator::Zscore, zscore_range),
        (Indicator::RealisedVolatility, volatility_range),
        (Indicator::StochasticK, stochastic[0]),
        (Indicator::StochasticD, stochastic[1]),
    ] {
        ranges[indicator as usize] = range;
    }
    Ok(ranges)
}
