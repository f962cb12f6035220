//! What is detected.

pub use warptape_terms::SignalKind;

/// One signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detected {
    /// Position of the bar in the closed bars.
    pub row: u32,
    /// What was detected.
    pub kind: SignalKind,
    /// The number that crossed a line; for a bar, its close.
    pub value: f64,
    /// The line that it crossed; 0 for a bar.
    pub threshold: f64,
}
