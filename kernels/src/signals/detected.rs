//! Detected signals.

pub use warptape_terms::SignalKind;

/// One signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detected {
    /// Position of the bar in the closed bars.
    pub row: u32,
    /// Kind of the signal.
    pub kind: SignalKind,
    /// The number that crossed a line; for a bar, its close.
    pub value: f64,
    /// The line that was crossed; 0 for a bar.
    pub threshold: f64,
}
