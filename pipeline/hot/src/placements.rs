//! Groups and lanes according to a journal: the lane of each group, and the health of the lanes.
//!
//! A pure fold of the entries of one journal partition, which is written by one process at a time.

use std::collections::{BTreeMap, BTreeSet};

use warptape_schemas::journal::{Decision, GroupIndex, Input, JournalEntry, LaneId, PartitionId};

use crate::keys::{LaneState, LaneValue, PlacementValue};

/// The state of the process that writes the journal.
#[derive(Debug, Default)]
pub(super) struct Placements {
    node: Option<String>,
    assigned: BTreeMap<PartitionId, Assigned>,
    groups: BTreeMap<(PartitionId, GroupIndex), PlacementValue>,
    changed: BTreeSet<(PartitionId, GroupIndex)>,
    lanes: BTreeMap<LaneId, LaneValue>,
    last_ns: i64,
}

/// A partition owned by the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned {
    /// Number of the partition's groups.
    pub(super) groups: u32,
    /// Committed offset at which the process took over the partition.
    pub(super) committed_offset: i64,
}

impl Placements {
    /// Adds the next entry. Entries before the first start of a process are ignored, because their process is unknown.
    pub(super) fn push(&mut self, entry: &JournalEntry) {
        let at_ns = entry.at_ns;
        if let Input::Started(started) = &entry.input {
            *self = Self { node: Some(started.node.clone()), ..Self::default() };
            for lane in &started.lanes {
                let device = lane.device.clone();
                let lane_value = LaneValue {
                    written_ns: at_ns,
                    since_ns: at_ns,
                    state: LaneState::Ready,
                    reason: String::new(),
                    device,
                    groups: 0,
                    completed_ns: 0,
                };
                self.lanes.insert(lane.lane, lane_value);
            }
        }
        self.last_ns = at_ns;
        let Some(node) = self.node.clone() else { return };
        match &entry.input {
            Input::PartitionAssigned(assigned) => {
                let owned = Assigned {
                    groups: u32::try_from(assigned.groups).unwrap_or(0),
                    committed_offset: assigned.committed_offset,
                };
                self.assigned.insert(assigned.partition, owned);
            }
            Input::PartitionRevoked(revoked) => {
                self.assigned.remove(&revoked.partition);
                self.groups.retain(|(partition, _), _| *partition != revoked.partition);
            }
            Input::Completed(completed) => {
                if let Some(lane) = self.lanes.get_mut(&completed.lane) {
                    lane.completed_ns = at_ns;
                }
            }
            Input::LaneLost(lost) => self.set_lane(lost.lane, at_ns, LaneState::Lost, &lost.reason),
            // Draining ends only with the next start.
            Input::Draining(_) => {
                for lane in self.lanes.values_mut().filter(|lane| lane.state == LaneState::Ready) {
                    (lane.state, lane.since_ns) = (LaneState::Stopped, at_ns);
                }
            }
            Input::LaneReady(ready) => self.set_lane(ready.lane, at_ns, LaneState::Ready, ""),
            Input::Started(_)
            | Input::Arrived(_)
            | Input::Woke(_)
            | Input::Measured(_)
            | Input::Released(_)
            | Input::TaskArrived(_)
            | Input::SliceDone(_)
            | Input::TaskDropped(_)
            | Input::Sealed(_)
            | Input::Priced(_)
            | Input::Sampled(_)
            | Input::Checkpoint(_)
            | Input::CommitEnded(_)
            | Input::Control(_)
            | Input::Trained(_)
            | Input::Positions(_) => {}
        }
        for decision in &entry.decisions {
            if let Decision::Place(place) = decision {
                let group = (place.partition, place.group);
                let assigned_offset =
                    self.assigned.get(&place.partition).map_or(0, |assigned| assigned.committed_offset);
                let (epoch, lane, node) = (place.epoch, place.lane, node.clone());
                self.groups.insert(group, PlacementValue { assigned_offset, at_ns, epoch, node, lane });
                self.changed.insert(group);
            }
        }
    }

    fn set_lane(&mut self, lane: LaneId, at_ns: i64, state: LaneState, reason: &str) {
        if let Some(lane) = self.lanes.get_mut(&lane) {
            (lane.state, lane.since_ns, lane.reason) = (state, at_ns, reason.to_owned());
        }
    }

    /// Returns the name of the process that writes the journal; `None` before its start was read.
    pub(super) fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }

    /// Returns the partitions that the process owns.
    pub(super) fn assigned(&self) -> &BTreeMap<PartitionId, Assigned> {
        &self.assigned
    }

    /// Returns the time of the last entry, ns since the epoch; 0 before the first.
    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Returns the placement of a group; `None` if unknown.
    pub(super) fn group(&self, partition: PartitionId, group: GroupIndex) -> Option<&PlacementValue> {
        self.groups.get(&(partition, group))
    }

    /// Returns true if groups were placed since the last [`Self::take_changed`].
    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Marks all groups as changed.
    pub(super) fn touch_all(&mut self) {
        self.changed = self.groups.keys().copied().collect();
    }

    /// Returns the groups placed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<(PartitionId, GroupIndex, PlacementValue)> {
        let changed = std::mem::take(&mut self.changed);
        let value =
            |(partition, group)| Some((partition, group, self.groups.get(&(partition, group))?.clone()));
        changed.into_iter().filter_map(value).collect()
    }

    /// Returns all lanes with their state, stamped with `written_ns`.
    pub(super) fn lanes(&self, written_ns: i64) -> impl Iterator<Item = (LaneId, LaneValue)> {
        let mut groups: BTreeMap<LaneId, i64> = BTreeMap::new();
        for placement in self.groups.values() {
            *groups.entry(placement.lane).or_default() += 1;
        }
        self.lanes.iter().map(move |(lane, value)| {
            let lost = value.state == LaneState::Lost;
            let groups = if lost { 0 } else { groups.get(lane).copied().unwrap_or(0) };
            (*lane, LaneValue { written_ns, groups, ..value.clone() })
        })
    }
}

