//! What to verify.

use warptape_stages::Isa;

/// What to verify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Topic of the journal.
    pub journal: String,
    /// Compare outputs as well.
    pub outputs: Option<OutputOptions>,
}

/// Where ticks and outputs are, and who made them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputOptions {
    /// Topic of ticks.
    pub ticks: String,
    /// Topic of signals.
    pub signals: String,
    /// Topic of late ticks.
    pub late: String,
    /// Topic of dead letters.
    pub dead_letter: String,
    /// Consumer group of the run: outputs exist up to its committed offsets.
    pub group: String,
    /// Instruction set of the stages; the results are the same for all.
    pub isa: Isa,
}
