//! The top of the page: the log, its verification, and counts of events.

use maud::{Markup, html};
use warptape_replay::chain::{Held, Holder};

use super::numbers;
use crate::drawing::cut;
use crate::gathered::{Gathered, Totals};
use crate::{Page, Verdict};

/// Greatest length of a verdict's text, in bytes.
const WORDS_BYTES_MAX: usize = 8_192;

/// Returns the title, the verdict, and the origin of the numbers.
pub(super) fn head(of: &Page<'_>) -> Markup {
    let gathered = of.gathered;
    let topic = |(what, name): &(&str, String)| match name == what {
        true => name.clone(),
        false => format!("{name} ({what})"),
    };
    let topics: Vec<_> = of.about.topics.iter().map(topic).collect();
    let software: Vec<_> = gathered.software.iter().map(String::as_str).collect();
    let totals = gathered.totals;
    let processes = format!(
        "{} in {} {}",
        counted(totals.processes, "process", "processes"),
        numbers::count(totals.lives),
        if totals.lives == 1 { "life" } else { "lives" }
    );
    let mut facts =
        vec![("Log", of.about.log.clone()), ("Topics", topics.join(", ")), ("Time (UTC)", span(gathered))];
    facts.extend(of.about.asked.clone().map(|asked| ("Asked for", asked)));
    facts.extend([("Processes", processes), ("Software", software.join(", "))]);
    html! {
        header {
            h1 { "Run report" }
            (verdict(of.verdict))
            p.glance { (glance(of)) }
            dl.about { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
        }
    }
}

fn span(gathered: &Gathered) -> String {
    let Some((first, last)) = gathered.slots.span() else { return "nothing happened".to_owned() };
    let took = numbers::duration(last.abs_diff(first));
    format!("{} to {} ({took})", numbers::utc(first), numbers::utc(last))
}

fn verdict(verdict: &Verdict) -> Markup {
    let (class, sign, title, words) = match verdict {
        Verdict::NotAsked => {
            ("unknown", "–", "Not verified", "The report was made with --no-verify.".to_owned())
        }
        Verdict::Failed(error) => ("unknown", "–", "Could not be verified", error.clone()),
        Verdict::Compared(report) if !report.is_identical() => {
            ("bad", "≠", "Differs from its replay", report.to_string())
        }
        Verdict::Compared(report) => {
            let title = match report.outputs {
                Some(_) => "Verified: journal and outputs are identical",
                None => "Verified: the journal is identical",
            };
            let what = if report.outputs.is_some() {
                ""
            } else {
                " Outputs were not compared; to compare \
                                                                  them, use --outputs."
            };
            let entries = numbers::count(report.entries);
            ("good", "✓", title, format!("{entries} entries were stepped again. {report}.{what}"))
        }
    };
    html! {
        div class={ "verdict " (class) } {
            span.sign aria-hidden="true" { (sign) }
            div { strong { (title) } p { (cut(&words, WORDS_BYTES_MAX)) } }
        }
    }
}

/// Returns the most important numbers in a sentence.
fn glance(of: &Page<'_>) -> String {
    let gathered = of.gathered;
    let latency = &gathered.latency;
    let (Some(p99), Some(max)) = (latency.permille_ns(990), latency.max_ns()) else {
        return match gathered.totals.transactions.signals {
            0 => "No signal was committed in this window.".to_owned(),
            signals => format!(
                "{} signals, all with an unknown time from tick to commit: their ticks or signals are not in this log, or the journal lacks the time of their commit.",
                numbers::count(signals)
            ),
        };
    };
    let held = gathered.slowest.signals.first().and_then(|slow| slow.held_by.first());
    let main = held.map_or_else(String::new, |held| format!(", {}", held_words(of, held)));
    format!(
        "99 % of {} signals were committed within {} of the publication of their tick. The slowest took {}{main}.",
        numbers::count(latency.count()),
        numbers::duration(p99),
        numbers::duration(max)
    )
}

/// Describes the cause that held a signal up, with its time and its share.
pub(super) fn held_words(of: &Page<'_>, held: &Held) -> String {
    let ns = numbers::duration(u64::try_from(held.ns).unwrap_or(0));
    match &held.by {
        Holder::Lane { lane, device } => format!("{ns} of it because of lane {lane} ({device})"),
        Holder::Step(step) => format!("{ns} of it waiting {}", (of.cause)(*step)),
    }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", numbers::count(count), if count == 1 { one } else { many })
}

/// Tiles with counts of events.
pub(super) fn tiles(gathered: &Gathered) -> Markup {
    let totals = gathered.totals;
    let Totals { transactions, tasks, .. } = totals;
    let seconds = gathered.slots.span().map_or(0.0, |(first, last)| last.abs_diff(first) as f64 / 1e9);
    let rate =
        |number: u64| if seconds > 0.0 { numbers::short(number as f64 / seconds) } else { "–".to_owned() };
    let within =
        |permille| gathered.latency.permille_ns(permille).map_or_else(|| "–".to_owned(), numbers::duration);
    let max = gathered.latency.max_ns().map_or_else(|| "–".to_owned(), numbers::duration);
    let count = numbers::count;
    let paused = gathered.paused.values().fold(0_u64, |sum, ns| sum.saturating_add(*ns));
    let tiles = [
        (
            "Rows of ticks",
            count(totals.rows),
            format!("{} /s, of {} records", rate(totals.rows), count(transactions.records)),
            "plain",
        ),
        (
            "Signals",
            count(transactions.signals),
            format!(
                "{} late ticks, {} dead letters",
                count(transactions.late),
                count(transactions.dead_letters)
            ),
            "plain",
        ),
        ("Signals per second", rate(transactions.signals), "mean of the window".to_owned(), "plain"),
        (
            "Tick → signal p50",
            within(500),
            format!("of {} signals", count(gathered.latency.count())),
            "plain",
        ),
        ("Tick → signal p99", within(990), "1 % are slower".to_owned(), "plain"),
        ("Tick → signal p99.9", within(999), "0.1 % are slower".to_owned(), "plain"),
        ("Tick → signal slowest", max, "from publication to commit".to_owned(), "plain"),
        (
            "Batches",
            count(totals.batches),
            format!("{} lost with their lane or process", count(totals.batches_lost)),
            "plain",
        ),
        ("Moves of groups", count(gathered.moves.count()), "from lane to lane".to_owned(), "plain"),
        (
            "Pauses",
            count(totals.pauses),
            format!("{} in total", numbers::duration(paused)),
            warned(totals.pauses),
        ),
        (
            "Commits",
            count(transactions.committed),
            format!(
                "{} aborted attempts, {} at an unknown time",
                count(transactions.aborted),
                count(transactions.untimed)
            ),
            warned(transactions.aborted),
        ),
        ("Risk tasks finished", count(tasks.finished), counted(tasks.slices, "slice", "slices"), "plain"),
        (
            "Risk tasks not done",
            count(tasks.refused + tasks.expired + tasks.shed + tasks.dropped),
            format!(
                "{} refused, {} expired, {} shed",
                count(tasks.refused),
                count(tasks.expired),
                count(tasks.shed)
            ),
            warned(tasks.refused + tasks.expired + tasks.shed),
        ),
        (
            "Lanes lost",
            count(totals.lanes_lost),
            format!("{} breaker changes", count(totals.breakers)),
            warned(totals.lanes_lost),
        ),
    ];
    html! {
        section.tiles aria-label="Totals" {
            @for (name, number, said, class) in tiles {
                div class={ "tile " (class) } {
                    span.label { (name) }
                    span.value { (number) }
                    span.sub { (said) }
                }
            }
        }
        @if totals.negative > 0 {
            p.note {
                (count(totals.negative))
                " signals were committed before their tick was published, because the clocks differ; their \
                 latency counts as 0."
            }
        }
    }
}

fn warned(count: u64) -> &'static str {
    if count > 0 { "warned" } else { "plain" }
}
