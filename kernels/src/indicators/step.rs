//! The loop that moves indicators one bar on.
//!
//! ```text
//! per block of slots   closed bars ─┐
//!   read    columns ────────────────┼▶ lanes          (vector loads where the slots follow each other)
//!   squared returns                 │  lanes          (vector)
//!   rings   push, sum the windows   │  per slot       (vector along the window)
//!   indicators                      │  lanes          (vector)
//!   write   lanes ──────────────────┴▶ columns, output columns
//! ```

#![expect(clippy::needless_range_loop, reason = "a lane is a position in several arrays at once")]

use super::columns::{INDICATORS, Indicator, IndicatorColumns};
use super::formulas;
use super::ring::{sum, sums_from};
use super::slab::{CLOSE_WINDOWS_MAX, IndicatorSlab, WEIGHT_MAX, Weight};
use super::slots::Slots;
use crate::bars::ClosedBars;
use crate::isa::Work;

/// Slots that move on together. One slot at a time gives the same bits.
const LANES: usize = 8;

/// One call of [`IndicatorSlab::update`].
pub(super) struct Update<'a> {
    pub slab: &'a mut IndicatorSlab,
    pub closed: &'a ClosedBars,
    pub out: &'a mut IndicatorColumns,
}

impl Work for Update<'_> {
    #[inline(always)]
    fn run(mut self) {
        let mut row = 0;
        while row < self.closed.len() {
            match self.closed.slot[row..].first_chunk::<LANES>() {
                Some(slots) if distinct(slots) => {
                    self.step(row, slots);
                    row += LANES;
                }
                _ => {
                    self.step(row, &[self.closed.slot[row]]);
                    row += 1;
                }
            }
        }
    }
}

/// Whether no slot occurs twice.
#[inline(always)]
fn distinct(slots: &[u32; LANES]) -> bool {
    let mut equal = false;
    for distance in 1..=LANES / 2 {
        for lane in 0..LANES {
            equal |= slots[lane] == slots[(lane + distance) % LANES];
        }
    }
    !equal
}

