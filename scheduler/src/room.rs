//! Room: the bound on the decisions of one step. The rest waits for the next step, which is requested for a nanosecond
//! later.
//!
//! A step is one entry of the journal, and a log limits the size of its records. So the sizes here are the most bytes
//! that a decision can take in the journal's encoding, whatever its numbers are. Only the last decision may exceed the
//! limit. Decisions whose number is bounded by that of lanes or partitions (fences, restores, pauses) need no room. The
//! module owns the sizes; it must not know why something is decided.

use warptape_events::journal::{Decision, Dispatch, Place, Release, Reserve, RunSlice, Split};

/// Most bytes of an int in Avro. Below: of a long.
const INT: i64 = 5;
const LONG: i64 = 10;
/// Most bytes of the length of a text or a list. Below: of an enum, or of the branch of a union.
const LENGTH: i64 = LONG;
const BRANCH: i64 = 1;

/// Bytes that a batch grows by with each group, including a pause or resumption of the group's partition that may
/// follow.
pub(crate) const TAKE_BYTES: i64 = 2 * INT + 2 * LONG + BRANCH + INT + 2 * LONG;

/// Room for the decisions of one step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    bytes_left: i64,
    is_short: bool,
    /// Number of further decisions before the step is stopped; `None` if it is not stopped.
    decisions_left: Option<usize>,
    is_broken_off: bool,
}

impl Room {
    /// Room at the beginning of a step; a limit of 0 means none.
    pub(crate) fn new(step_bytes_max: i64) -> Self {
        let bytes_left = if step_bytes_max == 0 { i64::MAX } else { step_bytes_max };
        Self { bytes_left, is_short: false, decisions_left: None, is_broken_off: false }
    }

    /// Room of a step that is stopped before decision number `decisions`, counting those that need room.
    pub(crate) fn until(step_bytes_max: i64, decisions: usize) -> Self {
        Self { decisions_left: Some(decisions), ..Self::new(step_bytes_max) }
    }

    /// True if a further decision has room. If not, the caller waits for the next step.
    pub(crate) fn is_there(&mut self) -> bool {
        self.is_broken_off |= self.decisions_left == Some(0);
        self.is_short |= self.bytes_left <= 0;
        self.bytes_left > 0 && !self.is_broken_off
    }

    /// Number of further groups that a batch may take rows from; at least one.
    pub(crate) fn takes(&self) -> usize {
        usize::try_from(self.bytes_left / TAKE_BYTES).unwrap_or(0).max(1)
    }

    /// Counts a decision. Shadow decisions take no room from real ones: their number is at most lanes times policies.
    pub(crate) fn take(&mut self, decision: &Decision) {
        if matches!(decision, Decision::Shadow(_)) {
            return;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes_max(decision));
        self.decisions_left = self.decisions_left.map(|left| left.saturating_sub(1));
    }

    /// True if the step is stopped here.
    pub(crate) fn is_broken_off(&self) -> bool {
        self.is_broken_off
    }

    /// True if some decision had no room.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }
}

