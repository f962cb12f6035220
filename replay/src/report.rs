//! The result of a verification.

use std::fmt;

use serde::Serialize;

use crate::Divergence;

/// The compared parts, and the first difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Number of journal entries that were replayed and found identical.
    pub entries: u64,
    /// Number of decisions in these entries.
    pub decisions: u64,
    /// Number of process lives in these entries.
    pub processes: u64,
    /// Counts of compared outputs; `None` if outputs were not requested, or the journal differs.
    pub outputs: Option<OutputCounts>,
    /// Remarks on the comparison: parts that could not be compared, and beginnings of segments.
    pub notes: Vec<String>,
    /// The first difference; `None` if there is none.
    pub divergence: Option<Divergence>,
}

/// Counts of outputs that were recomputed and found identical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutputCounts {
    /// Number of tick records read.
    pub tick_records: u64,
    /// Number of ticks in these records, including late ones.
    pub ticks: u64,
    /// Number of signals.
    pub signals: u64,
    /// Number of late ticks.
    pub late: u64,
    /// Number of dead letters.
    pub dead_letters: u64,
    /// Number of trades whose id occurred before in the same symbol, including late ones.
    pub repeated_trades: u64,
    /// Number of trades whose id is too far below the symbol's greatest id to tell whether it is repeated.
    pub untold_trades: u64,
    /// Number of risk results.
    pub risk_results: u64,
    /// Number of snapshot records.
    pub snapshots: u64,
    /// Number of answers to operators' commands.
    pub control_results: u64,
}

impl Report {
    /// True if everything that was compared is identical.
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
    /// Number of records done.
    pub done: u64,
    /// Total number of records.
    pub total: u64,
}
