//! The page, from top to bottom. It is HTML that is XML as well, with drawings in SVG; what stands in them and in it is escaped by
//! `markup`.

mod axis;
mod charts;
mod head;
mod lanes;
mod markup;
mod numbers;
mod slowest;
mod strips;
mod tables;
mod timeline;
mod words;

use self::charts::Area;
use self::lanes::Lanes;
use self::markup::Markup;
use self::strips::{Cell, Strip};
use self::timeline::Timeline;
use crate::Page;
use crate::gathered::{EventKind, Gathered};

/// Bytes that a page has fewer than, whatever the log.
pub const PAGE_BYTES_MAX: usize = 2 << 20;

/// Nothing is asked for from anywhere, and nothing is run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The page as HTML.
pub fn html(of: &Page<'_>) -> String {
    let mut page = Markup::default();
    page.raw("<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>");
    page.raw("<meta name=\"color-scheme\" content=\"light dark\"/><meta http-equiv=\"Content-Security-Policy\" content=\"");
    page.raw(POLICY).raw("\"/><link rel=\"icon\" href=\"data:,\"/><title>Run report: ").text(&of.about.log);
    page.raw("</title><style>").raw(include_str!("style.css")).raw("</style></head>\n<body><main>");
    head::head(&mut page, of);
    head::tiles(&mut page, of.gathered);
    over_time(&mut page, of.gathered);
    tables::decisions(&mut page, of.gathered);
    tables::moves(&mut page, of.gathered);
    slowest::slowest(&mut page, of);
    tables::events(&mut page, of.gathered);
    tables::lives(&mut page, of.gathered);
    foot(&mut page, of);
    page.raw("</main></body></html>\n");
    page.into_html()
}

/// The charts.
fn over_time(page: &mut Markup, gathered: &Gathered) {
    page.raw("<section class=\"time\"><h2>Over time</h2>");
    let Some(timeline) = Timeline::new(gathered) else {
        page.element("p", "none", "Nothing happened in this window, so that there is nothing to draw.")
            .raw("</section>");
        return;
    };
    let width = numbers::duration(timeline.axis.width_ns.unsigned_abs());
    let slots = timeline.axis.slots;
    let words = format!(
        "All charts share one axis of time, in UTC: {slots} slots of {width}. Marks for events go through all of them."
    );
    page.element("p", "note", &words);
    timeline.define(page);
    events(page, &timeline, gathered);
    rates(page, &timeline, gathered);
    let lanes = Lanes::new(gathered);
    lanes::utilisation(page, &timeline, &lanes);
    lanes::placement(page, &timeline, &lanes);
    lanes::pauses(page, &timeline, gathered);
    page.raw("</section>");
}

/// A row for each kind of events that there were.
fn events(page: &mut Markup, timeline: &Timeline<'_>, gathered: &Gathered) {
    charts::open(page, "Events", "as marked in all charts", "");
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
    if gathered.events.is_empty() || strips.is_empty() {
        page.element(
            "p",
            "none",
            "No process began or was told to end, no lane was lost, no breaker changed, no device became hot or cool, no other lanes were wanted, no commit was aborted and no process stood still.",
        );
    } else {
        let is_named = strips::cells(&strips) <= strips::CELLS_NAMED_MAX / 4;
        strips.iter().for_each(|strip| strips::draw(page, timeline, "event", strip, is_named));
        timeline.times(page);
    }
    page.raw("</figure>");
}

/// Rates, latencies and what waits.
fn rates(page: &mut Markup, timeline: &Timeline<'_>, gathered: &Gathered) {
    let totals = gathered.totals;
    if gathered.latency.count() > 0 {
        charts::latencies(page, timeline, &gathered.latency);
    } else {
        charts::open(page, "Tick → signal", "latency", "");
        page.element("p", "none", "Of no signal it is known how long it took from its tick.")
            .raw("</figure>");
    }
    let area = |page: &mut Markup, is_empty: bool, chart: Area<'_>, none: &str| {
        if is_empty {
            charts::open(page, chart.title, chart.unit, "");
            page.element("p", "none", none).raw("</figure>");
        } else {
            charts::area(page, timeline, &chart);
        }
    };
    let values = timeline.rates(|slot| slot.signals as f64);
    let chart = Area {
        title: "Signals",
        unit: "committed per second",
        what: "signals per second",
        class: "signals",
        values,
    };
    area(page, totals.transactions.signals == 0, chart, "No signal was committed.");
    let values = timeline.rates(|slot| slot.rows as f64);
    let chart = Area {
        title: "Rows of ticks",
        unit: "arrived per second",
        what: "rows per second",
        class: "rows",
        values,
    };
    area(page, totals.rows == 0, chart, "No row of a tick went to a lane.");
    let values = timeline.rates(|slot| slot.waiting_row_ns as f64 / 1e9);
    let chart = Area {
        title: "Rows waiting on the host",
        unit: "mean in each slot",
        what: "rows waiting",
        class: "waiting",
        values,
    };
    area(page, totals.rows == 0, chart, "No row waited.");
    if totals.scaled > 0 {
        let values = timeline.rates(|slot| slot.wanted_lane_ns as f64 / 1e9);
        let chart = Area {
            title: "Lanes wanted",
            unit: "mean in each slot, of all processes together",
            what: "lanes wanted",
            class: "wanted",
            values,
        };
        charts::area(page, timeline, &chart);
    }
}

/// How the page was made, and what to do next.
fn foot(page: &mut Markup, of: &Page<'_>) {
    let about = of.about;
    page.raw("<footer><h2>Next</h2><pre>");
    let signal = of.gathered.slowest.signals.first().map(|slow| {
        let signal = &slow.chain.signal;
        format!("why signal:{}:{}", signal.partition, signal.offset)
    });
    let lane = of.gathered.slowest.signals.first().and_then(|slow| {
        let command = slow.chain.why_not(slow.held_by.first()?)?;
        Some(command.trim_start_matches("replay ").to_owned())
    });
    let entry = of
        .gathered
        .moves
        .last()
        .next_back()
        .map(|one| format!("why {} --partition {}", one.sequence, one.journal));
    let commands = [
        (signal, "all of the slowest signal"),
        (lane, "what became of the lane that held it up longest"),
        (entry, "the last move: what was chosen among, and by what"),
        (Some("slowest 20".to_owned()), "more of the slowest"),
        (Some("timeline --to run.pftrace".to_owned()), "the run as a trace, for Perfetto"),
        (Some("verify --outputs".to_owned()), "journal and outputs against their replay"),
        (Some("export --with-ticks --to run.db".to_owned()), "the run as one file, for another machine"),
    ];
    for (command, what) in commands {
        let Some(command) = command else { continue };
        page.text(&format!("# {what}\nwarptape replay {command} {}\n", about.log_arguments));
    }
    page.raw("</pre><p class=\"note\">Made by warptape ").text(&about.software).raw(" at ");
    page.text(&numbers::utc(about.made_ns))
        .raw(" UTC with <code>")
        .text(&about.command)
        .raw("</code></p></footer>");
}
