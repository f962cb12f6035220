//! The time that all charts share: which slot is where, what its time is called, which lines and marks go through all of them.

use std::fmt::Write as _;

use super::axis::TimeAxis;
use super::markup::Markup;
use super::numbers::{self, Precision};
use super::words;
use crate::gathered::{EventKind, Gathered, Slot};

/// Height of charts in their own units.
pub(super) const HEIGHT: f64 = 100.0;

/// What charts have in common.
pub(super) struct Timeline<'a> {
    pub(super) axis: TimeAxis,
    /// What happened in each slot.
    pub(super) slots: Vec<Option<&'a Slot>>,
    /// Part of each slot that the history covers, in seconds.
    pub(super) seconds: Vec<f64>,
    /// The times of each slot, in words.
    pub(super) names: Vec<String>,
    /// Lines and marks, as paths.
    behind: String,
}

impl<'a> Timeline<'a> {
    /// The timeline of what was gathered; `None` where nothing has a time.
    pub(super) fn new(gathered: &'a Gathered) -> Option<Self> {
        let slots = &gathered.slots;
        slots.span()?;
        let axis = TimeAxis::new(slots);
        let precision = match slots.width_ns() {
            0..1_000_000_000 => Precision::Milliseconds,
            1_000_000_000..86_400_000_000_000 => Precision::Seconds,
            _ => Precision::Days,
        };
        let name = |index: usize| {
            let begin_ns = slots.begin_ns(index);
            let end_ns = begin_ns.saturating_add(slots.width_ns());
            format!("{} to {}", numbers::clock(begin_ns, precision), numbers::clock(end_ns, precision))
        };
        let all: Vec<_> = slots.iter().collect();
        let behind = grid(&axis) + &marks(&all);
        Some(Self {
            names: (0..axis.slots).map(name).collect(),
            seconds: (0..axis.slots).map(|index| slots.covered_ns(index) as f64 / 1e9).collect(),
            slots: all,
            axis,
            behind,
        })
    }

    /// A number of each slot.
    pub(super) fn values(&self, of: impl Fn(&Slot) -> f64) -> Vec<f64> {
        self.slots.iter().map(|slot| slot.map_or(0.0, &of)).collect()
    }

    /// A number of each slot, by second.
    pub(super) fn rates(&self, of: impl Fn(&Slot) -> f64) -> Vec<f64> {
        self.values(of).iter().zip(&self.seconds).map(|(value, seconds)| value / seconds).collect()
    }

    /// Writes the lines and marks that go through all drawings.
    pub(super) fn define(&self, page: &mut Markup) {
        page.raw("<svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><g id=\"behind\">");
        page.raw(&self.behind).raw("</g></defs></svg>");
    }

    /// Begins the drawing of a chart or a strip, behind its label.
    pub(super) fn open_svg(&self, page: &mut Markup, class: &str, label: &str) {
        page.raw("<svg class=\"").raw(class).raw("\" role=\"img\" aria-label=\"").text(label);
        let slots = self.axis.slots;
        page.raw_fmt(format_args!(
            "\" viewBox=\"0 0 {slots} {HEIGHT}\" preserveAspectRatio=\"none\"><use href=\"#behind\"/>"
        ));
    }

    /// Ends a drawing with what is shown of each slot when it is pointed at.
    pub(super) fn close_svg(&self, page: &mut Markup, of: impl Fn(usize) -> Option<String>) {
        page.raw("<g class=\"hover\">");
        for index in 0..self.axis.slots {
            let Some(words) = of(index) else { continue };
            page.raw_fmt(format_args!("<rect x=\"{index}\" width=\"1\" height=\"{HEIGHT}\"><title>"));
            page.raw(&self.names[index]).raw(": ").text(&words).raw("</title></rect>");
        }
        page.raw("</g></svg>");
    }

    /// The labels of the axis, below a chart.
    pub(super) fn times(&self, page: &mut Markup) {
        page.raw("<div class=\"row times\"><div class=\"gutter\">").text(&self.axis.day);
        page.raw("</div><div class=\"plot\">");
        for (index, line) in self.axis.lines.iter().enumerate() {
            let class = match line.at {
                at if at < 0.04 => " class=\"first\"",
                at if at > 0.88 => " class=\"last\"",
                _ if index % 2 == 1 => " class=\"odd\"",
                _ => "",
            };
            page.raw_fmt(format_args!(
                "<span{class} style=\"left:{:.2}%\">{}</span>",
                100.0 * line.at,
                line.label
            ));
        }
        page.raw("</div></div>");
    }
}

fn grid(axis: &TimeAxis) -> String {
    let path: String =
        axis.lines.iter().map(|line| format!("M{} 0V{HEIGHT}", place(line.at * axis.slots as f64))).collect();
    format!("<path class=\"grid\" d=\"M0 0{path}\"/>")
}

/// A line through each slot in which there was an event of a kind.
fn marks(slots: &[Option<&Slot>]) -> String {
    let mut marks = String::new();
    for kind in EventKind::ALL {
        let has = |slot: &Option<&Slot>| slot.is_some_and(|slot| slot.events[kind as usize] > 0);
        let at: String = (0..slots.len())
            .filter(|index| has(&slots[*index]))
            .map(|index| format!("M{index}.5 0V{HEIGHT}"))
            .collect();
        if !at.is_empty() {
            write!(marks, "<path class=\"mark {}\" d=\"{at}\"/>", words::event(kind).1)
                .expect("a string takes any text");
        }
    }
    marks
}

/// A coordinate, with two digits behind the point at most.
pub(super) fn place(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
