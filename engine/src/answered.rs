//! Which risk requests have been answered: found out when a partition comes ([`super::opening`]), kept while it stays.

use std::collections::BTreeSet;

use warptape_events::risk::{RiskErrorCode, RiskOutcome, RiskResult};
use warptape_stages::risk::refusals::RequestIds;

/// Ids of requests, and the offsets of those that were answered before others that came before them.
#[derive(Debug, Default)]
pub struct Answered {
    pub(crate) ids: RequestIds,
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

    /// Adds a result of a request of the partition.
    pub fn add(&mut self, result: &RiskResult, committed: i64) {
        // The request that it doubles has a result of its own, or is still to have it.
        if !is_duplicate(result) {
            self.ids.insert(&result.request_id);
        }
        if result.offset >= committed {
            self.offsets.insert(result.offset);
        }
    }

    /// Whether the request at an offset has its answer; asked once for each offset.
    pub(crate) fn take_offset(&mut self, offset: i64) -> bool {
        self.offsets.remove(&offset)
    }
}

fn is_duplicate(result: &RiskResult) -> bool {
    matches!(&result.outcome, RiskOutcome::Error(error) if error.code == RiskErrorCode::Duplicate)
}
