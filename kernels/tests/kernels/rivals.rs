//! The same indicators from TA-Lib's official Rust port: whole arrays of one symbol at a time.

use ta_lib::{Core, MAType, OutRange, RetCode};
use warptape_kernels::{ClosedBars, INDICATORS, Indicator, IndicatorParams};

use crate::reference::History;

/// The bars of each slot, from bars by time.
pub fn histories(slots: u32, times: &[ClosedBars]) -> Vec<History> {
    let mut histories = vec![History::default(); slots as usize];
    for closed in times {
        for row in 0..closed.len() {
            histories[closed.slot[row] as usize].push(closed, row);
        }
    }
    histories
}

/// All indicators at all bars of one symbol, NaN where TA-Lib has none. It has no z-score, no rolling VWAP and no
/// realised volatility: those are put together from its vector functions.
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

/// Intermediate columns.
#[derive(Debug, Default)]
pub struct Scratch {
    first: Vec<f64>,
    second: Vec<f64>,
}

/// Likewise without moving the values to their bars: `out` has them from its beginning on, for the ranges returned.
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

    // √Σ ln²(close / close before)
    core.div(0, end - 1, &close[1..], close, first)?;
    core.ln(0, end - 1, first, second)?;
    core.mult(0, end - 1, second, second, first)?;
    let sums = core.sum(0, end - 1, &first[..end], length(params.realised_volatility), second)?;
    core.sqrt(0, sums.count.saturating_sub(1), second, volatility)?;
    let volatility_range = OutRange { beg_idx: sums.beg_idx + 1, ..sums };

    let mut ranges = [sma_range; INDICATORS];
    for (indicator, range) in [
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
    ] {
        ranges[indicator as usize] = range;
    }
    Ok(ranges)
}
