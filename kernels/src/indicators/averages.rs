//! Indicators that are averages over all bars so far: EMA, MACD, RSI, ATR.

use super::formulas::{self, Period};
use super::table::{ALWAYS, Indicator, IndicatorParams};

/// Number of quantities per slot, without windows. Averages hold sums until they have their first samples.
pub(super) const AVERAGES: usize = 10;

/// Number of bars so far, a whole number below 2^53.
pub(super) const BARS: usize = 0;
pub(super) const PREVIOUS_CLOSE: usize = 1;
const EMA_FAST: usize = 2;
const EMA_SLOW: usize = 3;
const MACD_FAST: usize = 4;
const MACD_SLOW: usize = 5;
const MACD_SIGNAL: usize = 6;
const GAIN: usize = 7;
const LOSS: usize = 8;
const TRUE_RANGE: usize = 9;

/// Prices of one bar of each slot.
pub(super) struct Prices<const L: usize> {
    pub high: [f64; L],
    pub low: [f64; L],
    pub close: [f64; L],
}

/// Constants of the averages.
#[derive(Clone, Debug)]
pub(super) struct Averages {
    ema_fast: Period,
    ema_slow: Period,
    macd_fast: Period,
    macd_slow: Period,
    macd_signal: Period,
    rsi: Period,
    atr: Period,
    /// Number of bars of a slot after which all averages are past their seeds and all windows are full.
    pub settled_after: f64,
}

impl Averages {
    pub fn new(params: &IndicatorParams) -> Self {
        let longest = params.windows().map(|(_, window)| window).fold(0, u32::max);
        // A kept value may depend on other kept values; the sum of all lengths covers the longest such chain.
        let kept = params.kept_lengths().into_iter().sum();
        Self {
            ema_fast: Period::new(params.ema_fast),
            ema_slow: Period::new(params.ema_slow),
            macd_fast: Period::new(params.macd_fast),
            macd_slow: Period::new(params.macd_slow),
            macd_signal: Period::new(params.macd_signal),
            rsi: Period::new(params.rsi),
            atr: Period::new(params.atr),
            settled_after: f64::from((longest + 1).max(params.macd_slow + params.macd_signal).max(kept)),
        }
    }

    /// Advances the averages by a bar, which `state[BARS]` already counts.
    #[inline(always)]
    pub fn step<const L: usize, const SETTLED: bool>(
        &self,
        state: &mut [[f64; L]; AVERAGES],
        prices: &Prices<L>,
        out: &mut [[f64; L]; ALWAYS],
    ) {
        let fast_skips = self.macd_slow.length - self.macd_fast.length;
        let signal_skips = self.macd_slow.length - 1.0;
        for lane in 0..L {
            let (sample, close) = (state[BARS][lane], prices.close[lane]);
            let ema_fast = self.ema_fast.exponential::<SETTLED>(state[EMA_FAST][lane], close, sample);
            let ema_slow = self.ema_slow.exponential::<SETTLED>(state[EMA_SLOW][lane], close, sample);
            state[EMA_FAST][lane] = ema_fast;
            state[EMA_SLOW][lane] = ema_slow;
            out[Indicator::EmaFast as usize][lane] = self.ema_fast.when_full::<SETTLED>(ema_fast, sample);
            out[Indicator::EmaSlow as usize][lane] = self.ema_slow.when_full::<SETTLED>(ema_slow, sample);
        }
        for lane in 0..L {
            let (sample, close) = (state[BARS][lane], prices.close[lane]);
            let fast =
                self.macd_fast.exponential::<SETTLED>(state[MACD_FAST][lane], close, sample - fast_skips);
            let slow = self.macd_slow.exponential::<SETTLED>(state[MACD_SLOW][lane], close, sample);
            let (macd, sample) = (fast - slow, sample - signal_skips);
            let signal = self.macd_signal.exponential::<SETTLED>(state[MACD_SIGNAL][lane], macd, sample);
            state[MACD_FAST][lane] = fast;
            state[MACD_SLOW][lane] = slow;
            state[MACD_SIGNAL][lane] = signal;
            out[Indicator::Macd as usize][lane] = self.macd_signal.when_full::<SETTLED>(macd, sample);
            out[Indicator::MacdSignal as usize][lane] = self.macd_signal.when_full::<SETTLED>(signal, sample);
            out[Indicator::MacdHistogram as usize][lane] =
                self.macd_signal.when_full::<SETTLED>(macd - signal, sample);
        }
        // Changes and true ranges begin with the second bar.
        for lane in 0..L {
            let (sample, previous_close) = (state[BARS][lane] - 1.0, state[PREVIOUS_CLOSE][lane]);
            let change = prices.close[lane] - previous_close;
            let up = if change > 0.0 { change } else { 0.0 };
            let gain = self.rsi.wilder::<SETTLED>(state[GAIN][lane], up, sample);
            let loss = self.rsi.wilder::<SETTLED>(state[LOSS][lane], up - change, sample);
            state[GAIN][lane] = gain;
            state[LOSS][lane] = loss;
            out[Indicator::Rsi as usize][lane] =
                self.rsi.when_full::<SETTLED>(formulas::rsi(gain, loss), sample);

            let range = formulas::true_range(prices.high[lane], prices.low[lane], previous_close);
            let average = self.atr.wilder::<SETTLED>(state[TRUE_RANGE][lane], range, sample);
            state[TRUE_RANGE][lane] = average;
            out[Indicator::Atr as usize][lane] = self.atr.when_full::<SETTLED>(average, sample);
        }
    }
}
