//! Tables of a pane: as many columns as fit, and the rows around the selected one.

use std::ops::Range;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::palette::Palette;
use super::words::shown;
use crate::commands::columns::Align;
use crate::commands::fit::cut;

/// Columns between two columns of a table.
const GAP: usize = 2;
/// Least width to which a column of words is cut; below it the column is left out.
const CUT_MIN: usize = 6;

/// Size of a pane without its title, in columns and lines.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Columns.
    pub width: usize,
    /// Lines.
    pub height: usize,
}

/// A cell: printable text in a style.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Creates a cell from any text, which is made printable.
    pub fn new(text: &str) -> Self {
        Self { text: shown(text), style: Style::new() }
    }

    /// Sets the style.
    pub fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }
}

/// Returns the range of rows to show, which includes the selected one.
pub fn window(rows: usize, selected: usize, height: usize) -> Range<usize> {
    let from = (selected + 1).saturating_sub(height).min(rows);
    from..rows.min(from + height)
}

/// Lays out a table. `selected` is the row to keep visible, and true if the row is highlighted.
pub fn table(
    header: &[(&'static str, Align)],
    rows: &[Vec<Cell>],
    room: Room,
    selected: (usize, bool),
    palette: Palette,
) -> Vec<Line<'static>> {
    let visible = window(rows.len(), selected.0, room.height.saturating_sub(1));
    let widths = widths(header, &rows[visible.clone()], room.width);
    let titles: Vec<Cell> = header.iter().map(|(title, _)| Cell::new(title).style(palette.faint())).collect();
    let lines = visible.map(|row| {
        let line = line(&rows[row], header, &widths);
        if selected == (row, true) { line.style(palette.selected()) } else { line }
    });
    std::iter::once(line(&titles, header, &widths)).chain(lines).take(room.height).collect()
}

/// Returns the widths of the columns that fit, starting with the first.
fn widths(header: &[(&'static str, Align)], rows: &[Vec<Cell>], room: usize) -> Vec<usize> {
    let (mut widths, mut left) = (Vec::new(), room);
    for (column, (title, align)) in header.iter().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width());
        let wanted = cells.chain([title.width()]).max().unwrap_or(0);
        let gap = if column == 0 { 0 } else { GAP };
        let given = wanted.min(left.saturating_sub(gap));
        if given < wanted && (*align == Align::Right || given < CUT_MIN) {
            break;
        }
        widths.push(given);
        left -= given + gap;
    }
    widths
}

fn line(cells: &[Cell], header: &[(&'static str, Align)], widths: &[usize]) -> Line<'static> {
    let mut spans = Vec::new();
    for ((cell, (_, align)), columns) in cells.iter().zip(header).zip(widths) {
        if !spans.is_empty() {
            spans.push(Span::raw(" ".repeat(GAP)));
        }
        let text = cut(&cell.text, *columns);
        let blanks = " ".repeat(columns.saturating_sub(text.width()));
        let padded = match align {
            Align::Left => format!("{text}{blanks}"),
            Align::Right => format!("{blanks}{text}"),
        };
        spans.push(Span::styled(padded, cell.style));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: [(&str, Align); 3] =
        [("lane", Align::Left), ("rows/s", Align::Right), ("symbols", Align::Left)];

    fn texts(room: Room, selected: usize) -> Vec<String> {
        let row = |lane: &str| vec![Cell::new(lane), Cell::new("1,000"), Cell::new("SYNTH:AAAA \u{1b}[2J")];
        let rows: Vec<Vec<Cell>> = (0..9).map(|lane: i32| row(&lane.to_string())).collect();
        let palette = Palette { is_coloured: false };
        table(&HEADER, &rows, room, (selected, true), palette).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_table_has_the_columns_that_fit() {
        let wide = texts(Room { width: 80, height: 2 }, 0);
        assert_eq!(wide[1], "0      1,000  SYNTH:AAAA \\u001b[2J");
        assert_eq!(texts(Room { width: 22, height: 2 }, 0)[1], "0      1,000  SYNTH:A…");
        assert_eq!(texts(Room { width: 19, height: 2 }, 0)[1], "0      1,000");
        assert_eq!(texts(Room { width: 9, height: 2 }, 0)[1], "0   ");
        assert_eq!(texts(Room { width: 0, height: 2 }, 0), ["", ""]);
    }

    #[test]
    fn the_selected_row_is_visible() {
        let lanes = |selected| {
            let lines = texts(Room { width: 5, height: 4 }, selected);
            lines.iter().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(lanes(0), ["lane", "0", "1", "2"]);
        assert_eq!(lanes(8), ["lane", "6", "7", "8"]);
        assert!(texts(Room { width: 5, height: 0 }, 3).is_empty());
    }
}
