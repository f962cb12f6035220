//! Counts the contents of a transaction once it is committed.

use warptape_engine::{CommitRequest, SideTopic, request_outcome, task_class};

/// Contents of a committed transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) signals: u64,
    pub(super) late: u64,
    pub(super) dead_letters: u64,
    pub(super) snapshots: u64,
    /// Class and outcome of each risk result.
    pub(super) risk_results: Vec<(&'static str, &'static str)>,
    pub(super) journal_entries: u64,
    /// Offset of the next record to read, by partition of the ticks.
    pub(super) offsets: Vec<(i32, i64)>,
}

impl Written {
    /// Returns the contents of a request.
    pub(super) fn of(request: &CommitRequest, ticks: &str) -> Self {
        let sealed = &request.sealed;
        let side_outputs = |topic: SideTopic| {
            let side_outputs = sealed.iter().flat_map(|sealed| &sealed.side_outputs);
            side_outputs.filter(|side_output| side_output.topic == topic).count() as u64
        };
        let results = sealed.iter().flat_map(|sealed| &sealed.risk_results);
        let offsets = request.offsets.iter().filter(|(source, _)| source.topic == ticks);
        Self {
            signals: sealed.iter().map(|sealed| sealed.signals.len() as u64).sum(),
            late: side_outputs(SideTopic::Late),
            dead_letters: side_outputs(SideTopic::DeadLetter),
            snapshots: sealed.iter().map(|sealed| sealed.snapshots.len() as u64).sum(),
            risk_results: results
                .map(|result| (task_class(&result.class), request_outcome(&result.error)))
                .collect(),
            journal_entries: request.entries.len() as u64,
            offsets: offsets.map(|(source, offset)| (source.partition, *offset)).collect(),
        }
    }
}
