//! Indicators over a window of the last bars: SMA, Bollinger bands, z-score, momentum, rate of change, VWAP, realised
//! volatility, stochastic oscillator.

use std::array;

use super::averages::{AVERAGES, Prices};
use super::formulas;
use super::lanes::{BlockRows, SlotPlaces};
use super::ring::Ring;
use super::rolling::{MOMENTS, RollingMoments, RollingSums};
use super::table::{ALWAYS, FURTHER, Indicator, IndicatorParams, KEPT, Kept};
use super::ties::{Line, settled, settled_band};
use crate::signals::SignalParams;

/// Most different windows of moments: those of SMA, Bollinger bands and z-score may differ.
pub(super) const MOMENTS_MAX: usize = 3;

/// First quantities of the sums over windows in a slot's state, after the averages. Sums come before their peaks.
pub(super) const SQUARED_RETURNS: usize = AVERAGES;
pub(super) const WEIGHTS: usize = SQUARED_RETURNS + 2;
pub(super) const MOMENTS_OF_CLOSES: usize = WEIGHTS + 4;

/// Number of quantities per slot.
pub(super) const QUANTITIES: usize = MOMENTS_OF_CLOSES + MOMENTS_MAX * MOMENTS;

/// The values of the last bars that indicators need.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// The last closes, as many as the longest window over closes needs.
    pub closes: Ring<1>,
    /// One entry for each length over which some indicator needs moments.
    pub moments: Vec<MomentsWindow>,
    pub squared_returns: RollingSums<1>,
    /// Sums of notional and of volume.
    pub weights: RollingSums<2>,
    /// Kept values of indicators, by [`Kept`](super::table::Kept); the length is 0 if the indicator is off.
    pub kept: [Ring<1>; KEPT],
    momentum: usize,
    roc: usize,
}

/// Moments of closes, and the indicators that need them.
#[derive(Clone, Debug)]
pub(super) struct MomentsWindow {
    pub rolling: RollingMoments,
    pub sma: bool,
    /// Width of the Bollinger bands; `None` if they use another window.
    pub bollinger: Option<f64>,
    pub zscore: bool,
    /// Lines on which a close may lie: those of the bands, and of the z-score's threshold.
    pub lines: [Line; 2],
    /// The threshold of the z-score.
    pub threshold: f64,
}

/// The values of a bar that enter the windows, by lane.
pub(super) struct Entering<const L: usize> {
    pub prices: Prices<L>,
    pub squared_return: [f64; L],
    /// Notional in 1e-18 and volume in 1e-9.
    pub weights: [[f64; L]; 2],
    /// Number of bars before this one.
    pub bars_before: [f64; L],
}

impl Windows {
    pub fn new(params: &IndicatorParams, signals: &SignalParams) -> Self {
        let IndicatorParams { sma, bollinger, zscore, momentum, roc, vwap, realised_volatility, .. } =
            *params;
        let closes = [sma, bollinger, zscore, momentum, roc].into_iter().fold(0, u32::max);
        let mut lengths = vec![sma, bollinger, zscore];
        lengths.sort_unstable();
        lengths.dedup();
        let moments = lengths.into_iter().map(|length| MomentsWindow {
            rolling: RollingMoments::new(length),
            sma: sma == length,
            bollinger: (bollinger == length).then_some(params.bollinger_width),
            zscore: zscore == length,
            lines: [Line::new(params.bollinger_width), Line::new(signals.zscore_threshold)],
            threshold: signals.zscore_threshold,
        });
        Self {
            closes: Ring::new(closes),
            moments: moments.collect(),
            squared_returns: RollingSums::new(realised_volatility),
            weights: RollingSums::new(vwap),
            kept: params.kept_lengths().map(Ring::new),
            momentum: momentum as usize,
            roc: roc as usize,
        }
    }

    /// Makes room for `slots` slots.
    pub fn resize(&mut self, slots: usize) {
        self.closes.resize(slots);
        self.squared_returns.ring.resize(slots);
        self.weights.ring.resize(slots);
        self.kept.iter_mut().for_each(|ring| ring.resize(slots));
    }

