//! Meanings of the words of decisions, as in docs/scheduling.md, and words for things that have none in the journal.

use crate::gathered::{EventKind, ReasonKind};

/// The meaning of a word.
pub(super) fn meaning(kind: ReasonKind, word: &str) -> &'static str {
    match (kind, word) {
        (ReasonKind::Batch, "IDLE") => "The lane has nothing to do.",
        (ReasonKind::Batch, "FULL") => "As many rows wait as a batch may have.",
        (ReasonKind::Batch, "DEADLINE") => "The oldest row allows no further waiting.",
        (ReasonKind::Batch, "DRAIN") => "The pipeline drains.",
        (ReasonKind::Slice, "ORDER") => "The lane is free, and the task is first in its order.",
        (ReasonKind::Slice, "RESERVED") => {
            "The lane has ticks; the task is critical, and the lane has time in reserve."
        }
        (ReasonKind::Slice, "AGED") => "The task has waited longest, and longer than risk.ageing_ms.",
        (ReasonKind::Slice, "EXPLORED") => "The task was drawn at random (risk.explore_ppm).",
        (ReasonKind::Slice, "STOLEN") => {
            "The lane has nothing else to do, and the lane it was split to would come to it later."
        }
        (ReasonKind::Move, "ROUTE") => {
            "Lanes of the other kind are predicted to take less than four fifths of the time."
        }
        (ReasonKind::Move, "DRAINED") => "An operator drains the lane.",
        (ReasonKind::Move, "BREAKER") => "The lane’s breaker is open.",
        (ReasonKind::Move, "REBALANCE") => {
            "An operator asked, or a lane is back: the policy would place the group elsewhere now."
        }
        (ReasonKind::Move, "BALANCE") => "Another lane has less to do.",
        (ReasonKind::Move, "LOST") => "The lane is lost.",
        (ReasonKind::Move, "RESTORED") => "The partition was restored, and the policy chose another lane.",
        (ReasonKind::Refusal, "OVERLOADED") => "As many tasks or bytes of requests are known as may be.",
        (ReasonKind::Refusal, "EXPIRED") => "The deadline had passed on arrival.",
        (ReasonKind::Refusal, "QUOTA") => {
            "The quota has as many tasks as its limit, or what is free is guaranteed to others."
        }
        (ReasonKind::Refusal, "RATE") => "Requests of the quota come faster than its rate.",
        (ReasonKind::Refusal, "CONGESTED") => "Tasks wait for too long, so that fewer may be known.",
        (ReasonKind::Refusal, "STANDING_DELAY") => {
            "Tasks have waited longer than risk.delay_target_ms for an interval."
        }
        (ReasonKind::Refusal, "DEADLINE_PASSED") => "The deadline passed before the task was done.",
        (ReasonKind::Refusal, "DROPPED") => {
            "The task was withdrawn, or its partition went to another process."
        }
        (ReasonKind::Refusal, _) => "The task was refused.",
        (ReasonKind::Pause, "HIGH_WATER") => {
            "More rows of the partition waited on the host than its high-water mark."
        }
        (ReasonKind::Pause, "CHECKPOINT") => "It was paused where the history begins, at a checkpoint.",
        _ => "",
    }
}

/// The title of a kind of decisions.
pub(super) fn title(kind: ReasonKind) -> &'static str {
    match kind {
        ReasonKind::Batch => "Batches, by what released them",
        ReasonKind::Slice => "Slices of risk tasks, by reason",
        ReasonKind::Move => "Moves of groups, by cause",
        ReasonKind::Refusal => "Risk tasks that were not done, by reason",
        ReasonKind::Pause => "Pauses of partitions, by reason",
    }
}

/// The name of a kind of events, and the class of its marks.
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
