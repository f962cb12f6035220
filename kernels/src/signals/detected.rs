//! The kinds of signals.

/// Kinds of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum SignalKind {
    /// A bar closed.
    Bar = 0,
    /// The fast EMA rose above the slow one.
    EmaCrossUp,
    /// The fast EMA fell below the slow one.
    EmaCrossDown,
    /// The RSI rose above the upper line.
    RsiOverbought,
    /// The RSI fell below the lower line.
    RsiOversold,
    /// The close rose above the upper Bollinger band.
    BandBreakUp,
    /// The close fell below the lower Bollinger band.
    BandBreakDown,
    /// The z-score rose above its threshold.
    ZScoreHigh,
    /// The z-score fell below minus its threshold.
    ZScoreLow,
}

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
