//! Tables that fit the terminal: chooses columns and widths, and cuts or wraps cells to them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::columns::{Align, aligned, line};
use crate::printable::{printable_line, terminal_columns};

/// Mark at the end of a cut cell; one column wide.
const ELLIPSIS: char = '…';
/// Columns between two cells.
const GAP: usize = 2;
/// Narrowest width that tables are fitted to; a narrower terminal breaks their lines.
const COLUMNS_MIN: usize = 20;

/// Width available for the lines of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Lines of any length, with all columns.
    Whole,
    /// Lines of at most this width.
    Columns(usize),
}

impl Room {
    /// Returns the room of standard output: the width of a terminal, unless `--wide` is given.
    pub fn of_stdout(is_wide: bool) -> Self {
        match terminal_columns() {
            Some(columns) if !is_wide => Self::Columns(columns.max(COLUMNS_MIN)),
            _ => Self::Whole,
        }
    }
}

/// Widths that a column may have.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Least width; without that much room the column is left out.
    pub least: usize,
    /// Width that most cells need.
    pub wanted: usize,
    /// Greatest useful width.
    pub most: usize,
}

/// Chooses the columns that fit, by importance, and then widens them. Returns their indices and widths, in the order of
/// the table. The most important column is always included.
pub fn fit(shapes: &[Shape], by_importance: &[usize], room: usize) -> Vec<(usize, usize)> {
    let mut left = room;
    let mut shown: Vec<(usize, usize)> = Vec::new();
    for &index in by_importance {
        let gap = if shown.is_empty() { 0 } else { GAP };
        let least = shapes[index].least.max(1);
        if least + gap <= left {
            shown.push((index, least));
            left -= least + gap;
        } else if shown.is_empty() {
            shown.push((index, room));
            left = 0;
        }
    }
    for limit in [|shape: &Shape| shape.wanted, |shape: &Shape| shape.most] {
        for (index, width) in &mut shown {
            let more = limit(&shapes[*index]).saturating_sub(*width).min(left);
            *width += more;
            left -= more;
        }
    }
    shown.sort_unstable();
    shown
}

/// Cuts a printable text to a width, and marks a cut with an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    format!("{}{ELLIPSIS}", beginning(text, width - 1))
}

/// Breaks a printable text into lines of at most this width, between words where possible. Lines after the first begin
/// with the indent.
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let room = |lines: &[String]| width.saturating_sub(if lines.is_empty() { 0 } else { indent.width() });
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() <= room(&lines) {
            line.push(' ');
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        let mut rest = word;
        while rest.width() > room(&lines) {
            // A character that is wider than the line goes into it nevertheless.
            let first = rest.chars().next().map_or(0, char::len_utf8);
            let end = beginning(rest, room(&lines)).len().max(first);
            lines.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        line.push_str(rest);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, indent));
    lines
}

/// Returns the longest prefix of a text that fits the width.
fn beginning(text: &str, width: usize) -> &str {
    let mut used = 0;
    let too_wide = text.char_indices().find(|(_, character)| {
        used += character.width().unwrap_or(0);
        used > width
    });
    &text[..too_wide.map_or(text.len(), |(at, _)| at)]
}

/// A cell with its place in a line.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The contents.
    pub text: String,
    /// Width of the column.
    pub width: usize,
    /// Alignment of the column.
    pub align: Align,
    /// True if a long text continues on further lines; otherwise it is cut.
    pub wraps: bool,
}

/// Returns the lines of one row, joined, none wider than its columns. Without a limit, a row is one line.
pub fn row(cells: &[Cell], room: Room) -> String {
    match room {
        Room::Whole => line(cells.iter().map(|cell| (&cell.text, cell.width, cell.align))),
        Room::Columns(_) => fitted_lines(cells).join("\n"),
    }
}

fn fitted_lines(cells: &[Cell]) -> Vec<String> {
    let pieces: Vec<Vec<String>> = cells
        .iter()
        .map(|cell| {
            let text = printable_line(&cell.text);
            if cell.wraps { wrap(&text, cell.width, "") } else { vec![cut(&text, cell.width)] }
        })
        .collect();
    let height = pieces.iter().map(Vec::len).max().unwrap_or(0);
    let empty = String::new();
    let of_row = |row: usize| {
        let cells = pieces.iter().zip(cells);
        line(cells.map(|(pieces, cell)| (pieces.get(row).unwrap_or(&empty), cell.width, cell.align)))
    };
    (0..height).map(of_row).collect()
}

/// A column of a table whose rows are known.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    title: &'a str,
    align: Align,
    /// Least width; `None` for cells that are never cut.
    least: Option<usize>,
    wraps: bool,
}

impl<'a> Head<'a> {
    /// Numbers, which are not cut.
    pub const fn number(title: &'a str) -> Self {
        Self { title, align: Align::Right, least: None, wraps: false }
    }

    /// Words of one form, such as times and places, which are not cut.
    pub const fn fixed(title: &'a str) -> Self {
        Self { align: Align::Left, ..Self::number(title) }
    }

    /// Words that may be cut to this width.
    pub const fn text(title: &'a str, least: usize) -> Self {
        Self { least: Some(least), ..Self::fixed(title) }
    }

    /// Sentences that go on in further lines, each of at least this width.
    pub const fn sentence(title: &'a str, least: usize) -> Self {
        Self { wraps: true, ..Self::text(title, least) }
    }
}

