//! Contents of the screen for a step, all as printable text.

use serde_json::json;
use warptape_eventlog::OffsetRange;
use warptape_replay::Explained;
use warptape_replay::debugger::{Step, Stepper};
use warptape_scheduler::{Explanation, LaneLoad, PartitionPhase};
use warptape_schemas::journal::{BreakerState, SchedulerConfig};

use super::super::chain::milliseconds;
use super::super::why::{explained, said_before};
use super::matches::{decision_words, difference_words};
use crate::commands::columns::{Align, aligned, utc};
use crate::commands::fit::Room;
use crate::commands::tail::inputs;
use crate::printable::printable_line;

/// Contents of the screen for one step.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Journal, place and time.
    pub title: String,
    /// Sequence of the entry.
    pub sequence: i64,
    /// Input of the scheduler.
    pub input: String,
    /// Decisions of the scheduler, one a line.
    pub decisions: Vec<String>,
    /// Differences from this software's decisions, one a line.
    pub differences: Vec<String>,
    /// A header and a line for each lane.
    pub lanes: Vec<String>,
    /// A header and a line for each partition.
    pub partitions: Vec<String>,
    /// The queues of risk tasks.
    pub risk: String,
    /// Explanation of the chosen decision: its alternatives, and the changes that would have led to another one. `None`
    /// unless requested.
    pub explanation: Option<Vec<String>>,
}

impl View {
    /// Builds the contents for the step at a position. `source` names the journal.
    pub fn of(stepper: &Stepper<'_>, source: &str) -> Self {
        let step = stepper.step();
        let entry = step.entry;
        let OffsetRange { first, next } = stepper.range();
        let title = format!(
            "{source}  sequence {}  {}  offset {} of {first} to {}",
            entry.sequence,
            utc(entry.at_ns),
            step.offset,
            next - 1
        );
        Self {
            title: line(&title),
            sequence: entry.sequence,
            input: line(&inputs::words(entry, step.started)),
            decisions: decision_words(&step).iter().map(|words| line(words)).collect(),
            differences: difference_words(&step).iter().map(|words| line(words)).collect(),
            lanes: lanes(&step),
            partitions: partitions(&step),
            risk: risk(&step),
            explanation: None,
        }
    }

    /// Adds the explanation of the decision with this index.
    pub fn explain(&mut self, stepper: &mut Stepper<'_>, index: usize) -> anyhow::Result<()> {
        let recorded = stepper.step().entry.decisions.get(index).cloned();
        let explanation = stepper.explain(index)?;
        let text = match explanation {
            None if recorded.is_none() => "no decisions".to_owned(),
            None => "this software makes no decision there".to_owned(),
            Some(Explained { explanation, .. }) if Some(&explanation.decision) != recorded.as_ref() => {
                let decision = json!(explanation.decision);
                format!(
                    "this software decides differently: {decision}\n{}",
                    explained(&explanation, Room::Whole)
                )
            }
            Some(Explained { explanation, before: None }) if is_empty(&explanation) => {
                "no alternatives: the decision follows from the state and the input".to_owned()
            }
            Some(Explained { explanation, before }) => {
                let said = |before| format!("  {}\n", said_before(&before, stepper.step().started));
                explained(&explanation, Room::Whole) + &before.map_or_else(String::new, said)
            }
        };
        self.explanation = Some(text.lines().map(line).collect());
        Ok(())
    }
}

/// True if an explanation has nothing to say.
fn is_empty(explanation: &Explanation) -> bool {
    explanation.choices.is_empty() && explanation.measures.is_empty() && explanation.otherwise.is_empty()
}

fn line(text: &str) -> String {
    printable_line(text).into_owned()
}

