//! What a verification found.

use std::fmt;

use serde::Serialize;

use crate::Divergence;

/// What was compared, and the first difference if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Journal entries that were replayed and found identical.
    pub entries: u64,
    /// Decisions in them.
    pub decisions: u64,
    /// Process lives in them.
    pub processes: u64,
    /// What was compared of the outputs, where that was asked for and the journal is identical.
    pub outputs: Option<OutputCounts>,
    /// What is to be known of the comparison besides: what could not be compared, and where segments begin.
    pub notes: Vec<String>,
    /// The first difference.
    pub divergence: Option<Divergence>,
}

/// Outputs that were rerun and found identical.
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
    /// Trades whose id their symbol had before, late ones included.
    pub repeated_trades: u64,
    /// Trades whose id is so far below the greatest of their symbol that this cannot be told.
    pub untold_trades: u64,
    /// Risk results.
    pub risk_results: u64,
    /// Records of snapshots.
    pub snapshots: u64,
    /// Answers to operators' commands.
    pub control_results: u64,
}

impl Report {
    /// Whether everything that was compared is the same.
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

/// What is being compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Journal entries.
    Journal,
    /// Outputs, counted in tick records.
    Outputs,
    /// Risk results.
    Risk,
}

/// How far a verification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayProgress {
    /// What is being compared.
    pub phase: Phase,
    /// Records done.
    pub done: u64,
    /// Records in all.
    pub total: u64,
}