#[cfg(test)]
mod tests {
    use warptape_schemas::hex::Digits;
    use warptape_schemas::journal::{
        Draining, LaneLost, LaneReady, LaneSpec, PartitionAssigned, PartitionRevoked, Place, PolicyRef,
        RiskConfig, SchedulerConfig, Started,
    };

    use super::*;

    fn started(node: &str) -> Input {
        let lane = |lane| LaneSpec::new(lane, format!("cpu:{lane}"), 1);
        Input::Started(Box::new(Started {
            node: node.to_owned(),
            software: "0".to_owned(),
            stage_config: "{}".to_owned(),
            scheduler: SchedulerConfig {
                placement_policy: "rendezvous".to_owned(),
                placement_seed: 0,
                load_factor_percent: 125,
                lane_credit_rows: 1,
                lane_credit_bytes: 1,
                lane_batches_max: 1,
                batch_rows_max: 1,
                row_deadline_ns: 1,
                high_water_rows: 2,
                low_water_rows: 1,
                route_interval_ns: 0,
                balance_interval_ns: 0,
                risk: RiskConfig::default(),
                breakers: None,
            },
            lanes: vec![lane(0), lane(1)],
            autoscale: None,
            shadow: None,
            rules: 1,
        }))
    }

    fn assigned(partition: PartitionId, committed_offset: i64) -> Input {
        Input::PartitionAssigned(PartitionAssigned {
            partition,
            groups: 2,
            committed_offset,
            ..PartitionAssigned::default()
        })
    }

    fn place(partition: PartitionId, group: GroupIndex, lane: LaneId, epoch: i64) -> Decision {
        Decision::Place(Place {
            partition,
            group,
            lane,
            epoch,
            policy: PolicyRef { id: "rendezvous".to_owned(), version: 1 },
            candidates: Vec::new(),
            excluded: Vec::new(),
            random_stream: 0,
            random_counter: 0,
            propensity_ppm: 1_000_000,
            route: None,
        })
    }

    fn push(placements: &mut Placements, at_ns: i64, input: Input, decisions: Vec<Decision>) {
        let (state_hash, hash) = (Digits::zeros(), Digits::zeros());
        placements.push(&JournalEntry { sequence: 0, at_ns, input, decisions, state_hash, hash });
    }

    fn lanes(placements: &Placements) -> Vec<(LaneId, LaneState, i64, i64)> {
        let lane = |(lane, value): (LaneId, LaneValue)| (lane, value.state, value.since_ns, value.groups);
        placements.lanes(99).map(lane).collect()
    }

    #[test]
    fn a_life_of_a_process() {
        let mut placements = Placements::default();
        // Entries before the first known start belong to an unknown process.
        push(&mut placements, 1, assigned(7, 3), vec![place(7, 0, 0, 1)]);
        assert_eq!((placements.node(), placements.has_changed()), (None, false));

        push(&mut placements, 2, started("a"), Vec::new());
        push(&mut placements, 3, assigned(0, 5), vec![place(0, 0, 0, 1), place(0, 1, 1, 1)]);
        assert_eq!(placements.node(), Some("a"));
        assert_eq!(lanes(&placements), [(0, LaneState::Ready, 2, 1), (1, LaneState::Ready, 2, 1)]);
        let changed: Vec<_> = placements
            .take_changed()
            .into_iter()
            .map(|(partition, group, to)| (partition, group, to.lane, to.epoch, to.assigned_offset, to.at_ns))
            .collect();
        assert_eq!(changed, [(0, 0, 0, 1, 5, 3), (0, 1, 1, 1, 5, 3)]);
        assert!(!placements.has_changed());

        let lost = Input::LaneLost(LaneLost { lane: 1, reason: "fire".to_owned(), kept: false });
        push(&mut placements, 4, lost, Vec::new());
        assert_eq!(lanes(&placements), [(0, LaneState::Ready, 2, 1), (1, LaneState::Lost, 4, 0)]);
        push(&mut placements, 5, assigned(0, 9), vec![place(0, 0, 0, 2), place(0, 1, 0, 2)]);
        push(&mut placements, 6, Input::LaneReady(LaneReady { lane: 1 }), Vec::new());
        assert_eq!(lanes(&placements), [(0, LaneState::Ready, 2, 2), (1, LaneState::Ready, 6, 0)]);
        assert_eq!(placements.group(0, 1).map(|to| (to.lane, to.epoch, to.assigned_offset)), Some((0, 2, 9)));

        placements.take_changed();
        placements.touch_all();
        assert_eq!(placements.take_changed().len(), 2);

        push(&mut placements, 7, Input::PartitionRevoked(PartitionRevoked { partition: 0 }), Vec::new());
        assert!(placements.assigned().is_empty() && placements.group(0, 0).is_none());
        push(&mut placements, 8, started("b"), Vec::new());
        assert_eq!(placements.node(), Some("b"));
        let lost = Input::LaneLost(LaneLost { lane: 1, reason: "fire".to_owned(), kept: false });
        push(&mut placements, 9, lost, Vec::new());
        push(&mut placements, 10, Input::Draining(Draining {}), Vec::new());
        assert_eq!(lanes(&placements), [(0, LaneState::Stopped, 10, 0), (1, LaneState::Lost, 9, 0)]);
    }
}
