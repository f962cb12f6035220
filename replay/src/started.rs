//! Finds the start of a process, which explains its entries.

use warptape_eventlog::EventLog;
use warptape_schemas::journal::Started;

use crate::ReplayError;
use crate::entries::Entries;

/// Returns the start of the process that wrote the newest entry of a journal partition; `None` if neither its start nor
/// a checkpoint remains.
///
/// # Errors
/// If the log cannot be read.
pub fn started_of(log: &dyn EventLog, journal: &str, partition: i32) -> Result<Option<Started>, ReplayError> {
    let entries = Entries::open(log, journal, partition)?;
    entries.started_before(entries.range.next)
}
