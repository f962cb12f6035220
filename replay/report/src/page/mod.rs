//! The page, from top to bottom. It is HTML that is also valid XML, with drawings in SVG; maud escapes the texts in
//! both.

mod axis;
mod charts;
mod head;
mod lanes;
mod numbers;
mod slowest;
mod strips;
mod tables;
mod timeline;
mod words;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::charts::{Area, figure, nothing};
use self::lanes::Lanes;
use self::strips::{Cell, Strip};
use self::timeline::Timeline;
use crate::Page;
use crate::drawing::shown;
use crate::gathered::{EventKind, Gathered};

/// Upper bound of a page's size in bytes, for any log.
pub const PAGE_BYTES_MAX: usize = 2 << 20;

/// Elements without an end tag in HTML, written as valid XML. The policy forbids requests and scripts.
const ABOUT_PAGE: PreEscaped<&str> = PreEscaped(concat!(
    r#"<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>"#,
    r#"<meta name="color-scheme" content="light dark"/><meta http-equiv="Content-Security-Policy" "#,
    r#"content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"/><link rel="icon" href="data:,"/>"#,
));

/// Returns the page as HTML.
pub fn html(of: &Page<'_>) -> String {
    let gathered = of.gathered;
    shown(html! {
        (DOCTYPE) "\n"
        html lang="en" xmlns="http://www.w3.org/1999/xhtml" {
            head {
                (ABOUT_PAGE)
                title { "Run report: " (of.about.log) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            "\n"
            body {
                main {
                    (head::head(of))
                    (head::tiles(gathered))
                    section.time { h2 { "Over time" } (over_time(gathered)) }
                    (tables::decisions(gathered))
                    (tables::moves(gathered))
                    (slowest::slowest(of))
                    (tables::events(gathered))
                    (tables::lives(gathered))
                    (foot(of))
                }
            }
        }
        "\n"
    })
}

/// Returns the charts over time.
fn over_time(gathered: &Gathered) -> Markup {
    let Some(timeline) = Timeline::new(gathered) else {
        return nothing("Nothing happened in this window, so there are no charts.");
    };
    let width = numbers::duration(timeline.axis.width_ns.unsigned_abs());
    let slots = timeline.axis.slots;
    let lanes = Lanes::new(gathered);
    html! {
        p.note {
            "All charts have the same time axis, in UTC: " (slots) " slots of " (width) ". Event marks run through all charts."
        }
        (timeline.define())
        (events(&timeline, gathered))
        (rates(&timeline, gathered))
        (lanes::utilisation(&timeline, &lanes))
        (lanes::placement(&timeline, &lanes))
        (lanes::pauses(&timeline, gathered))
    }
}

/// Returns a row for each kind of event that occurred.
fn events(timeline: &Timeline<'_>, gathered: &Gathered) -> Markup {
    let strip = |kind: EventKind| {
        let counts = timeline.values(|slot| f64::from(slot.events[kind as usize]));
        let (name, class) = words::event(kind);
        let cell = |count: f64| Cell {
            class: class.to_owned(),
            words: format!("{name}: {}", numbers::short(count)),
        };
        Strip {
            name: name.to_owned(),
            number: numbers::short(counts.iter().sum()),
            cells: counts.into_iter().map(|count| (count > 0.0).then(|| cell(count))).collect(),
        }
    };
    let strips = EventKind::ALL.map(strip);
    let strips: Vec<_> = strips.into_iter().filter(|strip| strip.cells.iter().any(Option::is_some)).collect();
    let drawing = if gathered.events.is_empty() || strips.is_empty() {
        nothing(
            "No events: no process started or was told to end, no lane was lost, no breaker changed, no device became hot or cool, the number of wanted lanes did not change, no commit was aborted, and no process stood still.",
        )
    } else {
        strips::rows(timeline, "event", &strips, strips::CELLS_NAMED_MAX / 4)
    };
    figure("Events", "as marked in all charts", "", drawing)
}

/// Shows rates, latencies and waiting rows.
fn rates(timeline: &Timeline<'_>, gathered: &Gathered) -> Markup {
    let totals = gathered.totals;
    let area = |title, unit, what, class, values: Vec<f64>| {
        charts::area(timeline, &Area { title, unit, what, class, values })
    };
    let [signals, rows, waiting] = [
        ("Signals", "committed per second"),
        ("Rows of ticks", "arrived per second"),
        ("Rows waiting on the host", "mean in each slot"),
    ];
    let none = |(title, unit), words| figure(title, unit, "", nothing(words));
    html! {
        @if gathered.latency.count() > 0 {
            (charts::latencies(timeline, &gathered.latency))
        } @else {
            (none(("Tick → signal", "latency"), "No signal has a known latency."))
        }
        @if totals.transactions.signals == 0 {
            (none(signals, "No signal was committed."))
        } @else {
            (area(signals.0, signals.1, "signals per second", "signals", timeline.rates(|slot| slot.signals as f64)))
        }
        @if totals.rows == 0 {
            (none(rows, "No row went to a lane."))
            (none(waiting, "No row waited."))
        } @else {
            (area(rows.0, rows.1, "rows per second", "rows", timeline.rates(|slot| slot.rows as f64)))
            (area(waiting.0, waiting.1, "rows waiting", "waiting", timeline.rates(|slot| slot.waiting_row_ns as f64 / 1e9)))
        }
        @if totals.scaled > 0 {
            (area(
                "Lanes wanted",
                "mean in each slot, of all processes together",
                "lanes wanted",
                "wanted",
                timeline.rates(|slot| slot.wanted_lane_ns as f64 / 1e9),
            ))
        }
    }
}

/// Shows how the page was made, and what to look at next.
fn foot(of: &Page<'_>) -> Markup {
    let about = of.about;
    let slowest = of.gathered.slowest.signals.first();
    let signal = slowest.map(|slow| {
        let signal = &slow.chain.signal;
        format!("why signal:{}:{}", signal.partition, signal.offset)
    });
    let lane = slowest.and_then(|slow| {
        let command = slow.chain.why_not(slow.held_by.first()?)?;
        Some(command.trim_start_matches("replay ").to_owned())
    });
    let last = of.gathered.moves.last().next_back();
    let entry = last.map(|one| format!("why {} --partition {}", one.sequence, one.journal));
    let commands = [
        (signal, "the waits of the slowest signal"),
        (lane, "the state of the lane that delayed it most"),
        (entry, "the last move of a group: the candidates and their scores"),
        (Some("slowest 20".to_owned()), "the 20 slowest signals"),
        (Some("timeline --to run.pftrace".to_owned()), "the run as a trace for Perfetto"),
        (Some("verify --outputs".to_owned()), "verification of journal and outputs"),
        (Some("export --with-ticks --to run.db".to_owned()), "the run as one file for another machine"),
    ];
    html! {
        footer {
            h2 { "Next" }
            pre {
                @for (command, what) in commands {
                    @if let Some(command) = command {
                        "# " (what) "\nwarptape replay " (command) " " (about.log_arguments) "\n"
                    }
                }
            }
            p.note {
                "Made by warptape " (about.software) " at " (numbers::utc(about.made_ns)) " UTC with " code { (about.command) }
            }
        }
    }
}
