//! A chain of causes in words: the waits, their lengths and their reasons.

use warptape_replay::chain::{BatchFacts, Chain, Held, Holder, Step, Wait, partition_argument};
use warptape_replay::history::{Attempt, Trigger};
use warptape_schemas::journal::{CommitOutcome, ReleaseReason};

use super::why;
use crate::commands::columns::{numbered, utc};
use crate::commands::fit::{Head, Room, table};
pub use crate::commands::tail::reasons::milliseconds;
use crate::printable::printable_line;

/// Returns the whole chain as text.
pub fn text(chain: &Chain, room: Room) -> String {
    let mut text = String::new();
    let signal = &chain.signal;
    let tick = &chain.tick;
    let lines = [
        format!(
            "{} of {}, bar {} that ended at {}: offset {} of partition {}",
            signal.kind,
            signal.symbol,
            signal.bar_spec,
            utc(signal.bar_end_ns),
            signal.offset,
            signal.partition
        ),
        format!(
            "caused by tick {} of the record at offset {}, published at {}",
            tick.index,
            tick.offset,
            utc(tick.created_ns)
        ),
        total(chain),
    ];
    for line in lines {
        push_line(&mut text, &line);
    }
    if let Some((lane, command)) = lane_meanwhile(chain, &chain.held_by()) {
        push_line(&mut text, &format!("`{command}` shows the state of {lane} during the longest wait"));
    }
    if let (Some(batch), Some(journal)) = (own_batch_held(chain), chain.process.journal) {
        let partition = partition_argument(journal);
        push_line(
            &mut text,
            &format!(
                "`replay why batch:{batch}{partition}` lists the rows of the signal's batch by group and symbol"
            ),
        );
    }
    text.push('\n');
    text.push_str(&wait_rows(tick.created_ns, &chain.waits, room, |step| sentence(chain, step)));
    if let Some(batch) = &chain.batch {
        push_paragraph(&mut text, &why_then(batch));
        if let Some(explanation) = &chain.explanation {
            text.push_str(&why::choices(&explanation.choices, room));
            for otherwise in &explanation.otherwise {
                push_line(&mut text, &format!("  {}", why::words(otherwise)));
            }
        }
        push_paragraph(&mut text, &why_there(chain, batch));
        text.push_str(&why::choices(&chain.lanes, room));
    }
    for unknown in &chain.unknown {
        push_paragraph(&mut text, &format!("unknown: {unknown}"));
    }
    text
}

/// Appends a line in printable form, because it may contain names that other users chose.
pub fn push_line(text: &mut String, line: &str) {
    text.push_str(&printable_line(line));
    text.push('\n');
}

/// Appends a line after an empty one.
pub fn push_paragraph(text: &mut String, line: &str) {
    text.push('\n');
    push_line(text, line);
}

fn total(chain: &Chain) -> String {
    let end = if chain.is_to_commit { "its commit" } else { "its seal (later times are unknown)" };
    let mostly = chain.held_by().first().map_or_else(String::new, |held| mostly(held, chain.total_ns));
    format!("{} from publication to {end}{mostly}", milliseconds(chain.total_ns))
}

/// Returns the lane that held up the signal longest, and a command that explains the lane's state in the middle of that
/// wait. `None` if a step held it up longest.
pub fn lane_meanwhile(chain: &Chain, held_by: &[Held]) -> Option<(String, String)> {
    let held = held_by.first()?;
    Some((holder(held), chain.why_not(held)?))
}

/// Returns the number of the signal's batch if the batch's lane held up the signal longest; `None` otherwise.
fn own_batch_held(chain: &Chain) -> Option<i64> {
    let batch = chain.batch.as_ref()?;
    let held_by = chain.held_by();
    matches!(held_by.first()?.by, Holder::Lane { lane, .. } if lane == batch.lane).then_some(batch.batch)
}

/// Describes the longest delay, its share and its cause.
fn mostly(held: &Held, total_ns: i64) -> String {
    let why = match &held.by {
        Holder::Lane { .. } => format!("because of {} ({})", holder(held), parts(held)),
        Holder::Step(step) => cause(*step).to_owned(),
    };
    format!("; {}, {}, {why}", part_of(held.ns, total_ns), milliseconds(held.ns))
}

/// Describes the share of the longest delay in the total.
pub fn part_of(ns: i64, total_ns: i64) -> &'static str {
    if ns > total_ns / 2 { "most of it" } else { "the largest part of it" }
}

/// Names the lane or the step that held the signal up.
pub fn holder(held: &Held) -> String {
    match &held.by {
        Holder::Lane { lane, device } => format!("lane {lane} ({device})"),
        Holder::Step(step) => name(*step),
    }
}

