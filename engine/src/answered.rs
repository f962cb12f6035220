//! Answered risk requests of a partition: found in its results when the partition is assigned ([`super::opening`]),
//! kept while it is owned.

use std::collections::BTreeSet;

use warptape_events::risk::{RiskErrorCode, RiskOutcome, RiskResult};
use warptape_stages::risk::refusals::RequestIds;

/// Ids of the known requests, and offsets of requests that were answered out of order.
#[derive(Debug, Default)]
pub struct Answered {
    pub(crate) ids: RequestIds,
    /// Answered offsets at or after the committed one.
    offsets: BTreeSet<i64>,
}

impl Answered {
    /// Collects the answered requests from the results of a partition; drops offsets before `committed`.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a RiskResult>, committed: i64) -> Self {
        let mut answered = Self::default();
        results.into_iter().for_each(|result| answered.add(result, committed));
        answered
    }

    /// Adds a result of a request of the partition.
    pub fn add(&mut self, result: &RiskResult, committed: i64) {
        // A duplicate's result does not count: the first request with this id has a result of its own, or will have
        // one.
        if !is_duplicate(result) {
            self.ids.insert(&result.request_id);
        }
        if result.offset >= committed {
            self.offsets.insert(result.offset);
        }
    }

    /// True if the request at an offset is answered. Forgets the offset, so a second call for the same offset returns
    /// false.
    pub(crate) fn take_offset(&mut self, offset: i64) -> bool {
        self.offsets.remove(&offset)
    }
}

fn is_duplicate(result: &RiskResult) -> bool {
    matches!(&result.outcome, RiskOutcome::Error(error) if error.code == RiskErrorCode::Duplicate)
}
