//! Zones and signals as a device has them.

use bytemuck::{Pod, Zeroable};

use super::detected::Detected;
use super::params::SignalParams;
use super::slab::{KINDS, detected_bar, relations};
use crate::bars::ClosedBars;
use crate::device::ClosedBarsArgs;
use crate::indicators::IndicatorColumns;

/// Arguments of `detect_signals`: `SignalArgs` of `signals.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct SignalArgs {
    pub bars: ClosedBarsArgs,
    pub rsi_upper: f64,
    pub rsi_lower: f64,
    pub zscore_threshold: f64,
    pub zones: u64,
}

impl SignalArgs {
    /// Arguments with the thresholds. The other fields are set by who launches the kernel.
    pub fn new(params: &SignalParams) -> Self {
        let SignalParams { rsi_upper, rsi_lower, zscore_threshold } = *params;
        Self { rsi_upper, rsi_lower, zscore_threshold, ..Self::default() }
    }
}

impl SignalParams {
    /// Adds the signals of the bar at `row`, given the bits that `detect_signals` set for it: the same, in the same order, as
    /// [`SignalSlab::detect`](super::SignalSlab::detect).
    pub fn add_detected(
        &self,
        closed: &ClosedBars,
        indicators: &IndicatorColumns,
        row: usize,
        marks: u32,
        out: &mut Vec<Detected>,
    ) {
        let bar = detected_bar(closed, row);
        out.push(bar);
        let relations = relations(self, bar.value, indicators, row);
        for (number, (relation, (above, below))) in relations.into_iter().zip(KINDS).enumerate() {
            let (kind, threshold) = match marks >> (2 * number) & 3 {
                0 => continue,
                1 => (above, relation.upper),
                _ => (below, relation.lower),
            };
            out.push(Detected { row: bar.row, kind, value: relation.value, threshold });
        }
    }
}