/// Lists the waits within a delay, the longest first.
pub fn parts(held: &Held) -> String {
    let part = |wait: &Wait| format!("{} {}", name(wait.step), milliseconds(wait.ns));
    held.waits.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Formats a row for each wait: its length, its end, its step and a sentence about it.
pub fn wait_rows(mut at_ns: i64, waits: &[Wait], room: Room, sentence: impl Fn(Step) -> String) -> String {
    let row = |wait: &Wait| {
        at_ns += wait.ns;
        vec![format!("{:.3}", wait.ns as f64 / 1e6), utc(at_ns), name(wait.step), sentence(wait.step)]
    };
    let rows: Vec<Vec<String>> = waits.iter().map(row).collect();
    let heads =
        [Head::number("wait_ms"), Head::fixed("until"), Head::fixed("for"), Head::sentence("what", 40)];
    table(&heads, &["wait_ms", "for", "what"], &rows, room)
}

/// Returns the name of a step, as in JSON.
pub fn name(step: Step) -> String {
    serde_json::json!(step).as_str().unwrap_or_default().to_owned()
}

/// Describes the cause of a wait in a phrase.
pub fn cause(step: Step) -> &'static str {
    match step {
        Step::Process => "for a process that owns the partition to start",
        Step::Restore => "for the process to get the partition and restore its state",
        Step::Pause => "because the partition was paused",
        Step::Read => "to be read",
        Step::Placement => "for the group to be placed on a lane",
        Step::Queue => "in the queue of its group",
        Step::Lane => "behind earlier batches of the lane",
        Step::Service => "for the lane to work on the batch",
        Step::Handover => "between the scheduler and the lane, in both directions",
        Step::OtherGroups => "for rows of other groups from the same or earlier records",
        Step::PreviousCommit => "for the previous transaction to end",
        Step::CommitInterval => "for the next commit to be due",
        Step::Send => "for the commit to begin",
        Step::Retry => "for aborted commits to be sent again",
        Step::Commit => "for the log to commit the transaction",
        Step::StoodStill => "for a process that stood still",
        Step::LogHeld => "for a log that accepted no writes, for example because its write lock was held",
        Step::Preparation => "for its preparation",
        Step::TaskQueue => "for its first slice to begin",
        Step::Slices => "for its slices to be done",
        Step::Conclusion => "for its answer to be computed from the slices",
    }
}

fn sentence(chain: &Chain, step: Step) -> String {
    let partition = chain.tick.partition;
    let batch = chain.batch.as_ref();
    let group =
        chain.arrival.map_or_else(|| "its group".to_owned(), |arrival| format!("group {}", arrival.group));
    let number = batch.map_or_else(|| "its batch".to_owned(), |batch| format!("batch {}", batch.batch));
    let lane = batch
        .map_or_else(|| "its lane".to_owned(), |batch| format!("lane {} ({})", batch.lane, batch.device));
    match step {
        Step::Process => format!("process {:?} had not started", chain.process.node),
        Step::Restore => format!("the process did not own partition {partition} yet, or was restoring its state"),
        Step::Pause => format!("partition {partition} was paused: too many of its rows waited on the host"),
        Step::Read => match chain.arrival {
            Some(arrival) => format!(
                "records {} to {} arrived together, with {}, {} of them in {group} (entry {})",
                arrival.first_offset,
                arrival.next_offset - 1,
                numbered(arrival.rows, "row", "rows"),
                arrival.group_rows,
                arrival.sequence.map_or_else(|| "unknown".to_owned(), |sequence| sequence.to_string()),
            ),
            None => "the record arrived, but its journal entry was removed".to_owned(),
        },
        Step::Placement => format!("{group} was on no lane"),
        Step::Queue => match batch {
            Some(batch) => format!(
                "{group} waited until {number} ({} of {}) was dispatched to {lane} (entry {})",
                numbered(batch.rows, "row", "rows"),
                numbered(batch.groups as u64, "group", "groups"),
                batch.at.sequence
            ),
            None => format!("{group} waited"),
        },
        Step::Lane => {
            let before = batch.map_or(0, |batch| batch.in_flight_batches);
            format!("{lane} had {} ahead of {number}", numbered(before as u64, "batch", "batches"))
        }
        Step::Service => format!("{lane} worked on {number}"),
        Step::Handover => format!("{number} was on its way to {lane}, or its results on their way back"),
        Step::OtherGroups => match &chain.last_batch {
            Some(last) => others(last, &partition_of(chain)),
            None => "rows of other groups from the same or earlier records were not done".to_owned(),
        },
        Step::PreviousCommit => "the previous transaction had not ended".to_owned(),
        Step::CommitInterval => {
            let facts = &chain.transaction;
            format!(
                "the next commit was not due; it sealed records {} to {} of the partition (entry {})",
                facts.first_offset,
                facts.next_offset - 1,
                facts.sealed_sequence
            )
        }
        Step::Send => "the commit thread had not begun to write".to_owned(),
        Step::Retry => {
            let is_aborted = |attempt: &&Attempt| attempt.outcome == CommitOutcome::Aborted;
            let aborted = chain.transaction.attempts.iter().filter(is_aborted).count();
            format!(
                "the transaction was aborted {} and sent again",
                numbered(aborted as u64, "time", "times")
            )
        }
        Step::Commit => format!(
            "the log committed the transaction, with {} of the partition",
            numbered(chain.transaction.signals, "signal", "signals")
        ),
        Step::StoodStill => format!(
            "process {:?} recorded nothing: it was stopped (by SIGSTOP or a suspended machine), got no CPU time, or its log delivered nothing",
            chain.process.node
        ),
        Step::LogHeld => {
            "the log accepted no writes of the process: its write lock was held, its disk or broker was slow, or the process was stopped"
                .to_owned()
        }
        Step::Preparation | Step::TaskQueue | Step::Slices | Step::Conclusion => cause(step).to_owned(),
    }
}

