//! Text in aligned columns, and the form of times in them.

use indicatif::HumanCount;
use unicode_width::UnicodeWidthStr;
pub use warptape_replay::utc;

use crate::printable::printable_line;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Formats a number of things, such as `1 batch` or `2,000 batches`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", HumanCount(count), if count == 1 { one } else { many })
}

/// Formats a number of things without thousands separators, to match the numbers of a journal: `1 batch` or `2000
/// batches`.
pub fn numbered(number: impl Into<i128>, one: &str, many: &str) -> String {
    let number = number.into();
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Formats a table of known rows: a header, a line for each row, no trailing blanks.
pub fn aligned(header: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = header
        .iter()
        .enumerate()
        .map(|(column, (title, _))| {
            let cells = rows.iter().map(|row| printable_line(&row[column]).width());
            cells.chain([title.width()]).max().unwrap_or(0)
        })
        .collect();
    let titles: Vec<String> = header.iter().map(|(title, _)| (*title).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        let columns =
            row.iter().zip(&widths).zip(header).map(|((cell, width), (_, align))| (cell, *width, *align));
        text.push_str(&line(columns));
        text.push('\n');
    }
    text
}

/// Formats one line of printable cells, each padded to a width and aligned.
pub fn line<'a>(cells: impl IntoIterator<Item = (&'a String, usize, Align)>) -> String {
    let mut text = String::new();
    for (index, (cell, width, align)) in cells.into_iter().enumerate() {
        if index > 0 {
            text.push_str("  ");
        }
        let cell = printable_line(cell);
        let blanks = " ".repeat(width.saturating_sub(cell.width()));
        match align {
            Align::Left => text.extend([&*cell, &*blanks]),
            Align::Right => text.extend([&*blanks, &*cell]),
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Formats named facts, each printable and on a line of its own.
pub fn facts(facts: &[(&str, String)]) -> String {
    facts.iter().map(|(name, fact)| format!("{name:<10} {}\n", printable_line(fact))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["bcde".to_owned(), "1000".to_owned()]];
        let text = aligned(&[("name", Align::Left), ("n", Align::Right)], &rows);
        assert_eq!(text, "name     n\na        1\nbcde  1000\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = [vec!["東京".to_owned(), "1".to_owned()], vec!["abcde".to_owned(), "2".to_owned()]];
        let text = aligned(&[("name", Align::Left), ("n", Align::Right)], &rows);
        assert_eq!(text, "name   n\n東京   1\nabcde  2\n");
    }

    #[test]
    fn a_cell_stays_in_its_line() {
        let rows = [vec!["a\nb\u{202e}".to_owned(), "1".to_owned()]];
        let header = [("name", Align::Left), ("n", Align::Right)];
        assert_eq!(aligned(&header, &rows), "name            n\na\\u000ab\\u202e  1\n");
    }

    #[test]
    fn lines_have_no_trailing_blanks() {
        assert_eq!(
            aligned(&[("a", Align::Left), ("b", Align::Left)], &[vec!["x".to_owned(), String::new()]]),
            "a  b\nx\n"
        );
    }
}
