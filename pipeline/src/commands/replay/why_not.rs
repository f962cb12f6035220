//! `warptape replay why-not`: explains why a lane had no more to do at a time.

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
                "{} of the {} there are{}",
                load.groups_placed,
                load.groups_placed as usize + lane.elsewhere.len(),
                lane.groups_max.map_or_else(String::new, |max| format!(", {max} at most"))
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
        ("a row takes", row_times(found)),
        ("slice", load.slice.map_or_else(|| "none".to_owned(), |slice| slice.to_string())),
    ]);
    for before in &found.decided {
        push_paragraph(&mut text, &decided(before, found.journal));
    }
    push_paragraph(&mut text, &format!("batches: {}", next_batch(lane, found.at.at_ns)));
    push_line(&mut text, "groups that it does not have:");
    if lane.elsewhere.is_empty() {
        push_line(&mut text, "  none: it has all there are");
    }
    for (reason, (groups, rows)) in reasons(lane) {
        push_line(&mut text, &format!("  {groups} groups, for which {rows} rows wait: {reason}"));
    }
    if !lane.groups_move_by_load && !lane.elsewhere.is_empty() {
        push_paragraph(
            &mut text,
            "groups stay on their lane here, however much it has to do: see scheduler.placement_policy and scheduler.balance_interval_ms",
        );
    }
    text
}

/// Names the decision that took some of the lane's weight or its service, and the command that explains it.
fn decided(before: &Before, journal: i32) -> String {
    let Before::Decided { at, decision } = before else {
        return "what took of its weight or its service was decided before the entries that were looked at"
            .to_owned();
    };
    format!(
        "{} (entry {} at {}, which `replay why {1}{}` explains)",
        reasons::of_decision(&json!(decision), at.at_ns, None),
        at.sequence,
        utc(at.at_ns),
        partition_argument(journal)
    )
}

/// Formats the time of a row on the lane, and on the others.
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
        0 => "an unknown time".to_owned(),
        1_000_000_000.. => format!("{:.3} ms", ps as f64 / 1e9),
        _ => format!("{:.3} µs", ps as f64 / 1e6),
    }
}

/// Describes whether the lane gets any work at all.
fn state(lane: &LaneExplanation) -> String {
    let breaker = match lane.breaker {
        // An open breaker shows as the reason of exclusion.
        BreakerState::Closed | BreakerState::Open => "",
        BreakerState::HalfOpen => "; its breaker is half open, so that it gets half of its groups",
    };
    let service = match lane.excluded {
        Some(reason) => excluded(reason),
        None if lane.load.weight == 0 => {
            "stands by: its weight is 0, so that it gets groups only where no lane with a weight is ready"
        }
        None => "in service",
    };
    let heat = match lane.weight_withheld_percent {
        0 => String::new(),
        // A weight never falls below 1.
        percent if lane.load.weight == 1 => {
            format!(", the least there is, though its device's heat takes {percent} % of it")
        }
        percent => format!(", of which its device's heat has taken {percent} %"),
    };
    format!("{service}, weight {}{heat}{breaker}", lane.load.weight)
}

/// Describes the time of the lane's next batch, and why it is not earlier.
fn next_batch(lane: &LaneExplanation, at_ns: i64) -> String {
    match lane.next_batch {
        NextBatch::NothingWaits => "no rows wait for it".to_owned(),
        NextBatch::BatchesInFlight => format!(
            "it has the {} batches in flight that it may have, and is predicted to have done them in {}",
            lane.batches_max,
            milliseconds((lane.free_ns - at_ns).max(0))
        ),
        NextBatch::Rows => "its credit of rows is in flight (scheduler.lane_credit_rows)".to_owned(),
        NextBatch::Bytes => {
            format!(
                "{} bytes of its credit are left, which is less than the next row (scheduler.lane_credit_bytes)",
                lane.bytes_left
            )
        }
        NextBatch::Due(reason) => format!("one is due: {}", due(reason)),
        NextBatch::AtLatest(by_ns) => format!(
            "it is busy, and gets what waits in {} at the latest, at {}: more rows make a larger batch until then",
            milliseconds((by_ns - at_ns).max(0)),
            utc(by_ns)
        ),
    }
}

fn due(reason: ReleaseReason) -> &'static str {
    match reason {
        ReleaseReason::Idle => "it has nothing to do",
        ReleaseReason::Full => "as many rows wait as a batch may have",
        ReleaseReason::Deadline => "the oldest row allows no further waiting",
        ReleaseReason::Drain => "the process is to end",
    }
}

/// Returns numbers of groups and of their waiting rows, by the reason why the lane would not get them.
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
        (true, true) => "another lane has the better score",
        (true, false) => "another lane has the better draw",
        (false, true) => "this lane would be chosen now, but groups move only when that pays",
        (false, false) => "this lane would be chosen now",
    };
    format!("{there}; {why}")
}

fn excluded(reason: ExclusionReason) -> &'static str {
    match reason {
        ExclusionReason::Lost => "is lost",
        ExclusionReason::Full => "has as many groups as it may have",
        ExclusionReason::Slower => "is of the kind that is slower for the group",
        ExclusionReason::Drained => "is drained by an operator",
        ExclusionReason::Broken => "has an open breaker",
        ExclusionReason::Memory => "has little memory left on its device",
    }
}