impl Update<'_> {
    /// Moves slots, all different, on by the bars at `row ..`.
    #[inline(always)]
    fn step<const L: usize>(&mut self, row: usize, slots: &[u32; L]) {
        let slots = Slots::new(slots);
        let mut bars = slots.read(&self.slab.columns.bars);
        let mut settled = true;
        for lane in 0..L {
            bars[lane] += 1;
            settled &= bars[lane] > self.slab.periods.settled_after;
        }
        slots.write(&mut self.slab.columns.bars, &bars);
        if settled {
            self.step_bars::<L, true>(row, &slots, &bars);
        } else {
            self.step_bars::<L, false>(row, &slots, &bars);
        }
    }

    #[inline(always)]
    fn step_bars<const L: usize, const SETTLED: bool>(
        &mut self,
        row: usize,
        slots: &Slots<L>,
        bars: &[i64; L],
    ) {
        let high = scaled(&self.closed.high_e9, row);
        let low = scaled(&self.closed.low_e9, row);
        let close = scaled(&self.closed.close_e9, row);
        let previous_close = slots.read(&self.slab.columns.previous_close);
        slots.write(&mut self.slab.columns.previous_close, &close);

        let mut squared_return = [0.0; L];
        for lane in 0..L {
            squared_return[lane] = formulas::squared_return(close[lane], previous_close[lane]);
        }
        let windows = self.push(row, slots, &close, &squared_return);

        let mut out = [[0.0; L]; INDICATORS];
        self.averages::<L, SETTLED>(slots, bars, &close, &mut out);
        self.ranges::<L, SETTLED>(slots, bars, [&high, &low, &close, &previous_close], &mut out);
        self.windows::<L, SETTLED>(bars, &close, &windows, &mut out);
        for (column, lanes) in self.out.values.iter_mut().zip(&out) {
            column[row..row + L].copy_from_slice(lanes);
        }
    }

    /// Puts the bars into the rings and sums the windows.
    #[inline(always)]
    fn push<const L: usize>(
        &mut self,
        row: usize,
        slots: &Slots<L>,
        close: &[f64; L],
        squared_return: &[f64; L],
    ) -> Windows<L> {
        let slab = &mut *self.slab;
        let mut windows = Windows::ZERO;
        for (number, ring) in slab.closes.rings.iter_mut().enumerate().take(CLOSE_WINDOWS_MAX) {
            for lane in 0..L {
                windows.oldest[number][lane] = ring.push(slots.numbers[lane], close[lane]);
                if slab.closes.moments[number] {
                    let (sum, square_sum) = sums_from(ring.window(slots.numbers[lane]), close[lane]);
                    windows.sum[number][lane] = sum;
                    windows.square_sum[number][lane] = square_sum;
                }
            }
        }
        for lane in 0..L {
            let slot = slots.numbers[lane];
            slab.squared_returns.push(slot, squared_return[lane]);
            windows.squared_returns[lane] = sum(slab.squared_returns.window(slot));

            let weight = Weight {
                notional_e18: self.closed.notional_e18[row + lane].clamp(0, WEIGHT_MAX),
                volume_e9: self.closed.volume_e9[row + lane].clamp(0, WEIGHT_MAX),
            };
            let oldest = slab.weights.push(slot, weight);
            let sums = &mut slab.weight_sums[slot];
            sums.notional_e18 += weight.notional_e18 - oldest.notional_e18;
            sums.volume_e9 += weight.volume_e9 - oldest.volume_e9;
            windows.notional_e18[lane] = nearly(sums.notional_e18);
            windows.volume_e9[lane] = nearly(sums.volume_e9);
        }
        windows
    }

    /// EMA and MACD.
    #[inline(always)]
    fn averages<const L: usize, const SETTLED: bool>(
        &mut self,
        slots: &Slots<L>,
        bars: &[i64; L],
        close: &[f64; L],
        out: &mut [[f64; L]; INDICATORS],
    ) {
        let (columns, periods) = (&mut self.slab.columns, &self.slab.periods);
        let mut ema_fast = slots.read(&columns.ema_fast);
        let mut ema_slow = slots.read(&columns.ema_slow);
        let mut macd_fast = slots.read(&columns.macd_fast);
        let mut macd_slow = slots.read(&columns.macd_slow);
        let mut macd_signal = slots.read(&columns.macd_signal);
        for lane in 0..L {
            let (sample, close) = (bars[lane], close[lane]);
            ema_fast[lane] = periods.ema_fast.exponential::<SETTLED>(ema_fast[lane], close, sample);
            ema_slow[lane] = periods.ema_slow.exponential::<SETTLED>(ema_slow[lane], close, sample);
            out[Indicator::EmaFast as usize][lane] =
                periods.ema_fast.when_full::<SETTLED>(ema_fast[lane], sample);
            out[Indicator::EmaSlow as usize][lane] =
                periods.ema_slow.when_full::<SETTLED>(ema_slow[lane], sample);

            let fast_sample = sample - (periods.macd_slow.length - periods.macd_fast.length);
            macd_fast[lane] = periods.macd_fast.exponential::<SETTLED>(macd_fast[lane], close, fast_sample);
            macd_slow[lane] = periods.macd_slow.exponential::<SETTLED>(macd_slow[lane], close, sample);
            let macd = macd_fast[lane] - macd_slow[lane];
            let signal_sample = sample - (periods.macd_slow.length - 1);
            let signal = periods.macd_signal.exponential::<SETTLED>(macd_signal[lane], macd, signal_sample);
            macd_signal[lane] = signal;
            for (indicator, value) in [
                (Indicator::Macd, macd),
                (Indicator::MacdSignal, signal),
                (Indicator::MacdHistogram, macd - signal),
            ] {
                out[indicator as usize][lane] =
                    periods.macd_signal.when_full::<SETTLED>(value, signal_sample);
            }
        }
        slots.write(&mut columns.ema_fast, &ema_fast);
        slots.write(&mut columns.ema_slow, &ema_slow);
        slots.write(&mut columns.macd_fast, &macd_fast);
        slots.write(&mut columns.macd_slow, &macd_slow);
        slots.write(&mut columns.macd_signal, &macd_signal);
    }

    /// RSI and ATR, whose samples begin with the second bar.
    #[inline(always)]
    fn ranges<const L: usize, const SETTLED: bool>(
        &mut self,
        slots: &Slots<L>,
        bars: &[i64; L],
        [high, low, close, previous_close]: [&[f64; L]; 4],
        out: &mut [[f64; L]; INDICATORS],
    ) {
        let (columns, periods) = (&mut self.slab.columns, &self.slab.periods);
        let mut gain = slots.read(&columns.gain);
        let mut loss = slots.read(&columns.loss);
        let mut true_range = slots.read(&columns.true_range);
        for lane in 0..L {
            let sample = bars[lane] - 1;
            let change = close[lane] - previous_close[lane];
            let up = if change > 0.0 { change } else { 0.0 };
            gain[lane] = periods.rsi.wilder::<SETTLED>(gain[lane], up, sample);
            loss[lane] = periods.rsi.wilder::<SETTLED>(loss[lane], up - change, sample);
            let rsi = formulas::rsi(gain[lane], loss[lane]);
            out[Indicator::Rsi as usize][lane] = periods.rsi.when_full::<SETTLED>(rsi, sample);

            let range = formulas::true_range(high[lane], low[lane], previous_close[lane]);
            true_range[lane] = periods.atr.wilder::<SETTLED>(true_range[lane], range, sample);
            out[Indicator::Atr as usize][lane] = periods.atr.when_full::<SETTLED>(true_range[lane], sample);
        }
        slots.write(&mut columns.gain, &gain);
        slots.write(&mut columns.loss, &loss);
        slots.write(&mut columns.true_range, &true_range);
    }

    /// What comes from windows of closes, returns and weights.
    #[inline(always)]
    fn windows<const L: usize, const SETTLED: bool>(
        &mut self,
        bars: &[i64; L],
        close: &[f64; L],
        windows: &Windows<L>,
        out: &mut [[f64; L]; INDICATORS],
    ) {
        let (closes, periods) = (&self.slab.closes, &self.slab.periods);
        let [sma, bollinger, zscore] = [closes.sma, closes.bollinger, closes.zscore];
        for lane in 0..L {
            let (sample, close) = (bars[lane], close[lane]);
            let mean = close + windows.sum[sma][lane] * periods.sma.inverse;
            out[Indicator::Sma as usize][lane] = periods.sma.when_full::<SETTLED>(mean, sample);

            let distance = windows.sum[bollinger][lane] * periods.bollinger.inverse;
            let square = windows.square_sum[bollinger][lane] * periods.bollinger.inverse;
            let (middle, width) =
                (close + distance, periods.bollinger_width * formulas::deviation(distance, square));
            for (indicator, value) in [
                (Indicator::BollingerMiddle, middle),
                (Indicator::BollingerUpper, middle + width),
                (Indicator::BollingerLower, middle - width),
            ] {
                out[indicator as usize][lane] = periods.bollinger.when_full::<SETTLED>(value, sample);
            }

            let distance = windows.sum[zscore][lane] * periods.zscore.inverse;
            let square = windows.square_sum[zscore][lane] * periods.zscore.inverse;
            let score = formulas::zscore(distance, formulas::deviation(distance, square));
            out[Indicator::Zscore as usize][lane] = periods.zscore.when_full::<SETTLED>(score, sample);

            let vwap = formulas::vwap(windows.notional_e18[lane], windows.volume_e9[lane]);
            out[Indicator::Vwap as usize][lane] = periods.vwap.when_full::<SETTLED>(vwap, sample);

            let momentum = close - windows.oldest[closes.momentum][lane];
            out[Indicator::Momentum as usize][lane] =
                periods.momentum.when_full::<SETTLED>(momentum, sample - 1);
            let roc = formulas::rate_of_change(close, windows.oldest[closes.roc][lane]);
            out[Indicator::Roc as usize][lane] = periods.roc.when_full::<SETTLED>(roc, sample - 1);

            let volatility = formulas::realised_volatility(windows.squared_returns[lane]);
            out[Indicator::RealisedVolatility as usize][lane] =
                periods.realised_volatility.when_full::<SETTLED>(volatility, sample - 1);
        }
    }
}

