//! Rows of a CSV or Parquet file: cells by the names of their columns, each with its place for errors.

#[cfg(feature = "tables")]
mod of_parquet;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::bounded_file;
use crate::usage_error::UsageError;

/// Greatest length of a file, in bytes.
const BYTES_MAX: u64 = 256 << 20;
/// Greatest number of rows.
pub const ROWS_MAX: usize = 1_000_000;
/// Greatest number of columns.
const COLUMNS_MAX: usize = 256;

/// A table in a file.
pub struct Rows {
    path: PathBuf,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
    places: Places,
}

/// Places of rows in the file.
enum Places {
    /// Line in which each row begins, from 1.
    Lines(Vec<usize>),
    /// Rows are named by their numbers, from 1.
    #[cfg(feature = "tables")]
    Numbers,
}

/// A record of a text.
struct Record {
    line: usize,
    fields: Vec<String>,
}

/// A cell of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// An empty cell.
    Empty,
    /// Text as written.
    Text(String),
    /// A number, from a file with typed columns.
    #[cfg(feature = "tables")]
    Number(f64),
    /// A truth value.
    #[cfg(feature = "tables")]
    Flag(bool),
}

/// A row with the names of its columns.
pub struct FileRow<'a> {
    of: &'a Rows,
    number: usize,
    cells: BTreeMap<&'a str, &'a Cell>,
}

