//! Charts over time: a label, an axis of values beside it, and a drawing stretched to the width of the page. The text
//! is in the HTML around the drawing, so its size does not change.

use maud::{Markup, html};

use super::axis::{LogAxis, nice_top};
use super::numbers;
use super::timeline::{HEIGHT, Timeline};
use crate::drawing::{Line, band, place, steps};
use crate::gathered::Latency;

/// Returns a chart: its title, a few numbers, and its drawing.
pub(super) fn figure(title: &str, unit: &str, facts: &str, drawing: Markup) -> Markup {
    html! {
        figure {
            figcaption { b { (title) } " " span.unit { (unit) } span.facts { (facts) } }
            (drawing)
        }
    }
}

/// Returns the text that replaces an empty drawing.
pub(super) fn nothing(words: &str) -> Markup {
    html! { p.none { (words) } }
}

/// Returns a note about omitted data, or about how to read a drawing.
pub(super) fn note(words: &str) -> Markup {
    html! { p.note { (words) } }
}

/// Returns a path in a drawing.
pub(super) fn path(class: &str, path: &str) -> Markup {
    html! { path class=(class) d=(path) {} }
}

/// Returns a drawing with the labels of its lines beside it.
pub(super) fn row(class: &str, lines: &[Line], drawing: &Markup) -> Markup {
    let end = |at: f64| match at {
        at if at <= 0.02 => Some("top"),
        at if at >= 0.98 => Some("bottom"),
        _ => None,
    };
    html! {
        div class=(class) {
            div.gutter {
                @for line in lines {
                    span class=[end(line.at)] style=(format_args!("top:{:.2}%", 100.0 * line.at)) { (line.label) }
                }
            }
            div.plot { (drawing) }
        }
    }
}

fn levels(timeline: &Timeline<'_>, lines: &[Line]) -> Markup {
    let width = timeline.axis.slots;
    let across: String = lines.iter().map(|line| format!("M0 {}H{width}", place(HEIGHT * line.at))).collect();
    path("grid", &across)
}

/// Draws a chart of one quantity as an area above 0.
pub(super) fn area(timeline: &Timeline<'_>, chart: &Area<'_>) -> Markup {
    let max = chart.values.iter().copied().fold(0.0, f64::max);
    let top = nice_top(max);
    let mean_seconds: f64 = timeline.seconds.iter().sum();
    let sum: f64 = chart.values.iter().zip(&timeline.seconds).map(|(value, seconds)| value * seconds).sum();
    let mean = if mean_seconds > 0.0 { sum / mean_seconds } else { 0.0 };
    let facts = format!("mean {}, maximum {}", numbers::short(mean), numbers::short(max));
    let line = |at: f64| Line { at: 1.0 - at, label: numbers::short(top * at) };
    let lines = [line(1.0), line(0.5), line(0.0)];
    let heights: Vec<_> = chart.values.iter().map(|value| Some(HEIGHT * (1.0 - value / top))).collect();
    let bottom = vec![Some(HEIGHT); heights.len()];
    let drawn = html! {
        (levels(timeline, &lines))
        (path(&format!("area {}", chart.class), &band(&bottom, &heights)))
        (path(&format!("line {}", chart.class), &steps(&heights)))
    };
    let label = format!("{} {}: {facts}", chart.title, chart.unit);
    let said = |index: usize| Some(format!("{} {}", numbers::short(chart.values[index]), chart.what));
    let drawing = html! {
        (row("row chart", &lines, &timeline.svg("chart", &label, &drawn, said)))
        (timeline.times())
    };
    figure(chart.title, chart.unit, &facts, drawing)
}

/// A chart of one quantity.
pub(super) struct Area<'a> {
    pub(super) title: &'a str,
    pub(super) unit: &'a str,
    /// Name of the quantity.
    pub(super) what: &'a str,
    /// Class of the drawing.
    pub(super) class: &'a str,
    /// A number for each slot.
    pub(super) values: Vec<f64>,
}

/// Returns the chart of latencies.
pub(super) fn latencies(timeline: &Timeline<'_>, all: &Latency) -> Markup {
    let slots: Vec<Option<&Latency>> = timeline
        .slots
        .iter()
        .map(|slot| slot.map(|slot| &slot.latency).filter(|one| one.count() > 0))
        .collect();
    let least = slots.iter().flatten().filter_map(|one| one.permille_ns(500)).min().unwrap_or(1);
    let axis = LogAxis::new(least, all.max_ns().unwrap_or(1));
    let lines = axis.lines();
    let of = |permille| all.permille_ns(permille).map_or_else(String::new, numbers::duration);
    let facts = format!("p50 {}, p99 {}", of(500), of(990));
    let heights = |of: &dyn Fn(&Latency) -> Option<u64>| -> Vec<Option<f64>> {
        slots.iter().map(|one| one.and_then(of).map(|ns| HEIGHT * axis.place(ns))).collect()
    };
    let curves = [
        ("p50", "p50", heights(&|one| one.permille_ns(500))),
        ("p99", "p99", heights(&|one| one.permille_ns(990))),
        ("max", "slowest", heights(&|one| one.max_ns())),
    ];
    let keys = html! {
        div.keys {
            @for (class, name, _) in &curves {
                span { svg.key viewBox="0 0 24 8" { (path(&format!("line {class}"), "M0 4H24")) } (name) }
            }
        }
    };
    let drawn = html! {
        (levels(timeline, &lines))
        (path("area p99", &band(&curves[0].2, &curves[1].2)))
        @for (class, _, heights) in &curves { (path(&format!("line {class}"), &steps(heights))) }
    };
    let said = |index: usize| {
        let one = slots[index]?;
        let ns = |value: Option<u64>| numbers::duration(value.unwrap_or(0));
        let (p50, p99, max) = (ns(one.permille_ns(500)), ns(one.permille_ns(990)), ns(one.max_ns()));
        Some(format!("p50 {p50}, p99 {p99}, slowest {max} of {} signals", numbers::count(one.count())))
    };
    let svg = timeline.svg("chart", &format!("latency over time: {facts}"), &drawn, said);
    let unit = "from the publication of the tick to the commit of the signal, logarithmic scale";
    let drawing = html! { (keys) (row("row chart tall", &lines, &svg)) (timeline.times()) };
    figure("Tick → signal", unit, &facts, drawing)
}
