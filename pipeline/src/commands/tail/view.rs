//! The columns of a table or a CSV file, and their lines.

use super::layouts::{self, Column, Layout};
use super::show::{Precision, Row, Show};
use crate::commands::columns::Align;
use crate::commands::fit::{self, Cell, Room, Shape, by_importance, fit};

/// Width of a last column that may be arbitrarily long.
const ANY_WIDTH: usize = usize::MAX / 4;

/// Columns with their widths.
pub struct View {
    columns: Vec<(Column, usize)>,
    room: Room,
    /// Titles of the columns that did not fit.
    pub missing: Vec<&'static str>,
}

impl View {
    /// Returns the columns of a layout that fit.
    pub fn of(layout: &Layout, room: Room) -> Self {
        let columns = std::iter::once(layouts::POSITION).chain(layout.columns.iter().copied());
        Self::fitted(columns.collect(), layout.first, room)
    }

    /// Returns the columns that a user chose, as many as fit. The first ones get room first.
    pub fn chosen(columns: Vec<Column>, room: Room) -> Self {
        Self::fitted(columns, &[], room)
    }

    /// Returns the columns of CSV: the columns of a layout, and the fields that tables show elsewhere.
    pub fn csv(layout: &Layout) -> Self {
        // A snapshot already has its partition among its columns.
        let is_own = |title: &str| layout.columns.iter().any(|column| column.title == title);
        let place = layouts::PLACE.into_iter().filter(|column| match column.show {
            Show::Index => layout.schema == "Tick",
            _ => !is_own(column.title),
        });
        let more = layout.more.iter().map(|name| layouts::of_field(name));
        let columns = place.chain(layout.columns.iter().copied()).chain(more);
        Self::fitted(columns.collect(), &[], Room::Whole)
    }

    fn fitted(columns: Vec<Column>, first: &[&str], room: Room) -> Self {
        let Room::Columns(width) = room else {
            let columns = columns.into_iter().map(|column| (column, column.width)).collect();
            return Self { columns, room, missing: Vec::new() };
        };
        let last = columns.len().saturating_sub(1);
        let shapes: Vec<Shape> =
            columns.iter().enumerate().map(|(index, column)| shape(column, index == last)).collect();
        let shown = fit(&shapes, &by_importance(columns.iter().map(|column| column.title), first), width);
        let is_missing = |index: usize| shown.iter().all(|(shown, _)| *shown != index);
        let missing = columns.iter().enumerate().filter(|(index, _)| is_missing(*index));
        let missing = missing.map(|(_, column)| column.title).collect();
        Self {
            columns: shown.into_iter().map(|(index, width)| (columns[index], width)).collect(),
            room,
            missing,
        }
    }

    /// True if a column shows a field of the record's JSON.
    pub fn needs_json(&self) -> bool {
        self.columns.iter().any(|(column, _)| matches!(column.show, Show::Field(_)))
    }

    /// Returns the line of titles.
    pub fn header(&self) -> String {
        self.lines(|column| column.title.to_owned())
    }

    /// Returns one row as text, which may have several lines.
    pub fn text(&self, row: Row<'_>) -> String {
        self.lines(|column| column.show.cell(row, Precision::Table))
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(column, _)| column.name()).collect()
    }

    /// Returns the exact cells of one row.
    pub fn record(&self, row: Row<'_>) -> Vec<String> {
        self.columns.iter().map(|(column, _)| column.show.cell(row, Precision::Exact)).collect()
    }

    fn lines(&self, cell: impl Fn(&Column) -> String) -> String {
        let cells: Vec<Cell> = self
            .columns
            .iter()
            .map(|(column, width)| Cell {
                text: cell(column),
                width: *width,
                align: column.show.align(),
                wraps: matches!(column.show, Show::Sentence(_)),
            })
            .collect();
        fit::row(&cells, self.room)
    }
}

