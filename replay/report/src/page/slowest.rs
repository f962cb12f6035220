//! The slowest signals: what they waited for, together and each.

use std::collections::BTreeMap;

use warptape_replay::chain::Slow;

use super::head::held_words;
use super::markup::Markup;
use super::{numbers, tables};
use crate::Page;

/// Bytes of the chain of a signal.
const CHAIN_BYTES_MAX: usize = 16_384;
/// Bytes of all chains.
const CHAINS_BYTES_MAX: usize = 400_000;

/// The section.
pub(super) fn slowest(page: &mut Markup, of: &Page<'_>) {
    page.raw("<section><h2>Slowest signals</h2>");
    let slowest = &of.gathered.slowest;
    if slowest.signals.is_empty() {
        page.element("p", "none", "There is no signal of which it is known how long it took.");
    } else {
        waits(page, of);
    }
    for reason in slowest.left_out(numbers::count) {
        page.element("p", "note", &format!("{reason}."));
    }
    let begin = page.len();
    for (index, slow) in slowest.signals.iter().enumerate() {
        let chain = of.chains.get(index).map_or("", String::as_str);
        signal(page, of, slow, chain, (begin + CHAINS_BYTES_MAX).saturating_sub(page.len()));
    }
    page.raw("</section>");
}

/// What they all waited for together.
fn waits(page: &mut Markup, of: &Page<'_>) {
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
    let count = of.gathered.slowest.signals.len();
    let title = if count == 1 {
        "What the slowest waited for".to_owned()
    } else {
        format!("What the {count} slowest waited for, together")
    };
    tables::bars(page, &title, &rows);
}

fn name(step: warptape_replay::chain::Step) -> String {
    serde_json::json!(step).as_str().unwrap_or_default().to_owned()
}

fn signal(page: &mut Markup, of: &Page<'_>, slow: &Slow, chain: &str, bytes_left: usize) {
    let signal = &slow.chain.signal;
    let place = format!("signal:{}:{}", signal.partition, signal.offset);
    page.raw("<details class=\"slow\"><summary><span class=\"took\">");
    page.raw(&numbers::duration(u64::try_from(slow.chain.total_ns).unwrap_or(0)));
    page.raw("</span><span class=\"which\">")
        .text(&format!("{} {} ", signal.kind, signal.symbol))
        .element("code", "", &place);
    page.raw("</span><span class=\"main\">");
    if let Some(held) = slow.held_by.first() {
        page.text(&held_words(of, held));
    }
    page.raw("</span></summary><div class=\"scroll\" tabindex=\"0\"><pre>");
    if !page.text_within(chain.trim_end(), CHAIN_BYTES_MAX.min(bytes_left)) {
        page.raw("…");
    }
    page.raw("</pre></div><p class=\"note\">All of it: <code>");
    page.text(&format!("warptape replay why {place} {}", of.about.log_arguments))
        .raw("</code></p></details>");
}