/// What a block of slots got from its rings.
struct Windows<const L: usize> {
    /// By ring of closes: the close that left it.
    oldest: [[f64; L]; CLOSE_WINDOWS_MAX],
    /// By ring of closes: Σd and Σd², d being the distance from the newest close.
    sum: [[f64; L]; CLOSE_WINDOWS_MAX],
    square_sum: [[f64; L]; CLOSE_WINDOWS_MAX],
    squared_returns: [f64; L],
    notional_e18: [f64; L],
    volume_e9: [f64; L],
}

impl<const L: usize> Windows<L> {
    const ZERO: Self = Self {
        oldest: [[0.0; L]; CLOSE_WINDOWS_MAX],
        sum: [[0.0; L]; CLOSE_WINDOWS_MAX],
        square_sum: [[0.0; L]; CLOSE_WINDOWS_MAX],
        squared_returns: [0.0; L],
        notional_e18: [0.0; L],
        volume_e9: [0.0; L],
    };
}

#[inline(always)]
fn scaled<const L: usize>(column_e9: &[i64], row: usize) -> [f64; L] {
    let column_e9 = &column_e9[row..][..L];
    let mut lanes = [0.0; L];
    for lane in 0..L {
        lanes[lane] = formulas::scaled(column_e9[lane]);
    }
    lanes
}

/// A non-negative integer below 2^126 as a number, within 1.5 units in the last place: two roundings, no branch.
#[inline(always)]
fn nearly(value: i128) -> f64 {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    (value >> 63) as i64 as f64 * TWO_TO_63 + (value as i64 & i64::MAX) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_distinct_or_not() {
        let slots = [7, 3, 9, 1, 0, 2, 8, 4];
        assert!(distinct(&slots));
        for first in 0..LANES {
            for second in first + 1..LANES {
                let mut slots = slots;
                slots[second] = slots[first];
                assert!(!distinct(&slots), "{first} {second}");
            }
        }
    }

    #[test]
    fn wide_integers_are_nearly_converted() {
        for shift in 0..126 {
            for value in
                [1_i128 << shift, (1_i128 << shift) - 1, (0x1234_5678_9abc_def1 << 60) >> (125 - shift)]
            {
                let (found, expected) = (nearly(value), value as f64);
                assert!((found - expected).abs() <= expected * f64::EPSILON, "{value}: {found} {expected}");
            }
        }
    }
}
