//! The time axis of all charts: positions and names of slots, and the lines and marks that cross all charts.

use maud::{Markup, html};

use super::axis::TimeAxis;
use super::charts::path;
use super::numbers::{self, Precision};
use super::words;
use crate::drawing::{Line, place};
use crate::gathered::{EventKind, Gathered, Slot};

/// Height of charts, in units of the drawing.
pub(super) const HEIGHT: f64 = 100.0;

/// Common parts of all charts.
pub(super) struct Timeline<'a> {
    pub(super) axis: TimeAxis,
    /// The events and amounts in each slot; `None` if there are none.
    pub(super) slots: Vec<Option<&'a Slot>>,
    /// The part of each slot that the history covers, in seconds.
    pub(super) seconds: Vec<f64>,
    /// Interval of each slot, as text.
    pub(super) names: Vec<String>,
    /// Lines and marks behind the charts, as paths.
    behind: Markup,
}

impl<'a> Timeline<'a> {
    /// Returns the timeline of the gathered items; `None` if no item has a time.
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
        let behind = html! { (grid(&axis)) (marks(&all)) };
        Some(Self {
            names: (0..axis.slots).map(name).collect(),
            seconds: (0..axis.slots).map(|index| slots.covered_ns(index) as f64 / 1e9).collect(),
            slots: all,
            axis,
            behind,
        })
    }

    /// Returns a number for each slot.
    pub(super) fn values(&self, of: impl Fn(&Slot) -> f64) -> Vec<f64> {
        self.slots.iter().map(|slot| slot.map_or(0.0, &of)).collect()
    }

    /// Returns a number for each slot, per second.
    pub(super) fn rates(&self, of: impl Fn(&Slot) -> f64) -> Vec<f64> {
        self.values(of).iter().zip(&self.seconds).map(|(value, seconds)| value / seconds).collect()
    }

    /// Defines the lines and marks that cross all drawings.
    pub(super) fn define(&self) -> Markup {
        html! { svg.defs width="0" height="0" aria-hidden="true" { defs { g id="behind" { (self.behind) } } } }
    }

    /// Returns the drawing of a chart or a strip, with a label, and with the slots' texts on hovering.
    pub(super) fn svg(
        &self,
        class: &str,
        label: &str,
        drawn: &Markup,
        said: impl Fn(usize) -> Option<String>,
    ) -> Markup {
        let size = format!("0 0 {} {HEIGHT}", self.axis.slots);
        html! {
            svg class=(class) role="img" aria-label=(label) viewBox=(size) preserveAspectRatio="none" {
                use href="#behind" {}
                (drawn)
                g.hover {
                    @for (index, name) in self.names.iter().enumerate() {
                        @if let Some(words) = said(index) {
                            rect x=(index) width="1" height=(HEIGHT) { title { (name) ": " (words) } }
                        }
                    }
                }
            }
        }
    }

    /// Returns the labels of the time axis, below a chart.
    pub(super) fn times(&self) -> Markup {
        let class = |(index, line): (usize, &Line)| match line.at {
            at if at < 0.04 => Some("first"),
            at if at > 0.88 => Some("last"),
            _ if index % 2 == 1 => Some("odd"),
            _ => None,
        };
        html! {
            div.row.times {
                div.gutter { (self.axis.day) }
                div.plot {
                    @for (index, line) in self.axis.lines.iter().enumerate() {
                        span class=[class((index, line))] style=(format_args!("left:{:.2}%", 100.0 * line.at)) { (line.label) }
                    }
                }
            }
        }
    }
}

fn grid(axis: &TimeAxis) -> Markup {
    let lines: String =
        axis.lines.iter().map(|line| format!("M{} 0V{HEIGHT}", place(line.at * axis.slots as f64))).collect();
    path("grid", &format!("M0 0{lines}"))
}

/// Returns a line through each slot that has an event of a kind.
fn marks(slots: &[Option<&Slot>]) -> Markup {
    let at = |kind: EventKind| -> String {
        let has = |slot: &Option<&Slot>| slot.is_some_and(|slot| slot.events[kind as usize] > 0);
        let found = (0..slots.len()).filter(|index| has(&slots[*index]));
        found.map(|index| format!("M{index}.5 0V{HEIGHT}")).collect()
    };
    let kinds = EventKind::ALL.map(|kind| (words::event(kind).1, at(kind)));
    html! {
        @for (class, at) in kinds.iter().filter(|(_, at)| !at.is_empty()) { (path(&format!("mark {class}"), at)) }
    }
}