/// Returns the allowed widths of a column. A last column of words takes all remaining room.
fn shape(column: &Column, is_last: bool) -> Shape {
    let is_of_one_form = matches!(column.show, Show::Time(_) | Show::Written | Show::Count(_) | Show::Index);
    let most = match column.show.align() {
        Align::Left if is_last && !is_of_one_form => ANY_WIDTH,
        _ if is_of_one_form => column.width,
        _ => column.width + column.width / 2,
    };
    Shape { least: column.least.min(column.width), wanted: column.width, most }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use unicode_width::UnicodeWidthStr;

    use super::super::rows::TickRow;
    use super::super::show::Position;
    use super::*;

    fn text(view: &View, schema: &'static str, fields: Value) -> String {
        let at = Position { partition: 1, offset: 40, timestamp_ns: 1_723_075_200_123_456_789 };
        let row = TickRow { schema, index: None, fields };
        view.text(Row { at, row: &row, readable: &Value::Null })
    }

    fn letter() -> Value {
        json!({"topic": "ticks", "partition": 2, "offset": 7, "reason": "TRUNCATED", "detail": "ends in field 3"})
    }

    #[test]
    fn cells_stand_below_their_titles() {
        let view = View::of(layouts::of("warptape.DeadLetter"), Room::Whole);
        let (header, line) = (view.header(), text(&view, "DeadLetter", letter()));
        assert!(line.starts_with("1:40 "), "{line}");
        for (title, cell) in [
            ("WRITTEN", "2024-08-08T00:00:00.123456Z"),
            ("SOURCE", "ticks:2:7"),
            ("REASON", "TRUNCATED"),
            ("DETAIL", "ends in field 3"),
        ] {
            assert_eq!(header.find(title).unwrap(), line.find(cell).unwrap(), "{header}\n{line}");
        }
    }

    #[test]
    fn a_schema_without_layout_is_shown_as_json() {
        let written = "2024-08-08T00:00:00.123456Z";
        let line = text(&View::of(layouts::of("Other"), Room::Whole), "Other", json!({"a": 1}));
        assert_eq!(line, format!("1:40              {written}  {{\"a\":1}}"));
    }

    #[test]
    fn lines_exceed_no_width_and_the_important_columns_stay() {
        let long = "日本語のとても長い説明 ".repeat(20);
        let fields = json!({
            "symbol": long, "kind": long, "bar_spec": long, "bar_end_ns": i64::MIN, "value": f64::MIN,
            "open_e9": i64::MIN, "input": long, "sequence": i64::MAX, "at_ns": 0, "detail": long, "node": long,
            "event": long, "topic": long, "reason": long,
        });
        for schema in ["Tick", "Signal", "JournalEntry", "LateTick", "DeadLetter", "Lifecycle", "Other"] {
            for width in 20..=240 {
                let view = View::of(layouts::of(schema), Room::Columns(width));
                let printed = format!("{}\n{}", view.header(), text(&view, schema, fields.clone()));
                for line in printed.lines() {
                    assert!(line.width() <= width, "{schema} in {width}: {line:?} is {} wide", line.width());
                }
                let first = layouts::of(schema).first.first().unwrap_or(&"POSITION");
                assert!(!view.missing.contains(first), "{schema} in {width} has no {first}");
            }
        }
    }

    #[test]
    fn signals_of_80_columns_have_their_symbol_time_kind_and_value() {
        let view = View::of(layouts::of("Signal"), Room::Columns(80));
        let fields = json!({
            "symbol": "BINANCE-USDM:1000SHIBUSDT", "kind": "BAND_BREAK_DOWN", "bar_spec": "1m",
            "bar_end_ns": 1_723_075_200_000_000_000_i64, "value": 25.5,
        });
        assert_eq!(
            format!("{}\n{}", view.header(), text(&view, "Signal", fields)),
            "BAR END                      SYMBOL              BAR    KIND               VALUE\n\
             2024-08-08T00:00:00.000000Z  BINANCE-USDM:1000…  1m     BAND_BR…            25.5"
        );
        assert_eq!(view.missing.len(), 12, "{:?}", view.missing);
    }

    #[test]
    fn csv_has_names_and_exact_cells() {
        let names = View::csv(layouts::of("Tick")).names();
        assert_eq!(names[..6], ["partition", "offset", "index", "written", "event_time", "symbol"]);
        assert_eq!(View::csv(layouts::of("Snapshot")).names()[..3], ["offset", "written", "partition"]);
        assert!(View::csv(layouts::of("JournalEntry")).names().contains(&"decisions".to_owned()));
        let at = Position { partition: 1, offset: 40, timestamp_ns: 1_723_075_200_123_456_789 };
        let row = TickRow { schema: "DeadLetter", index: None, fields: letter() };
        let cells =
            View::csv(layouts::of("DeadLetter")).record(Row { at, row: &row, readable: &Value::Null });
        assert_eq!(
            cells,
            ["1", "40", "2024-08-08T00:00:00.123456789Z", "ticks:2:7", "TRUNCATED", "ends in field 3"]
        );
    }
}
