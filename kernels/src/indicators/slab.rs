//! Indicator state of all slots of a group. The step itself is next door.

use super::columns::IndicatorColumns;
use super::formulas::Periods;
use super::params::IndicatorParams;
use super::ring::Ring;
use super::step::Update;
use crate::bars::ClosedBars;
use crate::isa::Isa;

/// Windows of closes: SMA, Bollinger, z-score, momentum, rate of change; fewer where lengths are equal.
pub(super) const CLOSE_WINDOWS_MAX: usize = 5;

/// Limit of what one bar adds to the sums of VWAP, so that [`super::WINDOW_MAX`] bars stay below 2^125. A notional beyond
/// it (4e16 units of money in one bar) counts as this much.
pub(super) const WEIGHT_MAX: i128 = 1 << 115;

/// Indicator state of all slots of a group.
#[derive(Clone, Debug)]
pub struct IndicatorSlab {
    pub(super) params: IndicatorParams,
    pub(super) periods: Periods,
    pub(super) columns: Columns,
    pub(super) closes: CloseRings,
    pub(super) squared_returns: Ring<f64>,
    pub(super) weights: Ring<Weight>,
    /// By slot: sum over its ring of weights.
    pub(super) weight_sums: Vec<Weight>,
}

/// What a bar or window weighs in VWAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weight {
    pub notional_e18: i128,
    pub volume_e9: i128,
}

/// State by slot. Averages hold sums until they have their first samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// Number of bars so far.
    pub bars: Vec<i64>,
    pub previous_close: Vec<f64>,
    pub ema_fast: Vec<f64>,
    pub ema_slow: Vec<f64>,
    pub macd_fast: Vec<f64>,
    pub macd_slow: Vec<f64>,
    pub macd_signal: Vec<f64>,
    pub gain: Vec<f64>,
    pub loss: Vec<f64>,
    pub true_range: Vec<f64>,
}

impl Columns {
    /// The averages and the last close, in the order in which they are written.
    pub(super) fn numbers_mut(&mut self) -> [&mut Vec<f64>; 9] {
        [
            &mut self.previous_close,
            &mut self.ema_fast,
            &mut self.ema_slow,
            &mut self.macd_fast,
            &mut self.macd_slow,
            &mut self.macd_signal,
            &mut self.gain,
            &mut self.loss,
            &mut self.true_range,
        ]
    }

    /// Likewise.
    pub(super) fn numbers(&self) -> [&Vec<f64>; 9] {
        [
            &self.previous_close,
            &self.ema_fast,
            &self.ema_slow,
            &self.macd_fast,
            &self.macd_slow,
            &self.macd_signal,
            &self.gain,
            &self.loss,
            &self.true_range,
        ]
    }
}

/// The last closes of each slot, once for each length that some indicator asks for.
#[derive(Clone, Debug)]
pub(super) struct CloseRings {
    pub rings: Vec<Ring<f64>>,
    /// By ring: whether mean and deviation of the window are asked for.
    pub moments: Vec<bool>,
    /// Which ring is whose.
    pub sma: usize,
    pub bollinger: usize,
    pub zscore: usize,
    pub momentum: usize,
    pub roc: usize,
}

impl CloseRings {
    fn new(params: &IndicatorParams) -> Self {
        let mut lengths = vec![params.sma, params.bollinger, params.zscore, params.momentum, params.roc];
        lengths.sort_unstable();
        lengths.dedup();
        let moments = [params.sma, params.bollinger, params.zscore];
        let ring_of = |length| lengths.binary_search(&length).expect("all five lengths are in the list");
        Self {
            sma: ring_of(params.sma),
            bollinger: ring_of(params.bollinger),
            zscore: ring_of(params.zscore),
            momentum: ring_of(params.momentum),
            roc: ring_of(params.roc),
            moments: lengths.iter().map(|length| moments.contains(length)).collect(),
            rings: lengths.iter().map(|&length| Ring::new(length)).collect(),
        }
    }
}

impl IndicatorSlab {
    /// No slots. The parameters have passed [`IndicatorParams::check`].
    pub fn new(params: IndicatorParams) -> Self {
        Self {
            periods: Periods::new(&params),
            columns: Columns::default(),
            closes: CloseRings::new(&params),
            squared_returns: Ring::new(params.realised_volatility),
            weights: Ring::new(params.vwap),
            weight_sums: Vec::new(),
            params,
        }
    }

    /// Makes room for `slots` slots; there are never fewer than before.
    pub fn resize(&mut self, slots: usize) {
        let slots = slots.max(self.columns.bars.len());
        self.columns.bars.resize(slots, 0);
        for column in self.columns.numbers_mut() {
            column.resize(slots, 0.0);
        }
        for ring in &mut self.closes.rings {
            ring.resize(slots);
        }
        self.squared_returns.resize(slots);
        self.weights.resize(slots);
        self.weight_sums.resize(slots, Weight::default());
    }

    /// Moves each slot on by its bars, in the order given, and sets `out` to the indicators after each bar.
    /// Panics at a slot there is no room for.
    pub fn update(&mut self, isa: Isa, closed: &ClosedBars, out: &mut IndicatorColumns) {
        for column in &mut out.values {
            column.resize(closed.len(), f64::NAN);
        }
        isa.run(Update { slab: self, closed, out });
    }
}
