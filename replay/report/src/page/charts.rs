//! Charts over time: a label, an axis of values beside it, and a drawing that is stretched to the width of the page. Text stands in HTML
//! around the drawing, so that it keeps its size.

use super::axis::{Line, LogAxis, nice_top};
use super::markup::Markup;
use super::numbers;
use super::timeline::{HEIGHT, Timeline, place};
use crate::gathered::Latency;

/// Begins a chart: what it shows, and a few numbers of it.
pub(super) fn open(page: &mut Markup, title: &str, unit: &str, facts: &str) {
    page.raw("<figure><figcaption><b>").text(title).raw("</b> <span class=\"unit\">").text(unit);
    page.raw("</span><span class=\"facts\">").text(facts).raw("</span></figcaption>");
}

/// The labels beside a chart.
fn gutter(page: &mut Markup, lines: &[Line]) {
    page.raw("<div class=\"gutter\">");
    for line in lines {
        let class = match line.at {
            at if at <= 0.02 => " class=\"top\"",
            at if at >= 0.98 => " class=\"bottom\"",
            _ => "",
        };
        page.raw_fmt(format_args!("<span{class} style=\"top:{:.2}%\">", 100.0 * line.at))
            .text(&line.label)
            .raw("</span>");
    }
    page.raw("</div>");
}

fn levels(page: &mut Markup, timeline: &Timeline<'_>, lines: &[Line]) {
    let width = timeline.axis.slots;
    let path: String = lines.iter().map(|line| format!("M0 {}H{width}", place(HEIGHT * line.at))).collect();
    page.raw("<path class=\"grid\" d=\"").raw(&path).raw("\"/>");
}

/// A chart of one number, as an area above 0.
pub(super) fn area(page: &mut Markup, timeline: &Timeline<'_>, chart: &Area<'_>) {
    let max = chart.values.iter().copied().fold(0.0, f64::max);
    let top = nice_top(max);
    let mean_seconds: f64 = timeline.seconds.iter().sum();
    let sum: f64 = chart.values.iter().zip(&timeline.seconds).map(|(value, seconds)| value * seconds).sum();
    let mean = if mean_seconds > 0.0 { sum / mean_seconds } else { 0.0 };
    let facts = format!("mean {}, most {}", numbers::short(mean), numbers::short(max));
    open(page, chart.title, chart.unit, &facts);
    let line = |at: f64| Line { at: 1.0 - at, label: numbers::short(top * at) };
    let lines = [line(1.0), line(0.5), line(0.0)];
    page.raw("<div class=\"row chart\">");
    gutter(page, &lines);
    page.raw("<div class=\"plot\">");
    timeline.open_svg(page, "chart", &format!("{} {}: {facts}", chart.title, chart.unit));
    levels(page, timeline, &lines);
    let heights: Vec<_> = chart.values.iter().map(|value| Some(HEIGHT * (1.0 - value / top))).collect();
    page.raw("<path class=\"area ").raw(chart.class).raw("\" d=\"").raw(&filled(&heights)).raw("\"/>");
    page.raw("<path class=\"line ").raw(chart.class).raw("\" d=\"").raw(&steps(&heights)).raw("\"/>");
    let of = |index: usize| Some(format!("{} {}", numbers::short(chart.values[index]), chart.what));
    timeline.close_svg(page, of);
    page.raw("</div></div>");
    timeline.times(page);
    page.raw("</figure>");
}

/// A chart of one number.
pub(super) struct Area<'a> {
    pub(super) title: &'a str,
    pub(super) unit: &'a str,
    /// What a number is of.
    pub(super) what: &'a str,
    /// Class of the drawing.
    pub(super) class: &'a str,
    /// A number of each slot.
    pub(super) values: Vec<f64>,
}

