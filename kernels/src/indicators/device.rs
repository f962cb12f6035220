//! Indicator state of slots in a device's layout, and the constants of the kernel that advances it.

use bytemuck::{Pod, Zeroable};

use super::formulas::Period;
use super::slab::IndicatorSlab;
use super::table::{IndicatorParams, KEPT};
use super::windows::{MOMENTS_MAX, MomentsWindow, QUANTITIES, Windows};
use crate::device::ClosedBarsArgs;
use crate::signals::SignalParams;

/// Arguments of `update_indicators`: `IndicatorArgs` of `indicators.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct IndicatorArgs {
    pub bars: ClosedBarsArgs,
    pub constants: IndicatorConstants,
    pub capacity: u64,
    pub numbers: u64,
    pub closes: u64,
    pub squared_returns: u64,
    pub weights: u64,
}

/// The constants that depend only on the windows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct IndicatorConstants {
    /// Length, 1 / length and 2 / (length + 1) of the averages.
    periods: [[f64; 3]; 7],
    moments: [MomentsConstants; MOMENTS_MAX],
    moments_count: u64,
    closes_length: u64,
    squared_returns_length: u64,
    weights_length: u64,
    momentum: u64,
    roc: u64,
    /// First column of the positions of each [`Kept`](super::table::Kept), and at the end the column after the last
    /// one.
    kept_first: [u64; KEPT + 1],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
struct MomentsConstants {
    length: u64,
    inverse: f64,
    sma: u64,
    bollinger: u64,
    zscore: u64,
    width: f64,
    threshold: f64,
    /// Lines of the bands and of the threshold, each as units of deviations and units per deviation.
    lines: [[u64; 2]; 2],
}

impl IndicatorConstants {
    /// The constants of windows that have passed [`IndicatorParams::check`].
    pub fn new(params: &IndicatorParams, signals: &SignalParams) -> Self {
        let windows = Windows::new(params, signals);
        let period = |length| Period::new(length).constants();
        let mut moments = [MomentsConstants::default(); MOMENTS_MAX];
        for (constants, window) in moments.iter_mut().zip(&windows.moments) {
            *constants = MomentsConstants::new(window);
        }
        Self {
            periods: [
                period(params.ema_fast),
                period(params.ema_slow),
                period(params.macd_fast),
                period(params.macd_slow),
                period(params.macd_signal),
                period(params.rsi),
                period(params.atr),
            ],
            moments,
            moments_count: windows.moments.len() as u64,
            closes_length: windows.closes.length as u64,
            squared_returns_length: windows.squared_returns.ring.length as u64,
            weights_length: windows.weights.ring.length as u64,
            momentum: params.momentum.into(),
            roc: params.roc.into(),
            kept_first: kept_first(&windows).map(|column| column as u64),
        }
    }
}

impl MomentsConstants {
    fn new(window: &MomentsWindow) -> Self {
        Self {
            length: window.rolling.length as u64,
            inverse: window.rolling.inverse,
            sma: window.sma.into(),
            bollinger: window.bollinger.is_some().into(),
            zscore: window.zscore.into(),
            width: window.bollinger.unwrap_or(0.0),
            threshold: window.threshold,
            lines: window.lines.map(|line| [line.units, line.per]),
        }
    }
}

/// Indicator state of slots in the order of a device's memory: one column per quantity and per position of a ring. Each
/// column has room for `capacity` slots, and the columns are consecutive.
#[derive(Clone, Debug, PartialEq)]
pub struct IndicatorArrays {
    /// Number of slots for which a column has room.
    pub capacity: usize,
    /// Averages, then sums over windows, then kept values of indicators by position.
    pub numbers: Vec<f64>,
    /// Ring of closes.
    pub closes: Vec<f64>,
    /// Ring of squared returns.
    pub squared_returns: Vec<f64>,
    /// Ring of notional and volume, two columns for each position.
    pub weights: Vec<f64>,
}

impl IndicatorArrays {
    /// State of slots without bars.
    pub fn new(params: &IndicatorParams, capacity: usize) -> Self {
        // Only the lengths of the windows matter here.
        let windows = Windows::new(params, &SignalParams::default());
        let zeros = |columns: usize| vec![0.0; columns * capacity];
        Self {
            capacity,
            numbers: zeros(kept_first(&windows)[KEPT]),
            closes: zeros(windows.closes.length),
            squared_returns: zeros(windows.squared_returns.ring.length),
            weights: zeros(2 * windows.weights.ring.length),
        }
    }

    /// Copies the state of a slot from a slab with the same windows.
    pub fn scatter(&mut self, slot: usize, slab: &IndicatorSlab, of: usize) {
        let windows = &slab.windows;
        let kept = windows.kept.iter().flat_map(|ring| ring.positions_of(of).flatten());
        set_column(&mut self.numbers, self.capacity, slot, slab.columns.of_slot(of).into_iter().chain(kept));
        set_column(&mut self.closes, self.capacity, slot, windows.closes.positions_of(of).flatten());
        let returns = windows.squared_returns.ring.positions_of(of).flatten();
        set_column(&mut self.squared_returns, self.capacity, slot, returns);
        set_column(&mut self.weights, self.capacity, slot, windows.weights.ring.positions_of(of).flatten());
    }

    /// Copies the state of a slot to a slab with the same windows.
    pub fn gather(&self, slot: usize, slab: &mut IndicatorSlab, to: usize) {
        let mut numbers = column(&self.numbers, self.capacity, slot);
        slab.columns
            .set_slot(to, [(); QUANTITIES].map(|()| numbers.next().expect("a slot has its quantities")));
        let windows = &mut slab.windows;
        for ring in &mut windows.kept {
            ring.set_positions_of(to, numbers.by_ref());
        }
        windows.closes.set_positions_of(to, column(&self.closes, self.capacity, slot));
        let returns = column(&self.squared_returns, self.capacity, slot);
        windows.squared_returns.ring.set_positions_of(to, returns);
        windows.weights.ring.set_positions_of(to, column(&self.weights, self.capacity, slot));
    }
}

fn kept_first(windows: &Windows) -> [usize; KEPT + 1] {
    let mut first = [QUANTITIES; KEPT + 1];
    for (number, ring) in windows.kept.iter().enumerate() {
        first[number + 1] = first[number] + ring.length;
    }
    first
}

fn column(columns: &[f64], capacity: usize, slot: usize) -> impl Iterator<Item = f64> + '_ {
    columns.iter().copied().skip(slot).step_by(capacity)
}

fn set_column(columns: &mut [f64], capacity: usize, slot: usize, values: impl IntoIterator<Item = f64>) {
    for (number, value) in columns.iter_mut().skip(slot).step_by(capacity).zip(values) {
        *number = value;
    }
}
