//! `warptape dlq list`: a row for each dead letter, as they are read.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use warptape_schemas::{DeadLetter, Describer};

use super::letters::{Letter, Letters, Range};
use super::{offsets, rows_of, write_json};
use crate::cli::{DlqListArgs, ListFormat};
use crate::commands::columns::{Align, utc};
use crate::commands::csv_rows;
use crate::commands::fit::{self, Cell, Room, Shape, by_importance, fit, left_out};
use crate::commands::json::{Integers, iso};
use crate::commands::tail::json_line::JsonLine;
use crate::open::{Purpose, open_log};
use crate::printable::stdout;
use crate::settings::Settings;

/// In place of the reason of a record that is no dead letter.
const UNREADABLE: &str = "(unreadable)";

/// Lists the dead letters.
pub fn execute(args: &DlqListArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let integers = Integers::of(args.raw, args.output == ListFormat::Json)?;
    let log = open_log(settings, Purpose::Show)?.log;
    let topic = &settings.topics.names.dead_letter;
    let letters = Letters::new(&*log, topic)?;
    let mut out = BufWriter::new(stdout());
    match args.output {
        ListFormat::Json => {
            let describer = Describer::new();
            each(&letters, &mut |letter| {
                let line = JsonLine::new(topic, letter.partition, &letter.record).with_integers(integers);
                write_json(&mut out, &line, &letter, &describer)
            })?;
        }
        ListFormat::Csv => {
            out.write_all(csv_rows::row(CSV_NAMES)?.as_bytes())?;
            each(&letters, &mut |letter| out.write_all(csv_rows::row(csv_row(&letter))?.as_bytes()))?;
        }
        ListFormat::Table => {
            let table = Table::new(Room::of_stdout(args.wide));
            let mut has_rows = false;
            each(&letters, &mut |letter| {
                if !std::mem::replace(&mut has_rows, true) {
                    writeln!(out, "{}", table.lines(&COLUMNS.map(|column| column.title.to_owned())))?;
                }
                writeln!(out, "{}", table.lines(&row(&letter)))
            })?;
            match left_out(&table.missing()) {
                _ if !has_rows => writeln!(out, "no dead letters")?,
                Some(note) => writeln!(out, "{}", table.fitted(&note))?,
                None => {}
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Passes on all letters, partition by partition.
fn each(letters: &Letters<'_>, take: &mut dyn FnMut(Letter) -> io::Result<()>) -> anyhow::Result<()> {
    let read = |partition| letters.read(partition, Range::ALL, &mut |letter| Ok(take(letter)?));
    letters.partitions().try_for_each(read)
}

/// A column with its widths.
#[derive(Clone, Copy)]
struct Column {
    title: &'static str,
    align: Align,
    shape: Shape,
}

const fn column(title: &'static str, width: usize, align: Align) -> Column {
    Column { title, align, shape: Shape { least: width, wanted: width, most: width } }
}

const COLUMNS: [Column; 6] = [
    column("PARTITION", 9, Align::Right),
    column("OFFSET", 10, Align::Right),
    column("TIME", 27, Align::Left),
    Column { shape: Shape { least: 12, wanted: 14, most: 24 }, ..column("REASON", 14, Align::Left) },
    Column { shape: Shape { least: 12, wanted: 24, most: ANY_WIDTH }, ..column("SOURCE", 24, Align::Left) },
    column("BYTES", 8, Align::Right),
];
/// Width for an error in place of a source.
const ANY_WIDTH: usize = usize::MAX / 4;
/// The most important columns.
const FIRST: [&str; 5] = ["OFFSET", "REASON", "PARTITION", "SOURCE", "TIME"];

/// A table whose rows come one by one.
struct Table {
    room: Room,
    /// Indices and widths of the columns with room.
    shown: Vec<(usize, usize)>,
}

impl Table {
    fn new(room: Room) -> Self {
        let shown = match room {
            Room::Whole => COLUMNS.iter().map(|column| column.shape.wanted).enumerate().collect(),
            Room::Columns(width) => {
                let ranks = by_importance(COLUMNS.iter().map(|column| column.title), &FIRST);
                fit(&COLUMNS.map(|column| column.shape), &ranks, width)
            }
        };
        Self { room, shown }
    }

    /// Returns the lines of a row, joined.
    fn lines(&self, cells: &[String; 6]) -> String {
        let cell = |&(index, width): &(usize, usize)| Cell {
            text: cells[index].clone(),
            width,
            align: COLUMNS[index].align,
            wraps: false,
        };
        fit::row(&self.shown.iter().map(cell).collect::<Vec<_>>(), self.room)
    }

    /// Returns the titles of the columns without room.
    fn missing(&self) -> Vec<&'static str> {
        let is_missing = |index: &usize| self.shown.iter().all(|(shown, _)| shown != index);
        (0..COLUMNS.len()).filter(is_missing).map(|index| COLUMNS[index].title).collect()
    }

    /// Cuts a line to the room.
    fn fitted(&self, line: &str) -> String {
        match self.room {
            Room::Whole => line.to_owned(),
            Room::Columns(width) => fit::cut(line, width),
        }
    }
}

fn row(letter: &Letter) -> [String; 6] {
    let (reason, source, bytes) = match &letter.content {
        Ok(content) => (
            content.reason.name().to_owned(),
            format!("{}:{}:{}{}", content.topic, content.partition, offsets(content, "-"), rows_of(content)),
            content.value_bytes().to_string(),
        ),
        Err(error) => (UNREADABLE.to_owned(), error.to_string(), letter.record.value.len().to_string()),
    };
    let record = &letter.record;
    [letter.partition.to_string(), record.offset.to_string(), utc(record.timestamp_ns), reason, source, bytes]
}

const CSV_NAMES: [&str; 11] = [
    "partition",
    "offset",
    "written",
    "reason",
    "source_topic",
    "source_partition",
    "source_offset",
    "source_last_offset",
    "source_rows",
    "bytes",
    "detail",
];

/// Returns the exact cells of a letter; those of a source are empty for a record that is no dead letter.
fn csv_row(letter: &Letter) -> [String; 11] {
    let record = &letter.record;
    let [partition, offset] = [letter.partition.to_string(), record.offset.to_string()];
    let written = iso(record.timestamp_ns);
    let bytes = record.value.len().to_string();
    let content = match &letter.content {
        Ok(content) => content,
        Err(error) => {
            let [topic, source, first, last, rows] = [const { String::new() }; 5];
            let (reason, detail) = (UNREADABLE.to_owned(), error.to_string());
            return [partition, offset, written, reason, topic, source, first, last, rows, bytes, detail];
        }
    };
    let DeadLetter { topic, rows, detail, .. } = content;
    let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    [
        partition,
        offset,
        written,
        content.reason.name().to_owned(),
        topic.clone(),
        content.partition.to_string(),
        content.offset.to_string(),
        content.last_offset.map_or_else(String::new, |last| last.to_string()),
        rows.join(" "),
        content.value_bytes().to_string(),
        detail.clone(),
    ]
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn cells() -> [String; 6] {
        let cells =
            ["3", "4711", "2024-08-08T00:00:00.123456Z", "NO_PRICE_SCALE", "日本の株式市場:7:12", "3145728"];
        cells.map(str::to_owned)
    }

    #[test]
    fn rows_exceed_no_width_and_the_important_columns_stay() {
        for width in 20..=200 {
            let table = Table::new(Room::Columns(width));
            let line = table.lines(&cells());
            assert!(line.width() <= width && line.contains("4711"), "{width}: {line:?}");
            let note = left_out(&table.missing()).unwrap_or_default();
            assert!(table.fitted(&note).width() <= width, "{note}");
        }
        let narrow = Table::new(Room::Columns(48));
        assert_eq!(narrow.lines(&cells()), "        3        4711  NO_PRICE_SCALE    3145728");
        assert_eq!(narrow.missing(), ["TIME", "SOURCE"]);
    }

    #[test]
    fn a_table_with_room_has_all_cells() {
        let whole = Table::new(Room::Whole).lines(&cells());
        assert_eq!(Table::new(Room::Columns(200)).missing(), [""; 0]);
        for cell in cells() {
            assert!(whole.contains(&cell), "{whole}");
        }
    }
}
