//! What a network is told of a task that arrives, and of the lanes.

use xxhash_rust::xxh3::xxh3_64;

/// Classes of tasks, by their urgency.
pub const PRIORITIES: usize = 3;
/// Buckets that kinds of tasks fall into.
pub const KIND_BUCKETS: usize = 8;
/// Seconds of which a lane's utilisation is given, the last one first.
pub const WINDOWS: usize = 2;
/// Lanes that a network is asked about at most.
pub const LANES_MAX: usize = 256;

/// The bucket of a kind of tasks, by the hash of its rate key.
pub fn kind_bucket(rate_key: &str) -> usize {
    (xxh3_64(rate_key.as_bytes()) % KIND_BUCKETS as u64) as usize
}

/// A task that arrives. Values out of range count as the nearest one in range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskState {
    /// How urgent it is: 0 critical, 1 interactive, 2 batch.
    pub priority: usize,
    /// Bucket of its kind ([`kind_bucket`]).
    pub kind: usize,
    /// Tasks that are known, this one not counted.
    pub waiting: i64,
    /// Time until its deadline, in nanoseconds, negative behind it; none: it has no deadline.
    pub laxity_ns: Option<i64>,
}

/// A lane that the task may go to, or that is excluded. Values out of range count as the nearest one in range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneState {
    /// Tasks that wait for it alone, and the one that it works on.
    pub tasks: i64,
    /// What it is predicted to take for them, in nanoseconds.
    pub backlog_ns: i64,
    /// What it is predicted to take for the task, in nanoseconds; 0 while nobody knows.
    pub task_ns: i64,
    /// How fast it is over all kinds, by comparison with other lanes: its weight.
    pub weight: i64,
    /// Share of the last second in which it worked, and of the whole second of the clock before the present one, in parts per million.
    pub utilization_ppm: [i64; WINDOWS],
    /// Whether it may not be chosen.
    pub is_excluded: bool,
}