/// True if the name of a file says that it holds rows.
pub fn is_table(path: &Path) -> bool {
    matches!(extension(path).as_str(), "csv" | "parquet")
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

impl Rows {
    /// Reads a file. Columns other than the `known` ones are errors.
    pub fn read(path: &Path, known: &[&str]) -> Result<Self, UsageError> {
        let unread = |error: std::io::Error| mistake(path, &error.to_string());
        let rows = match extension(path).as_str() {
            #[cfg(feature = "tables")]
            "parquet" => of_parquet::read(path, bounded_file::open(path).map_err(unread)?)?,
            #[cfg(not(feature = "tables"))]
            "parquet" => return Err(UsageError::not_built(&path.display().to_string(), "tables")),
            _ => Self::of_csv(path, &bounded_file::read(path, BYTES_MAX).map_err(unread)?)?,
        };
        for (place, column) in rows.columns.iter().enumerate() {
            if !known.contains(&column.as_str()) {
                return Err(mistake(path, &format!("column `{column}` is not one of {}", known.join(", "))));
            }
            if rows.columns[..place].contains(column) {
                return Err(mistake(path, &format!("column `{column}` occurs twice")));
            }
        }
        if rows.rows.is_empty() {
            return Err(mistake(path, "it has no rows"));
        }
        Ok(rows)
    }

    fn of_csv(path: &Path, bytes: &[u8]) -> Result<Self, UsageError> {
        let text = std::str::from_utf8(bytes).map_err(|_| mistake(path, "it is not UTF-8"))?;
        let mut records = records(path, text.trim_start_matches('\u{feff}'))?.into_iter();
        let Some(header) = records.next() else { return Err(mistake(path, "it is empty")) };
        let name = |name: &String| name.trim().to_ascii_lowercase();
        let columns: Vec<String> = header.fields.iter().map(name).collect();
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for Record { line, fields } in records {
            if fields.len() != columns.len() {
                let message = format!("line {line}: {} cells for {} columns", fields.len(), columns.len());
                return Err(mistake(path, &message));
            }
            let cell = |text: String| match text.trim() {
                "" => Cell::Empty,
                text => Cell::Text(text.to_owned()),
            };
            rows.push(fields.into_iter().map(cell).collect());
            lines.push(line);
            check_rows(path, rows.len())?;
        }
        Ok(Self { path: path.to_owned(), columns, rows, places: Places::Lines(lines) })
    }

    /// Returns the place of a row: `line 3`.
    fn place(&self, number: usize) -> String {
        match &self.places {
            Places::Lines(lines) => format!("line {}", lines[number]),
            #[cfg(feature = "tables")]
            Places::Numbers => format!("row {}", number + 1),
        }
    }

    /// Returns the place of a column in a row: `book.csv: line 3, column `strike``. Names the row alone if the file
    /// lacks the column.
    pub fn cell_place(&self, number: usize, column: &str) -> String {
        let row = format!("{}: {}", self.path.display(), self.place(number));
        match self.columns.iter().any(|known| known == column) {
            true => format!("{row}, column `{column}`"),
            false => row,
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if a cell is not empty.
    pub fn has_cell(&self, number: usize, column: &str) -> bool {
        let place = self.columns.iter().position(|known| known == column);
        place.is_some_and(|place| self.rows[number][place] != Cell::Empty)
    }

    /// Returns the rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = FileRow<'_>> {
        self.rows.iter().enumerate().map(|(number, cells)| {
            let cells = self.columns.iter().map(String::as_str).zip(cells).collect();
            FileRow { of: self, number, cells }
        })
    }
}

impl FileRow<'_> {
    /// Returns the text in a column; `None` for an empty cell.
    pub fn text(&self, column: &str) -> Option<String> {
        match self.cells.get(column)? {
            Cell::Empty => None,
            Cell::Text(text) => Some(text.clone()),
            #[cfg(feature = "tables")]
            Cell::Number(number) => Some(number.to_string()),
            #[cfg(feature = "tables")]
            Cell::Flag(flag) => Some(flag.to_string()),
        }
    }

    /// Returns the finite number in a column; `None` for an empty cell.
    pub fn number(&self, column: &str) -> Result<Option<f64>, UsageError> {
        let (number, text): (Option<f64>, String) = match self.cells.get(column) {
            None | Some(Cell::Empty) => return Ok(None),
            #[cfg(feature = "tables")]
            Some(Cell::Number(number)) => (Some(*number), number.to_string()),
            Some(Cell::Text(text)) => (text.parse().ok(), text.clone()),
            #[cfg(feature = "tables")]
            Some(Cell::Flag(flag)) => (None, flag.to_string()),
        };
        match number.filter(|number| number.is_finite()) {
            None => Err(self.mistake(column, &format!("`{text}` is not a number"))),
            number => Ok(number),
        }
    }

    /// Returns the truth value in a column; false for an empty cell.
    pub fn flag(&self, column: &str) -> Result<bool, UsageError> {
        match self.text(column).map(|text| text.to_ascii_lowercase()).as_deref() {
            None | Some("false" | "no" | "0") => Ok(false),
            Some("true" | "yes" | "1") => Ok(true),
            Some(other) => Err(self.mistake(column, &format!("`{other}` is neither true nor false"))),
        }
    }

    /// Returns an error about a column of the row, with its place.
    pub fn mistake(&self, column: &str, what: &str) -> UsageError {
        mistake(&self.of.path, &format!("{}, column `{column}`: {what}", self.of.place(self.number)))
    }
}

fn check_rows(path: &Path, rows: usize) -> Result<(), UsageError> {
    if rows <= ROWS_MAX {
        return Ok(());
    }
    Err(mistake(path, &format!("it has more than {ROWS_MAX} rows")))
}

fn mistake(path: &Path, what: &str) -> UsageError {
    UsageError(format!("{}: {what}", path.display()))
}

/// Splits CSV into records: commas separate fields, and two quotes within quotes mean one. Both line endings are
/// allowed, and empty lines are skipped.
fn records(path: &Path, text: &str) -> Result<Vec<Record>, UsageError> {
    let (mut records, mut field) = (Vec::new(), String::new());
    let mut record = Record { line: 1, fields: Vec::new() };
    let (mut is_quoted, mut was_quoted) = (false, false);
    let mut line = 1;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        line += usize::from(character == '\n');
        match character {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if field.is_empty() && !was_quoted => (is_quoted, was_quoted) = (true, true),
            other if is_quoted => field.push(other),
            ',' => {
                record.fields.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' => {
                end_record(&mut records, &mut record, &mut field, was_quoted);
                (record.line, was_quoted) = (line, false);
            }
            other => field.push(other),
        }
        if record.fields.len() > COLUMNS_MAX {
            return Err(mistake(path, &format!("it has more than {COLUMNS_MAX} columns")));
        }
    }
    if is_quoted {
        let message = format!("line {}: a quotation mark is not closed", record.line);
        return Err(mistake(path, &message));
    }
    end_record(&mut records, &mut record, &mut field, was_quoted);
    Ok(records)
}