/// Formats a table of known rows. `first` names the most important columns; the others follow in their order. Columns
/// without room are left out, and a line below the table names them.
pub fn table(heads: &[Head<'_>], first: &[&str], rows: &[Vec<String>], room: Room) -> String {
    let Room::Columns(room) = room else {
        let header: Vec<(&str, Align)> = heads.iter().map(|head| (head.title, head.align)).collect();
        return aligned(&header, rows);
    };
    let shape = |(column, head): (usize, &Head<'_>)| {
        let cells = rows.iter().map(|row| printable_line(&row[column]).width());
        let widest = cells.chain([head.title.width()]).max().unwrap_or(0);
        Shape { least: head.least.map_or(widest, |least| least.min(widest)), wanted: widest, most: widest }
    };
    let shapes: Vec<Shape> = heads.iter().enumerate().map(shape).collect();
    let shown = fit(&shapes, &by_importance(heads.iter().map(|head| head.title), first), room);
    let titles: Vec<String> = heads.iter().map(|head| head.title.to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        let cell = |&(index, width): &(usize, usize)| {
            let Head { align, wraps, .. } = heads[index];
            Cell { text: row[index].clone(), width, align, wraps }
        };
        for line in fitted_lines(&shown.iter().map(cell).collect::<Vec<_>>()) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    let is_missing = |index: &usize| shown.iter().all(|(shown, _)| shown != index);
    let missing: Vec<&str> = (0..heads.len()).filter(is_missing).map(|index| heads[index].title).collect();
    if let Some(note) = left_out(&missing) {
        text.push_str(&cut(&note, room));
        text.push('\n');
    }
    text
}

/// Names the columns that had no room; `None` if all columns fit.
pub fn left_out(titles: &[&str]) -> Option<String> {
    let columns = if titles.len() == 1 { "column" } else { "columns" };
    let names = || titles.join(", ");
    (!titles.is_empty()).then(|| format!("({} {columns} with --wide: {})", titles.len(), names()))
}

/// Returns the indices of columns by importance: the named ones, then the others in their order.
pub fn by_importance<'a>(titles: impl Iterator<Item = &'a str>, first: &[&str]) -> Vec<usize> {
    let rank = |title: &str| first.iter().position(|name| *name == title).unwrap_or(first.len());
    let mut ranked: Vec<(usize, usize)> =
        titles.enumerate().map(|(index, title)| (rank(title), index)).collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row([
                "12.047",
                "2026-11-28T19:08:00.105534Z",
                "東京:日経平均株価指数先物",
                "records 1 to 1 arrived",
            ]),
            row([
                "4.9",
                "unknown",
                "a\u{1b}b",
                "lane 0 (cpu:0) had 1 batch ahead of it, and anUnbrokenWordOfManyLetters",
            ]),
        ]
    }

    fn heads() -> [Head<'static>; 4] {
        [Head::number("wait_ms"), Head::fixed("until"), Head::text("symbol", 12), Head::sentence("what", 20)]
    }

    #[test]
    fn tables_exceed_no_width() {
        for width in COLUMNS_MIN..=240 {
            let text = table(&heads(), &["what"], &rows(), Room::Columns(width));
            for line in text.lines() {
                assert!(line.width() <= width, "{width}: {line:?} is {} wide\n{text}", line.width());
            }
            assert!(text.contains("what"), "the first column is always there: {text}");
        }
    }

    #[test]
    fn a_table_with_room_is_the_whole_one() {
        let whole = table(&heads(), &[], &rows(), Room::Whole);
        assert_eq!(table(&heads(), &[], &rows(), Room::Columns(240)), whole);
        assert!(!whole.contains(ELLIPSIS) && whole.lines().count() == 3, "{whole}");
    }

    #[test]
    fn columns_are_left_out_by_importance_and_named() {
        let text = table(&heads(), &["what", "symbol"], &rows(), Room::Columns(48));
        let expected = "\
wait_ms  symbol        what
 12.047  東京:日経平…  records 1 to 1 arrived
    4.9  a\\u001bb      lane 0 (cpu:0) had 1
                       batch ahead of it, and
                       anUnbrokenWordOfManyLette
                       rs
(1 column with --wide: until)
";
        assert_eq!(text, expected);
    }

    #[test]
    fn cells_are_cut_by_their_width_on_screen() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("日本語", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(cut(text, width), expected, "{text} in {width}");
        }
    }

    #[test]
    fn texts_are_wrapped_between_words() {
        assert_eq!(wrap("one two  three", 7, ""), ["one two", "three"]);
        assert_eq!(wrap("", 7, ""), [""]);
        assert_eq!(wrap("abcdefgh i", 3, ""), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("日本", 1, ""), ["日", "本"]);
        assert_eq!(wrap("lane 1 has 株式市場", 8, "  "), ["lane 1", "  has", "  株式市", "  場"]);
        assert_eq!(wrap("one two", 1, "  "), ["o", "  n", "  e", "  t", "  w", "  o"]);
    }

    #[test]
    fn room_goes_to_the_important_columns_first() {
        let shape = |least, wanted, most| Shape { least, wanted, most };
        let shapes = [shape(4, 8, 8), shape(4, 6, 12), shape(10, 10, 10)];
        assert_eq!(fit(&shapes, &[1, 0, 2], 10), [(0, 4), (1, 4)]);
        assert_eq!(fit(&shapes, &[1, 0, 2], 13), [(0, 5), (1, 6)]);
        assert_eq!(fit(&shapes, &[1, 0, 2], 28), [(0, 8), (1, 6), (2, 10)]);
        assert_eq!(fit(&shapes, &[1, 0, 2], 100), [(0, 8), (1, 12), (2, 10)]);
        assert_eq!(fit(&shapes, &[2, 0, 1], 5), [(2, 5)], "the first column is cut if need be");
    }
}
