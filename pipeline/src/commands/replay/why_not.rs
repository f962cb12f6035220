//! `warptape replay why-not`: explains why a lane had no more work at a given time.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use serde_json::json;
use warptape_replay::chain::{LaneWhy, RowTime, partition_argument, why_lane};
use warptape_replay::{Before, ReplayError};
use warptape_scheduler::{GroupElsewhere, LaneExplanation, NextBatch};
use warptape_schemas::journal::{BreakerState, ExclusionReason, ReleaseReason};

use super::chain::{milliseconds, push_line, push_paragraph};
use crate::cli::{VerifyFormat, WhyNotArgs};
use crate::commands::columns::{facts, numbered, utc};
use crate::commands::tail::reasons;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// Describes the state of a lane.
pub fn execute(args: &WhyNotArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let journal = &settings.topics.names.journal;
    let found = why_lane(&*log, journal, args.partition, &args.lane, args.at)?;
    let mut stdout = stdout();
    match args.output {
        VerifyFormat::Text => write!(stdout, "{}", text(&found))?,
        VerifyFormat::Json => {
            serde_json::to_writer(&mut stdout, &found)?;
            writeln!(stdout)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(found: &LaneWhy) -> String {
    let lane = &found.lane;
    let load = &lane.load;
    let mut text = String::new();
    push_line(
        &mut text,
        &format!(
            "lane {} ({}) after entry {} at {}",
            load.lane,
            found.device,
            found.at.sequence,
            utc(found.at.at_ns)
        ),
    );
    text.push('\n');
    text += &facts(&[
        ("state", state(lane)),
        (
            "groups",
            format!(
                "{} of {} in total{}",
                load.groups_placed,
                load.groups_placed as usize + lane.elsewhere.len(),
                lane.groups_max.map_or_else(String::new, |max| format!(", at most {max} on this lane"))
            ),
        ),
        (
            "in flight",
            format!(
                "{} of {}, {}",
                load.in_flight_batches,
                numbered(lane.batches_max, "batch", "batches"),
                numbered(load.in_flight_rows, "row", "rows")
            ),
        ),
        ("waiting", numbered(load.waiting_rows, "row", "rows")),
        ("time per row", row_times(found)),
        ("slice", load.slice.map_or_else(|| "none".to_owned(), |slice| slice.to_string())),
    ]);
    for before in &found.decided {
        push_paragraph(&mut text, &decided(before, found.journal));
    }
    push_paragraph(&mut text, &format!("batches: {}", next_batch(lane, found.at.at_ns)));
    push_line(&mut text, "groups on other lanes:");
    if lane.elsewhere.is_empty() {
        push_line(&mut text, "  none: all groups are on this lane");
    }
    for (reason, (groups, rows)) in reasons(lane) {
        push_line(&mut text, &format!("  {groups} groups with {rows} waiting rows: {reason}"));
    }
    if !lane.groups_move_by_load && !lane.elsewhere.is_empty() {
        push_paragraph(
            &mut text,
            "groups do not move by load in this configuration: see scheduler.placement_policy and scheduler.balance_interval_ms",
        );
    }
    text
}

/// Describes the decision that reduced the lane's weight or took it out of service, and the command that explains it.
fn decided(before: &Before, journal: i32) -> String {
    let Before::Decided { at, decision } = before else {
        return "the decision that reduced its weight or took it out of service is older than the entries \
                that were read"
            .to_owned();
    };
    format!(
        "{} (entry {} at {}; see `replay why {1}{}`)",
        reasons::of_decision(&json!(decision), at.at_ns, None),
        at.sequence,
        utc(at.at_ns),
        partition_argument(journal)
    )
}

/// Formats the time per row on the lane, and on the other lanes.
fn row_times(found: &LaneWhy) -> String {
    let (own, others): (Vec<&RowTime>, Vec<&RowTime>) =
        found.row_times.iter().partition(|time| time.lane == found.lane.load.lane);
    let own = own.into_iter().map(|time| row_time(time.service_ps_per_row));
    let others =
        others.into_iter().map(|time| format!("{} on lane {}", row_time(time.service_ps_per_row), time.lane));
    own.chain(others).collect::<Vec<_>>().join(", ")
}

fn row_time(ps: i64) -> String {
    match ps {
        0 => "unknown".to_owned(),
        1_000_000_000.. => format!("{:.3} ms", ps as f64 / 1e9),
        _ => format!("{:.3} µs", ps as f64 / 1e6),
    }
}

/// Describes whether the lane gets work at all.
fn state(lane: &LaneExplanation) -> String {
    let breaker = match lane.breaker {
        // An open breaker is reported as the reason for exclusion.
        BreakerState::Closed | BreakerState::Open => "",
        BreakerState::HalfOpen => "; its breaker is half open, so it gets half of its groups",
    };
    let service = match lane.excluded {
        Some(reason) => excluded(reason),
        None if lane.load.weight == 0 => {
            "stands by: its weight is 0, so it gets groups only if no lane with a weight is ready"
        }
        None => "in service",
    };
    let heat = match lane.weight_withheld_percent {
        0 => String::new(),
        // A weight never falls below 1.
        percent if lane.load.weight == 1 => {
            format!(", the minimum, although the heat of its device would take {percent} % of it")
        }
        percent => format!(", of which the heat of its device takes {percent} %"),
    };
    format!("{service}, weight {}{heat}{breaker}", lane.load.weight)
}

/// Describes the time of the lane's next batch, and why the batch is not earlier.
fn next_batch(lane: &LaneExplanation, at_ns: i64) -> String {
    match lane.next_batch {
        NextBatch::NothingWaits => "no rows wait for this lane".to_owned(),
        NextBatch::BatchesInFlight => format!(
            "all {} batches that it may have are in flight; their predicted end is in {}",
            lane.batches_max,
            milliseconds((lane.free_ns - at_ns).max(0))
        ),
        NextBatch::Rows => "its whole credit of rows is in flight (scheduler.lane_credit_rows)".to_owned(),
        NextBatch::Bytes => {
            format!(
                "its credit has {} bytes left, too few for the next row (scheduler.lane_credit_bytes)",
                lane.bytes_left
            )
        }
        NextBatch::Due(reason) => format!("one is due: {}", due(reason)),
        NextBatch::AtLatest(by_ns) => format!(
            "it is busy and gets the waiting rows in {} at the latest, at {}; until then, more rows make the \
             batch larger",
            milliseconds((by_ns - at_ns).max(0)),
            utc(by_ns)
        ),
    }
}

fn due(reason: ReleaseReason) -> &'static str {
    match reason {
        ReleaseReason::Idle => "the lane is idle",
        ReleaseReason::Full => "enough rows for a full batch wait",
        ReleaseReason::Deadline => "the oldest row cannot wait any longer",
        ReleaseReason::Drain => "the process is draining",
    }
}

/// Returns the numbers of groups and of their waiting rows, by the reason why the lane would not get them.
fn reasons(lane: &LaneExplanation) -> BTreeMap<String, (i64, i64)> {
    let mut reasons: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for group in &lane.elsewhere {
        let (groups, rows) = reasons.entry(reason(group, lane.groups_move_by_load)).or_default();
        *groups += 1;
        *rows += group.waiting_rows;
    }
    reasons
}

fn reason(group: &GroupElsewhere, groups_move_by_load: bool) -> String {
    let there = group.lane.map_or_else(|| "on no lane now".to_owned(), |lane| format!("on lane {lane}"));
    if let Some(reason) = group.choice.excluded {
        return format!("{there}; this lane {}", excluded(reason));
    }
    let is_worse = group.choice.score.zip(group.best_score).is_some_and(|(score, best)| score < best);
    let why = match (is_worse, groups_move_by_load) {
        (true, true) => "another lane has a better score",
        (true, false) => "another lane has a better draw",
        (false, true) => "this lane would be chosen now, but a group moves only if the gain exceeds the cost",
        (false, false) => "this lane would be chosen now",
    };
    format!("{there}; {why}")
}

fn excluded(reason: ExclusionReason) -> &'static str {
    match reason {
        ExclusionReason::Lost => "is lost",
        ExclusionReason::Full => "has its greatest number of groups",
        ExclusionReason::Slower => "is of the slower kind for the group",
        ExclusionReason::Drained => "was drained by an operator",
        ExclusionReason::Broken => "has an open breaker",
        ExclusionReason::Memory => "has little free memory on its device",
    }
}
