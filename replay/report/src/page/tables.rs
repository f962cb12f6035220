//! Decisions by reason, moves, events and process lives.

use super::markup::Markup;
use super::numbers;
use super::words;
use crate::gathered::{EventPlace, Gathered, Kind, Move};

/// Bars: a name, its meaning, and a number each.
pub(super) fn bars(page: &mut Markup, title: &str, rows: &[(String, String, f64, String)]) {
    let whole: f64 = rows.iter().map(|(_, _, value, _)| value).sum();
    page.raw("<div class=\"bars\">").element("h3", "", title);
    for (name, meaning, value, number) in rows {
        page.raw("<div class=\"bar\">").element("span", "word", name).element("span", "number", number);
        page.element("span", "share", &numbers::percent(*value, whole));
        let width = if whole > 0.0 { 100.0 * value / whole } else { 0.0 };
        page.raw_fmt(format_args!("<span class=\"track\"><i style=\"width:{width:.2}%\"></i></span>"));
        page.element("span", "meaning", meaning).raw("</div>");
    }
    page.raw("</div>");
}

/// Decisions by reason.
pub(super) fn decisions(page: &mut Markup, gathered: &Gathered) {
    page.raw("<section><h2>Decisions by reason</h2><div class=\"columns\">");
    let mut none = Vec::new();
    for kind in [Kind::Batch, Kind::Move, Kind::Pause, Kind::Slice, Kind::Refusal] {
        let found = gathered.reasons.of(kind);
        let rows: Vec<_> = found
            .into_iter()
            .map(|(word, count)| {
                (word.to_owned(), words::meaning(kind, word).to_owned(), count as f64, numbers::count(count))
            })
            .collect();
        match rows.is_empty() {
            true => none.push(words::title(kind).to_lowercase()),
            false => bars(page, words::title(kind), &rows),
        }
    }
    page.raw("</div>");
    if !none.is_empty() {
        page.element("p", "note", &format!("None in this window: {}.", none.join("; ")));
    }
    page.raw("</section>");
}

/// The last moves.
pub(super) fn moves(page: &mut Markup, gathered: &Gathered) {
    page.raw("<section><h2>Moves</h2>");
    let moves: Vec<&Move> = gathered.moves.last().rev().collect();
    if moves.is_empty() {
        page.element("p", "none", "No group went from one lane to another in this window.").raw("</section>");
        return;
    }
    let (shown, all) = (numbers::count(moves.len() as u64), numbers::count(gathered.moves.count()));
    page.element("p", "note", &format!("The last {shown} of {all}, the latest first. Rows of a group wait from when its lane is told to let go of it, or is lost, until it is on another."));
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
    let rows: Vec<_> = moves.iter().map(row).collect();
    table(page, &header, &rows);
    page.raw("</section>");
}

fn lane(one: &Move, lane: i32) -> String {
    match one.journal {
        0 => format!("lane {lane}"),
        journal => format!("lane {journal}.{lane}"),
    }
}

/// What charts have marks for, in words.
pub(super) fn events(page: &mut Markup, gathered: &Gathered) {
    page.raw("<section><h2>Events</h2>");
    let row = |((at_ns, _, sequence, kind, _), said): (&EventPlace, &String)| {
        [numbers::utc(*at_ns), sequence.to_string(), words::event(*kind).0.to_owned(), said.clone()]
    };
    if !gathered.standing.is_empty() {
        page.element("h3", "", "In force when the window began");
        let rows: Vec<_> = gathered.standing.iter().rev().map(row).collect();
        table(page, &["since (UTC)", "entry", "what", "in words"], &rows);
        page.element("p", "note", "What was decided before the last two checkpoints is not among it.");
        page.element("h3", "", "In the window");
    }
    let rows: Vec<_> = gathered.events.iter().rev().map(row).collect();
    if rows.is_empty() {
        page.element("p", "none", "Nothing of the kind happened in this window.");
    } else {
        table(page, &["time (UTC)", "entry", "what", "in words"], &rows);
    }
    page.raw("</section>");
}

/// The processes that ran.
pub(super) fn lives(page: &mut Markup, gathered: &Gathered) {
    page.raw("<section><h2>Processes</h2>");
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
    if rows.is_empty() {
        page.element("p", "none", "The journal does not tell of a process.");
    } else {
        table(page, &["began (UTC)", "ordinal", "name", "software", "lanes", "placement policy"], &rows);
    }
    page.raw("</section>");
}

/// A table of texts.
pub(super) fn table<const N: usize>(page: &mut Markup, header: &[&str; N], rows: &[[String; N]]) {
    page.raw("<div class=\"scroll tall\" tabindex=\"0\"><table><thead><tr>");
    header.iter().for_each(|name| {
        page.element("th", "", name);
    });
    page.raw("</tr></thead><tbody>");
    for row in rows {
        page.raw("<tr>");
        row.iter().for_each(|cell| {
            page.element("td", "", cell);
        });
        page.raw("</tr>");
    }
    page.raw("</tbody></table></div>");
}
