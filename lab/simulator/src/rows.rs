//! Rows of ticks in transit, queued in their group or in a batch, and their latencies.

use std::collections::{BTreeMap, VecDeque};

use hdrhistogram::Histogram;
use warptape_events::journal::{Arrived, Dispatch, GroupArrival, LaneId, PartitionId};

/// Size of a row in transit to a lane, in bytes.
pub(crate) const ROW_BYTES: i64 = 64;
/// Greatest recorded latency, in nanoseconds: a day. Longer latencies count as a day.
const LATENCY_NS_MAX: u64 = 86_400_000_000_000;

/// Rows that arrived at the same time.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    since_ns: i64,
    rows: i64,
}

/// A batch in flight.
#[derive(Debug)]
struct Flight {
    lane: LaneId,
    /// The batch's rows by group.
    parts: Vec<(usize, Vec<Chunk>)>,
}

/// All rows of a run.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Number of groups of each partition.
    groups: usize,
    /// Queued rows by group; the groups of one partition are adjacent.
    waiting: Vec<VecDeque<Chunk>>,
    flights: BTreeMap<i64, Flight>,
    /// Number of rows that have arrived and are not done, including those still at the source.
    open: i64,
    /// Number of rows done.
    done: i64,
    /// Start of measuring; rows that arrived before it are not measured.
    measured_from_ns: i64,
    latency_ns: Histogram<u64>,
    latency_sum_ns: i128,
}

impl Rows {
    pub(crate) fn new(partitions: usize, groups: usize) -> Self {
        Self {
            groups,
            waiting: vec![VecDeque::new(); partitions * groups],
            flights: BTreeMap::new(),
            open: 0,
            done: 0,
            measured_from_ns: i64::MAX,
            // The range is from a microsecond to a day with three digits; the constant bounds cannot fail.
            latency_ns: Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, 3).expect("bounds of a histogram"),
            latency_sum_ns: 0,
        }
    }

    /// Starts measuring rows that arrive at or after a time.
    pub(crate) fn measure_from(&mut self, at_ns: i64) {
        self.measured_from_ns = self.measured_from_ns.min(at_ns);
    }

    /// Counts rows that arrived at the source.
    pub(crate) fn come(&mut self, rows: i64) {
        self.open += rows;
    }

    /// True if rows that arrived are not done.
    pub(crate) fn are_open(&self) -> bool {
        self.open > 0
    }

    pub(crate) fn done(&self) -> i64 {
        self.done
    }

    /// Queues rows of a partition that arrived at the source at `since_ns`.
    pub(crate) fn arrive(&mut self, arrived: &Arrived, since_ns: i64) {
        for &GroupArrival { group, rows, .. } in &arrived.groups {
            let of = self.index(arrived.partition, group);
            self.waiting[of].push_back(Chunk { since_ns, rows });
        }
    }

    /// Moves the longest-waiting rows of the batch's groups from the queues into flight.
    pub(crate) fn dispatch(&mut self, dispatch: &Dispatch) {
        let mut parts = Vec::with_capacity(dispatch.takes.len());
        for take in &dispatch.takes {
            let of = self.index(take.partition, take.group);
            let (waiting, mut chunks, mut rows) = (&mut self.waiting[of], Vec::new(), take.rows);
            while rows > 0 {
                let first = waiting.front_mut().expect("the scheduler takes rows that have arrived");
                let taken = first.rows.min(rows);
                chunks.push(Chunk { rows: taken, ..*first });
                (rows, first.rows) = (rows - taken, first.rows - taken);
                if first.rows == 0 {
                    waiting.pop_front();
                }
            }
            parts.push((of, chunks));
        }
        self.flights.insert(dispatch.batch, Flight { lane: dispatch.lane, parts });
    }

    /// Completes a batch.
    pub(crate) fn complete(&mut self, at_ns: i64, batch: i64) {
        let flight = self.flights.remove(&batch).expect("a lane ends batches that it was given");
        for chunk in flight.parts.into_iter().flat_map(|(_, chunks)| chunks) {
            (self.open, self.done) = (self.open - chunk.rows, self.done + chunk.rows);
            if chunk.since_ns >= self.measured_from_ns {
                let (latency_ns, rows) = (at_ns - chunk.since_ns, chunk.rows);
                self.latency_sum_ns += i128::from(latency_ns) * i128::from(rows);
                let latency_ns = latency_ns.unsigned_abs().clamp(1, LATENCY_NS_MAX);
                self.latency_ns.record_n(latency_ns, rows.unsigned_abs()).expect("it is within the bounds");
            }
        }
    }

    /// Puts the rows in flight on a lost lane back at the front of their queues, and returns them by partition.
    pub(crate) fn lose(&mut self, lane: LaneId) -> BTreeMap<PartitionId, Vec<GroupArrival>> {
        let mut lost: BTreeMap<usize, i64> = BTreeMap::new();
        let of_lane = self.flights.extract_if(.., |_, flight| flight.lane == lane);
        let flights: Vec<Flight> = of_lane.map(|(_, flight)| flight).collect();
        for (of, chunks) in flights.into_iter().rev().flat_map(|flight| flight.parts) {
            for chunk in chunks.into_iter().rev() {
                *lost.entry(of).or_default() += chunk.rows;
                self.waiting[of].push_front(chunk);
            }
        }
        let mut again: BTreeMap<PartitionId, Vec<GroupArrival>> = BTreeMap::new();
        for (of, rows) in lost {
            let group = (of % self.groups) as i32;
            let arrival = GroupArrival { group, rows, bytes: rows * ROW_BYTES };
            again.entry((of / self.groups) as PartitionId).or_default().push(arrival);
        }
        again
    }

    /// Returns the mean latency of measured rows and the given quantiles, in milliseconds; NaN if none was measured.
    pub(crate) fn latencies_ms(&self, quantiles: [f64; 2]) -> (f64, [f64; 2]) {
        if self.latency_ns.is_empty() {
            return (f64::NAN, [f64::NAN; 2]);
        }
        let mean_ns = self.latency_sum_ns as f64 / self.latency_ns.len() as f64;
        let quantile = |quantile| self.latency_ns.value_at_quantile(quantile) as f64 / 1e6;
        (mean_ns / 1e6, quantiles.map(quantile))
    }

    fn index(&self, partition: PartitionId, group: i32) -> usize {
        partition as usize * self.groups + group as usize
    }
}

