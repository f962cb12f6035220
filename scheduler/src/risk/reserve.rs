//! The reserve: time that lanes with ticks keep for tasks.
//!
//! A slice of the reserve runs concurrently with its lane's batches. The next such slice begins only after a period in
//! which the first one's service was the configured share. So slices of the reserve never take more than that share
//! plus one slice. The module owns the times; it must not know which tasks may use them.

use serde::{Deserialize, Serialize};

use crate::config::DURATION_NS_MAX;
use crate::lanes::Lane;
use crate::state_hash::{Component, StateHash, hash_component};

const PERCENT: i64 = 100;

const _: () = assert!(DURATION_NS_MAX.checked_mul(PERCENT).is_some());

/// The reserve of one lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reserve {
    /// Start of the running slice of the reserve; `None` if there is none.
    begun_ns: Option<i64>,
    /// Earliest time at which the lane may begin a slice of the reserve.
    next_ns: i64,
    contribution: u64,
}

impl Reserve {
    /// Earliest time at which the lane may begin a slice of the reserve.
    pub(crate) fn next_ns(&self) -> i64 {
        self.next_ns
    }

    /// Notes the start of a slice of the reserve.
    pub(crate) fn begin(&mut self, lane: &Lane, at_ns: i64, hash: &mut StateHash) {
        self.begun_ns = Some(at_ns);
        self.refresh(lane, hash);
    }

    /// Notes the end of a slice of the lane and its service; nothing changes if the slice was not of the reserve.
    pub(crate) fn end(&mut self, lane: &Lane, service_ns: i64, percent: i32, hash: &mut StateHash) {
        let Some(begun_ns) = self.begun_ns.take() else { return };
        // The share is 0 here only in a configuration under which no slice of the reserve begins.
        let period_ns = service_ns.min(DURATION_NS_MAX) * PERCENT / i64::from(percent.max(1));
        self.next_ns = begun_ns.saturating_add(period_ns);
        self.refresh(lane, hash);
    }

    /// Clears the reserve of a lost lane, which returns with its full reserve.
    pub(crate) fn clear(&mut self, hash: &mut StateHash) {
        hash.remove(std::mem::take(self).contribution);
    }

    /// Hash of the reserve; 0 before its first slice.
    pub(crate) fn hash(&self, lane: &Lane) -> u64 {
        match (self.begun_ns, self.next_ns) {
            (None, 0) => 0,
            (begun_ns, next_ns) => {
                hash_component(Component::Reserve, [i64::from(lane.id), begun_ns.unwrap_or(-1), next_ns])
            }
        }
    }

    fn refresh(&mut self, lane: &Lane, hash: &mut StateHash) {
        let now = self.hash(lane);
        hash.replace(&mut self.contribution, now);
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::{LaneKind, LaneSpec};

    use super::*;
    use crate::classes::ClassId;

    #[test]
    fn slices_of_the_reserve_take_their_share() {
        let lane = Lane::new(&LaneSpec::new(0, "cpu:0", 1), ClassId::of_kind(LaneKind::Host));
        let (mut reserve, mut hash) = (Reserve::default(), StateHash::default());
        let mut next = |reserve: &mut Reserve, at_ns, service_ns| {
            reserve.begin(&lane, at_ns, &mut hash);
            reserve.end(&lane, service_ns, 25, &mut hash);
            assert_eq!(hash.value(), reserve.hash(&lane));
            reserve.next_ns()
        };
        assert_eq!(next(&mut reserve, 1_000, 500), 3_000);
        assert_eq!(next(&mut reserve, 3_000, 0), 3_000);
        assert!(next(&mut reserve, 3_000, i64::MAX) > 4 * DURATION_NS_MAX);
        reserve.end(&lane, 7, 25, &mut hash);
        assert!(reserve.next_ns() > 4 * DURATION_NS_MAX, "a slice that is none of the reserve costs nothing");
        reserve.clear(&mut hash);
        assert_eq!((reserve.next_ns(), hash.value()), (0, 0));
    }
}
