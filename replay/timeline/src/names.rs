//! Names that occur repeatedly: of events, which Perfetto colours by name, and of annotations.

use warptape_replay::history::RoundEnd;
use warptape_schemas::journal::{BreakerState, ReleaseCause, ReleaseReason, TaskClass};

/// Declares an enum of names, each with its text.
macro_rules! names {
    ($(#[$doc:meta])* $names:ident { $($name:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $names { $($name,)+ }

        impl $names {
            /// All names with their texts.
            pub(crate) const ALL: &[($names, &str)] = &[$(($names::$name, $text),)+];

            /// Returns the number of the name in the trace; 0 means no name.
            pub(crate) fn iid(self) -> u64 {
                self as u64 + 1
            }
        }
    };
}

names! {
    /// Names of events.
    Name {
        BatchIdle = "batch: idle",
        BatchFull = "batch: full",
        BatchDeadline = "batch: deadline",
        BatchDrain = "batch: drain",
        BatchLost = "batch: lost",
        Service = "service",
        Arrived = "arrived",
        Assigned = "assigned",
        Paused = "paused",
        Sealed = "transaction",
        Commit = "commit",
        CommitUntimed = "commit: time unknown",
        Attempt = "attempt",
        AttemptAborted = "attempt: aborted",
        MoveRoute = "move: route",
        MoveDrained = "move: drained",
        MoveBreaker = "move: breaker",
        MoveRebalance = "move: rebalance",
        MoveBalance = "move: balance",
        Placed = "placed",
        SliceCritical = "slice: critical",
        SliceInteractive = "slice: interactive",
        SliceBatch = "slice: batch",
        RoundFinished = "request: finished",
        RoundRejected = "request: rejected",
        RoundExpired = "request: expired",
        RoundShed = "request: shed",
        RoundDropped = "request: dropped",
        RoundOpen = "request: open",
        Answered = "all units done",
        LaneLost = "lost",
        LaneReady = "ready",
        Heat = "heat",
        Draining = "told to end",
        Wish = "number of wanted lanes changes",
        BreakerClosed = "breaker: closed",
        BreakerOpen = "breaker: open",
        BreakerHalfOpen = "breaker: half open",
    }
}

names! {
    /// Names of an event's annotations. Names of times end in `_ns`.
    Key {
        Batch = "batch",
        Sequence = "sequence",
        Trigger = "trigger",
        Rows = "rows",
        Bytes = "bytes",
        Groups = "groups",
        QueueWait = "queue_wait_ns",
        LaneWait = "lane_wait_ns",
        Service = "service_ns",
        Handover = "handover_ns",
        Took = "dispatch_to_completion_ns",
        BeforeWindow = "before_window_ns",
        Began = "began",
        Predicted = "predicted_ns",
        Ended = "ended",
        FirstOffset = "first_offset",
        NextOffset = "next_offset",
        CommittedOffset = "committed_offset",
        SnapshotOffset = "snapshot_offset",
        Offsets = "offsets",
        WaitingRows = "waiting_rows",
        HighWaterRows = "high_water_rows",
        SealedSequence = "sealed_sequence",
        FirstSequence = "first_sequence",
        Signals = "signals",
        Late = "late",
        DeadLetters = "dead_letters",
        RiskResults = "risk_results",
        Attempts = "attempts",
        LookedUp = "looked_up",
        SealWait = "sealed_to_sent_ns",
        Batches = "batches",
        Partition = "partition",
        Group = "group",
        Epoch = "epoch",
        Lane = "lane",
        Reason = "reason",
        Measured = "measured",
        Limit = "limit",
        WeightPercent = "weight_percent",
        TemperatureC = "temperature_c",
        LimitC = "limit_c",
        Lanes = "lanes",
        LanesBefore = "lanes_before",
        LanesInService = "lanes_in_service",
        UtilizationPercent = "utilization_percent",
        LoadE6 = "load_e6",
        Waiting = "waiting_ns",
        Task = "task",
        RequestId = "request_id",
        Tenant = "tenant",
        Class = "class",
        Slice = "slice",
        FirstUnit = "first_unit",
        NextUnit = "next_unit",
        Units = "units",
        Slices = "slices",
        FirstSliceWait = "first_slice_wait_ns",
        Offset = "offset",
    }
}

impl From<ReleaseReason> for Name {
    fn from(reason: ReleaseReason) -> Self {
        match reason {
            ReleaseReason::Idle => Self::BatchIdle,
            ReleaseReason::Full => Self::BatchFull,
            ReleaseReason::Deadline => Self::BatchDeadline,
            ReleaseReason::Drain => Self::BatchDrain,
        }
    }
}

impl From<ReleaseCause> for Name {
    fn from(cause: ReleaseCause) -> Self {
        match cause {
            ReleaseCause::Route => Self::MoveRoute,
            ReleaseCause::Drained => Self::MoveDrained,
            ReleaseCause::Breaker => Self::MoveBreaker,
            ReleaseCause::Rebalance => Self::MoveRebalance,
            ReleaseCause::Balance => Self::MoveBalance,
        }
    }
}

impl From<TaskClass> for Name {
    fn from(class: TaskClass) -> Self {
        match class {
            TaskClass::Critical => Self::SliceCritical,
            TaskClass::Interactive => Self::SliceInteractive,
            TaskClass::Batch => Self::SliceBatch,
        }
    }
}

impl From<Option<RoundEnd>> for Name {
    fn from(end: Option<RoundEnd>) -> Self {
        match end {
            Some(RoundEnd::Finished) => Self::RoundFinished,
            Some(RoundEnd::Rejected) => Self::RoundRejected,
            Some(RoundEnd::Expired) => Self::RoundExpired,
            Some(RoundEnd::Shed) => Self::RoundShed,
            Some(RoundEnd::Dropped) => Self::RoundDropped,
            None => Self::RoundOpen,
        }
    }
}

impl From<BreakerState> for Name {
    fn from(state: BreakerState) -> Self {
        match state {
            BreakerState::Closed => Self::BreakerClosed,
            BreakerState::Open => Self::BreakerOpen,
            BreakerState::HalfOpen => Self::BreakerHalfOpen,
        }
    }
}