#[cfg(test)]
mod tests {
    use warptape_events::journal::{LaneTelemetry, ReleaseReason, Take};

    use super::*;

    fn arrived(groups: &[(i32, i64)]) -> Arrived {
        let group = |&(group, rows): &(i32, i64)| GroupArrival { group, rows, bytes: rows * ROW_BYTES };
        Arrived { partition: 1, next_offset: 0, groups: groups.iter().map(group).collect() }
    }

    fn dispatch(batch: i64, lane: LaneId, takes: &[(i32, i64)]) -> Dispatch {
        let take = |&(group, rows): &(i32, i64)| Take { partition: 1, group, epoch: 1, rows };
        Dispatch {
            batch,
            lane,
            takes: takes.iter().map(take).collect(),
            rows: 0,
            bytes: 0,
            reason: ReleaseReason::Idle,
            telemetry: LaneTelemetry {
                in_flight_rows: 0,
                in_flight_bytes: 0,
                in_flight_batches: 0,
                service_ps_per_row: 0,
            },
            oldest_arrival_ns: 0,
            predicted_finish_ns: 0,
        }
    }

    #[test]
    fn latencies_are_of_the_rows_that_waited_longest_and_what_is_lost_is_done_in_its_old_order() {
        let mut rows = Rows::new(2, 4);
        assert!(rows.latencies_ms([0.5, 0.99]).0.is_nan(), "nothing took time yet");
        rows.measure_from(10);
        rows.come(12);
        for (at_ns, number) in [(5, 2), (1_000_000, 4), (2_000_000, 6)] {
            rows.arrive(&arrived(&[(3, number)]), at_ns);
        }
        rows.dispatch(&dispatch(0, 2, &[(3, 3)]));
        rows.dispatch(&dispatch(1, 2, &[(3, 4)]));
        let again = rows.lose(2);
        assert_eq!(again[&1], [GroupArrival { group: 3, rows: 7, bytes: 7 * ROW_BYTES }]);
        rows.dispatch(&dispatch(2, 0, &[(3, 6)]));
        rows.complete(11_000_000, 2);
        // Two rows are not measured, and four took 10 ms.
        let (mean_ms, [p50_ms, p99_ms]) = rows.latencies_ms([0.5, 0.99]);
        assert_eq!((mean_ms, rows.done()), (10.0, 6));
        assert!((p50_ms / 10.0 - 1.0).abs() < 2e-3 && (p99_ms / 10.0 - 1.0).abs() < 2e-3);
        rows.dispatch(&dispatch(3, 0, &[(3, 6)]));
        rows.complete(7_000_000, 3);
        assert_eq!(rows.latencies_ms([0.5, 0.99]).0, (4.0 * 10.0 + 6.0 * 5.0) / 10.0);
        assert!(!rows.are_open());
    }
}