/// Most bytes of a decision in the journal; 0 if it needs no room.
pub(crate) fn bytes_max(decision: &Decision) -> i64 {
    let list = |items: usize, item: i64| 2 * LENGTH + items as i64 * item;
    let text = |text: &str| LENGTH + text.len() as i64;
    let route = BRANCH + BRANCH + LONG + BRANCH + 3 * LONG;
    BRANCH
        + match decision {
            Decision::Place(Place { policy, candidates, excluded, .. }) => {
                let policy = text(&policy.id) + INT;
                let lists = list(candidates.len(), 3 * INT + LONG) + list(excluded.len(), INT + BRANCH);
                3 * INT + LONG + policy + lists + 2 * LONG + INT + route
            }
            Decision::Dispatch(Dispatch { takes, .. }) => {
                let telemetry = INT + 3 * LONG;
                LONG + INT + list(takes.len(), TAKE_BYTES) + 4 * LONG + BRANCH + telemetry
            }
            Decision::Split(Split { shares, .. }) => LONG + 2 * BRANCH + list(shares.len(), INT + 3 * LONG),
            Decision::Reserve(Reserve { lanes, busy, .. }) => {
                2 * LONG + list(lanes.len(), INT) + list(busy.len(), INT)
            }
            Decision::RunSlice(RunSlice { tenant, .. }) => 8 * LONG + 3 * INT + 3 * BRANCH + text(tenant),
            Decision::Release(Release { .. }) => 4 * INT + 7 * LONG + route + 2 * BRANCH,
            Decision::Expire(_) => 2 * LONG + INT,
            Decision::Shed(_) => 4 * LONG + 2 * BRANCH,
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use warptape_events::encode_journal_entry;
    use warptape_events::hex::Digits;
    use warptape_events::journal::{
        Candidate, Exclusion, ExclusionReason, Expire, Imbalance, Input, JournalEntry, LaneKind,
        LaneTelemetry, PolicyRef, ReleaseCause, ReleaseReason, Route, Share, SliceReason, SplitPolicy, Take,
        TaskClass, Woke,
    };

    use super::*;

    /// Bytes of an entry with another decision, followed by this one if it is given.
    fn encoded(decision: Option<Decision>) -> i64 {
        let other = Decision::Expire(Expire { task: 0, deadline_ns: 0, slices_running: 0 });
        let entry = JournalEntry {
            sequence: 0,
            at_ns: 0,
            input: Input::Woke(Woke {}),
            decisions: [other].into_iter().chain(decision).collect(),
            state_hash: Digits::zeros(),
            hash: Digits::zeros(),
        };
        let mut bytes = Vec::new();
        encode_journal_entry(&entry, &mut bytes);
        bytes.len() as i64
    }

    fn check(decision: Decision) {
        let least = encoded(Some(decision.clone())) - encoded(None);
        let most = bytes_max(&decision);
        // A list's length is counted with its longest encoding.
        assert!(least <= most && most <= least + 64, "{least} bytes, {most} are counted: {decision:?}");
    }

    /// Every decision fits into its counted bytes, with numbers of the longest encoding.
    #[test]
    fn no_decision_takes_more_than_is_counted() {
        let (int, long) = (i32::MIN, i64::MIN);
        for items in [0, 1, 100] {
            let candidate = Candidate { lane: int, score: long, groups_placed: int, groups_max: int };
            let kind = LaneKind::Device;
            let route =
                Route { kind, rows: long, break_even_rows: Some(long), host_ns: long, device_ns: long };
            check(Decision::Place(Place {
                partition: int,
                group: int,
                lane: int,
                epoch: long,
                policy: PolicyRef { id: "p".repeat(items), version: int },
                candidates: vec![candidate; items],
                excluded: vec![Exclusion { lane: int, reason: ExclusionReason::Lost }; items],
                random_stream: long,
                random_counter: long,
                propensity_ppm: int,
                route: Some(route),
            }));
            let share = Share { lane: int, from: long, to: long, score: long };
            let shares = vec![share; items];
            check(Decision::Split(Split { task: long, policy: SplitPolicy::Score, gang: true, shares }));
            let lanes = vec![int; items];
            check(Decision::Reserve(Reserve {
                task: long,
                lanes: lanes.clone(),
                busy: lanes,
                until_ns: long,
            }));
            check(Decision::RunSlice(RunSlice {
                slice: long,
                task: long,
                lane: int,
                from: long,
                to: long,
                class: TaskClass::Batch,
                tenant: "t".repeat(items),
                tasks_waiting: int,
                tenant_service_ns: long,
                service_fs_per_cost: long,
                predicted_finish_ns: long,
                reason: SliceReason::Aged,
                upper_ns: long,
                propensity_ppm: int,
                stolen_from: Some(int),
            }));
        }
        let route = Route {
            kind: LaneKind::Device,
            rows: long,
            break_even_rows: Some(long),
            host_ns: long,
            device_ns: long,
        };
        check(Decision::Release(Release {
            partition: int,
            group: int,
            lane: int,
            epoch: long,
            route: Some(route),
            cause: ReleaseCause::Balance,
            imbalance: Some(Imbalance {
                to: int,
                group_load_ns: long,
                from_load_ns: long,
                to_load_ns: long,
                gain_ns: long,
                cost_ns: long,
                windows: long,
            }),
        }));
        check(Decision::Expire(Expire { task: long, deadline_ns: long, slices_running: int }));
    }

    #[test]
    fn no_take_takes_more_than_is_counted() {
        let (int, long) = (i32::MIN, i64::MIN);
        let dispatch = |takes: usize| {
            Decision::Dispatch(Dispatch {
                batch: long,
                lane: int,
                takes: vec![Take { partition: int, group: int, epoch: long, rows: long }; takes],
                rows: long,
                bytes: long,
                reason: ReleaseReason::Drain,
                telemetry: LaneTelemetry {
                    in_flight_rows: long,
                    in_flight_bytes: long,
                    in_flight_batches: int,
                    service_ps_per_row: long,
                },
                oldest_arrival_ns: long,
                predicted_finish_ns: long,
            })
        };
        check(dispatch(0));
        let each = (encoded(Some(dispatch(100))) - encoded(Some(dispatch(0)))) / 100;
        assert!(each + 1 + INT + 2 * LONG <= TAKE_BYTES, "{each} bytes, and a pause");
    }
}
