//! Zones and signals in a device's layout.

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
    pub thresholds: SignalParams,
    pub zones: u64,
}

impl SignalParams {
    /// Adds the signals of the bar at `row`, given the bits that `detect_signals` set for it. They are the same, in the
    /// same order, as those of [`SignalSlab::detect`](super::SignalSlab::detect).
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
