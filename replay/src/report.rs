//! The result of a verification.

use std::fmt;

use serde::Serialize;

use crate::Divergence;

/// The compared parts, and the first difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Journal entries that were replayed and found identical.
    pub entries: u64,
    /// Decisions in them.
    pub decisions: u64,
    /// Process lives in them.
    pub processes: u64,
    /// Counts of compared outputs; `None` if outputs were not requested, or the journal differs.
    pub outputs: Option<OutputCounts>,
    /// Remarks on the comparison: parts that could not be compared, and beginnings of segments.
    pub notes: Vec<String>,
    /// The first difference; `None` if there is none.
    pub divergence: Option<Divergence>,
}

/// Counts of outputs that were rerun and found identical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputCounts {
    /// Tick records read.
    pub tick_records: u64,
    /// Ticks in them, late ones included.
    pub ticks: u64,
    /// Signals.
    pub signals: u64,
    /// Late ticks.
    pub late: u64,
    /// Dead letters.
    pub dead_letters: u64,
    /// Trades with an id that their symbol had before, late ones included.
    pub repeated_trades: u64,
    /// Trades whose id is too far below the greatest of their symbol to tell whether it is repeated.
    pub untold_trades: u64,
    /// Risk results.
    pub risk_results: u64,
    /// Records of snapshots.
    pub snapshots: u64,
    /// Answers to operators' commands.
    pub control_results: u64,
}

impl Report {
    /// True if everything that was compared is the same.
    pub fn is_identical(&self) -> bool {
        self.divergence.is_none()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.divergence, &self.outputs) {
            (Some(divergence), _) => write!(formatter, "{divergence}"),
            (None, Some(outputs)) => {
                write!(formatter, "{} decisions, {} signals", self.decisions, outputs.signals)?;
                if outputs.risk_results > 0 {
                    write!(formatter, ", {} risk results", outputs.risk_results)?;
                }
                write!(formatter, ": identical")
            }
            (None, None) => write!(formatter, "{} decisions: identical", self.decisions),
        }?;
        self.notes.iter().try_for_each(|note| write!(formatter, "\nnote: {note}"))
    }
}

/// The part that is being compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Journal entries.
    Journal,
    /// Outputs, counted in tick records.
    Outputs,
    /// Risk results.
    Risk,
}

/// Progress of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    /// The part that is being compared.
    pub phase: Phase,
    /// Records done.
    pub done: u64,
    /// Total number of records.
    pub total: u64,
}