    /// Copies the values of a slot from another value.
    pub fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        self.closes.copy_slot(to, &from.closes, slot);
        self.squared_returns.ring.copy_slot(to, &from.squared_returns.ring, slot);
        self.weights.ring.copy_slot(to, &from.weights.ring, slot);
        for (ring, from) in self.kept.iter_mut().zip(&from.kept) {
            ring.copy_slot(to, from, slot);
        }
    }

    /// Adds one bar per slot and sets the indicators. If `SETTLED` is true, all windows were full before.
    #[inline(always)]
    pub fn roll<const L: usize, const SETTLED: bool, P: SlotPlaces<L>>(
        &mut self,
        place: &P,
        state: &mut [BlockRows<QUANTITIES>],
        entering: &Entering<L>,
        out: &mut [[f64; L]; ALWAYS],
    ) {
        let Entering { bars_before, .. } = entering;
        // Rings of the same length have the same position.
        let length = self.closes.length;
        let closes_at = place.steps(bars_before, length);
        let squared_returns = self.squared_returns.ring.length;
        let squared_returns_at =
            if squared_returns == length { closes_at } else { place.steps(bars_before, squared_returns) };
        let weights = self.weights.ring.length;
        let weights_at = if weights == length { closes_at } else { place.steps(bars_before, weights) };

        self.roll_closes::<L, SETTLED, P>(place, closes_at, state, entering, out);
        let [squares] = self.squared_returns.roll(
            place,
            squared_returns_at,
            state,
            SQUARED_RETURNS,
            &[entering.squared_return],
        );
        for lane in 0..L {
            let volatility = formulas::realised_volatility(squares[lane]);
            out[Indicator::RealisedVolatility as usize][lane] =
                after::<SETTLED>(squared_returns, bars_before[lane], volatility);
        }
        let [notional, volume] = self.weights.roll(place, weights_at, state, WEIGHTS, &entering.weights);
        for lane in 0..L {
            let price = formulas::vwap(notional[lane], volume[lane]);
            out[Indicator::Vwap as usize][lane] = after::<SETTLED>(weights - 1, bars_before[lane], price);
        }
    }

    /// Adds the same bars to those indicators that may be off and are on. It is called after [`Windows::roll`], and
    /// only if there are such indicators.
    #[inline(always)]
    pub fn roll_further<const L: usize, const SETTLED: bool, P: SlotPlaces<L>>(
        &mut self,
        place: &P,
        entering: &Entering<L>,
        out: &mut [[f64; L]; FURTHER],
    ) {
        if self.kept[Kept::StochasticHighs as usize].length > 0 {
            self.roll_stochastic::<L, SETTLED, P>(place, entering, out);
        }
    }

    /// Adds the same bars to the stochastic oscillator. It reads the whole window at each bar, because a maximum cannot
    /// be rolled like a sum.
    #[inline(always)]
    fn roll_stochastic<const L: usize, const SETTLED: bool, P: SlotPlaces<L>>(
        &mut self,
        place: &P,
        entering: &Entering<L>,
        out: &mut [[f64; L]; FURTHER],
    ) {
        let Entering { prices: Prices { high, low, close }, bars_before, .. } = entering;
        let length = self.kept[Kept::StochasticHighs as usize].length;
        let steps = place.steps(bars_before, length);
        place.exchange(&mut self.kept[Kept::StochasticHighs as usize], steps, &[*high]);
        place.exchange(&mut self.kept[Kept::StochasticLows as usize], steps, &[*low]);
        let (mut highest, mut lowest) = (*high, *low);
        for back in 1..length {
            let [high] = place.read(&self.kept[Kept::StochasticHighs as usize], steps, back);
            let [low] = place.read(&self.kept[Kept::StochasticLows as usize], steps, back);
            for lane in 0..L {
                highest[lane] = if high[lane] > highest[lane] { high[lane] } else { highest[lane] };
                lowest[lane] = if low[lane] < lowest[lane] { low[lane] } else { lowest[lane] };
            }
        }
        let mut percents = [0.0; L];
        for lane in 0..L {
            let reach = highest[lane] - lowest[lane];
            let percent = 100.0 * ((close[lane] - lowest[lane]) / reach);
            percents[lane] = if reach > 0.0 { percent } else { 0.0 };
            out[Indicator::StochasticK.further()][lane] =
                after::<SETTLED>(length - 1, bars_before[lane], percents[lane]);
        }
        let averaged = &mut self.kept[Kept::StochasticPercents as usize];
        let steps = place.steps(bars_before, averaged.length);
        place.exchange(averaged, steps, &[percents]);
        // The sums have the same shape as all other sums over windows.
        let mut sums = [[0.0; L]; 4];
        for value in 0..averaged.length {
            let [percents] = place.read(averaged, steps, averaged.length - 1 - value);
            for lane in 0..L {
                sums[value % 4][lane] += percents[lane];
            }
        }
        let needed = length + averaged.length - 2;
        for lane in 0..L {
            let sum = (sums[0][lane] + sums[2][lane]) + (sums[1][lane] + sums[3][lane]);
            let mean = sum / averaged.length as f64;
            out[Indicator::StochasticD.further()][lane] = after::<SETTLED>(needed, bars_before[lane], mean);
        }
    }

    /// Adds the same bars to the indicators that need only closes.
    #[inline(always)]
    fn roll_closes<const L: usize, const SETTLED: bool, P: SlotPlaces<L>>(
        &mut self,
        place: &P,
        steps: P::Steps,
        state: &mut [BlockRows<QUANTITIES>],
        entering: &Entering<L>,
        out: &mut [[f64; L]; ALWAYS],
    ) {
        let Entering { prices: Prices { close, .. }, bars_before, .. } = entering;
        let [before] = place.read(&self.closes, steps, self.momentum);
        for lane in 0..L {
            let change = close[lane] - before[lane];
            out[Indicator::Momentum as usize][lane] =
                after::<SETTLED>(self.momentum, bars_before[lane], change);
        }
        let before =
            if self.roc == self.momentum { before } else { place.read(&self.closes, steps, self.roc)[0] };
        for lane in 0..L {
            let rate = formulas::rate_of_change(close[lane], before[lane]);
            out[Indicator::Roc as usize][lane] = after::<SETTLED>(self.roc, bars_before[lane], rate);
        }
        // The values that leave the windows are read before the new value overwrites the oldest one of the longest
        // window.
        let mut oldest = [[0.0; L]; MOMENTS_MAX];
        for (oldest, window) in oldest.iter_mut().zip(&self.moments) {
            [*oldest] = place.read(&self.closes, steps, window.rolling.length);
        }
        place.exchange(&mut self.closes, steps, &[*close]);
        for (number, (oldest, window)) in oldest.iter().zip(&self.moments).enumerate() {
            let first = MOMENTS_OF_CLOSES + number * MOMENTS;
            let moments = window.rolling.roll(place, steps, state, first, &self.closes, [close, oldest]);
            let length = window.rolling.length;
            if window.sma {
                for lane in 0..L {
                    out[Indicator::Sma as usize][lane] =
                        after::<SETTLED>(length - 1, bars_before[lane], moments.mean[lane]);
                }
            }
            if let Some(width) = window.bollinger {
                for lane in 0..L {
                    let (middle, reach) = (moments.mean[lane], width * moments.deviation[lane]);
                    out[Indicator::BollingerMiddle as usize][lane] =
                        after::<SETTLED>(length - 1, bars_before[lane], middle);
                    out[Indicator::BollingerUpper as usize][lane] =
                        after::<SETTLED>(length - 1, bars_before[lane], middle + reach);
                    out[Indicator::BollingerLower as usize][lane] =
                        after::<SETTLED>(length - 1, bars_before[lane], middle - reach);
                }
                let near = array::from_fn(|lane| {
                    window.lines[0].is_near(moments.distance[lane], width * moments.deviation[lane])
                });
                if near.contains(&true) {
                    settle_bands::<L, P>(
                        near,
                        place,
                        steps,
                        window,
                        &self.closes,
                        (close, &moments.distance),
                        out,
                    );
                }
            }
            if window.zscore {
                for lane in 0..L {
                    let score = formulas::zscore(moments.distance[lane], moments.deviation[lane]);
                    out[Indicator::Zscore as usize][lane] =
                        after::<SETTLED>(length - 1, bars_before[lane], score);
                }
                let scores = &mut out[Indicator::Zscore as usize];
                let near = array::from_fn(|lane| window.lines[1].is_near(scores[lane], window.threshold));
                if near.contains(&true) {
                    settle_scores::<L, P>(near, place, steps, window, &self.closes, close, scores);
                }
            }
        }
    }
}

