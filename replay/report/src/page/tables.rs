//! Tables of decisions by reason, moves, events and process lives.

use maud::{Markup, html};

use super::charts::{note, nothing};
use super::numbers;
use super::words;
use crate::gathered::{EventPlace, Gathered, Move, ReasonKind};

/// Returns bars. Each has a name, its meaning, and a number.
pub(super) fn bars(title: &str, rows: &[(String, String, f64, String)]) -> Markup {
    let whole: f64 = rows.iter().map(|(_, _, value, _)| value).sum();
    let width = |value: f64| if whole > 0.0 { 100.0 * value / whole } else { 0.0 };
    html! {
        div.bars {
            h3 { (title) }
            @for (name, meaning, value, number) in rows {
                div.bar {
                    span.word { (name) }
                    span.number { (number) }
                    span.share { (numbers::percent(*value, whole)) }
                    span.track { i style=(format_args!("width:{:.2}%", width(*value))) {} }
                    span.meaning { (meaning) }
                }
            }
        }
    }
}

/// Decisions by reason.
pub(super) fn decisions(gathered: &Gathered) -> Markup {
    let found =
        [ReasonKind::Batch, ReasonKind::Move, ReasonKind::Pause, ReasonKind::Slice, ReasonKind::Refusal].map(
            |kind| {
                let row = |(word, count): (&str, u64)| {
                    (
                        word.to_owned(),
                        words::meaning(kind, word).to_owned(),
                        count as f64,
                        numbers::count(count),
                    )
                };
                (words::title(kind), gathered.reasons.of(kind).into_iter().map(row).collect::<Vec<_>>())
            },
        );
    let (some, none): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, rows)| !rows.is_empty());
    let none: Vec<_> = none.into_iter().map(|(title, _)| title.to_lowercase()).collect();
    html! {
        section {
            h2 { "Decisions by reason" }
            div.columns { @for (title, rows) in &some { (bars(title, rows)) } }
            @if !none.is_empty() { (note(&format!("None in this window: {}.", none.join("; ")))) }
        }
    }
}

/// Returns the table of the last moves.
pub(super) fn moves(gathered: &Gathered) -> Markup {
    let moves: Vec<&Move> = gathered.moves.last().rev().collect();
    let (shown, all) = (numbers::count(moves.len() as u64), numbers::count(gathered.moves.count()));
    let header = ["placed (UTC)", "entry", "group", "from", "to", "cause", "gain", "cost", "rows waited"];
    let row = |one: &&Move| {
        let worth = |of: fn((i64, i64)) -> i64| {
            one.worth.map_or_else(
                || "–".to_owned(),
                |worth| numbers::duration(u64::try_from(of(worth)).unwrap_or(0)),
            )
        };
        [
            numbers::utc(one.placed_ns),
            one.sequence.to_string(),
            format!("{}/{}", one.partition, one.group),
            lane(one, one.from),
            lane(one, one.to),
            one.cause.word().to_owned(),
            worth(|(gain, _)| gain),
            worth(|(_, cost)| cost),
            numbers::duration(u64::try_from(one.placed_ns.saturating_sub(one.since_ns)).unwrap_or(0)),
        ]
    };
    html! {
        section {
            h2 { "Moves" }
            @if moves.is_empty() {
                (nothing("No group moved to another lane in this window."))
            } @else {
                (note(&format!("The last {shown} of {all}, latest first. The rows of a group wait from the release or loss of its lane until the group is on another lane.")))
                (table(&header, &moves.iter().map(row).collect::<Vec<_>>()))
            }
        }
    }
}

fn lane(one: &Move, lane: i32) -> String {
    match one.journal {
        0 => format!("lane {lane}"),
        journal => format!("lane {journal}.{lane}"),
    }
}

/// Returns the events that charts mark, as text.
pub(super) fn events(gathered: &Gathered) -> Markup {
    let row = |((at_ns, _, sequence, kind, _), said): (&EventPlace, &String)| {
        [numbers::utc(*at_ns), sequence.to_string(), words::event(*kind).0.to_owned(), said.clone()]
    };
    let standing: Vec<_> = gathered.standing.iter().rev().map(row).collect();
    let rows: Vec<_> = gathered.events.iter().rev().map(row).collect();
    html! {
        section {
            h2 { "Events" }
            @if !standing.is_empty() {
                h3 { "In force at the beginning of the window" }
                (table(&["since (UTC)", "entry", "what", "in words"], &standing))
                (note("Decisions from before the last two checkpoints are not listed."))
                h3 { "In the window" }
            }
            @if rows.is_empty() {
                (nothing("None in this window."))
            } @else {
                (table(&["time (UTC)", "entry", "what", "in words"], &rows))
            }
        }
    }
}

/// Shows the processes that ran.
pub(super) fn lives(gathered: &Gathered) -> Markup {
    let rows: Vec<_> = gathered
        .lives
        .iter()
        .rev()
        .map(|((since_ns, journal, _), life)| {
            let since = numbers::utc(*since_ns);
            let since = if life.has_begun { since } else { format!("before {since}") };
            [
                since,
                journal.to_string(),
                life.node.clone(),
                life.software.clone(),
                life.lanes.to_string(),
                life.placement.clone(),
            ]
        })
        .collect();
    let header = ["began (UTC)", "ordinal", "name", "software", "lanes", "placement policy"];
    html! {
        section {
            h2 { "Processes" }
            @if rows.is_empty() {
                (nothing("The journal has no process."))
            } @else {
                (table(&header, &rows))
            }
        }
    }
}

/// Returns a table of texts.
pub(super) fn table<const N: usize>(header: &[&str; N], rows: &[[String; N]]) -> Markup {
    html! {
        div.scroll.tall tabindex="0" {
            table {
                thead { tr { @for name in header { th { (name) } } } }
                tbody { @for row in rows { tr { @for cell in row { td { (cell) } } } } }
            }
        }
    }
}