/// The chart of latencies.
pub(super) fn latencies(page: &mut Markup, timeline: &Timeline<'_>, all: &Latency) {
    let slots: Vec<Option<&Latency>> = timeline
        .slots
        .iter()
        .map(|slot| slot.map(|slot| &slot.latency).filter(|one| one.count() > 0))
        .collect();
    let least = slots.iter().flatten().filter_map(|one| one.permille_ns(500)).min().unwrap_or(1);
    let (axis, lines) = {
        let axis = LogAxis::new(least, all.max_ns().unwrap_or(1));
        (axis, axis.lines())
    };
    let of = |permille| all.permille_ns(permille).map_or_else(String::new, numbers::duration);
    let facts = format!("p50 {}, p99 {}", of(500), of(990));
    open(
        page,
        "Tick → signal",
        "from the publication of the tick to the commit of the signal, log scale",
        &facts,
    );
    page.raw("<div class=\"keys\">");
    for (class, name) in [("p50", "p50"), ("p99", "p99"), ("max", "slowest")] {
        page.raw("<span><svg class=\"key\" viewBox=\"0 0 24 8\"><path class=\"line ")
            .raw(class)
            .raw("\" d=\"M0 4H24\"/></svg>");
        page.raw(name).raw("</span>");
    }
    page.raw("</div><div class=\"row chart tall\">");
    gutter(page, &lines);
    page.raw("<div class=\"plot\">");
    timeline.open_svg(page, "chart", &format!("latency over time: {facts}"));
    levels(page, timeline, &lines);
    let heights = |of: &dyn Fn(&Latency) -> Option<u64>| -> Vec<Option<f64>> {
        slots.iter().map(|one| one.and_then(of).map(|ns| HEIGHT * axis.place(ns))).collect()
    };
    let lines = [
        ("p50", heights(&|one| one.permille_ns(500))),
        ("p99", heights(&|one| one.permille_ns(990))),
        ("max", heights(&|one| one.max_ns())),
    ];
    page.raw("<path class=\"area p99\" d=\"").raw(&band(&lines[0].1, &lines[1].1)).raw("\"/>");
    for (class, heights) in &lines {
        page.raw("<path class=\"line ").raw(class).raw("\" d=\"").raw(&steps(heights)).raw("\"/>");
    }
    timeline.close_svg(page, |index| {
        let one = slots[index]?;
        let ns = |value: Option<u64>| numbers::duration(value.unwrap_or(0));
        let (p50, p99, max) = (ns(one.permille_ns(500)), ns(one.permille_ns(990)), ns(one.max_ns()));
        Some(format!("p50 {p50}, p99 {p99}, slowest {max} of {} signals", numbers::count(one.count())))
    });
    page.raw("</div></div>");
    timeline.times(page);
    page.raw("</figure>");
}

/// A step for each slot that has a value.
pub(super) fn steps(heights: &[Option<f64>]) -> String {
    let mut path = String::new();
    let mut before = None;
    for (index, height) in heights.iter().enumerate() {
        if let Some(height) = height {
            let height = place(*height);
            match &before {
                None => path += &format!("M{index} {height}H{}", index + 1),
                // A step goes on to the right.
                Some(same) if *same == height => path += &format!("H{}", index + 1),
                Some(_) => path += &format!("V{height}H{}", index + 1),
            }
            before = Some(height);
        } else {
            before = None;
        }
    }
    if path.is_empty() { "M0 0".to_owned() } else { path }
}

/// The area between steps and the bottom.
fn filled(heights: &[Option<f64>]) -> String {
    band(&vec![Some(HEIGHT); heights.len()], heights)
}

/// The area between two lines of steps, where both have values.
pub(super) fn band(lower: &[Option<f64>], upper: &[Option<f64>]) -> String {
    let both: Vec<Option<(f64, f64)>> =
        lower.iter().zip(upper).map(|(lower, upper)| lower.zip(*upper)).collect();
    let mut path = String::new();
    let mut index = 0;
    while index < both.len() {
        let run = both[index..].iter().take_while(|one| one.is_some()).count();
        let values: Vec<(f64, f64)> = both[index..index + run].iter().flatten().copied().collect();
        if let Some((first, _)) = values.first() {
            path += &format!("M{index} {}", place(*first));
            for (at, (_, upper)) in (index..).zip(&values) {
                path += &format!("V{}H{}", place(*upper), at + 1);
            }
            for (at, (lower, _)) in (index..index + run).zip(&values).rev() {
                path += &format!("V{}H{at}", place(*lower));
            }
            path += "Z";
        }
        index += run.max(1);
    }
    if path.is_empty() { "M0 0".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stop_where_nothing_is_known() {
        let heights = [None, Some(50.0), Some(50.0), Some(20.0), None, Some(0.0)];
        assert_eq!(steps(&heights), "M1 50H2H3V20H4M5 0H6");
        assert_eq!(steps(&[None, None]), "M0 0");
        assert_eq!(
            band(&[Some(100.0), None, Some(90.0)], &[Some(1.0), Some(2.0), Some(3.0)]),
            "M0 100V1H1V100H0ZM2 90V3H3V90H2Z"
        );
    }
}
