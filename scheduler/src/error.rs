//! Reasons for refusing an input. A refused input changes nothing.

use thiserror::Error;
use warptape_events::journal::{GroupIndex, LaneId, PartitionId, TaskId};
use warptape_network::NetworkError;

use crate::config::{
    BYTES_MAX, ConfigMistake, GROUPS_PER_PARTITION_MAX, GROUPS_TOTAL_MAX, NETWORKS_MAX, PARTITIONS_MAX,
    POINTS_MAX, ROWS_MAX, TASKS_MAX, TEXT_BYTES_MAX, TIME_NS_MAX,
};

/// Reason why [`Scheduler::step`](crate::Scheduler::step) refused an input; the state is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StepError {
    /// The first input was not `Started`.
    #[error("the scheduler knows no lanes yet; the first input of a process life must be Started")]
    NotStarted,
    /// The configuration in a `Started` input is invalid.
    #[error("the scheduler's configuration has mistakes: {}", list(.0))]
    BadConfig(Vec<ConfigMistake>),
    /// The time of a step is before the time of the previous step.
    #[error("time fell from {last_ns} to {at_ns}; give each step at least the time of the one before")]
    TimeFell {
        /// Time of the last accepted step.
        last_ns: i64,
        /// Time of the refused step.
        at_ns: i64,
    },
    /// The time of a step is out of range.
    #[error("time {at_ns} is out of range; it must be from 0 to {TIME_NS_MAX} nanoseconds since the epoch")]
    TimeOutOfRange {
        /// Time of the refused step.
        at_ns: i64,
    },
    /// No lane has this index.
    #[error("lane {lane} does not exist; lanes are numbered from 0 to {}", lanes - 1)]
    UnknownLane {
        /// The index in the input.
        lane: LaneId,
        /// Number of lanes.
        lanes: usize,
    },
    /// A lane that is already lost was reported lost.
    #[error("lane {lane} is lost already; report its loss once, and LaneReady before the next")]
    LaneAlreadyLost {
        /// The lane.
        lane: LaneId,
    },
    /// A lane that is already ready was reported ready.
    #[error("lane {lane} is ready already; report LaneReady only after LaneLost")]
    LaneAlreadyReady {
        /// The lane.
        lane: LaneId,
    },
    /// A completion names a batch that is not in flight on the lane.
    #[error("batch {batch} is not in flight on lane {lane}; complete each dispatched batch once")]
    UnknownBatch {
        /// The lane.
        lane: LaneId,
        /// The batch in the input.
        batch: i64,
    },
    /// A completion overtook an earlier batch of the same lane.
    #[error(
        "batch {batch} of lane {lane} completed before batch {expected}; a lane works in order of dispatch"
    )]
    OutOfOrder {
        /// The lane.
        lane: LaneId,
        /// The batch in the input.
        batch: i64,
        /// The oldest batch in flight.
        expected: i64,
    },
    /// A service time is negative.
    #[error("service time {service_ns} ns of batch {batch} is negative; measure it with a monotonic clock")]
    NegativeServiceTime {
        /// The batch.
        batch: i64,
        /// The time in the input.
        service_ns: i64,
    },
    /// A partition number is negative.
    #[error("partition {partition} is negative; partitions are numbered from 0")]
    BadPartition {
        /// The number in the input.
        partition: PartitionId,
    },
    /// A process would own more partitions in its life than it may.
    #[error("a process may see {PARTITIONS_MAX} partitions in its life; spread them over more processes")]
    TooManyPartitions,
    /// A partition has no groups, or more than allowed.
    #[error("{groups} groups in partition {partition}; there must be from 1 to {GROUPS_PER_PARTITION_MAX}")]
    BadGroupCount {
        /// The partition.
        partition: PartitionId,
        /// The number in the input.
        groups: i32,
    },
    /// A process would own more groups in its life than it may.
    #[error("a process may see {GROUPS_TOTAL_MAX} groups in its life; configure fewer groups per partition")]
    TooManyGroups,
    /// Offsets of an assignment contradict each other.
    #[error(
        "partition {partition} restored from offset {snapshot_offset}, committed up to {committed_offset}; there must \
         be 0 <= snapshot_offset <= committed_offset"
    )]
    BadOffsets {
        /// The partition.
        partition: PartitionId,
        /// Offset of the snapshot.
        snapshot_offset: i64,
        /// Next offset to read according to the last commit.
        committed_offset: i64,
    },
    /// The partition is not assigned.
    #[error("partition {partition} is not assigned (or is to be restored); send PartitionAssigned first")]
    NotAssigned {
        /// The partition.
        partition: PartitionId,
    },
    /// The offset of an arrival is lower than that of the previous arrival in its partition.
    #[error(
        "partition {partition} went back from offset {position} to {next_offset}; assign it again to reread"
    )]
    OffsetFell {
        /// The partition.
        partition: PartitionId,
        /// Next offset after the previous arrival.
        position: i64,
        /// Next offset in the input.
        next_offset: i64,
    },
    /// A group of an arrival does not exist.
    #[error("group {group} of partition {partition} does not exist; its groups are numbered from 0 to {}", groups - 1)]
    UnknownGroup {
        /// The partition.
        partition: PartitionId,
        /// The group in the input.
        group: GroupIndex,
        /// Number of groups.
        groups: i32,
    },
    /// Groups of an arrival are not in order, or one is named twice.
    #[error("group {group} of partition {partition} is out of order; list each group once, ascending")]
    GroupsNotAscending {
        /// The partition.
        partition: PartitionId,
        /// The group in the input.
        group: GroupIndex,
    },
    /// Rows or bytes of an arrival are out of range.
    #[error(
        "{rows} rows, {bytes} bytes for group {group} of partition {partition}; rows must be at least 1, bytes 0"
    )]
    BadArrival {
        /// The partition.
        partition: PartitionId,
        /// The group.
        group: GroupIndex,
        /// Rows in the input.
        rows: i64,
        /// Bytes in the input.
        bytes: i64,
    },
    /// A lane was measured with too many batches.
    #[error("lane {lane} was measured with {points} batches; give at most {POINTS_MAX}")]
    TooManyPoints {
        /// The lane.
        lane: LaneId,
        /// Number of measured batches.
        points: usize,
    },
    /// Rows or time of a measured batch are out of range.
    #[error(
        "lane {lane} took {service_ns} ns for {rows} rows; rows must be from 1 to {ROWS_MAX}, the time 0 or more"
    )]
    BadPoint {
        /// The lane.
        lane: LaneId,
        /// Rows of the batch.
        rows: i64,
        /// Time of the batch.
        service_ns: i64,
    },
    /// A lane gives back a group that it was not told to release.
    #[error(
        "group {group} of partition {partition} is not leaving lane {lane} with epoch {epoch}. Report \
         Released once after Release, unless the lane is lost or the partition gone"
    )]
    NotLeaving {
        /// The partition.
        partition: PartitionId,
        /// The group.
        group: GroupIndex,
        /// The lane.
        lane: LaneId,
        /// The epoch in the input.
        epoch: i64,
    },
    /// The number of a task is taken, does not rise, or belongs to no earlier round.
    #[error(
        "task {task} has a wrong number. A request needs number {task_next} or higher; a later round \
         (first_unit above 0) has the number of its request, after Finish"
    )]
    BadTaskNumber {
        /// The number in the input.
        task: TaskId,
        /// The lowest number of the next request.
        task_next: TaskId,
    },
    /// A field of a task is out of range.
    #[error("{field} of task {task} is {found}; it must be from {min} to {max}")]
    BadTask {
        /// The task.
        task: TaskId,
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// The least allowed value.
        min: i64,
        /// The greatest allowed value.
        max: i64,
    },
    /// A process would know more tasks than it may.
    #[error("{TASKS_MAX} tasks are known, later rounds among them; admit fewer (risk.tasks_max)")]
    TooManyTasks,
    /// The task is not known.
    #[error("task {task} is not known; drop a task only after its Admit, and before its Expire or Finish")]
    UnknownTask {
        /// The task.
        task: TaskId,
    },
    /// A lane does not work on this slice.
    #[error("lane {lane} does not work on slice {slice}; report each slice of RunSlice once")]
    UnknownSlice {
        /// The lane.
        lane: LaneId,
        /// The slice in the input.
        slice: i64,
    },
    /// A service time of a slice is negative.
    #[error("service time {service_ns} ns of slice {slice} is negative; measure it with a monotonic clock")]
    NegativeSliceTime {
        /// The slice.
        slice: i64,
        /// The time in the input.
        service_ns: i64,
    },
    /// The prices answer a question that was never asked.
    #[error("question {question} for prices was not asked; questions below {question_next} were")]
    UnknownQuestion {
        /// The question in the input.
        question: i64,
        /// Number of the next question.
        question_next: i64,
    },
    /// The prices do not match the kinds of their question, or one is negative.
    #[error(
        "{prices} prices answer question {question} of {kinds} kinds; give one of 0 or more for each kind, or none at all"
    )]
    BadPrices {
        /// The question.
        question: i64,
        /// Kinds in the question.
        kinds: usize,
        /// Number of prices.
        prices: usize,
    },
    /// A text of a command is too long for the journal and the answer.
    #[error(
        "a text of a command has {bytes} bytes; it may have up to {TEXT_BYTES_MAX}: answer it without the scheduler"
    )]
    LongControl {
        /// Bytes of the longest text.
        bytes: usize,
    },
    /// More rows or bytes would wait than may.
    #[error(
        "partition {partition} would have more than {ROWS_MAX} rows or {BYTES_MAX} bytes waiting; pause it sooner"
    )]
    TooMuchWaiting {
        /// The partition.
        partition: PartitionId,
    },
    /// The bytes are not a network.
    #[error(transparent)]
    BadNetwork(NetworkError),
    /// The hash of a network differs from the hash that the input names.
    #[error("the network has the hash {hash}, but the input names {named}")]
    OtherNetworkHash {
        /// The hash in the input.
        named: String,
        /// The hash of the bytes.
        hash: String,
    },
    /// A network accepts only another number of lanes.
    #[error(
        "the network {hash} is for {for_lanes} lanes, but there are {lanes}. Train one for {lanes} lanes, or \
         one of the improved architecture, which fits any number"
    )]
    NetworkLanes {
        /// Hash of the network.
        hash: String,
        /// Number of lanes that it accepts.
        for_lanes: usize,
        /// Number of lanes of the process.
        lanes: usize,
    },
    /// A network was added twice.
    #[error("the network {hash} was given before; give each network once after Started")]
    NetworkThere {
        /// Hash of the network.
        hash: String,
    },
    /// The process has the greatest allowed number of networks.
    #[error("there are {NETWORKS_MAX} networks already, and there may be no more")]
    TooManyNetworks,
}

fn list(mistakes: &[ConfigMistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
}
