//! The model's assertions about the state between two steps.

use warptape_events::journal::LaneId;
use warptape_scheduler::PartitionPhase;

use super::Model;

impl Model {
    /// Checks after every step that no work waits without a reason.
    pub(super) fn check_rest(&self) {
        let config = &self.config;
        for (id, partition) in &self.partitions {
            let rows = partition.waiting_rows();
            assert!(partition.paused || rows < config.high_water_rows, "partition {id} is not paused");
            assert!(!partition.paused || rows > config.low_water_rows, "partition {id} is not resumed");
        }
        assert_eq!(self.life.timer_ns, self.scheduler.wake_at_ns());
        // Work without room in this step is left to the next one.
        let lanes = self.lanes.iter().enumerate().filter(|_| !self.may_be_short());
        for (index, lane) in lanes {
            let heads: Vec<_> = self.lane_heads(index as LaneId).collect();
            let Some(oldest) = heads.first() else { continue };
            assert!(!lane.in_flight.is_empty(), "lane {index} is idle and rows wait for it");
            let rows: i64 = lane.in_flight.iter().map(|dispatch| dispatch.rows).sum();
            let bytes: i64 = lane.in_flight.iter().map(|dispatch| dispatch.bytes).sum();
            let waiting: i64 = heads
                .iter()
                .map(|head| self.partitions[&head.1].groups[head.2 as usize].waiting.len() as i64)
                .sum();
            let slots = lane.in_flight.len() < config.lane_batches_max as usize;
            // Bytes are divided among rows in proportion, rounded down. So the later rows of an arrival of n rows have
            // at most 1 + 1/2 + … + 1/n extra bytes: less than 10 for all n here.
            let heaviest = self.partitions[&oldest.1].groups[oldest.2 as usize].row_bytes_max + 10;
            let room =
                slots && rows < config.lane_credit_rows && bytes + heaviest <= config.lane_credit_bytes;
            if room {
                assert!(!self.life.draining, "lane {index} has room while the pipeline drains");
                assert!(waiting < config.batch_rows_max, "a full batch waits for lane {index}");
                let due_ns = oldest.0 + config.row_deadline_ns;
                assert!(due_ns > self.at_ns, "lane {index} misses a deadline");
                assert!(
                    self.life.timer_ns.is_some_and(|timer_ns| timer_ns <= due_ns),
                    "nobody wakes for lane {index}"
                );
            }
        }
    }

    /// True if the last step may have lacked room: then the next one follows at once.
    pub(super) fn may_be_short(&self) -> bool {
        self.config.placement_policy.contains('/') && self.life.timer_ns == Some(self.at_ns + 1)
    }

    pub(super) fn check_views(&self) {
        for (load, lane) in self.scheduler.lane_loads().zip(&self.lanes) {
            let rows: i64 = lane.in_flight.iter().map(|dispatch| dispatch.rows).sum();
            let bytes: i64 = lane.in_flight.iter().map(|dispatch| dispatch.bytes).sum();
            assert_eq!(load.slice, lane.slice.as_ref().map(|slice| slice.slice));
            let found = (load.ready, load.groups_placed as usize, load.in_flight_rows, load.in_flight_bytes);
            assert_eq!(
                (load.in_service, load.weight),
                (lane.is_in_service(), lane.breaker.weight_of(lane.weight))
            );
            assert_eq!(found, (lane.ready, self.groups_on(load.lane), rows, bytes));
            let batches = self.scheduler.in_flight(load.lane).map(|flight| flight.batch);
            assert!(batches.eq(lane.in_flight.iter().map(|dispatch| dispatch.batch)));
        }
        assert_eq!(self.scheduler.partition_loads().count(), self.partitions.len());
        for load in self.scheduler.partition_loads() {
            let partition = &self.partitions[&load.partition];
            let phase = match (partition.assigned, partition.restoring) {
                (true, _) => PartitionPhase::Assigned,
                (false, true) => PartitionPhase::Restoring,
                (false, false) => PartitionPhase::Revoked,
            };
            assert_eq!((load.phase, load.paused), (phase, partition.paused));
            assert_eq!(load.waiting_rows, partition.waiting_rows());
            assert_eq!(load.waiting_rows, self.scheduler.waiting_rows(load.partition));
        }
        for placement in self.scheduler.placements() {
            let group = &self.partitions[&placement.partition].groups[placement.group as usize];
            let found = (placement.lane, placement.epoch, placement.waiting_rows);
            assert_eq!(found, (group.lane, group.epoch, group.waiting.len() as i64));
        }
    }
}
