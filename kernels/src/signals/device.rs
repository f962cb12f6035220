//! Zones and signals as a device has them.

use super::detected::SignalKind;
use super::slab::KINDS;
use crate::device::ClosedBarsArgs;

/// What `detect_signals` is given: as `SignalArgs` of `signals.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "signals.cu says what each one is")]
pub struct SignalArgs {
    pub bars: ClosedBarsArgs,
    pub rsi_upper: f64,
    pub rsi_lower: f64,
    pub zscore_threshold: f64,
    pub zones: u64,
    pub indicators_capacity: u64,
    pub indicators: u64,
    pub detected: u64,
}

/// The kinds of the signals that `detect_signals` marked on a bar, in their order; the bar itself is not among them.
pub fn detected_kinds(detected: u8) -> impl Iterator<Item = SignalKind> {
    KINDS.into_iter().enumerate().filter_map(move |(relation, (above, below))| {
        match detected >> (2 * relation) & 3 {
            0 => None,
            1 => Some(above),
            _ => Some(below),
        }
    })
}
