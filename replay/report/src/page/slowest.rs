//! The slowest signals, with their waits in total and one by one.

use std::collections::BTreeMap;

use maud::{Markup, html};
use warptape_replay::chain::Slow;

use super::charts::{note, nothing};
use super::head::held_words;
use super::{numbers, tables};
use crate::Page;
use crate::drawing::cut;

/// Greatest length of a signal's chain, in bytes.
const CHAIN_BYTES_MAX: usize = 16_384;
/// Greatest length of all chains together, in bytes.
const CHAINS_BYTES_MAX: usize = 400_000;

/// Returns the section about the slowest signals.
pub(super) fn slowest(of: &Page<'_>) -> Markup {
    let slowest = &of.gathered.slowest;
    let mut bytes_left = CHAINS_BYTES_MAX;
    let signals: Vec<Markup> = slowest
        .signals
        .iter()
        .enumerate()
        .map(|(index, slow)| {
            let chain = of.chains.get(index).map_or("", String::as_str);
            let signal = signal(of, slow, chain, bytes_left);
            bytes_left = bytes_left.saturating_sub(signal.0.len());
            signal
        })
        .collect();
    html! {
        section {
            h2 { "Slowest signals" }
            @if signals.is_empty() {
                (nothing("No signal has a known latency."))
            } @else {
                (waits(of))
            }
            @for reason in slowest.left_out(numbers::count) { (note(&format!("{reason}."))) }
            @for signal in signals { (signal) }
        }
    }
}

/// Returns the section about the total waits of all listed signals.
fn waits(of: &Page<'_>) -> Markup {
    let mut sums = BTreeMap::new();
    for wait in of.gathered.slowest.signals.iter().flat_map(|slow| &slow.chain.waits) {
        let sum: &mut u64 = sums.entry(wait.step).or_default();
        *sum = sum.saturating_add(u64::try_from(wait.ns).unwrap_or(0));
    }
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, ns)| *ns > 0).collect();
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let rows: Vec<_> = sums
        .into_iter()
        .map(|(step, ns)| (name(step), (of.cause)(step).to_owned(), ns as f64, numbers::duration(ns)))
        .collect();
    let title = match of.gathered.slowest.signals.len() {
        1 => "Waits of the slowest signal".to_owned(),
        count => format!("Waits of the {count} slowest signals, added up"),
    };
    tables::bars(&title, &rows)
}

fn name(step: warptape_replay::chain::Step) -> String {
    serde_json::json!(step).as_str().unwrap_or_default().to_owned()
}

fn signal(of: &Page<'_>, slow: &Slow, chain: &str, bytes_left: usize) -> Markup {
    let signal = &slow.chain.signal;
    let place = format!("signal:{}:{}", signal.partition, signal.offset);
    html! {
        details.slow {
            summary {
                span.took { (numbers::duration(u64::try_from(slow.chain.total_ns).unwrap_or(0))) }
                span.which { (signal.kind) " " (signal.symbol) " " code { (place) } }
                span.main { @if let Some(held) = slow.held_by.first() { (held_words(of, held)) } }
            }
            div.scroll tabindex="0" { pre { (cut(chain.trim_end(), CHAIN_BYTES_MAX.min(bytes_left))) } }
            p.note { "All of it: " code { "warptape replay why " (place) " " (of.about.log_arguments) } }
        }
    }
}