fn lanes(step: &Step<'_>) -> Vec<String> {
    let credit = step.started.map(|started| &started.scheduler);
    let header = [
        ("lane", Align::Left),
        ("state", Align::Left),
        ("breaker", Align::Left),
        ("groups", Align::Right),
        ("queued", Align::Right),
        ("in flight", Align::Right),
        ("load", Align::Right),
        ("free in", Align::Right),
    ];
    let state = step.state;
    let loads = state.lane_loads().zip(state.breakers()).zip(state.predicted_free_ns());
    let rows: Vec<Vec<String>> = loads
        .zip(state.withheld_percent())
        .map(|(((load, breaker), free_ns), withheld_percent)| {
            let device = step.device(load.lane);
            vec![
                format!("{} {device}", load.lane),
                lane_state(&load, withheld_percent),
                breaker_words(breaker).to_owned(),
                load.groups_placed.to_string(),
                load.waiting_rows.to_string(),
                load.in_flight_rows.to_string(),
                format!("{} %", credit.map_or(0, |credit| load_percent(&load, credit))),
                free_words(&load, free_ns.saturating_sub(step.entry.at_ns)),
            ]
        })
        .collect();
    aligned(&header, &rows).lines().map(str::to_owned).collect()
}

/// Returns the greatest of three loads of a lane: its rows, bytes and batches in flight, each in percent of its credit.
fn load_percent(load: &LaneLoad, credit: &SchedulerConfig) -> i64 {
    let shares = [
        (load.in_flight_rows, credit.lane_credit_rows),
        (load.in_flight_bytes, credit.lane_credit_bytes),
        (load.in_flight_batches.into(), credit.lane_batches_max.into()),
    ];
    shares.map(|(has, may)| has.saturating_mul(100) / may.max(1)).into_iter().max().unwrap_or(0)
}

fn lane_state(load: &LaneLoad, withheld_percent: i32) -> String {
    let hot = format!("hot: {} %", 100 - withheld_percent);
    let words = match (load.ready, load.in_service, load.weight) {
        (false, ..) => "lost",
        (true, false, _) => "out of service",
        (true, true, 0) => "stands by",
        (true, true, _) if withheld_percent > 0 => &hot,
        (true, true, _) => "ready",
    };
    load.slice.map_or_else(|| words.to_owned(), |slice| format!("{words}, slice {slice}"))
}

fn breaker_words(breaker: BreakerState) -> &'static str {
    match breaker {
        BreakerState::Closed => "closed",
        BreakerState::Open => "open",
        BreakerState::HalfOpen => "half open",
    }
}

/// Describes the predicted time until a lane finishes its work in flight.
fn free_words(load: &LaneLoad, in_ns: i64) -> String {
    match (load.in_flight_batches, in_ns) {
        (0, _) => "now".to_owned(),
        (_, late) if late < 0 => format!("late {}", milliseconds(-late)),
        (_, in_ns) => milliseconds(in_ns),
    }
}

fn partitions(step: &Step<'_>) -> Vec<String> {
    let header = [
        ("partition", Align::Left),
        ("phase", Align::Left),
        ("groups", Align::Right),
        ("waiting rows", Align::Right),
        ("next offset", Align::Right),
        ("reading", Align::Left),
    ];
    let rows: Vec<Vec<String>> = step
        .state
        .partition_loads()
        .map(|load| {
            let phase = match load.phase {
                PartitionPhase::Revoked => "revoked",
                PartitionPhase::Restoring => "restoring",
                PartitionPhase::Assigned => "assigned",
            };
            let reading = if load.paused { "paused" } else { "on" };
            vec![
                load.partition.to_string(),
                phase.to_owned(),
                load.groups.to_string(),
                load.waiting_rows.to_string(),
                load.position.to_string(),
                reading.to_owned(),
            ]
        })
        .collect();
    aligned(&header, &rows).lines().map(str::to_owned).collect()
}

fn risk(step: &Step<'_>) -> String {
    let state = step.state;
    let running = state.lane_loads().filter(|load| load.slice.is_some()).count();
    format!(
        "risk: {} tasks known, {} wait for a lane, {running} slices run",
        state.tasks_known(),
        state.tasks_waiting()
    )
}
