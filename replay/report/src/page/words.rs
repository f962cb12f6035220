//! Meanings of the words in decisions, as in docs/scheduling.md, and words for events that have none in the journal.

use crate::gathered::{EventKind, ReasonKind};

/// Returns the meaning of a word.
pub(super) fn meaning(kind: ReasonKind, word: &str) -> &'static str {
    match (kind, word) {
        (ReasonKind::Batch, "IDLE") => "The lane is idle.",
        (ReasonKind::Batch, "FULL") => "Enough rows for a full batch wait.",
        (ReasonKind::Batch, "DEADLINE") => "The oldest row cannot wait any longer.",
        (ReasonKind::Batch, "DRAIN") => "The pipeline is draining.",
        (ReasonKind::Slice, "ORDER") => {
            "The lane is free, and the task comes first in the order of the policy."
        }
        (ReasonKind::Slice, "RESERVED") => {
            "The lane has ticks, but the task is critical and the lane has reserved time."
        }
        (ReasonKind::Slice, "AGED") => "The task has waited longest, for more than risk.ageing_ms.",
        (ReasonKind::Slice, "EXPLORED") => "The task was drawn at random (risk.explore_ppm).",
        (ReasonKind::Slice, "STOLEN") => {
            "The lane is idle, and the lane with the task's share would reach it later."
        }
        (ReasonKind::Move, "ROUTE") => {
            "Lanes of the other kind are predicted to need less than four fifths of the time."
        }
        (ReasonKind::Move, "DRAINED") => "An operator drained the lane.",
        (ReasonKind::Move, "BREAKER") => "The lane’s breaker is open.",
        (ReasonKind::Move, "REBALANCE") => {
            "An operator asked for it, or a lane came back: the policy would now place the group elsewhere."
        }
        (ReasonKind::Move, "BALANCE") => "Another lane has less load.",
        (ReasonKind::Move, "LOST") => "The lane was lost.",
        (ReasonKind::Move, "RESTORED") => "The partition was restored, and the policy chose another lane.",
        (ReasonKind::Refusal, "OVERLOADED") => {
            "The limit of known tasks, or of bytes of their requests, is reached."
        }
        (ReasonKind::Refusal, "EXPIRED") => "The deadline had passed on arrival.",
        (ReasonKind::Refusal, "QUOTA") => {
            "The quota has reached its limit, or its free tasks are guaranteed to others."
        }
        (ReasonKind::Refusal, "RATE") => "Requests of the quota arrive faster than its rate allows.",
        (ReasonKind::Refusal, "CONGESTED") => "Tasks wait for too long, so fewer may be known.",
        (ReasonKind::Refusal, "STANDING_DELAY") => {
            "Tasks have waited longer than risk.delay_target_ms throughout an interval."
        }
        (ReasonKind::Refusal, "DEADLINE_PASSED") => "The deadline passed before the task was done.",
        (ReasonKind::Refusal, "DROPPED") => {
            "The task was withdrawn, or its partition went to another process."
        }
        (ReasonKind::Refusal, _) => "The task was refused.",
        (ReasonKind::Pause, "HIGH_WATER") => {
            "The waiting rows of the partition exceeded the high-water mark."
        }
        (ReasonKind::Pause, "CHECKPOINT") => {
            "The partition was already paused at the checkpoint where the \
                                              history begins."
        }
        _ => "",
    }
}

/// Returns the title of a kind of decisions.
pub(super) fn title(kind: ReasonKind) -> &'static str {
    match kind {
        ReasonKind::Batch => "Batches, by reason for their dispatch",
        ReasonKind::Slice => "Slices of risk tasks, by reason",
        ReasonKind::Move => "Moves of groups, by cause",
        ReasonKind::Refusal => "Risk tasks that were not done, by reason",
        ReasonKind::Pause => "Pauses of partitions, by reason",
    }
}

/// Returns the name of a kind of event, and the class of its marks.
pub(super) fn event(kind: EventKind) -> (&'static str, &'static str) {
    match kind {
        EventKind::Life => ("Process began", "m-life"),
        EventKind::LaneLost => ("Lane lost", "m-lost"),
        EventKind::Breaker => ("Breaker changed", "m-breaker"),
        EventKind::Headroom => ("Device became hot or cool", "m-heat"),
        EventKind::Draining => ("Process told to end", "m-life"),
        EventKind::Wanted => ("Number of wanted lanes changed", "m-wanted"),
        EventKind::Aborted => ("Commit aborted", "m-aborted"),
        EventKind::Hole => ("Nothing recorded", "m-hole"),
    }
}
