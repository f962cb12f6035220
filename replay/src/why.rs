//! Why the scheduler decided something: a recorded entry, with each of its decisions explained.

use serde::Serialize;
use warptape_eventlog::EventLog;
use warptape_scheduler::Explanation;
use warptape_schemas::journal::JournalEntry;

use crate::ReplayError;
use crate::entries::Entries;

/// A recorded entry, with each of its decisions explained.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// Partition of the journal.
    pub partition: i32,
    /// Offset of the entry.
    pub offset: i64,
    /// The entry.
    pub entry: JournalEntry,
    /// What each decision was chosen among, and what would have changed it, in their order.
    pub explanations: Vec<Explanation>,
}

/// Where the journal is, and which of its entries is meant.
#[derive(Clone, Debug)]
pub struct WhyOptions {
    /// Topic of the journal.
    pub journal: String,
    /// Its partition: the ordinal of the process.
    pub partition: i32,
    /// The entry.
    pub sequence: i64,
}

/// Explains the decisions of an entry. The scheduler is stepped from the last start or checkpoint before it.
///
/// # Errors
/// If the log cannot be read, there is no such entry, the entries that lead to it were removed, or they are not what this software decides.
pub fn why(log: &dyn EventLog, options: &WhyOptions) -> Result<Why, ReplayError> {
    let entries = Entries::open(log, &options.journal, options.partition)?;
    let (offset, entry) = entries.with_sequence(options.sequence)?;
    let scheduler = entries.scheduler_before(offset)?;
    let explain = |index| {
        let explanation = scheduler.explain(entry.at_ns, &entry.input, index);
        explanation.map_err(|error| entries.not_replayed(entry.sequence, error.to_string()))
    };
    let explanations = (0..entry.decisions.len()).map(explain).collect::<Result<_, _>>()?;
    Ok(Why { partition: options.partition, offset, entry, explanations })
}
