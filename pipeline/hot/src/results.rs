//! Results of risk requests that wait to be written: which ones, and for how long they are kept.
//!
//! A result never changes: the first one with an id stays. This module knows no connection.

use std::time::Duration;

use warptape_eventlog::{OffsetRange, Record};
use warptape_schemas::journal::PartitionId;
use warptape_schemas::risk::{RiskError, RiskErrorCode, RiskOutcome};
use warptape_schemas::{DecodeError, Describer, decode_risk_result};

use crate::keys::ResultValue;

/// Number of offsets before a partition's end that each connection writes again, because Redis does not show which
/// results it has.
const OFFSETS_BACK_MAX: i64 = 65_536;
pub(super) const NS_PER_MS: i64 = 1_000_000;

/// Results of a partition.
#[derive(Debug)]
pub(super) struct Results {
    /// Next result to read.
    pub(super) next_offset: i64,
    /// End of the results when they were last checked.
    pub(super) end: i64,
    held: Vec<Record>,
    held_bytes: usize,
}

impl Results {
    /// Begins at the first result that may still need to be written.
    pub(super) fn new(range: OffsetRange) -> Self {
        let next_offset = range.first.max(range.next - OFFSETS_BACK_MAX);
        Self { next_offset, end: range.next, held: Vec::new(), held_bytes: 0 }
    }

    /// Adds the next records, except expired ones.
    pub(super) fn push(&mut self, records: Vec<Record>, now_ns: i64, ttl: Duration) {
        let Some(last) = records.last() else { return };
        self.next_offset = last.offset + 1;
        self.end = self.end.max(self.next_offset);
        let fresh = records.into_iter().filter(|record| expires_in_ms(record, now_ns, ttl).is_some());
        for record in fresh {
            self.held_bytes += record.value.len();
            self.held.push(record);
        }
    }

    /// Returns the number of waiting records.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns the size of the waiting records in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns and removes all waiting records.
    pub(super) fn take(&mut self) -> Vec<Record> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }
}

/// Returns the remaining time to live of a result in milliseconds; `None` for an expired one.
pub(super) fn expires_in_ms(record: &Record, now_ns: i64, ttl: Duration) -> Option<i64> {
    let age_ms = now_ns.saturating_sub(record.timestamp_ns).max(0) / NS_PER_MS;
    let left_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX) - age_ms;
    (left_ms > 0).then_some(left_ms)
}

/// Returns the id and the value of a result; `None` if it must not be kept. The rejection of a duplicate does not
/// answer the request with that id, and an unreadable request has no id.
pub(super) fn answer(
    describer: &Describer,
    partition: PartitionId,
    record: &Record,
) -> Result<Option<(String, ResultValue)>, DecodeError> {
    let result = decode_risk_result(&record.value)?;
    let is_duplicate =
        matches!(result.outcome, RiskOutcome::Error(RiskError { code: RiskErrorCode::Duplicate, .. }));
    if is_duplicate || result.request_id.is_empty() {
        return Ok(None);
    }
    let (_, fields) = describer.describe(&record.value)?;
    let value =
        ResultValue { offset: record.offset, partition, committed_ns: record.timestamp_ns, record: fields };
    Ok(Some((result.request_id, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset: i64, at_ms: i64) -> Record {
        let (key, headers, timestamp_ns) = (None, Vec::new(), at_ms * NS_PER_MS);
        Record { offset, key, headers, timestamp_ns, value: vec![0; 10] }
    }

    #[test]
    fn a_result_expires_by_its_record_time() {
        let ttl = Duration::from_secs(1);
        let left = |at_ms| expires_in_ms(&record(0, at_ms), 5_000 * NS_PER_MS, ttl);
        assert_eq!([4_999, 4_001, 4_000, 0].map(left), [Some(999), Some(1), None, None]);
        // A record whose clock is ahead does not live longer.
        assert_eq!(left(9_000), Some(1_000));
    }

    #[test]
    fn reading_begins_a_bounded_distance_back() {
        let begin = |first, next| Results::new(OffsetRange { first, next }).next_offset;
        assert_eq!((begin(3, 10), begin(0, 100_000), begin(99_000, 100_000)), (3, 34_464, 99_000));
    }

    #[test]
    fn what_has_expired_is_read_and_not_held() {
        let mut results = Results::new(OffsetRange { first: 0, next: 2 });
        results.push(
            vec![record(0, 0), record(1, 1_500), record(4, 0)],
            2_000 * NS_PER_MS,
            Duration::from_secs(1),
        );
        assert_eq!((results.next_offset, results.end, results.len(), results.bytes()), (5, 5, 1, 10));
        assert_eq!(results.take(), [record(1, 1_500)]);
        assert_eq!((results.len(), results.bytes()), (0, 0));
    }
}
