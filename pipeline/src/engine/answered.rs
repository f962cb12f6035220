//! Which risk requests have been answered: read from the results topic when a partition comes, kept while it stays.

use std::collections::BTreeSet;
use std::time::Duration;

use warptape_eventlog::{EventLog, Fetched, LogError, TopicPartition};
use warptape_schemas::decode_risk_result;
use warptape_schemas::risk::{RiskErrorCode, RiskOutcome, RiskResult};
use warptape_stages::risk::refusals::RequestIds;

const READ_RECORDS_MAX: usize = 1_024;
const READ_BYTES_MAX: usize = 16 << 20;
/// Wait between two looks whether the end is reached.
const READ_WAIT: Duration = Duration::from_millis(100);

/// Ids of requests, and the offsets of those that were answered before others that came before them.
#[derive(Debug, Default)]
pub struct Answered {
    pub(super) ids: RequestIds,
    /// Offsets at or behind the committed one.
    offsets: BTreeSet<i64>,
}

impl Answered {
    /// What the results say of the requests of a partition, of which those before `committed` need no look.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a RiskResult>, committed: i64) -> Self {
        let mut answered = Self::default();
        results.into_iter().for_each(|result| answered.add(result, committed));
        answered
    }

    /// The same of the results in a log.
    pub fn read(log: &dyn EventLog, results: &TopicPartition, committed: i64) -> Result<Self, LogError> {
        let mut answered = Self::default();
        let mut reader = log.reader(std::slice::from_ref(results))?;
        // The committed offset is known, so the transaction that moved it has ended; this partition may hear of that later.
        let end = reader.written_end(results)?;
        while reader.position(results)? < end {
            let Fetched::Records { records, .. } =
                reader.poll(READ_WAIT, READ_RECORDS_MAX, READ_BYTES_MAX)?
            else {
                continue;
            };
            for record in records {
                match decode_risk_result(&record.value) {
                    Ok(result) => answered.add(&result, committed),
                    Err(error) => tracing::warn!(offset = record.offset, %error, "risk result passed over"),
                }
            }
        }
        Ok(answered)
    }

    fn add(&mut self, result: &RiskResult, committed: i64) {
        // The request that it doubles has a result of its own, or is still to have it.
        if !is_duplicate(result) {
            self.ids.insert(&result.request_id);
        }
        if result.offset >= committed {
            self.offsets.insert(result.offset);
        }
    }

    /// Whether the request at an offset has its answer; asked once for each offset.
    pub(super) fn take_offset(&mut self, offset: i64) -> bool {
        self.offsets.remove(&offset)
    }
}

fn is_duplicate(result: &RiskResult) -> bool {
    matches!(&result.outcome, RiskOutcome::Error(error) if error.code == RiskErrorCode::Duplicate)
}
