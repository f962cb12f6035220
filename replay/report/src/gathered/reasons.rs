//! Counts decisions by reason.

use std::collections::BTreeMap;

use warptape_schemas::journal::{RejectReason, ReleaseCause, ReleaseReason, SliceReason};

use super::moves::MoveCause;

/// A kind of decision whose reasons are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonKind {
    /// Dispatch of a batch: the reason for its time.
    Batch,
    /// Start of a slice: the reason for its lane.
    Slice,
    /// Move of a group: the reason why it left its lane.
    Move,
    /// Refusal of a risk task: the reason for it.
    Refusal,
    /// Pause of a partition: the reason for it.
    Pause,
}

/// Counts of decisions, by kind and word of the reason.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    counts: BTreeMap<(ReasonKind, &'static str), u64>,
}

impl Reasons {
    pub(super) fn add(&mut self, kind: ReasonKind, word: &'static str) {
        *self.counts.entry((kind, word)).or_default() += 1;
    }

    /// Counts of one kind by word, the most frequent first.
    pub fn of(&self, kind: ReasonKind) -> Vec<(&'static str, u64)> {
        let mut found: Vec<_> = self
            .counts
            .iter()
            .filter(|((of, _), _)| *of == kind)
            .map(|((_, word), count)| (*word, *count))
            .collect();
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found
    }

    /// Returns the total count of a kind.
    pub fn total(&self, kind: ReasonKind) -> u64 {
        self.of(kind).iter().map(|(_, count)| count).sum()
    }
}

pub(super) fn of_batch(reason: ReleaseReason) -> &'static str {
    match reason {
        ReleaseReason::Idle => "IDLE",
        ReleaseReason::Full => "FULL",
        ReleaseReason::Deadline => "DEADLINE",
        ReleaseReason::Drain => "DRAIN",
    }
}

pub(super) fn of_slice(reason: SliceReason) -> &'static str {
    match reason {
        SliceReason::Order => "ORDER",
        SliceReason::Reserved => "RESERVED",
        SliceReason::Aged => "AGED",
        SliceReason::Explored => "EXPLORED",
        SliceReason::Stolen => "STOLEN",
        SliceReason::StoodIn => "STOOD_IN",
    }
}

pub(super) fn of_refusal(reason: Option<RejectReason>) -> &'static str {
    match reason {
        Some(RejectReason::Overloaded) => "OVERLOADED",
        Some(RejectReason::Expired) => "EXPIRED",
        Some(RejectReason::Quota) => "QUOTA",
        Some(RejectReason::Rate) => "RATE",
        Some(RejectReason::Congested) => "CONGESTED",
        None => "REJECTED",
    }
}

impl MoveCause {
    /// Returns the journal's word for the reason.
    pub fn word(self) -> &'static str {
        match self {
            Self::Told(ReleaseCause::Route) => "ROUTE",
            Self::Told(ReleaseCause::Drained) => "DRAINED",
            Self::Told(ReleaseCause::Breaker) => "BREAKER",
            Self::Told(ReleaseCause::Rebalance) => "REBALANCE",
            Self::Told(ReleaseCause::Balance) => "BALANCE",
            Self::LaneLost => "LOST",
            Self::Restored => "RESTORED",
        }
    }
}