/// Returns the argument that names the journal partition of the chain's decisions.
fn partition_of(chain: &Chain) -> String {
    chain.process.journal.map_or_else(String::new, partition_argument)
}

/// Describes the batch that held up rows of other groups.
fn others(last: &BatchFacts, partition: &str) -> String {
    let BatchFacts { batch, lane, device, at, completed, service_ns, .. } = last;
    let flight = completed.map_or(0, |completed| completed.at_ns - at.at_ns);
    format!(
        "rows of other groups from the same or earlier records were not done: the last ones were in batch \
         {batch} of lane {lane} ({device}), which took {} on the lane after {} in the queue, {} of it at \
         work (see `replay why batch:{batch}{partition}`)",
        milliseconds(flight),
        milliseconds(at.at_ns - last.oldest_arrival_ns),
        milliseconds(service_ns.unwrap_or(0)),
    )
}

/// Explains why a batch was dispatched at its time and not earlier.
pub fn why_then(batch: &BatchFacts) -> String {
    let lane = format!("lane {}", batch.lane);
    let why = match (batch.reason, batch.trigger) {
        (ReleaseReason::Idle, Trigger::Arrived(_)) => format!("{lane} was idle when rows arrived"),
        (ReleaseReason::Idle, Trigger::Completed(other)) => {
            format!("{lane} became idle when batch {other} completed; rows had gathered until then")
        }
        (ReleaseReason::Idle, Trigger::Placing) => {
            format!("{lane} was idle and had just got the group")
        }
        (ReleaseReason::Idle, Trigger::Woke | Trigger::Other) => format!("{lane} was idle"),
        (ReleaseReason::Full, Trigger::Completed(other)) => {
            format!(
                "enough rows for a full batch waited, and batch {other} had completed and made room on {lane}"
            )
        }
        (ReleaseReason::Full, _) => "enough rows for a full batch waited".to_owned(),
        (ReleaseReason::Deadline, _) => {
            format!(
                "{lane} was busy, and the oldest row, which arrived at {}, could not wait any longer",
                utc(batch.oldest_arrival_ns)
            )
        }
        (ReleaseReason::Drain, Trigger::Completed(other)) => format!(
            "{lane} had no room for it until batch {other} completed; the process was draining, so rows were not held back for a larger batch"
        ),
        (ReleaseReason::Drain, _) => {
            "the process was draining, so rows were not held back for a larger batch".to_owned()
        }
    };
    format!("why batch {} was dispatched then: {why}", batch.batch)
}

/// Explains why the batch went to its lane.
fn why_there(chain: &Chain, batch: &BatchFacts) -> String {
    let group = chain.arrival.map_or(-1, |arrival| arrival.group);
    let since = match batch.placed {
        Some(placed) => format!(
            "it was placed there at {} (entry {}; see `replay why {1}{}`)",
            utc(placed.at_ns),
            placed.sequence,
            partition_of(chain)
        ),
        None => "it was placed there before the checkpoint at which reading of the journal began".to_owned(),
    };
    format!(
        "why on lane {}: group {group} is placed there with epoch {}; {since}; the lanes as placement saw them at the dispatch:",
        batch.lane, batch.epoch
    )
}
