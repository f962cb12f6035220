//! What the words of decisions mean: those of docs/scheduling.md, and those that a page has for what has no word in the journal.

use crate::gathered::{EventKind, Kind};

/// What a word means.
pub(super) fn meaning(kind: Kind, word: &str) -> &'static str {
    match (kind, word) {
        (Kind::Batch, "IDLE") => "The lane has nothing to do.",
        (Kind::Batch, "FULL") => "As many rows wait as a batch may have.",
        (Kind::Batch, "DEADLINE") => "The oldest row allows no further waiting.",
        (Kind::Batch, "DRAIN") => "The pipeline drains.",
        (Kind::Slice, "ORDER") => "The lane is free, and the task is first in its order.",
        (Kind::Slice, "RESERVED") => {
            "The lane has ticks; the task is critical, and the lane has time in reserve."
        }
        (Kind::Slice, "AGED") => "The task has waited longest, and longer than risk.ageing_ms.",
        (Kind::Slice, "EXPLORED") => "The task was drawn at random (risk.explore_ppm).",
        (Kind::Slice, "STOLEN") => {
            "The lane has nothing else to do, and the lane it was split to would come to it later."
        }
        (Kind::Move, "ROUTE") => {
            "Lanes of the other kind are predicted to take less than four fifths of the time."
        }
        (Kind::Move, "DRAINED") => "An operator drains the lane.",
        (Kind::Move, "BREAKER") => "The lane’s breaker is open.",
        (Kind::Move, "REBALANCE") => {
            "An operator asked, or a lane is back: the policy would place the group elsewhere now."
        }
        (Kind::Move, "BALANCE") => "Another lane has less to do.",
        (Kind::Move, "LOST") => "The lane is lost.",
        (Kind::Move, "RESTORED") => "The partition was restored, and the policy chose another lane.",
        (Kind::Refusal, "OVERLOADED") => "As many tasks or bytes of requests are known as may be.",
        (Kind::Refusal, "EXPIRED") => "The deadline had passed on arrival.",
        (Kind::Refusal, "QUOTA") => {
            "The quota has as many tasks as its limit, or what is free is guaranteed to others."
        }
        (Kind::Refusal, "RATE") => "Requests of the quota come faster than its rate.",
        (Kind::Refusal, "CONGESTED") => "Tasks wait for too long, so that fewer may be known.",
        (Kind::Refusal, "STANDING_DELAY") => {
            "Tasks have waited longer than risk.delay_target_ms for an interval."
        }
        (Kind::Refusal, "DEADLINE_PASSED") => "The deadline passed before the task was done.",
        (Kind::Refusal, "DROPPED") => "The task was withdrawn, or its partition went to another process.",
        (Kind::Refusal, _) => "The task was refused.",
        (Kind::Pause, "HIGH_WATER") => {
            "More rows of the partition waited on the host than its high-water mark."
        }
        (Kind::Pause, "CHECKPOINT") => "It was paused where the history begins, at a checkpoint.",
        _ => "",
    }
}

/// What kinds of decisions are called.
pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Batch => "Batches, by what released them",
        Kind::Slice => "Slices of risk tasks, by reason",
        Kind::Move => "Moves of groups, by cause",
        Kind::Refusal => "Risk tasks that were not done, by reason",
        Kind::Pause => "Pauses of partitions, by reason",
    }
}

/// What events are called, and the class of their marks.
pub(super) fn event(kind: EventKind) -> (&'static str, &'static str) {
    match kind {
        EventKind::Life => ("Process began", "m-life"),
        EventKind::LaneLost => ("Lane lost", "m-lost"),
        EventKind::Breaker => ("Breaker changed", "m-breaker"),
        EventKind::Headroom => ("Device hot, or cool again", "m-heat"),
        EventKind::Draining => ("Process told to end", "m-life"),
        EventKind::Wanted => ("Other lanes wanted", "m-wanted"),
        EventKind::Aborted => ("Commit aborted", "m-aborted"),
        EventKind::Hole => ("Nothing recorded", "m-hole"),
    }
}