/// Adds a record, unless it is an empty line.
fn end_record(records: &mut Vec<Record>, record: &mut Record, field: &mut String, was_quoted: bool) {
    if record.fields.is_empty() && field.is_empty() && !was_quoted {
        return;
    }
    record.fields.push(std::mem::take(field));
    records.push(Record { line: record.line, fields: std::mem::take(&mut record.fields) });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, columns: &[&str]) -> Result<Rows, String> {
        let file = tempfile::Builder::new().suffix(".csv").tempfile().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let without = |error: UsageError| error.0.replace(&format!("{}: ", file.path().display()), "");
        Rows::read(file.path(), columns).map_err(without)
    }

    #[test]
    fn cells_are_read_by_their_columns() {
        let rows =
            rows("\u{feff}ID,strike ,future\r\n\"a,\"\"b\",100.5,yes\n\nc,,\n", &["id", "strike", "future"]);
        let rows = rows.unwrap_or_else(|error| panic!("{error}"));
        let read = |row: FileRow<'_>| {
            (row.text("id"), row.number("strike").ok().flatten(), row.flag("future").ok(), row.text("other"))
        };
        let found: Vec<_> = rows.iter().map(read).collect();
        assert_eq!(found[0], (Some("a,\"b".to_owned()), Some(100.5), Some(true), None));
        assert_eq!(found[1], (Some("c".to_owned()), None, Some(false), None));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn mistakes_have_a_place() {
        let error = |text: &str| rows(text, &["id", "strike"]).err().expect("a mistake");
        assert_eq!(error(""), "it is empty");
        assert_eq!(error("id\n"), "it has no rows");
        assert_eq!(error("id,strick\n"), "column `strick` is not one of id, strike");
        assert_eq!(error("id,id\na,b\n"), "column `id` occurs twice");
        assert_eq!(error("id,strike\na\n"), "line 2: 1 cells for 2 columns");
        assert_eq!(error("id\n\n\"a\n"), "line 3: a quotation mark is not closed");
        assert_eq!(error("id,strike\n\n\"a\nb\",1\nc\n"), "line 5: 1 cells for 2 columns");
        let rows =
            rows("id,strike\na,1\nb,1o\n", &["id", "strike"]).unwrap_or_else(|error| panic!("{error}"));
        let row = rows.iter().nth(1).expect("two rows");
        let error = row.number("strike").expect_err("no number").0;
        assert!(error.ends_with(": line 3, column `strike`: `1o` is not a number"), "{error}");
    }

    /// Empty lines and line breaks within quotes count in the line numbers of errors.
    #[test]
    fn mistakes_have_the_line_of_the_file() {
        for number in ["1o", "nan", "inf", "-Infinity", "1e999"] {
            let text = format!("id,strike\n\n\n\"a\r\nb\",1\n\r\nc,{number}\n");
            let rows = rows(&text, &["id", "strike"]).unwrap_or_else(|error| panic!("{error}"));
            let found: Vec<_> = rows.iter().map(|row| row.number("strike")).collect();
            let [Ok(Some(1.0)), Err(error)] = &found[..] else { panic!("one is bad") };
            let expected = format!(": line 7, column `strike`: `{number}` is not a number");
            assert!(error.0.ends_with(&expected), "{}", error.0);
        }
    }
}
