//! Strips over time: a row each, whose cells say by their shade how much there was.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::markup::Markup;
use super::timeline::{HEIGHT, Timeline};

/// Cells of a page that say their number when they are pointed at; of more none does, so that the page stays small.
pub(super) const CELLS_NAMED_MAX: usize = 3_000;
/// Shades between nothing and all.
const SHADES: f64 = 8.0;

/// A row.
pub(super) struct Strip {
    /// What it is of.
    pub(super) name: String,
    /// A number of the whole row.
    pub(super) number: String,
    /// Of each slot its class, and what is to be said of it; `None` where there is nothing.
    pub(super) cells: Vec<Option<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) class: String,
    pub(super) words: String,
}

impl Cell {
    /// A cell whose shade is a part of a whole.
    pub(super) fn shaded(part: f64, words: String) -> Option<Self> {
        let shade = (part.clamp(0.0, 1.0) * SHADES).ceil();
        (shade > 0.0).then(|| Self { class: format!("s{shade:.0}"), words })
    }
}

/// Draws a row.
pub(super) fn draw(page: &mut Markup, timeline: &Timeline<'_>, class: &str, strip: &Strip, is_named: bool) {
    page.raw("<div class=\"row strip ").raw(class).raw("\"><div class=\"gutter\" title=\"").text(&strip.name);
    page.raw("\"><span class=\"name\">").text(&strip.name).raw("</span><span class=\"number\">");
    page.text(&strip.number).raw("</span></div><div class=\"plot\">");
    timeline.open_svg(page, "strip", &format!("{}: {}", strip.name, strip.number));
    for (class, path) in paths(&strip.cells) {
        page.raw("<path class=\"").raw(class).raw("\" d=\"").raw(&path).raw("\"/>");
    }
    let of = |index: usize| strip.cells[index].as_ref().filter(|_| is_named).map(|cell| cell.words.clone());
    timeline.close_svg(page, of);
    page.raw("</div></div>");
}

/// Neighbours of one class, as one cell.
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

/// A path for all cells of a class, which is the least that a drawing of them can be.
fn paths(cells: &[Option<Cell>]) -> BTreeMap<&str, String> {
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    for (from, to, cell) in runs(cells) {
        let width = to - from;
        let path = paths.entry(cell.class.as_str()).or_default();
        write!(path, "M{from} 0h{width}v{HEIGHT}h-{width}z").expect("a string takes any text");
    }
    paths
}

/// How many cells strips have.
pub(super) fn cells(strips: &[Strip]) -> usize {
    strips.iter().map(|strip| strip.cells.iter().flatten().count()).sum()
}

/// The key of shades.
pub(super) fn shades(page: &mut Markup, class: &str, low: &str, high: &str) {
    page.raw("<div class=\"keys\"><span>").text(low).raw("</span><svg class=\"shades ").raw(class);
    page.raw("\" viewBox=\"0 0 8 1\" preserveAspectRatio=\"none\">");
    for shade in 1..=SHADES as usize {
        page.raw_fmt(format_args!("<path class=\"s{shade}\" d=\"M{} 0h1v1h-1Z\"/>", shade - 1));
    }
    page.raw("</svg><span>").text(high).raw("</span></div>");
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
