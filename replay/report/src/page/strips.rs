//! Strips over time: rows of cells whose shades show amounts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use maud::{Markup, html};

use super::charts::path;
use super::timeline::{HEIGHT, Timeline};

/// Greatest number of cells on a page that show their number on hovering. With more cells none does, so that the page
/// stays small.
pub(super) const CELLS_NAMED_MAX: usize = 3_000;
/// Number of shades between empty and full.
const SHADES: f64 = 8.0;

/// A row of cells.
pub(super) struct Strip {
    /// Name of the row.
    pub(super) name: String,
    /// A number for the whole row, as text.
    pub(super) number: String,
    /// Cell of each slot; `None` for an empty slot.
    pub(super) cells: Vec<Option<Cell>>,
}

/// A cell: its class, and its text on hovering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) class: String,
    pub(super) words: String,
}

impl Cell {
    /// Returns a cell shaded by a fraction; `None` for 0.
    pub(super) fn shaded(part: f64, words: String) -> Option<Self> {
        let shade = (part.clamp(0.0, 1.0) * SHADES).ceil();
        (shade > 0.0).then(|| Self { class: format!("s{shade:.0}"), words })
    }
}

/// Returns rows with a class of their own. Cells show their number if there are at most `cells_named_max`.
pub(super) fn rows(timeline: &Timeline<'_>, class: &str, strips: &[Strip], cells_named_max: usize) -> Markup {
    let cells: usize = strips.iter().map(|strip| strip.cells.iter().flatten().count()).sum();
    html! {
        @for strip in strips { (row(timeline, class, strip, cells <= cells_named_max)) }
        (timeline.times())
    }
}

fn row(
    timeline: &Timeline<'_>,
    class: &str,
    Strip { name, number, cells }: &Strip,
    is_named: bool,
) -> Markup {
    let drawn = html! { @for (class, cells) in paths(cells) { (path(class, &cells)) } };
    let said = |index: usize| cells[index].as_ref().filter(|_| is_named).map(|cell| cell.words.clone());
    html! {
        div class={ "row strip " (class) } {
            div.gutter title=(name) { span.name { (name) } span.number { (number) } }
            div.plot { (timeline.svg("strip", &format!("{name}: {number}"), &drawn, said)) }
        }
    }
}

/// Merges neighbouring cells of the same class into one.
fn runs(cells: &[Option<Cell>]) -> Vec<(usize, usize, &Cell)> {
    let mut runs: Vec<(usize, usize, &Cell)> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let Some(cell) = cell else { continue };
        match runs.last_mut() {
            Some((_, to, last)) if *to == index && last.class == cell.class => *to = index + 1,
            _ => runs.push((index, index + 1, cell)),
        }
    }
    runs
}

/// Returns a path for all cells of each class, which is their smallest drawing.
fn paths(cells: &[Option<Cell>]) -> BTreeMap<&str, String> {
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    for (from, to, cell) in runs(cells) {
        let width = to - from;
        let path = paths.entry(cell.class.as_str()).or_default();
        write!(path, "M{from} 0h{width}v{HEIGHT}h-{width}z").expect("a string takes any text");
    }
    paths
}

/// Returns the legend of the shades.
pub(super) fn shades(class: &str, low: &str, high: &str) -> Markup {
    html! {
        div.keys {
            span { (low) }
            svg class={ "shades " (class) } viewBox="0 0 8 1" preserveAspectRatio="none" {
                @for shade in 1..=SHADES as usize { (path(&format!("s{shade}"), &format!("M{} 0h1v1h-1Z", shade - 1))) }
            }
            span { (high) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_are_of_what_there_is() {
        let class = |part| Cell::shaded(part, String::new()).map(|cell| cell.class);
        assert_eq!(
            [0.0, 0.001, 0.5, 1.0, 7.0].map(class).map(Option::unwrap_or_default),
            ["", "s1", "s4", "s8", "s8"]
        );
        let cell = |class: &str| Some(Cell { class: class.to_owned(), words: String::new() });
        let cells = [cell("a"), cell("a"), None, cell("a"), cell("b")];
        let found: Vec<_> =
            runs(&cells).iter().map(|(from, to, cell)| (*from, *to, cell.class.as_str())).collect();
        assert_eq!(found, [(0, 2, "a"), (3, 4, "a"), (4, 5, "b")]);
    }
}
