//! Input of a network: a task that arrives, and the lanes.

use xxhash_rust::xxh3::xxh3_64;

/// Number of classes of tasks, by urgency.
pub const PRIORITIES: usize = 3;
/// Number of buckets for kinds of tasks.
pub const KIND_BUCKETS: usize = 8;
/// Number of utilisation values per lane: one for each of the last seconds, the latest first.
pub const WINDOWS: usize = 2;
/// Most lanes of one choice.
pub const LANES_MAX: usize = 256;

/// The bucket of a kind of tasks, by the hash of its rate key.
pub fn kind_bucket(rate_key: &str) -> usize {
    (xxh3_64(rate_key.as_bytes()) % KIND_BUCKETS as u64) as usize
}

/// A task that arrives. Values out of range count as the nearest one in range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskState {
    /// Urgency: 0 critical, 1 interactive, 2 batch.
    pub priority: usize,
    /// Bucket of its kind ([`kind_bucket`]).
    pub kind: usize,
    /// Number of other known tasks.
    pub waiting: i64,
    /// Time until its deadline, in nanoseconds, negative after it; `None` if it has no deadline.
    pub laxity_ns: Option<i64>,
}

/// A candidate lane for the task, or an excluded one. Values out of range count as the nearest one in range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneState {
    /// Number of tasks that wait for this lane alone, plus the one in progress.
    pub tasks: i64,
    /// Predicted time of these tasks, in nanoseconds.
    pub backlog_ns: i64,
    /// Predicted time of the arriving task on this lane, in nanoseconds; 0 if it is unknown.
    pub task_ns: i64,
    /// Speed over all kinds, relative to other lanes: its weight.
    pub weight: i64,
    /// Share of the last second in which the lane worked, then of the whole clock second before the present one, in
    /// parts per million.
    pub utilization_ppm: [i64; WINDOWS],
    /// True if the task may not be assigned to it.
    pub is_excluded: bool,
}