/// Determines on which side of a band nearby closes lie.
#[cold]
fn settle_bands<const L: usize, P: SlotPlaces<L>>(
    near: [bool; L],
    place: &P,
    steps: P::Steps,
    window: &MomentsWindow,
    closes: &Ring<1>,
    (close, distance): (&[f64; L], &[f64; L]),
    out: &mut [[f64; L]; ALWAYS],
) {
    for lane in (0..L).filter(|&lane| near[lane]) {
        let is_upper = distance[lane] > 0.0;
        let band = if is_upper { Indicator::BollingerUpper } else { Indicator::BollingerLower };
        let band = &mut out[band as usize][lane];
        let of_window = closes.newest(place.slot(lane), P::step(steps, lane).position, window.rolling.length);
        if !band.is_nan()
            && let Some(side) = window.lines[0].compare(of_window.map(|[close]| close), close[lane])
        {
            *band = settled_band(*band, close[lane], is_upper, side);
        }
    }
}

/// Determines on which side of the threshold nearby z-scores lie.
#[cold]
fn settle_scores<const L: usize, P: SlotPlaces<L>>(
    near: [bool; L],
    place: &P,
    steps: P::Steps,
    window: &MomentsWindow,
    closes: &Ring<1>,
    close: &[f64; L],
    scores: &mut [f64; L],
) {
    for lane in (0..L).filter(|&lane| near[lane]) {
        let of_window = closes.newest(place.slot(lane), P::step(steps, lane).position, window.rolling.length);
        if let Some(side) = window.lines[1].compare(of_window.map(|[close]| close), close[lane]) {
            let score = settled(scores[lane].abs(), window.threshold, side);
            scores[lane] = score.copysign(scores[lane]);
        }
    }
}

/// The value if the slot has had at least `bars` bars before this one; else NaN.
#[inline(always)]
fn after<const SETTLED: bool>(bars: usize, bars_before: f64, value: f64) -> f64 {
    if SETTLED || bars_before >= bars as f64 { value } else { f64::NAN }
}
